/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waiting for records: a spin as long as it has been of use, then sleep. A registered
 * reader says in its page that it sleeps, and is woken; any other polls.
 */
#include <errno.h>
#include <stdint.h>

#include <r3ring/atomic.h>
#include <test_point.h>

#include "consumer/internal.h"
#include "ring/cursor.h"

#define SPIN_LEAST_NS 1000ull
#define SPIN_MOST_NS 50000ull         /* about what a sleep and a wake cost */
#define SLEEP_NS 100000000ull         /* between two looks whether the daemon has died */
#define SLEEP_LOSSLESS_NS 50000000ull /* where the next one's writer waits, for a stall limit */
#define POLL_LEAST_NS 50000ull        /* between two looks of one that is not registered */
#define POLL_MOST_NS 1000000ull
#define ANSWER_NS 1000000ull /* between two looks for a daemon's answer */
#define ENDED_NS 20000000ull /* between two looks for the time to ask */

bool reader_look(struct r3ring_reader *reader)
{
	int rc = reader_advance(reader, &reader->found_view);

	if (rc == 0 || (rc == -EPIPE && reader->end_told && !reader->stay))
		return false;
	reader->found = true;
	reader->found_code = rc;
	return true;
}

bool reader_look_twice(struct r3ring_reader *reader)
{
	cursor_doubt(reader->cursor);
	return reader_look(reader);
}

/* A dead writer is told of once; then its successor is waited for. */
static int nothing_to_tell(struct r3ring_reader *reader, bool time_over)
{
	bool dead = reader->follower.writer_dead;

	if (!dead)
		reader->death_told = false;
	if (dead && (time_over || !reader->death_told)) {
		reader->death_told = true;
		return -EOWNERDEAD;
	}
	return 0;
}

static uint64_t shorter(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static void sleep_for(uint64_t ns)
{
	struct timespec pause = {
		.tv_sec = (time_t)(ns / 1000000000u),
		.tv_nsec = (long)(ns % 1000000000u),
	};

	nanosleep(&pause, NULL);
}

void reader_sleep(struct r3ring_reader_page *page, const struct r3ring_cursor *cursor,
		  uint64_t timeout_ns)
{
	r3ring_store_relaxed_u32(&page->waiting, 1);
	R3RING_TEST_POINT("reader waits");
	/* Pairs with the fence in gate_wake(). */
	r3ring_fence_full();
	r3ring_cursor_wait(cursor, timeout_ns);
	r3ring_store_relaxed_u32(&page->waiting, 0);
	R3RING_TEST_POINT("reader woke");
}

static void nap(struct r3ring_reader *reader, uint64_t left_ns)
{
	r3ring_cursor_wait(reader->cursor, shorter(left_ns, reader->nap_ns));
	reader->nap_ns = shorter(reader->nap_ns * 2, POLL_MOST_NS);
}

/* A daemon that dies wakes nobody who sleeps on its ring. */
static uint64_t sleep_ns(const struct r3ring_reader *reader)
{
	return reader->target.lossless || reader->readiness.hung_up ? SLEEP_LOSSLESS_NS : SLEEP_NS;
}

/* An ended segment wakes nobody any more, and neither does the socket. */
static void rest(struct r3ring_reader *reader, uint64_t left_ns)
{
	if (reader->follower.request.fd >= 0 || reader->follower.next.segment)
		sleep_for(shorter(left_ns, ANSWER_NS));
	else if (reader->end_told)
		sleep_for(shorter(left_ns, ENDED_NS));
	else if (reader->now.page)
		reader_sleep(reader->now.page, reader->cursor, shorter(left_ns, sleep_ns(reader)));
	else
		nap(reader, left_ns);
}

/* Longer next time when it was of use, shorter when a sleep came after all. */
static void learn_spin(struct r3ring_reader *reader, uint64_t waited_ns)
{
	if (waited_ns <= reader->spin_ns)
		reader->spin_ns = shorter(reader->spin_ns * 2, SPIN_MOST_NS);
	else if (reader->spin_ns / 2 >= SPIN_LEAST_NS)
		reader->spin_ns /= 2;
}

int r3ring_reader_wait(struct r3ring_reader *reader, int timeout_ms)
{
	uint64_t start = clock_now_ns();
	uint64_t limit = timeout_ms < 0 ? UINT64_MAX : (uint64_t)timeout_ms * 1000000u;
	uint64_t waited = 0;

	if (reader->found || reader->view_open)
		return 1;
	if (!reader->spin_ns)
		reader->spin_ns = SPIN_MOST_NS;
	reader->nap_ns = POLL_LEAST_NS;
	while (!reader_look(reader)) {
		int rc;

		waited = clock_now_ns() - start;
		if (waited >= shorter(limit, reader->spin_ns) && reader_look_twice(reader))
			return 1;
		rc = nothing_to_tell(reader, waited >= limit);
		if (rc || waited >= limit)
			return rc;
		if (waited < reader->spin_ns)
			r3ring_cpu_relax();
		else
			rest(reader, limit - waited);
	}
	if (waited)
		learn_spin(reader, waited);
	return 1;
}
