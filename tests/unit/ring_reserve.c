/* SPDX-License-Identifier: Apache-2.0 */
/* Records in flight: reserved, filled from outside, published in order. */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "tests/unit/ring_fixture.h"

static struct ring_fixture ring;
static struct r3ring_cursor *cursor;

static void setup(void)
{
	ring_fixture_open(&ring, 16, 65536);
	cursor = ring_fixture_cursor(&ring, R3RING_LOSSY, R3RING_FROM_OLDEST, 0);
}

static void teardown(void)
{
	r3ring_cursor_close(cursor);
	ring_fixture_close(&ring);
}

TestSuite(ring_reserve, .init = setup, .fini = teardown);

static struct r3ring_slot reserve(uint32_t len)
{
	struct r3ring_record_spec spec = {.len = len, .units = 1};
	struct r3ring_slot slot;

	cr_assert_eq(r3ring_writer_reserve(ring.writer, &spec, &slot), 0);
	return slot;
}

static void fill(const struct r3ring_slot *slot)
{
	for (uint32_t i = 0; i < slot->len; i++)
		((uint8_t *)slot->data)[i] = ring_fixture_byte(slot->seq, i);
}

Test(ring_reserve, several_in_flight_appear_in_their_order)
{
	static const uint32_t lens[] = {500, 0, 20, 21, 8192};
	struct r3ring_slot slots[5];
	struct r3ring_view view;

	for (int i = 0; i < 5; i++)
		slots[i] = reserve(lens[i]);
	for (int i = 4; i >= 0; i--)
		fill(&slots[i]);
	for (uint64_t i = 0; i < 5; i++) {
		cr_assert_eq(r3ring_cursor_next(cursor, &view), 0);
		cr_assert_eq(r3ring_writer_commit(ring.writer, &slots[i]), 0);
		ring_fixture_expect(cursor, i + 1, lens[i]);
	}
}

Test(ring_reserve, a_commit_out_of_order_is_refused)
{
	struct r3ring_slot first = reserve(100), second = reserve(100);

	cr_assert_eq(r3ring_writer_commit(ring.writer, &second), -EINVAL);
	fill(&first);
	cr_assert_eq(r3ring_writer_commit(ring.writer, &first), 0);
	cr_assert_eq(r3ring_writer_commit(ring.writer, &first), -EINVAL);
	fill(&second);
	cr_assert_eq(r3ring_writer_commit(ring.writer, &second), 0);
	cr_assert_eq(r3ring_writer_commit(ring.writer, &second), -EINVAL);
	ring_fixture_expect(cursor, 1, 100);
	ring_fixture_expect(cursor, 2, 100);
}

Test(ring_reserve, at_most_half_of_the_descriptors_are_in_flight)
{
	struct r3ring_record_spec spec = {.len = 0};
	struct r3ring_slot slot, oldest = reserve(0);

	for (int i = 1; i < 8; i++)
		reserve(0);
	cr_assert_eq(r3ring_writer_reserve(ring.writer, &spec, &slot), -ENOBUFS);
	cr_assert_eq(r3ring_writer_commit(ring.writer, &oldest), 0);
	cr_assert_eq(r3ring_writer_reserve(ring.writer, &spec, &slot), 0);
}

Test(ring_reserve, at_most_half_of_the_arena_is_in_flight)
{
	struct r3ring_record_spec spec = {.len = 8192};
	struct r3ring_slot slot, oldest = reserve(8192);

	for (int i = 1; i < 4; i++)
		reserve(8192);
	cr_assert_eq(r3ring_writer_reserve(ring.writer, &spec, &slot), -ENOBUFS);
	cr_assert_eq(r3ring_writer_commit(ring.writer, &oldest), 0);
	cr_assert_eq(r3ring_writer_reserve(ring.writer, &spec, &slot), 0);
}

Test(ring_reserve, put_is_refused_while_something_is_in_flight)
{
	struct r3ring_record_spec spec = {.len = 4};
	struct r3ring_slot slot = reserve(4);

	cr_assert_eq(r3ring_writer_put(ring.writer, &spec, "abcd"), -EBUSY);
	cr_assert_eq(r3ring_writer_commit(ring.writer, &slot), 0);
	cr_assert_eq(r3ring_writer_put(ring.writer, &spec, "abcd"), 0);
}

Test(ring_reserve, the_inline_flag_is_not_the_callers)
{
	struct r3ring_record_spec spec = {.len = 100, .flags = R3RING_DESC_INLINE};
	struct r3ring_slot slot = {.seq = 77};

	cr_assert_eq(r3ring_writer_reserve(ring.writer, &spec, &slot), -EINVAL);
	cr_assert_eq(r3ring_writer_put(ring.writer, &spec, &slot), -EINVAL);
	cr_assert_eq(slot.seq, 77);
}

Test(ring_reserve, nothing_follows_a_finished_ring)
{
	struct r3ring_record_spec spec = {.len = 4};
	struct r3ring_slot slot;

	r3ring_writer_finish(ring.writer);
	cr_assert_eq(r3ring_writer_reserve(ring.writer, &spec, &slot), -EPIPE);
	cr_assert_eq(r3ring_writer_put(ring.writer, &spec, "abcd"), -EPIPE);
}

Test(ring_reserve, a_read_only_segment_takes_no_writer)
{
	struct r3ring_writer *writer = NULL;

	cr_assert_eq(r3ring_writer_open(&writer, ring.seen), -EINVAL);
	cr_assert_null(writer);
}

Test(ring_reserve, failure_12_a_slot_in_flight_is_refused_to_its_former_readers)
{
	struct r3ring_view view;

	ring_fixture_put(&ring, 8192, 1, 0);
	cr_assert_eq(r3ring_cursor_next(cursor, &view), 1);
	for (int i = 0; i < 7; i++)
		ring_fixture_put(&ring, 8192, 1, 0);
	reserve(8192); /* nothing written into it yet: a device may at any moment */
	cr_assert_eq(r3ring_cursor_check(cursor), -EOVERFLOW);
	cr_assert_eq(ring_fixture_account(cursor).lost, 1);
}
