/* SPDX-License-Identifier: Apache-2.0 */
/* r3ring plan: load from a ring or an archive, and what EPLB maps make of it. */
#ifndef TOOLS_PLAN_H
#define TOOLS_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include <r3ring/eplb.h>
#include <r3ring/error.h>
#include <r3ring/load.h>

struct plan_options {
	const char *instance; /* one of the two, */
	const char *archive;  /* the other NULL */
	uint64_t window_steps;
	uint64_t watch_ns; /* of an instance: reads on for so long */
	struct r3ring_eplb_options place;
	bool json;
};

/* What the plan is made of and what came of it. */
struct plan {
	struct r3ring_load *load;
	struct r3ring_load_snapshot *snapshot;
	const struct r3ring_load_info *info;
	uint64_t damaged;              /* places of an archive that could not be read */
	struct r3ring_eplb_map *today; /* the newest that was captured; else experts in order,
					* NULL where the GPUs do not divide them */
	bool captured;                 /* today's was captured */
	struct r3ring_eplb_map *next;
	struct r3ring_eplb_balance balance_today, balance_next;
	double *ratio_today, *ratio_next; /* [layers] max/mean of GPUs */
};

/* Feeds the load. Returns 0, or a negative errno with the reason in @err. */
int plan_read_instance(const struct plan_options *options, struct plan *plan,
		       struct r3ring_error *err);
int plan_read_archive(const struct plan_options *options, struct plan *plan,
		      struct r3ring_error *err);

/* Prints it. Returns an exit code. */
int plan_print(const struct plan_options *options, const struct plan *plan);

#endif
