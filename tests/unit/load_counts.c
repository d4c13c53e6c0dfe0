/* SPDX-License-Identifier: Apache-2.0 */
/* What is load, and what is left out. */
#include <errno.h>

#include "tests/unit/load_fixture.h"

static void open_load(void)
{
	load_open(NULL);
}

TestSuite(load_counts, .init = open_load, .fini = load_close);

Test(load_counts, a_step_counts_as_a_whole_and_only_once_it_has_ended)
{
	struct expected expected = {0};
	const struct r3ring_load_info *info;

	feed_step(&load_feed, 1, 5, NULL, 0, NULL, 0);
	feed_layers(&load_feed, 1, 5, 0, FEED_LAYERS);
	cr_assert_eq(r3ring_load_read(load_feed.load, 0, R3RING_LOAD_STEPS, R3RING_LOAD_ANY_EPOCH,
				      snapshot),
		     -ENODATA);
	feed_step_end(&load_feed, 1, 0, R3RING_CAUSE_NONE);
	expect_rows(&expected, 1, 0, 5);
	expect_load(&expected, 0);
	feed_step(&load_feed, 2, 7, NULL, 0, NULL, 0);
	feed_layers(&load_feed, 2, 7, 0, 2);
	expect_load(&expected, 0);
	feed_layers(&load_feed, 2, 7, 2, 3);
	feed_step_end(&load_feed, 2, 0, R3RING_CAUSE_NONE);
	expect_rows(&expected, 2, 0, 7);
	info = read_load(0);
	expect_info(info, &expected);
	cr_assert_eq(info->steps, 2);
	cr_assert_eq(info->from_step, 1);
	cr_assert_eq(info->to_step, 2);
	cr_assert_eq(info->accounts.counted, 12 * FEED_LAYERS);
}

Test(load_counts, a_step_ends_with_the_next_one_where_its_end_was_not_seen)
{
	struct expected expected = {0};

	feed_step(&load_feed, 1, 5, NULL, 0, NULL, 0);
	feed_layers(&load_feed, 1, 5, 0, FEED_LAYERS);
	feed_step(&load_feed, 2, 5, NULL, 0, NULL, 0);
	expect_rows(&expected, 1, 0, 5);
	expect_load(&expected, 0);
}

Test(load_counts, failure_28_warm_up_and_padding_are_not_load)
{
	struct expected expected = {0};
	const struct r3ring_load_info *info;

	feed_whole(&load_feed, 1, 4, NULL, 0);
	load_feed.flags = R3RING_STEP_WARMUP;
	feed_whole(&load_feed, 2, 6, NULL, 0);
	load_feed.flags = 0;
	load_feed.padding = 3;
	feed_whole(&load_feed, 3, 6, NULL, 0);
	expect_rows(&expected, 1, 0, 4);
	expect_rows(&expected, 3, 0, 6);
	info = read_load(0);
	expect_info(info, &expected);
	cr_assert_eq(info->steps, 2);
	cr_assert_eq(info->accounts.left_out[R3RING_LOAD_WARMUP], 6 * FEED_LAYERS);
	cr_assert_eq(info->accounts.left_out[R3RING_LOAD_PADDING], 3 * FEED_LAYERS);
}

/* ---- drafts -------------------------------------------------------------- */

Test(load_counts, failure_13_a_draft_models_channel_is_no_load_of_its_target)
{
	struct feed draft = feed_load_channel(&load_feed, "test/0.draft");
	struct expected expected = {0};

	feed_schema(&draft);
	feed_whole(&load_feed, 1, 4, NULL, 0);
	feed_whole(&draft, 1, 4, NULL, 0);
	expect_rows(&expected, 1, 0, 4);
	expect_load(&expected, 0);
	expect_load(&expected, R3RING_LOAD_MERGED);
	cr_assert_eq(r3ring_load_read(load_feed.load, 1, R3RING_LOAD_STEPS, R3RING_LOAD_ANY_EPOCH,
				      snapshot),
		     -ENODATA);
}

Test(load_counts, failure_13_rejected_draft_rows_are_left_out)
{
	const struct r3ring_span spans[] = {load_draft(1, 10, 0, 4, 2), load_span(2, 7, 4, 1)};
	struct expected expected = {0};

	feed_begin(&load_feed, 1, "a", 10, 0);
	feed_begin(&load_feed, 2, "b", 7, 0);
	feed_whole(&load_feed, 1, 5, spans, 2);
	expect_rows(&expected, 1, 0, 2);
	expect_rows(&expected, 1, 4, 5);
	expect_load(&expected, 0);
	cr_assert_eq(read_load(0)->accounts.left_out[R3RING_LOAD_REJECTED], 2 * FEED_LAYERS);
}

Test(load_counts, draft_rows_wait_until_it_is_known_how_many_were_accepted)
{
	struct r3ring_span draft = load_draft(1, 10, 0, 4, R3RING_UNKNOWN_U32);
	struct r3ring_span next = load_draft(1, 13, 0, 4, R3RING_UNKNOWN_U32);
	struct expected expected = {0};
	struct r3ring_load_stats stats;

	feed_begin(&load_feed, 1, "a", 10, 0);
	feed_whole(&load_feed, 1, 6, &draft, 1);
	feed_whole(&load_feed, 2, 6, &next, 1);
	r3ring_load_get_stats(load_feed.load, &stats);
	cr_assert_eq(stats.steps, 0);
	cr_assert_eq(stats.held_bytes, 2 * 4 * FEED_LAYERS * FEED_TOP_K * sizeof(uint16_t));
	/* Step 2 is behind step 1, so both come with what is told of step 1 last. */
	next.accepted = 0;
	feed_spans(&load_feed, 2, &next, 1);
	draft.accepted = 3;
	feed_spans(&load_feed, 1, &draft, 1);
	expect_rows(&expected, 1, 0, 3);
	expect_rows(&expected, 1, 4, 6);
	expect_rows(&expected, 2, 4, 6);
	expect_load(&expected, 0);
	cr_assert_eq(read_load(0)->accounts.left_out[R3RING_LOAD_REJECTED], 5 * FEED_LAYERS);
	r3ring_load_get_stats(load_feed.load, &stats);
	cr_assert_eq(stats.held_bytes, 0);
	cr_assert_eq(stats.steps_late, 0);
}

Test(load_counts, draft_rows_of_which_nobody_says_more_are_lost_and_hold_up_few_steps)
{
	const struct r3ring_span draft = load_draft(1, 10, 0, 4, R3RING_UNKNOWN_U32);
	struct expected expected = {0};

	feed_begin(&load_feed, 1, "a", 10, 0);
	feed_whole(&load_feed, 1, 6, &draft, 1);
	expect_rows(&expected, 1, 4, 6);
	for (uint64_t step = 2; step <= 9; step++) {
		feed_whole(&load_feed, step, 2, NULL, 0);
		expect_rows(&expected, step, 0, 2);
	}
	expect_load(&expected, 0);
	cr_assert_eq(read_load(0)->accounts.lost[R3RING_MISSING_SPANS], 4 * FEED_LAYERS);
}

Test(load_counts, a_step_whose_spans_follow_waits_for_them)
{
	const struct r3ring_span spans[] = {load_span(1, 0, 0, 3), load_draft(2, 5, 3, 2, 1)};
	struct expected expected = {0};

	feed_begin(&load_feed, 1, "a", 3, 0);
	feed_begin(&load_feed, 2, "b", 5, 0);
	load_feed.flags = R3RING_STEP_SPANS_FOLLOW;
	feed_whole(&load_feed, 1, 5, NULL, 0);
	cr_assert_eq(r3ring_load_read(load_feed.load, 0, R3RING_LOAD_STEPS, R3RING_LOAD_ANY_EPOCH,
				      snapshot),
		     -ENODATA);
	feed_spans(&load_feed, 1, spans, 2);
	expect_rows(&expected, 1, 0, 4);
	expect_load(&expected, 0);
}

Test(load_counts, a_step_whose_map_is_in_several_records_waits_for_the_last)
{
	const struct r3ring_span spans[] = {load_span(1, 0, 0, 3), load_draft(2, 5, 3, 2, 1)};
	struct expected expected = {0};

	feed_begin(&load_feed, 1, "a", 3, 0);
	feed_begin(&load_feed, 2, "b", 5, 0);
	load_feed.flags = R3RING_STEP_MAP_CONTINUED;
	feed_step(&load_feed, 1, 5, spans, 1, NULL, 0);
	feed_spans_as(&load_feed, R3RING_SPANS_MORE, 1, spans + 1, 1, NULL, 0);
	feed_layers(&load_feed, 1, 5, 0, FEED_LAYERS);
	feed_step_end(&load_feed, 1, 0, R3RING_CAUSE_NONE);
	expect_rows(&expected, 1, 0, 4);
	expect_load(&expected, 0);
}

Test(load_counts, rows_that_no_span_of_a_map_that_came_late_speaks_of_count)
{
	const struct r3ring_span span = load_draft(1, 5, 0, 3, 1);
	struct expected expected = {0};

	feed_begin(&load_feed, 1, "a", 5, 0);
	load_feed.flags = R3RING_STEP_SPANS_FOLLOW;
	feed_whole(&load_feed, 1, 5, NULL, 0);
	feed_spans(&load_feed, 1, &span, 1);
	expect_rows(&expected, 1, 0, 1);
	expect_rows(&expected, 1, 3, 5);
	expect_load(&expected, 0);
}

Test(load_counts, a_draft_that_is_told_late_was_not_run_before_by_the_steps_behind_it)
{
	struct r3ring_span draft = load_draft(1, 5, 0, 3, R3RING_UNKNOWN_U32);
	const struct r3ring_span next = load_span(1, 7, 0, 1);
	struct expected expected = {0};

	feed_begin(&load_feed, 1, "a", 5, 0);
	load_feed.flags = R3RING_STEP_MAP_CONTINUED;
	feed_step(&load_feed, 1, 3, NULL, 0, NULL, 0);
	feed_spans_as(&load_feed, R3RING_SPANS_MORE, 1, &draft, 1, NULL, 0);
	feed_layers(&load_feed, 1, 3, 0, FEED_LAYERS);
	feed_step_end(&load_feed, 1, 0, R3RING_CAUSE_NONE);
	load_feed.flags = 0;
	feed_whole(&load_feed, 2, 1, &next, 1);
	draft.accepted = 2;
	feed_spans(&load_feed, 1, &draft, 1);
	expect_rows(&expected, 1, 0, 2);
	expect_rows(&expected, 2, 0, 1);
	expect_load(&expected, 0);
}

Test(load_counts, a_step_whose_spans_never_come_is_lost_once_few_others_are_behind_it)
{
	struct expected expected = {0};
	struct r3ring_load_stats stats;

	load_feed.flags = R3RING_STEP_SPANS_FOLLOW;
	feed_whole(&load_feed, 1, 5, NULL, 0);
	load_feed.flags = 0;
	for (uint64_t step = 2; step <= 9; step++) {
		feed_whole(&load_feed, step, 2, NULL, 0);
		expect_rows(&expected, step, 0, 2);
	}
	expect_load(&expected, 0);
	cr_expect_eq(read_load(0)->accounts.lost[R3RING_MISSING_SPANS], 5 * FEED_LAYERS);
	r3ring_load_get_stats(load_feed.load, &stats);
	cr_expect_eq(stats.steps_late, 1);
}

Test(load_counts, a_row_right_behind_an_open_draft_of_a_map_that_came_late_waits_for_nobody)
{
	struct r3ring_span draft = load_draft(1, 5, 0, 3, R3RING_UNKNOWN_U32);
	struct expected expected = {0};

	feed_begin(&load_feed, 1, "a", 5, 0);
	load_feed.flags = R3RING_STEP_MAP_CONTINUED;
	feed_step(&load_feed, 1, 5, NULL, 0, NULL, 0);
	feed_spans_as(&load_feed, R3RING_SPANS_MORE, 1, &draft, 1, NULL, 0);
	feed_layers(&load_feed, 1, 5, 0, FEED_LAYERS);
	feed_step_end(&load_feed, 1, 0, R3RING_CAUSE_NONE);
	draft.accepted = 2;
	feed_spans(&load_feed, 1, &draft, 1);
	expect_rows(&expected, 1, 0, 2);
	expect_rows(&expected, 1, 3, 5);
	expect_load(&expected, 0);
}

Test(load_counts, of_a_lost_layer_only_rows_that_would_have_counted_are_lost)
{
	const struct r3ring_span draft = load_draft(1, 10, 1, 3, 1);

	feed_begin(&load_feed, 1, "a", 10, 0);
	feed_step(&load_feed, 1, 5, &draft, 1, NULL, 0);
	feed_layers(&load_feed, 1, 5, 0, FEED_LAYERS);
	feed_step_end(&load_feed, 1, 1, R3RING_CAUSE_OVERLAP);
	cr_expect_eq(read_load(0)->accounts.lost[R3RING_CAUSE_OVERLAP], 3);
	cr_expect_eq(read_load(0)->accounts.counted, 3 * (FEED_LAYERS - 1));
}

Test(load_counts, spans_of_a_step_that_is_not_open_are_passed_over)
{
	const struct r3ring_span span = load_span(1, 0, 0, 3);
	struct expected expected = {0};

	feed_whole(&load_feed, 1, 3, NULL, 0);
	feed_spans(&load_feed, 1, &span, 1);
	expect_rows(&expected, 1, 0, 3);
	expect_load(&expected, 0);
}

/* ---- recomputation --------------------------------------------------------- */

Test(load_counts, rows_that_a_preempted_request_is_fed_again_are_left_out)
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

Test(load_counts, rows_of_a_step_that_was_dropped_are_recomputed_when_they_are_run_again)
{
	const struct r3ring_span one = load_span(1, 4, 0, 1), two = load_span(1, 5, 0, 2);

	feed_prompt();
	feed_dropped(2, 1, &one);
	feed_dropped(3, 2, &two);
	expect_run_again(7);
}

Test(load_counts, of_a_draft_in_such_a_step_those_that_were_accepted_are)
{
	const struct r3ring_span draft = load_draft(1, 4, 0, 3, 2);

	feed_prompt();
	feed_dropped(2, 3, &draft);
	expect_run_again(6);
}

Test(load_counts, of_a_dropped_draft_that_is_open_none_is_known_to_have_been_run)
{
	const struct r3ring_span draft = load_draft(1, 4, 0, 3, R3RING_UNKNOWN_U32);

	feed_prompt();
	feed_dropped(2, 3, &draft);
	expect_run_again(4);
}

Test(load_counts, what_was_accepted_of_a_dropped_draft_may_be_told_later)
{
	struct r3ring_span draft = load_draft(1, 4, 0, 3, R3RING_UNKNOWN_U32);

	feed_prompt();
	feed_dropped(2, 3, &draft);
	draft.accepted = 3;
	feed_spans(&load_feed, 2, &draft, 1);
	expect_run_again(7);
}

Test(load_counts, a_dropped_warm_up_runs_nobodys_tokens)
{
	const struct r3ring_span four = load_span(1, 4, 0, 4);

	feed_prompt();
	load_feed.flags = R3RING_STEP_WARMUP;
	feed_dropped(2, 4, &four);
	expect_run_again(4);
}

Test(load_counts, another_request_of_the_same_text_id_is_not_recomputed)
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

Test(load_counts, a_keyframe_does_not_forget_how_far_a_request_was_run)
{
	struct r3ring_span span = load_span(1, 0, 0, 6);
	struct expected expected = {0};

	feed_begin(&load_feed, 1, "a", 6, 0);
	feed_whole(&load_feed, 1, 6, &span, 1);
	feed_keyframe(&load_feed, 1);
	feed_repeated_begin(&load_feed, 1, "a", 6);
	feed_whole(&load_feed, 2, 6, &span, 1);
	expect_rows(&expected, 1, 0, 6);
	expect_load(&expected, 0);
}

Test(load_counts, nor_how_far_it_was_run_beyond_its_prompt)
{
	struct r3ring_span span = load_span(1, 0, 0, 8);
	struct expected expected = {0};

	feed_begin(&load_feed, 1, "a", 6, 0);
	feed_whole(&load_feed, 1, 8, &span, 1);
	feed_keyframe(&load_feed, 1);
	feed_repeated_begin(&load_feed, 1, "a", 6);
	feed_whole(&load_feed, 2, 8, &span, 1);
	expect_rows(&expected, 1, 0, 8);
	expect_load(&expected, 0);
}

Test(load_counts, a_request_that_begins_anew_though_no_end_was_seen_is_not_recomputed)
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

Test(load_counts, a_handle_that_is_given_to_another_request_is_watched_once)
{
	struct r3ring_load_stats stats;

	feed_begin(&load_feed, 1, "a", 6, 0);
	feed_begin(&load_feed, 1, "b", 6, 0);
	r3ring_load_get_stats(load_feed.load, &stats);
	cr_expect_eq(stats.requests_watched, 1);
}

Test(load_counts, spans_of_one_step_may_be_in_any_order)
{
	const struct r3ring_span spans[] = {load_span(1, 4, 0, 4), load_span(1, 0, 4, 4)};
	struct expected expected = {0};

	feed_begin(&load_feed, 1, "a", 8, 0);
	feed_whole(&load_feed, 1, 8, spans, 2);
	expect_rows(&expected, 1, 0, 8);
	expect_load(&expected, 0);
}

/* ---- ids that are none -------------------------------------------------------- */

static uint16_t stranger(const struct feed *feed, uint64_t step, uint32_t row, uint32_t layer,
			 uint32_t k)
{
	(void)feed;
	(void)step;
	(void)layer;
	if (!k)
		return 3;
	return row ? (uint16_t)R3RING_MISSING : LOAD_EXPERTS;
}

Test(load_counts, failure_5_an_id_that_is_no_expert_is_counted_apart)
{
	const struct r3ring_load_info *info;

	load_feed.id = stranger;
	feed_whole(&load_feed, 1, 4, NULL, 0);
	info = read_load(0);
	for (uint32_t layer = 0; layer < FEED_LAYERS; layer++) {
		for (uint32_t e = 0; e < LOAD_EXPERTS; e++)
			cr_assert_float_eq(info->counts[layer * LOAD_EXPERTS + e], e == 3 ? 4 : 0,
					   1e-9);
		cr_assert_float_eq(info->no_expert[layer], 4, 1e-9);
		cr_assert_float_eq(info->rows[layer], 4, 1e-9);
	}
}

Test(load_counts, the_average_has_them_apart_too)
{
	const struct r3ring_load_info *info;

	load_feed.id = stranger;
	feed_whole(&load_feed, 1, 4, NULL, 0);
	cr_assert_eq(r3ring_load_read(load_feed.load, 0, R3RING_LOAD_AVERAGE, R3RING_LOAD_ANY_EPOCH,
				      snapshot),
		     0);
	info = r3ring_load_snapshot_info(snapshot);
	for (uint32_t layer = 0; layer < FEED_LAYERS; layer++)
		cr_expect_float_eq(info->no_expert[layer], 4, 1e-6);
}

Test(load_counts, a_row_that_several_spans_claim_is_load_once)
{
	const struct r3ring_span plain[] = {load_span(1, 0, 0, 4), load_span(2, 0, 2, 4)};
	const struct r3ring_span drafts[] = {load_span(3, 0, 0, 4),
					     load_draft(4, 0, 0, 4, R3RING_UNKNOWN_U32),
					     load_draft(5, 0, 2, 2, R3RING_UNKNOWN_U32)};
	const struct r3ring_span told[] = {load_draft(4, 0, 0, 4, 4), load_draft(5, 0, 2, 2, 2)};
	struct expected expected = {0};

	feed_whole(&load_feed, 1, 6, plain, 2);
	expect_rows(&expected, 1, 0, 6);
	feed_whole(&load_feed, 2, 4, drafts, 3);
	feed_spans(&load_feed, 2, told, 2);
	expect_rows(&expected, 2, 0, 4);
	expect_load(&expected, 0);
}
