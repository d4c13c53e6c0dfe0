/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Simulated engines that know the true routes, through real producers, a real daemon
 * (killed and started again in some), real readers and the assembler. With SEED=n the tests
 * run seeds n to n + SIM_SEEDS - 1 (that one only, unless told otherwise) instead of their own,
 * each every third of them; TRACE=1 tells what happened.
 */
#include <criterion/criterion.h>

#include <stdlib.h>

#include "tests/system/engine_sim/sim.h"

#define TESTS 3u
#define SEEDS 12u /* of a test */

static uint64_t number(const char *variable, uint64_t otherwise)
{
	const char *text = getenv(variable);

	return text && *text ? strtoull(text, NULL, 10) : otherwise;
}

static void run_seeds(uint64_t first, uint64_t end, uint64_t step)
{
	struct sim_figures figures = {0};
	uint32_t ran = 0;

	for (uint64_t seed = first; seed < end; seed += step, ran++)
		cr_assert_eq(sim_run_real(seed, number("TRACE", 0), &figures), 0, "seed %llu",
			     (unsigned long long)seed);
	/* Of few seeds all may be lost. */
	cr_assert(ran < SEEDS || figures.valid > figures.cells / 4);
}

static void run_test(uint64_t test)
{
	const uint64_t asked = number("SEED", 0);

	if (asked)
		run_seeds(asked + test, asked + number("SIM_SEEDS", 1), TESTS);
	else
		run_seeds(1 + test * SEEDS, 1 + (test + 1) * SEEDS, 1);
}

Test(engine_sim, through_a_real_daemon_routes_are_true_or_missing_seeds_1_to_12, .timeout = 110)
{
	run_test(0);
}

Test(engine_sim, through_a_real_daemon_routes_are_true_or_missing_seeds_13_to_24, .timeout = 110)
{
	run_test(1);
}

Test(engine_sim, through_a_real_daemon_routes_are_true_or_missing_seeds_25_to_36, .timeout = 110)
{
	run_test(2);
}
