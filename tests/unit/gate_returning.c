/* SPDX-License-Identifier: Apache-2.0 */
/* What a gate keeps for readers of a writer that died, until they are back. */
#include <criterion/criterion.h>

#include "ring/internal.h"
#include "tests/unit/gate_fixture.h"

#define KEPT                                                                                       \
	(GATED_ARENA / 8 * 7 / GATED_RECORD) /* records for readers that have yet to come back */

TestSuite(gate_returning, .init = gated_open, .fini = gated_close, .timeout = 30);

Test(gate_returning,
     for_readers_of_a_dead_writer_all_that_they_may_need_is_kept_until_they_are_let_go)
{
	struct gate_front front;
	int number;

	ring_fixture_put_many(&gated.ring, 300, GATED_RECORD);
	front = writer_front(gated.ring.writer);
	gate_keep(gated.gate, &front, R3RING_KEEPS_RETURNING);
	number = gate_hold(gated.gate, &front);
	cr_expect(gate_has_room(gated.gate, &front, 2, GATED_ARENA / 16));
	cr_expect_not(gate_has_room(gated.gate, &front, 2, GATED_ARENA / 16 + 1));
	cr_expect_eq(gated_put_until_shut(GATED_RECORD, 500), GATED_ARENA / 16 / GATED_RECORD);
	cr_expect_eq(gated_demote(1000 * GATED_MS_NS), 0);
	cr_expect_leq(r3ring_segment_oldest(gated.ring.seen), 300 + 1 - KEPT);
	/* One that comes back takes over what it needs. */
	gated_add(0, true, 0);
	cr_expect_eq(gated.page[0].held_from, 300 + 1 - KEPT);
	gated_read_up_to(0, 300);
	gate_let_go(gated.gate, number);
	cr_expect_eq(gate_keeps(gated.gate), R3RING_KEEPS_NONE);
	cr_expect_eq(gated_put_until_shut(GATED_RECORD, 500),
		     300 + GATED_ARENA / 4 * 3 / GATED_RECORD - 305);
}

/* Of another writer, in the same gated.ring. */
static void follow_writer(enum r3ring_keeps whom)
{
	struct gate_front front = writer_front(gated.ring.writer);

	gate_destroy(gated.gate);
	gated.gate = gate_create(gated.ring.segment, false);
	cr_assert_not_null(gated.gate);
	writer_set_gate(gated.ring.writer, gated.gate);
	gate_keep(gated.gate, &front, whom);
	gate_hold(gated.gate, &front);
}

Test(gate_returning, any_number_of_writers_that_die_keep_what_the_first_did)
{
	ring_fixture_put_many(&gated.ring, 300, GATED_RECORD);
	follow_writer(R3RING_KEEPS_RETURNING);
	cr_expect_eq(gated_put_until_shut(GATED_RECORD, 2), 2);
	follow_writer(R3RING_KEEPS_RETURNING);
	cr_expect_eq(gated_put_until_shut(GATED_RECORD, 500), 2);
	follow_writer(R3RING_KEEPS_RETURNING);
	cr_expect_eq(gated_put_until_shut(GATED_RECORD, 500), 0);
	cr_expect_leq(r3ring_segment_oldest(gated.ring.seen), 300 + 1 - KEPT);
	gated_add(0, true, 0);
	cr_expect_eq(gated.page[0].held_from, 300 + 1 - KEPT);
}

Test(gate_returning, a_writer_that_follows_one_that_had_let_go_keeps_anew)
{
	ring_fixture_put_many(&gated.ring, 300, GATED_RECORD);
	follow_writer(R3RING_KEEPS_RETURNING);
	gated_put_until_shut(GATED_RECORD, 500);
	gate_let_go(gated.gate, 0);
	follow_writer(R3RING_KEEPS_RETURNING);
	gated_add(0, true, 0);
	cr_expect_eq(gated.page[0].held_from, 304 + 1 - KEPT);
}

Test(gate_returning, for_whom_a_dead_writer_kept_is_known_to_the_next)
{
	follow_writer(R3RING_KEEPS_FORMER);
	gate_destroy(gated.gate);
	gated.gate = gate_create(gated.ring.segment, false);
	writer_set_gate(gated.ring.writer, gated.gate);
	cr_expect_eq(gate_keeps(gated.gate), R3RING_KEEPS_FORMER);
}

Test(gate_returning, what_a_dead_writer_cannot_have_kept_is_not_believed)
{
	static const uint64_t lies[] = {0, 1, 300 - GATED_DEPTH, 302, UINT64_MAX};

	ring_fixture_put_many(&gated.ring, 300, GATED_RECORD);
	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		gated.ring.segment->lines->keeps = R3RING_KEEPS_RETURNING;
		gated.ring.segment->lines->kept_from = lies[i];
		follow_writer(R3RING_KEEPS_RETURNING);
		cr_expect_eq(gated.ring.segment->lines->kept_from, 300 + 1 - KEPT);
	}
	gated.ring.segment->lines->keeps = 77;
	cr_expect_eq(gate_keeps(gated.gate), R3RING_KEEPS_NONE);
}

Test(gate_returning, a_reader_with_more_unread_than_the_next_writer_would_keep_is_behind)
{
	struct gate_front front;

	ring_fixture_put_many(&gated.ring, 300, GATED_RECORD);
	follow_writer(R3RING_KEEPS_RETURNING);
	gated_put_until_shut(GATED_RECORD, 500);
	gated_add(0, true, 0);
	front = writer_front(gated.ring.writer);
	cr_expect(gate_is_behind(gated.gate, &front));
	gated_read_up_to(0, 304 + 1 - KEPT - 1);
	cr_expect(gate_is_behind(gated.gate, &front));
	gated_read_up_to(0, 304 + 1 - KEPT);
	cr_expect_not(gate_is_behind(gated.gate, &front));
}
