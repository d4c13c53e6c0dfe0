/* SPDX-License-Identifier: Apache-2.0 */
/* What a reader is given: every record, whole, in order. */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "tests/unit/ring_fixture.h"

static struct ring_fixture ring;

static void setup(void)
{
	ring_fixture_open(&ring, 64, 65536);
}

static void teardown(void)
{
	ring_fixture_close(&ring);
}

TestSuite(ring_read, .init = setup, .fini = teardown);

static void put_and_read_back(uint32_t len)
{
	struct r3ring_cursor *cursor =
		ring_fixture_cursor(&ring, R3RING_LOSSY, R3RING_FROM_OLDEST, 0);
	uint64_t seq = ring_fixture_put(&ring, len, 5, 0);
	struct r3ring_view view;

	cr_assert_eq(r3ring_cursor_next(cursor, &view), 1);
	cr_assert(ring_fixture_matches(&view, seq, len));
	cr_assert_eq(view.step, 9);
	cr_assert_eq(view.units, 5);
	cr_assert_eq(view.type, 3);
	cr_assert_eq(r3ring_cursor_check(cursor), 0);
	cr_assert_eq(ring_fixture_account(cursor).got, 1);
	r3ring_cursor_close(cursor);
}

Test(ring_read, a_record_of_no_bytes_is_a_record)
{
	put_and_read_back(0);
}

Test(ring_read, the_longest_inline_record_comes_whole)
{
	put_and_read_back(R3RING_INLINE_MAX);
}

Test(ring_read, the_shortest_record_in_the_arena_comes_whole)
{
	put_and_read_back(R3RING_INLINE_MAX + 1);
}

Test(ring_read, a_record_of_an_eighth_of_the_arena_comes_whole)
{
	put_and_read_back(65536 / 8);
}

Test(ring_read, a_record_longer_than_an_eighth_of_the_arena_never_fits)
{
	struct r3ring_record_spec spec = {.len = 65536 / 8 + 1};
	struct r3ring_slot slot;

	cr_assert_eq(r3ring_writer_reserve(ring.writer, &spec, &slot), -EMSGSIZE);
	cr_assert_eq(r3ring_writer_put(ring.writer, &spec, &slot), -EMSGSIZE);
	cr_assert_eq(r3ring_writer_next_seq(ring.writer), 1);
}

static struct r3ring_cursor *from_oldest(void)
{
	return ring_fixture_cursor(&ring, R3RING_LOSSY, R3RING_FROM_OLDEST, 0);
}

Test(ring_read, records_over_many_laps_all_come_in_order)
{
	struct r3ring_cursor *cursor = from_oldest();
	struct r3ring_view view;

	for (uint64_t i = 1; i <= 1000; i++) {
		uint32_t len = (uint32_t)(i * 37 % 8193);

		ring_fixture_put(&ring, len, 1, 0);
		ring_fixture_expect(cursor, i, len);
	}
	cr_assert_eq(r3ring_cursor_next(cursor, &view), 0);
	cr_assert_eq(ring_fixture_account(cursor).got, 1000);
	cr_assert_eq(ring_fixture_account(cursor).lost, 0);
	r3ring_cursor_close(cursor);
}

Test(ring_read, a_record_never_wraps_but_skips_the_rest_of_the_arena)
{
	struct r3ring_cursor *cursor = from_oldest();
	const uint32_t len = 6000; /* 6016 in the arena, 10 fit in 65536 */
	struct r3ring_view view;
	const uint8_t *arena;
	size_t bytes;

	arena = r3ring_segment_arena(ring.seen, &bytes);
	for (uint64_t i = 1; i <= 10; i++) {
		ring_fixture_put(&ring, len, 1, 0);
		ring_fixture_expect(cursor, i, len);
	}
	cr_assert_eq(r3ring_writer_position(ring.writer), 60160);
	ring_fixture_put(&ring, len, 1, 0);
	cr_assert_eq(r3ring_cursor_next(cursor, &view), 1);
	cr_assert_eq(view.data, (const void *)arena);
	cr_assert(ring_fixture_matches(&view, 11, len));
	cr_assert_eq(r3ring_cursor_check(cursor), 0);
	cr_assert_eq(r3ring_writer_position(ring.writer), 65536 + 6016);
	r3ring_cursor_close(cursor);
}

Test(ring_read, an_inline_payload_is_a_private_copy)
{
	struct r3ring_cursor *cursor = from_oldest();
	struct r3ring_view view;

	ring_fixture_put(&ring, 20, 1, 0);
	cr_assert_eq(r3ring_cursor_next(cursor, &view), 1);
	ring_fixture_put_many(&ring, 200, 20);
	cr_assert(ring_fixture_matches(&view, 1, 20));
	cr_assert_eq(r3ring_cursor_check(cursor), 0);
	cr_assert_eq(ring_fixture_account(cursor).got, 1);
	r3ring_cursor_close(cursor);
}

Test(ring_read, every_payload_in_the_arena_is_64_byte_aligned)
{
	struct r3ring_cursor *cursor = from_oldest();
	struct r3ring_view view;

	for (uint32_t len = 21; len < 200; len += 7) {
		ring_fixture_put(&ring, len, 1, 0);
		cr_assert_eq(r3ring_cursor_next(cursor, &view), 1);
		cr_assert_eq((uintptr_t)view.data % R3RING_RECORD_ALIGN, 0);
	}
	r3ring_cursor_close(cursor);
}

Test(ring_read, a_buffer_too_small_moves_nothing)
{
	struct r3ring_cursor *cursor = from_oldest();
	struct r3ring_view view;
	uint8_t buffer[100];

	ring_fixture_put(&ring, 100, 1, 0);
	cr_assert_eq(r3ring_cursor_read(cursor, &view, buffer, 99), -EMSGSIZE);
	cr_assert_eq(view.len, 100);
	cr_assert_eq(ring_fixture_account(cursor).cursor, 1);
	cr_assert_eq(r3ring_cursor_read(cursor, &view, buffer, 100), 1);
	cr_assert_eq(view.data, (const void *)buffer);
	cr_assert(ring_fixture_matches(&view, 1, 100));
	cr_assert_eq(ring_fixture_account(cursor).got, 1);
	r3ring_cursor_close(cursor);
}

Test(ring_read, a_view_left_unchecked_is_checked_by_next)
{
	struct r3ring_cursor *cursor = from_oldest();
	struct r3ring_view view;

	ring_fixture_put_many(&ring, 2, 50);
	cr_assert_eq(r3ring_cursor_next(cursor, &view), 1);
	cr_assert_eq(r3ring_cursor_next(cursor, &view), 1);
	cr_assert_eq(view.seq, 2);
	cr_assert_eq(ring_fixture_account(cursor).got, 1);
	r3ring_cursor_close(cursor);
}

Test(ring_read, check_without_a_view_is_refused)
{
	struct r3ring_cursor *cursor = from_oldest();

	cr_assert_eq(r3ring_cursor_check(cursor), -EINVAL);
	r3ring_cursor_close(cursor);
}

Test(ring_read, a_finished_ring_ends_after_all_was_read)
{
	struct r3ring_cursor *cursor = from_oldest();
	struct r3ring_view view;

	ring_fixture_put_many(&ring, 2, 50);
	r3ring_writer_finish(ring.writer);
	ring_fixture_expect(cursor, 1, 50);
	ring_fixture_expect(cursor, 2, 50);
	cr_assert_eq(r3ring_cursor_next(cursor, &view), -EPIPE);
	cr_assert_eq(r3ring_cursor_next(cursor, &view), -EPIPE);
	cr_assert_eq(ring_fixture_account(cursor).got, 2);
	r3ring_cursor_close(cursor);
}

Test(ring_read, the_heartbeat_reaches_readers)
{
	r3ring_writer_heartbeat(ring.writer, 123456789);
	cr_assert_eq(r3ring_segment_heartbeat(ring.seen), 123456789);
}

Test(ring_read, sequences_cross_32_bits)
{
	const uint64_t first = (1ull << 32) - 5;
	struct ring_fixture big = {0};
	struct r3ring_segment_options options = ring_fixture_options(big.name, 16, 4096);
	struct r3ring_cursor *cursor;

	options.first_seq = first;
	ring_fixture_open_options(&big, &options);
	cursor = ring_fixture_cursor(&big, R3RING_LOSSY, R3RING_FROM_OLDEST, 0);
	for (uint64_t i = 0; i < 40; i++) {
		cr_assert_eq(ring_fixture_put(&big, 100, 1, 0), first + i);
		ring_fixture_expect(cursor, first + i, 100);
	}
	ring_fixture_put_many(&big, 100, 100);
	cr_assert_eq(r3ring_segment_tail(big.seen), first + 139);
	cr_assert_eq(r3ring_cursor_next(cursor, &(struct r3ring_view){0}), -EOVERFLOW);
	cr_assert_eq(ring_fixture_account(cursor).start, first);
	r3ring_cursor_close(cursor);
	ring_fixture_close(&big);
}
