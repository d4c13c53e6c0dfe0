/* SPDX-License-Identifier: Apache-2.0 */
/* Similarity against what is worked out by hand. */
#include <criterion/criterion.h>
#include <math.h>

#include <r3ring/signature.h>

Test(signature_compare, the_cosine_is_the_mean_of_those_of_layers_that_both_have)
{
	/* (3 4) and (4 3): 24 / 25; (1 0) and (0 1): 0; a layer that one lacks: not counted. */
	const uint16_t a[] = {3, 4, 1, 0, 0, 0}, b[] = {4, 3, 0, 1, 5, 5};

	cr_assert_float_eq(r3ring_signature_similarity(a, b, 3, 2), 0.48, 1e-12);
	cr_assert_float_eq(r3ring_signature_similarity(a, a, 3, 2), 1, 1e-12);
	cr_assert_float_eq(r3ring_signature_similarity(a + 4, b, 1, 2), 0, 1e-12);
}

Test(signature_compare, a_request_ten_times_as_long_is_as_similar)
{
	const uint16_t a[] = {1, 2, 3}, b[] = {10, 20, 30}, most[] = {65535, 65535, 65535};

	cr_assert_float_eq(r3ring_signature_similarity(a, b, 1, 3), 1, 1e-12);
	cr_assert_float_eq(r3ring_signature_similarity(a, most, 1, 3), 6 / sqrt(14 * 3.0), 1e-12);
}

Test(signature_compare, the_bitmap_has_the_experts_with_more_than_an_even_share)
{
	/* Shares above a quarter: of layer 0 expert 3, of layer 1 experts 0 and 1, of the
	 * even layer 2 none. */
	const uint16_t counts[] = {1, 1, 1, 2, 3, 3, 0, 0, 7, 7, 7, 7};
	uint64_t bits[1];

	cr_assert_eq(R3RING_SIGNATURE_WORDS(3, 4), 1);
	r3ring_signature_bitmap(counts, 3, 4, bits);
	cr_assert_eq(bits[0], 0x38);
}

/* Three visits of four experts: an even share is three quarters of one. */
Test(signature_compare, whatever_is_more_than_an_even_share_is_in_the_bitmap)
{
	const uint16_t counts[] = {1, 1, 1, 0};
	uint64_t bits[1];

	r3ring_signature_bitmap(counts, 1, 4, bits);
	cr_assert_eq(bits[0], 0x7);
}

Test(signature_compare, a_bitmap_goes_on_in_the_next_word)
{
	uint16_t counts[2 * 50] = {0};
	uint64_t bits[2];

	counts[49] = counts[50 + 14] = counts[50 + 49] = 1;
	cr_assert_eq(R3RING_SIGNATURE_WORDS(2, 50), 2);
	r3ring_signature_bitmap(counts, 2, 50, bits);
	cr_assert_eq(bits[0], UINT64_C(1) << 49);
	cr_assert_eq(bits[1], UINT64_C(1) | UINT64_C(1) << 35);
}

Test(signature_compare, bitmaps_overlap_by_what_is_in_both_of_what_is_in_either)
{
	const uint64_t a[] = {0xF, UINT64_MAX}, b[] = {0x3, 0xFFFF}, none[] = {0, 0};

	cr_assert_float_eq(r3ring_signature_overlap(a, b, 2), 18 / 68.0, 1e-12);
	cr_assert_float_eq(r3ring_signature_overlap(a, a, 2), 1, 1e-12);
	cr_assert_float_eq(r3ring_signature_overlap(none, none, 2), 0, 1e-12);
}
