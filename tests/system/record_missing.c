/* SPDX-License-Identifier: Apache-2.0 */
/* Archives that lack segments: each tool says so. */
#include <criterion/criterion.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/channel_status.h"
#include "tests/system/record_stage.h"

#define ARGS(...) ((const char *const[]){__VA_ARGS__, NULL})
#define IDLE "--until-idle", "0.4"

static struct record_stage stage;
static struct command tool;

static void setup(void)
{
	record_stage_start(&stage, ARGS("--ring-size", "4M"));
	ranks_open(&stage.ranks, 0);
}

static void teardown(void)
{
	command_free(&tool);
	record_stage_stop(&stage);
}

TestSuite(record_missing, .init = setup, .fini = teardown, .timeout = 120);

/* A run of the recorder, of some steps; a segment or several, by its options. */
static void record_some(uint32_t steps, long told, const char *const *args)
{
	record_stage_run_told(&stage, 0, steps, told);
	cr_assert_eq(record_stage_run(&stage, args), 0, "%s", stage.tool.err);
	record_stage_check(&stage);
}

static void remove_file(const char *name)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", stage.archive, name);
	cr_assert_eq(unlink(path), 0, "%s", path);
}

static void remove_segment(uint64_t number)
{
	char name[32];

	snprintf(name, sizeof(name), "%08lu.r3seg", number);
	remove_file(name);
}

/* It fails, and says @what. */
static void expect_told(const char *const *args, const char *what)
{
	command_free(&tool);
	cr_expect_eq(command_run(&tool, stage.ranks.daemon.dir, args), 1, "%s: %s", args[0],
		     tool.err);
	cr_expect_not_null(strstr(tool.err, what), "%s: %s", args[0], tool.err);
}

static void expect_all_tell(const char *what)
{
	char copy[160], out[160];

	snprintf(copy, sizeof(copy), "%.40s-again", stage.ranks.name);
	snprintf(out, sizeof(out), "%s/out.safetensors", stage.base);
	expect_told(ARGS("verify", stage.archive), what);
	expect_told(ARGS("replay", stage.archive, "--instance", copy, "--rate", "max"), what);
	expect_told(ARGS("export", stage.archive, "--format", "safetensors", "-o", out, "--missing",
			 "-1"),
		    what);
	unlink(out);
}

Test(record_missing, the_last_of_several_is_told_by_the_one_before_without_an_index)
{
	record_some(2000, 2000, ARGS(IDLE, "--segment-size", "64K", "--level", "0"));
	cr_assert_gt(stage.walk.segment_count, 2);
	remove_segment(stage.walk.segment_count);
	remove_file("index.sqlite");
	expect_all_tell("the segment that follows was removed");
}

Test(record_missing, the_last_run_of_a_recorder_is_told_by_the_index)
{
	record_some(20, 20, ARGS(IDLE));
	record_some(20, 40, ARGS(IDLE));
	cr_assert_eq(stage.walk.segment_count, 2);
	remove_segment(2);
	expect_all_tell("00000002.r3seg, byte 0: is not there, but the index knows it");
	/* Nobody takes its number while it can be restored. */
	expect_told(ARGS("record", "--instance", stage.ranks.name, "-o", stage.archive, IDLE),
		    "is not there, but the index knows it");
	command_free(&tool);
	cr_expect_eq(command_run(&tool, stage.ranks.daemon.dir,
				 ARGS("verify", stage.archive, "--reindex")),
		     0, "%s", tool.err);
	/* What it had is read again, as far as the ring holds it. */
	record_some(20, 60, ARGS(IDLE));
	cr_expect_eq(record_stage_steps(&stage, 0), 60);
	cr_expect_eq(archive_walk_kind(&stage.walk, ARCHIVE_GAP), 0);
}

Test(record_missing, the_first_one_is_told_where_none_was_ever_rotated_out)
{
	record_some(2000, 2000, ARGS(IDLE, "--segment-size", "64K", "--level", "0"));
	remove_segment(1);
	remove_file("index.sqlite");
	expect_all_tell("00000001.r3seg, byte 0: is not there");
	/* And the recorder says so, but what comes now is not lost for it. */
	ranks_run(&stage.ranks, 0, 20);
	cr_expect_eq(record_stage_run(&stage, ARGS(IDLE)), 0, "%s", stage.tool.err);
	cr_expect_not_null(strstr(stage.tool.err, "segment 1 is not there"), "%s", stage.tool.err);
}

Test(record_missing, one_in_the_middle_is_told_and_gone_on_behind)
{
	record_some(2000, 2000, ARGS(IDLE, "--segment-size", "64K", "--level", "0"));
	cr_assert_gt(stage.walk.segment_count, 2);
	remove_segment(2);
	expect_all_tell("00000002.r3seg, byte 0: is not there");
	ranks_run(&stage.ranks, 0, 20);
	cr_expect_eq(record_stage_run(&stage, ARGS(IDLE)), 0, "%s", stage.tool.err);
	cr_expect_not_null(strstr(stage.tool.err, "segment 2 is not there"), "%s", stage.tool.err);
}
