/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A daemon ends, its engine runs on alone and is gone before the next one comes: nobody knows
 * what it ran then. Each tool says so of the archive, and calls no request aborted that was
 * live when the daemon ended.
 */
#include <criterion/criterion.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/channel_status.h"
#include "tests/system/record_stage.h"

#define ARGS(...) ((const char *const[]){__VA_ARGS__, NULL})
#define UNFOLLOWED "behind 1 ends of generations only the engine knows what it ran"
#define STEPS 20
#define STEPS_ALONE 30

static struct record_stage stage;
static struct command tool;
static int64_t handle;

static void open_engine(const char *id)
{
	const struct r3ring_request request = {
		.size = sizeof(request), .id = id, .prompt_tokens = 1};
	struct engine *engine = &stage.ranks.engines[0];

	ranks_open(&stage.ranks, 0);
	handle = r3ring_request_begin(engine->producer, &request);
	cr_assert_gt(handle, 0);
	cr_assert_gt(engine_step(engine, handle, 1), 0);
}

static void setup(void)
{
	record_stage_start(&stage, ARGS("--ring-size", "4M"));
	open_engine("out of sight");
}

static void teardown(void)
{
	command_free(&tool);
	record_stage_stop(&stage);
}

TestSuite(record_untold, .init = setup, .fini = teardown, .timeout = 120);

enum end { KILLED, TERMINATED };

static void end_daemon(enum end end)
{
	if (end == KILLED)
		test_daemon_kill(&stage.ranks.daemon);
	else
		cr_assert_eq(test_daemon_stop(&stage.ranks.daemon), 0);
}

/* The engine finishes its request and ends in good order, with no daemon there to hear of it. */
static void run_on_alone(void)
{
	ranks_run(&stage.ranks, 0, STEPS_ALONE);
	cr_assert_eq(r3ring_request_end(stage.ranks.engines[0].producer, handle,
					R3RING_END_FINISHED, 0, 2),
		     0);
	engine_close(&stage.ranks.engines[0]);
}

static void next_engine(void)
{
	open_engine("the next");
	ranks_run(&stage.ranks, 0, STEPS);
}

/* Runs it on the archive: it ends with @code, and says @what. */
static void expect_said(const char *const *args, int code, const char *what)
{
	command_free(&tool);
	cr_expect_eq(command_run(&tool, stage.ranks.daemon.dir, args), code, "%s: %s", args[0],
		     tool.err);
	cr_expect(strstr(tool.out, what) || strstr(tool.err, what), "%s: %s%s", args[0], tool.out,
		  tool.err);
}

static void expect_page_says(const char *path)
{
	char line[4096];
	bool said = false;
	FILE *page;

	command_free(&tool);
	cr_assert_eq(command_run(&tool, stage.ranks.daemon.dir,
				 ARGS("report", stage.archive, "-o", path)),
		     0, "%s", tool.err);
	page = fopen(path, "r");
	cr_assert_not_null(page);
	while (fgets(line, sizeof(line), page))
		said |= strstr(line, UNFOLLOWED) != NULL;
	fclose(page);
	cr_expect(said, "the report does not say it");
	unlink(path);
}

static void expect_all_say(void)
{
	char out[160];

	snprintf(out, sizeof(out), "%s/out.safetensors", stage.base);
	expect_page_says(out);
	expect_said(ARGS("verify", stage.archive), 0, UNFOLLOWED);
	expect_said(ARGS("export", stage.archive, "--format", "safetensors", "-o", out, "--include",
			 "guessed", "--include", "unfinished"),
		    0, UNFOLLOWED);
	cr_expect_null(strstr(tool.err, "aborted"), "%s", tool.err);
	expect_said(ARGS("export", stage.archive, "--format", "safetensors", "-o", out, "--include",
			 "guessed", "--include", "unfinished", "--json"),
		    0, "\"ends_unfollowed\": 1");
	unlink(out);
}

/* A recorder that is there all the time. */
static void recorded_through(enum end end)
{
	record_stage_record(&stage, NULL);
	ranks_run(&stage.ranks, 0, STEPS);
	cr_assert(record_stage_reads(&stage, 0, STEPS + 1));
	end_daemon(end);
	run_on_alone();
	test_daemon_restart(&stage.ranks.daemon, NULL);
	next_engine();
	cr_assert(record_stage_reads(&stage, 0, STEPS + 1));
	cr_assert_eq(command_interrupt(&stage.tool), 0, "%s", stage.tool.err);
	cr_expect(strstr(stage.tool.out, UNFOLLOWED), "%s", stage.tool.out);
	expect_all_say();
}

Test(record_untold, what_an_engine_ran_behind_a_killed_daemon_is_told_as_unknown)
{
	recorded_through(KILLED);
}

Test(record_untold, likewise_behind_one_that_ended_in_good_order)
{
	recorded_through(TERMINATED);
}

/* The next recorder goes on in the same ring: it, too, says what came to its end. */
Test(record_untold, a_recorder_that_was_stopped_before_says_so_when_it_goes_on)
{
	record_stage_run_told(&stage, 0, STEPS, STEPS + 1);
	cr_assert_eq(record_stage_run(&stage, ARGS("--until-idle", "0.4")), 0, "%s",
		     stage.tool.err);
	end_daemon(KILLED);
	run_on_alone();
	test_daemon_restart(&stage.ranks.daemon, NULL);
	record_stage_record(&stage, NULL);
	/* The next engine's ring takes this one's place. */
	cr_assert(status_becomes(stage.ranks.daemon.dir, record_stage_channel(&stage, 0),
				 status_has_readers, 1));
	next_engine();
	cr_assert(record_stage_reads(&stage, 0, STEPS + 1));
	cr_assert_eq(command_interrupt(&stage.tool), 0, "%s", stage.tool.err);
	cr_expect(strstr(stage.tool.out, UNFOLLOWED), "%s", stage.tool.out);
	expect_all_say();
}

/* ---- a recorder that ends before anybody follows -------------------------- */

#define LAST_STEP "what the engine ran after step 21 of generation 1 is not known"

static void record_and_kill(const char *const *args)
{
	record_stage_record(&stage, args);
	ranks_run(&stage.ranks, 0, STEPS);
	cr_assert(record_stage_reads(&stage, 0, STEPS + 1));
	end_daemon(KILLED);
}

static void expect_told(const char *why)
{
	cr_expect(strstr(stage.tool.err, why), "%s", stage.tool.err);
	cr_expect(strstr(stage.tool.err, LAST_STEP), "%s", stage.tool.err);
	cr_expect(strstr(stage.tool.out, UNFOLLOWED), "%s", stage.tool.out);
	record_stage_check(&stage);
	expect_all_say();
}

/* It has ended, in a way that nobody knows. */
static void expect_unknown_end(void)
{
	char out[160];

	snprintf(out, sizeof(out), "%s/out.safetensors", stage.base);
	expect_said(ARGS("export", stage.archive, "--format", "safetensors", "-o", out), 1,
		    "1 of unknown length");
	expect_said(ARGS("export", stage.archive, "--format", "safetensors", "-o", out, "--include",
			 "guessed"),
		    0, UNFOLLOWED);
	unlink(out);
}

Test(record_untold, a_recorder_that_is_stopped_behind_a_killed_daemon_tells_that_more_may_have_run)
{
	record_and_kill(NULL);
	run_on_alone();
	cr_assert_eq(command_interrupt(&stage.tool), 0, "%s", stage.tool.err);
	expect_told("the daemon is gone, and none came after it");
	expect_unknown_end();
}

Test(record_untold, likewise_one_that_ends_by_itself)
{
	record_and_kill(ARGS("--until-idle", "3"));
	run_on_alone();
	cr_assert_eq(command_wait(&stage.tool), 0, "%s", stage.tool.err);
	expect_told("the daemon is gone, and none came after it");
}

/* The next daemon waits for the engine, ten seconds. */
Test(record_untold, likewise_one_that_is_stopped_while_the_engine_is_waited_for)
{
	record_and_kill(NULL);
	run_on_alone();
	test_daemon_restart(&stage.ranks.daemon, NULL);
	cr_assert_eq(command_interrupt(&stage.tool), 0, "%s", stage.tool.err);
	expect_told("the engine has not come back to its daemon yet");
}

/* The engine tells all, in the same ring. */
Test(record_untold, the_next_recorder_takes_that_back_where_the_engine_came_back)
{
	record_and_kill(NULL);
	cr_assert_eq(command_interrupt(&stage.tool), 0, "%s", stage.tool.err);
	cr_expect(strstr(stage.tool.err, LAST_STEP), "%s", stage.tool.err);
	test_daemon_restart(&stage.ranks.daemon, NULL);
	record_stage_record(&stage, NULL);
	ranks_run(&stage.ranks, 0, STEPS_ALONE);
	cr_assert(record_stage_reads(&stage, 0, STEPS + STEPS_ALONE + 1));
	cr_assert_eq(command_interrupt(&stage.tool), 0, "%s", stage.tool.err);
	cr_expect_null(strstr(stage.tool.err, LAST_STEP), "%s", stage.tool.err);
	record_stage_check(&stage);
	expect_said(ARGS("verify", stage.archive, "--json"), 0, "\"lost_ends_unfollowed\": 0");
}

Test(record_untold, of_an_engine_that_had_ended_before_its_daemon_was_killed_all_is_told)
{
	record_stage_record(&stage, NULL);
	ranks_run(&stage.ranks, 0, STEPS);
	engine_close(&stage.ranks.engines[0]);
	cr_assert(status_becomes(stage.ranks.daemon.dir, record_stage_channel(&stage, 0),
				 status_has_ended, 1));
	cr_assert(record_stage_reads(&stage, 0, STEPS + 1));
	end_daemon(KILLED);
	cr_assert_eq(command_interrupt(&stage.tool), 0, "%s", stage.tool.err);
	cr_expect_null(strstr(stage.tool.err, "is not known"), "%s", stage.tool.err);
	expect_said(ARGS("verify", stage.archive, "--json"), 0, "\"lost_ends_unfollowed\": 0");
}
