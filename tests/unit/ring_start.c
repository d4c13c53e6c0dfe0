/* SPDX-License-Identifier: Apache-2.0 */
/* Where a cursor starts. */
#include <criterion/criterion.h>
#include <errno.h>

#include "tests/unit/ring_fixture.h"

#define DEPTH 64u

static struct ring_fixture ring;

static void setup(void)
{
	ring_fixture_open(&ring, DEPTH, 65536);
}

static void teardown(void)
{
	ring_fixture_close(&ring);
}

TestSuite(ring_start, .init = setup, .fini = teardown);

static struct r3ring_cursor *start(enum r3ring_cursor_start from, uint64_t seq)
{
	return ring_fixture_cursor(&ring, R3RING_LOSSY, from, seq);
}

Test(ring_start, from_oldest_starts_at_what_can_still_be_read)
{
	struct r3ring_cursor *cursor;

	ring_fixture_put_many(&ring, 500, 4);
	cursor = start(R3RING_FROM_OLDEST, 0);
	cr_assert_eq(ring_fixture_account(cursor).start, 500 - DEPTH + 3);
	for (uint64_t seq = 500 - DEPTH + 3; seq <= 500; seq++)
		ring_fixture_expect(cursor, seq, 4);
	r3ring_cursor_close(cursor);
}

Test(ring_start, from_latest_starts_with_the_next_record)
{
	struct r3ring_cursor *cursor;
	struct r3ring_view view;

	ring_fixture_put_many(&ring, 3, 4);
	cursor = start(R3RING_FROM_LATEST, 0);
	cr_assert_eq(r3ring_cursor_next(cursor, &view), 0);
	ring_fixture_put(&ring, 4, 1, 0);
	ring_fixture_expect(cursor, 4, 4);
	r3ring_cursor_close(cursor);
}

Test(ring_start, from_seq_starts_there)
{
	struct r3ring_cursor *cursor;

	ring_fixture_put_many(&ring, 9, 4);
	cursor = start(R3RING_FROM_SEQ, 5);
	ring_fixture_expect(cursor, 5, 4);
	cr_assert_eq(ring_fixture_account(cursor).start, 5);
	r3ring_cursor_close(cursor);
}

Test(ring_start, from_seq_before_the_first_starts_at_the_first)
{
	struct r3ring_cursor *cursor;

	ring_fixture_put(&ring, 4, 1, 0);
	cursor = start(R3RING_FROM_SEQ, 0);
	ring_fixture_expect(cursor, 1, 4);
	r3ring_cursor_close(cursor);
}

Test(ring_start, from_seq_of_the_next_record_is_fine_and_one_more_is_refused)
{
	struct r3ring_cursor *cursor = NULL;

	ring_fixture_put_many(&ring, 9, 4);
	cr_assert_eq(r3ring_cursor_open(&cursor, ring.seen, R3RING_LOSSY, R3RING_FROM_SEQ, 11),
		     -ERANGE);
	cr_assert_null(cursor);
	cursor = start(R3RING_FROM_SEQ, 10);
	r3ring_cursor_close(cursor);
}

Test(ring_start, from_seq_that_was_overwritten_counts_as_lost)
{
	struct r3ring_cursor *cursor;
	struct r3ring_cursor_stats stats;
	struct r3ring_view view;

	ring_fixture_put_many(&ring, 500, 4);
	cursor = start(R3RING_FROM_SEQ, 100);
	cr_assert_eq(r3ring_cursor_next(cursor, &view), -EOVERFLOW);
	stats = ring_fixture_account(cursor);
	cr_assert_eq(stats.start, 100);
	cr_assert_eq(stats.lost, stats.cursor - 100);
	cr_assert_gt(stats.lost, 300);
	ring_fixture_expect(cursor, stats.cursor, 4);
	r3ring_cursor_close(cursor);
}

Test(ring_start, from_first_what_was_overwritten_by_then_counts_as_lost)
{
	struct r3ring_cursor *cursor;
	struct r3ring_cursor_stats stats;
	struct r3ring_view view;

	ring_fixture_put_many(&ring, 500, 4);
	cursor = start(R3RING_FROM_FIRST, 400);
	cr_assert_eq(r3ring_cursor_next(cursor, &view), -EOVERFLOW);
	stats = ring_fixture_account(cursor);
	cr_assert_eq(stats.start, 1);
	cr_assert_eq(stats.lost, stats.cursor - 1);
	r3ring_cursor_close(cursor);
}

Test(ring_start, from_keyframe_starts_at_the_newest_keyframe)
{
	struct r3ring_cursor *cursor;
	uint64_t keyframe;

	ring_fixture_put_many(&ring, 100, 4);
	keyframe = ring_fixture_put(&ring, 4, 0, R3RING_DESC_KEYFRAME | R3RING_DESC_BOUNDARY);
	ring_fixture_put(&ring, 4, 0, R3RING_DESC_REPEATED);
	r3ring_writer_set_keyframe(ring.writer, keyframe);
	ring_fixture_put_many(&ring, 10, 4);
	cursor = start(R3RING_FROM_KEYFRAME, 0);
	ring_fixture_expect(cursor, keyframe, 4);
	cr_assert_eq(ring_fixture_account(cursor).start, keyframe);
	r3ring_cursor_close(cursor);
}

Test(ring_start, from_keyframe_without_one_starts_at_the_oldest)
{
	struct r3ring_cursor *cursor;

	ring_fixture_put_many(&ring, 10, 4);
	cursor = start(R3RING_FROM_KEYFRAME, 0);
	cr_assert_eq(ring_fixture_account(cursor).start, 1);
	r3ring_cursor_close(cursor);
}

Test(ring_start, a_record_that_is_no_keyframe_is_no_start)
{
	struct r3ring_cursor *cursor;

	ring_fixture_put_many(&ring, 10, 4);
	r3ring_writer_set_keyframe(ring.writer, 5);
	cursor = start(R3RING_FROM_KEYFRAME, 0);
	cr_assert_eq(ring_fixture_account(cursor).start, 1);
	r3ring_cursor_close(cursor);
}

Test(ring_start, a_keyframe_that_was_overwritten_is_no_start)
{
	struct r3ring_cursor *cursor;
	uint64_t keyframe = ring_fixture_put(&ring, 4, 0, R3RING_DESC_KEYFRAME);

	r3ring_writer_set_keyframe(ring.writer, keyframe);
	ring_fixture_put_many(&ring, 200, 4);
	cursor = start(R3RING_FROM_KEYFRAME, 0);
	cr_assert_eq(ring_fixture_account(cursor).start, r3ring_segment_oldest(ring.seen));
	r3ring_cursor_close(cursor);
}

Test(ring_start, unknown_modes_and_starts_are_refused)
{
	struct r3ring_cursor *cursor = NULL;

	cr_assert_eq(r3ring_cursor_open(&cursor, ring.seen, (enum r3ring_cursor_mode)7,
					R3RING_FROM_OLDEST, 0),
		     -EINVAL);
	cr_assert_eq(r3ring_cursor_open(&cursor, ring.seen, R3RING_LOSSY,
					(enum r3ring_cursor_start)7, 0),
		     -EINVAL);
	cr_assert_null(cursor);
}
