/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks that steps may have run which nobody saw: a cache may find them under any hash. */
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

TestSuite(assembler_blocks_unseen, .init = open_channel, .fini = close_channel);

static void gap(void)
{
	r3ring_assembler_gap(channel.assembler, channel.channel);
}

Test(assembler_blocks_unseen, what_a_step_that_was_lost_ran_under_a_hash_may_be_found)
{
	hash_run(&channel, 1, 1, "a");
	gap();
	hash_find(&channel, 3, 2, "b");
	assert_unknown(&channel, 2, "b");
}

Test(assembler_blocks_unseen, so_it_may_be_where_the_block_was_run_behind_the_loss)
{
	hash_run(&channel, 1, 1, "a");
	gap();
	hash_find_and_run_other(&channel, 3, 9, "z", 10, HASH + 1);
	hash_run(&channel, 4, 2, "b");
	hash_find(&channel, 5, 3, "c");
	assert_unknown(&channel, 3, "c");
}

Test(assembler_blocks_unseen, a_loss_that_the_ring_tells_of_is_one)
{
	hash_run(&channel, 1, 1, "a");
	feed_lost(&channel, 2, 2, R3RING_CAUSE_QUEUE_FULL, 1);
	hash_find(&channel, 3, 2, "b");
	assert_unknown(&channel, 2, "b");
}

Test(assembler_blocks_unseen, a_loss_that_took_no_step_took_no_block)
{
	hash_run(&channel, 1, 1, "a");
	gap();
	hash_find(&channel, 2, 2, "b");
	assert_found(&channel, 2, "b", 1, 0);
}

Test(assembler_blocks_unseen,
     what_runs_under_new_weights_names_other_blocks_than_those_that_were_lost)
{
	channel.weight_version = 1;
	hash_find_and_run_other(&channel, 1, 1, "a", 2, HASH + 1);
	gap();
	channel.weight_version = 2;
	hash_find_and_run_other(&channel, 3, 3, "b", 5, HASH + 2);
	channel.weight_version = 3;
	hash_run(&channel, 4, 7, "c");
	hash_find(&channel, 5, 8, "d");
	assert_found(&channel, 8, "d", 4, 0);
}

Test(assembler_blocks_unseen, new_weights_tell_nothing_of_an_engine_whose_hashes_stay)
{
	const uint64_t other = HASH + 1;
	const struct r3ring_span one = keyed_span(9, R3RING_SPAN_COMPUTED, 0, 0, 2, 1);

	channel.weight_version = 1;
	feed_begin(&channel, 9, "z", 2, 0);
	feed_whole_keys(&channel, 1, 2, &one, 1, &other, 1);
	gap();
	channel.weight_version = 2;
	feed_whole_keys(&channel, 3, 2, &one, 1, &other, 1);
	channel.weight_version = 3;
	hash_run(&channel, 4, 3, "c");
	hash_find(&channel, 5, 4, "d");
	assert_unknown(&channel, 4, "d");
}

/* What the engine told last before it died: the rest of the map may have run the block again. */
Test(assembler_blocks_unseen, so_it_may_be_where_a_generation_ended_before_the_step_s_map_did)
{
	struct r3ring_assembled *got;

	hash_run(&channel, 1, 1, "a");
	channel.flags = R3RING_STEP_MAP_CONTINUED;
	hash_find(&channel, 2, 2, "b");
	channel.flags = 0;
	channel.generation = 2;
	channel.seq = 0;
	feed_schema(&channel);
	r3ring_assembler_flush(channel.assembler);
	r3ring_assembled_free(take(&channel, "a"));
	got = take(&channel, "b");
	assert_missing(got, 0, R3RING_MISSING_UNKNOWN_KEY);
	assert_missing(got, 1, R3RING_MISSING_UNKNOWN_KEY);
	r3ring_assembled_free(got);
}

Test(assembler_blocks_unseen, what_ran_before_a_reader_came_may_be_found)
{
	hash_run(&channel, 7, 1, "a");
	hash_find(&channel, 8, 2, "b");
	assert_unknown(&channel, 2, "b");
}

Test(assembler_blocks_unseen, what_ran_in_a_generation_that_this_one_goes_on_from_may_be_found)
{
	channel.generation = 2;
	channel.continues = 1;
	channel.seq = 0;
	feed_schema(&channel);
	hash_run(&channel, 1, 1, "a");
	hash_find(&channel, 2, 2, "b");
	assert_unknown(&channel, 2, "b");
}

Test(assembler_blocks_unseen, what_ran_in_a_generation_of_another_engine_is_not_found)
{
	hash_run(&channel, 1, 1, "a");
	gap();
	hash_find_and_run_other(&channel, 3, 9, "z", 10, HASH + 1);
	channel.generation = 2;
	channel.seq = 0;
	feed_schema(&channel);
	hash_run(&channel, 1, 2, "b");
	hash_find(&channel, 2, 3, "c");
	assert_found(&channel, 3, "c", 1, 0);
}

Test(assembler_blocks_unseen, a_block_whose_hash_was_never_told_may_be_found)
{
	const struct r3ring_assembler_options options = {.size = sizeof(options), .late_steps = 1};

	close_channel();
	hash_create(&channel, &options);
	hash_draft(&channel, 1, 1);
	hash_run(&channel, 2, 2, "b");
	hash_run(&channel, 3, 3, "c");
	hash_find(&channel, 4, 4, "d");
	assert_unknown(&channel, 4, "d");
}

Test(assembler_blocks_unseen, a_copy_that_was_lost_may_be_found)
{
	hash_run(&channel, 1, 1, "a");
	feed_key_copy(&channel, HASH, HASH + 1);
	gap();
	hash_find(&channel, 2, 2, "b");
	assert_unknown(&channel, 2, "b");
}
