/* SPDX-License-Identifier: Apache-2.0 */
/* r3ring dump that follows a channel. */
#include <criterion/criterion.h>

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "tests/support/channel_status.h"
#include "tests/support/dump_tally.h"
#include "tests/support/stand_still.h"

#define STEP_END "\"type\":\"step_end\""

static struct tool_stage stage;

Test(tools_dump, following_waits_for_the_channel_and_loses_nothing_of_it)
{
	struct dump_tally tally;

	tool_stage_start(&stage, ARGS("--log-level", "debug"));
	command_start(&stage.tool, stage.daemon.dir,
		      ARGS("dump", tool_stage_channel(&stage, "later"), "--from", "latest",
			   "--follow", "--json"));
	cr_assert(test_daemon_said(&stage.daemon, "there is no channel later"));
	tool_stage_open(&stage, "later");
	tool_stage_run(&stage, "later", 10);
	cr_expect(command_prints(&stage.tool, STEP_END, 10));
	cr_expect_eq(command_interrupt(&stage.tool), 0, "%s", stage.tool.err);
	tally = dump_tally(stage.tool.out);
	cr_expect_eq(tally.first_seq, 1);
	cr_expect_eq(tally.steps, 10);
	cr_expect_eq(tally.layers, 10 * ENGINE_LAYERS);
	cr_expect_eq(tally.wrong_ids, 0);
	tool_stage_close(&stage);
}

/* A channel found too late to be read from its beginning. */
Test(tools_dump, following_tells_what_of_a_new_channel_it_found_overwritten)
{
	struct dump_tally tally;

	tool_stage_start(&stage, ARGS("--log-level", "debug", "--ring-size", "256K"));
	command_start(&stage.tool, stage.daemon.dir,
		      ARGS("dump", tool_stage_channel(&stage, "lapped"), "--follow", "--until-idle",
			   "1", "--json"));
	cr_assert(test_daemon_said(&stage.daemon, "there is no channel lapped"));
	stand_still(stage.tool.pid);
	tool_stage_open(&stage, "lapped");
	tool_stage_run(&stage, "lapped", 1000);
	kill(stage.tool.pid, SIGCONT);
	cr_expect_eq(command_wait(&stage.tool), 0, "%s", stage.tool.err);
	tally = dump_tally(stage.tool.out);
	cr_expect_eq(tally.first_lost, 1);
	cr_expect_geq(tally.gaps, 1);
	cr_expect_eq(tally.wrong_gaps, 0);
	cr_expect_eq(tally.lost_records + tally.objects - tally.gaps, tally.last_seq);
	tool_stage_close(&stage);
}

Test(tools_dump, failure_50_following_goes_on_with_the_next_generation)
{
	struct dump_tally tally;

	tool_stage_start(&stage, NULL);
	tool_stage_open(&stage, "again");
	command_start(&stage.tool, stage.daemon.dir,
		      ARGS("dump", tool_stage_channel(&stage, "again"), "--follow", "--json"));
	tool_stage_run(&stage, "again", 4);
	cr_assert(command_prints(&stage.tool, "\n", 1));
	tool_stage_close(&stage);
	tool_stage_open(&stage, "again");
	tool_stage_run(&stage, "again", 3);
	cr_expect(command_prints(&stage.tool, STEP_END, 7));
	cr_expect_eq(command_interrupt(&stage.tool), 0, "%s", stage.tool.err);
	tally = dump_tally(stage.tool.out);
	cr_expect_eq(tally.steps, 7, "%s", stage.tool.out);
	cr_expect_eq(tally.attributed, 7);
	cr_expect_eq(tally.last_generation, 2);
	cr_expect_eq(tally.wrong_ids, 0);
	tool_stage_close(&stage);
}

/* Its reader, the only one, has got something. */
static bool has_begun(const json_t *channel, long unused)
{
	const json_t *reader = json_array_get(json_object_get(channel, "readers"), 0);

	(void)unused;
	return json_integer_value(json_object_get(reader, "got")) > 0;
}

static void expect_reading(const char *base)
{
	cr_assert(status_becomes(stage.daemon.dir, tool_stage_channel(&stage, base), has_begun, 0),
		  "%s", stage.daemon.log);
}

/* The daemon ends in good order, and the engine comes to the next. */
static void next_daemon(void)
{
	cr_assert_eq(test_daemon_stop(&stage.daemon), 0);
	test_daemon_restart(&stage.daemon, NULL);
	cr_assert(test_daemon_said(&stage.daemon, "(came back)"), "%s", stage.daemon.log);
}

Test(tools_dump, a_generation_that_came_and_went_between_two_looks_is_told)
{
	tool_stage_start(&stage, NULL);
	tool_stage_open(&stage, "short");
	tool_stage_run(&stage, "short", 4);
	command_start(&stage.tool, stage.daemon.dir,
		      ARGS("dump", tool_stage_channel(&stage, "short"), "--follow", "--count"));
	expect_reading("short");
	stand_still(stage.tool.pid);
	next_daemon();
	tool_stage_run(&stage, "short", 3);
	next_daemon();
	tool_stage_run(&stage, "short", 2);
	kill(stage.tool.pid, SIGCONT);
	expect_reading("short");
	cr_expect_eq(command_interrupt(&stage.tool), 0, "%s", stage.tool.err);
	cr_expect(strstr(stage.tool.out, "records of 2 generations"), "%s", stage.tool.out);
	cr_expect(strstr(stage.tool.out, "  missed             generations 1, gone before"), "%s",
		  stage.tool.out);
	/* What the third goes on from is the second, of which nothing is known here. */
	cr_expect(strstr(stage.tool.out, "  daemon_gone        unknown: what the engine ran behind "
					 "1 ends"),
		  "%s", stage.tool.out);
	tool_stage_close(&stage);
}

Test(tools_dump, an_interrupt_ends_it_in_good_order)
{
	struct dump_tally tally;

	tool_stage_start(&stage, NULL);
	tool_stage_open(&stage, "int");
	tool_stage_run(&stage, "int", 2);
	command_start(&stage.tool, stage.daemon.dir,
		      ARGS("dump", tool_stage_channel(&stage, "int"), "--follow", "--json"));
	cr_assert(command_prints(&stage.tool, "\n", 1));
	cr_expect_eq(command_interrupt(&stage.tool), 0, "%s", stage.tool.err);
	tally = dump_tally(stage.tool.out);
	cr_expect_eq(tally.layers, 2 * ENGINE_LAYERS);
	tool_stage_close(&stage);
}

Test(tools_dump, a_reader_of_its_output_that_has_had_enough_is_no_failure)
{
	tool_stage_start(&stage, NULL);
	tool_stage_open(&stage, "pipe");
	tool_stage_run(&stage, "pipe", 300);
	setenv("TOOL", test_program("r3ring"), 1);
	setenv("CHANNEL", tool_stage_channel(&stage, "pipe"), 1);
	setenv("R3RING_RUNTIME_DIR", stage.daemon.dir, 1);
	cr_expect_eq(system("cd \"$R3RING_RUNTIME_DIR\" &&"
			    "{ \"$TOOL\" dump \"$CHANNEL\" --json 2> err; echo $? > code; } | head "
			    "-n 1 > out;"
			    "test $(wc -l < out) = 1 && test $(cat code) = 0 && ! test -s err"),
		     0);
	tool_stage_close(&stage);
}
