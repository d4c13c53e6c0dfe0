/* SPDX-License-Identifier: Apache-2.0 */
/* Draft rows, and rows whose spans come later, wait until it is known what they are. */
#include <errno.h>

#include "tests/unit/load_fixture.h"

static void open_load(void)
{
	load_open(NULL);
}

TestSuite(load_drafts, .init = open_load, .fini = load_close);

Test(load_drafts, failure_13_a_draft_models_channel_is_no_load_of_its_target)
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

Test(load_drafts, failure_13_rejected_draft_rows_are_left_out)
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

Test(load_drafts, draft_rows_wait_until_it_is_known_how_many_were_accepted)
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

Test(load_drafts, draft_rows_of_which_nobody_says_more_are_lost_and_hold_up_few_steps)
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

Test(load_drafts, a_step_whose_spans_follow_waits_for_them)
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

Test(load_drafts, a_step_whose_map_is_in_several_records_waits_for_the_last)
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

Test(load_drafts, rows_that_no_span_of_a_map_that_came_late_speaks_of_count)
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

/* Step 1, whose map comes in a record of its own. */
static void feed_map_behind(uint32_t rows, const struct r3ring_span *span)
{
	load_feed.flags = R3RING_STEP_MAP_CONTINUED;
	feed_step(&load_feed, 1, rows, NULL, 0, NULL, 0);
	feed_spans_as(&load_feed, R3RING_SPANS_MORE, 1, span, 1, NULL, 0);
	feed_layers(&load_feed, 1, rows, 0, FEED_LAYERS);
	feed_step_end(&load_feed, 1, 0, R3RING_CAUSE_NONE);
}

Test(load_drafts, a_draft_that_is_told_late_was_not_run_before_by_the_steps_behind_it)
{
	struct r3ring_span draft = load_draft(1, 5, 0, 3, R3RING_UNKNOWN_U32);
	const struct r3ring_span next = load_span(1, 7, 0, 1);
	struct expected expected = {0};

	feed_begin(&load_feed, 1, "a", 5, 0);
	feed_map_behind(3, &draft);
	load_feed.flags = 0;
	feed_whole(&load_feed, 2, 1, &next, 1);
	draft.accepted = 2;
	feed_spans(&load_feed, 1, &draft, 1);
	expect_rows(&expected, 1, 0, 2);
	expect_rows(&expected, 2, 0, 1);
	expect_load(&expected, 0);
}

Test(load_drafts, a_step_whose_spans_never_come_is_lost_once_few_others_are_behind_it)
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

Test(load_drafts, a_row_right_behind_an_open_draft_of_a_map_that_came_late_waits_for_nobody)
{
	struct r3ring_span draft = load_draft(1, 5, 0, 3, R3RING_UNKNOWN_U32);
	struct expected expected = {0};

	feed_begin(&load_feed, 1, "a", 5, 0);
	feed_map_behind(5, &draft);
	draft.accepted = 2;
	feed_spans(&load_feed, 1, &draft, 1);
	expect_rows(&expected, 1, 0, 2);
	expect_rows(&expected, 1, 3, 5);
	expect_load(&expected, 0);
}

Test(load_drafts, of_a_lost_layer_only_rows_that_would_have_counted_are_lost)
{
	const struct r3ring_span draft = load_draft(1, 10, 1, 3, 1);

	feed_begin(&load_feed, 1, "a", 10, 0);
	feed_step(&load_feed, 1, 5, &draft, 1, NULL, 0);
	feed_layers(&load_feed, 1, 5, 0, FEED_LAYERS);
	feed_step_end(&load_feed, 1, 1, R3RING_CAUSE_OVERLAP);
	cr_expect_eq(read_load(0)->accounts.lost[R3RING_CAUSE_OVERLAP], 3);
	cr_expect_eq(read_load(0)->accounts.counted, 3 * (FEED_LAYERS - 1));
}

Test(load_drafts, spans_of_a_step_that_is_not_open_are_passed_over)
{
	const struct r3ring_span span = load_span(1, 0, 0, 3);
	struct expected expected = {0};

	feed_whole(&load_feed, 1, 3, NULL, 0);
	feed_spans(&load_feed, 1, &span, 1);
	expect_rows(&expected, 1, 0, 3);
	expect_load(&expected, 0);
}
