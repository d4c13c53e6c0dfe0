/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks that an engine says it had none of: what a cache finds under their hashes was run since,
 * whatever was before.
 */
#include "tests/unit/hash_feed.h"

static struct feed channel;

static void open_channel(void)
{
	hash_create(&channel, NULL);
}

static void close_channel(void)
{
	feed_destroy(&channel);
}

TestSuite(assembler_misses, .init = open_channel, .fini = close_channel);

static void gap(void)
{
	r3ring_assembler_gap(channel.assembler, channel.channel);
}

static struct r3ring_span miss_of(uint64_t request)
{
	return keyed_span(request, R3RING_SPAN_CACHED, 0, 0, 0, 1);
}

/* The block is asked for in vain, and a row of another is run. */
static void miss(uint64_t step, uint64_t request, const char *id)
{
	const struct r3ring_span spans[] = {
		miss_of(request),
		keyed_span(request, R3RING_SPAN_COMPUTED, 0, 0, 1, 0),
	};

	feed_begin(&channel, request, id, 1, 0);
	feed_whole_keys(&channel, step, 1, spans, 2, &hash_name, 1);
}

/* Or it is run itself. */
static void miss_and_run(uint64_t step, uint64_t request, const char *id)
{
	const uint64_t keys[] = {HASH, HASH};
	const struct r3ring_span spans[] = {
		miss_of(request),
		keyed_span(request, R3RING_SPAN_COMPUTED, 0, 0, 2, 1),
	};

	feed_begin(&channel, request, id, 2, 0);
	feed_whole_keys(&channel, step, 2, spans, 2, keys, 2);
}

/* ---- behind steps that nobody saw ------------------------------------------- */

Test(assembler_misses, what_was_run_after_a_miss_behind_a_loss_is_found)
{
	hash_run(&channel, 1, 1, "a");
	gap();
	miss_and_run(3, 2, "b");
	hash_find(&channel, 4, 3, "c");
	assert_found(&channel, 3, "c", 3, 0);
}

Test(assembler_misses, so_it_is_for_a_reader_that_came_late)
{
	miss_and_run(7, 1, "a");
	hash_find(&channel, 8, 2, "b");
	assert_found(&channel, 2, "b", 7, 0);
}

Test(assembler_misses, another_may_run_the_block_steps_after_the_miss)
{
	miss(7, 1, "a");
	hash_run(&channel, 8, 2, "b");
	hash_find(&channel, 9, 3, "c");
	assert_found(&channel, 3, "c", 8, 0);
}

Test(assembler_misses, a_miss_before_the_loss_tells_nothing_of_what_was_run_in_it)
{
	miss_and_run(7, 1, "a");
	gap();
	hash_run(&channel, 9, 2, "b");
	hash_find(&channel, 10, 3, "c");
	assert_unknown(&channel, 3, "c");
}

Test(assembler_misses, of_a_block_that_was_run_and_not_missed_nothing_is_told)
{
	const struct r3ring_span other = keyed_span(1, R3RING_SPAN_CACHED, 0, 0, 0, 1);
	const uint64_t its = HASH + 1;

	feed_begin(&channel, 1, "a", 2, 0);
	feed_whole_keys(&channel, 7, 0, &other, 1, &its, 1);
	hash_run(&channel, 8, 2, "b");
	hash_find(&channel, 9, 3, "c");
	assert_unknown(&channel, 3, "c");
}

Test(assembler_misses, what_a_step_ran_that_never_told_all_of_it_may_be_the_block_that_it_missed)
{
	const struct r3ring_assembler_options options = {.size = sizeof(options), .late_steps = 1};
	struct r3ring_span spans[] = {
		miss_of(1),
		keyed_span(1, R3RING_SPAN_COMPUTED, 0, 0, 2, 0),
	};

	close_channel();
	hash_create(&channel, &options);
	spans[1].flags = R3RING_SPAN_DRAFT;
	feed_begin(&channel, 1, "a", 1, 0);
	feed_whole_keys(&channel, 1, 2, spans, 2, &hash_name, 1);
	hash_run(&channel, 2, 2, "b");
	hash_run(&channel, 3, 3, "c");
	hash_find(&channel, 4, 4, "d");
	assert_unknown(&channel, 4, "d");
}

Test(assembler_misses, a_miss_that_is_forgotten_for_want_of_room_tells_nothing)
{
	const struct r3ring_assembler_options options = {.size = sizeof(options), .max_keys = 1};

	close_channel();
	hash_create(&channel, &options);
	miss(7, 1, "a");
	hash_find_and_run_other(&channel, 8, 3, "x", 4, HASH + 1);
	hash_run(&channel, 9, 5, "b");
	hash_find(&channel, 10, 7, "c");
	assert_unknown(&channel, 7, "c");
}

/* ---- whatever was behind the hash -------------------------------------------- */

Test(assembler_misses, a_pass_before_a_miss_does_not_contradict_one_behind_it)
{
	hash_run(&channel, 1, 1, "a");
	miss_and_run(2, 2, "b");
	hash_find(&channel, 3, 3, "c");
	assert_found(&channel, 3, "c", 2, 0);
}

Test(assembler_misses, two_that_missed_a_block_and_both_ran_it_are_in_conflict)
{
	miss_and_run(1, 1, "a");
	hash_run(&channel, 2, 2, "b");
	hash_find(&channel, 3, 3, "c");
	assert_conflict(&channel, 3, "c", 1, 2);
}

Test(assembler_misses, two_that_missed_it_in_one_step_are_so_too)
{
	const uint64_t keys[] = {HASH, HASH, HASH, HASH};
	const struct r3ring_span spans[] = {
		miss_of(1),
		keyed_span(1, R3RING_SPAN_COMPUTED, 0, 0, 2, 1),
		miss_of(2),
		keyed_span(2, R3RING_SPAN_COMPUTED, 0, 2, 2, 1),
	};
	struct r3ring_assembled *got;

	feed_begin(&channel, 1, "a", 2, 0);
	feed_begin(&channel, 2, "b", 2, 0);
	feed_whole_keys(&channel, 1, 4, spans, 4, keys, 4);
	hash_find(&channel, 2, 3, "c");
	got = hash_finish(&channel, 3, "c");
	assert_missing(got, 0, R3RING_CAUSE_CONFLICT);
	assert_missing(got, 1, R3RING_CAUSE_CONFLICT);
	r3ring_assembled_free(got);
}

Test(assembler_misses, what_nobody_s_span_ran_is_not_found_behind_a_miss)
{
	const struct r3ring_span nobody = keyed_span(9, R3RING_SPAN_COMPUTED, 0, 0, 2, 1);

	feed_whole_keys(&channel, 1, 2, &nobody, 1, &hash_name, 1);
	miss_and_run(2, 2, "b");
	hash_find(&channel, 3, 3, "c");
	assert_found(&channel, 3, "c", 2, 0);
}

Test(assembler_misses, nor_is_what_other_weights_ran)
{
	channel.weight_version = 1;
	hash_run(&channel, 1, 1, "a");
	channel.weight_version = 2;
	miss_and_run(2, 2, "b");
	hash_find(&channel, 3, 3, "c");
	assert_found(&channel, 3, "c", 2, 0);
}

Test(assembler_misses, nor_what_two_weights_ran)
{
	channel.weight_version = 1;
	hash_run(&channel, 1, 1, "a");
	channel.weight_version = 2;
	hash_run(&channel, 2, 2, "b");
	miss_and_run(3, 3, "c");
	hash_find(&channel, 4, 4, "d");
	assert_found(&channel, 4, "d", 3, 0);
}

Test(assembler_misses, failure_11_nor_what_was_loaded)
{
	hash_load(&channel, 1, 1, "a");
	miss(2, 2, "b");
	hash_find_and_run(&channel, 3, 3, "c", 4);
	assert_found(&channel, 3, "c", 3, 1);
}

Test(assembler_misses, a_block_that_is_missed_and_not_run_is_unknown)
{
	hash_run(&channel, 1, 1, "a");
	miss(2, 2, "b");
	hash_find(&channel, 3, 3, "c");
	assert_unknown(&channel, 3, "c");
}

/* ---- and nothing else --------------------------------------------------------- */

Test(assembler_misses, failure_15_a_slot_is_not_missed)
{
	channel.key_kind = R3RING_KEYS_SLOT;
	hash_run(&channel, 1, 1, "a");
	miss(2, 2, "b");
	hash_find(&channel, 3, 3, "c");
	assert_found(&channel, 3, "c", 1, 0);
}

Test(assembler_misses, a_miss_does_not_tell_how_far_its_request_came_in_what_was_lost)
{
	const struct r3ring_span alone = miss_of(1);
	const struct r3ring_span again = {
		.request = 2, .rows = 4, .attempt = 1, .accepted = R3RING_UNKNOWN_U32};
	struct r3ring_assembled *got;

	hash_run(&channel, 1, 1, "a");
	gap();
	feed_whole_keys(&channel, 3, 0, &alone, 1, &hash_name, 1);
	feed_end(&channel, 1, R3RING_END_PREEMPTED, 0, 4);
	feed_begin(&channel, 2, "a", 2, 1);
	feed_whole(&channel, 4, 4, &again, 1);
	feed_end(&channel, 2, R3RING_END_FINISHED, 1, 5);
	got = take(&channel, "a");
	assert_row(got, 0, 1, 0);
	assert_row(got, 1, 1, 1);
	assert_missing(got, 2, R3RING_MISSING_GAP);
	assert_missing(got, 3, R3RING_MISSING_GAP);
	r3ring_assembled_free(got);
}
