/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long to nap within a step until the next doorbell: learned from the
 * intervals before, so that it is heard soon and the core is left to others.
 */
#ifndef DAEMON_PACE_H
#define DAEMON_PACE_H

#include <stdint.h>

/* Zeroed: nothing is known. */
struct pace {
	uint64_t mean_ns;
	uint64_t deviation_ns;
};

/* Learns from one interval between two events. */
void pace_observe(struct pace *pace, uint64_t interval_ns);

/*
 * Nanoseconds to nap when the last event was @elapsed_ns ago: up to shortly
 * before the next one is expected, then briefly, then longer and longer.
 */
uint64_t pace_nap_ns(const struct pace *pace, uint64_t elapsed_ns);

#endif
