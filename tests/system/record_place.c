/* SPDX-License-Identifier: Apache-2.0 */
/* r3ring record: where the archive is: limits, a full disk, other names, other recorders. */
#include <criterion/criterion.h>

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <jansson.h>

#include "tests/support/channel_status.h"
#include "tests/support/settle.h"
#include "tests/support/stand_still.h"
#include "tests/system/record_stage.h"

#define ARGS(...) ((const char *const[]){__VA_ARGS__, NULL})
#define IDLE "--until-idle", "0.4"

static struct record_stage stage;

static void setup(void)
{
	record_stage_start(&stage, ARGS("--ring-size", "4M"));
}

static void teardown(void)
{
	record_stage_stop(&stage);
}

TestSuite(record_place, .init = setup, .fini = teardown, .timeout = 120);

Test(record_place, at_its_own_limit_it_ends_with_success_and_a_larger_one_goes_on)
{
	uint64_t steps = 0;

	ranks_open(&stage.ranks, 0);
	record_stage_record(&stage, ARGS("--max-size", "64K", "--sync", "0.05"));
	while (!command_ended(&stage.tool)) {
		ranks_run(&stage.ranks, 0, 2);
		steps += 2;
		poll(NULL, 0, 5);
	}
	cr_assert_eq(command_wait(&stage.tool), 0, "%s", stage.tool.err);
	cr_expect_not_null(strstr(stage.tool.err, "as large as it may be"));
	cr_expect_not_null(strstr(stage.tool.out, "ended early"), "%s", stage.tool.out);
	cr_expect_null(strstr(stage.tool.out, "lost: nothing\n"), "%s", stage.tool.out);
	record_stage_check(&stage);
	cr_expect_leq(stage.walk.segments[0].bytes, 64 << 10);
	cr_expect_lt(record_stage_steps(&stage, 0), steps);
	record_stage_run_told(&stage, 0, 0, (long)steps);
	cr_assert_eq(record_stage_run(&stage, ARGS(IDLE, "--max-size", "64M")), 0);
	record_stage_expect_steps(&stage, steps, 0, 0);
}

Test(record_place, with_rotate_it_goes_on_and_tells_what_it_removes)
{
	uint64_t bytes = 0;

	ranks_open(&stage.ranks, 0);
	record_stage_record(&stage, ARGS("--max-size", "512K", "--rotate"));
	while (!command_has_told(&stage.tool, "removed") && !command_ended(&stage.tool)) {
		ranks_run(&stage.ranks, 0, 20);
		poll(NULL, 0, 5);
	}
	cr_assert_eq(command_interrupt(&stage.tool), 0);
	cr_expect_not_null(strstr(stage.tool.err, "segments are removed (--rotate)"), "%s",
			   stage.tool.err);
	record_stage_check(&stage);
	cr_expect_gt(stage.walk.segments[0].head.number, 1);
	for (size_t i = 0; i < stage.walk.segment_count; i++)
		bytes += stage.walk.segments[i].bytes;
	cr_expect_leq(bytes, 512 << 10);
}

static unsigned int count_of(const char *text, const char *part)
{
	unsigned int count = 0;

	for (; (text = strstr(text, part)); text += strlen(part))
		count++;
	return count;
}

static json_int_t number_of(const json_t *object, const char *name)
{
	return json_integer_value(json_object_get(object, name));
}

static bool segment_is_there(unsigned int number)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%08u.r3seg", stage.archive, number);
	return access(path, F_OK) == 0;
}

Test(record_place, with_rotate_what_it_removes_is_told_in_few_lines_and_in_all)
{
	json_t *summary;
	char told[64];

	ranks_open(&stage.ranks, 0);
	record_stage_record(&stage, ARGS("--max-size", "128K", "--rotate", "--json"));
	while (!segment_is_there(8) && !command_ended(&stage.tool)) {
		ranks_run(&stage.ranks, 0, 20);
		poll(NULL, 0, 5);
	}
	cr_assert_eq(command_interrupt(&stage.tool), 0, "%s", stage.tool.err);
	summary = json_loads(stage.tool.out, 0, NULL);
	cr_assert_gt(number_of(summary, "removed_segments"), 4);
	cr_expect_leq(count_of(stage.tool.err, "(--rotate)"), 2, "%s", stage.tool.err);
	snprintf(told, sizeof(told), "(--rotate), %lld by now",
		 (long long)number_of(summary, "removed_segments"));
	cr_expect_not_null(strstr(stage.tool.err, told), "%s: %s", told, stage.tool.err);
	json_decref(summary);
}

/* A file system of half a MiB, in which it has a place of its own. */
Test(record_place, on_a_full_disk_it_says_what_the_archive_has_and_what_is_free)
{
	struct container disk = {.shm_size = "512k"};
	unsigned long has = 0, free = 0;
	json_t *summary;
	char why[128];

	if (container_make(&disk, why, sizeof(why)))
		cr_skip_test("%s", why);
	ranks_open(&stage.ranks, 0);
	record_stage_record_in(&stage, &disk, "/dev/shm/archive",
			       ARGS("--level", "0", "--json", "--sync", "0.02"));
	while (!command_ended(&stage.tool)) {
		ranks_run(&stage.ranks, 0, 20);
		poll(NULL, 0, 5);
	}
	cr_assert_eq(command_wait(&stage.tool), 1);
	cr_assert_not_null(strstr(stage.tool.err, "the archive is whole and has "), "%s",
			   stage.tool.err);
	cr_assert_eq(sscanf(strstr(stage.tool.err, "whole and has "),
			    "whole and has %lu KiB, %lu KiB are free", &has, &free),
		     2);
	summary = json_loads(stage.tool.out, 0, NULL);
	cr_assert_not_null(summary, "%s", stage.tool.out);
	cr_expect_eq(json_integer_value(json_object_get(summary, "archive_bytes")) >> 10,
		     (json_int_t)has);
	json_decref(summary);
	cr_expect_gt(has, 256);
	cr_expect_leq(free, 512 - has);
}

Test(record_place, a_directory_that_is_renamed_is_gone_on_with_under_its_new_name)
{
	char before[sizeof(stage.archive)], index[128];
	const char *const verify[] = {"verify", stage.archive, NULL};
	struct command tool = {0};

	ranks_open(&stage.ranks, 0);
	record_stage_record(&stage, ARGS("--segment-size", "64K", "--level", "0"));
	ranks_run(&stage.ranks, 0, 20);
	cr_assert(record_stage_reads(&stage, 0, 20));
	memcpy(before, stage.archive, sizeof(before));
	snprintf(stage.archive, sizeof(stage.archive), "%s/renamed", stage.base);
	cr_assert_eq(rename(before, stage.archive), 0);
	ranks_run(&stage.ranks, 0, 20);
	cr_assert(record_stage_reads(&stage, 0, 40));
	cr_assert_eq(command_interrupt(&stage.tool), 0, "%s", stage.tool.err);
	cr_expect_eq(strncmp(stage.tool.out, stage.archive, strlen(stage.archive)), 0, "%s",
		     stage.tool.out);
	cr_expect_lt(access(before, F_OK), 0);
	snprintf(index, sizeof(index), "%s/index.sqlite", stage.archive);
	cr_expect_eq(access(index, F_OK), 0);
	record_stage_expect_steps(&stage, 40, 0, 0);
	cr_expect_eq(command_run(&tool, "", verify), 0, "%s", tool.err);
	command_free(&tool);
}

Test(record_place, a_directory_that_cannot_be_made_is_a_failure_and_no_lack_of_a_channel)
{
	ranks_open(&stage.ranks, 0);
	record_stage_record_in(&stage, NULL, "/nonexistent/archive", ARGS(IDLE));
	cr_expect_eq(command_wait(&stage.tool), 1, "%s", stage.tool.err);
	cr_expect_not_null(strstr(stage.tool.err, "/nonexistent/archive cannot be made"));
}

Test(record_place, a_directory_that_is_recorded_into_is_refused_a_second_time)
{
	struct command second = {0};
	const char *const args[] = {"record", "--instance",  stage.ranks.name,
				    "-o",     stage.archive, NULL};

	ranks_open(&stage.ranks, 0);
	record_stage_record(&stage, NULL);
	cr_assert(record_stage_has_bytes(&stage, 128));
	cr_expect_eq(command_run(&second, stage.ranks.daemon.dir, args), 1);
	cr_expect_not_null(strstr(second.err, "another recorder"), "%s", second.err);
	command_free(&second);
	cr_expect_eq(command_interrupt(&stage.tool), 0);
}
