/* SPDX-License-Identifier: Apache-2.0 */
/* Two engines know of one request, prefill and decode; or each has its own, of one id. */
#include "tests/unit/key_feed.h"

/* Two channels by both of which a request's end must be told. */
static struct feed open_pair(struct feed *one, const char *name)
{
	const struct r3ring_assembler_options options = {.size = sizeof(options), .min_ends = 2};
	struct feed other;

	feed_create(one, &options);
	other = feed_channel(one, name);
	feed_schema(one);
	feed_schema(&other);
	return other;
}

static uint32_t flags_of_next(struct feed *from)
{
	struct r3ring_assembled *got = take(from, "a");
	const uint32_t flags = r3ring_assembled_get_info(got)->flags;

	r3ring_assembled_free(got);
	return flags;
}

/* A prompt of four that "test/0" runs, and a token that @decoding runs behind it. */
static void expect_joined(const char *decoding)
{
	const struct r3ring_span loaded = keyed_span(1, R3RING_SPAN_EXTERNAL, 0, 0, 4, 0);
	struct feed prefill, decode = open_pair(&prefill, decoding);
	struct r3ring_assembled *got;

	feed_begin(&prefill, 3, "a", 4, 0);
	feed_computed(&prefill, 1, 3, 0, 4, NULL, 0);
	feed_end(&prefill, 3, R3RING_END_FINISHED, 0, 4);
	cr_assert_null(r3ring_assembler_take(prefill.assembler));
	feed_begin(&decode, 1, "a", 4, 0);
	feed_whole(&decode, 1, 1, &loaded, 1);
	feed_computed(&decode, 2, 1, 4, 1, NULL, 0);
	feed_end(&decode, 1, R3RING_END_FINISHED, 0, 6);
	got = take(&prefill, "a");
	for (uint32_t position = 0; position < 4; position++)
		assert_row(got, position, 1, position);
	assert_row(got, 4, 2, 0);
	cr_expect_eq(r3ring_assembled_get_info(got)->tokens, 6);
	r3ring_assembled_free(got);
	feed_destroy(&prefill);
}

Test(assembler_engines, failure_18_prefill_and_decode_of_two_engines_are_joined)
{
	expect_joined("decode/0");
}

Test(assembler_engines, prefill_and_decode_as_ranks_of_one_instance_are_joined)
{
	expect_joined("test/1");
}

/* A prompt of three, which each has as its own. */
static void expect_mixed(const char *name)
{
	struct feed one, other = open_pair(&one, name);

	other.salt = 5;
	feed_begin(&one, 1, "a", 3, 0);
	feed_begin(&other, 1, "a", 3, 0);
	feed_computed(&one, 1, 1, 0, 3, NULL, 0);
	feed_computed(&other, 1, 1, 0, 3, NULL, 0);
	/* What only one has is of that one's text. */
	feed_computed(&other, 2, 1, 3, 1, NULL, 0);
	feed_end(&one, 1, R3RING_END_FINISHED, 0, 4);
	feed_end(&other, 1, R3RING_END_FINISHED, 0, 5);
	cr_expect_eq(flags_of_next(&one), R3RING_ASSEMBLED_MIXED);
	feed_destroy(&one);
}

Test(assembler_engines, two_engines_own_requests_of_one_id_are_mixed_and_said_to_be)
{
	expect_mixed("decode/0");
}

Test(assembler_engines, so_are_those_of_two_ranks_of_one_instance)
{
	expect_mixed("test/1");
}

Test(assembler_engines, a_prefill_of_another_prompt_than_the_decoding_one_s_is_mixed)
{
	const struct r3ring_span loaded = keyed_span(1, R3RING_SPAN_EXTERNAL, 0, 0, 6, 0);
	struct feed prefill, decode = open_pair(&prefill, "decode/0");

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
Test(assembler_engines, what_the_decoding_engine_runs_again_of_the_prompt_mixes_nothing)
{
	struct r3ring_span spans[] = {keyed_span(1, R3RING_SPAN_EXTERNAL, 0, 0, 2, 0),
				      keyed_span(1, R3RING_SPAN_COMPUTED, 2, 0, 2, 0)};
	struct feed prefill, decode = open_pair(&prefill, "decode/0");

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
