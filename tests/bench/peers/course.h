/* SPDX-License-Identifier: Apache-2.0 */
/* One way through a peer, seen by the processes at both of its ends. */
#ifndef TESTS_BENCH_PEERS_COURSE_H
#define TESTS_BENCH_PEERS_COURSE_H

#include <stdbool.h>
#include <stdint.h>

#include <r3ring/abi.h>

#include "tests/bench/peers/peer.h"

#define COURSE_SAMPLES_MAX 100000u

/* A reader's line, and its account once it has ended. */
struct course_reader {
	uint64_t taken; /* number of the newest message that it has copied out */
	uint8_t pad0[R3RING_LINE - 8];
	uint64_t received, lost, wrong;
	uint64_t timed, timed_ns; /* messages behind the warm-up, and their time */
	uint64_t sample_count;
	uint8_t pad1[R3RING_LINE - 48];
};

/* In shared memory. */
struct course {
	const struct peer *peer;
	struct peer_channel channel;
	uint64_t duration_ns;
	bool one_at_a_time;
	bool crowded;    /* there are not as many cores as processes */
	uint32_t opened; /* processes that have; all begin when all have */
	uint32_t ended;  /* readers that have */
	uint32_t broken; /* somebody failed: all give up */
	uint8_t pad0[R3RING_LINE];
	uint64_t total; /* number of the last message, stored before it is sent; else 0 */
	uint8_t pad1[R3RING_LINE - 8];
	struct course_reader readers[PEER_READERS_MAX];
	uint64_t samples[PEER_READERS_MAX][COURSE_SAMPLES_MAX]; /* ns */
};

/* What processes run; return 0 or a negative errno. */
int course_write(struct course *course);
int course_read(struct course *course, unsigned int reader);

/* ---- waiting for another process ------------------------------------------- */

struct patience {
	const struct course *course;
	unsigned int looks;
	uint64_t end_ns; /* 0: not known yet */
};

/* One more look in vain. Returns 0, -ETIMEDOUT after twenty seconds of them, or
 * -ECANCELED when another process failed. */
int patience_look(struct patience *patience);

/* What was waited for has come. */
static inline void patience_found(struct patience *patience)
{
	patience->looks = 0;
	patience->end_ns = 0;
}

#endif
