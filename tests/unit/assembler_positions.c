/* SPDX-License-Identifier: Apache-2.0 */
/* Positions come from spans and ROWS; what counts comes from accepted lengths. */
#include <errno.h>

#include "tests/unit/key_feed.h"

static struct feed channel;

static void open_channel(void)
{
	feed_create(&channel, NULL);
	feed_schema(&channel);
}

static void close_channel(void)
{
	feed_destroy(&channel);
}

TestSuite(assembler_positions, .init = open_channel, .fini = close_channel);

static struct r3ring_span span(uint64_t request, uint32_t position, uint32_t row, uint32_t rows)
{
	return (struct r3ring_span){.request = request,
				    .position = position,
				    .row = row,
				    .rows = rows,
				    .accepted = R3RING_UNKNOWN_U32};
}

Test(assembler_positions, failure_10_rows_lie_at_their_positions_whatever_order_they_came_in)
{
	const struct r3ring_span second = span(1, 3, 0, 2), first = span(1, 0, 0, 3);
	struct r3ring_assembled *got;

	feed_begin(&channel, 1, "a", 5, 0);
	feed_whole(&channel, 1, 2, &second, 1);
	feed_whole(&channel, 2, 3, &first, 1);
	feed_end(&channel, 1, R3RING_END_FINISHED, 0, 6);
	got = take(&channel, "a");
	for (uint32_t position = 0; position < 3; position++)
		assert_row(got, position, 2, position);
	assert_row(got, 3, 1, 0);
	assert_row(got, 4, 1, 1);
	assert_missing(got, 5, R3RING_MISSING_NOT_FED);
	cr_assert_eq(r3ring_assembled_get_info(got)->cells_valid, 5 * FEED_LAYERS);
	r3ring_assembled_free(got);
}

Test(assembler_positions, several_requests_of_a_step_each_get_their_own_rows)
{
	const struct r3ring_span spans[] = {span(7, 10, 5, 1), span(8, 0, 0, 5), span(9, 2, 6, 2)};
	struct r3ring_assembled *got;

	feed_begin(&channel, 7, "a", 11, 0);
	feed_begin(&channel, 8, "b", 5, 0);
	feed_begin(&channel, 9, "c", 4, 0);
	feed_whole(&channel, 1, 8, spans, 3);
	feed_end(&channel, 8, R3RING_END_FINISHED, 0, 6);
	feed_end(&channel, 9, R3RING_END_FINISHED, 0, 5);
	got = take(&channel, "b");
	for (uint32_t position = 0; position < 5; position++)
		assert_row(got, position, 1, position);
	r3ring_assembled_free(got);
	got = take(&channel, "c");
	assert_missing(got, 1, R3RING_MISSING_NOT_RUN);
	assert_row(got, 2, 1, 6);
	assert_row(got, 3, 1, 7);
	r3ring_assembled_free(got);
	cr_assert_null(r3ring_assembler_take(channel.assembler), "a has not ended");
}

Test(assembler_positions, spans_that_follow_their_step_are_waited_for)
{
	const struct r3ring_span guess = span(1, 0, 0, 2), late = span(1, 4, 0, 2);
	const struct r3ring_span next = span(1, 6, 0, 1);
	struct r3ring_assembled *got;

	feed_begin(&channel, 1, "a", 1, 0);
	channel.flags = R3RING_STEP_SPANS_FOLLOW;
	feed_whole(&channel, 1, 2, &guess, 1);
	channel.flags = 0;
	feed_whole(&channel, 2, 1, &next, 1);
	feed_spans(&channel, 1, &late, 1);
	feed_end(&channel, 1, R3RING_END_FINISHED, 0, 8);
	got = take(&channel, "a");
	assert_missing(got, 0, R3RING_MISSING_NOT_RUN);
	assert_row(got, 4, 1, 0);
	assert_row(got, 5, 1, 1);
	assert_row(got, 6, 2, 0);
	r3ring_assembled_free(got);
}

Test(assembler_positions, spans_that_never_follow_leave_their_rows_missing)
{
	const struct r3ring_span guess = span(1, 0, 0, 2);
	struct r3ring_assembler_stats stats;
	struct r3ring_assembled *got;

	feed_begin(&channel, 1, "a", 1, 0);
	channel.flags = R3RING_STEP_SPANS_FOLLOW;
	feed_whole(&channel, 1, 2, &guess, 1);
	feed_end(&channel, 1, R3RING_END_FINISHED, 0, 3);
	got = take(&channel, "a");
	assert_missing(got, 0, R3RING_MISSING_SPANS);
	assert_missing(got, 1, R3RING_MISSING_SPANS);
	r3ring_assembled_free(got);
	r3ring_assembler_get_stats(channel.assembler, &stats);
	cr_assert_eq(stats.spans_late, 1);
}

Test(assembler_positions, spans_may_replace_those_of_a_step_that_was_settled)
{
	const struct r3ring_span said = span(1, 0, 0, 2), late = span(1, 5, 0, 2);
	struct r3ring_assembled *got;

	feed_begin(&channel, 1, "a", 1, 0);
	feed_whole(&channel, 1, 2, &said, 1);
	feed_spans(&channel, 1, &late, 1);
	feed_end(&channel, 1, R3RING_END_FINISHED, 0, 8);
	got = take(&channel, "a");
	assert_missing(got, 0, R3RING_MISSING_NOT_RUN);
	assert_row(got, 5, 1, 0);
	assert_row(got, 6, 1, 1);
	r3ring_assembled_free(got);
}

Test(assembler_positions, the_device_s_positions_win_over_spans_and_are_counted)
{
	const struct r3ring_span said = span(1, 0, 0, 3);
	const int32_t seen[] = {0, 2, 1};
	struct r3ring_assembler_stats stats;
	struct r3ring_assembled *got;

	feed_begin(&channel, 1, "a", 3, 0);
	feed_step(&channel, 1, 3, &said, 1, NULL, 0);
	feed_layers(&channel, 1, 3, 0, FEED_LAYERS);
	feed_rows(&channel, 1, seen, 3);
	feed_step_end(&channel, 1, 0, R3RING_CAUSE_NONE);
	feed_end(&channel, 1, R3RING_END_FINISHED, 0, 4);
	got = take(&channel, "a");
	assert_row(got, 0, 1, 0);
	assert_row(got, 1, 1, 2);
	assert_row(got, 2, 1, 1);
	r3ring_assembled_free(got);
	r3ring_assembler_get_stats(channel.assembler, &stats);
	cr_assert_eq(stats.rows_moved, 2);
}

Test(assembler_positions, failures_17_and_46_rejected_draft_rows_never_enter)
{
	struct r3ring_span draft = span(1, 1, 0, 4);
	const struct r3ring_span prompt = span(1, 0, 0, 1), next = span(1, 3, 0, 1);
	struct r3ring_assembler_stats stats;
	struct r3ring_assembled *got;

	draft.flags = R3RING_SPAN_DRAFT;
	draft.accepted = 2;
	feed_begin(&channel, 1, "a", 1, 0);
	feed_whole(&channel, 1, 1, &prompt, 1);
	feed_whole(&channel, 2, 4, &draft, 1);
	feed_whole(&channel, 3, 1, &next, 1);
	feed_end(&channel, 1, R3RING_END_FINISHED, 0, 5);
	got = take(&channel, "a");
	assert_row(got, 1, 2, 0);
	assert_row(got, 2, 2, 1);
	assert_row(got, 3, 3, 0);
	r3ring_assembled_free(got);
	r3ring_assembler_get_stats(channel.assembler, &stats);
	cr_assert_eq(stats.rows_rejected, 2);
}

Test(assembler_positions, accepted_counts_that_come_later_are_waited_for)
{
	struct r3ring_span draft = span(1, 0, 0, 3);
	const struct r3ring_span next = span(1, 2, 0, 1);
	struct r3ring_assembled *got;

	draft.flags = R3RING_SPAN_DRAFT;
	feed_begin(&channel, 1, "a", 1, 0);
	feed_whole(&channel, 1, 3, &draft, 1);
	feed_whole(&channel, 2, 1, &next, 1);
	draft.accepted = 2;
	feed_spans(&channel, 1, &draft, 1);
	feed_end(&channel, 1, R3RING_END_FINISHED, 0, 4);
	got = take(&channel, "a");
	assert_row(got, 0, 1, 0);
	assert_row(got, 1, 1, 1);
	assert_row(got, 2, 2, 0);
	r3ring_assembled_free(got);
}

Test(assembler_positions, accepted_counts_that_never_come_leave_their_rows_missing)
{
	struct r3ring_span draft = span(1, 0, 0, 3);
	struct r3ring_assembled *got;

	draft.flags = R3RING_SPAN_DRAFT;
	feed_begin(&channel, 1, "a", 1, 0);
	feed_whole(&channel, 1, 3, &draft, 1);
	feed_end(&channel, 1, R3RING_END_FINISHED, 0, 4);
	got = take(&channel, "a");
	for (uint32_t position = 0; position < 3; position++)
		assert_missing(got, position, R3RING_MISSING_SPANS);
	r3ring_assembled_free(got);
}

Test(assembler_positions, failure_17_what_ran_past_the_stop_is_cut)
{
	const struct r3ring_span prompt = span(1, 0, 0, 4), past = span(1, 4, 0, 1);
	struct r3ring_assembled *got;

	feed_begin(&channel, 1, "a", 4, 0);
	feed_whole(&channel, 1, 4, &prompt, 1);
	feed_whole(&channel, 2, 1, &past, 1);
	feed_end(&channel, 1, R3RING_END_FINISHED, 0, 5);
	got = take(&channel, "a");
	cr_assert_eq(r3ring_assembled_get_info(got)->tokens, 5);
	/* It was run, so it is there: only what lies beyond the tokens is cut. */
	assert_row(got, 4, 2, 0);
	cr_assert_eq(r3ring_assembled_read(got, 5, 1, 0, 1, &(struct r3ring_assembled_rows){0}),
		     -ERANGE);
	r3ring_assembled_free(got);
}

Test(assembler_positions, failure_28_warm_up_steps_enter_nowhere)
{
	const struct r3ring_span said = span(1, 0, 0, 2);
	struct r3ring_assembled *got;

	feed_begin(&channel, 1, "a", 2, 0);
	channel.flags = R3RING_STEP_WARMUP;
	feed_whole(&channel, 1, 2, &said, 1);
	feed_end(&channel, 1, R3RING_END_FINISHED, 0, 3);
	got = take(&channel, "a");
	assert_missing(got, 0, R3RING_MISSING_NOT_RUN);
	r3ring_assembled_free(got);
}

Test(assembler_positions, failure_13_a_draft_model_s_channel_is_left_out)
{
	struct feed draft = feed_channel(&channel, "test/0.draft");
	const struct r3ring_span said = span(1, 0, 0, 2);

	feed_schema(&draft);
	feed_begin(&draft, 1, "a", 2, 0);
	feed_whole(&draft, 1, 2, &said, 1);
	feed_end(&draft, 1, R3RING_END_FINISHED, 0, 3);
	r3ring_assembler_flush(draft.assembler);
	cr_assert_null(r3ring_assembler_take(draft.assembler));
}

Test(assembler_positions, failure_16_layers_in_several_records_are_put_together)
{
	const struct r3ring_span said = span(1, 0, 0, 11);
	struct r3ring_assembled *got;

	feed_begin(&channel, 1, "a", 11, 0);
	feed_whole(&channel, 1, 11, &said, 1);
	feed_end(&channel, 1, R3RING_END_FINISHED, 0, 12);
	got = take(&channel, "a");
	for (uint32_t position = 0; position < 11; position++)
		assert_row(got, position, 1, position);
	r3ring_assembled_free(got);
}

static struct r3ring_assembled *run_beyond(struct feed *to, uint32_t kept)
{
	const struct r3ring_assembler_options options = {.size = sizeof(options), .max_tokens = 4};

	feed_create(to, &options);
	feed_schema(to);
	feed_begin(to, 1, "a", 3, 0);
	feed_computed(to, 1, 1, 0, 6, NULL, 0);
	feed_end(to, 1, R3RING_END_FINISHED, 0, kept);
	return take(to, "a");
}

static void expect_cut(uint32_t kept)
{
	struct r3ring_assembler_stats stats;
	struct feed to;
	struct r3ring_assembled *got = run_beyond(&to, kept);

	cr_expect(r3ring_assembled_get_info(got)->flags & R3RING_ASSEMBLED_CUT);
	cr_expect_eq(r3ring_assembled_get_info(got)->tokens, 4);
	assert_row(got, 3, 1, 3);
	r3ring_assembler_get_stats(to.assembler, &stats);
	cr_expect_eq(stats.rows_beyond, 2);
	cr_expect_eq(stats.rows_placed, 4);
	r3ring_assembled_free(got);
	feed_destroy(&to);
}

Test(assembler_positions, those_beyond_the_most_that_there_may_be_are_counted_and_told)
{
	expect_cut(7);
}

Test(assembler_positions, so_are_those_of_a_request_of_unknown_length)
{
	expect_cut(R3RING_UNKNOWN_U32);
}
