/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests that are told one by one: a bounded number, those first of which most was
 * lost.
 */
#ifndef REPORT_REQUESTS_H
#define REPORT_REQUESTS_H

#include <stdbool.h>

#include <r3ring/assembler.h>

struct request_row {
	char *id, *session;
	uint64_t number; /* in the order of their ends, from 1 on */
	uint64_t end_ns; /* CLOCK_REALTIME, of the archive's block */
	uint32_t tokens, prompt_tokens, attempts, flags;
	uint64_t cells, valid, lost;
	uint64_t missing[R3RING_MISSING_CAUSES];
};

struct request_table {
	struct request_row *row; /* [count], of [most] */
	uint32_t count, most;
	uint64_t seen;
	uint32_t least; /* index of the row that gives way; of a full table */
};

/* Whether a cell that is missing for @cause was lost: the last token's that was never fed
 * back, one whose keys and values came from elsewhere, and one of a layer that was not to be
 * recorded were not. */
bool request_cause_is_loss(uint32_t cause);

/* Returns 0 or -ENOMEM. Pairs with request_table_free(). */
int request_table_make(struct request_table *table, uint32_t most);
void request_table_free(struct request_table *table);

/* Returns 0 or -ENOMEM. */
int request_table_take(struct request_table *table, const struct r3ring_assembled_info *info,
		       uint64_t end_ns);

/* In the order of their ends. */
void request_table_sort(struct request_table *table);

#endif
