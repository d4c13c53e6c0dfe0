/* SPDX-License-Identifier: Apache-2.0 */
/* What is in KV behind a key where tokens were run again, or records of it were lost. */
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

TestSuite(assembler_kv, .init = open_channel, .fini = close_channel);

/* A pass that comes to other routes makes its own request's cell doubtful, nobody else's. */
Test(assembler_kv, a_contradiction_stays_with_the_request_it_is_in)
{
	const uint64_t keys[] = {100};
	struct r3ring_assembled *got;

	feed_begin(&channel, 1, "a", 2, 0);
	feed_computed(&channel, 1, 1, 0, 2, keys, 1);
	feed_begin(&channel, 2, "b", 3, 0);
	feed_cached(&channel, 2, 2, 2, keys, 1);
	feed_computed(&channel, 3, 1, 0, 1, NULL, 0);
	got = feed_finish(&channel, 2, "b", 4);
	assert_row(got, 0, 1, 0);
	r3ring_assembled_free(got);
	got = feed_finish(&channel, 1, "a", 3);
	assert_missing(got, 0, R3RING_CAUSE_CONFLICT);
	assert_row(got, 1, 1, 1);
	r3ring_assembled_free(got);
}

/* New weights ran a block's tokens again, in two steps: behind its hash is what they gave. */
Test(assembler_kv, behind_a_key_is_what_is_in_kv_and_not_what_counts)
{
	const uint64_t keys[] = {100};
	struct r3ring_assembled *got;

	channel.key_kind = R3RING_KEYS_BLOCK_HASH;
	feed_begin(&channel, 1, "a", 2, 0);
	feed_computed(&channel, 1, 1, 0, 2, NULL, 0);
	channel.weight_version = 1;
	feed_computed(&channel, 2, 1, 0, 1, NULL, 0);
	feed_computed(&channel, 3, 1, 1, 1, keys, 1);
	feed_begin(&channel, 2, "b", 3, 0);
	feed_cached(&channel, 4, 2, 2, keys, 1);
	got = feed_finish(&channel, 2, "b", 4);
	assert_row(got, 0, 2, 0);
	assert_row(got, 1, 3, 0);
	r3ring_assembled_free(got);
	got = feed_finish(&channel, 1, "a", 3);
	assert_row(got, 0, 1, 0);
	assert_row(got, 1, 1, 1);
	r3ring_assembled_free(got);
}

/* The pass of new weights over the block's first token may have been in the gap. */
Test(assembler_kv, behind_a_key_is_nothing_that_a_gap_may_have_replaced)
{
	const uint64_t keys[] = {100};
	struct r3ring_assembled *got;

	channel.key_kind = R3RING_KEYS_BLOCK_HASH;
	feed_begin(&channel, 1, "a", 2, 0);
	feed_computed(&channel, 1, 1, 0, 2, NULL, 0);
	r3ring_assembler_gap(channel.assembler, channel.channel);
	channel.weight_version = 1;
	feed_computed(&channel, 3, 9, 0, 1, NULL, 0);
	channel.weight_version = 2;
	feed_computed(&channel, 4, 1, 1, 1, keys, 1);
	feed_begin(&channel, 2, "b", 3, 0);
	feed_cached(&channel, 5, 2, 2, keys, 1);
	got = feed_finish(&channel, 2, "b", 4);
	assert_missing(got, 0, R3RING_MISSING_UNKNOWN_KEY);
	assert_row(got, 1, 4, 0);
	r3ring_assembled_free(got);
}

Test(assembler_kv, what_was_cached_under_an_unknown_key_new_weights_do_not_stand_in_for)
{
	const uint64_t keys[] = {100};
	struct r3ring_assembled *got;

	feed_begin(&channel, 1, "a", 3, 0);
	feed_cached(&channel, 1, 1, 2, keys, 1);
	channel.weight_version = 1;
	feed_computed(&channel, 2, 1, 0, 3, NULL, 0);
	got = feed_finish(&channel, 1, "a", 4);
	assert_missing(got, 0, R3RING_MISSING_UNKNOWN_KEY);
	assert_row(got, 2, 1, 0);
	r3ring_assembled_free(got);
}

Test(assembler_kv, what_failed_to_load_and_is_run_under_the_same_weights_counts)
{
	const struct r3ring_span loaded = keyed_span(1, R3RING_SPAN_EXTERNAL, 0, 0, 2, 0);
	struct r3ring_assembled *got;

	feed_begin(&channel, 1, "a", 2, 0);
	feed_whole(&channel, 1, 0, &loaded, 1);
	feed_computed(&channel, 2, 1, 0, 2, NULL, 0);
	got = feed_finish(&channel, 1, "a", 3);
	assert_row(got, 0, 2, 0);
	r3ring_assembled_free(got);
}

/* Another shard ran it in between, so that what this one had was not in KV for a while. */
Test(assembler_kv, what_is_run_here_again_is_behind_its_key_again)
{
	const struct r3ring_assembler_options latest = {
		.size = sizeof(latest),
		.policy = R3RING_ROWS_LATEST,
	};
	const uint64_t keys[] = {100};
	struct r3ring_assembled *got;

	close_channel();
	feed_create_slots(&channel, &latest);
	channel.key_kind = R3RING_KEYS_BLOCK_HASH;
	feed_begin(&channel, 1, "a", 2, 0);
	feed_computed(&channel, 1, 1, 0, 2, NULL, 0);
	channel.weight_version = 1;
	channel.row_begin = channel.row_end = 2;
	feed_computed(&channel, 2, 1, 0, 2, NULL, 0);
	channel.weight_version = 2;
	channel.row_begin = channel.row_end = 0;
	feed_computed(&channel, 3, 1, 0, 1, NULL, 0);
	feed_computed(&channel, 4, 1, 1, 1, keys, 1);
	feed_begin(&channel, 2, "b", 3, 0);
	feed_cached(&channel, 5, 2, 2, keys, 1);
	got = feed_finish(&channel, 2, "b", 4);
	assert_row(got, 0, 3, 0);
	assert_row(got, 1, 4, 0);
	r3ring_assembled_free(got);
}

/* Steps are numbered anew then. */
Test(assembler_kv, what_a_former_generation_lost_makes_nothing_doubtful_in_the_next)
{
	const uint64_t keys[] = {100};
	struct r3ring_span one = keyed_span(1, R3RING_SPAN_COMPUTED, 0, 0, 1, 1);
	struct r3ring_assembled *got;

	feed_begin(&channel, 1, "a", 1, 0);
	feed_computed(&channel, 7, 1, 0, 1, NULL, 0);
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
	feed_cached(&channel, 3, 2, 2, keys, 1);
	got = feed_finish(&channel, 2, "b", 4);
	assert_row(got, 0, 1, 0);
	assert_row(got, 1, 2, 0);
	r3ring_assembled_free(got);
}

/* The next attempt began behind the loss, and lives on in another generation. */
Test(assembler_kv, what_a_former_attempt_lost_makes_nothing_doubtful_in_the_next)
{
	const uint64_t keys[] = {100};
	struct r3ring_span one = keyed_span(2, R3RING_SPAN_COMPUTED, 0, 0, 1, 1);
	struct r3ring_assembled *got;

	feed_begin(&channel, 1, "a", 1, 0);
	feed_lost(&channel, 1, 1, R3RING_CAUSE_QUEUE_FULL, 1);
	feed_end(&channel, 1, R3RING_END_PREEMPTED, 0, 1);
	feed_begin(&channel, 2, "a", 1, 1);
	one.attempt = 1;
	feed_whole_keys(&channel, 2, 1, &one, 1, keys, 1);
	channel.generation++;
	channel.continues = 1;
	channel.seq = 0;
	feed_schema(&channel);
	feed_keyframe(&channel, 1);
	feed_repeated_attempt(&channel, 2, "a", 1, 1);
	one.position = 1;
	feed_whole_keys(&channel, 3, 1, &one, 1, keys, 1);
	feed_begin(&channel, 3, "b", 3, 0);
	feed_cached(&channel, 4, 3, 2, keys, 1);
	got = feed_finish(&channel, 3, "b", 4);
	assert_row(got, 0, 2, 0);
	assert_row(got, 1, 3, 0);
	r3ring_assembled_free(got);
}

/* A second pass over the block's first token may have been in the step that was lost. */
Test(assembler_kv, failure_45_behind_a_slot_is_nothing_that_a_loss_may_have_replaced)
{
	const uint64_t keys[] = {100};
	struct r3ring_assembled *got;

	feed_begin(&channel, 1, "a", 1, 0);
	feed_computed(&channel, 1, 1, 0, 1, keys, 1);
	feed_lost(&channel, 2, 2, R3RING_CAUSE_QUEUE_FULL, 1);
	feed_computed(&channel, 3, 1, 1, 1, keys, 1);
	feed_begin(&channel, 2, "b", 3, 0);
	feed_cached(&channel, 4, 2, 2, keys, 1);
	got = feed_finish(&channel, 2, "b", 4);
	assert_missing(got, 0, R3RING_MISSING_UNKNOWN_KEY);
	assert_row(got, 1, 3, 0);
	r3ring_assembled_free(got);
}

/* Three positions are run, the last one twice; the span of the next one names the block anew. */
static struct r3ring_assembled *run_twice(bool here)
{
	const uint64_t keys[] = {100, 101}, others[] = {100, 102};

	feed_begin(&channel, 1, "a", 3, 0);
	feed_computed(&channel, 1, 1, 0, 3, keys, 2);
	channel.row_begin = channel.row_end = here ? 0 : 1;
	feed_computed(&channel, 2, 1, 2, 1, keys + 1, 1);
	channel.row_begin = channel.row_end = 0;
	feed_computed(&channel, 4, 1, 3, 1, others + 1, 1);
	feed_begin(&channel, 2, "b", 5, 0);
	feed_cached(&channel, 5, 2, 4, others, 2);
	return feed_finish(&channel, 2, "b", 6);
}

Test(assembler_kv, a_second_pass_is_what_is_in_kv)
{
	struct r3ring_assembled *got = run_twice(true);

	assert_row(got, 2, 2, 0);
	assert_row(got, 3, 4, 0);
	r3ring_assembled_free(got);
}

Test(assembler_kv, what_another_shard_ran_again_is_not_what_this_one_ran)
{
	struct r3ring_assembled *got = run_twice(false);

	assert_missing(got, 2, R3RING_MISSING_UNKNOWN_KEY);
	assert_row(got, 3, 4, 0);
	r3ring_assembled_free(got);
}
