/* SPDX-License-Identifier: Apache-2.0 */
/* A writer that lies: readers neither crash, nor hang, nor read outside. */
#define XXH_INLINE_ALL
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "ring/cursor.h"
#include "ring/internal.h"
#include "tests/unit/ring_fixture.h"

#define DEPTH 64u
#define ARENA 65536u

static struct ring_fixture ring;
static struct r3ring_cursor *cursor;
static struct r3ring_view view;

static void setup(void)
{
	ring_fixture_open(&ring, DEPTH, ARENA);
	cursor = ring_fixture_cursor(&ring, R3RING_LOSSY, R3RING_FROM_OLDEST, 0);
}

static void teardown(void)
{
	r3ring_cursor_close(cursor);
	ring_fixture_close(&ring);
}

TestSuite(ring_hostile, .init = setup, .fini = teardown);

/* Puts a record, lets @desc say something else with a checksum that fits. */
static struct r3ring_desc *forge(uint32_t len)
{
	return ring_desc(ring.segment, ring_fixture_put(&ring, len, 1, 0));
}

static void seal(struct r3ring_desc *desc)
{
	desc->check = desc_checksum(desc);
}

/* The forged record is refused, counted, and the next one is read. */
static void expect_refused_and_passed(void)
{
	uint64_t seq = ring_fixture_account(cursor).cursor;

	cr_assert_eq(r3ring_cursor_next(cursor, &view), -EBADMSG);
	cr_assert_eq(ring_fixture_account(cursor).lost, 1);
	cr_assert_eq(ring_fixture_account(cursor).gap_from, seq);
	ring_fixture_put(&ring, 100, 1, 0);
	ring_fixture_expect(cursor, seq + 1, 100);
}

Test(ring_hostile, the_checksum_is_the_low_half_of_xxh3_over_the_bytes_before_it)
{
	uint32_t random = 1;

	for (int i = 0; i < 1000; i++) {
		uint8_t bytes[sizeof(struct r3ring_desc)];
		struct r3ring_desc desc;

		for (size_t k = 0; k < sizeof(bytes); k++) {
			random = random * 1664525u + 1013904223u;
			bytes[k] = (uint8_t)(random >> 24);
		}
		memcpy(&desc, bytes, sizeof(desc));
		cr_assert_eq(desc_checksum(&desc), (uint32_t)XXH3_64bits(bytes, 60));
	}
}

Test(ring_hostile, a_changed_descriptor_fails_its_checksum)
{
	forge(100)->type ^= 1;
	expect_refused_and_passed();
}

Test(ring_hostile, a_checksum_of_another_sequence_is_refused)
{
	struct r3ring_desc *desc = forge(100), copy = *desc;

	copy.seq++;
	desc->check = desc_checksum(&copy);
	expect_refused_and_passed();
}

Test(ring_hostile, a_length_beyond_an_eighth_of_the_arena_is_refused)
{
	struct r3ring_desc *desc = forge(100);

	desc->len = ARENA / 8 + 1;
	seal(desc);
	expect_refused_and_passed();
}

Test(ring_hostile, a_length_of_4_gib_is_refused)
{
	struct r3ring_desc *desc = forge(100);

	desc->len = UINT32_MAX;
	seal(desc);
	expect_refused_and_passed();
}

Test(ring_hostile, a_record_that_wraps_is_refused)
{
	struct r3ring_desc *desc = forge(100);

	desc->pos = ARENA - 64;
	seal(desc);
	expect_refused_and_passed();
}

Test(ring_hostile, an_unaligned_position_is_refused)
{
	struct r3ring_desc *desc = forge(100);

	desc->pos += 8;
	seal(desc);
	expect_refused_and_passed();
}

Test(ring_hostile, a_position_near_the_end_of_numbers_is_refused)
{
	struct r3ring_desc *desc = forge(100);

	desc->pos = ~0ull - 63;
	seal(desc);
	expect_refused_and_passed();
}

Test(ring_hostile, an_inline_length_beyond_the_descriptor_is_refused)
{
	struct r3ring_desc *desc = forge(20);

	desc->len = R3RING_INLINE_MAX + 1;
	seal(desc);
	expect_refused_and_passed();
}

Test(ring_hostile, a_total_that_falls_is_refused)
{
	struct r3ring_desc *desc;

	ring_fixture_put(&ring, 100, 5, 0);
	ring_fixture_expect(cursor, 1, 100);
	desc = forge(100);
	desc->units = 4;
	seal(desc);
	expect_refused_and_passed();
}

Test(ring_hostile, a_slot_that_never_fills_under_a_growing_tail_is_refused)
{
	int rc = 0;

	forge(100)->seq = 0;
	for (int looks = 0; !rc && looks < 1000; looks++)
		rc = r3ring_cursor_next(cursor, &view);
	cr_assert_eq(rc, -EBADMSG);
	cr_assert_eq(ring_fixture_account(cursor).lost, 1);
}

Test(ring_hostile, a_slot_from_the_future_without_a_tail_is_refused)
{
	ring_desc(ring.segment, 1)->seq = 1 + DEPTH;
	cr_assert_eq(r3ring_cursor_next(cursor, &view), -EBADMSG);
	cr_assert_eq(ring_fixture_account(cursor).lost, 1);
}

Test(ring_hostile, a_tail_beyond_all_numbers_is_refused)
{
	ring_desc(ring.segment, 1)->seq = 1 + DEPTH;
	ring.segment->lines->tail_seq = ~0ull;
	cr_assert_eq(r3ring_cursor_next(cursor, &view), -EBADMSG);
	ring_fixture_account(cursor);
	cr_assert_eq(r3ring_segment_oldest(ring.seen), 1, "there is none");
	r3ring_cursor_skip(cursor);
	ring_fixture_account(cursor);
}

/* Reads to the end, and returns how often it was told of a loss. */
static unsigned int losses_to_the_end(void)
{
	unsigned int losses = 0;
	int rc;

	for (int looks = 0; looks < 1000000; looks++) {
		rc = r3ring_cursor_next(cursor, &view);
		if (rc == -EPIPE)
			return losses;
		losses += rc == -EBADMSG || rc == -EOVERFLOW;
	}
	cr_assert_fail("no end");
	return 0;
}

Test(ring_hostile, records_that_a_closed_ring_only_claims_are_told_once_and_not_lost)
{
	static const uint64_t tails[] = {1000000, 1ull << 61, 1ull << 62, ~0ull};

	for (size_t i = 0; i < sizeof(tails) / sizeof(tails[0]); i++) {
		struct r3ring_cursor *former = cursor;

		ring.segment->lines->closed = 1;
		ring_fixture_put_many(&ring, 3, 4);
		cursor = ring_fixture_cursor(&ring, R3RING_LOSSY, R3RING_FROM_FIRST, 0);
		ring.segment->lines->tail_seq = tails[i];
		cr_assert_eq(losses_to_the_end(), 1, "tail %lx", tails[i]);
		cr_assert_eq(ring_fixture_account(cursor).lost, 0);
		cr_assert_eq(ring_fixture_account(cursor).got, 3 * (i + 1));
		r3ring_cursor_close(former);
	}
}

Test(ring_hostile, a_slot_of_a_sequence_that_no_writer_stores_there_takes_but_its_own_record)
{
	static const uint64_t ahead[] = {1, 7, DEPTH - 2, DEPTH + 1, 5000};

	for (size_t i = 0; i < sizeof(ahead) / sizeof(ahead[0]); i++) {
		uint64_t seq = ring_fixture_put(&ring, 100, 1, 0);

		ring_fixture_put(&ring, 100, 1, 0);
		ring_desc(ring.segment, seq)->seq = seq + ahead[i];
		cr_assert_eq(r3ring_cursor_next(cursor, &view), -EBADMSG, "%lu", ahead[i]);
		cr_assert_eq(ring_fixture_account(cursor).lost, i + 1);
		ring_fixture_expect(cursor, seq + 1, 100);
	}
}

Test(ring_hostile, the_newest_record_in_a_slot_that_is_ahead_is_told_as_lost)
{
	uint64_t seq = ring_fixture_put(&ring, 100, 1, 0);

	ring_desc(ring.segment, seq)->seq = seq + 3;
	cr_assert_eq(r3ring_cursor_next(cursor, &view), -EBADMSG);
	cr_assert_eq(ring_fixture_account(cursor).lost, 1);
	cr_assert_eq(r3ring_cursor_next(cursor, &view), 0);
}

Test(ring_hostile, an_empty_slot_is_told_at_once_to_who_looks_no_more)
{
	uint64_t seq = ring_fixture_put(&ring, 100, 1, 0);

	ring_fixture_put(&ring, 100, 1, 0);
	ring_desc(ring.segment, seq)->seq = 0;
	cr_assert_eq(r3ring_cursor_next(cursor, &view), 0);
	cursor_doubt(cursor);
	cr_assert_eq(r3ring_cursor_next(cursor, &view), -EBADMSG);
	cr_assert_eq(ring_fixture_account(cursor).lost, 1);
	ring_fixture_expect(cursor, seq + 1, 100);
}

Test(ring_hostile, a_damaged_slot_hides_nothing_from_who_comes_later)
{
	const uint64_t count = 50;

	ring_fixture_put_many(&ring, count, 100);
	for (uint64_t seq = 1; seq <= count; seq++) {
		struct r3ring_cursor *late;
		uint64_t got = 0;

		ring_desc(ring.segment, seq)->check ^= 1;
		late = ring_fixture_cursor(&ring, R3RING_LOSSY, R3RING_FROM_OLDEST, 0);
		for (int rc = 1; rc == 1 || rc == -EBADMSG; got += rc == 1)
			rc = r3ring_cursor_next(late, &view);
		cr_assert_eq(got, count - 1, "%lu of them without %lu", got, seq);
		r3ring_cursor_close(late);
		ring_desc(ring.segment, seq)->check ^= 1;
	}
}

Test(ring_hostile, a_tail_of_an_empty_ring_hides_no_record)
{
	struct r3ring_cursor *late;

	ring_fixture_put_many(&ring, 3 * DEPTH, 100);
	ring.segment->lines->tail_seq = 0;
	cr_assert_eq(r3ring_segment_tail(ring.seen), 3 * DEPTH);
	late = ring_fixture_cursor(&ring, R3RING_LOSSY, R3RING_FROM_OLDEST, 0);
	cr_assert_eq(r3ring_cursor_next(late, &view), 1);
	r3ring_cursor_close(late);
}

/* ---- a tail that somebody wrote over ---------------------------------------- */

static const uint64_t false_tails[] = {5000, 1ull << 61, 1ull << 62, ~0ull};

#define FALSE_TAILS (sizeof(false_tails) / sizeof(false_tails[0]))

/* What a reader that has read all is told in a thousand looks. */
static unsigned int told_in_vain(void)
{
	unsigned int told = 0;

	for (unsigned int looks = 0; looks < 1000; looks++) {
		int rc = r3ring_cursor_next(cursor, &view);

		cr_assert(rc == 0 || rc == -EBADMSG, "%d", rc);
		told += rc == -EBADMSG;
	}
	return told;
}

Test(ring_hostile, a_tail_that_cannot_be_is_told_once_and_loses_nothing)
{
	ring_fixture_put_many(&ring, 3, 4);
	for (uint64_t seq = 1; seq <= 3; seq++)
		ring_fixture_expect(cursor, seq, 4);
	for (uint64_t i = 0; i < FALSE_TAILS; i++) {
		ring.segment->lines->tail_seq = false_tails[i];
		cr_assert(tail_lies(ring.seen), "tail %lx", false_tails[i]);
		cr_assert_eq(told_in_vain(), 1, "tail %lx", false_tails[i]);
		cr_assert_eq(ring_fixture_account(cursor).lost, 0);
		/* The writer goes on, and the reader with it. */
		ring_fixture_put_many(&ring, 1, 4);
		ring_fixture_expect(cursor, 4 + i, 4);
		cr_assert_not(tail_lies(ring.seen));
		cr_assert_eq(told_in_vain(), 0, "it is right again");
	}
}

Test(ring_hostile, a_tail_that_cannot_be_changes_no_account_of_what_was_overwritten)
{
	for (size_t i = 0; i < FALSE_TAILS; i++) {
		uint64_t newest, lost = ring_fixture_account(cursor).lost;
		int rc;

		ring_fixture_put_many(&ring, 2 * DEPTH, 4);
		newest = r3ring_writer_next_seq(ring.writer) - 1;
		ring.segment->lines->tail_seq = false_tails[i];
		cr_assert_eq(r3ring_segment_tail(ring.seen), newest);
		cr_assert_eq(r3ring_cursor_next(cursor, &view), -EOVERFLOW);
		cr_assert_leq(ring_fixture_account(cursor).lost - lost, 2 * DEPTH);
		while ((rc = r3ring_cursor_next(cursor, &view)) == 1)
			;
		cr_assert_eq(rc, 0);
		cr_assert_eq(ring_fixture_account(cursor).cursor, newest + 1);
	}
}

Test(ring_hostile, a_reader_that_begins_at_the_newest_is_not_led_beyond_it)
{
	struct r3ring_cursor *late;

	ring_fixture_put_many(&ring, 3, 4);
	for (size_t i = 0; i < FALSE_TAILS; i++) {
		ring.segment->lines->tail_seq = false_tails[i];
		late = ring_fixture_cursor(&ring, R3RING_LOSSY, R3RING_FROM_LATEST, 0);
		cr_expect_eq(ring_fixture_account(late).start, 4);
		r3ring_cursor_close(late);
		cr_expect_eq(r3ring_cursor_open(&late, ring.seen, R3RING_LOSSY, R3RING_FROM_SEQ, 6),
			     -ERANGE);
	}
}

Test(ring_hostile, a_closed_ring_all_of_whose_slots_are_ahead_has_an_end)
{
	static const uint64_t tails[] = {0, 5, 1ull << 61, ~0ull};

	ring.segment->lines->closed = 1;
	for (uint64_t i = 0; i < DEPTH; i++)
		ring_desc(ring.segment, i)->seq = (1ull << 62) + i;
	for (size_t i = 0; i < sizeof(tails) / sizeof(tails[0]); i++) {
		ring.segment->lines->tail_seq = tails[i];
		cr_assert_leq(losses_to_the_end(), DEPTH + 2, "tail %lx", tails[i]);
	}
}

Test(ring_hostile, an_intent_that_cannot_be_hides_no_record_untold)
{
	struct r3ring_cursor *late;

	for (int i = 0; i < 9; i++)
		ring_fixture_put(&ring, 100, 1, 0);
	ring.segment->lines->intent_pos = 1ull << 60;
	late = ring_fixture_cursor(&ring, R3RING_LOSSY, R3RING_FROM_OLDEST, 0);
	cr_assert_eq(r3ring_cursor_next(late, &view), -EBADMSG);
	cr_assert_eq(ring_fixture_account(late).lost, 9);
	cr_assert_eq(ring_fixture_account(late).gap_to, 9);
	r3ring_cursor_close(late);
}

Test(ring_hostile, an_intent_that_cannot_be_hides_none_behind_empty_slots_untold_either)
{
	struct r3ring_cursor *late;

	for (int i = 0; i < 9; i++)
		ring_fixture_put(&ring, 100, 1, 0);
	for (uint64_t seq = 1; seq < 9; seq++)
		*ring_desc(ring.segment, seq) = (struct r3ring_desc){0};
	ring.segment->lines->intent_pos = 1ull << 60;
	late = ring_fixture_cursor(&ring, R3RING_LOSSY, R3RING_FROM_OLDEST, 0);
	for (unsigned int looks = 0; looks < 1000; looks++)
		cr_assert_neq(r3ring_cursor_next(late, &view), 1);
	cr_assert_eq(ring_fixture_account(late).lost, 9);
	r3ring_cursor_close(late);
}

Test(ring_hostile, boundary_and_keyframe_words_that_lie_are_not_followed)
{
	static const uint64_t lies[] = {1, 199, 4000, ~0ull};

	ring_fixture_put_many(&ring, 200, 4);
	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		struct r3ring_cursor *other;

		ring.segment->lines->boundary_seq = lies[i];
		ring.segment->lines->keyframe_seq = lies[i];
		other = ring_fixture_cursor(&ring, R3RING_LATEST, R3RING_FROM_KEYFRAME, 0);
		cr_assert_eq(ring_fixture_account(other).start, r3ring_segment_oldest(ring.seen));
		r3ring_cursor_skip(other);
		cr_assert_eq(ring_fixture_account(other).cursor, 201);
		r3ring_cursor_close(other);
	}
}

/* ---- random lies ---------------------------------------------------------- */

static uint64_t random_state;

static uint64_t next_random(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

static void spoil(void)
{
	static const uint64_t values[] = {0, 1, ~0ull, 1ull << 62, 1ull << 63, 64, ARENA};
	uint64_t value = values[next_random() % (sizeof(values) / sizeof(values[0]))];
	struct r3ring_writer_lines *lines = ring.segment->lines;
	uint64_t *words[] = {&lines->intent_pos, &lines->tail_seq, &lines->boundary_seq,
			     &lines->keyframe_seq};
	struct r3ring_desc *desc = ring_desc(ring.segment, next_random());

	if (next_random() % 4 == 0)
		value = r3ring_writer_next_seq(ring.writer) + next_random() % 200 - 100;
	if (next_random() % 3 == 0) {
		*words[next_random() % 4] = value;
		return;
	}
	memcpy((uint8_t *)desc + next_random() % 8 * 8, &value, sizeof(value));
	if (next_random() % 2)
		seal(desc);
}

static void read_a_bit(struct r3ring_cursor *of, uint8_t *buffer)
{
	for (int i = 0; i < 20; i++) {
		int rc = r3ring_cursor_read(of, &view, buffer, ARENA / 8);

		cr_assert(rc == 1 || rc == 0 || rc == -EOVERFLOW || rc == -EBADMSG || rc == -EPIPE,
			  "%d", rc);
		ring_fixture_account(of);
		if (!rc || rc == -EPIPE) /* that nothing more can come of what it claims */
			return;
	}
}

Test(ring_hostile, random_lies_neither_crash_nor_hang_nor_spoil_the_accounts, .timeout = 60)
{
	uint8_t *buffer = malloc(ARENA / 8);

	cr_assert_not_null(buffer);
	for (uint64_t seed = 1; seed <= 300; seed++) {
		struct r3ring_cursor *latest =
			ring_fixture_cursor(&ring, R3RING_LATEST, R3RING_FROM_KEYFRAME, 0);

		random_state = seed * 0x9e3779b97f4a7c15ull;
		for (int i = 0; i < 40; i++) {
			ring_fixture_put(&ring, (uint32_t)(next_random() % 8193), 1,
					 next_random() % 2 ? R3RING_DESC_BOUNDARY : 0);
			if (next_random() % 2)
				spoil();
			if (next_random() % 8 == 0)
				r3ring_cursor_skip(latest);
			read_a_bit(cursor, buffer);
			read_a_bit(latest, buffer);
		}
		r3ring_cursor_close(latest);
	}
	free(buffer);
}
