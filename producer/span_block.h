/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A few spans of a token map at a time: the caller's arrays by field, checked and
 * interleaved, with vector code chosen at run time. So few that they stay in the
 * first cache between the two.
 */
#ifndef PRODUCER_SPAN_BLOCK_H
#define PRODUCER_SPAN_BLOCK_H

#include <stdint.h>

#include <r3ring/producer.h>

#define SPAN_BLOCK 64u
#define SPAN_WORDS (sizeof(struct r3ring_span) / sizeof(uint64_t))

/* The caller's arrays from one span on; what was left out is NULL. */
struct span_block {
	const uint64_t *request;
	const uint32_t *position, *row, *rows, *accepted, *keys;
	const uint16_t *attempt;
	const uint8_t *kind, *flags;
	uint32_t count; /* 1 to SPAN_BLOCK */
};

/* Rows [row, end) of a COMPUTED span. */
struct span_rows {
	uint32_t row, end;
};

/*
 * What a decoder would refuse of them, and two COMPUTED spans one behind the other that claim
 * one row (in the order of their rows that is all that do); or NULL.
 *
 * @rows:   rows that there can be in the step.
 * @before: of the last such span of the blocks before, 0 and 0 for none; becomes the block's.
 */
const char *span_block_fault(const struct span_block *block, uint32_t rows,
			     struct span_rows *before);

/* Writes them as a record has them. @out: SPAN_WORDS a span. */
void span_block_write(uint64_t *out, const struct span_block *block);

#endif
