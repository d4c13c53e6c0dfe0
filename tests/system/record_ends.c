/* SPDX-License-Identifier: Apache-2.0 */
/* r3ring record: what others do to its directory, and to itself. */
#include <criterion/criterion.h>

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/system/record_stage.h"

#define ARGS(...) ((const char *const[]){__VA_ARGS__, NULL})

static struct record_stage stage;

static void setup(void)
{
	record_stage_start(&stage, ARGS("--ring-size", "4M"));
	ranks_open(&stage.ranks, 0);
}

static void teardown(void)
{
	record_stage_stop(&stage);
}

TestSuite(record_ends, .init = setup, .fini = teardown, .timeout = 120);

/* Records, and has written something of what the engine ran. */
static void begin_recording(const char *const *args)
{
	record_stage_record(&stage, args);
	ranks_run(&stage.ranks, 0, 20);
	cr_assert(record_stage_has_bytes(&stage, 1000));
}

static const char *inside(const char *name)
{
	static char path[256];

	snprintf(path, sizeof(path), "%s/%s", stage.archive, name);
	return path;
}

/* ---- the directory -------------------------------------------------------- */

Test(record_ends, an_archive_that_is_removed_under_it_is_told_and_a_failure)
{
	begin_recording(NULL);
	record_stage_remove(&stage);
	cr_expect_eq(command_wait(&stage.tool), 1, "%s", stage.tool.err);
	cr_expect_not_null(strstr(stage.tool.err, "was removed while it was written"), "%s",
			   stage.tool.err);
	cr_expect_null(strstr(stage.tool.err, "index"), "%s", stage.tool.err);
	cr_expect_str_eq(stage.tool.out, "");
}

Test(record_ends, so_it_is_where_nothing_is_synced_and_no_record_comes)
{
	begin_recording(ARGS("--sync", "never", "--no-uring"));
	cr_assert_eq(unlink(inside("00000001.r3seg")), 0);
	cr_expect_eq(command_wait(&stage.tool), 1, "%s", stage.tool.err);
	cr_expect_not_null(strstr(stage.tool.err, "was removed while it was written"), "%s",
			   stage.tool.err);
}

Test(record_ends, one_without_its_lock_file_is_refused_a_second_time_all_the_same)
{
	struct command second = {0};
	const char *const args[] = {"record", "--instance",  stage.ranks.name,
				    "-o",     stage.archive, NULL};

	begin_recording(NULL);
	cr_assert_eq(unlink(inside("lock")), 0);
	cr_expect_eq(command_run(&second, stage.ranks.daemon.dir, args), 1);
	cr_expect_not_null(strstr(second.err, "another recorder"), "%s", second.err);
	command_free(&second);
	/* And readers know that what is not whole is being written. */
	cr_expect_eq(command_run(&second, stage.ranks.daemon.dir,
				 ARGS("verify", stage.archive, "--json")),
		     0, "%s", second.out);
	cr_expect_not_null(strstr(second.out, "\"being_written\": true"), "%s", second.out);
	command_free(&second);
	cr_expect_eq(command_interrupt(&stage.tool), 0);
}

/* ---- hanging up ------------------------------------------------------------ */

Test(record_ends, hung_up_it_ends_in_good_order)
{
	begin_recording(NULL);
	kill(stage.tool.pid, SIGHUP);
	cr_assert_eq(command_wait(&stage.tool), 0, "%s", stage.tool.err);
	record_stage_check(&stage);
	cr_expect(stage.walk.blocks[stage.walk.block_count - 1].head.flags & ARCHIVE_BLOCK_LAST);
}

Test(record_ends, started_by_nohup_it_does_not_hear_that)
{
	signal(SIGHUP, SIG_IGN);
	begin_recording(NULL);
	signal(SIGHUP, SIG_DFL);
	kill(stage.tool.pid, SIGHUP);
	ranks_run(&stage.ranks, 0, 20);
	cr_assert(record_stage_reads(&stage, 0, 40));
	cr_assert(!command_ended(&stage.tool));
	cr_assert_eq(command_interrupt(&stage.tool), 0);
	record_stage_check(&stage);
	cr_expect_eq(record_stage_steps(&stage, 0), 40);
}
