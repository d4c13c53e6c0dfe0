/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is to be served: a list of requests, each a run of forward rows at
 * consecutive positions.
 *
 * A request has `rows` rows, for positions [first_position, first_position +
 * rows). Positions before first_position come from elsewhere (EXTERNAL). The
 * last token that it sampled was never fed back, so that it ends with
 * first_position + rows + 1 accepted tokens.
 */
#ifndef PRODUCER_REFERENCE_WORKLOAD_H
#define PRODUCER_REFERENCE_WORKLOAD_H

#include <stddef.h>
#include <stdint.h>

#include <r3ring/error.h>
#include <r3ring/record.h>

#include "producer/reference/tokens.h"

#define WORKLOAD_REQUESTS_MAX 1000000u

struct workload_request {
	char id[R3RING_TEXT_ID_MAX + 1];
	uint32_t prompt_tokens;
	uint32_t first_position;
	uint32_t rows;
	uint32_t arrival;       /* turn of the scheduler at which it arrives, from 0 */
	uint32_t preempt_after; /* rows after which its first attempt ends; 0: never */
	uint64_t source;        /* token (or recorded row) of its first row */
};

struct workload {
	struct workload_request *requests;
	uint32_t count;
	const struct tokens *text; /* NULL: a row's token is its place in a recording */
};

/*
 * The requests that `r3ring produce --text` serves. Request i, with
 * w(n) = weight_word(weight_key(seed, 16, i), n):
 *
 *	id              "req-0000", "req-0001", ... ("req-10000" after 9999)
 *	prompt_tokens   16 + w(0) % 240
 *	output tokens    8 + w(1) % 64; rows = prompt + output - 1
 *	first_position  0
 *	source          w(2) % tokens of the text; the text goes on at its beginning
 *	arrival         2 * i
 *	preempt_after   for i % 8 == 5: prompt + output / 2, else 0
 *
 * A preempted request begins again with attempt 1 at position 0, and its rows
 * are the same rows again.
 *
 * @text: must outlive the workload.
 * Returns 0 or -EINVAL (count), -ENOMEM. Free with workload_free().
 */
int workload_from_text(struct workload *workload, const struct tokens *text, uint32_t count,
		       uint64_t seed, struct r3ring_error *err);
void workload_free(struct workload *workload);

/* Token id that the forward at @position of the request consumes. */
int32_t workload_token(const struct workload *workload, const struct workload_request *request,
		       uint32_t position);

/* Accepted tokens at a request's end. */
uint32_t workload_accepted(const struct workload_request *request);

/* Rows of all requests, without those of second attempts. */
uint64_t workload_rows(const struct workload *workload);

#endif
