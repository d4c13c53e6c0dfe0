/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A daemon dies, and its ring is removed before the next one comes: of who had read it to its end
 * no record is missing. What the engine ran since its next generation tells, or nobody.
 */
#include <criterion/criterion.h>

#include <stdio.h>
#include <string.h>

#include "tests/system/record_stage.h"

#define ARGS(...) ((const char *const[]){__VA_ARGS__, NULL})
#define UNFOLLOWED "behind 1 ends of generations only the engine knows what it ran"
#define STEPS 20

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

TestSuite(record_removed, .init = setup, .fini = teardown, .timeout = 120);

static void run(const char *const *args)
{
	command_free(&tool);
	cr_assert_eq(command_run(&tool, stage.ranks.daemon.dir, args), 0, "%s", tool.err);
}

static void remove_ring(void)
{
	test_daemon_kill(&stage.ranks.daemon);
	run(ARGS("gc", "--runtime-dir", stage.ranks.daemon.dir, "--force"));
	cr_assert(strstr(tool.out, ": removed"), "%s", tool.out);
}

/* Of another engine, or of this one that has come back. */
static void expect_next_generation(void)
{
	ranks_run(&stage.ranks, 0, STEPS);
	cr_assert(record_stage_reads(&stage, 0, STEPS));
	cr_assert_eq(command_interrupt(&stage.tool), 0, "%s", stage.tool.err);
	record_stage_check(&stage);
	cr_expect_eq(archive_walk_kind(&stage.walk, ARCHIVE_GAP), 0, "%s", stage.tool.err);
	cr_expect_null(strstr(stage.tool.out, "gaps"), "%s", stage.tool.out);
	run(ARGS("verify", stage.archive, "--json"));
}

Test(record_removed, it_ends_in_nothing_unknown_where_its_engine_goes_on)
{
	record_stage_record(&stage, NULL);
	ranks_run(&stage.ranks, 0, STEPS);
	cr_assert(record_stage_reads(&stage, 0, STEPS));
	remove_ring();
	test_daemon_restart(&stage.ranks.daemon, NULL);
	expect_next_generation();
	cr_expect(strstr(stage.tool.out, "lost: nothing"), "%s", stage.tool.out);
	cr_expect(strstr(tool.out, "\"lost_ends_unfollowed\": 0"), "%s", tool.out);
}

static void another_engine(void)
{
	engine_close(&stage.ranks.engines[0]);
	test_daemon_restart(&stage.ranks.daemon, NULL);
	ranks_open(&stage.ranks, 0);
	expect_next_generation();
	cr_expect(strstr(stage.tool.out, UNFOLLOWED), "%s", stage.tool.out);
	cr_expect(strstr(tool.out, "\"lost_ends_unfollowed\": 1"), "%s", tool.out);
}

Test(record_removed, it_ends_in_what_nobody_knows_where_its_engine_is_gone_too)
{
	record_stage_record(&stage, NULL);
	ranks_run(&stage.ranks, 0, STEPS);
	cr_assert(record_stage_reads(&stage, 0, STEPS));
	remove_ring();
	another_engine();
}

/* The one before had nearly all of it. That it is in the ring is known by what it reads there. */
Test(record_removed, likewise_for_a_recorder_that_came_back)
{
	record_stage_run_told(&stage, 0, STEPS, STEPS);
	cr_assert_eq(record_stage_run(&stage, ARGS("--until-idle", "0.4")), 0, "%s",
		     stage.tool.err);
	record_stage_record(&stage, NULL);
	ranks_run(&stage.ranks, 0, 1);
	cr_assert(record_stage_reads(&stage, 0, STEPS + 1));
	remove_ring();
	another_engine();
}
