/* SPDX-License-Identifier: Apache-2.0 */
/* Two engines know of one request: one ran the prompt, the other decodes. */
#include "tests/unit/key_feed.h"

/* A prompt of four that "test/0" runs, and a token that @decoding runs behind it. */
static void expect_joined(const char *decoding)
{
	const struct r3ring_span loaded = keyed_span(1, R3RING_SPAN_EXTERNAL, 0, 0, 4, 0);
	struct feed prefill, decode = feed_create_pair(&prefill, decoding);
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

/* A prompt of four; "test/0" returns a token more, which it runs, and another two. */
static struct feed overrun_begin(struct feed *prefill)
{
	struct feed decode = feed_create_pair(prefill, "test/1");

	feed_begin(prefill, 3, "a", 4, 0);
	feed_computed(prefill, 1, 3, 0, 4, NULL, 0);
	for (uint32_t position = 4; position < 7; position++)
		feed_computed(prefill, position - 2, 3, position, 1, NULL, 0);
	feed_end(prefill, 3, R3RING_END_FINISHED, 0, 5);
	feed_begin(&decode, 1, "a", 4, 0);
	return decode;
}

static void run_again(struct feed *decode, uint64_t step, uint32_t position, uint32_t rows)
{
	const struct r3ring_span one = {.request = 2,
					.position = position,
					.rows = rows,
					.attempt = 1,
					.accepted = R3RING_UNKNOWN_U32};

	feed_whole(decode, step, rows, &one, 1);
}

Test(assembler_engines, what_one_ran_past_its_end_is_no_pass_over_the_tokens_of_the_other)
{
	struct feed prefill, decode = overrun_begin(&prefill);
	struct r3ring_assembled *got;

	feed_computed(&decode, 11, 1, 4, 1, NULL, 0);
	feed_end(&decode, 1, R3RING_END_PREEMPTED, 0, 6);
	feed_begin(&decode, 2, "a", 6, 1);
	run_again(&decode, 12, 0, 6);
	run_again(&decode, 13, 6, 1);
	feed_end(&decode, 2, R3RING_END_FINISHED, 1, 8);
	got = take(&prefill, "a");
	assert_row(got, 3, 1, 3);
	assert_row(got, 4, 11, 0); /* that which sampled the token behind it */
	assert_row(got, 5, 12, 5);
	assert_row(got, 6, 13, 0);
	r3ring_assembled_free(got);
	feed_destroy(&prefill);
}

Test(assembler_engines, nor_does_it_stand_in_for_what_the_other_lost)
{
	struct feed prefill, decode = overrun_begin(&prefill);
	struct r3ring_assembled *got;

	r3ring_assembler_gap(decode.assembler, decode.channel);
	feed_computed(&decode, 13, 1, 6, 1, NULL, 0);
	feed_end(&decode, 1, R3RING_END_FINISHED, 0, 8);
	got = take(&prefill, "a");
	assert_row(got, 3, 1, 3);
	assert_missing(got, 4, R3RING_MISSING_GAP);
	assert_missing(got, 5, R3RING_MISSING_GAP);
	assert_row(got, 6, 13, 0);
	r3ring_assembled_free(got);
	feed_destroy(&prefill);
}
