/* SPDX-License-Identifier: Apache-2.0 */
/* Token maps in several records, in part lost, or late: what they do not say is missing. */
#include "tests/unit/key_feed.h"

static struct feed channel;

static void open_channel(void)
{
	feed_create(&channel, NULL);
	channel.key_kind = R3RING_KEYS_SLOT;
	channel.tokens_per_key = 2;
	feed_schema(&channel);
}

static void close_channel(void)
{
	feed_destroy(&channel);
}

TestSuite(assembler_maps, .init = open_channel, .fini = close_channel);

static struct r3ring_span computed(uint64_t request, uint32_t position, uint32_t row, uint32_t rows)
{
	return keyed_span(request, R3RING_SPAN_COMPUTED, position, row, rows, 0);
}

/* The end of a step of @rows rows whose map was said. */
static void run(uint64_t step, uint32_t rows)
{
	feed_layers(&channel, step, rows, 0, FEED_LAYERS);
	feed_step_end(&channel, step, 0, R3RING_CAUSE_NONE);
}

Test(assembler_maps, one_of_several_records_is_settled_when_they_all_are_there)
{
	const struct r3ring_span spans[] = {computed(1, 0, 0, 1), computed(2, 0, 1, 1),
					    computed(3, 0, 2, 1)};
	struct r3ring_assembler_stats stats;
	struct r3ring_assembled *got;

	feed_begin(&channel, 1, "a", 1, 0);
	feed_begin(&channel, 2, "b", 1, 0);
	feed_begin(&channel, 3, "c", 1, 0);
	channel.flags = R3RING_STEP_MAP_CONTINUED;
	feed_step(&channel, 1, 3, spans, 1, NULL, 0);
	feed_spans_as(&channel, R3RING_SPANS_MORE | R3RING_SPANS_CONTINUED, 1, spans + 1, 1, NULL,
		      0);
	feed_spans_as(&channel, R3RING_SPANS_MORE, 1, spans + 2, 1, NULL, 0);
	run(1, 3);
	got = feed_finish(&channel, 3, "c", 2);
	assert_row(got, 0, 1, 2);
	r3ring_assembled_free(got);
	got = feed_finish(&channel, 1, "a", 2);
	assert_row(got, 0, 1, 0);
	r3ring_assembled_free(got);
	r3ring_assembler_get_stats(channel.assembler, &stats);
	cr_assert_eq(stats.spans_late, 0);
}

/* What the part that was lost wrote, cached spans of the same step would see. */
Test(assembler_maps, of_one_that_was_lost_in_part_no_slot_is_believed)
{
	const uint64_t keys[] = {100};
	const struct r3ring_span first = keyed_span(1, R3RING_SPAN_COMPUTED, 0, 0, 2, 1);
	const struct r3ring_span cached = keyed_span(2, R3RING_SPAN_CACHED, 0, 0, 2, 1);
	struct r3ring_assembled *got;

	feed_begin(&channel, 1, "a", 2, 0);
	feed_begin(&channel, 2, "b", 3, 0);
	feed_whole_keys(&channel, 1, 2, &first, 1, keys, 1);
	channel.flags = R3RING_STEP_MAP_CONTINUED;
	feed_step(&channel, 2, 2, &cached, 1, keys, 1);
	r3ring_assembler_gap(channel.assembler, channel.channel);
	run(2, 2);
	got = feed_finish(&channel, 2, "b", 3);
	assert_missing(got, 0, R3RING_MISSING_UNKNOWN_KEY);
	r3ring_assembled_free(got);
}

Test(assembler_maps, a_late_one_in_several_records_counts_once_its_last_is_there)
{
	const struct r3ring_span guess[] = {computed(1, 7, 0, 1), computed(2, 7, 1, 1)};
	const struct r3ring_span late[] = {computed(1, 0, 0, 1), computed(2, 0, 1, 1)};
	struct r3ring_assembled *got;

	feed_begin(&channel, 1, "a", 1, 0);
	feed_begin(&channel, 2, "b", 1, 0);
	channel.flags = R3RING_STEP_SPANS_FOLLOW;
	feed_step(&channel, 1, 2, guess, 2, NULL, 0);
	run(1, 2);
	feed_spans_as(&channel, R3RING_SPANS_REPLACE | R3RING_SPANS_CONTINUED, 1, late, 1, NULL, 0);
	feed_spans_as(&channel, R3RING_SPANS_REPLACE | R3RING_SPANS_MORE, 1, late + 1, 1, NULL, 0);
	got = feed_finish(&channel, 2, "b", 2);
	assert_row(got, 0, 1, 1);
	r3ring_assembled_free(got);
	got = feed_finish(&channel, 1, "a", 2);
	assert_row(got, 0, 1, 0);
	r3ring_assembled_free(got);
}

/* Of three records the one before @lost came, and those behind it. */
static void late_without(uint32_t lost)
{
	const struct r3ring_span guess[] = {computed(1, 7, 0, 1), computed(2, 7, 1, 1),
					    computed(3, 7, 2, 1)};
	const struct r3ring_span late[] = {computed(1, 0, 0, 1), computed(2, 0, 1, 1),
					   computed(3, 0, 2, 1)};
	const char *const ids[] = {"a", "b", "c"};
	struct r3ring_assembled *got;

	for (uint32_t i = 0; i < 3; i++)
		feed_begin(&channel, i + 1, ids[i], 8, 0);
	channel.flags = R3RING_STEP_SPANS_FOLLOW;
	feed_step(&channel, 1, 3, guess, 3, NULL, 0);
	run(1, 3);
	for (uint32_t i = 0; i < 3; i++) {
		if (i == lost)
			r3ring_assembler_gap(channel.assembler, channel.channel);
		else
			feed_spans_as(&channel,
				      R3RING_SPANS_REPLACE | (i ? R3RING_SPANS_MORE : 0u) |
					      (i < 2 ? R3RING_SPANS_CONTINUED : 0u),
				      1, late + i, 1, NULL, 0);
	}
	for (uint32_t i = 0; i < 3; i++)
		feed_end(&channel, i + 1, R3RING_END_FINISHED, 0, 9);
	for (uint32_t i = 0; i < 3; i++) {
		got = take(&channel, ids[i]);
		assert_missing(got, 0, R3RING_MISSING_GAP);
		assert_missing(got, 7, R3RING_MISSING_GAP);
		r3ring_assembled_free(got);
	}
}

Test(assembler_maps, a_late_one_whose_beginning_was_lost_leaves_its_rows_missing)
{
	late_without(0);
}

Test(assembler_maps, a_late_one_of_which_a_part_between_was_lost_leaves_its_rows_missing)
{
	late_without(1);
}

Test(assembler_maps, a_late_one_whose_rest_was_lost_leaves_its_rows_missing)
{
	const struct r3ring_span guess[] = {computed(1, 7, 0, 1), computed(2, 7, 1, 1)};
	const struct r3ring_span late = computed(1, 0, 0, 1);
	struct r3ring_assembled *got;

	feed_begin(&channel, 1, "a", 1, 0);
	feed_begin(&channel, 2, "b", 8, 0);
	channel.flags = R3RING_STEP_SPANS_FOLLOW;
	feed_step(&channel, 1, 2, guess, 2, NULL, 0);
	run(1, 2);
	feed_spans_as(&channel, R3RING_SPANS_REPLACE | R3RING_SPANS_CONTINUED, 1, &late, 1, NULL,
		      0);
	r3ring_assembler_gap(channel.assembler, channel.channel);
	feed_end(&channel, 1, R3RING_END_FINISHED, 0, 2);
	feed_end(&channel, 2, R3RING_END_FINISHED, 0, 9);
	got = take(&channel, "a");
	assert_missing(got, 0, R3RING_MISSING_GAP);
	r3ring_assembled_free(got);
	got = take(&channel, "b");
	assert_missing(got, 7, R3RING_MISSING_GAP);
	r3ring_assembled_free(got);
}

Test(assembler_maps, one_that_never_came_leaves_no_slot_that_is_believed)
{
	const struct r3ring_assembler_options options = {.size = sizeof(options), .late_steps = 1};
	const uint64_t keys[] = {100};
	const struct r3ring_span first = keyed_span(1, R3RING_SPAN_COMPUTED, 0, 0, 2, 1);
	const struct r3ring_span guess = computed(1, 2, 0, 1);
	const struct r3ring_span cached[] = {keyed_span(2, R3RING_SPAN_CACHED, 0, 0, 2, 1),
					     computed(2, 2, 0, 1)};
	struct r3ring_assembled *got;

	close_channel();
	feed_create(&channel, &options);
	channel.key_kind = R3RING_KEYS_SLOT;
	channel.tokens_per_key = 2;
	feed_schema(&channel);
	feed_begin(&channel, 1, "a", 2, 0);
	feed_begin(&channel, 2, "b", 3, 0);
	feed_whole_keys(&channel, 1, 2, &first, 1, keys, 1);
	channel.flags = R3RING_STEP_SPANS_FOLLOW;
	feed_whole(&channel, 2, 1, &guess, 1);
	channel.flags = 0;
	feed_whole_keys(&channel, 3, 1, cached, 2, keys, 1);
	got = feed_finish(&channel, 2, "b", 4);
	assert_missing(got, 0, R3RING_MISSING_UNKNOWN_KEY);
	assert_row(got, 2, 3, 0);
	r3ring_assembled_free(got);
}

/* The step was lost: what its spans name others may have written since. */
Test(assembler_maps, a_late_one_of_a_step_that_was_lost_changes_nothing)
{
	const uint64_t keys[] = {100};
	const struct r3ring_span first = keyed_span(1, R3RING_SPAN_COMPUTED, 0, 0, 2, 1);
	const struct r3ring_span lost = keyed_span(1, R3RING_SPAN_COMPUTED, 4, 0, 2, 1);
	const struct r3ring_span cached[] = {keyed_span(2, R3RING_SPAN_CACHED, 0, 0, 2, 1),
					     computed(2, 2, 0, 1)};
	struct r3ring_assembled *got;

	feed_begin(&channel, 1, "a", 2, 0);
	feed_begin(&channel, 2, "b", 3, 0);
	feed_lost(&channel, 1, 1, R3RING_CAUSE_QUEUE_FULL, 1);
	feed_whole_keys(&channel, 2, 2, &first, 1, keys, 1);
	feed_spans_as(&channel, R3RING_SPANS_REPLACE, 1, &lost, 1, keys, 1);
	feed_whole_keys(&channel, 3, 1, cached, 2, keys, 1);
	got = feed_finish(&channel, 2, "b", 4);
	assert_row(got, 0, 2, 0);
	assert_row(got, 1, 2, 1);
	r3ring_assembled_free(got);
}

/* A slot that was used again meanwhile does not get its former rows back. */
Test(assembler_maps, failure_15_a_late_one_of_a_settled_step_sets_no_key)
{
	const uint64_t keys[] = {100};
	const struct r3ring_span first = keyed_span(1, R3RING_SPAN_COMPUTED, 0, 0, 2, 1);
	const struct r3ring_span moved = keyed_span(1, R3RING_SPAN_COMPUTED, 2, 0, 2, 1);
	const struct r3ring_span again = keyed_span(2, R3RING_SPAN_COMPUTED, 0, 0, 2, 1);
	const struct r3ring_span cached[] = {keyed_span(3, R3RING_SPAN_CACHED, 0, 0, 2, 1),
					     computed(3, 2, 0, 1)};
	struct r3ring_assembled *got;

	feed_begin(&channel, 1, "a", 4, 0);
	feed_begin(&channel, 2, "b", 2, 0);
	feed_begin(&channel, 3, "c", 3, 0);
	feed_whole_keys(&channel, 1, 2, &first, 1, keys, 1);
	feed_whole_keys(&channel, 2, 2, &again, 1, keys, 1);
	feed_spans_as(&channel, R3RING_SPANS_REPLACE, 1, &moved, 1, keys, 1);
	feed_whole_keys(&channel, 3, 1, cached, 2, keys, 1);
	got = feed_finish(&channel, 3, "c", 4);
	assert_row(got, 0, 2, 0);
	r3ring_assembled_free(got);
	got = feed_finish(&channel, 1, "a", 5);
	assert_row(got, 2, 1, 0);
	r3ring_assembled_free(got);
}

/* An old step waits for its map; layers of the next generation's are not its own. */
Test(assembler_maps, failure_50_a_waiting_step_takes_nothing_of_the_next_generation)
{
	const struct r3ring_span late = computed(1, 0, 0, 1);
	struct feed anew;
	struct r3ring_assembled *got;

	feed_begin(&channel, 1, "a", 1, 0);
	channel.flags = R3RING_STEP_SPANS_FOLLOW;
	feed_step(&channel, 1, 1, &late, 1, NULL, 0);
	anew = channel;
	anew.generation = 2;
	anew.seq = 100;
	anew.salt = 9;
	feed_layers(&anew, 1, 1, 0, FEED_LAYERS);
	feed_spans(&anew, 1, &late, 1);
	r3ring_assembler_flush(channel.assembler);
	got = take(&channel, "a");
	for (uint32_t position = 0; position < r3ring_assembled_get_info(got)->tokens; position++)
		cr_assert_neq(cell_of(got, position, 0, 9, 1, 0), 0);
	r3ring_assembled_free(got);
}

/* Its engine died before it learned how many drafts were accepted. */
Test(assembler_maps, no_step_waits_for_its_map_beyond_its_generation)
{
	struct r3ring_span draft = computed(1, 0, 0, 2);
	const struct r3ring_span one = computed(1, 0, 0, 1);
	struct r3ring_assembler_stats stats;
	struct r3ring_assembled *got;

	draft.flags = R3RING_SPAN_DRAFT;
	feed_begin(&channel, 1, "a", 1, 0);
	feed_whole(&channel, 1, 2, &draft, 1);
	r3ring_assembler_get_stats(channel.assembler, &stats);
	cr_assert_eq(stats.spans_late, 0);
	channel.generation = 2;
	channel.seq = 0;
	feed_schema(&channel);
	r3ring_assembler_get_stats(channel.assembler, &stats);
	cr_assert_eq(stats.spans_late, 1);
	feed_begin(&channel, 1, "b", 1, 0);
	feed_whole(&channel, 1, 1, &one, 1);
	got = feed_finish(&channel, 1, "b", 2);
	assert_row(got, 0, 1, 0);
	r3ring_assembled_free(got);
}
