/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How to wait within a step for the next doorbell: learned from the intervals before,
 * so that it is heard soon and the core is left to others.
 */
#ifndef DAEMON_PACE_H
#define DAEMON_PACE_H

#include <stdbool.h>
#include <stdint.h>

#define PACE_INTERVALS 8u

/* Zeroed: nothing is known. */
struct pace {
	uint64_t intervals[PACE_INTERVALS]; /* the newest ones, oldest written over first */
	uint64_t count;                     /* of all */
	uint64_t expected_ns;               /* their median */
	uint64_t spread_ns; /* half of what all but the shortest and the longest lie within */
};

/* Learns from one interval between two events. */
void pace_observe(struct pace *pace, uint64_t interval_ns);

/* What to do for how long until the next look at everything. */
struct pace_wait {
	uint64_t ns;
	bool spin; /* without letting go of the core */
};

/*
 * How to wait when the last event was @elapsed_ns ago: a nap up to shortly before the
 * next one is expected; around that time a spin, where intervals are regular enough
 * that it is of use, and short naps otherwise; then longer and longer naps. Spins take
 * 1/32 of the expected interval at most.
 */
struct pace_wait pace_wait(const struct pace *pace, uint64_t elapsed_ns);

#endif
