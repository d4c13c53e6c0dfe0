/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the demo expects: the requests that are served, and the routes of all
 * their rows from the independent slow reference.
 */
#ifndef TESTS_DEMO_EXPECTED_H
#define TESTS_DEMO_EXPECTED_H

#include <stdint.h>

#include <r3ring/error.h>

#include "producer/reference/tokens.h"
#include "producer/reference/workload.h"

#define EXPECTED_ATTEMPTS 2 /* a request is preempted once at most */

/* What is run; the same numbers go to `r3ring produce`. */
struct demo_plan {
	const char *model;
	const char *text_path;
	uint32_t requests;
	uint32_t batch_rows;
	uint32_t prefill_chunk;
	uint32_t hidden;
	uint32_t steps_per_second;
	uint64_t seed;
};

struct expected {
	struct tokens tokens;
	struct workload workload;
	uint32_t layers, experts, top_k;
	int32_t *layer_ids; /* [layers] the model's own numbers */
	uint16_t **routes;  /* [requests] -> [rows][layers][top_k] */
};

/*
 * Computes all routes, on all processors. Returns 0 or a negative errno with
 * the reason in @err. Pairs with expected_free(); a zeroed struct is fine.
 */
int expected_compute(struct expected *expected, const struct demo_plan *plan,
		     struct r3ring_error *err);
void expected_free(struct expected *expected);

/* Index of a request by its text id; -1 for a stranger. */
int32_t expected_find(const struct expected *expected, const char *id);

/* Rows that an attempt of a request runs; 0 for an attempt that never is. */
uint32_t expected_rows(const struct expected *expected, uint32_t request, uint32_t attempt);

/* Rows over all requests and attempts. */
uint64_t expected_total_rows(const struct expected *expected);

/* [top_k] ids of one row in one layer. */
const uint16_t *expected_route(const struct expected *expected, uint32_t request, uint32_t row,
			       uint32_t layer);

#endif
