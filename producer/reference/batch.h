/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Continuous batching: which rows of which requests run in the next step.
 *
 * A step takes up to batch_rows rows: first one row of each running request that
 * decodes, then a chunk of at most prefill_chunk rows of each that still
 * prefills, then arrived requests are admitted while rows are left; in order of
 * admission throughout. A step of decode rows only is padded to a multiple of 8
 * rows, as an engine pads to the sizes of its recorded graphs.
 *
 * A preempted request ends its attempt and goes to the head of the queue; its
 * next attempt computes everything known so far as prefill, then goes on.
 */
#ifndef PRODUCER_REFERENCE_BATCH_H
#define PRODUCER_REFERENCE_BATCH_H

#include <stdbool.h>
#include <stdint.h>

#include <r3ring/error.h>
#include <r3ring/record.h>

#include "producer/reference/workload.h"

#define BATCH_PADDING 8u

struct batch;

/* A request begins before this step, or ends after it. */
struct batch_event {
	uint32_t request; /* index in the workload */
	uint16_t attempt;
	enum r3ring_end_reason reason; /* ends only */
	uint32_t accepted;             /* ends only */
};

/* Arrays belong to the batch and hold until its next call. */
struct batch_step {
	uint32_t rows;       /* tokens */
	uint32_t total_rows; /* with padding; padding rows have token 0 at position 0 */
	bool decode_only;
	const int32_t *token_ids; /* [total_rows] */
	const int32_t *positions; /* [total_rows] */

	uint32_t spans;
	const uint32_t *span_request; /* [spans] index in the workload */
	const uint32_t *span_position;
	const uint32_t *span_row;
	const uint32_t *span_rows;
	const uint16_t *span_attempt;
	const uint8_t *span_kind;

	uint32_t begins, ends;
	const struct batch_event *begin; /* [begins] */
	const struct batch_event *end;   /* [ends] */
};

/* Whether the sizes are in range: 0 or -EINVAL, with the option's name. */
int batch_check(uint32_t batch_rows, uint32_t prefill_chunk, struct r3ring_error *err);

/*
 * @workload: must outlive the batch.
 * Returns 0, -EINVAL (as batch_check()) or
 * -ENOMEM. Pairs with batch_free(), which takes NULL.
 */
int batch_create(struct batch **batch, const struct workload *workload, uint32_t batch_rows,
		 uint32_t prefill_chunk, struct r3ring_error *err);
void batch_free(struct batch *batch);

/* Rows of the largest step, padding included. */
uint32_t batch_max_rows(uint32_t batch_rows);

/* Fills in the next step. Returns 1, or 0 when every request has ended. */
int batch_next(struct batch *batch, struct batch_step *step);

/*
 * Ends what still runs, for a stop before the end: fills @step's ends, with
 * reason ABORTED; there are no rows.
 */
void batch_abort(struct batch *batch, struct batch_step *step);

#endif
