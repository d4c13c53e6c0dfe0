/* SPDX-License-Identifier: Apache-2.0 */
/* Prefix reuse: keys are rewritten in the ring's order, and what is not known is missing. */
#include "tests/unit/record_feed.h"

static struct feed channel;

static void open_with(const struct r3ring_assembler_options *options)
{
	feed_create(&channel, options);
	channel.key_kind = R3RING_KEYS_SLOT;
	channel.tokens_per_key = 2;
	feed_schema(&channel);
}

static void open_channel(void)
{
	open_with(NULL);
}

static void close_channel(void)
{
	feed_destroy(&channel);
}

TestSuite(assembler_keys, .init = open_channel, .fini = close_channel);

static struct r3ring_span span(uint64_t request, uint8_t kind, uint32_t position, uint32_t row,
			       uint32_t rows, uint32_t keys)
{
	return (struct r3ring_span){.request = request,
				    .position = position,
				    .row = row,
				    .rows = rows,
				    .accepted = R3RING_UNKNOWN_U32,
				    .keys = keys,
				    .kind = kind};
}

static void computed(uint64_t step, uint64_t request, uint32_t position, uint32_t rows,
		     const uint64_t *keys, uint32_t key_count)
{
	const struct r3ring_span one =
		span(request, R3RING_SPAN_COMPUTED, position, 0, rows, key_count);

	feed_whole_keys(&channel, step, rows, &one, 1, keys, key_count);
}

/* @rows positions from a cache, then one row that is run. */
static void cached(uint64_t step, uint64_t request, uint32_t rows, const uint64_t *keys,
		   uint32_t key_count)
{
	const struct r3ring_span spans[] = {
		span(request, R3RING_SPAN_CACHED, 0, 0, rows, key_count),
		span(request, R3RING_SPAN_COMPUTED, rows, 0, 1, 0),
	};

	feed_whole_keys(&channel, step, 1, spans, 2, keys, key_count);
}

static struct r3ring_assembled *finish(uint64_t request, const char *id, uint32_t accepted)
{
	feed_end(&channel, request, R3RING_END_FINISHED, 0, accepted);
	return take(&channel, id);
}

Test(assembler_keys, a_cached_prefix_has_the_rows_of_who_computed_it)
{
	const uint64_t keys[] = {100, 101};
	struct r3ring_assembled *got;

	feed_begin(&channel, 1, "a", 4, 0);
	computed(1, 1, 0, 4, keys, 2);
	r3ring_assembled_free(finish(1, "a", 5));
	feed_begin(&channel, 2, "b", 5, 0);
	cached(2, 2, 4, keys, 2);
	got = finish(2, "b", 6);
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
	computed(1, 1, 0, 4, keys, 2);
	feed_begin(&channel, 2, "b", 5, 0);
	cached(2, 2, 4, others, 2);
	got = finish(2, "b", 6);
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
	computed(1, 1, 0, 2, keys, 1);
	computed(2, 2, 0, 2, keys, 1);
	feed_begin(&channel, 3, "c", 3, 0);
	cached(3, 3, 2, keys, 1);
	got = finish(3, "c", 4);
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
	computed(1, 1, 0, 2, keys, 1);
	computed(2, 2, 0, 1, keys, 1);
	feed_begin(&channel, 3, "c", 3, 0);
	cached(3, 3, 2, keys, 1);
	got = finish(3, "c", 4);
	assert_row(got, 0, 2, 0);
	assert_missing(got, 1, R3RING_MISSING_UNKNOWN_KEY);
	r3ring_assembled_free(got);
}

Test(assembler_keys, a_block_filled_by_several_steps_has_all_their_rows)
{
	const uint64_t keys[] = {100};
	struct r3ring_assembled *got;

	feed_begin(&channel, 1, "a", 1, 0);
	computed(1, 1, 0, 1, keys, 1);
	computed(2, 1, 1, 1, keys, 1);
	feed_begin(&channel, 2, "b", 3, 0);
	cached(3, 2, 2, keys, 1);
	got = finish(2, "b", 4);
	assert_row(got, 0, 1, 0);
	assert_row(got, 1, 2, 0);
	r3ring_assembled_free(got);
}

/* Keys 100 and 101 are of the blocks [0, 2) and [2, 4), whatever token a span begins at. */
Test(assembler_keys, key_j_of_a_span_is_of_the_jth_block_from_the_one_it_begins_in)
{
	const uint64_t keys[] = {100, 100, 101};
	const struct r3ring_span spans[] = {
		span(2, R3RING_SPAN_CACHED, 0, 0, 1, 1),
		span(2, R3RING_SPAN_CACHED, 1, 0, 2, 2),
		span(2, R3RING_SPAN_COMPUTED, 3, 0, 1, 0),
	};
	struct r3ring_assembled *got;

	feed_begin(&channel, 1, "a", 1, 0);
	computed(1, 1, 0, 1, keys, 1);
	computed(2, 1, 1, 2, keys + 1, 2);
	feed_begin(&channel, 2, "b", 4, 0);
	feed_whole_keys(&channel, 3, 1, spans, 3, keys, 3);
	got = finish(2, "b", 5);
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
		span(2, R3RING_SPAN_CACHED, 0, 0, 2, 1),
		span(1, R3RING_SPAN_COMPUTED, 0, 0, 2, 1),
		span(2, R3RING_SPAN_COMPUTED, 2, 2, 1, 0),
	};
	struct r3ring_assembled *got;

	feed_begin(&channel, 1, "a", 2, 0);
	feed_begin(&channel, 2, "b", 3, 0);
	feed_whole_keys(&channel, 1, 3, spans, 3, keys, 2);
	got = finish(2, "b", 4);
	assert_row(got, 0, 1, 0);
	assert_row(got, 1, 1, 1);
	assert_row(got, 2, 1, 2);
	r3ring_assembled_free(got);
}

Test(assembler_keys, failure_11_what_came_from_elsewhere_erases_its_keys)
{
	const uint64_t keys[] = {100};
	const struct r3ring_span loaded = span(2, R3RING_SPAN_EXTERNAL, 0, 0, 2, 1);
	struct r3ring_assembled *got;

	feed_begin(&channel, 1, "a", 2, 0);
	computed(1, 1, 0, 2, keys, 1);
	feed_begin(&channel, 2, "b", 2, 0);
	feed_whole_keys(&channel, 2, 1, &loaded, 1, keys, 1);
	feed_begin(&channel, 3, "c", 3, 0);
	cached(3, 3, 2, keys, 1);
	got = finish(2, "b", 3);
	assert_missing(got, 0, R3RING_MISSING_EXTERNAL);
	r3ring_assembled_free(got);
	got = finish(3, "c", 4);
	assert_missing(got, 0, R3RING_MISSING_UNKNOWN_KEY);
	r3ring_assembled_free(got);
}

Test(assembler_keys, failure_45_a_dropped_step_s_keys_are_missing)
{
	const uint64_t keys[] = {100};
	const struct r3ring_span one = span(2, R3RING_SPAN_COMPUTED, 0, 0, 2, 1);
	struct r3ring_assembled *got;

	feed_begin(&channel, 1, "a", 2, 0);
	computed(1, 1, 0, 2, keys, 1);
	feed_begin(&channel, 2, "b", 2, 0);
	channel.flags = R3RING_STEP_DROPPED;
	feed_step(&channel, 2, 2, &one, 1, keys, 1);
	channel.flags = 0;
	feed_lost(&channel, 2, 2, R3RING_CAUSE_BUFFER_FULL, 0);
	feed_begin(&channel, 3, "c", 3, 0);
	cached(3, 3, 2, keys, 1);
	got = finish(3, "c", 4);
	assert_missing(got, 0, R3RING_CAUSE_BUFFER_FULL);
	r3ring_assembled_free(got);
	got = finish(2, "b", 3);
	assert_missing(got, 1, R3RING_CAUSE_BUFFER_FULL);
	r3ring_assembled_free(got);
}

Test(assembler_keys, failure_45_a_loss_of_unknown_spans_empties_the_slots)
{
	const uint64_t keys[] = {100};
	struct r3ring_assembled *got;

	feed_begin(&channel, 1, "a", 2, 0);
	computed(1, 1, 0, 2, keys, 1);
	feed_lost(&channel, 2, 5, R3RING_CAUSE_QUEUE_FULL, 1);
	feed_begin(&channel, 2, "b", 3, 0);
	cached(6, 2, 2, keys, 1);
	got = finish(2, "b", 4);
	assert_missing(got, 0, R3RING_MISSING_UNKNOWN_KEY);
	r3ring_assembled_free(got);
}

Test(assembler_keys, hashes_outlive_a_gap_since_they_name_their_content)
{
	const uint64_t keys[] = {100};
	struct r3ring_assembled *got;

	channel.key_kind = R3RING_KEYS_BLOCK_HASH;
	feed_begin(&channel, 1, "a", 2, 0);
	computed(1, 1, 0, 2, keys, 1);
	r3ring_assembler_gap(channel.assembler, channel.channel);
	feed_begin(&channel, 2, "b", 3, 0);
	cached(6, 2, 2, keys, 1);
	got = finish(2, "b", 4);
	assert_row(got, 0, 1, 0);
	r3ring_assembled_free(got);
}

Test(assembler_keys, hashes_of_other_weights_are_unknown)
{
	const uint64_t keys[] = {100};
	struct r3ring_assembled *got;

	channel.key_kind = R3RING_KEYS_BLOCK_HASH;
	channel.weight_version = 1;
	feed_begin(&channel, 1, "a", 2, 0);
	computed(1, 1, 0, 2, keys, 1);
	channel.weight_version = 2;
	feed_begin(&channel, 2, "b", 3, 0);
	cached(2, 2, 2, keys, 1);
	got = finish(2, "b", 4);
	assert_missing(got, 0, R3RING_MISSING_UNKNOWN_KEY);
	r3ring_assembled_free(got);
}

Test(assembler_keys, a_copied_slot_has_its_source_s_rows)
{
	const uint64_t keys[] = {100}, copies[] = {200};
	struct r3ring_assembled *got;

	feed_begin(&channel, 1, "a", 2, 0);
	computed(1, 1, 0, 2, keys, 1);
	feed_key_copy(&channel, 100, 200);
	feed_key_copy(&channel, 300, 100);
	feed_begin(&channel, 2, "b", 3, 0);
	cached(2, 2, 2, copies, 1);
	feed_begin(&channel, 3, "c", 3, 0);
	cached(3, 3, 2, keys, 1);
	got = finish(2, "b", 4);
	assert_row(got, 1, 1, 1);
	r3ring_assembled_free(got);
	got = finish(3, "c", 4);
	assert_missing(got, 1, R3RING_MISSING_UNKNOWN_KEY);
	r3ring_assembled_free(got);
}

Test(assembler_keys, failure_46_rejected_draft_rows_are_behind_no_key)
{
	const uint64_t keys[] = {100};
	struct r3ring_span draft = span(1, R3RING_SPAN_COMPUTED, 0, 0, 2, 1);
	struct r3ring_assembled *got;

	draft.flags = R3RING_SPAN_DRAFT;
	draft.accepted = 1;
	feed_begin(&channel, 1, "a", 1, 0);
	feed_whole_keys(&channel, 1, 2, &draft, 1, keys, 1);
	feed_begin(&channel, 2, "b", 3, 0);
	cached(2, 2, 2, keys, 1);
	got = finish(2, "b", 4);
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
	computed(1, 1, 0, 2, keys, 1);
	computed(2, 1, 2, 4, others, 2);
	feed_begin(&channel, 2, "b", 3, 0);
	cached(3, 2, 2, keys, 1);
	got = finish(2, "b", 4);
	assert_missing(got, 0, R3RING_MISSING_UNKNOWN_KEY);
	r3ring_assembled_free(got);
	r3ring_assembler_get_stats(channel.assembler, &stats);
	cr_assert_eq(stats.keys, 2);
	cr_assert_eq(stats.keys_forgotten, 1);
}

/* A pass that comes to other routes makes its own request's cell doubtful, nobody else's. */
Test(assembler_keys, a_contradiction_stays_with_the_request_it_is_in)
{
	const uint64_t keys[] = {100};
	struct r3ring_assembled *got;

	feed_begin(&channel, 1, "a", 2, 0);
	computed(1, 1, 0, 2, keys, 1);
	feed_begin(&channel, 2, "b", 3, 0);
	cached(2, 2, 2, keys, 1);
	computed(3, 1, 0, 1, NULL, 0);
	got = finish(2, "b", 4);
	assert_row(got, 0, 1, 0);
	r3ring_assembled_free(got);
	got = finish(1, "a", 3);
	assert_missing(got, 0, R3RING_CAUSE_CONFLICT);
	assert_row(got, 1, 1, 1);
	r3ring_assembled_free(got);
}

/* New weights ran a block's tokens again, in two steps: behind its hash is what they gave. */
Test(assembler_keys, behind_a_key_is_what_is_in_kv_and_not_what_counts)
{
	const uint64_t keys[] = {100};
	struct r3ring_assembled *got;

	channel.key_kind = R3RING_KEYS_BLOCK_HASH;
	feed_begin(&channel, 1, "a", 2, 0);
	computed(1, 1, 0, 2, NULL, 0);
	channel.weight_version = 1;
	computed(2, 1, 0, 1, NULL, 0);
	computed(3, 1, 1, 1, keys, 1);
	feed_begin(&channel, 2, "b", 3, 0);
	cached(4, 2, 2, keys, 1);
	got = finish(2, "b", 4);
	assert_row(got, 0, 2, 0);
	assert_row(got, 1, 3, 0);
	r3ring_assembled_free(got);
	got = finish(1, "a", 3);
	assert_row(got, 0, 1, 0);
	assert_row(got, 1, 1, 1);
	r3ring_assembled_free(got);
}

/* The pass of new weights over the block's first token may have been in the gap. */
Test(assembler_keys, behind_a_key_is_nothing_that_a_gap_may_have_replaced)
{
	const uint64_t keys[] = {100};
	struct r3ring_assembled *got;

	channel.key_kind = R3RING_KEYS_BLOCK_HASH;
	feed_begin(&channel, 1, "a", 2, 0);
	computed(1, 1, 0, 2, NULL, 0);
	r3ring_assembler_gap(channel.assembler, channel.channel);
	channel.weight_version = 1;
	computed(3, 1, 1, 1, keys, 1);
	feed_begin(&channel, 2, "b", 3, 0);
	cached(4, 2, 2, keys, 1);
	got = finish(2, "b", 4);
	assert_missing(got, 0, R3RING_MISSING_UNKNOWN_KEY);
	assert_row(got, 1, 3, 0);
	r3ring_assembled_free(got);
}

Test(assembler_keys, what_was_cached_under_an_unknown_key_new_weights_do_not_stand_in_for)
{
	const uint64_t keys[] = {100};
	struct r3ring_assembled *got;

	feed_begin(&channel, 1, "a", 3, 0);
	cached(1, 1, 2, keys, 1);
	channel.weight_version = 1;
	computed(2, 1, 0, 3, NULL, 0);
	got = finish(1, "a", 4);
	assert_missing(got, 0, R3RING_MISSING_UNKNOWN_KEY);
	assert_row(got, 2, 1, 0);
	r3ring_assembled_free(got);
}

Test(assembler_keys, what_failed_to_load_and_is_run_under_the_same_weights_counts)
{
	const struct r3ring_span loaded = span(1, R3RING_SPAN_EXTERNAL, 0, 0, 2, 0);
	struct r3ring_assembled *got;

	feed_begin(&channel, 1, "a", 2, 0);
	feed_whole(&channel, 1, 0, &loaded, 1);
	computed(2, 1, 0, 2, NULL, 0);
	got = finish(1, "a", 3);
	assert_row(got, 0, 2, 0);
	r3ring_assembled_free(got);
}

/* Another shard ran it in between, so that what this one had was not in KV for a while. */
Test(assembler_keys, what_is_run_here_again_is_behind_its_key_again)
{
	const struct r3ring_assembler_options latest = {
		.size = sizeof(latest),
		.policy = R3RING_ROWS_LATEST,
	};
	const uint64_t keys[] = {100};
	struct r3ring_assembled *got;

	close_channel();
	open_with(&latest);
	channel.key_kind = R3RING_KEYS_BLOCK_HASH;
	feed_begin(&channel, 1, "a", 2, 0);
	computed(1, 1, 0, 2, NULL, 0);
	channel.weight_version = 1;
	channel.row_begin = channel.row_end = 2;
	computed(2, 1, 0, 2, NULL, 0);
	channel.weight_version = 2;
	channel.row_begin = channel.row_end = 0;
	computed(3, 1, 0, 1, NULL, 0);
	computed(4, 1, 1, 1, keys, 1);
	feed_begin(&channel, 2, "b", 3, 0);
	cached(5, 2, 2, keys, 1);
	got = finish(2, "b", 4);
	assert_row(got, 0, 3, 0);
	assert_row(got, 1, 4, 0);
	r3ring_assembled_free(got);
}

/* Three positions are run, the last one twice; the span of the next one names the block anew. */
static struct r3ring_assembled *run_twice(bool here)
{
	const uint64_t keys[] = {100, 101}, others[] = {100, 102};

	feed_begin(&channel, 1, "a", 3, 0);
	computed(1, 1, 0, 3, keys, 2);
	channel.row_begin = channel.row_end = here ? 0 : 1;
	computed(2, 1, 2, 1, keys + 1, 1);
	channel.row_begin = channel.row_end = 0;
	computed(4, 1, 3, 1, others + 1, 1);
	feed_begin(&channel, 2, "b", 5, 0);
	cached(5, 2, 4, others, 2);
	return finish(2, "b", 6);
}

/* Steps are numbered anew then. */
Test(assembler_keys, what_a_former_generation_lost_makes_nothing_doubtful_in_the_next)
{
	const uint64_t keys[] = {100};
	struct r3ring_span one = span(1, R3RING_SPAN_COMPUTED, 0, 0, 1, 1);
	struct r3ring_assembled *got;

	feed_begin(&channel, 1, "a", 1, 0);
	computed(7, 1, 0, 1, NULL, 0);
	feed_lost(&channel, 8, 8, R3RING_CAUSE_QUEUE_FULL, 1);
	feed_end(&channel, 1, R3RING_END_PREEMPTED, 0, 1);
	channel.generation++;
	channel.seq = 0;
	feed_schema(&channel);
	feed_begin(&channel, 1, "a", 1, 1);
	one.attempt = 1;
	feed_whole_keys(&channel, 1, 1, &one, 1, keys, 1);
	feed_key_copy(&channel, 300, 100); /* so that the next span fills the block anew */
	one.position = 1;
	feed_whole_keys(&channel, 2, 1, &one, 1, keys, 1);
	feed_begin(&channel, 2, "b", 3, 0);
	cached(3, 2, 2, keys, 1);
	got = finish(2, "b", 4);
	assert_row(got, 0, 1, 0);
	assert_row(got, 1, 2, 0);
	r3ring_assembled_free(got);
}

/* The next attempt began behind the loss, and lives on in another generation. */
Test(assembler_keys, what_a_former_attempt_lost_makes_nothing_doubtful_in_the_next)
{
	const uint64_t keys[] = {100};
	struct r3ring_span one = span(2, R3RING_SPAN_COMPUTED, 0, 0, 1, 1);
	struct r3ring_assembled *got;

	feed_begin(&channel, 1, "a", 1, 0);
	feed_lost(&channel, 1, 1, R3RING_CAUSE_QUEUE_FULL, 1);
	feed_end(&channel, 1, R3RING_END_PREEMPTED, 0, 1);
	feed_begin(&channel, 2, "a", 1, 1);
	one.attempt = 1;
	feed_whole_keys(&channel, 2, 1, &one, 1, keys, 1);
	channel.generation++;
	channel.seq = 0;
	feed_schema(&channel);
	feed_keyframe(&channel, 1);
	feed_repeated_attempt(&channel, 2, "a", 1, 1);
	one.position = 1;
	feed_whole_keys(&channel, 3, 1, &one, 1, keys, 1);
	feed_begin(&channel, 3, "b", 3, 0);
	cached(4, 3, 2, keys, 1);
	got = finish(3, "b", 4);
	assert_row(got, 0, 2, 0);
	assert_row(got, 1, 3, 0);
	r3ring_assembled_free(got);
}

/* A second pass over the block's first token may have been in the step that was lost. */
Test(assembler_keys, failure_45_behind_a_slot_is_nothing_that_a_loss_may_have_replaced)
{
	const uint64_t keys[] = {100};
	struct r3ring_assembled *got;

	feed_begin(&channel, 1, "a", 1, 0);
	computed(1, 1, 0, 1, keys, 1);
	feed_lost(&channel, 2, 2, R3RING_CAUSE_QUEUE_FULL, 1);
	computed(3, 1, 1, 1, keys, 1);
	feed_begin(&channel, 2, "b", 3, 0);
	cached(4, 2, 2, keys, 1);
	got = finish(2, "b", 4);
	assert_missing(got, 0, R3RING_MISSING_UNKNOWN_KEY);
	assert_row(got, 1, 3, 0);
	r3ring_assembled_free(got);
}

Test(assembler_keys, a_second_pass_is_what_is_in_kv)
{
	struct r3ring_assembled *got = run_twice(true);

	assert_row(got, 2, 2, 0);
	assert_row(got, 3, 4, 0);
	r3ring_assembled_free(got);
}

Test(assembler_keys, what_another_shard_ran_again_is_not_what_this_one_ran)
{
	struct r3ring_assembled *got = run_twice(false);

	assert_missing(got, 2, R3RING_MISSING_UNKNOWN_KEY);
	assert_row(got, 3, 4, 0);
	r3ring_assembled_free(got);
}
