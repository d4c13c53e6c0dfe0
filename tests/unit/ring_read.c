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

Test(ring_read, records_over_many_laps_all_come_in_order)
{
	struct r3ring_cursor *cursor =
		ring_fixture_cursor(&ring, R3RING_LOSSY, R3RING_FROM_OLDEST, 0);
	struct r3ring_view view;

	for (uint64_t i = 1; i <= 1000; i++) {
		uint32_t len = (uint32_t)(i * 37 % 8193);

		ring_fixture_put(&ring, len, 1, 0);
		cr_assert_eq(r3ring_cursor_next(cursor, &view), 1);
		cr_assert(ring_fixture_matches(&view, i, len));
	}
	cr_assert_eq(r3ring_cursor_next(cursor, &view), 0);
	cr_assert_eq(ring_fixture_account(cursor).got, 1000);
	cr_assert_eq(ring_fixture_account(cursor).lost, 0);
	r3ring_cursor_close(cursor);
}
