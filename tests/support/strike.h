/* SPDX-License-Identifier: Apache-2.0 */
/* Killing a process at a point of its code that chance names, or at any moment. */
#ifndef TESTS_SUPPORT_STRIKE_H
#define TESTS_SUPPORT_STRIKE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "tests/support/test_points.h"

/* Labels of points; "": the count-th point of any name. */
struct labels {
	const char *const *names;
	unsigned int count;
};

/* What is passed again and again, and what once when it begins or ends. */
extern const struct labels daemon_points, daemon_start, daemon_end, daemon_stall;
extern const struct labels engine_points, engine_start;
extern const struct labels reader_points, reader_start;

/* The same seed gives the same numbers. */
void strike_seed(uint64_t seed);
/* In [0, bound). */
uint64_t strike_chance(uint64_t bound);

/* Whether this build has points. */
bool strike_has_points(void);

/* Whether the process dies within @ms. */
bool strike_await(pid_t pid, uint64_t ms);

/*
 * Waits until the process has died at a point, or its time has come; the caller kills
 * it then, should it still live. Returns whether it died.
 */
bool strike(pid_t pid, struct test_points *points, const struct labels *labels);

/* For one that has just begun, or is about to end: arms a point that is passed once. */
void strike_once(struct test_points *points, const struct labels *labels);

#endif
