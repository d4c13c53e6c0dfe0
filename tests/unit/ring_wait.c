/* SPDX-License-Identifier: Apache-2.0 */
/* Sleeping until there is something to read. */
#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>

#include <r3ring/atomic.h>

#include "ring/internal.h"
#include "tests/unit/ring_fixture.h"

#define LONG_NS 10000000000ull

static struct ring_fixture ring;
static struct r3ring_cursor *cursor;

static void setup(void)
{
	ring_fixture_open(&ring, 64, 65536);
	cursor = ring_fixture_cursor(&ring, R3RING_LOSSY, R3RING_FROM_OLDEST, 0);
}

static void teardown(void)
{
	r3ring_cursor_close(cursor);
	ring_fixture_close(&ring);
}

TestSuite(ring_wait, .init = setup, .fini = teardown, .timeout = 9);

Test(ring_wait, a_record_that_is_there_needs_no_sleep)
{
	ring_fixture_put(&ring, 4, 1, 0);
	cr_assert_eq(r3ring_cursor_wait(cursor, LONG_NS), 1);
}

Test(ring_wait, an_overrun_needs_no_sleep)
{
	ring_fixture_put_many(&ring, 500, 4);
	cr_assert_eq(r3ring_cursor_wait(cursor, LONG_NS), 1);
}

Test(ring_wait, a_finished_ring_needs_no_sleep)
{
	r3ring_writer_finish(ring.writer);
	cr_assert_eq(r3ring_cursor_wait(cursor, LONG_NS), 1);
}

Test(ring_wait, an_empty_ring_times_out)
{
	cr_assert_eq(r3ring_cursor_wait(cursor, 1000000), 0);
}

/* Answers each record with a wake-up of its own, as fast as the reader takes them. */
static void *put_one_at_a_time(void *arg)
{
	uint64_t *taken = arg;

	for (uint64_t i = 1; i <= 2000; i++) {
		ring_fixture_put(&ring, 4, 1, 0);
		r3ring_writer_wake(ring.writer);
		/* Pairs with the release in the test below. */
		while (r3ring_load_acquire_u64(taken) < i)
			r3ring_cpu_relax();
	}
	return NULL;
}

Test(ring_wait, failure_37_no_wake_up_is_lost)
{
	uint64_t taken = 0;
	pthread_t thread;

	cr_assert_eq(pthread_create(&thread, NULL, put_one_at_a_time, &taken), 0);
	for (uint64_t seq = 1; seq <= 2000; seq++) {
		/* That of a record already read may come late and for nothing; a lost one
		 * would sleep beyond the test's deadline. */
		while (!r3ring_cursor_wait(cursor, LONG_NS))
			;
		ring_fixture_expect(cursor, seq, 4);
		/* Pairs with the acquire in put_one_at_a_time(). */
		r3ring_store_release_u64(&taken, seq);
	}
	pthread_join(thread, NULL);
}
