/* SPDX-License-Identifier: Apache-2.0 */
/* How the load of experts lies on GPUs today, and would by a planned EPLB map. */
#ifndef REPORT_PLACING_H
#define REPORT_PLACING_H

#include <stdbool.h>

#include <r3ring/eplb.h>
#include <r3ring/load.h>

struct placing {
	struct r3ring_eplb_map *today; /* the newest that was captured; else experts in order,
					* NULL where the GPUs do not divide them */
	bool captured;                 /* today's was captured */
	struct r3ring_eplb_map *next;
	struct r3ring_eplb_balance balance_today, balance_next;
	double *ratio_today, *ratio_next; /* [layers] max/mean of GPUs */
};

/*
 * @captured: the map of today, taken over, also on failure; NULL: none is known.
 * @info:     layers, experts and their counts.
 *
 * Returns 0, -EINVAL (an option, named), -ENOMEM. Pairs with placing_free(), also on failure.
 */
int placing_make(struct placing *placing, struct r3ring_eplb_map *captured,
		 const struct r3ring_load_info *info, const struct r3ring_eplb_options *place,
		 struct r3ring_error *err);
void placing_free(struct placing *placing);

#endif
