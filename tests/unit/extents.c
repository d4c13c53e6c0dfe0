/* SPDX-License-Identifier: Apache-2.0 */
/* Room in the capture buffer: wrapping, being full, and a counter not to be trusted. */
#include <criterion/criterion.h>

#include "producer/extents.h"

static uint64_t released;
static struct extents extents;

static void start(void)
{
	released = 0;
	extents_init(&extents, 1024, &released);
}

TestSuite(extents, .init = start);

static struct extent take(uint64_t bytes)
{
	struct extent extent = {0};

	cr_assert(extents_take(&extents, bytes, &extent), "%llu bytes", (unsigned long long)bytes);
	cr_assert_leq(extent.offset + bytes, extents.bytes);
	return extent;
}

static void take_none(uint64_t bytes)
{
	struct extent extent;

	cr_assert_not(extents_take(&extents, bytes, &extent), "%llu bytes",
		      (unsigned long long)bytes);
}

Test(extents, they_lie_one_behind_another_until_the_buffer_is_full)
{
	for (uint32_t i = 0; i < 4; i++) {
		struct extent extent = take(256);

		cr_assert_eq(extent.offset, i * 256);
		cr_assert_eq(extent.slot, i);
	}
	take_none(64);
}

Test(extents, failure_12_room_is_used_again_only_once_it_was_given_back)
{
	take(512);
	take(512);
	take_none(64);
	released = 1;
	cr_assert_eq(take(512).offset, 0);
	take_none(64);
	released = 2;
	cr_assert_eq(take(256).offset, 512);
}

Test(extents, one_is_never_split_at_the_buffer_s_end)
{
	take(640);
	take(128);
	take_none(512);
	released = 1;
	cr_assert_eq(take(512).offset, 0);
	take_none(192);
	cr_assert_eq(extents.head - extents.tail, 128 + 256 + 512,
		     "the rest behind it is taken too");
	released = 2;
	cr_assert_eq(take(128).offset, 512);
}

Test(extents, one_as_large_as_the_buffer_fits_whenever_all_is_free)
{
	take(640);
	take_none(1024);
	released = 1;
	cr_assert_eq(take(1024).offset, 0);
	released = 2;
	cr_assert_eq(take(192).offset, 0);
	take_none(1024);
	released = 3;
	take_none(1025);
	cr_assert_eq(take(1024).offset, 0);
}

Test(extents, slots_run_out_before_the_buffer_where_steps_are_small)
{
	extents_init(&extents, 1u << 20, &released);
	for (uint32_t i = 0; i < PAGES_SLOTS; i++) {
		struct extent extent;

		cr_assert(extents_take(&extents, 64, &extent));
		cr_assert_eq(extent.slot, i);
	}
	take_none(64);
	released = 1;
	cr_assert_eq(take(64).slot, 0);
	take_none(64);
}

Test(extents, a_counter_that_says_more_than_was_taken_is_not_believed)
{
	take(1024);
	released = 2;
	take_none(64);
	released = UINT64_MAX;
	take_none(64);
	released = 1;
	take(64);
}

Test(extents, a_counter_that_goes_back_is_not_believed)
{
	take(512);
	take(512);
	released = 2;
	take(1024);
	released = 1;
	take_none(64);
	released = 0;
	take_none(64);
	released = 3;
	take(64);
}

Test(extents, what_is_in_use_never_overlaps_over_many_wraps)
{
	uint64_t begins[PAGES_SLOTS] = {0}, ends[PAGES_SLOTS] = {0};
	uint64_t taken = 0;
	uint32_t seed = 1;

	for (int i = 0; i < 20000; i++) {
		struct extent extent;
		uint64_t bytes;

		seed = seed * 1664525u + 1013904223u;
		bytes = 64 + (seed >> 16) % 8 * 64;
		if (!extents_take(&extents, bytes, &extent)) {
			cr_assert_lt(released, taken, "an empty buffer takes all of these");
			released++;
			continue;
		}
		for (uint64_t n = released; n < taken; n++)
			cr_assert(extent.offset + bytes <= begins[n % PAGES_SLOTS] ||
				  extent.offset >= ends[n % PAGES_SLOTS]);
		begins[taken % PAGES_SLOTS] = extent.offset;
		ends[taken % PAGES_SLOTS] = extent.offset + bytes;
		taken++;
	}
}

Test(extents, their_count_and_their_positions_outgrow_32_bits)
{
	released = UINT32_MAX - 2;
	extents.taken = released;
	extents.returned = released;
	extents.head = (1ull << 32) - 1024;
	extents.tail = extents.head;
	for (uint32_t i = 0; i < 8; i++) {
		cr_expect_eq(take(512).offset, i % 2 * 512);
		cr_expect_eq(take(512).offset, (i + 1) % 2 * 512);
		take_none(64);
		released += 2;
		take(512);
		released++;
	}
	cr_expect_gt(extents.taken, UINT32_MAX);
	cr_expect_gt(extents.head, 1ull << 32);
}

/* How many rows a record takes is the daemon's word; a step has fewer than any such number. */
Test(extents, records_longer_than_any_step_are_one_a_layer)
{
	const struct extent_geometry g = {
		.layers = 3, .top_k = 4, .experts = 64, .rows_per_record = UINT32_MAX};
	struct extent_geometry just_enough = g;

	just_enough.rows_per_record = 100;
	cr_expect_eq(extent_parts(&g, 100), 1);
	cr_expect_eq(extent_part_rows(&g, 100, 0), 100);
	cr_expect_eq(extent_bytes(&g, 100), extent_bytes(&just_enough, 100));
}
