/* SPDX-License-Identifier: Apache-2.0 */
/* How long something took, as a histogram; one thread notes, any may read. */
#ifndef SERVE_LATENCY_H
#define SERVE_LATENCY_H

#include <stdint.h>

#define LATENCY_BOUNDS 14u

/* Upper bounds of the buckets, in ns; one more bucket has the rest. */
extern const uint64_t latency_bound_ns[LATENCY_BOUNDS];

/* Zeroed: nothing yet. */
struct latency {
	uint64_t bucket[LATENCY_BOUNDS + 1];
	uint64_t sum_ns;
};

void latency_note(struct latency *latency, uint64_t ns);

/* A copy, each number of which was right at some time during the call. */
void latency_read(const struct latency *latency, struct latency *copy);

#endif
