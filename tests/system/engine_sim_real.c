/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Simulated engines that know the true routes, through real producers, a real daemon
 * (killed and started again in some), real readers and the assembler. SEED=n runs that
 * one only, TRACE=1 tells what happened.
 */
#include <criterion/criterion.h>

#include <stdlib.h>

#include "tests/system/engine_sim/sim.h"

static void run_seeds(uint64_t first, uint64_t end)
{
	const char *only = getenv("SEED");
	struct sim_figures figures = {0};

	for (uint64_t seed = first; seed < end; seed++)
		if (!only || strtoull(only, NULL, 10) == seed)
			cr_assert_eq(sim_run_real(seed, getenv("TRACE"), &figures), 0, "seed %llu",
				     (unsigned long long)seed);
	cr_assert(only || figures.valid > figures.cells / 4);
}

Test(engine_sim, through_a_real_daemon_routes_are_true_or_missing_seeds_1_to_12, .timeout = 110)
{
	run_seeds(1, 13);
}

Test(engine_sim, through_a_real_daemon_routes_are_true_or_missing_seeds_13_to_24, .timeout = 110)
{
	run_seeds(13, 25);
}

Test(engine_sim, through_a_real_daemon_routes_are_true_or_missing_seeds_25_to_36, .timeout = 110)
{
	run_seeds(25, 37);
}
