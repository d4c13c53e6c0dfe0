/* SPDX-License-Identifier: Apache-2.0 */
/* Counters where 32 bits end, and where the ring's own numbers do. */
#include <criterion/criterion.h>

#include <errno.h>
#include <pthread.h>

#include <r3ring/atomic.h>

#include "ring/internal.h"
#include "tests/unit/ring_fixture.h"

#define DEPTH 64u
#define ARENA 65536u
#define LONG_NS 30000000000ull

static struct ring_fixture ring;

static void start_at(uint64_t first_seq)
{
	char name[64];
	struct r3ring_segment_options options = ring_fixture_options(name, DEPTH, ARENA);

	options.first_seq = first_seq;
	ring_fixture_open_options(&ring, &options);
}

static void finish(void)
{
	ring_fixture_close(&ring);
}

TestSuite(ring_wraps, .fini = finish, .timeout = 20);

Test(ring_wraps, a_reader_goes_on_where_sequences_outgrow_32_bits)
{
	const uint64_t first = (1ull << 32) - DEPTH / 2;
	struct r3ring_cursor *cursor;
	struct r3ring_cursor_stats stats;

	start_at(first);
	cursor = ring_fixture_cursor(&ring, R3RING_LOSSY, R3RING_FROM_OLDEST, 0);
	for (uint64_t i = 0; i < 4 * DEPTH; i++) {
		cr_assert_eq(ring_fixture_put(&ring, 100, 1, 0), first + i);
		ring_fixture_expect(cursor, first + i, 100);
	}
	stats = ring_fixture_account(cursor);
	cr_expect_eq(stats.got, 4 * DEPTH);
	cr_expect_eq(stats.lost, 0);
	r3ring_cursor_close(cursor);
}

Test(ring_wraps, an_overrun_across_32_bits_is_counted_exactly)
{
	const uint64_t first = (1ull << 32) - 10;
	struct r3ring_cursor *cursor;
	struct r3ring_cursor_stats stats;
	struct r3ring_view view;

	start_at(first);
	cursor = ring_fixture_cursor(&ring, R3RING_LOSSY, R3RING_FROM_OLDEST, 0);
	ring_fixture_put_many(&ring, 5 * DEPTH, 100);
	cr_assert_eq(r3ring_cursor_next(cursor, &view), -EOVERFLOW);
	stats = ring_fixture_account(cursor);
	cr_expect_eq(stats.gap_from, first);
	cr_expect_eq(stats.lost, stats.gap_to - first + 1);
	cr_expect_eq(stats.lost_units, stats.lost);
	cr_expect_gt(stats.cursor, 1ull << 32);
	while (stats.cursor < first + 5 * DEPTH) {
		ring_fixture_expect(cursor, stats.cursor, 100);
		stats = ring_fixture_account(cursor);
	}
	cr_expect_eq(stats.got + stats.lost, 5 * DEPTH);
	r3ring_cursor_close(cursor);
}

Test(ring_wraps, a_dead_writers_ring_is_adopted_across_32_bits)
{
	const uint64_t first = (1ull << 32) - 3;
	struct r3ring_cursor *cursor;

	start_at(first);
	cursor = ring_fixture_cursor(&ring, R3RING_LOSSY, R3RING_FROM_OLDEST, 0);
	ring_fixture_put_many(&ring, 2, 100);
	/* Published, and the tail not stored any more. */
	r3ring_store_relaxed_u64(&ring.segment->lines->tail_seq, first);
	ring_fixture_kill_writer(&ring);
	ring_fixture_adopt(&ring);
	cr_expect_eq(r3ring_segment_tail(ring.seen), first + 1);
	ring_fixture_put_many(&ring, 4, 100);
	for (uint64_t i = 0; i < 6; i++)
		ring_fixture_expect(cursor, first + i, 100);
	r3ring_cursor_close(cursor);
}

/* As if the dead writer had written so many bytes more before its last record. */
static void move_positions(uint64_t bytes)
{
	struct r3ring_writer_lines *lines = ring.segment->lines;
	uint64_t tail = r3ring_load_relaxed_u64(&lines->tail_seq);
	struct r3ring_desc *last = ring_desc(ring.segment, tail);

	last->pos += bytes;
	last->check = desc_checksum(last);
	r3ring_store_relaxed_u64(&lines->tail_pos, lines->tail_pos + bytes);
	r3ring_store_relaxed_u64(&lines->intent_pos, lines->intent_pos + bytes);
}

static void expect_laps_to_be_read(uint64_t begin_position)
{
	struct r3ring_cursor_stats stats;
	struct r3ring_cursor *cursor;

	start_at(1);
	ring_fixture_put_many(&ring, 1, 100);
	move_positions(begin_position);
	ring_fixture_kill_writer(&ring);
	ring_fixture_adopt(&ring);
	cursor = ring_fixture_cursor(&ring, R3RING_LOSSY, R3RING_FROM_OLDEST, 0);
	ring_fixture_expect(cursor, 1, 100);
	for (uint64_t seq = 2; seq < 200; seq++) {
		cr_assert_eq(ring_fixture_put(&ring, ARENA / 16, 1, 0), seq);
		ring_fixture_expect(cursor, seq, ARENA / 16);
	}
	cr_expect_gt(r3ring_writer_position(ring.writer), begin_position + 8 * ARENA);
	/* And where it is lapped. */
	ring_fixture_put_many(&ring, 100, ARENA / 16);
	while (r3ring_cursor_next(cursor, &(struct r3ring_view){0}) != 0)
		;
	stats = ring_fixture_account(cursor);
	cr_expect_gt(stats.lost, 0);
	cr_expect_eq(stats.got + stats.lost, 299);
	r3ring_cursor_close(cursor);
}

Test(ring_wraps, arena_positions_cross_32_bits)
{
	expect_laps_to_be_read((1ull << 32) - 4 * ARENA);
}

Test(ring_wraps, arena_positions_close_to_the_end_of_numbers_are_read_like_any)
{
	expect_laps_to_be_read(RING_NUMBER_LIMIT / 2 - 4 * ARENA);
}

/* Answers each record with a wake-up of its own. */
static void *put_one_at_a_time(void *arg)
{
	uint64_t *taken = arg;

	for (uint64_t i = 1; i <= 200; i++) {
		ring_fixture_put(&ring, 4, 1, 0);
		r3ring_writer_wake(ring.writer);
		/* Pairs with the release in the test below. */
		while (r3ring_load_acquire_u64(taken) < i)
			r3ring_cpu_relax();
	}
	return NULL;
}

Test(ring_wraps, failure_37_no_wake_up_is_lost_where_the_wake_word_wraps)
{
	struct r3ring_cursor *cursor;
	uint64_t taken = 0;
	pthread_t thread;

	start_at(1);
	cursor = ring_fixture_cursor(&ring, R3RING_LOSSY, R3RING_FROM_OLDEST, 0);
	r3ring_store_relaxed_u32(&ring.segment->lines->wake, UINT32_MAX - 100);
	cr_assert_eq(pthread_create(&thread, NULL, put_one_at_a_time, &taken), 0);
	for (uint64_t seq = 1; seq <= 200; seq++) {
		/* That of a record already read may come late and for nothing; a lost one
		 * would sleep beyond the test's deadline. */
		while (!r3ring_cursor_wait(cursor, LONG_NS))
			;
		ring_fixture_expect(cursor, seq, 4);
		/* Pairs with the acquire in put_one_at_a_time(). */
		r3ring_store_release_u64(&taken, seq);
	}
	pthread_join(thread, NULL);
	cr_expect_eq(r3ring_load_relaxed_u32(&ring.segment->lines->wake), 99);
	r3ring_cursor_close(cursor);
}

/* ---- the ring's own limit ----------------------------------------------- */

Test(ring_wraps, the_last_sequence_is_published_and_read_and_nothing_behind_it)
{
	const uint64_t first = RING_NUMBER_LIMIT - 3;
	const struct r3ring_record_spec spec = {.len = 4, .type = 1};
	struct r3ring_cursor *cursor;
	struct r3ring_view view;
	struct r3ring_slot slot;

	start_at(first);
	cursor = ring_fixture_cursor(&ring, R3RING_LOSSY, R3RING_FROM_OLDEST, 0);
	ring_fixture_put_many(&ring, 3, 100);
	cr_expect_eq(r3ring_writer_put(ring.writer, &spec, "full"), -EOVERFLOW);
	cr_expect_eq(r3ring_writer_reserve(ring.writer, &spec, &slot), -EOVERFLOW);
	for (uint64_t i = 0; i < 3; i++)
		ring_fixture_expect(cursor, first + i, 100);
	cr_expect_eq(r3ring_cursor_next(cursor, &view), 0);
	r3ring_cursor_close(cursor);
}
