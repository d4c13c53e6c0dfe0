/* SPDX-License-Identifier: Apache-2.0 */
/* Pages that say what cannot be: the gate believes none of it. */
#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>

#include <r3ring/atomic.h>

#include "tests/unit/gate_fixture.h"

TestSuite(gate_hostile, .init = gated_open, .fini = gated_close, .timeout = 30);

Test(gate_hostile, failure_40_a_cursor_that_goes_back_takes_nothing_back)
{
	gated_add(0, true, GATED_ARENA / 2);
	gated_put_until_shut(GATED_RECORD, 500);
	gated_read_up_to(0, 11);
	cr_assert_eq(gated_put_until_shut(GATED_RECORD, 500), 10);
	gated_read_up_to(0, 2);
	cr_expect_eq(gated_put_until_shut(GATED_RECORD, 500), 0);
	gated_read_up_to(0, 14);
	cr_expect_eq(gated_put_until_shut(GATED_RECORD, 500), 3);
	gated_read_up_to(0, 1);
	cr_expect_eq(gated_demote(100 * GATED_MS_NS), 1);
	cr_expect_eq(gated.page[0].demoted_from, 14);
}

Test(gate_hostile, failure_40_a_cursor_beyond_the_newest_record_stands_behind_it)
{
	uint64_t newest;

	gated_add(0, true, GATED_ARENA / 2);
	newest = gated_put_until_shut(GATED_RECORD, 10);
	gated_read_up_to(0, UINT64_MAX);
	/* Seen by the writer once its last look is used up. */
	newest += gated_put_until_shut(GATED_RECORD, GATED_ARENA / 2 / GATED_RECORD);
	cr_expect_eq(newest, 10 + GATED_ARENA / 2 / GATED_RECORD);
	/* What it stood behind is where it stands when it comes to its senses. */
	gated_read_up_to(0, 12);
	cr_expect_leq(gated_put_until_shut(GATED_RECORD, 500), GATED_ARENA / 2 / GATED_RECORD);
	cr_expect_eq(gated_demote(200 * GATED_MS_NS), 1);
	cr_expect_leq(gated.page[0].demoted_from, newest + 1);
}

Test(gate_hostile, failure_40_flags_that_stay_set_cost_one_wake_a_batch_and_stall_nothing)
{
	gated_add(0, false, 0);
	gated_add(1, true, 0);
	gated.page[0].waiting = 77;
	gated.page[1].waiting = UINT32_MAX;
	for (uint64_t seq = 1; seq <= 100; seq++) {
		cr_assert_eq(gated_put(8), 0);
		gated_read_up_to(1, seq + 1);
		r3ring_writer_wake(gated.ring.writer);
		cr_assert_eq(gate_wakes(gated.gate), seq);
	}
}

Test(gate_hostile, failure_40_what_a_reader_stores_in_the_daemons_line_changes_nothing)
{
	gated_add(0, true, GATED_ARENA / 2);
	gated.page[0].limit_bytes = UINT64_MAX;
	gated.page[0].stall_ns = UINT64_MAX;
	gated.page[0].state = R3RING_READER_DEMOTED;
	cr_expect_eq(gated_put_until_shut(GATED_RECORD, 500), GATED_ARENA / 2 / GATED_RECORD);
	gated.page[0].state = R3RING_READER_ADMITTED;
	cr_expect_eq(gated_demote(100 * GATED_MS_NS), 1);
	gated.page[0].lossless = 1;
	gated.page[0].state = R3RING_READER_ADMITTED;
	cr_expect_eq(gated_put_until_shut(GATED_RECORD, 500), 500);
}

/* Stores nonsense all the time. */
static void *fuzz(void *arg)
{
	uint32_t *stop = arg;
	uint64_t random = 0x9e3779b97f4a7c15ull;
	uint64_t *words = (uint64_t *)(void *)&gated.page[0];

	/* Pairs with the release in the test below. */
	while (!r3ring_load_acquire_u32(stop)) {
		random = random * 6364136223846793005ull + 1442695040888963407ull;
		r3ring_store_relaxed_u64(&words[(random >> 40) % (sizeof(gated.page[0]) / 8)],
					 random >> (random & 63));
	}
	return NULL;
}

Test(gate_hostile, failure_40_a_page_of_nonsense_harms_neither_the_writer_nor_an_honest_reader)
{
	struct r3ring_cursor *cursor =
		ring_fixture_cursor(&gated.ring, R3RING_LOSSY, R3RING_FROM_SEQ, 1);
	uint32_t stop = 0;
	pthread_t thread;

	gated_add(0, true, 0);
	gated_add(1, true, 0);
	cr_assert_eq(pthread_create(&thread, NULL, fuzz, &stop), 0);
	for (uint64_t seq = 1; seq <= 20000; seq++) {
		while (gated_put(GATED_RECORD) == -EAGAIN)
			gated_demote(GATED_MS_NS);
		r3ring_writer_wake(gated.ring.writer);
		if (seq % 4 == 0) {
			struct r3ring_view view;

			while (r3ring_cursor_next(cursor, &view) == 1)
				cr_assert_eq(r3ring_cursor_check(cursor), 0);
			gated_read_up_to(1, seq + 1);
		}
	}
	/* Pairs with the acquire in fuzz(). */
	r3ring_store_release_u32(&stop, 1);
	pthread_join(thread, NULL);
	cr_expect_eq(ring_fixture_account(cursor).got, 20000);
	cr_expect_neq(gated.page[1].state, R3RING_READER_DEMOTED);
	r3ring_cursor_close(cursor);
}
