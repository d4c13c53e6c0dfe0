/* SPDX-License-Identifier: Apache-2.0 */
/* What was lost is missing, and says why. */
#include "tests/unit/record_feed.h"

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

TestSuite(assembler_losses, .init = open_channel, .fini = close_channel);

static struct r3ring_span rows_of(uint64_t request, uint32_t position, uint32_t rows)
{
	return (struct r3ring_span){.request = request,
				    .position = position,
				    .rows = rows,
				    .accepted = R3RING_UNKNOWN_U32};
}

static struct r3ring_assembled *finish(uint32_t accepted)
{
	feed_end(&channel, 1, R3RING_END_FINISHED, 0, accepted);
	return take(&channel, "a");
}

Test(assembler_losses, failures_6_and_7_a_layer_that_never_came_is_missing_with_its_cause)
{
	const struct r3ring_span one = rows_of(1, 0, 2);
	struct r3ring_assembled *got;

	feed_begin(&channel, 1, "a", 2, 0);
	feed_step(&channel, 1, 2, &one, 1, NULL, 0);
	feed_layers(&channel, 1, 2, 0, 1);
	feed_layers(&channel, 1, 2, 2, 3);
	feed_step_end(&channel, 1, 1, R3RING_CAUSE_NOT_CAPTURED);
	got = finish(3);
	cr_assert_eq(cell_of(got, 0, 0, 0, 1, 0), 0);
	cr_assert_eq(cell_of(got, 0, 1, 0, 1, 0), R3RING_CAUSE_NOT_CAPTURED);
	cr_assert_eq(cell_of(got, 0, 2, 0, 1, 0), 0);
	cr_assert_eq(cell_of(got, 1, 2, 0, 1, 1), 0);
	cr_assert_eq(r3ring_assembled_get_info(got)->cells_missing[R3RING_CAUSE_NOT_CAPTURED], 2);
	r3ring_assembled_free(got);
}

Test(assembler_losses, what_the_end_takes_back_did_not_come)
{
	const struct r3ring_span one = rows_of(1, 0, 1);
	struct r3ring_assembled *got;

	feed_begin(&channel, 1, "a", 1, 0);
	feed_step(&channel, 1, 1, &one, 1, NULL, 0);
	feed_layers(&channel, 1, 1, 0, FEED_LAYERS);
	feed_step_end(&channel, 1, 2, R3RING_CAUSE_OVERLAP);
	got = finish(2);
	cr_assert_eq(cell_of(got, 0, 1, 0, 1, 0), 0);
	cr_assert_eq(cell_of(got, 0, 2, 0, 1, 0), R3RING_CAUSE_OVERLAP);
	r3ring_assembled_free(got);
}

Test(assembler_losses, of_a_layer_in_several_records_only_the_part_that_was_lost_is_missing)
{
	const struct r3ring_span one = rows_of(1, 0, 6);
	struct feed half;
	struct r3ring_assembled *got;

	feed_begin(&channel, 1, "a", 6, 0);
	feed_step(&channel, 1, 6, &one, 1, NULL, 0);
	/* The second record of each layer is the reader's loss. */
	half = channel;
	half.row_end = 4;
	feed_layers(&half, 1, 6, 0, FEED_LAYERS);
	channel.seq = half.seq;
	r3ring_assembler_gap(channel.assembler, channel.channel);
	feed_step_end(&channel, 1, 0, R3RING_CAUSE_NONE);
	got = finish(7);
	assert_row(got, 3, 1, 3);
	assert_missing(got, 4, R3RING_MISSING_GAP);
	r3ring_assembled_free(got);
}

Test(assembler_losses, failure_32_a_gap_leaves_positions_missing_and_never_shifts_the_others)
{
	const struct r3ring_span first = rows_of(1, 0, 2), third = rows_of(1, 3, 1);
	struct r3ring_assembled *got;

	feed_begin(&channel, 1, "a", 2, 0);
	feed_whole(&channel, 1, 2, &first, 1);
	r3ring_assembler_gap(channel.assembler, channel.channel);
	feed_whole(&channel, 3, 1, &third, 1);
	got = finish(5);
	assert_row(got, 1, 1, 1);
	assert_missing(got, 2, R3RING_MISSING_GAP);
	assert_row(got, 3, 3, 0);
	r3ring_assembled_free(got);
}

Test(assembler_losses, a_step_whose_end_was_lost_is_settled_by_the_next)
{
	const struct r3ring_span first = rows_of(1, 0, 1), second = rows_of(1, 1, 1);
	struct r3ring_assembled *got;

	feed_begin(&channel, 1, "a", 1, 0);
	feed_step(&channel, 1, 1, &first, 1, NULL, 0);
	feed_layers(&channel, 1, 1, 0, 2);
	r3ring_assembler_gap(channel.assembler, channel.channel);
	feed_whole(&channel, 2, 1, &second, 1);
	got = finish(3);
	cr_assert_eq(cell_of(got, 0, 1, 0, 1, 0), 0);
	cr_assert_eq(cell_of(got, 0, 2, 0, 1, 0), R3RING_MISSING_GAP);
	assert_row(got, 1, 2, 0);
	r3ring_assembled_free(got);
}

Test(assembler_losses, failure_20_a_dropped_step_is_missing_with_the_cause_of_its_loss)
{
	const struct r3ring_span one = rows_of(1, 0, 2);
	struct r3ring_assembled *got;

	feed_begin(&channel, 1, "a", 2, 0);
	channel.flags = R3RING_STEP_DROPPED;
	feed_step(&channel, 1, 2, &one, 1, NULL, 0);
	channel.flags = 0;
	feed_lost(&channel, 1, 1, R3RING_CAUSE_RING_FULL, 0);
	got = finish(3);
	assert_missing(got, 0, R3RING_CAUSE_RING_FULL);
	assert_missing(got, 1, R3RING_CAUSE_RING_FULL);
	r3ring_assembled_free(got);
}

Test(assembler_losses, failure_26_an_id_that_is_no_expert_makes_its_cell_missing)
{
	const struct r3ring_span one = rows_of(1, 0, 1);
	uint16_t ids[FEED_TOP_K] = {3, R3RING_MISSING};
	struct r3ring_record record = {.type = R3RING_LAYER};
	struct r3ring_view view = {.generation = 1, .type = R3RING_LAYER};
	struct r3ring_assembled *got;

	record.u.layer.head = (struct r3ring_layer_record){.step = 1,
							   .layer_index = 0,
							   .rows = 1,
							   .total_rows = 1,
							   .valid_rows = 1,
							   .missing = 1,
							   .top_k = FEED_TOP_K};
	record.u.layer.ids = ids;
	feed_begin(&channel, 1, "a", 1, 0);
	feed_step(&channel, 1, 1, &one, 1, NULL, 0);
	view.seq = ++channel.seq;
	cr_assert_eq(r3ring_assembler_feed(channel.assembler, 0, &view, &record), 0);
	feed_layers(&channel, 1, 1, 1, FEED_LAYERS);
	feed_step_end(&channel, 1, 0, R3RING_CAUSE_NONE);
	got = finish(2);
	cr_assert_eq(cell_of(got, 0, 0, 0, 1, 0), R3RING_MISSING_NO_EXPERT);
	cr_assert_eq(cell_of(got, 0, 1, 0, 1, 0), 0);
	r3ring_assembled_free(got);
}

Test(assembler_losses, failure_49_nothing_is_attributed_before_a_keyframe)
{
	const struct r3ring_span early = rows_of(1, 0, 1), late = rows_of(1, 1, 1);
	struct feed joined = feed_channel(&channel, "test/1");
	struct r3ring_assembler_stats stats;
	struct r3ring_assembled *got;

	joined.seq = 1000;
	feed_schema(&joined);
	feed_whole(&joined, 5, 1, &early, 1);
	feed_keyframe(&joined, 1);
	feed_repeated_begin(&joined, 1, "a", 1);
	feed_whole(&joined, 6, 1, &late, 1);
	feed_end(&joined, 1, R3RING_END_FINISHED, 0, 3);
	got = take(&joined, "a");
	assert_missing(got, 0, R3RING_MISSING_GAP);
	assert_row(got, 1, 6, 0);
	r3ring_assembled_free(got);
	r3ring_assembler_get_stats(joined.assembler, &stats);
	cr_assert_eq(stats.rows_unattributed, 1);
}

Test(assembler_losses, failure_49_not_even_to_a_request_that_began_before_it)
{
	const struct r3ring_span early = rows_of(1, 0, 1), late = rows_of(1, 1, 1);
	struct feed joined = feed_channel(&channel, "test/1");
	struct r3ring_assembled *got;

	joined.seq = 1000;
	feed_schema(&joined);
	feed_begin(&joined, 1, "a", 1, 0);
	feed_whole(&joined, 5, 1, &early, 1);
	feed_keyframe(&joined, 1);
	feed_repeated_begin(&joined, 1, "a", 1);
	feed_whole(&joined, 6, 1, &late, 1);
	feed_end(&joined, 1, R3RING_END_FINISHED, 0, 3);
	got = take(&joined, "a");
	assert_missing(got, 0, R3RING_MISSING_GAP);
	assert_row(got, 1, 6, 0);
	r3ring_assembled_free(got);
}

Test(assembler_losses, a_request_that_a_keyframe_does_not_name_has_ended_unseen)
{
	const struct r3ring_span one = rows_of(1, 0, 2);
	struct r3ring_assembled *got;

	feed_begin(&channel, 1, "a", 2, 0);
	feed_whole(&channel, 1, 2, &one, 1);
	r3ring_assembler_gap(channel.assembler, channel.channel);
	feed_keyframe(&channel, 0);
	got = take(&channel, "a");
	cr_assert(r3ring_assembled_get_info(got)->flags & R3RING_ASSEMBLED_LENGTH_GUESSED);
	assert_row(got, 1, 1, 1);
	r3ring_assembled_free(got);
}

Test(assembler_losses, failure_50_a_new_generation_s_handles_are_other_requests)
{
	const struct r3ring_span one = rows_of(1, 0, 1);
	struct r3ring_assembled *got;

	feed_begin(&channel, 1, "a", 1, 0);
	feed_whole(&channel, 1, 1, &one, 1);
	channel.generation = 2;
	channel.seq = 0;
	feed_schema(&channel);
	feed_begin(&channel, 1, "b", 1, 0);
	feed_whole(&channel, 1, 1, &one, 1);
	feed_end(&channel, 1, R3RING_END_FINISHED, 0, 2);
	got = take(&channel, "b");
	assert_row(got, 0, 1, 0);
	r3ring_assembled_free(got);
	r3ring_assembler_flush(channel.assembler);
	got = take(&channel, "a");
	cr_assert(r3ring_assembled_get_info(got)->flags & R3RING_ASSEMBLED_UNFINISHED);
	r3ring_assembled_free(got);
}

Test(assembler_losses, a_request_that_lives_on_in_the_next_generation_goes_on)
{
	const struct r3ring_span one = rows_of(1, 0, 1), two = rows_of(1, 1, 1);
	struct r3ring_assembled *got;

	feed_begin(&channel, 1, "a", 1, 0);
	feed_whole(&channel, 1, 1, &one, 1);
	channel.generation = 2;
	channel.continues = 1;
	channel.seq = 0;
	feed_schema(&channel);
	feed_keyframe(&channel, 1);
	feed_repeated_begin(&channel, 1, "a", 1);
	feed_whole(&channel, 1, 1, &two, 1);
	feed_end(&channel, 1, R3RING_END_FINISHED, 0, 3);
	got = take(&channel, "a");
	cr_assert_not(r3ring_assembled_get_info(got)->flags & R3RING_ASSEMBLED_UNFINISHED);
	assert_row(got, 0, 1, 0);
	assert_row(got, 1, 1, 0);
	r3ring_assembled_free(got);
}

Test(assembler_losses, failure_27_memory_is_bounded_and_eviction_said)
{
	const struct r3ring_assembler_options options = {.size = sizeof(options),
							 .max_bytes = 5120};
	struct r3ring_assembler_stats stats;
	struct r3ring_assembled *got;

	feed_destroy(&channel);
	feed_create(&channel, &options);
	feed_schema(&channel);
	feed_begin(&channel, 1, "quiet", 1, 0);
	feed_begin(&channel, 2, "busy", 1, 0);
	for (uint64_t step = 1; step <= 64; step++) {
		const struct r3ring_span spans[] = {rows_of(1, 0, 1),
						    rows_of(2, (uint32_t)step - 1, 1)};

		feed_whole(&channel, step, 1, spans + (step > 1), 1);
		got = r3ring_assembler_take(channel.assembler);
		if (got)
			break;
	}
	cr_assert_not_null(got);
	cr_assert_str_eq(r3ring_assembled_get_info(got)->id, "quiet");
	cr_assert(r3ring_assembled_get_info(got)->flags & R3RING_ASSEMBLED_EVICTED);
	r3ring_assembled_free(got);
	r3ring_assembler_get_stats(channel.assembler, &stats);
	cr_assert_eq(stats.requests_evicted, 1);
}

Test(assembler_losses, failure_20_of_a_dropped_step_whose_loss_was_lost_no_cause_is_made_up)
{
	const struct r3ring_span one = rows_of(1, 0, 2), next = rows_of(1, 2, 1);
	struct r3ring_assembled *got;

	feed_begin(&channel, 1, "a", 2, 0);
	channel.flags = R3RING_STEP_DROPPED;
	feed_step(&channel, 1, 2, &one, 1, NULL, 0);
	channel.flags = 0;
	r3ring_assembler_gap(channel.assembler, channel.channel);
	feed_whole(&channel, 2, 1, &next, 1);
	got = finish(3);
	assert_missing(got, 0, R3RING_MISSING_GAP);
	r3ring_assembled_free(got);
}
