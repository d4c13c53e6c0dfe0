/* SPDX-License-Identifier: Apache-2.0 */
/* The gate: how far pages of registered readers let the writer go. */
#include <criterion/criterion.h>
#include <errno.h>

#include "tests/unit/gate_fixture.h"

TestSuite(gate, .init = gated_open, .fini = gated_close, .timeout = 30);

/* ---- limits --------------------------------------------------------------- */

Test(gate, without_lossless_readers_it_is_never_shut)
{
	gated_add(0, false, 0);
	cr_expect_eq(gated_put_until_shut(GATED_RECORD, 500), 500);
}

Test(gate, arena_bytes_unread_stay_within_the_limit)
{
	gated_add(0, true, GATED_ARENA / 2);
	cr_expect_eq(gated_put_until_shut(GATED_RECORD, 500), GATED_ARENA / 2 / GATED_RECORD);
	gated_read_up_to(0, 11);
	cr_expect_eq(gated_put_until_shut(GATED_RECORD, 500), 10);
}

Test(gate, records_unread_stay_within_the_same_share_of_the_descriptors)
{
	gated_add(0, true, GATED_ARENA / 2);
	cr_expect_eq(gated_put_until_shut(8, 500), GATED_DEPTH / 2);
	gated_read_up_to(0, 11);
	cr_expect_eq(gated_put_until_shut(8, 500), 10);
}

Test(gate, at_most_three_quarters_of_the_ring_are_granted)
{
	gated_add(0, true, GATED_ARENA * 4ull);
	cr_expect_eq(gated.page[0].limit_bytes, GATED_ARENA / 4 * 3);
	cr_expect_eq(gated_put_until_shut(GATED_RECORD, 500), GATED_ARENA / 4 * 3 / GATED_RECORD);
}

Test(gate, the_largest_record_always_fits_in_front_of_a_reader_that_has_read_all)
{
	gated_add(0, true, 1);
	for (uint64_t seq = 1; seq < 200; seq++) {
		cr_assert_eq(gated_put((uint32_t)(seq % 3 ? GATED_ARENA / 8 : 4160)), 0);
		gated_read_up_to(0, seq + 1);
	}
}

Test(gate, what_is_kept_passes_its_check)
{
	struct r3ring_cursor *cursor =
		ring_fixture_cursor(&gated.ring, R3RING_LOSSY, R3RING_FROM_SEQ, 1);

	gated_add(0, true, 0);
	for (uint64_t seq = 1; seq <= 2000; seq++) {
		struct r3ring_record_spec spec = {.len = (uint32_t)(seq * 37 % (GATED_ARENA / 8))};
		uint8_t payload[GATED_ARENA / 8] = {0};

		while (r3ring_writer_put(gated.ring.writer, &spec, payload) == -EAGAIN) {
			struct r3ring_view view;

			cr_assert_eq(r3ring_cursor_next(cursor, &view), 1);
			cr_assert_eq(r3ring_cursor_check(cursor), 0);
			gated_read_up_to(0, view.seq + 1);
		}
	}
	cr_expect_eq(ring_fixture_account(cursor).lost, 0);
	r3ring_cursor_close(cursor);
}

Test(gate, reservations_in_flight_count)
{
	const struct r3ring_record_spec spec = {.len = GATED_RECORD};
	struct r3ring_slot slot;
	unsigned int reserved = 0;
	int rc;

	gated_add(0, true, GATED_ARENA / 4);
	while ((rc = r3ring_writer_reserve(gated.ring.writer, &spec, &slot)) == 0)
		reserved++;
	cr_expect_eq(rc, -EAGAIN);
	cr_expect_eq(reserved, GATED_ARENA / 4 / GATED_RECORD);
}

Test(gate, the_slowest_reader_counts)
{
	gated_add(0, true, GATED_ARENA / 2);
	gated_add(1, true, GATED_ARENA / 2);
	gated_put_until_shut(GATED_RECORD, 500);
	gated_read_up_to(0, 33);
	cr_expect_eq(gated_put_until_shut(GATED_RECORD, 500), 0);
	gated_read_up_to(1, 5);
	cr_expect_eq(gated_put_until_shut(GATED_RECORD, 500), 4);
}

/* ---- coming and going ----------------------------------------------------- */

Test(gate, a_reader_that_comes_late_holds_what_its_limit_covers)
{
	struct r3ring_cursor *cursor;

	ring_fixture_put_many(&gated.ring, 300, GATED_RECORD);
	gated_add(0, true, GATED_ARENA / 2);
	cr_expect_eq(gated.page[0].state, R3RING_READER_ADMITTED);
	cr_expect_eq(gated.page[0].held_from, 300 - GATED_ARENA / 2 / GATED_RECORD + 1);
	cr_expect_eq(gated_put_until_shut(GATED_RECORD, 500), 0);
	cursor = ring_fixture_cursor(&gated.ring, R3RING_LOSSY, R3RING_FROM_SEQ,
				     gated.page[0].held_from);
	ring_fixture_expect(cursor, gated.page[0].held_from, GATED_RECORD);
	r3ring_cursor_close(cursor);
}

Test(gate, a_reader_that_is_removed_holds_nothing)
{
	int number = gated_add(0, true, GATED_ARENA / 2);

	gated_put_until_shut(GATED_RECORD, 500);
	gate_remove(gated.gate, number);
	cr_expect_eq(gated_put_until_shut(GATED_RECORD, 500), 500);
}

Test(gate, there_is_an_end_to_how_many_come)
{
	for (unsigned int i = 0; i < GATE_MEMBERS_MAX; i++)
		cr_expect_geq(gated_add(i, false, 0), 0);
	cr_expect_eq(gated_add(GATE_MEMBERS_MAX, false, 0), -ENOSPC);
	gate_remove(gated.gate, 7);
	cr_expect_eq(gated_add(GATE_MEMBERS_MAX, false, 0), 7);
}

/* ---- demoting ------------------------------------------------------------- */

Test(gate, a_reader_without_progress_is_demoted_after_its_stall_time_with_what_it_had_unread)
{
	gated_add(0, true, GATED_ARENA / 2);
	gated_put_until_shut(GATED_RECORD, 500);
	gated_read_up_to(0, 3);
	cr_assert_eq(gated_put_until_shut(GATED_RECORD, 500), 2);
	cr_expect_eq(gated_demote(99 * GATED_MS_NS), 0);
	cr_expect_eq(gated_demote(GATED_MS_NS), 1);
	cr_expect_eq(gated.page[0].state, R3RING_READER_DEMOTED);
	cr_expect_eq(gated.page[0].demoted_from, 3);
	cr_expect_eq(gated.page[0].demoted_to, GATED_ARENA / 2 / GATED_RECORD + 2);
	cr_expect_eq(gated_put_until_shut(GATED_RECORD, 500), 500);
}

Test(gate, a_reader_that_makes_progress_is_not_demoted)
{
	gated_add(0, true, GATED_ARENA / 2);
	for (uint64_t cursor = 5; cursor < 500; cursor += 4) {
		gated_put_until_shut(GATED_RECORD, 500);
		cr_assert_eq(gated_demote(60 * GATED_MS_NS), 0);
		gated_read_up_to(0, cursor);
	}
}

Test(gate, a_reader_that_trickles_is_demoted_though_it_never_stands_still)
{
	unsigned int turns = 0;

	gated_add(0, true, GATED_ARENA / 2);
	gated_put_until_shut(GATED_RECORD, 500);
	for (uint64_t cursor = 2; turns < 20 && !gated_demote(60 * GATED_MS_NS);
	     cursor++, turns++) {
		gated_read_up_to(0, cursor);
		gated_put_until_shut(GATED_RECORD, 500);
	}
	cr_expect_eq(turns, 1);
}

Test(gate, only_the_reader_in_the_way_is_demoted)
{
	gated_add(0, true, GATED_ARENA / 2);
	gated_add(1, true, GATED_ARENA / 2);
	gated_put_until_shut(GATED_RECORD, 500);
	gated_read_up_to(1, 20);
	gated_put_until_shut(GATED_RECORD, 500);
	cr_expect_eq(gated_demote(200 * GATED_MS_NS), 1);
	cr_expect_eq(gated.page[0].state, R3RING_READER_DEMOTED);
	cr_expect_eq(gated.page[1].state, R3RING_READER_ADMITTED);
	cr_expect_eq(gated_put_until_shut(GATED_RECORD, 500), 19);
}

/* ---- waking ---------------------------------------------------------------- */

Test(gate, nobody_asleep_costs_no_system_call)
{
	gated_add(0, false, 0);
	gated_add(1, true, 0);
	gated_put(8);
	r3ring_writer_wake(gated.ring.writer);
	cr_expect_eq(gate_wakes(gated.gate), 0);
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

	gate_add(gated.gate, &gated.page[0], &terms);
	r3ring_writer_wake(gated.ring.writer);
	cr_expect_eq(pokes, 0);
	gated.page[0].armed++;
	r3ring_writer_wake(gated.ring.writer);
	r3ring_writer_wake(gated.ring.writer);
	cr_expect_eq(pokes, 1);
	gated.page[0].armed++;
	r3ring_writer_wake(gated.ring.writer);
	cr_expect_eq(pokes, 2);
	cr_expect_eq(gate_wakes(gated.gate), 0);
}

/* ---- room ahead of a step --------------------------------------------------- */

static bool has_room(uint64_t records, uint64_t bytes)
{
	struct gate_front front = writer_front(gated.ring.writer);

	return gate_has_room(gated.gate, &front, records, bytes);
}

Test(gate, room_is_what_is_granted_and_all_of_it_when_nothing_is_unread)
{
	gated_add(0, true, GATED_ARENA / 2);
	cr_expect(has_room(1000, 10 * GATED_ARENA));
	gated_put(GATED_RECORD);
	cr_expect(has_room(1, GATED_ARENA / 2 - GATED_RECORD));
	cr_expect_not(has_room(1, GATED_ARENA / 2 - GATED_RECORD + 1));
	cr_expect_not(has_room(GATED_DEPTH / 2, 64));
	gated_read_up_to(0, 2);
	cr_expect(has_room(1000, 10 * GATED_ARENA));
}

Test(gate, a_reserve_is_there_for_what_must_be_said)
{
	struct gate *reserved = gate_create(gated.ring.segment, true);
	const struct gate_terms terms = {.lossless = true, .limit_bytes = GATED_ARENA / 2};

	writer_set_gate(gated.ring.writer, reserved);
	gate_add(reserved, &gated.page[0], &terms);
	cr_expect_eq(gated_put_until_shut(GATED_RECORD, 500), GATED_ARENA / 8 * 7 / GATED_RECORD);
	gate_destroy(reserved);
}
