/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recorded routing through `r3ring produce`, r3ringd and a reader: three
 * processes; every id must arrive at its request and position exactly once.
 */
#include <criterion/criterion.h>

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "tests/support/attribution.h"
#include "tests/support/attribution_lines.h"
#include "tests/support/command.h"
#include "tests/support/daemon.h"
#include "tests/support/recording.h"

static struct test_daemon daemon_a;
static struct command produce, dump;
static struct recording recording;
static struct attribution found;
static char instance[32], channel[40];

static void start(void)
{
	if (!recording_is_there())
		cr_skip_test(RECORDING_ABSENT);
	recording_read(&recording);
	attribution_init(&found, &recording);
	snprintf(instance, sizeof(instance), "trace-%d", getpid());
	snprintf(channel, sizeof(channel), "%s/0", instance);
	test_daemon_start(&daemon_a, NULL);
}

static void expect_said(const char *of_the_channel)
{
	char text[80];

	snprintf(text, sizeof(text), "channel %s: %s", channel, of_the_channel);
	cr_assert(test_daemon_said(&daemon_a, text), "%s", daemon_a.log);
}

static void finish(void)
{
	command_free(&dump);
	command_free(&produce);
	attribution_free(&found);
	recording_free(&recording);
	if (daemon_a.dir[0])
		test_daemon_close(&daemon_a);
}

static void start_producer(void)
{
	command_start(&produce, daemon_a.dir,
		      (const char *[]){"produce", "--instance", instance, "--trace",
				       RECORDING_HEADER, "--batch", "64", "--rate", "250", "--json",
				       NULL});
	expect_said("generation");
}

static void await_producer(void)
{
	cr_assert_eq(command_wait(&produce), 0, "%s", produce.err);
	expect_said("drained");
}

static struct r3ring_reader *open_reader(void)
{
	const struct r3ring_reader_options options = {
		.size = sizeof(options),
		.runtime_dir = daemon_a.dir,
		.channel = channel,
	};
	struct r3ring_reader *reader = NULL;
	struct r3ring_error err = {0};

	cr_assert_eq(r3ring_reader_open(&reader, &options, &err), 0, "%s", err.text);
	return reader;
}

static uint64_t all_rows_and_layers(void)
{
	return (uint64_t)recording.rows * recording.layers;
}

/* Every row of the file at every layer once, and nothing besides. */
static void expect_whole_recording(void)
{
	cr_assert_eq(recording.rows, 15943);
	cr_assert_eq(recording.layers, 24);
	cr_expect_eq(attribution_not_once(&found), 0);
	cr_expect_eq(found.right, all_rows_and_layers());
	cr_expect_eq(found.units, all_rows_and_layers());
	cr_expect_eq(found.wrong, 0);
	cr_expect_eq(found.unowned, 0);
	cr_expect_eq(found.padding_not_empty, 0);
	cr_expect_eq(found.ids_missing, 0);
}

static void expect_requests(void)
{
	cr_expect_eq(found.externals, recording.request_count);
	cr_expect_eq(found.ends, recording.request_count);
	cr_expect_eq(found.wrong_spans, 0);
	cr_expect_eq(found.wrong_ends, 0);
}

static void expect_counts(void)
{
	size_t bytes = (size_t)recording.layers * recording.experts * sizeof(*found.counts);

	cr_expect_eq(memcmp(found.counts, recording.counts, bytes), 0);
}

Test(trace_run, every_id_of_the_recording_reaches_its_request_and_position_exactly_once,
     .fini = finish)
{
	struct r3ring_reader_stats stats;
	struct r3ring_reader *reader;

	start();
	start_producer();
	reader = open_reader();
	cr_assert(attribution_take_until(&found, reader, attribution_has_ends,
					 recording.request_count));
	expect_whole_recording();
	expect_requests();
	expect_counts();
	cr_expect_eq(found.steps_partial, 0);
	r3ring_reader_get_stats(reader, &stats);
	cr_expect_eq(stats.now.got, found.records);
	cr_expect_eq(stats.now.lost, 0);
	cr_expect_eq(stats.now.cursor - stats.now.start, found.records);
	await_producer();
	r3ring_reader_close(reader);
}

/* ---- through the command line ------------------------------------------ */

static uint32_t member(const json_t *object, const char *name)
{
	const json_t *value = json_object_get(object, name);

	cr_assert(json_is_integer(value), "%s is no number", name);
	return (uint32_t)json_integer_value(value);
}

Test(trace_run, dump_as_json_tells_every_id_of_the_recording_exactly_once, .fini = finish)
{
	start();
	start_producer();
	await_producer();
	cr_assert_eq(
		command_run(&dump, daemon_a.dir,
			    (const char *[]){"dump", channel, "--json", "--from", "oldest", NULL}),
		0, "%s", dump.err);
	attribution_take_lines(&found, dump.out);
	cr_expect_eq(found.wrong_lines, 0);
	expect_whole_recording();
	expect_requests();
	expect_counts();
}

static void __attribute__((format(printf, 1, 2))) expect_printed(const char *format, ...)
{
	char expected[200];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(expected, sizeof(expected), format, arguments);
	va_end(arguments);
	cr_expect(strstr(dump.out, expected), "\"%s\" is not in:\n%s", expected, dump.out);
}

Test(trace_run, dump_count_and_the_producers_summary_tell_the_recordings_totals, .fini = finish)
{
	json_t *summary;
	uint32_t steps;

	start();
	start_producer();
	await_producer();
	summary = json_loads(produce.out, 0, NULL);
	cr_assert(summary, "%s", produce.out);
	steps = member(summary, "steps");
	cr_expect_eq(member(summary, "rows"), recording.rows);
	json_decref(summary);
	cr_assert_eq(command_run(&dump, daemon_a.dir,
				 (const char *[]){"dump", channel, "--count", NULL}),
		     0, "%s", dump.err);
	expect_printed("  begun %u, ended %u\n", recording.request_count, recording.request_count);
	expect_printed("%-12s %12u  rows %u, dropped 0\n", "step", steps, recording.rows);
	expect_printed("%-12s %12u  rows %lu, ids %lu, missing 0, out of range 0\n", "layer",
		       steps * recording.layers, (unsigned long)all_rows_and_layers(),
		       (unsigned long)all_rows_and_layers() * recording.top_k);
	expect_printed("%-12s %12u  complete %u, partial 0\n", "step_end", steps, steps);
	expect_printed("losses\n  none\n");
}
