/* SPDX-License-Identifier: Apache-2.0 */
/* One run of a cluster under a policy: the same arrivals for all policies of a seed. */
#ifndef WORTH_SIMULATE_H
#define WORTH_SIMULATE_H

#include "tests/bench/worth/policies.h"

#define ARRIVALS 400u

struct setting {
	const struct corpus *corpus;
	const struct knowledge *knowledge;
	const struct r3ring_eplb_map *map;
	const struct cost *cost;
	uint32_t workers;
	uint64_t seed;
};

struct outcome {
	double step_us;     /* mean over tokens: a step counts for each that it made */
	double step_p99_us; /* likewise */
	double imbalance;   /* busiest GPU to mean GPU */
	double token_us;    /* median over requests: from arrival to end, by its tokens */
};

/* Returns 0 or -ENOMEM. */
int simulate(const struct setting *setting, const struct policy *policy, struct outcome *outcome);

#endif
