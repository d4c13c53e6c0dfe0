/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting for records: a short spin, then sleep until the writer wakes. */
#include <errno.h>
#include <stdint.h>

#include <r3ring/atomic.h>

#include "consumer/internal.h"

#define SPIN_NS 20000ull      /* what a sleep and a wake would cost */
#define SLEEP_NS 100000000ull /* between two looks at the heartbeat */
#define ANSWER_NS 1000000ull  /* between two looks for a daemon's answer */
#define ENDED_NS 20000000ull  /* between two looks for the time to ask */

/* Whether next() has something to tell that it has not told yet. */
static bool look(struct r3ring_reader *reader)
{
	int rc = reader_advance(reader, &reader->found_view);

	if (rc == 0 || (rc == -EPIPE && reader->end_told && !reader->stay))
		return false;
	reader->found = true;
	reader->found_code = rc;
	return true;
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

/* An ended segment wakes nobody any more, and neither does the socket. */
static void rest(const struct r3ring_reader *reader, uint64_t left_ns)
{
	if (reader->follower.request.fd >= 0)
		sleep_for(shorter(left_ns, ANSWER_NS));
	else if (reader->end_told)
		sleep_for(shorter(left_ns, ENDED_NS));
	else
		r3ring_cursor_wait(reader->cursor, shorter(left_ns, SLEEP_NS));
}

int r3ring_reader_wait(struct r3ring_reader *reader, int timeout_ms)
{
	uint64_t start = clock_ns(CLOCK_MONOTONIC);
	uint64_t limit = timeout_ms < 0 ? UINT64_MAX : (uint64_t)timeout_ms * 1000000u;

	if (reader->found || reader->view_open)
		return 1;
	for (;;) {
		uint64_t waited;
		int rc;

		if (look(reader))
			return 1;
		waited = clock_ns(CLOCK_MONOTONIC) - start;
		rc = nothing_to_tell(reader, waited >= limit);
		if (rc || waited >= limit)
			return rc;
		if (waited < SPIN_NS)
			r3ring_cpu_relax();
		else
			rest(reader, limit - waited);
	}
}
