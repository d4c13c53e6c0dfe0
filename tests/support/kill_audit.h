/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The account of a round of kills: what each engine says it announced, against what
 * one reader that missed nothing was told.
 */
#ifndef TESTS_SUPPORT_KILL_AUDIT_H
#define TESTS_SUPPORT_KILL_AUDIT_H

#include <stdbool.h>
#include <stdint.h>

#include "tests/support/kill_reader.h"

/* One engine, from its opening to its end. */
struct kill_life {
	uint64_t first_generation, last_generation; /* that it knew of */
	uint64_t steps;
	bool ended; /* in good order: then these are final */
	uint64_t dropped[R3RING_CAUSE_COUNT];
};

/* Shared with the auditor, whose kill_reader.ctx it is. */
struct kill_audit {
	unsigned int count;
	struct kill_life lives[LEDGER_GENERATIONS];
	/* the auditor's, summed over all rounds */
	uint64_t complete, partial;
	uint64_t lost[R3RING_CAUSE_COUNT];
	uint64_t missed; /* rounds that it could not judge by step */
};

struct kill_audit *kill_audit_make(void);

/* For kill_reader.at_end. Returns 0 when all is right. */
int kill_audit_check(const struct ledger *ledger, void *audit);

/* Whether the reader saw the same rows x layers published as the auditor, in each
 * generation of which both saw the end; says where not. */
bool kill_audit_agrees(const struct kill_reader *auditor, const struct kill_reader *reader);

#endif
