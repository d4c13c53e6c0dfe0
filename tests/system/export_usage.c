/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of `r3ring export`: what is refused, and in which words. */
#include <criterion/criterion.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/archive_story.h"
#include "tests/support/command.h"

#define NOWHERE "/nonexistent/r3ring"
#define ARGS(...) ((const char *const[]){"export", __VA_ARGS__, NULL})
#define WHOLE(...)                                                                                 \
	ARGS("/nonexistent/archive", "--format", "safetensors", "-o", "/tmp/x", __VA_ARGS__)

static void expect(const char *const *args, int code, const char *in_err)
{
	struct command tool = {0};

	cr_expect_eq(command_run(&tool, NOWHERE, args), code, "%d: %s", tool.code, tool.err);
	cr_expect(strstr(tool.err, in_err), "\"%s\" is not in: %s", in_err, tool.err);
	command_free(&tool);
}

Test(export_usage, what_is_not_said_is_asked_for)
{
	expect(ARGS("--format", "npy", "-o", "x"), 2, "which archive?");
	expect(ARGS("a", "b"), 2, "one archive at a time");
	expect(ARGS("a", "-o", "x"), 2, "which format?");
	expect(ARGS("a", "--format", "npy"), 2, "where to? -o FILE");
}

Test(export_usage, values_that_make_no_sense_are_named_with_what_would)
{
	expect(WHOLE("--dtype", "float"), 2, "--dtype: 'float' is not u8, i8, u16");
	expect(WHOLE("--missing", "nan"), 2, "--missing: 'nan' is not -1, zeros, arange or error");
	expect(WHOLE("--pad", "error"), 2, "--pad: -1, zeros or arange");
	expect(WHOLE("--rows", "some"), 2, "--rows: 'some' is not minus-one or full");
	expect(WHOLE("--policy", "best"), 2, "--policy: 'best' is not first or latest");
	expect(WHOLE("--include", "all"), 2, "--include: 'all' is not unfinished, aborted");
	expect(WHOLE("--layers", "3"), 2, "--layers: '3' is not a range A:B");
	expect(WHOLE("--layers", "-1:3"), 2, "is not a range A:B");
	expect(WHOLE("--positions", "4:x"), 2, "--positions: '4:x' is not a range A:B");
	expect(WHOLE("--model-layers", "0"), 2, "--model-layers: '0' is not a number from 1 to");
	expect(WHOLE("--max-memory", "much"), 2, "--max-memory: 'much' is not a number");
	expect(WHOLE("--since", "yesterday"), 2, "--since: 'yesterday' is not a time");
	expect(WHOLE("--until", "2026-13-01T00:00:00"), 2, "is not a time");
	expect(WHOLE("--since", "@12", "--until", "@3"), 2, "--until is not later than --since");
	expect(WHOLE("--request"), 2, "requires an argument");
	expect(ARGS("a", "--format", "csv", "-o", "x"), 2, "--format csv: there is no such format");
}

Test(export_usage, a_time_that_the_calendar_does_not_have_is_refused)
{
	static const char *const none[] = {"2026-02-30T00:00:00Z", "2026-02-29T00:00:00",
					   "2026-11-31T00:00:00Z", "2026-11-30T08:49:60Z",
					   "2026-11-30T24:00:00Z"};

	for (size_t i = 0; i < sizeof(none) / sizeof(*none); i++)
		expect(WHOLE("--since", none[i]), 2, "is not a time");
	expect(WHOLE("--since", "2028-02-29T23:59:59Z"), 1, "/nonexistent/archive");
}

Test(export_usage, a_time_that_is_too_far_off_is_out_of_range)
{
	expect(WHOLE("--since", "@9999999999"), 2, "'@9999999999' is out of range: times are from");
	expect(WHOLE("--since", "@99999999999999999999"), 2, "is out of range");
	expect(WHOLE("--until", "2300-01-01T00:00:00Z"), 2, "is out of range");
	expect(WHOLE("--since", "1969-12-31T23:59:58Z"), 2, "is out of range");
	expect(WHOLE("--since", "@9223372035.9"), 1, "/nonexistent/archive");
}

/* It is no word for no limit. */
Test(export_usage, nothing_ends_before_1970)
{
	expect(WHOLE("--until", "@0"), 2, "--until: '@0' is when 1970 begins");
	expect(WHOLE("--until", "@0.0"), 2, "no time is before it");
	expect(WHOLE("--until", "1970-01-01T00:00:00Z"), 2, "no time is before it");
	expect(WHOLE("--since", "@0"), 1, "/nonexistent/archive");
}

Test(export_usage, values_that_do_are_taken)
{
	expect(WHOLE("--missing", "-1", "--since", "2026-11-30T05:00:00Z", "--until",
		     "2026-11-30T05:00:00.5"),
	       2, "is not a time");
	expect(WHOLE("--missing", "-1", "--since", "2026-11-30T05:00:00Z", "--until",
		     "@1900000000.5", "--layers", "0:3", "--positions", "1:2", "--dtype", "i64",
		     "--rows", "full", "--pad", "arange", "--all-layers", "--mtp", "--ends", "2",
		     "--max-memory", "64", "--instance", "demo", "--request", "a", "--request", "b",
		     "--include", "aborted", "--policy", "latest"),
	       1, "/nonexistent/archive");
}

/* ---- ids of strangers ----------------------------------------------------- */

/* Escapes, and an override of direction. */
Test(export_usage, ids_that_several_requests_have_cannot_steer_the_terminal)
{
	struct archive_builder builder;
	struct story story = {0};
	struct command tool = {0};
	char out[96];

	builder_open(&builder, 0);
	builder_segment(&builder);
	story_begin(&story, &builder, 0, "test/0");
	for (uint64_t handle = 1; handle < 3; handle++) {
		story_request(&story, handle, "x\x1b[2Jy\xE2\x80\xAEz", 2);
		story_step(&story, handle, 0, 2);
		story_end(&story, handle, 3);
	}
	story_closed(&story);
	builder_segment_end(&builder, true);
	snprintf(out, sizeof(out), "%s.out", builder.dir);
	cr_assert_eq(command_run(&tool, NOWHERE,
				 ARGS(builder.dir, "--format", "safetensors", "-o", out)),
		     0, "%s", tool.err);
	cr_expect_null(strchr(tool.err, 0x1b));
	cr_expect_not_null(strstr(tool.err, "    x\\x1b[2Jy\\xe2\\x80\\xaez#2, which ended at"),
			   "%s", tool.err);
	unlink(out);
	command_free(&tool);
	builder_close(&builder);
}
