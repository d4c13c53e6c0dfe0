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
