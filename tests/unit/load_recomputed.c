/* SPDX-License-Identifier: Apache-2.0 */
/* What a request is fed again is no load of its own. */
#include "tests/unit/load_fixture.h"

static void open_load(void)
{
	load_open(NULL);
}

TestSuite(load_recomputed, .init = open_load, .fini = load_close);

Test(load_recomputed, rows_that_a_preempted_request_is_fed_again_are_left_out)
{
	struct r3ring_span span = load_span(1, 0, 0, 6);
	struct expected expected = {0};

	feed_begin(&load_feed, 1, "a", 6, 0);
	feed_whole(&load_feed, 1, 6, &span, 1);
	span = load_span(1, 6, 0, 2);
	feed_whole(&load_feed, 2, 2, &span, 1);
	/* Of its 8 tokens 7 were kept: the eighth is another one in the next attempt. */
	feed_end(&load_feed, 1, R3RING_END_PREEMPTED, 0, 7);
	feed_begin(&load_feed, 2, "a", 6, 1);
	span = load_span(2, 0, 0, 9);
	feed_whole(&load_feed, 3, 9, &span, 1);
	expect_rows(&expected, 1, 0, 6);
	expect_rows(&expected, 2, 0, 2);
	expect_rows(&expected, 3, 7, 9);
	expect_load(&expected, 0);
	cr_assert_eq(read_load(0)->accounts.left_out[R3RING_LOAD_RECOMPUTED], 7 * FEED_LAYERS);
}

/* Of a step of so many rows that was dropped nothing came but its spans. */
static void feed_dropped(uint64_t step, uint32_t rows, const struct r3ring_span *span)
{
	load_feed.flags |= R3RING_STEP_DROPPED;
	feed_step(&load_feed, step, rows, span, 1, NULL, 0);
	load_feed.flags = 0;
	feed_lost(&load_feed, step, step, R3RING_CAUSE_BUFFER_FULL, 0);
}

/* After a prompt of four and dropped steps of request "a": it is fed all of eight tokens again, of
 * which so many had been run. */
static void expect_run_again(uint32_t run)
{
	const struct r3ring_span again = load_span(2, 0, 0, 8);
	struct expected expected = {0};

	feed_end(&load_feed, 1, R3RING_END_PREEMPTED, 0, 9);
	feed_begin(&load_feed, 2, "a", 8, 1);
	feed_whole(&load_feed, 9, 8, &again, 1);
	expect_rows(&expected, 1, 0, 4);
	expect_rows(&expected, 9, run, 8);
	expect_load(&expected, 0);
	cr_expect_eq(read_load(0)->accounts.left_out[R3RING_LOAD_RECOMPUTED], run * FEED_LAYERS);
}

static void feed_prompt(void)
{
	const struct r3ring_span prompt = load_span(1, 0, 0, 4);

	feed_begin(&load_feed, 1, "a", 4, 0);
	feed_whole(&load_feed, 1, 4, &prompt, 1);
}

Test(load_recomputed, rows_of_a_step_that_was_dropped_are_recomputed_when_they_are_run_again)
{
	const struct r3ring_span one = load_span(1, 4, 0, 1), two = load_span(1, 5, 0, 2);

	feed_prompt();
	feed_dropped(2, 1, &one);
	feed_dropped(3, 2, &two);
	expect_run_again(7);
}

Test(load_recomputed, of_a_draft_in_such_a_step_those_that_were_accepted_are)
{
	const struct r3ring_span draft = load_draft(1, 4, 0, 3, 2);

	feed_prompt();
	feed_dropped(2, 3, &draft);
	expect_run_again(6);
}

Test(load_recomputed, of_a_dropped_draft_that_is_open_none_is_known_to_have_been_run)
{
	const struct r3ring_span draft = load_draft(1, 4, 0, 3, R3RING_UNKNOWN_U32);

	feed_prompt();
	feed_dropped(2, 3, &draft);
	expect_run_again(4);
}

Test(load_recomputed, what_was_accepted_of_a_dropped_draft_may_be_told_later)
{
	struct r3ring_span draft = load_draft(1, 4, 0, 3, R3RING_UNKNOWN_U32);

	feed_prompt();
	feed_dropped(2, 3, &draft);
	draft.accepted = 3;
	feed_spans(&load_feed, 2, &draft, 1);
	expect_run_again(7);
}

Test(load_recomputed, a_dropped_warm_up_runs_nobodys_tokens)
{
	const struct r3ring_span four = load_span(1, 4, 0, 4);

	feed_prompt();
	load_feed.flags = R3RING_STEP_WARMUP;
	feed_dropped(2, 4, &four);
	expect_run_again(4);
}

Test(load_recomputed, another_request_of_the_same_text_id_is_not_recomputed)
{
	struct r3ring_span span = load_span(1, 0, 0, 6);
	struct expected expected = {0};
	struct r3ring_load_stats stats;

	feed_begin(&load_feed, 1, "a", 6, 0);
	feed_whole(&load_feed, 1, 6, &span, 1);
	feed_end(&load_feed, 1, R3RING_END_FINISHED, 0, 7);
	r3ring_load_get_stats(load_feed.load, &stats);
	cr_assert_eq(stats.requests_watched, 0);
	feed_begin(&load_feed, 2, "a", 6, 0);
	span.request = 2;
	feed_whole(&load_feed, 2, 6, &span, 1);
	expect_rows(&expected, 1, 0, 6);
	expect_rows(&expected, 2, 0, 6);
	expect_load(&expected, 0);
}

/* Of a request of six tokens that is run as far, again behind a keyframe. */
static void expect_not_forgotten(uint32_t rows)
{
	const struct r3ring_span span = load_span(1, 0, 0, rows);
	struct expected expected = {0};

	feed_begin(&load_feed, 1, "a", 6, 0);
	feed_whole(&load_feed, 1, rows, &span, 1);
	feed_keyframe(&load_feed, 1);
	feed_repeated_begin(&load_feed, 1, "a", 6);
	feed_whole(&load_feed, 2, rows, &span, 1);
	expect_rows(&expected, 1, 0, rows);
	expect_load(&expected, 0);
}

Test(load_recomputed, a_keyframe_does_not_forget_how_far_a_request_was_run)
{
	expect_not_forgotten(6);
}

Test(load_recomputed, nor_how_far_it_was_run_beyond_its_prompt)
{
	expect_not_forgotten(8);
}

Test(load_recomputed, a_request_that_begins_anew_though_no_end_was_seen_is_not_recomputed)
{
	struct r3ring_span span = load_span(1, 0, 0, 6);
	struct expected expected = {0};

	feed_begin(&load_feed, 1, "a", 6, 0);
	feed_whole(&load_feed, 1, 6, &span, 1);
	feed_begin(&load_feed, 2, "a", 6, 0);
	span.request = 2;
	feed_whole(&load_feed, 2, 6, &span, 1);
	expect_rows(&expected, 1, 0, 6);
	expect_rows(&expected, 2, 0, 6);
	expect_load(&expected, 0);
}

Test(load_recomputed, a_handle_that_is_given_to_another_request_is_watched_once)
{
	struct r3ring_load_stats stats;

	feed_begin(&load_feed, 1, "a", 6, 0);
	feed_begin(&load_feed, 1, "b", 6, 0);
	r3ring_load_get_stats(load_feed.load, &stats);
	cr_expect_eq(stats.requests_watched, 1);
}

Test(load_recomputed, spans_of_one_step_may_be_in_any_order)
{
	const struct r3ring_span spans[] = {load_span(1, 4, 0, 4), load_span(1, 0, 4, 4)};
	struct expected expected = {0};

	feed_begin(&load_feed, 1, "a", 8, 0);
	feed_whole(&load_feed, 1, 8, spans, 2);
	expect_rows(&expected, 1, 0, 8);
	expect_load(&expected, 0);
}

/* A span of positions that are taken, and not run. */
static struct r3ring_span taken(uint64_t request, enum r3ring_span_kind kind, uint32_t position,
				uint32_t rows)
{
	struct r3ring_span span = load_span(request, position, 0, rows);

	span.kind = (uint8_t)kind;
	return span;
}

/* Its first attempt is given eight positions of ten, its second one runs them all. */
static void expect_taken_is_load(enum r3ring_span_kind kind)
{
	const struct r3ring_span spans[] = {taken(1, kind, 0, 8), load_span(1, 8, 0, 2)};
	const struct r3ring_span again = load_span(2, 0, 0, 10);
	struct expected expected = {0};

	feed_begin(&load_feed, 1, "a", 10, 0);
	feed_whole(&load_feed, 1, 2, spans, 2);
	feed_end(&load_feed, 1, R3RING_END_PREEMPTED, 0, 11);
	feed_begin(&load_feed, 2, "a", 10, 1);
	feed_whole(&load_feed, 2, 10, &again, 1);
	expect_rows(&expected, 1, 0, 2);
	expect_rows(&expected, 2, 0, 8);
	expect_load(&expected, 0);
	cr_expect_eq(read_load(0)->accounts.left_out[R3RING_LOAD_RECOMPUTED], 2 * FEED_LAYERS);
}

Test(load_recomputed, what_came_from_elsewhere_in_an_earlier_attempt_is_load_when_it_is_run)
{
	expect_taken_is_load(R3RING_SPAN_EXTERNAL);
}

Test(load_recomputed, what_came_from_a_cache_in_an_earlier_attempt_is_load_when_it_is_run)
{
	expect_taken_is_load(R3RING_SPAN_CACHED);
}

Test(load_recomputed, so_it_is_where_the_spans_come_late)
{
	const struct r3ring_span first = load_span(1, 8, 0, 2), again = load_span(2, 0, 0, 10);
	struct expected expected = {0};

	feed_begin(&load_feed, 1, "a", 10, 0);
	feed_whole(&load_feed, 1, 2, &first, 1);
	feed_end(&load_feed, 1, R3RING_END_PREEMPTED, 0, 11);
	feed_begin(&load_feed, 2, "a", 10, 1);
	load_feed.flags = R3RING_STEP_SPANS_FOLLOW;
	feed_whole(&load_feed, 2, 10, NULL, 0);
	feed_spans_as(&load_feed, R3RING_SPANS_REPLACE, 2, &again, 1, NULL, 0);
	expect_rows(&expected, 1, 0, 2);
	expect_rows(&expected, 2, 0, 8);
	expect_load(&expected, 0);
}

Test(load_recomputed, what_an_attempt_took_between_what_two_ran_is_load_of_a_third)
{
	const struct r3ring_span first[] = {taken(1, R3RING_SPAN_EXTERNAL, 0, 2),
					    load_span(1, 2, 0, 3)};
	const struct r3ring_span second[] = {taken(2, R3RING_SPAN_EXTERNAL, 0, 7),
					     load_span(2, 7, 0, 3)};
	const struct r3ring_span third = load_span(3, 0, 0, 10);
	struct expected expected = {0};

	feed_begin(&load_feed, 1, "a", 10, 0);
	feed_whole(&load_feed, 1, 3, first, 2);
	feed_end(&load_feed, 1, R3RING_END_PREEMPTED, 0, 10);
	feed_begin(&load_feed, 2, "a", 10, 1);
	feed_whole(&load_feed, 2, 3, second, 2);
	feed_end(&load_feed, 2, R3RING_END_PREEMPTED, 1, 10);
	feed_begin(&load_feed, 3, "a", 10, 2);
	feed_whole(&load_feed, 3, 10, &third, 1);
	expect_rows(&expected, 1, 0, 3);
	expect_rows(&expected, 2, 0, 3);
	expect_rows(&expected, 3, 0, 2);
	expect_rows(&expected, 3, 5, 7);
	expect_load(&expected, 0);
}

/* Request 1 runs two positions, and every other one behind them, so many times; its next attempt all
 * that there were. Returns how many rows of those were left out. */
static uint64_t run_in_stretches(uint32_t stretches)
{
	const struct r3ring_span again = load_span(2, 0, 0, 2 * stretches + 2);
	struct r3ring_span span;

	feed_begin(&load_feed, 1, "a", 2 * stretches + 2, 0);
	for (uint32_t i = 0; i <= stretches; i++) {
		span = i ? load_span(1, 2 * i + 1, 0, 1) : load_span(1, 0, 0, 2);
		feed_whole(&load_feed, i + 1, span.rows, &span, 1);
	}
	feed_end(&load_feed, 1, R3RING_END_PREEMPTED, 0, 2 * stretches + 3);
	feed_begin(&load_feed, 2, "a", 2 * stretches + 2, 1);
	feed_whole(&load_feed, 100, again.rows, &again, 1);
	return read_load(0)->accounts.left_out[R3RING_LOAD_RECOMPUTED] / FEED_LAYERS;
}

Test(load_recomputed, eight_stretches_of_positions_are_remembered)
{
	cr_expect_eq(run_in_stretches(7), 9);
}

Test(load_recomputed, of_more_the_longest_are)
{
	cr_expect_eq(run_in_stretches(20), 9);
}

Test(load_recomputed, positions_that_are_run_one_after_the_other_are_one_stretch)
{
	const struct r3ring_span again = load_span(2, 0, 0, 20);

	feed_begin(&load_feed, 1, "a", 2, 0);
	for (uint32_t i = 0; i < 20; i++) {
		const struct r3ring_span one = load_span(1, i, 0, 1);

		feed_whole(&load_feed, i + 1, 1, &one, 1);
	}
	feed_end(&load_feed, 1, R3RING_END_PREEMPTED, 0, 21);
	feed_begin(&load_feed, 2, "a", 21, 1);
	feed_whole(&load_feed, 100, 20, &again, 1);
	cr_expect_eq(read_load(0)->accounts.left_out[R3RING_LOAD_RECOMPUTED], 20 * FEED_LAYERS);
}
