/* SPDX-License-Identifier: Apache-2.0 */
/* Which worker a request is placed on. */
#ifndef WORTH_POLICIES_H
#define WORTH_POLICIES_H

#include <r3ring/reserve.h>

#include "tests/bench/worth/cluster.h"
#include "tests/bench/worth/predictors.h"

/* What a policy may look at, and what it keeps. */
struct placement {
	struct cluster *cluster;
	const struct knowledge *knowledge;
	struct r3ring_book *book[WORKERS_MAX];
	struct r3ring_demand *demand;
	uint64_t *expert_load; /* [cells] of a book */
	uint64_t *units;       /* [cells] of the demand */
	uint32_t turn;
};

struct policy {
	const char *name;
	uint32_t (*choose)(struct placement *placement, const struct policy *policy,
			   const struct running *arrival);
	/* What its reservations rest on; R3RING_PREDICTORS: it makes none. */
	enum r3ring_predictor predictor;
};

extern const struct policy policies[];
extern const uint32_t policy_count;

/* Where a policy reserves: when a request is placed, every 32 rows, and when it ends. Return 0
 * or what the book says. */
int placement_reserve(struct placement *placement, const struct policy *policy, uint32_t worker,
		      const struct running *one, uint64_t *reservation);
int placement_update(struct placement *placement, const struct policy *policy, uint32_t worker,
		     const struct running *one, uint64_t reservation);

/* Books for every worker. Returns 0, -ENOMEM. */
int placement_open(struct placement *placement, struct cluster *cluster,
		   const struct knowledge *knowledge);
void placement_close(struct placement *placement);

#endif
