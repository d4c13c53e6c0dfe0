/* SPDX-License-Identifier: Apache-2.0 */
/* Readers that are overtaken: told exactly what they lost, given nothing torn. */
#include <criterion/criterion.h>
#include <errno.h>

#include "tests/unit/ring_fixture.h"

#define DEPTH 64u
#define ARENA 65536u

static struct ring_fixture ring;

static void setup(void)
{
	ring_fixture_open(&ring, DEPTH, ARENA);
}

static void teardown(void)
{
	ring_fixture_close(&ring);
}

TestSuite(ring_overrun, .init = setup, .fini = teardown);

static struct r3ring_cursor *lossy(void)
{
	return ring_fixture_cursor(&ring, R3RING_LOSSY, R3RING_FROM_OLDEST, 0);
}

static struct r3ring_cursor *latest(void)
{
	return ring_fixture_cursor(&ring, R3RING_LATEST, R3RING_FROM_OLDEST, 0);
}

static void expect_overflow(struct r3ring_cursor *cursor)
{
	struct r3ring_view view = {.seq = 4242};

	cr_assert_eq(r3ring_cursor_next(cursor, &view), -EOVERFLOW);
	cr_assert_eq(view.seq, 4242, "the view was touched");
	ring_fixture_account(cursor);
}

/* Takes all that is there; returns how many. */
static uint64_t drain(struct r3ring_cursor *cursor)
{
	struct r3ring_view view;
	uint64_t got = 0;

	while (r3ring_cursor_next(cursor, &view) == 1) {
		cr_assert_eq(r3ring_cursor_check(cursor), 0);
		ring_fixture_account(cursor);
		got++;
	}
	return got;
}

Test(ring_overrun, overrun_of_descriptors_counts_every_lost_record)
{
	struct r3ring_cursor *cursor = lossy();
	struct r3ring_cursor_stats stats;

	ring_fixture_put_many(&ring, 1000, 4);
	expect_overflow(cursor);
	drain(cursor);
	stats = ring_fixture_account(cursor);
	cr_assert_eq(stats.cursor, 1001);
	cr_assert_eq(stats.got + stats.lost, 1000);
	cr_assert_eq(stats.gap_from, 1);
	cr_assert_eq(stats.gap_to, stats.lost);
	r3ring_cursor_close(cursor);
}

Test(ring_overrun, overrun_of_the_arena_counts_every_lost_record)
{
	struct r3ring_cursor *cursor = lossy();
	struct r3ring_cursor_stats stats;

	ring_fixture_put_many(&ring, 30, 8192); /* 8 fit */
	expect_overflow(cursor);
	stats = ring_fixture_account(cursor);
	cr_assert_eq(stats.cursor, 30 - 8 + 1 + 1); /* the oldest, and an eighth of eight */
	cr_assert_eq(drain(cursor), 7);
	r3ring_cursor_close(cursor);
}

Test(ring_overrun, resumes_an_eighth_of_the_window_behind_the_oldest)
{
	struct r3ring_cursor *cursor = lossy();
	uint64_t oldest;

	ring_fixture_put_many(&ring, 1000, 4);
	oldest = r3ring_segment_oldest(ring.seen);
	/* The slot of the next record is dead; one more tells the total before. */
	cr_assert_eq(oldest, 1000 - DEPTH + 3);
	expect_overflow(cursor);
	cr_assert_eq(ring_fixture_account(cursor).cursor, oldest + (1001 - oldest) / 8);
	r3ring_cursor_close(cursor);
}

Test(ring_overrun, lost_units_are_exact)
{
	struct r3ring_cursor *cursor = lossy();
	struct r3ring_cursor_stats stats;
	uint64_t units = 0;

	for (uint64_t i = 1; i <= 500; i++)
		ring_fixture_put(&ring, (uint32_t)(i % 900), i * i, 0);
	expect_overflow(cursor);
	stats = ring_fixture_account(cursor);
	for (uint64_t i = 1; i <= stats.lost; i++)
		units += i * i;
	cr_assert_eq(stats.lost_units, units);
	r3ring_cursor_close(cursor);
}

Test(ring_overrun, lost_units_of_several_gaps_add_up)
{
	struct r3ring_cursor *cursor = lossy();
	struct r3ring_cursor_stats stats;
	uint64_t taken = 0;

	for (int round = 0; round < 20; round++) {
		ring_fixture_put_many(&ring, 100, 30);
		expect_overflow(cursor);
		taken += drain(cursor);
	}
	stats = ring_fixture_account(cursor);
	cr_assert_eq(stats.got, taken);
	cr_assert_eq(stats.lost_units, 2000 - taken);
	cr_assert_eq(stats.lost, 2000 - taken);
	r3ring_cursor_close(cursor);
}

Test(ring_overrun, a_view_overwritten_before_its_check_is_refused)
{
	struct r3ring_cursor *cursor = lossy();
	struct r3ring_cursor_stats stats;
	struct r3ring_view view;

	ring_fixture_put(&ring, 8192, 5, 0);
	cr_assert_eq(r3ring_cursor_next(cursor, &view), 1);
	ring_fixture_put_many(&ring, 8, 8192);
	cr_assert_eq(r3ring_cursor_check(cursor), -EOVERFLOW);
	stats = ring_fixture_account(cursor);
	cr_assert_eq(stats.lost, 1);
	cr_assert_eq(stats.lost_units, 5);
	cr_assert_eq(stats.got, 0);
	cr_assert_eq(stats.gap_from, 1);
	cr_assert_eq(stats.gap_to, 1);
	r3ring_cursor_close(cursor);
}

Test(ring_overrun, a_view_whose_descriptor_alone_was_overwritten_is_whole)
{
	struct r3ring_cursor *cursor = lossy();
	struct r3ring_view view;

	ring_fixture_put(&ring, 100, 5, 0);
	cr_assert_eq(r3ring_cursor_next(cursor, &view), 1);
	ring_fixture_put_many(&ring, DEPTH, 0);
	cr_assert(ring_fixture_matches(&view, 1, 100));
	cr_assert_eq(r3ring_cursor_check(cursor), 0);
	cr_assert_eq(ring_fixture_account(cursor).got, 1);
	r3ring_cursor_close(cursor);
}

Test(ring_overrun, next_tells_of_an_unchecked_view_that_was_overwritten)
{
	struct r3ring_cursor *cursor = lossy();
	struct r3ring_view view;

	ring_fixture_put(&ring, 8192, 5, 0);
	cr_assert_eq(r3ring_cursor_next(cursor, &view), 1);
	ring_fixture_put_many(&ring, 8, 8192);
	expect_overflow(cursor);
	cr_assert_eq(ring_fixture_account(cursor).lost, 1);
	ring_fixture_expect(cursor, 2, 8192);
	r3ring_cursor_close(cursor);
}

Test(ring_overrun, the_last_view_the_arena_still_holds_is_accepted)
{
	struct r3ring_cursor *cursor = lossy();

	ring_fixture_put_many(&ring, 8, 8192); /* exactly full: intent == pos + arena */
	ring_fixture_expect(cursor, 1, 8192);
	r3ring_cursor_close(cursor);
}

Test(ring_overrun, failure_32_a_gap_is_told_before_what_follows_it)
{
	struct r3ring_cursor *cursor = lossy();
	struct r3ring_cursor_stats stats;
	struct r3ring_view view;

	ring_fixture_put_many(&ring, 10, 100);
	ring_fixture_expect(cursor, 1, 100);
	ring_fixture_put_many(&ring, 200, 100);
	expect_overflow(cursor);
	stats = ring_fixture_account(cursor);
	cr_assert_eq(r3ring_cursor_next(cursor, &view), 1);
	cr_assert_eq(stats.gap_from, 2);
	cr_assert_eq(stats.gap_to + 1, view.seq);
	r3ring_cursor_close(cursor);
}

Test(ring_overrun, a_gap_behind_a_gap_is_told_by_itself)
{
	struct r3ring_cursor *cursor = lossy();
	struct r3ring_cursor_stats first, second;

	ring_fixture_put_many(&ring, 1000, 100);
	expect_overflow(cursor);
	first = ring_fixture_account(cursor);
	ring_fixture_put_many(&ring, 1000, 100);
	expect_overflow(cursor);
	second = ring_fixture_account(cursor);
	cr_assert_eq(first.gap_to - first.gap_from + 1, first.lost);
	cr_assert_eq(second.gap_from, first.gap_to + 1);
	cr_assert_eq(second.gap_to - second.gap_from + 1, second.lost - first.lost);
	r3ring_cursor_close(cursor);
}

/* ---- latest ------------------------------------------------------------- */

Test(ring_overrun, latest_resumes_at_the_newest_boundary)
{
	struct r3ring_cursor *cursor = latest();
	struct r3ring_cursor_stats stats;
	uint64_t oldest, boundary;

	ring_fixture_put_many(&ring, 190, 4);
	boundary = ring_fixture_put(&ring, 4, 1, R3RING_DESC_BOUNDARY);
	ring_fixture_put_many(&ring, 5, 4);
	oldest = r3ring_segment_oldest(ring.seen);
	expect_overflow(cursor);
	stats = ring_fixture_account(cursor);
	cr_assert_eq(stats.lost, oldest - 1, "what was overwritten is lost");
	cr_assert_eq(stats.lost_units, oldest - 1);
	cr_assert_eq(stats.skipped, boundary - oldest, "what could have been read is skipped");
	cr_assert_eq(stats.skipped_units, boundary - oldest);
	ring_fixture_expect(cursor, boundary, 4);
	r3ring_cursor_close(cursor);
}

Test(ring_overrun, latest_without_a_boundary_resumes_behind_the_newest)
{
	struct r3ring_cursor *cursor = latest();
	struct r3ring_view view;

	ring_fixture_put(&ring, 4, 1, R3RING_DESC_BOUNDARY);
	ring_fixture_put_many(&ring, 200, 4);
	expect_overflow(cursor);
	cr_assert_eq(ring_fixture_account(cursor).cursor, 202);
	cr_assert_eq(r3ring_cursor_next(cursor, &view), 0);
	r3ring_cursor_close(cursor);
}

Test(ring_overrun, latest_reads_everything_while_it_keeps_up)
{
	struct r3ring_cursor *cursor = latest();

	for (uint64_t i = 1; i <= 300; i++) {
		ring_fixture_put(&ring, 40, 1, i % 3 ? 0 : R3RING_DESC_BOUNDARY);
		ring_fixture_expect(cursor, i, 40);
	}
	cr_assert_eq(ring_fixture_account(cursor).got, 300);
	r3ring_cursor_close(cursor);
}

Test(ring_overrun, skip_goes_to_the_newest_boundary)
{
	struct r3ring_cursor *cursor = lossy();
	struct r3ring_cursor_stats stats;

	ring_fixture_put_many(&ring, 10, 4);
	ring_fixture_put(&ring, 4, 1, R3RING_DESC_BOUNDARY);
	ring_fixture_put_many(&ring, 3, 4);
	r3ring_cursor_skip(cursor);
	stats = ring_fixture_account(cursor);
	cr_assert_eq(stats.skipped, 10);
	cr_assert_eq(stats.skipped_units, 10);
	cr_assert_eq(stats.lost, 0);
	ring_fixture_expect(cursor, 11, 4);
	r3ring_cursor_close(cursor);
}

Test(ring_overrun, skip_without_a_later_boundary_goes_behind_the_newest)
{
	struct r3ring_cursor *cursor = lossy();

	ring_fixture_put(&ring, 4, 1, R3RING_DESC_BOUNDARY);
	ring_fixture_put_many(&ring, 9, 4);
	ring_fixture_expect(cursor, 1, 4);
	r3ring_cursor_skip(cursor);
	cr_assert_eq(ring_fixture_account(cursor).skipped, 9);
	cr_assert_eq(ring_fixture_account(cursor).cursor, 11);
	r3ring_cursor_skip(cursor);
	cr_assert_eq(ring_fixture_account(cursor).skipped, 9);
	r3ring_cursor_close(cursor);
}

Test(ring_overrun, skip_counts_what_was_overwritten_as_skipped_too)
{
	struct r3ring_cursor *cursor = lossy();

	ring_fixture_put_many(&ring, 500, 4);
	r3ring_cursor_skip(cursor);
	cr_assert_eq(ring_fixture_account(cursor).skipped, 500);
	cr_assert_eq(ring_fixture_account(cursor).skipped_units, 500);
	cr_assert_eq(ring_fixture_account(cursor).lost, 0);
	r3ring_cursor_close(cursor);
}
