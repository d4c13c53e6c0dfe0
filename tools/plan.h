/* SPDX-License-Identifier: Apache-2.0 */
/* r3ring plan: load from a ring or an archive, and what EPLB maps make of it. */
#ifndef TOOLS_PLAN_H
#define TOOLS_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include <r3ring/eplb.h>
#include <r3ring/error.h>
#include <r3ring/load.h>

#include "report/placing.h"

struct plan_options {
	const char *instance; /* one of the two, */
	const char *archive;  /* the other NULL */
	uint64_t window_steps;
	uint64_t watch_ns; /* of an instance: reads on for so long */
	struct r3ring_eplb_options place;
	bool json;
};

/* What came of it. */
struct plan {
	const struct r3ring_load_info *info; /* what it is made of */
	uint64_t damaged;                    /* places of an archive that could not be read */
	struct placing placing;
};

/*
 * Plans by a snapshot of a load.
 *
 * @plan: its info is there; all else is zero. Pairs with plan_free(), also on failure.
 *
 * Returns 0, -EINVAL (an option, named), or -ENOMEM.
 */
int plan_make(const struct r3ring_load *load, const struct r3ring_eplb_options *place,
	      struct plan *plan, struct r3ring_error *err);
void plan_free(struct plan *plan);

/* All of it, and the map alone. NULL without memory. */
json_t *plan_json(const struct plan_options *options, const struct plan *plan);
json_t *plan_json_map(const struct r3ring_eplb_options *place, const struct plan *plan);

/* Feeds the load. Returns 0, or a negative errno with the reason in @err. */
int plan_read_instance(const struct plan_options *options, struct r3ring_load *load,
		       struct r3ring_error *err);
/* @damaged: how many places could not be read. */
int plan_read_archive(const struct plan_options *options, struct r3ring_load *load,
		      uint64_t *damaged, struct r3ring_error *err);

/* Prints it. Returns an exit code. */
int plan_print(const struct plan_options *options, const struct plan *plan);

#endif
