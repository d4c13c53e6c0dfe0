/* SPDX-License-Identifier: Apache-2.0 */
/* One peer's latency and throughput, between processes on cores of their own. */
#ifndef TESTS_BENCH_PEERS_MEASURE_H
#define TESTS_BENCH_PEERS_MEASURE_H

#include <stddef.h>
#include <stdint.h>

#include "tests/bench/peers/peer.h"

/* Every peer gets as many bytes for messages that were not yet read. */
#define PEER_BYTES (1u << 20)
#define PEER_SLOTS_MAX 1024u

struct peer_plan {
	size_t size; /* bytes of a message */
	unsigned int readers;
	uint64_t latency_ns;    /* for so long one message at a time; 0: not at all */
	uint64_t throughput_ns; /* for so long as many as go through; 0: not at all */
};

struct peer_counts {
	uint64_t sent;
	uint64_t received; /* of all readers */
	uint64_t lost;     /* passed over, or never came; wrong ones are lost too */
	uint64_t wrong;    /* not whole, or not in order */
};

struct peer_result {
	double p50, p99, p999; /* ns from before the send until it was copied out */
	size_t samples;        /* from which these are */
	double rate;           /* messages a second at the slowest reader */
	struct peer_counts counts;
};

/*
 * Measures @peer once. A time of less than a millisecond sends a few hundred
 * messages, which is enough to see that they come whole.
 *
 * Returns 0, -ENOTSUP (cannot run here), or another negative errno; @result is
 * untouched unless 0 is returned.
 */
int peer_measure(const struct peer *peer, const struct peer_plan *plan, struct peer_result *result);

#endif
