/* SPDX-License-Identifier: Apache-2.0 */
/* A step that is open when its daemon ends, and told again by the generation that goes on. */
#include <errno.h>

#include "tests/unit/load_fixture.h"

#define ROWS 4u

static void open_load(void)
{
	load_open(&(const struct r3ring_load_options){.size = sizeof(struct r3ring_load_options),
						      .late_steps = 1});
	load_feed.engine_lives = true;
}

TestSuite(load_again, .init = open_load, .fini = load_close);

static void next_generation(uint16_t continues)
{
	load_feed.generation++;
	load_feed.seq = 0;
	load_feed.units = 0;
	load_feed.continues = continues;
	feed_schema(&load_feed);
}

/* All layers came but the last. */
static void cut_step(uint64_t step)
{
	feed_step(&load_feed, step, ROWS, NULL, 0, NULL, 0);
	feed_layers(&load_feed, step, ROWS, 0, FEED_LAYERS - 1);
	feed_step_end(&load_feed, step, FEED_LAYERS - 1, R3RING_CAUSE_DAEMON_RESTART);
}

/* Its LOST stands for its end. */
static void kill_daemon_in_step(uint64_t step)
{
	feed_step(&load_feed, step, ROWS, NULL, 0, NULL, 0);
	feed_layers(&load_feed, step, ROWS, 0, FEED_LAYERS - 1);
	load_feed.lost_rows = ROWS;
	load_feed.lost_cells = ROWS * FEED_LAYERS;
	feed_lost(&load_feed, step, step, R3RING_CAUSE_DAEMON_RESTART, 0);
}

static void expect_step(struct expected *expected, uint64_t step)
{
	expect_rows(expected, step, 0, ROWS);
}

/* As cut_step() left it. */
static void expect_cut_step(struct expected *expected, uint64_t step)
{
	struct expected last = {0};
	const uint32_t layer = FEED_LAYERS - 1;

	expect_step(expected, step);
	expect_step(&last, step);
	expected->rows[layer] -= last.rows[layer];
	for (uint32_t e = 0; e < LOAD_EXPERTS; e++)
		expected->counts[layer][e] -= last.counts[layer][e];
}

static void expect_all(const struct expected *expected, uint64_t steps, uint64_t lost)
{
	const struct r3ring_load_info *info = read_load(0);
	uint64_t cells = 0;

	for (uint32_t layer = 0; layer < FEED_LAYERS; layer++)
		cells += (uint64_t)expected->rows[layer];
	expect_info(info, expected);
	cr_expect_eq(info->steps, steps, "%lu steps, not %lu", info->steps, steps);
	cr_expect_eq(info->accounts.counted, cells);
	cr_expect_eq(info->accounts.lost[R3RING_CAUSE_DAEMON_RESTART], lost);
}

/* Steps 1 and 2, of which 2 was told twice, and 3. */
static void expect_three(void)
{
	struct expected expected = {0};
	struct r3ring_load_stats stats;

	for (uint64_t step = 1; step <= 3; step++)
		expect_step(&expected, step);
	expect_all(&expected, 3, 0);
	r3ring_load_get_stats(load_feed.load, &stats);
	cr_expect_eq(stats.steps, 3);
}

static void go_on(uint16_t continues)
{
	next_generation(continues);
	feed_whole(&load_feed, 2, ROWS, NULL, 0);
	feed_whole(&load_feed, 3, ROWS, NULL, 0);
}

Test(load_again, is_counted_once_and_nothing_of_it_is_lost)
{
	feed_whole(&load_feed, 1, ROWS, NULL, 0);
	cut_step(2);
	feed_closed(&load_feed);
	go_on(1);
	expect_three();
}

Test(load_again, so_it_is_where_nobody_tells_the_load_of_the_end)
{
	feed_whole(&load_feed, 1, ROWS, NULL, 0);
	cut_step(2);
	go_on(1);
	expect_three();
}

Test(load_again, so_it_is_where_a_killed_daemon_left_it)
{
	feed_whole(&load_feed, 1, ROWS, NULL, 0);
	kill_daemon_in_step(2);
	load_feed.engine_lives = false;
	load_feed.crashed = true;
	feed_closed(&load_feed);
	go_on(1);
	expect_three();
}

Test(load_again, so_it_is_where_its_first_end_was_not_read)
{
	feed_whole(&load_feed, 1, ROWS, NULL, 0);
	feed_step(&load_feed, 2, ROWS, NULL, 0, NULL, 0);
	feed_layers(&load_feed, 2, ROWS, 0, 1);
	go_on(1);
	expect_three();
}

/* In between was one that its engine never heard of. */
Test(load_again, so_it_is_where_a_later_generation_goes_on)
{
	feed_whole(&load_feed, 1, ROWS, NULL, 0);
	cut_step(2);
	next_generation(1);
	go_on(2);
	expect_three();
}

Test(load_again, a_warm_up_is_left_out_once)
{
	feed_whole(&load_feed, 1, ROWS, NULL, 0);
	load_feed.flags = R3RING_STEP_WARMUP;
	cut_step(2);
	next_generation(1);
	feed_whole(&load_feed, 2, ROWS, NULL, 0);
	cr_expect_eq(read_load(0)->accounts.left_out[R3RING_LOAD_WARMUP], ROWS * FEED_LAYERS);
}

/* A draft's rows were let go of with the generation that never heard how many were accepted. */
Test(load_again, what_the_later_one_says_of_its_drafts_counts)
{
	struct r3ring_span draft = load_draft(1, 0, 0, ROWS, R3RING_UNKNOWN_U32);
	struct expected expected = {0};

	feed_whole(&load_feed, 1, ROWS, NULL, 0);
	feed_step(&load_feed, 2, ROWS, &draft, 1, NULL, 0);
	feed_layers(&load_feed, 2, ROWS, 0, FEED_LAYERS - 1);
	feed_step_end(&load_feed, 2, FEED_LAYERS - 1, R3RING_CAUSE_DAEMON_RESTART);
	feed_closed(&load_feed);
	next_generation(1);
	feed_whole(&load_feed, 2, ROWS, &draft, 1);
	draft.accepted = 2;
	feed_spans(&load_feed, 2, &draft, 1);
	expect_step(&expected, 1);
	expect_rows(&expected, 2, 0, 2);
	expect_all(&expected, 2, 0);
	cr_expect_eq(read_load(0)->accounts.left_out[R3RING_LOAD_REJECTED], 2 * FEED_LAYERS);
}

/* ---- nobody tells it again --------------------------------------------------------- */

/* Step 1, and as much of step 2 as came. */
static void expect_as_it_came(void)
{
	struct expected expected = {0};

	expect_step(&expected, 1);
	expect_cut_step(&expected, 2);
	expect_all(&expected, 2, ROWS);
}

static void run_and_cut(void)
{
	feed_whole(&load_feed, 1, ROWS, NULL, 0);
	cut_step(2);
}

Test(load_again, is_shown_only_once_it_is_known_who_tells_it)
{
	struct expected expected = {0};

	run_and_cut();
	feed_closed(&load_feed);
	expect_step(&expected, 1);
	expect_all(&expected, 1, 0);
}

Test(load_again, as_it_came_where_the_engine_had_gone)
{
	load_feed.engine_lives = false;
	run_and_cut();
	feed_closed(&load_feed);
	expect_as_it_came();
}

Test(load_again, as_it_came_where_the_next_generation_is_of_an_engine_that_began_anew)
{
	run_and_cut();
	feed_closed(&load_feed);
	next_generation(0);
	expect_as_it_came();
}

Test(load_again, as_it_came_where_the_next_one_goes_on_from_a_later_one)
{
	run_and_cut();
	load_feed.generation++;
	next_generation(1);
	expect_as_it_came();
}

Test(load_again, as_it_came_where_the_channel_is_told_to_have_ended)
{
	run_and_cut();
	cr_assert_eq(r3ring_load_end(load_feed.load, 0), 0);
	expect_as_it_came();
}

Test(load_again, as_it_came_where_nothing_more_comes)
{
	run_and_cut();
	feed_closed(&load_feed);
	r3ring_load_flush(load_feed.load);
	expect_as_it_came();
}

Test(load_again, a_warm_up_is_left_out_as_it_came_where_nothing_more_comes)
{
	feed_whole(&load_feed, 1, ROWS, NULL, 0);
	load_feed.flags = R3RING_STEP_WARMUP;
	cut_step(2);
	r3ring_load_flush(load_feed.load);
	cr_expect_eq(read_load(0)->accounts.left_out[R3RING_LOAD_WARMUP], ROWS * (FEED_LAYERS - 1));
}

/* Its board has them, which is not the present one any more. */
Test(load_again, as_it_came_where_the_next_one_has_other_layers)
{
	struct r3ring_load_stats stats;

	run_and_cut();
	load_feed.first_layer = 7;
	next_generation(1);
	r3ring_load_get_stats(load_feed.load, &stats);
	cr_expect_eq(stats.steps, 2);
}

Test(load_again, as_it_came_where_the_next_one_dropped_it)
{
	run_and_cut();
	next_generation(1);
	load_feed.flags = R3RING_STEP_DROPPED;
	feed_step(&load_feed, 2, ROWS, NULL, 0, NULL, 0);
	expect_as_it_came();
}

static void expect_another_step_behind_it(void)
{
	struct expected expected = {0};

	expect_step(&expected, 1);
	expect_cut_step(&expected, 2);
	expect_step(&expected, 3);
	expect_all(&expected, 3, ROWS);
}

Test(load_again, as_it_came_where_the_next_one_had_told_it_before_it_was_read)
{
	run_and_cut();
	next_generation(1);
	feed_whole(&load_feed, 3, ROWS, NULL, 0);
	expect_another_step_behind_it();
}

Test(load_again, as_it_came_where_the_same_generation_goes_on)
{
	run_and_cut();
	feed_whole(&load_feed, 3, ROWS, NULL, 0);
	expect_another_step_behind_it();
}

/* Of the step's second telling the beginning was not read. */
Test(load_again, gets_nothing_of_the_next_generation_but_what_it_begins)
{
	run_and_cut();
	next_generation(1);
	load_feed.seq++;
	feed_layers(&load_feed, 2, ROWS, 0, FEED_LAYERS);
	feed_step_end(&load_feed, 2, -1, 0);
	feed_whole(&load_feed, 3, ROWS, NULL, 0);
	expect_another_step_behind_it();
	cr_expect_eq(read_load(0)->accounts.lost[R3RING_MISSING_GAP], ROWS * FEED_LAYERS);
}

/* What a former generation said of epochs is not of this one's. */
Test(load_again, is_of_no_epoch_of_the_generation_behind_it)
{
	feed_whole(&load_feed, 1, ROWS, NULL, 0);
	load_feed.epoch = 3;
	cut_step(2);
	next_generation(0);
	cr_expect_eq(r3ring_load_read(load_feed.load, 0, R3RING_LOAD_STEPS, 3, snapshot), -ENODATA);
	expect_as_it_came();
}
