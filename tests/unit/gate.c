/* SPDX-License-Identifier: Apache-2.0 */
/* The gate: how far pages of registered readers let the writer go. */
#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include <r3ring/atomic.h>

#include "ring/gate.h"
#include "ring/internal.h"
#include "tests/unit/ring_fixture.h"

#define DEPTH 64u
#define ARENA 65536u
#define RECORD 1024u
#define KEPT (ARENA / 8 * 7 / RECORD) /* records for readers that have yet to come back */
#define MS_NS 1000000ull

static struct ring_fixture ring;
static struct gate *gate;
static struct r3ring_reader_page pages[GATE_MEMBERS_MAX + 1];

static void setup(void)
{
	ring_fixture_open(&ring, DEPTH, ARENA);
	gate = gate_create(ring.segment, false);
	cr_assert_not_null(gate);
	writer_set_gate(ring.writer, gate);
}

static void teardown(void)
{
	ring_fixture_close(&ring);
	gate_destroy(gate);
}

TestSuite(gate, .init = setup, .fini = teardown, .timeout = 30);

static int add(unsigned int page, bool lossless, uint64_t limit)
{
	const struct gate_terms terms = {
		.lossless = lossless, .limit_bytes = limit, .stall_ns = 100 * MS_NS};
	struct gate_front front = writer_front(ring.writer);
	int number = gate_add(gate, &pages[page], &terms);

	gate_admit(gate, &front);
	return number;
}

static int put(uint32_t len)
{
	static const uint8_t payload[ARENA / 8];
	const struct r3ring_record_spec spec = {.len = len, .units = 1, .type = 3};

	return r3ring_writer_put(ring.writer, &spec, payload);
}

/* Puts until the gate is shut; returns how many. */
static unsigned int put_until_shut(uint32_t len, unsigned int most)
{
	unsigned int count = 0;
	int rc = 0;

	while (count < most && (rc = put(len)) == 0)
		count++;
	cr_expect(rc == 0 || rc == -EAGAIN, "%d", rc);
	return count;
}

static unsigned int demote(uint64_t waited_ns)
{
	struct gate_front front = writer_front(ring.writer);

	return gate_demote(gate, &front, waited_ns, false);
}

static void read_up_to(unsigned int page, uint64_t cursor)
{
	/* Pairs with the acquire in the gate. */
	r3ring_store_release_u64(&pages[page].cursor, cursor);
}

/* ---- limits --------------------------------------------------------------- */

Test(gate, without_lossless_readers_it_is_never_shut)
{
	add(0, false, 0);
	cr_expect_eq(put_until_shut(RECORD, 500), 500);
}

Test(gate, arena_bytes_unread_stay_within_the_limit)
{
	add(0, true, ARENA / 2);
	cr_expect_eq(put_until_shut(RECORD, 500), ARENA / 2 / RECORD);
	read_up_to(0, 11);
	cr_expect_eq(put_until_shut(RECORD, 500), 10);
}

Test(gate, records_unread_stay_within_the_same_share_of_the_descriptors)
{
	add(0, true, ARENA / 2);
	cr_expect_eq(put_until_shut(8, 500), DEPTH / 2);
	read_up_to(0, 11);
	cr_expect_eq(put_until_shut(8, 500), 10);
}

Test(gate, at_most_three_quarters_of_the_ring_are_granted)
{
	add(0, true, ARENA * 4ull);
	cr_expect_eq(pages[0].limit_bytes, ARENA / 4 * 3);
	cr_expect_eq(put_until_shut(RECORD, 500), ARENA / 4 * 3 / RECORD);
}

Test(gate, the_largest_record_always_fits_in_front_of_a_reader_that_has_read_all)
{
	add(0, true, 1);
	for (uint64_t seq = 1; seq < 200; seq++) {
		cr_assert_eq(put((uint32_t)(seq % 3 ? ARENA / 8 : 4160)), 0);
		read_up_to(0, seq + 1);
	}
}

Test(gate, what_is_kept_passes_its_check)
{
	struct r3ring_cursor *cursor = ring_fixture_cursor(&ring, R3RING_LOSSY, R3RING_FROM_SEQ, 1);

	add(0, true, 0);
	for (uint64_t seq = 1; seq <= 2000; seq++) {
		struct r3ring_record_spec spec = {.len = (uint32_t)(seq * 37 % (ARENA / 8))};
		uint8_t payload[ARENA / 8] = {0};

		while (r3ring_writer_put(ring.writer, &spec, payload) == -EAGAIN) {
			struct r3ring_view view;

			cr_assert_eq(r3ring_cursor_next(cursor, &view), 1);
			cr_assert_eq(r3ring_cursor_check(cursor), 0);
			read_up_to(0, view.seq + 1);
		}
	}
	cr_expect_eq(ring_fixture_account(cursor).lost, 0);
	r3ring_cursor_close(cursor);
}

Test(gate, reservations_in_flight_count)
{
	const struct r3ring_record_spec spec = {.len = RECORD};
	struct r3ring_slot slot;
	unsigned int reserved = 0;
	int rc;

	add(0, true, ARENA / 4);
	while ((rc = r3ring_writer_reserve(ring.writer, &spec, &slot)) == 0)
		reserved++;
	cr_expect_eq(rc, -EAGAIN);
	cr_expect_eq(reserved, ARENA / 4 / RECORD);
}

Test(gate, the_slowest_reader_counts)
{
	add(0, true, ARENA / 2);
	add(1, true, ARENA / 2);
	put_until_shut(RECORD, 500);
	read_up_to(0, 33);
	cr_expect_eq(put_until_shut(RECORD, 500), 0);
	read_up_to(1, 5);
	cr_expect_eq(put_until_shut(RECORD, 500), 4);
}

/* ---- coming and going ----------------------------------------------------- */

Test(gate, a_reader_that_comes_late_holds_what_its_limit_covers)
{
	struct r3ring_cursor *cursor;

	ring_fixture_put_many(&ring, 300, RECORD);
	add(0, true, ARENA / 2);
	cr_expect_eq(pages[0].state, R3RING_READER_ADMITTED);
	cr_expect_eq(pages[0].held_from, 300 - ARENA / 2 / RECORD + 1);
	cr_expect_eq(put_until_shut(RECORD, 500), 0);
	cursor = ring_fixture_cursor(&ring, R3RING_LOSSY, R3RING_FROM_SEQ, pages[0].held_from);
	ring_fixture_expect(cursor, pages[0].held_from, RECORD);
	r3ring_cursor_close(cursor);
}

Test(gate, a_reader_that_is_removed_holds_nothing)
{
	int number = add(0, true, ARENA / 2);

	put_until_shut(RECORD, 500);
	gate_remove(gate, number);
	cr_expect_eq(put_until_shut(RECORD, 500), 500);
}

Test(gate, there_is_an_end_to_how_many_come)
{
	for (unsigned int i = 0; i < GATE_MEMBERS_MAX; i++)
		cr_expect_geq(add(i, false, 0), 0);
	cr_expect_eq(add(GATE_MEMBERS_MAX, false, 0), -ENOSPC);
	gate_remove(gate, 7);
	cr_expect_eq(add(GATE_MEMBERS_MAX, false, 0), 7);
}

Test(gate, for_readers_of_a_dead_writer_all_that_they_may_need_is_kept_until_they_are_let_go)
{
	struct gate_front front;
	int number;

	ring_fixture_put_many(&ring, 300, RECORD);
	front = writer_front(ring.writer);
	gate_keep(gate, &front, R3RING_KEEPS_RETURNING);
	number = gate_hold(gate, &front);
	cr_expect(gate_has_room(gate, &front, 2, ARENA / 16));
	cr_expect_not(gate_has_room(gate, &front, 2, ARENA / 16 + 1));
	cr_expect_eq(put_until_shut(RECORD, 500), ARENA / 16 / RECORD);
	cr_expect_eq(demote(1000 * MS_NS), 0);
	cr_expect_leq(r3ring_segment_oldest(ring.seen), 300 + 1 - KEPT);
	/* One that comes back takes over what it needs. */
	add(0, true, 0);
	cr_expect_eq(pages[0].held_from, 300 + 1 - KEPT);
	read_up_to(0, 300);
	gate_let_go(gate, number);
	cr_expect_eq(gate_keeps(gate), R3RING_KEEPS_NONE);
	cr_expect_eq(put_until_shut(RECORD, 500), 300 + ARENA / 4 * 3 / RECORD - 305);
}

/* Of another writer, in the same ring. */
static void follow_writer(enum r3ring_keeps whom)
{
	struct gate_front front = writer_front(ring.writer);

	gate_destroy(gate);
	gate = gate_create(ring.segment, false);
	cr_assert_not_null(gate);
	writer_set_gate(ring.writer, gate);
	gate_keep(gate, &front, whom);
	gate_hold(gate, &front);
}

Test(gate, any_number_of_writers_that_die_keep_what_the_first_did)
{
	ring_fixture_put_many(&ring, 300, RECORD);
	follow_writer(R3RING_KEEPS_RETURNING);
	cr_expect_eq(put_until_shut(RECORD, 2), 2);
	follow_writer(R3RING_KEEPS_RETURNING);
	cr_expect_eq(put_until_shut(RECORD, 500), 2);
	follow_writer(R3RING_KEEPS_RETURNING);
	cr_expect_eq(put_until_shut(RECORD, 500), 0);
	cr_expect_leq(r3ring_segment_oldest(ring.seen), 300 + 1 - KEPT);
	add(0, true, 0);
	cr_expect_eq(pages[0].held_from, 300 + 1 - KEPT);
}

Test(gate, a_writer_that_follows_one_that_had_let_go_keeps_anew)
{
	ring_fixture_put_many(&ring, 300, RECORD);
	follow_writer(R3RING_KEEPS_RETURNING);
	put_until_shut(RECORD, 500);
	gate_let_go(gate, 0);
	follow_writer(R3RING_KEEPS_RETURNING);
	add(0, true, 0);
	cr_expect_eq(pages[0].held_from, 304 + 1 - KEPT);
}

Test(gate, for_whom_a_dead_writer_kept_is_known_to_the_next)
{
	follow_writer(R3RING_KEEPS_FORMER);
	gate_destroy(gate);
	gate = gate_create(ring.segment, false);
	writer_set_gate(ring.writer, gate);
	cr_expect_eq(gate_keeps(gate), R3RING_KEEPS_FORMER);
}

Test(gate, what_a_dead_writer_cannot_have_kept_is_not_believed)
{
	static const uint64_t lies[] = {0, 1, 300 - DEPTH, 302, UINT64_MAX};

	ring_fixture_put_many(&ring, 300, RECORD);
	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		ring.segment->lines->keeps = R3RING_KEEPS_RETURNING;
		ring.segment->lines->kept_from = lies[i];
		follow_writer(R3RING_KEEPS_RETURNING);
		cr_expect_eq(ring.segment->lines->kept_from, 300 + 1 - KEPT);
	}
	ring.segment->lines->keeps = 77;
	cr_expect_eq(gate_keeps(gate), R3RING_KEEPS_NONE);
}

Test(gate, a_reader_with_more_unread_than_the_next_writer_would_keep_is_behind)
{
	struct gate_front front;

	ring_fixture_put_many(&ring, 300, RECORD);
	follow_writer(R3RING_KEEPS_RETURNING);
	put_until_shut(RECORD, 500);
	add(0, true, 0);
	front = writer_front(ring.writer);
	cr_expect(gate_is_behind(gate, &front));
	read_up_to(0, 304 + 1 - KEPT - 1);
	cr_expect(gate_is_behind(gate, &front));
	read_up_to(0, 304 + 1 - KEPT);
	cr_expect_not(gate_is_behind(gate, &front));
}

/* ---- demoting ------------------------------------------------------------- */

Test(gate, a_reader_without_progress_is_demoted_after_its_stall_time_with_what_it_had_unread)
{
	add(0, true, ARENA / 2);
	put_until_shut(RECORD, 500);
	read_up_to(0, 3);
	cr_assert_eq(put_until_shut(RECORD, 500), 2);
	cr_expect_eq(demote(99 * MS_NS), 0);
	cr_expect_eq(demote(MS_NS), 1);
	cr_expect_eq(pages[0].state, R3RING_READER_DEMOTED);
	cr_expect_eq(pages[0].demoted_from, 3);
	cr_expect_eq(pages[0].demoted_to, ARENA / 2 / RECORD + 2);
	cr_expect_eq(put_until_shut(RECORD, 500), 500);
}

Test(gate, a_reader_that_makes_progress_is_not_demoted)
{
	add(0, true, ARENA / 2);
	for (uint64_t cursor = 5; cursor < 500; cursor += 4) {
		put_until_shut(RECORD, 500);
		cr_assert_eq(demote(60 * MS_NS), 0);
		read_up_to(0, cursor);
	}
}

Test(gate, a_reader_that_trickles_is_demoted_though_it_never_stands_still)
{
	unsigned int turns = 0;

	add(0, true, ARENA / 2);
	put_until_shut(RECORD, 500);
	for (uint64_t cursor = 2; turns < 20 && !demote(60 * MS_NS); cursor++, turns++) {
		read_up_to(0, cursor);
		put_until_shut(RECORD, 500);
	}
	cr_expect_eq(turns, 1);
}

Test(gate, only_the_reader_in_the_way_is_demoted)
{
	add(0, true, ARENA / 2);
	add(1, true, ARENA / 2);
	put_until_shut(RECORD, 500);
	read_up_to(1, 20);
	put_until_shut(RECORD, 500);
	cr_expect_eq(demote(200 * MS_NS), 1);
	cr_expect_eq(pages[0].state, R3RING_READER_DEMOTED);
	cr_expect_eq(pages[1].state, R3RING_READER_ADMITTED);
	cr_expect_eq(put_until_shut(RECORD, 500), 19);
}

/* ---- hostile pages --------------------------------------------------------- */

Test(gate, failure_40_a_cursor_that_goes_back_takes_nothing_back)
{
	add(0, true, ARENA / 2);
	put_until_shut(RECORD, 500);
	read_up_to(0, 11);
	cr_assert_eq(put_until_shut(RECORD, 500), 10);
	read_up_to(0, 2);
	cr_expect_eq(put_until_shut(RECORD, 500), 0);
	read_up_to(0, 14);
	cr_expect_eq(put_until_shut(RECORD, 500), 3);
	read_up_to(0, 1);
	cr_expect_eq(demote(100 * MS_NS), 1);
	cr_expect_eq(pages[0].demoted_from, 14);
}

Test(gate, failure_40_a_cursor_beyond_the_newest_record_stands_behind_it)
{
	uint64_t newest;

	add(0, true, ARENA / 2);
	newest = put_until_shut(RECORD, 10);
	read_up_to(0, UINT64_MAX);
	/* Seen by the writer once its last look is used up. */
	newest += put_until_shut(RECORD, ARENA / 2 / RECORD);
	cr_expect_eq(newest, 10 + ARENA / 2 / RECORD);
	/* What it stood behind is where it stands when it comes to its senses. */
	read_up_to(0, 12);
	cr_expect_leq(put_until_shut(RECORD, 500), ARENA / 2 / RECORD);
	cr_expect_eq(demote(200 * MS_NS), 1);
	cr_expect_leq(pages[0].demoted_from, newest + 1);
}

Test(gate, failure_40_flags_that_stay_set_cost_one_wake_a_batch_and_stall_nothing)
{
	add(0, false, 0);
	add(1, true, 0);
	pages[0].waiting = 77;
	pages[1].waiting = UINT32_MAX;
	for (uint64_t seq = 1; seq <= 100; seq++) {
		cr_assert_eq(put(8), 0);
		read_up_to(1, seq + 1);
		r3ring_writer_wake(ring.writer);
		cr_assert_eq(gate_wakes(gate), seq);
	}
}

Test(gate, failure_40_what_a_reader_stores_in_the_daemons_line_changes_nothing)
{
	add(0, true, ARENA / 2);
	pages[0].limit_bytes = UINT64_MAX;
	pages[0].stall_ns = UINT64_MAX;
	pages[0].state = R3RING_READER_DEMOTED;
	cr_expect_eq(put_until_shut(RECORD, 500), ARENA / 2 / RECORD);
	pages[0].state = R3RING_READER_ADMITTED;
	cr_expect_eq(demote(100 * MS_NS), 1);
	pages[0].lossless = 1;
	pages[0].state = R3RING_READER_ADMITTED;
	cr_expect_eq(put_until_shut(RECORD, 500), 500);
}

/* Stores nonsense all the time. */
static void *fuzz(void *arg)
{
	uint32_t *stop = arg;
	uint64_t random = 0x9e3779b97f4a7c15ull;
	uint64_t *words = (uint64_t *)(void *)&pages[0];

	/* Pairs with the release in the test below. */
	while (!r3ring_load_acquire_u32(stop)) {
		random = random * 6364136223846793005ull + 1442695040888963407ull;
		r3ring_store_relaxed_u64(&words[(random >> 40) % (sizeof(pages[0]) / 8)],
					 random >> (random & 63));
	}
	return NULL;
}

Test(gate, failure_40_a_page_of_nonsense_harms_neither_the_writer_nor_an_honest_reader)
{
	struct r3ring_cursor *cursor = ring_fixture_cursor(&ring, R3RING_LOSSY, R3RING_FROM_SEQ, 1);
	uint32_t stop = 0;
	pthread_t thread;

	add(0, true, 0);
	add(1, true, 0);
	cr_assert_eq(pthread_create(&thread, NULL, fuzz, &stop), 0);
	for (uint64_t seq = 1; seq <= 20000; seq++) {
		while (put(RECORD) == -EAGAIN)
			demote(MS_NS);
		r3ring_writer_wake(ring.writer);
		if (seq % 4 == 0) {
			struct r3ring_view view;

			while (r3ring_cursor_next(cursor, &view) == 1)
				cr_assert_eq(r3ring_cursor_check(cursor), 0);
			read_up_to(1, seq + 1);
		}
	}
	/* Pairs with the acquire in fuzz(). */
	r3ring_store_release_u32(&stop, 1);
	pthread_join(thread, NULL);
	cr_expect_eq(ring_fixture_account(cursor).got, 20000);
	cr_expect_neq(pages[1].state, R3RING_READER_DEMOTED);
	r3ring_cursor_close(cursor);
}

/* ---- waking ---------------------------------------------------------------- */

Test(gate, nobody_asleep_costs_no_system_call)
{
	add(0, false, 0);
	add(1, true, 0);
	put(8);
	r3ring_writer_wake(ring.writer);
	cr_expect_eq(gate_wakes(gate), 0);
}

static void count_poke(void *owner)
{
	unsigned int *pokes = owner;

	(*pokes)++;
}

Test(gate, who_arms_is_poked_once)
{
	unsigned int pokes = 0;
	const struct gate_terms terms = {.poke = count_poke, .owner = &pokes};

	gate_add(gate, &pages[0], &terms);
	r3ring_writer_wake(ring.writer);
	cr_expect_eq(pokes, 0);
	pages[0].armed++;
	r3ring_writer_wake(ring.writer);
	r3ring_writer_wake(ring.writer);
	cr_expect_eq(pokes, 1);
	pages[0].armed++;
	r3ring_writer_wake(ring.writer);
	cr_expect_eq(pokes, 2);
	cr_expect_eq(gate_wakes(gate), 0);
}

/* ---- room ahead of a step --------------------------------------------------- */

static bool has_room(uint64_t records, uint64_t bytes)
{
	struct gate_front front = writer_front(ring.writer);

	return gate_has_room(gate, &front, records, bytes);
}

Test(gate, room_is_what_is_granted_and_all_of_it_when_nothing_is_unread)
{
	add(0, true, ARENA / 2);
	cr_expect(has_room(1000, 10 * ARENA));
	put(RECORD);
	cr_expect(has_room(1, ARENA / 2 - RECORD));
	cr_expect_not(has_room(1, ARENA / 2 - RECORD + 1));
	cr_expect_not(has_room(DEPTH / 2, 64));
	read_up_to(0, 2);
	cr_expect(has_room(1000, 10 * ARENA));
}

Test(gate, a_reserve_is_there_for_what_must_be_said)
{
	struct gate *reserved = gate_create(ring.segment, true);
	const struct gate_terms terms = {.lossless = true, .limit_bytes = ARENA / 2};

	writer_set_gate(ring.writer, reserved);
	gate_add(reserved, &pages[0], &terms);
	cr_expect_eq(put_until_shut(RECORD, 500), ARENA / 8 * 7 / RECORD);
	gate_destroy(reserved);
}
