/* SPDX-License-Identifier: Apache-2.0 */
/* The producer's clock: CLOCK_MONOTONIC in nanoseconds, as in all records. */
#ifndef PRODUCER_CLOCK_H
#define PRODUCER_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t clock_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

#endif
