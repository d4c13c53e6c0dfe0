/* SPDX-License-Identifier: Apache-2.0 */
/* Channels that are joined by a request's id: whether they ran one request, or each its own. */
#include "tests/unit/key_feed.h"

static struct feed open_pair(struct feed *one)
{
	return feed_create_pair(one, "decode/0");
}

static uint32_t flags_of_next(struct feed *from)
{
	struct r3ring_assembled *got = take(from, "a");
	const uint32_t flags = r3ring_assembled_get_info(got)->flags;

	r3ring_assembled_free(got);
	return flags;
}

Test(assembler_mixed, two_engines_own_requests_of_one_id_are_mixed_and_said_to_be)
{
	struct feed one, other = open_pair(&one);

	other.salt = 5;
	feed_begin(&one, 1, "a", 3, 0);
	feed_begin(&other, 1, "a", 3, 0);
	feed_computed(&one, 1, 1, 0, 3, NULL, 0);
	feed_computed(&other, 1, 1, 0, 3, NULL, 0);
	/* What only one has is of that one's text. */
	feed_computed(&other, 2, 1, 3, 1, NULL, 0);
	feed_end(&one, 1, R3RING_END_FINISHED, 0, 4);
	feed_end(&other, 1, R3RING_END_FINISHED, 0, 5);
	feed_expect_mixed(&one, "a", "test/0", "decode/0");
	feed_destroy(&one);
}

Test(assembler_mixed, so_are_those_of_two_ranks_of_one_instance)
{
	struct feed one, other = feed_create_pair(&one, "test/1");

	other.salt = 5;
	feed_begin(&one, 1, "a", 3, 0);
	feed_begin(&other, 1, "a", 3, 0);
	feed_computed(&one, 1, 1, 0, 3, NULL, 0);
	feed_computed(&other, 1, 1, 0, 3, NULL, 0);
	feed_end(&one, 1, R3RING_END_FINISHED, 0, 4);
	feed_end(&other, 1, R3RING_END_FINISHED, 0, 4);
	cr_expect_eq(flags_of_next(&one), R3RING_ASSEMBLED_MIXED);
	feed_destroy(&one);
}

/* Of one text the same experts are chosen, and yet what is sampled need not be the same. */
Test(assembler_mixed, so_are_those_of_one_text_where_both_go_on_from_its_prompt)
{
	struct feed one, other = feed_create_pair(&one, "test/1");

	feed_begin(&one, 1, "a", 3, 0);
	feed_begin(&other, 1, "a", 3, 0);
	feed_computed(&one, 1, 1, 0, 3, NULL, 0);
	feed_computed(&other, 1, 1, 0, 3, NULL, 0);
	feed_end(&one, 1, R3RING_END_FINISHED, 0, 5);
	feed_end(&other, 1, R3RING_END_FINISHED, 0, 9);
	feed_expect_mixed(&one, "a", "test/0", "test/1");
	feed_destroy(&one);
}

Test(assembler_mixed, a_prefill_of_another_prompt_than_the_decoding_one_s_is_mixed)
{
	const struct r3ring_span loaded = keyed_span(1, R3RING_SPAN_EXTERNAL, 0, 0, 6, 0);
	struct feed prefill, decode = open_pair(&prefill);

	feed_begin(&prefill, 3, "a", 4, 0);
	feed_computed(&prefill, 1, 3, 0, 4, NULL, 0);
	feed_end(&prefill, 3, R3RING_END_FINISHED, 0, 4);
	feed_begin(&decode, 1, "a", 6, 0);
	feed_whole(&decode, 1, 1, &loaded, 1);
	feed_computed(&decode, 2, 1, 6, 1, NULL, 0);
	feed_end(&decode, 1, R3RING_END_FINISHED, 0, 8);
	cr_expect_eq(flags_of_next(&prefill), R3RING_ASSEMBLED_MIXED);
	feed_destroy(&prefill);
}

/* Keys and values come in blocks; the rest is run again, and comes to the same. */
Test(assembler_mixed, what_the_decoding_engine_runs_again_of_the_prompt_mixes_nothing)
{
	struct r3ring_span spans[] = {keyed_span(1, R3RING_SPAN_EXTERNAL, 0, 0, 2, 0),
				      keyed_span(1, R3RING_SPAN_COMPUTED, 2, 0, 2, 0)};
	struct feed prefill, decode = open_pair(&prefill);

	spans[0].rows = 2;
	spans[1].row = 2;
	feed_begin(&prefill, 3, "a", 4, 0);
	feed_computed(&prefill, 1, 3, 0, 4, NULL, 0);
	feed_end(&prefill, 3, R3RING_END_FINISHED, 0, 4);
	feed_begin(&decode, 1, "a", 5, 0);
	feed_whole(&decode, 1, 4, spans, 2);
	feed_computed(&decode, 2, 1, 4, 1, NULL, 0);
	feed_end(&decode, 1, R3RING_END_FINISHED, 0, 6);
	cr_expect_eq(flags_of_next(&prefill), 0);
	feed_destroy(&prefill);
}

/* A prompt of 4, run whole by the one; the other loads 3 of it and runs the last, as the first
 * engine's step 1. */
static void prefill_and_decode(struct feed *prefill, struct feed *decode)
{
	struct r3ring_span spans[] = {keyed_span(1, R3RING_SPAN_EXTERNAL, 0, 0, 3, 0),
				      keyed_span(1, R3RING_SPAN_COMPUTED, 3, 0, 1, 0)};

	spans[1].row = 3;
	feed_begin(prefill, 3, "a", 4, 0);
	feed_computed(prefill, 1, 3, 0, 4, NULL, 0);
	feed_begin(decode, 1, "a", 4, 0);
	feed_whole(decode, 1, 4, spans, 2);
}

static void end_both(struct feed *prefill, struct feed *decode, uint32_t kept)
{
	feed_end(prefill, 3, R3RING_END_FINISHED, 0, 4);
	feed_end(decode, 1, R3RING_END_FINISHED, 0, kept);
}

Test(assembler_mixed, what_one_engine_runs_again_and_differs_from_itself_mixes_nothing)
{
	struct feed prefill, decode = open_pair(&prefill);

	prefill_and_decode(&prefill, &decode);
	decode.salt = 5;
	feed_computed(&decode, 2, 1, 3, 1, NULL, 0);
	end_both(&prefill, &decode, 5);
	cr_expect_eq(flags_of_next(&prefill), 0);
	feed_destroy(&prefill);
}

static uint16_t in_other_order(const struct feed *from, uint64_t step, uint32_t row, uint32_t layer,
			       uint32_t k)
{
	return feed_id(from->salt, step, row, layer, FEED_TOP_K - 1 - k);
}

Test(assembler_mixed, the_same_experts_in_another_order_mix_nothing)
{
	struct feed prefill, decode = open_pair(&prefill);
	struct r3ring_assembled *got;

	decode.id = in_other_order;
	prefill_and_decode(&prefill, &decode);
	end_both(&prefill, &decode, 5);
	got = take(&prefill, "a");
	cr_expect_eq(r3ring_assembled_get_info(got)->flags, 0);
	assert_missing(got, 3, R3RING_CAUSE_CONFLICT);
	r3ring_assembled_free(got);
	feed_destroy(&prefill);
}

/* Another request's passes, which came out otherwise. */
Test(assembler_mixed, what_a_cache_had_of_another_request_mixes_nothing)
{
	const uint64_t keys[] = {7, 8, 9};
	struct r3ring_span filled = keyed_span(2, R3RING_SPAN_COMPUTED, 0, 0, 3, 0);
	struct r3ring_span spans[] = {keyed_span(1, R3RING_SPAN_CACHED, 0, 0, 3, 0),
				      keyed_span(1, R3RING_SPAN_COMPUTED, 3, 0, 1, 0)};
	struct feed prefill, decode = open_pair(&prefill);

	filled.keys = 3;
	spans[0].keys = 3;
	spans[1].row = 3;
	feed_begin(&prefill, 3, "a", 4, 0);
	feed_computed(&prefill, 2, 3, 0, 4, NULL, 0);
	decode.key_kind = R3RING_KEYS_SLOT;
	decode.tokens_per_key = 1;
	feed_begin(&decode, 2, "b", 3, 0);
	feed_whole_keys(&decode, 1, 3, &filled, 1, keys, 3);
	feed_begin(&decode, 1, "a", 4, 0);
	feed_whole_keys(&decode, 2, 4, spans, 2, keys, 3);
	end_both(&prefill, &decode, 5);
	cr_expect_eq(flags_of_next(&prefill), 0);
	feed_destroy(&prefill);
}

Test(assembler_mixed, tokens_that_each_sampled_mix_nothing)
{
	const struct r3ring_span loaded = keyed_span(1, R3RING_SPAN_EXTERNAL, 0, 0, 4, 0);
	/* Of one instance, whose ranks say together how much was kept. */
	struct feed prefill, decode = feed_create_pair(&prefill, "test/1");

	feed_begin(&prefill, 3, "a", 4, 0);
	feed_computed(&prefill, 1, 3, 0, 5, NULL, 0);
	feed_begin(&decode, 1, "a", 4, 0);
	feed_whole(&decode, 1, 1, &loaded, 1);
	feed_computed(&decode, 2, 1, 4, 1, NULL, 0);
	end_both(&prefill, &decode, 6);
	cr_expect_eq(flags_of_next(&prefill), 0);
	feed_destroy(&prefill);
}

/* Engines that number their attempts go on from where each was. */
Test(assembler_mixed, only_the_first_attempt_that_both_know_tells_by_its_prompt)
{
	struct feed prefill, decode = open_pair(&prefill);

	prefill_and_decode(&prefill, &decode);
	feed_end(&prefill, 3, R3RING_END_PREEMPTED, 0, 4);
	feed_begin(&prefill, 3, "a", 4, 1);
	feed_end(&decode, 1, R3RING_END_PREEMPTED, 0, 9);
	feed_begin(&decode, 1, "a", 9, 1);
	feed_end(&prefill, 3, R3RING_END_FINISHED, 1, 4);
	feed_end(&decode, 1, R3RING_END_FINISHED, 1, 10);
	cr_expect_eq(flags_of_next(&prefill), 0);
	feed_destroy(&prefill);
}

Test(assembler_mixed, attempts_that_one_of_them_does_not_know_are_passed_over)
{
	struct feed prefill, decode = open_pair(&prefill);

	feed_begin(&prefill, 3, "a", 4, 0);
	feed_computed(&prefill, 1, 3, 0, 4, NULL, 0);
	feed_end(&prefill, 3, R3RING_END_PREEMPTED, 0, 4);
	feed_begin(&prefill, 3, "a", 4, 1);
	feed_begin(&decode, 1, "a", 9, 1);
	feed_end(&prefill, 3, R3RING_END_FINISHED, 1, 4);
	feed_end(&decode, 1, R3RING_END_FINISHED, 1, 10);
	cr_expect_eq(flags_of_next(&prefill), R3RING_ASSEMBLED_MIXED);
	feed_destroy(&prefill);
}

Test(assembler_mixed, cells_that_never_came_say_nothing)
{
	struct feed prefill, decode = open_pair(&prefill);
	const struct r3ring_span again = keyed_span(1, R3RING_SPAN_COMPUTED, 0, 0, 4, 0);

	feed_begin(&prefill, 3, "a", 4, 0);
	feed_computed(&prefill, 1, 3, 0, 4, NULL, 0);
	feed_begin(&decode, 1, "a", 4, 0);
	feed_step(&decode, 1, 4, &again, 1, NULL, 0);
	feed_layers(&decode, 1, 4, 0, 1);
	feed_step_end(&decode, 1, -1, R3RING_CAUSE_NONE);
	end_both(&prefill, &decode, 5);
	cr_expect_eq(flags_of_next(&prefill), 0);
	feed_destroy(&prefill);
}

Test(assembler_mixed, a_token_that_two_shards_of_an_engine_ran_mixes_nothing)
{
	const struct r3ring_assembler_options options = {.size = sizeof(options), .min_ends = 2};
	struct feed one, other;

	feed_create(&one, &options);
	other = feed_channel(&one, "test/1");
	one.rank.sp = (struct r3ring_coordinate){0, 2};
	other.rank.sp = (struct r3ring_coordinate){1, 2};
	feed_schema(&one);
	feed_schema(&other);
	feed_begin(&one, 1, "a", 2, 0);
	feed_begin(&other, 1, "a", 2, 0);
	feed_computed(&one, 1, 1, 0, 2, NULL, 0);
	feed_computed(&other, 2, 1, 1, 1, NULL, 0);
	feed_end(&one, 1, R3RING_END_FINISHED, 0, 3);
	feed_end(&other, 1, R3RING_END_FINISHED, 0, 3);
	cr_expect_eq(flags_of_next(&one), 0);
	feed_destroy(&one);
}

/* The pass that filled KV was lost: what is known is a later one that came out otherwise. */
static uint32_t flags_of_a_lost_pass(uint32_t run_again)
{
	const struct r3ring_span loaded = keyed_span(1, R3RING_SPAN_EXTERNAL, 0, 0, 2, 0);
	struct feed prefill, decode = open_pair(&prefill);
	uint32_t flags;

	feed_begin(&prefill, 3, "a", 4, 0);
	feed_computed(&prefill, 1, 3, 0, 4, NULL, 0);
	feed_begin(&decode, 1, "a", 4, 0);
	feed_whole(&decode, 1, 1, &loaded, 1);
	r3ring_assembler_gap(decode.assembler, decode.channel);
	feed_computed(&decode, 3, 1, 4 - run_again, run_again, NULL, 0);
	end_both(&prefill, &decode, 5);
	flags = flags_of_next(&prefill);
	feed_destroy(&prefill);
	return flags;
}

Test(assembler_mixed, a_single_position_says_nothing_where_records_were_lost)
{
	cr_expect_eq(flags_of_a_lost_pass(1), 0);
}

/* Of the other token next to nothing came. */
Test(assembler_mixed, nor_beside_another_that_agrees)
{
	struct r3ring_span spans[] = {keyed_span(1, R3RING_SPAN_EXTERNAL, 0, 0, 2, 0),
				      keyed_span(1, R3RING_SPAN_COMPUTED, 2, 0, 1, 0)};
	struct feed prefill, decode = open_pair(&prefill);

	spans[1].row = 2;
	feed_begin(&prefill, 3, "a", 4, 0);
	feed_computed(&prefill, 1, 3, 0, 4, NULL, 0);
	feed_begin(&decode, 1, "a", 4, 0);
	feed_step(&decode, 1, 4, spans, 2, NULL, 0);
	feed_layers(&decode, 1, 4, 0, 1);
	r3ring_assembler_gap(decode.assembler, decode.channel);
	feed_computed(&decode, 3, 1, 3, 1, NULL, 0);
	end_both(&prefill, &decode, 5);
	cr_expect_eq(flags_of_next(&prefill), 0);
	feed_destroy(&prefill);
}

/* The shard that ran a token of the prompt lost it, and another one ran it again, to other ids. */
Test(assembler_mixed, nor_where_the_shard_that_ran_it_first_lost_them)
{
	const struct r3ring_assembler_options options = {.size = sizeof(options), .min_ends = 3};
	const struct r3ring_span again = keyed_span(1, R3RING_SPAN_COMPUTED, 1, 0, 1, 0);
	struct feed prefill, first, second;

	feed_create(&prefill, &options);
	feed_schema(&prefill);
	first = feed_channel(&prefill, "decode/0");
	second = feed_channel(&prefill, "decode/1");
	first.rank.sp = (struct r3ring_coordinate){0, 2};
	second.rank.sp = (struct r3ring_coordinate){1, 2};
	feed_schema(&first);
	feed_schema(&second);
	feed_begin(&prefill, 3, "a", 2, 0);
	feed_computed(&prefill, 1, 3, 0, 2, NULL, 0);
	feed_begin(&first, 1, "a", 2, 0);
	feed_begin(&second, 1, "a", 2, 0);
	r3ring_assembler_gap(first.assembler, first.channel);
	feed_whole(&second, 2, 1, &again, 1);
	feed_end(&prefill, 3, R3RING_END_FINISHED, 0, 2);
	feed_end(&first, 1, R3RING_END_FINISHED, 0, 3);
	feed_end(&second, 1, R3RING_END_FINISHED, 0, 3);
	cr_expect_eq(flags_of_next(&prefill), 0);
	feed_destroy(&prefill);
}

Test(assembler_mixed, two_that_differ_say_it_there_too)
{
	cr_expect_eq(flags_of_a_lost_pass(2), R3RING_ASSEMBLED_MIXED);
}
