/* SPDX-License-Identifier: Apache-2.0 */
/* What stands where in a frame of `r3ring top`. */
#include <criterion/criterion.h>

#include <stdio.h>
#include <string.h>

#include "tests/unit/top_shown.h"

TestSuite(top_frame, .fini = top_shown_free);

/* ---- what is lost ---------------------------------------------------------- */

Test(top_frame, nothing_lost_is_said_in_green)
{
	top_stage_make(&stage, TOP_QUIET);
	top_stage_draw(&stage, 24, 80);
	cr_expect_str_eq(top_stage_row(&stage, 0), "nothing lost | no load yet");
	cr_expect_eq(style_at(0, 0), GRID_GOOD);
	expect_shown("no load to show: no step was seen yet");
}

/* 13 steps of two causes, two that lack layers, five ids; of the last second's 100 steps. */
static void make_lossy(void)
{
	top_stage_make(&stage, "{\"daemon\":{},\"channels\":[{\"channel\":\"a/0\",\"lost\":{"
			       "\"ring_full\":{\"steps\":12,\"rows\":48},"
			       "\"producer_died\":{\"steps\":1,\"rows\":4}},"
			       "\"steps_partial\":2,\"ids_out_of_range\":5}]}");
	stage.losses.newest_ns = stage.picture->taken_ns;
	stage.losses.seconds[0] = (struct losses_second){
		.second = stage.picture->taken_ns / 1000000000u,
		.sum = {.steps = 100, .lost = 1, .partial = 2},
	};
	stage.losses.seconds[0].sum.steps_of[R3RING_CAUSE_RING_FULL] = 1;
}

Test(top_frame, what_was_lost_before_is_not_said_to_be_of_now)
{
	make_lossy();
	stage.losses.newest_ns = 0;
	top_stage_draw(&stage, 24, 80);
	cr_expect_str_eq(top_stage_row(&stage, 0), "lost 15 steps, before this | no load yet");
	cr_expect_eq(style_at(0, 0), GRID_WARN);
	cr_expect_eq(style_at(2, 0), GRID_WARN);
}

Test(top_frame, more_that_may_be_lost_is_said_though_some_losses_are_known)
{
	make_lossy();
	stage.losses.newest_ns = 0;
	stage.losses.crashed = 1;
	top_stage_draw(&stage, 24, 80);
	cr_expect_str_eq(top_stage_row(&stage, 0),
			 "lost 15 steps, MAY HAVE LOST MORE, before this | no load yet");
}

Test(top_frame, a_channel_that_its_engine_did_not_close_has_died)
{
	top_stage_make(&stage, "{\"daemon\":{},\"channels\":["
			       "{\"channel\":\"a/0\",\"state\":\"ended\",\"producer_died\":true},"
			       "{\"channel\":\"b/0\",\"state\":\"ended\"}]}");
	top_stage_draw(&stage, 24, 80);
	expect_shown("died");
	expect_shown("ended");
}

Test(top_frame, ends_that_nobody_follows_are_said_though_nothing_else_is_lost)
{
	top_stage_make(&stage, TOP_QUIET);
	stage.losses.unfollowed = 2;
	top_stage_draw(&stage, 24, 80);
	cr_expect_str_eq(top_stage_row(&stage, 0), "MAY HAVE LOST, before this | no load yet");
	cr_expect_eq(style_at(0, 0), GRID_WARN);
	cr_expect_str_eq(top_stage_row(&stage, 2), "lost: 2 ends that nobody follows");
	stage.frame.page = TOP_LOSSES;
	top_stage_draw(&stage, 24, 80);
	expect_shown("not followed: 2 ends\n");
	expect_not_shown("no losses");
}

Test(top_frame, what_is_being_lost_is_told_by_its_share_and_worst_cause_in_red)
{
	make_lossy();
	top_stage_draw(&stage, 24, 80);
	cr_expect_str_eq(top_stage_row(&stage, 0),
			 "LOSING 3.0 % of steps (layers missing, +1) | no load yet");
	cr_expect_eq(style_at(0, 0), GRID_BAD);
	cr_expect_str_eq(
		top_stage_row(&stage, 2),
		"lost: ring_full 12 steps (48 rows); producer_died 1 step (4 rows); 2 steps");
	cr_expect_str_eq(top_stage_row(&stage, 3), "  incomplete; 5 ids out of range");
	cr_expect_eq(style_at(3, 2), GRID_BAD);
}

Test(top_frame, a_loss_of_a_while_ago_is_told_with_its_age)
{
	make_lossy();
	stage.frame.now_ns += 60000000000ull;
	top_stage_draw(&stage, 24, 80);
	cr_expect_str_eq(top_stage_row(&stage, 0), "lost 15 steps, none for 60 s | no load yet");
	cr_expect_eq(style_at(0, 0), GRID_WARN);
}

Test(top_frame, readers_show_their_kind_place_and_lag)
{
	top_stage_make(&stage,
		       "{\"daemon\":{},\"channels\":[{\"channel\":\"a/0\",\"ring\":{\"tail_seq\":"
		       "100},\"readers\":[{\"pid\":7,\"label\":\"serve:load\",\"mode\":"
		       "\"lossless\",\"lag_records\":3,"
		       "\"lag_bytes\":2048},{\"pid\":8,\"mode\":\"lossy\",\"lost\":4},"
		       "{\"pid\":9,\"mode\":\"lossy\",\"demoted\":true}]}]}");
	stage.frame.own_pid = 8;
	top_stage_draw(&stage, 24, 80);
	expect_shown("reader 7 serve:load lossless, 3 records (2.0 KiB) behind, at 98\n");
	expect_not_shown("reader 8");
	expect_shown("reader 9 DEMOTED lossy, 0 records (0 B) behind, at 101\n");
	cr_expect_str_eq(top_stage_row(&stage, 0), "A LOSSLESS READER LOSES | no load yet");
	cr_expect_str_eq(top_stage_row(&stage, 2),
			 "lost: 1 reader demoted; readers came too late for 4 records");
	stage.frame.page = TOP_TABLE;
	top_stage_draw(&stage, 24, 80);
	expect_shown("reader 8 lost 4 (this one) lossy, 0 records (0 B) behind, at 101\n");
}

Test(top_frame, a_daemon_that_is_gone_is_waited_for_in_words)
{
	top_stage_make(&stage, "{\"daemon\":{},\"channels\":[]}");
	stage.picture->state = PICTURE_NO_DAEMON;
	snprintf(stage.picture->error, sizeof(stage.picture->error), "no daemon: tried /x");
	top_stage_draw(&stage, 24, 80);
	cr_expect_str_eq(top_stage_row(&stage, 0), "waiting: no daemon | no load yet");
	cr_expect_eq(style_at(0, 0), GRID_BAD);
	cr_expect_str_eq(top_stage_row(&stage, 2), "no daemon: tried /x");
	cr_expect_eq(style_at(2, 0), GRID_BAD);
}

Test(top_frame, failure_23_layers_that_nobody_bound_are_told_above_the_table)
{
	top_stage_make(&stage,
		       "{\"daemon\":{},\"channels\":[{\"channel\":\"a/0\",\"state\":\"live\","
		       "\"bound_layers\":[3],\"unbound_layers\":[4,5]}]}");
	top_stage_draw(&stage, 24, 80);
	cr_expect_str_eq(top_stage_row(&stage, 0), "nothing lost (layers unbound) | no load yet");
	cr_expect_str_eq(top_stage_row(&stage, 2), "1 channel with layers that nobody bound");
	expect_shown("   1/3  ");
}

Test(top_frame, a_pipelines_stages_of_which_there_is_no_channel_are_named)
{
	top_stage_make(&stage,
		       "{\"daemon\":{},\"channels\":[{\"channel\":\"a/0\",\"state\":\"live\","
		       "\"rank\":{\"pp\":[1,3]}},{\"channel\":\"b/0\",\"state\":\"live\","
		       "\"rank\":{\"pp\":[0,2]}}]}");
	top_stage_draw(&stage, 24, 140);
	cr_expect_str_eq(top_stage_row(&stage, 2),
			 "NO CHANNEL HERE: pipeline stage 0 of 3, counted from 0, of a; pipeline "
			 "stage 2 of 3, counted from 0, of a");
	cr_expect_eq(style_at(2, 0), GRID_WARN);
}

Test(top_frame, steps_a_second_are_those_between_two_looks_or_else_the_daemons)
{
	top_stage_make(&stage, "{\"daemon\":{},\"channels\":["
			       "{\"channel\":\"a/0\",\"state\":\"live\",\"steps_per_s\":7.5},"
			       "{\"channel\":\"a/1\",\"state\":\"live\",\"steps_per_s\":0.25}]}");
	stage.rates[0] = (struct picture_rates){.known = true, .steps = 12.25};
	stage.rates[1] = (struct picture_rates){.known = true};
	top_stage_draw(&stage, 24, 80);
	cr_expect(strstr(top_stage_row(&stage, 2), " STEPS/S  ROWS/S"), "%s", stage.text);
	expect_shown("a/0                  live      0    12.2");
	expect_shown("a/1                  live      0     0.2");
}

Test(top_frame, lost_steps_of_a_channel_are_whole_numbers)
{
	top_stage_make(&stage, "{\"daemon\":{},\"channels\":[{\"channel\":\"a/0\",\"lost\":{"
			       "\"ring_full\":{\"steps\":38}}},{\"channel\":\"a/1\",\"lost\":{"
			       "\"ring_full\":{\"steps\":123456}}}]}");
	top_stage_draw(&stage, 24, 80);
	expect_shown(" 38\n");
	expect_shown(" 123k\n");
}

Test(top_frame, a_pause_and_the_help_are_shown)
{
	top_stage_make(&stage, TOP_QUIET);
	stage.frame.paused_ns = stage.frame.now_ns - 12000000000ull;
	top_stage_draw(&stage, 24, 80);
	cr_expect(strstr(top_stage_row(&stage, 1), "PAUSED 12 s"));
	stage.frame.page = TOP_HELP;
	top_stage_draw(&stage, 24, 80);
	expect_shown("q          quit; from another page");
	expect_shown("Nothing that is done here is noticed");
}

/* ---- strangers' names ------------------------------------------------------ */

Test(top_frame, names_of_strangers_never_steer_the_terminal)
{
	top_stage_make(&stage,
		       "{\"daemon\":{},\"channels\":[{\"channel\":\"a/\\u001b[2J\",\"model\":"
		       "\"\\u001b]0;x\\u0007\\u009b\\u202e\",\"state\":\"\\n\\r\"}]}");
	top_stage_draw(&stage, 24, 80);
	expect_shown("a/\\x1b[2J");
	for (const char *c = stage.text; *c; c++)
		cr_expect((unsigned char)*c >= 32 || *c == '\n');
	expect_not_shown("\xc2\x9b");
	expect_not_shown("\xe2\x80\xae");
}
