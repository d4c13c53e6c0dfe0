/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The clocks that processes share, in nanoseconds. Times in records, ages and times to live
 * are CLOCK_MONOTONIC; what is kept in files, or told to people, is CLOCK_REALTIME.
 */
#ifndef CHANNEL_CLOCK_H
#define CHANNEL_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t clock_read_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static inline uint64_t clock_now_ns(void)
{
	return clock_read_ns(CLOCK_MONOTONIC);
}

/* As of the last tick of the kernel, for less: a few milliseconds late. */
static inline uint64_t clock_coarse_ns(void)
{
	return clock_read_ns(CLOCK_MONOTONIC_COARSE);
}

static inline uint64_t clock_real_ns(void)
{
	return clock_read_ns(CLOCK_REALTIME);
}

#endif
