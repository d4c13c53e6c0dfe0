/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The assembler against a simulated engine that knows the truth: what comes out is the
 * route that was taken, or missing with a cause; what was delivered is not missing.
 *
 *	engine_sim [SEEDS [FIRST]]     also SIM_SEEDS and SEED; TRACE=1: what happened
 */
#include <stdio.h>
#include <stdlib.h>

#include "tests/system/engine_sim/sim.h"

#define SEEDS 400u

static uint64_t number(const char *text, const char *variable, uint64_t otherwise)
{
	if (!text)
		text = getenv(variable);
	return text && *text ? strtoull(text, NULL, 10) : otherwise;
}

static void print_figures(const struct sim_figures *figures)
{
	printf("engine_sim: %llu requests, %llu came out, %llu cells: %llu valid",
	       (unsigned long long)figures->requests, (unsigned long long)figures->given,
	       (unsigned long long)figures->cells, (unsigned long long)figures->valid);
	for (uint32_t cause = 1; cause < R3RING_MISSING_CAUSES; cause++)
		if (figures->causes[cause])
			printf(", %llu %s", (unsigned long long)figures->causes[cause],
			       r3ring_missing_cause_name(cause));
	printf("; %llu mixed\n", (unsigned long long)figures->mixed);
}

/* A simulation in which nothing is lost, or nothing comes, shows nothing. */
static bool shows_something(const struct sim_figures *figures)
{
	return figures->valid > figures->cells / 2 && figures->causes[R3RING_MISSING_GAP] &&
	       figures->causes[R3RING_CAUSE_CONFLICT];
}

int main(int argc, char **argv)
{
	uint64_t seeds = number(argc > 1 ? argv[1] : NULL, "SIM_SEEDS", SEEDS);
	uint64_t first = number(argc > 2 ? argv[2] : NULL, "SEED", 1);
	bool trace = number(NULL, "TRACE", 0);
	struct sim_figures figures = {0};
	uint64_t wrong = 0;

	for (uint64_t seed = first; seed < first + seeds; seed++)
		wrong += sim_run(seed, trace, &figures) != 0;
	print_figures(&figures);
	printf("engine_sim: %llu seeds from %llu on, %llu with faults\n", (unsigned long long)seeds,
	       (unsigned long long)first, (unsigned long long)wrong);
	if (seeds >= SEEDS && !shows_something(&figures)) {
		printf("engine_sim: so few losses, conflicts or routes show nothing\n");
		return 1;
	}
	return wrong != 0;
}
