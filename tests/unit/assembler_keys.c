/* SPDX-License-Identifier: Apache-2.0 */
/* Prefix reuse: keys are rewritten in the ring's order, and what is not known is missing. */
#include "tests/unit/key_feed.h"

static struct feed channel;

static void open_channel(void)
{
	feed_create_slots(&channel, NULL);
}

static void close_channel(void)
{
	feed_destroy(&channel);
}

TestSuite(assembler_keys, .init = open_channel, .fini = close_channel);

Test(assembler_keys, a_cached_prefix_has_the_rows_of_who_computed_it)
{
	const uint64_t keys[] = {100, 101};
	struct r3ring_assembled *got;

	feed_begin(&channel, 1, "a", 4, 0);
	feed_computed(&channel, 1, 1, 0, 4, keys, 2);
	r3ring_assembled_free(feed_finish(&channel, 1, "a", 5));
	feed_begin(&channel, 2, "b", 5, 0);
	feed_cached(&channel, 2, 2, 4, keys, 2);
	got = feed_finish(&channel, 2, "b", 6);
	for (uint32_t position = 0; position < 4; position++)
		assert_row(got, position, 1, position);
	assert_row(got, 4, 2, 0);
	r3ring_assembled_free(got);
}

Test(assembler_keys, failure_15_an_unknown_key_is_missing)
{
	const uint64_t keys[] = {100, 101}, others[] = {100, 999};
	struct r3ring_assembled *got;

	feed_begin(&channel, 1, "a", 4, 0);
	feed_computed(&channel, 1, 1, 0, 4, keys, 2);
	feed_begin(&channel, 2, "b", 5, 0);
	feed_cached(&channel, 2, 2, 4, others, 2);
	got = feed_finish(&channel, 2, "b", 6);
	assert_row(got, 1, 1, 1);
	assert_missing(got, 2, R3RING_MISSING_UNKNOWN_KEY);
	assert_missing(got, 3, R3RING_MISSING_UNKNOWN_KEY);
	r3ring_assembled_free(got);
}

Test(assembler_keys, failure_15_a_slot_that_is_used_again_has_its_new_owner_s_rows)
{
	const uint64_t keys[] = {100};
	struct r3ring_assembled *got;

	feed_begin(&channel, 1, "a", 2, 0);
	feed_begin(&channel, 2, "b", 2, 0);
	feed_computed(&channel, 1, 1, 0, 2, keys, 1);
	feed_computed(&channel, 2, 2, 0, 2, keys, 1);
	feed_begin(&channel, 3, "c", 3, 0);
	feed_cached(&channel, 3, 3, 2, keys, 1);
	got = feed_finish(&channel, 3, "c", 4);
	assert_row(got, 0, 2, 0);
	assert_row(got, 1, 2, 1);
	r3ring_assembled_free(got);
}

Test(assembler_keys, failure_15_of_a_slot_filled_in_part_the_former_owner_s_rest_is_gone)
{
	const uint64_t keys[] = {100};
	struct r3ring_assembled *got;

	feed_begin(&channel, 1, "a", 2, 0);
	feed_begin(&channel, 2, "b", 2, 0);
	feed_computed(&channel, 1, 1, 0, 2, keys, 1);
	feed_computed(&channel, 2, 2, 0, 1, keys, 1);
	feed_begin(&channel, 3, "c", 3, 0);
	feed_cached(&channel, 3, 3, 2, keys, 1);
	got = feed_finish(&channel, 3, "c", 4);
	assert_row(got, 0, 2, 0);
	assert_missing(got, 1, R3RING_MISSING_UNKNOWN_KEY);
	r3ring_assembled_free(got);
}

Test(assembler_keys, a_block_filled_by_several_steps_has_all_their_rows)
{
	const uint64_t keys[] = {100};
	struct r3ring_assembled *got;

	feed_begin(&channel, 1, "a", 1, 0);
	feed_computed(&channel, 1, 1, 0, 1, keys, 1);
	feed_computed(&channel, 2, 1, 1, 1, keys, 1);
	feed_begin(&channel, 2, "b", 3, 0);
	feed_cached(&channel, 3, 2, 2, keys, 1);
	got = feed_finish(&channel, 2, "b", 4);
	assert_row(got, 0, 1, 0);
	assert_row(got, 1, 2, 0);
	r3ring_assembled_free(got);
}

/* Keys 100 and 101 are of the blocks [0, 2) and [2, 4), whatever token a span begins at. */
Test(assembler_keys, key_j_of_a_span_is_of_the_jth_block_from_the_one_it_begins_in)
{
	const uint64_t keys[] = {100, 100, 101};
	const struct r3ring_span spans[] = {
		keyed_span(2, R3RING_SPAN_CACHED, 0, 0, 1, 1),
		keyed_span(2, R3RING_SPAN_CACHED, 1, 0, 2, 2),
		keyed_span(2, R3RING_SPAN_COMPUTED, 3, 0, 1, 0),
	};
	struct r3ring_assembled *got;

	feed_begin(&channel, 1, "a", 1, 0);
	feed_computed(&channel, 1, 1, 0, 1, keys, 1);
	feed_computed(&channel, 2, 1, 1, 2, keys + 1, 2);
	feed_begin(&channel, 2, "b", 4, 0);
	feed_whole_keys(&channel, 3, 1, spans, 3, keys, 3);
	got = feed_finish(&channel, 2, "b", 5);
	assert_row(got, 0, 1, 0);
	assert_row(got, 1, 2, 0);
	assert_row(got, 2, 2, 1);
	assert_row(got, 3, 3, 0);
	r3ring_assembled_free(got);
}

Test(assembler_keys, cached_spans_see_what_their_own_step_computes)
{
	const uint64_t keys[] = {100, 100};
	const struct r3ring_span spans[] = {
		keyed_span(2, R3RING_SPAN_CACHED, 0, 0, 2, 1),
		keyed_span(1, R3RING_SPAN_COMPUTED, 0, 0, 2, 1),
		keyed_span(2, R3RING_SPAN_COMPUTED, 2, 2, 1, 0),
	};
	struct r3ring_assembled *got;

	feed_begin(&channel, 1, "a", 2, 0);
	feed_begin(&channel, 2, "b", 3, 0);
	feed_whole_keys(&channel, 1, 3, spans, 3, keys, 2);
	got = feed_finish(&channel, 2, "b", 4);
	assert_row(got, 0, 1, 0);
	assert_row(got, 1, 1, 1);
	assert_row(got, 2, 1, 2);
	r3ring_assembled_free(got);
}

Test(assembler_keys, failure_11_what_came_from_elsewhere_erases_its_keys)
{
	const uint64_t keys[] = {100};
	const struct r3ring_span loaded = keyed_span(2, R3RING_SPAN_EXTERNAL, 0, 0, 2, 1);
	struct r3ring_assembled *got;

	feed_begin(&channel, 1, "a", 2, 0);
	feed_computed(&channel, 1, 1, 0, 2, keys, 1);
	feed_begin(&channel, 2, "b", 2, 0);
	feed_whole_keys(&channel, 2, 1, &loaded, 1, keys, 1);
	feed_begin(&channel, 3, "c", 3, 0);
	feed_cached(&channel, 3, 3, 2, keys, 1);
	got = feed_finish(&channel, 2, "b", 3);
	assert_missing(got, 0, R3RING_MISSING_EXTERNAL);
	r3ring_assembled_free(got);
	got = feed_finish(&channel, 3, "c", 4);
	assert_missing(got, 0, R3RING_MISSING_UNKNOWN_KEY);
	r3ring_assembled_free(got);
}

Test(assembler_keys, failure_45_a_dropped_step_s_keys_are_missing)
{
	const uint64_t keys[] = {100};
	const struct r3ring_span one = keyed_span(2, R3RING_SPAN_COMPUTED, 0, 0, 2, 1);
	struct r3ring_assembled *got;

	feed_begin(&channel, 1, "a", 2, 0);
	feed_computed(&channel, 1, 1, 0, 2, keys, 1);
	feed_begin(&channel, 2, "b", 2, 0);
	channel.flags = R3RING_STEP_DROPPED;
	feed_step(&channel, 2, 2, &one, 1, keys, 1);
	channel.flags = 0;
	feed_lost(&channel, 2, 2, R3RING_CAUSE_BUFFER_FULL, 0);
	feed_begin(&channel, 3, "c", 3, 0);
	feed_cached(&channel, 3, 3, 2, keys, 1);
	got = feed_finish(&channel, 3, "c", 4);
	assert_missing(got, 0, R3RING_CAUSE_BUFFER_FULL);
	r3ring_assembled_free(got);
	got = feed_finish(&channel, 2, "b", 3);
	assert_missing(got, 1, R3RING_CAUSE_BUFFER_FULL);
	r3ring_assembled_free(got);
}

Test(assembler_keys, failure_45_a_loss_of_unknown_spans_empties_the_slots)
{
	const uint64_t keys[] = {100};
	struct r3ring_assembled *got;

	feed_begin(&channel, 1, "a", 2, 0);
	feed_computed(&channel, 1, 1, 0, 2, keys, 1);
	feed_lost(&channel, 2, 5, R3RING_CAUSE_QUEUE_FULL, 1);
	feed_begin(&channel, 2, "b", 3, 0);
	feed_cached(&channel, 6, 2, 2, keys, 1);
	got = feed_finish(&channel, 2, "b", 4);
	assert_missing(got, 0, R3RING_MISSING_UNKNOWN_KEY);
	r3ring_assembled_free(got);
}

Test(assembler_keys, hashes_outlive_a_gap_that_took_no_step)
{
	const uint64_t keys[] = {100};
	struct r3ring_assembled *got;

	channel.key_kind = R3RING_KEYS_BLOCK_HASH;
	feed_begin(&channel, 1, "a", 2, 0);
	feed_computed(&channel, 1, 1, 0, 2, keys, 1);
	r3ring_assembler_gap(channel.assembler, channel.channel);
	feed_begin(&channel, 2, "b", 3, 0);
	feed_cached(&channel, 2, 2, 2, keys, 1);
	got = feed_finish(&channel, 2, "b", 4);
	assert_row(got, 0, 1, 0);
	r3ring_assembled_free(got);
}

Test(assembler_keys, a_hash_that_ran_under_older_weights_is_found_with_those)
{
	const uint64_t keys[] = {100};
	uint64_t weights[3] = {0};
	const struct r3ring_assembled_rows rows = {.weight_version = weights};
	struct r3ring_assembled *got;

	channel.key_kind = R3RING_KEYS_BLOCK_HASH;
	channel.weight_version = 1;
	feed_begin(&channel, 1, "a", 2, 0);
	feed_computed(&channel, 1, 1, 0, 2, keys, 1);
	channel.weight_version = 2;
	feed_begin(&channel, 2, "b", 3, 0);
	feed_cached(&channel, 2, 2, 2, keys, 1);
	got = feed_finish(&channel, 2, "b", 4);
	assert_row(got, 0, 1, 0);
	cr_assert_eq(r3ring_assembled_read(got, 0, 3, 0, 1, &rows), 0);
	cr_assert_eq(weights[0], 1);
	cr_assert_eq(weights[2], 2);
	r3ring_assembled_free(got);
}

/* Engines that keep the cache over new weights may find either block. */
Test(assembler_keys, a_hash_that_ran_under_two_weights_is_unknown)
{
	const uint64_t keys[] = {100};
	struct r3ring_assembled *got;

	channel.key_kind = R3RING_KEYS_BLOCK_HASH;
	channel.weight_version = 1;
	feed_begin(&channel, 1, "a", 2, 0);
	feed_computed(&channel, 1, 1, 0, 2, keys, 1);
	channel.weight_version = 2;
	feed_begin(&channel, 2, "b", 2, 0);
	feed_computed(&channel, 2, 2, 0, 2, keys, 1);
	feed_begin(&channel, 3, "c", 3, 0);
	feed_cached(&channel, 3, 3, 2, keys, 1);
	got = feed_finish(&channel, 3, "c", 4);
	assert_missing(got, 0, R3RING_MISSING_UNKNOWN_KEY);
	assert_missing(got, 1, R3RING_MISSING_UNKNOWN_KEY);
	r3ring_assembled_free(got);
	/* Nor does a further pass tell. */
	feed_begin(&channel, 4, "d", 2, 0);
	feed_computed(&channel, 4, 4, 0, 2, keys, 1);
	feed_begin(&channel, 5, "e", 3, 0);
	feed_cached(&channel, 5, 5, 2, keys, 1);
	got = feed_finish(&channel, 5, "e", 4);
	assert_missing(got, 0, R3RING_MISSING_UNKNOWN_KEY);
	r3ring_assembled_free(got);
}

/* What nobody's span ran under them may be found too. */
Test(assembler_keys, a_hash_that_somebody_ran_under_other_weights_is_unknown)
{
	const uint64_t keys[] = {100};
	struct r3ring_assembled *got;

	channel.key_kind = R3RING_KEYS_BLOCK_HASH;
	channel.weight_version = 1;
	feed_begin(&channel, 1, "a", 2, 0);
	feed_computed(&channel, 1, 1, 0, 2, keys, 1);
	channel.weight_version = 2;
	feed_computed(&channel, 2, 77, 0, 2, keys, 1);
	channel.weight_version = 1;
	feed_begin(&channel, 3, "c", 3, 0);
	feed_computed(&channel, 3, 3, 0, 2, keys, 1);
	feed_begin(&channel, 4, "d", 3, 0);
	feed_cached(&channel, 4, 4, 2, keys, 1);
	got = feed_finish(&channel, 4, "d", 4);
	assert_missing(got, 0, R3RING_MISSING_UNKNOWN_KEY);
	r3ring_assembled_free(got);
}

Test(assembler_keys, a_hash_that_was_loaded_under_other_weights_is_unknown)
{
	const struct r3ring_span loaded = keyed_span(1, R3RING_SPAN_EXTERNAL, 0, 0, 2, 1);
	const uint64_t keys[] = {100};
	struct r3ring_assembled *got;

	channel.key_kind = R3RING_KEYS_BLOCK_HASH;
	channel.weight_version = 1;
	feed_begin(&channel, 1, "a", 3, 0);
	feed_whole_keys(&channel, 1, 0, &loaded, 1, keys, 1);
	channel.weight_version = 2;
	feed_begin(&channel, 2, "b", 2, 0);
	feed_computed(&channel, 2, 2, 0, 2, keys, 1);
	feed_begin(&channel, 3, "c", 3, 0);
	feed_cached(&channel, 3, 3, 2, keys, 1);
	got = feed_finish(&channel, 3, "c", 4);
	assert_missing(got, 0, R3RING_MISSING_UNKNOWN_KEY);
	r3ring_assembled_free(got);
}

Test(assembler_keys, a_copied_slot_has_its_source_s_rows)
{
	const uint64_t keys[] = {100}, copies[] = {200};
	struct r3ring_assembled *got;

	feed_begin(&channel, 1, "a", 2, 0);
	feed_computed(&channel, 1, 1, 0, 2, keys, 1);
	feed_key_copy(&channel, 100, 200);
	feed_key_copy(&channel, 300, 100);
	feed_begin(&channel, 2, "b", 3, 0);
	feed_cached(&channel, 2, 2, 2, copies, 1);
	feed_begin(&channel, 3, "c", 3, 0);
	feed_cached(&channel, 3, 3, 2, keys, 1);
	got = feed_finish(&channel, 2, "b", 4);
	assert_row(got, 1, 1, 1);
	r3ring_assembled_free(got);
	got = feed_finish(&channel, 3, "c", 4);
	assert_missing(got, 1, R3RING_MISSING_UNKNOWN_KEY);
	r3ring_assembled_free(got);
}

Test(assembler_keys, failure_46_rejected_draft_rows_are_behind_no_key)
{
	const uint64_t keys[] = {100};
	struct r3ring_span draft = keyed_span(1, R3RING_SPAN_COMPUTED, 0, 0, 2, 1);
	struct r3ring_assembled *got;

	draft.flags = R3RING_SPAN_DRAFT;
	draft.accepted = 1;
	feed_begin(&channel, 1, "a", 1, 0);
	feed_whole_keys(&channel, 1, 2, &draft, 1, keys, 1);
	feed_begin(&channel, 2, "b", 3, 0);
	feed_cached(&channel, 2, 2, 2, keys, 1);
	got = feed_finish(&channel, 2, "b", 4);
	assert_row(got, 0, 1, 0);
	assert_missing(got, 1, R3RING_MISSING_UNKNOWN_KEY);
	r3ring_assembled_free(got);
}

Test(assembler_keys, failure_27_the_store_is_bounded_and_says_what_it_forgot)
{
	struct r3ring_assembler_options options = {.size = sizeof(options), .max_keys = 2};
	const uint64_t keys[] = {100}, others[] = {101, 102};
	struct r3ring_assembler_stats stats;
	struct r3ring_assembled *got;

	feed_destroy(&channel);
	feed_create(&channel, &options);
	channel.key_kind = R3RING_KEYS_SLOT;
	channel.tokens_per_key = 2;
	feed_schema(&channel);
	feed_begin(&channel, 1, "a", 6, 0);
	feed_computed(&channel, 1, 1, 0, 2, keys, 1);
	feed_computed(&channel, 2, 1, 2, 4, others, 2);
	feed_begin(&channel, 2, "b", 3, 0);
	feed_cached(&channel, 3, 2, 2, keys, 1);
	got = feed_finish(&channel, 2, "b", 4);
	assert_missing(got, 0, R3RING_MISSING_UNKNOWN_KEY);
	r3ring_assembled_free(got);
	r3ring_assembler_get_stats(channel.assembler, &stats);
	cr_assert_eq(stats.keys, 2);
	cr_assert_eq(stats.keys_forgotten, 1);
}

/* Though the first is only appended, and the second has keys to set. */
Test(assembler_keys, requests_of_a_step_are_quiet_in_the_order_of_its_spans)
{
	const uint64_t keys[] = {100};
	const struct r3ring_span spans[] = {
		{.request = 1, .rows = 2, .accepted = R3RING_UNKNOWN_U32},
		{.request = 2, .row = 2, .rows = 2, .accepted = R3RING_UNKNOWN_U32, .keys = 1},
	};
	struct r3ring_span again[2] = {spans[0], spans[1]};

	feed_begin(&channel, 1, "a", 2, 0);
	feed_begin(&channel, 2, "b", 2, 0);
	feed_whole_keys(&channel, 1, 4, spans, 2, keys, 1);
	again[0].position = again[1].position = 2;
	feed_whole_keys(&channel, 2, 4, again, 2, keys, 1);
	r3ring_assembler_flush(channel.assembler);
	r3ring_assembled_free(take(&channel, "a"));
	r3ring_assembled_free(take(&channel, "b"));
}
