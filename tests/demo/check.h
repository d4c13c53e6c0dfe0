/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares what the reader received with what was expected, row by row and
 * layer by layer.
 */
#ifndef TESTS_DEMO_CHECK_H
#define TESTS_DEMO_CHECK_H

#include <stdbool.h>
#include <stdint.h>

#include <r3ring/record.h>

#include "tests/demo/expected.h"
#include "tests/demo/receive.h"

struct findings {
	uint64_t steps;
	uint64_t rows; /* tokens, in the steps */
	uint64_t layer_records;
	uint64_t id_bytes;
	uint64_t ids_compared;

	/* What must be 0. */
	uint64_t mismatches;   /* ids that differ */
	uint64_t unexpected;   /* rows of a layer that nobody asked for, or that came twice */
	uint64_t absent;       /* rows of a layer that never came */
	uint64_t unexplained;  /* of these, those that no LOST, STEP_END or gap accounts for */
	uint64_t unreadable;   /* records that cannot be decoded */
	char first_wrong[160]; /* where the first wrong one is, "" when none */

	uint64_t lost_rows[R3RING_CAUSE_COUNT]; /* rows of a layer, by cause */
	uint64_t lapped;                        /* records that this reader lost */

	uint64_t *latencies; /* [latency_count] step end to reader, ns, ascending */
	size_t latency_count;
	uint32_t *load; /* [layers][experts] tokens */
};

/* Returns 0 or -ENOMEM. Pairs with findings_free(); a zeroed struct is fine. */
int check(struct findings *findings, const struct received *received,
	  const struct expected *expected);
void findings_free(struct findings *findings);

/* Whether every route expected came, and was right. */
bool findings_good(const struct findings *findings);

/* The latency that @share of all steps stayed below; 0 when there was none. */
uint64_t findings_latency(const struct findings *findings, double share);

#endif
