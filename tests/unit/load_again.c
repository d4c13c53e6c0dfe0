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

/* ---- what else stays with the engine ------------------------------------------------ */

static const uint16_t plain_map[LOAD_EXPERTS] = {0, 1, 2, 3, 4, 5, 6, 7};

static void run_with_map(uint64_t epoch)
{
	feed_map(&load_feed, epoch, 1, LOAD_EXPERTS, 2, plain_map);
	load_feed.epoch = epoch;
	feed_whole(&load_feed, 1, ROWS, NULL, 0);
	feed_closed(&load_feed);
}

/* 0: none is in force. */
static void expect_in_force(uint64_t epoch)
{
	struct r3ring_eplb_map *map = NULL;

	cr_expect_eq(read_load(0)->epoch, epoch, "epoch %llu",
		     (unsigned long long)read_load(0)->epoch);
	r3ring_load_map_in_force(load_feed.load, 0, read_load(0)->epoch, &map);
	cr_expect_eq(map ? map->epoch : 0, epoch);
	r3ring_eplb_map_free(map);
}

Test(load_again, the_map_of_an_engine_that_goes_on_is_in_force_before_it_ran_a_step)
{
	run_with_map(3);
	next_generation(1);
	expect_in_force(3);
}

Test(load_again, so_it_is_where_a_generation_in_between_told_nothing)
{
	run_with_map(3);
	load_feed.generation++;
	next_generation(2);
	expect_in_force(3);
}

Test(load_again, that_of_one_that_begins_anew_is_not)
{
	run_with_map(3);
	next_generation(0);
	expect_in_force(0);
}

Test(load_again, nor_where_the_one_that_goes_on_is_not_the_one_that_was_read)
{
	run_with_map(3);
	load_feed.generation++;
	next_generation(1);
	expect_in_force(0);
}

/* Request "a" is preempted in step 1, and run again from its beginning in the next generation's step
 * 2: so many of its rows are load. */
static void expect_load_behind(uint16_t continues, uint32_t rows)
{
	struct r3ring_span span = load_span(1, 0, 0, ROWS);
	struct expected expected = {0};

	feed_begin(&load_feed, 1, "a", ROWS, 0);
	feed_whole(&load_feed, 1, ROWS, &span, 1);
	feed_end(&load_feed, 1, R3RING_END_PREEMPTED, 0, ROWS + 1);
	feed_closed(&load_feed);
	next_generation(continues);
	span = load_span(2, 0, 0, ROWS + 1);
	feed_begin(&load_feed, 2, "a", ROWS + 1, 1);
	feed_whole(&load_feed, 2, ROWS + 1, &span, 1);
	expect_step(&expected, 1);
	expect_rows(&expected, 2, ROWS + 1 - rows, ROWS + 1);
	expect_load(&expected, 0);
}

Test(load_again, what_a_preempted_request_ran_before_a_daemons_restart_is_recomputed_behind_it)
{
	expect_load_behind(1, 1);
}

Test(load_again, what_one_of_the_same_id_ran_on_the_engine_before_is_not)
{
	expect_load_behind(0, ROWS + 1);
}

Test(load_again, a_request_that_runs_through_a_restart_is_told_again_and_has_run_what_it_ran)
{
	struct r3ring_span span = load_span(1, 0, 0, ROWS);
	struct expected expected = {0};

	feed_begin(&load_feed, 1, "a", ROWS, 0);
	feed_whole(&load_feed, 1, ROWS, &span, 1);
	feed_closed(&load_feed);
	next_generation(1);
	feed_repeated_begin(&load_feed, 1, "a", ROWS);
	feed_end(&load_feed, 1, R3RING_END_PREEMPTED, 0, ROWS + 1);
	feed_begin(&load_feed, 2, "a", ROWS + 1, 1);
	span = load_span(2, 0, 0, ROWS + 1);
	feed_whole(&load_feed, 2, ROWS + 1, &span, 1);
	expect_step(&expected, 1);
	expect_rows(&expected, 2, ROWS, ROWS + 1);
	expect_load(&expected, 0);
}

/* Step 2 runs tokens of a request that step 1 began, and is cut. */
static void run_and_cut_request(void)
{
	struct r3ring_span span = load_span(1, 0, 0, ROWS);

	feed_begin(&load_feed, 1, "a", 2 * ROWS, 0);
	feed_whole(&load_feed, 1, ROWS, &span, 1);
	span = load_span(1, ROWS, 0, ROWS);
	feed_step(&load_feed, 2, ROWS, &span, 1, NULL, 0);
	feed_layers(&load_feed, 2, ROWS, 0, 1);
	feed_step_end(&load_feed, 2, 1, R3RING_CAUSE_DAEMON_RESTART);
	feed_closed(&load_feed);
	next_generation(1);
	feed_repeated_begin(&load_feed, 1, "a", 2 * ROWS);
}

Test(load_again, what_it_ran_is_no_recomputation_in_its_second_telling)
{
	const struct r3ring_span span = load_span(1, ROWS, 0, ROWS);

	run_and_cut_request();
	feed_whole(&load_feed, 2, ROWS, &span, 1);
	feed_whole(&load_feed, 3, ROWS, NULL, 0);
	expect_three();
	cr_expect_eq(read_load(0)->accounts.left_out[R3RING_LOAD_RECOMPUTED], 0);
}

Test(load_again, nor_where_its_spans_come_late)
{
	const struct r3ring_span span = load_span(1, ROWS, 0, ROWS);

	run_and_cut_request();
	load_feed.flags = R3RING_STEP_SPANS_FOLLOW;
	feed_whole(&load_feed, 2, ROWS, NULL, 0);
	feed_spans_as(&load_feed, R3RING_SPANS_REPLACE, 2, &span, 1, NULL, 0);
	load_feed.flags = 0;
	feed_whole(&load_feed, 3, ROWS, NULL, 0);
	expect_three();
	cr_expect_eq(read_load(0)->accounts.left_out[R3RING_LOAD_RECOMPUTED], 0);
}
