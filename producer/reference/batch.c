/* SPDX-License-Identifier: Apache-2.0 */
/* The scheduler of a continuous batch. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "producer/reference/batch.h"

/* How far a request has come; rows count from its first_position. */
struct progress {
	uint32_t next;    /* row that runs next */
	uint32_t prefill; /* rows before it run in chunks */
	uint16_t attempt;
	bool announced; /* its EXTERNAL span of this attempt */
};

struct batch {
	const struct workload *workload;
	uint32_t batch_rows, prefill_chunk;
	struct progress *progress; /* [count] */
	uint32_t *running;         /* in order of admission, at most batch_rows */
	uint32_t running_count;
	uint32_t *returned; /* preempted, first in first out */
	uint32_t returned_count;
	uint32_t next_new; /* requests from here on were never admitted */
	uint32_t turn;
	uint32_t left;  /* rows that the step being made still takes */
	uint32_t rows;  /* rows that it has */
	uint32_t spans; /* likewise */
	bool prefills;
	int32_t *token_ids, *positions;
	uint32_t *span_request, *span_position, *span_row, *span_rows;
	uint16_t *span_attempt;
	uint8_t *span_kind;
	struct batch_event *begin, *end;
	uint32_t begins, ends;
};

uint32_t batch_max_rows(uint32_t batch_rows)
{
	return (batch_rows + BATCH_PADDING - 1) / BATCH_PADDING * BATCH_PADDING;
}

static int batch_alloc(struct batch *b)
{
	size_t rows = batch_max_rows(b->batch_rows);
	size_t spans = 2 * rows; /* an EXTERNAL one beside each COMPUTED one */

	assert(rows && b->workload->count); /* batch_check(); no workload is empty */
	b->progress = calloc(b->workload->count, sizeof(*b->progress));
	b->running = calloc(rows, sizeof(*b->running));
	b->returned = calloc(rows, sizeof(*b->returned));
	b->token_ids = calloc(rows, sizeof(*b->token_ids));
	b->positions = calloc(rows, sizeof(*b->positions));
	b->span_request = calloc(spans, sizeof(*b->span_request));
	b->span_position = calloc(spans, sizeof(*b->span_position));
	b->span_row = calloc(spans, sizeof(*b->span_row));
	b->span_rows = calloc(spans, sizeof(*b->span_rows));
	b->span_attempt = calloc(spans, sizeof(*b->span_attempt));
	b->span_kind = calloc(spans, sizeof(*b->span_kind));
	b->begin = calloc(rows, sizeof(*b->begin));
	b->end = calloc(rows, sizeof(*b->end));
	return b->progress && b->running && b->returned && b->token_ids && b->positions &&
			       b->span_request && b->span_position && b->span_row && b->span_rows &&
			       b->span_attempt && b->span_kind && b->begin && b->end
		       ? 0
		       : -ENOMEM;
}

int batch_check(uint32_t batch_rows, uint32_t prefill_chunk, struct r3ring_error *err)
{
	if (batch_rows < 1 || batch_max_rows(batch_rows) > R3RING_ROWS_MAX)
		return r3ring_error_set(err, -EINVAL, "%u rows a batch: --batch takes 1 to %u",
					batch_rows, R3RING_ROWS_MAX);
	if (prefill_chunk < 1 || prefill_chunk > R3RING_ROWS_MAX)
		return r3ring_error_set(err, -EINVAL,
					"%u rows a chunk: --prefill-chunk takes 1 to %u",
					prefill_chunk, R3RING_ROWS_MAX);
	return 0;
}

int batch_create(struct batch **batch, const struct workload *workload, uint32_t batch_rows,
		 uint32_t prefill_chunk, struct r3ring_error *err)
{
	struct batch *b;
	int rc = batch_check(batch_rows, prefill_chunk, err);

	if (rc)
		return rc;
	b = calloc(1, sizeof(*b));
	if (!b)
		return r3ring_error_set(err, -ENOMEM, "no memory for the batch");
	b->workload = workload;
	b->batch_rows = batch_rows;
	b->prefill_chunk = prefill_chunk;
	if (batch_alloc(b)) {
		batch_free(b);
		return r3ring_error_set(err, -ENOMEM,
					"no memory for a batch of %u rows: take a "
					"smaller --batch",
					batch_rows);
	}
	*batch = b;
	return 0;
}

void batch_free(struct batch *batch)
{
	if (!batch)
		return;
	free(batch->progress);
	free(batch->running);
	free(batch->returned);
	free(batch->token_ids);
	free(batch->positions);
	free(batch->span_request);
	free(batch->span_position);
	free(batch->span_row);
	free(batch->span_rows);
	free(batch->span_attempt);
	free(batch->span_kind);
	free(batch->begin);
	free(batch->end);
	free(batch);
}

static uint32_t least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

static void add_span(struct batch *b, uint32_t request, uint32_t position, uint32_t rows,
		     enum r3ring_span_kind kind)
{
	uint32_t s = b->spans++;

	b->span_request[s] = request;
	b->span_position[s] = position;
	b->span_row[s] = kind == R3RING_SPAN_COMPUTED ? b->rows : 0;
	b->span_rows[s] = rows;
	b->span_attempt[s] = b->progress[request].attempt;
	b->span_kind[s] = (uint8_t)kind;
}

static void add_rows(struct batch *b, uint32_t request, uint32_t rows)
{
	const struct workload_request *r = &b->workload->requests[request];
	struct progress *p = &b->progress[request];
	uint32_t position = r->first_position + p->next;

	if (!p->announced && r->first_position)
		add_span(b, request, 0, r->first_position, R3RING_SPAN_EXTERNAL);
	p->announced = true;
	add_span(b, request, position, rows, R3RING_SPAN_COMPUTED);
	for (uint32_t i = 0; i < rows; i++) {
		b->token_ids[b->rows + i] = workload_token(b->workload, r, position + i);
		b->positions[b->rows + i] = (int32_t)(position + i);
	}
	b->rows += rows;
	b->left -= rows;
	p->next += rows;
}

static void add_chunk(struct batch *b, uint32_t request)
{
	struct progress *p = &b->progress[request];

	if (p->next < p->prefill) {
		b->prefills = true;
		add_rows(b, request, least(least(b->prefill_chunk, p->prefill - p->next), b->left));
	} else {
		add_rows(b, request, 1);
	}
}

static void run_admitted(struct batch *b, bool decoding)
{
	for (uint32_t i = 0; i < b->running_count && b->left; i++) {
		const struct progress *p = &b->progress[b->running[i]];

		if ((p->next >= p->prefill) == decoding)
			add_chunk(b, b->running[i]);
	}
}

/* Takes the first of those that wait; false when none has arrived. */
static bool take_waiting(struct batch *b, uint32_t *request)
{
	if (b->returned_count) {
		*request = b->returned[0];
		b->returned_count--;
		memmove(b->returned, b->returned + 1, b->returned_count * sizeof(*b->returned));
		return true;
	}
	if (b->next_new == b->workload->count ||
	    b->workload->requests[b->next_new].arrival > b->turn)
		return false;
	*request = b->next_new++;
	return true;
}

static void admit(struct batch *b)
{
	uint32_t request;

	while (b->left && take_waiting(b, &request)) {
		const struct workload_request *r = &b->workload->requests[request];
		struct progress *p = &b->progress[request];

		if (!p->attempt)
			p->prefill = r->prompt_tokens - r->first_position;
		b->running[b->running_count++] = request;
		b->begin[b->begins++] =
			(struct batch_event){.request = request, .attempt = p->attempt};
		add_chunk(b, request);
	}
}

/* Tokens known after @next rows: the newest was sampled and not yet consumed. */
static uint32_t accepted_so_far(const struct workload_request *r, uint32_t next)
{
	uint32_t position = r->first_position + next;

	return position >= r->prompt_tokens ? position + 1 : r->prompt_tokens;
}

static void end_attempt(struct batch *b, uint32_t request, enum r3ring_end_reason reason)
{
	const struct progress *p = &b->progress[request];

	b->end[b->ends++] = (struct batch_event){
		.request = request,
		.attempt = p->attempt,
		.reason = reason,
		.accepted = accepted_so_far(&b->workload->requests[request], p->next),
	};
}

static void preempt(struct batch *b, uint32_t request)
{
	struct progress *p = &b->progress[request];

	end_attempt(b, request, R3RING_END_PREEMPTED);
	p->prefill = least(p->next + 1, b->workload->requests[request].rows);
	p->next = 0;
	p->attempt++;
	p->announced = false;
	b->returned[b->returned_count++] = request;
}

/* Ends what is done or to be preempted; the others keep their order. */
static void settle(struct batch *b)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < b->running_count; i++) {
		uint32_t request = b->running[i];
		const struct workload_request *r = &b->workload->requests[request];
		const struct progress *p = &b->progress[request];

		if (p->next == r->rows)
			end_attempt(b, request, R3RING_END_FINISHED);
		else if (!p->attempt && r->preempt_after && p->next >= r->preempt_after)
			preempt(b, request);
		else
			b->running[kept++] = request;
	}
	b->running_count = kept;
}

static void clear_step(struct batch *b)
{
	b->rows = 0;
	b->spans = 0;
	b->begins = 0;
	b->ends = 0;
	b->prefills = false;
	b->left = b->batch_rows;
}

static void pad(struct batch *b, uint32_t total)
{
	size_t bytes = (total - b->rows) * sizeof(int32_t);

	memset(b->token_ids + b->rows, 0, bytes);
	memset(b->positions + b->rows, 0, bytes);
}

static void describe_step(const struct batch *b, uint32_t total, struct batch_step *step)
{
	*step = (struct batch_step){
		.rows = b->rows,
		.total_rows = total,
		.decode_only = !b->prefills,
		.token_ids = b->token_ids,
		.positions = b->positions,
		.spans = b->spans,
		.span_request = b->span_request,
		.span_position = b->span_position,
		.span_row = b->span_row,
		.span_rows = b->span_rows,
		.span_attempt = b->span_attempt,
		.span_kind = b->span_kind,
		.begins = b->begins,
		.ends = b->ends,
		.begin = b->begin,
		.end = b->end,
	};
}

int batch_next(struct batch *batch, struct batch_step *step)
{
	uint32_t total;

	clear_step(batch);
	if (!batch->running_count && !batch->returned_count) {
		if (batch->next_new == batch->workload->count)
			return 0;
		if (batch->workload->requests[batch->next_new].arrival > batch->turn)
			batch->turn = batch->workload->requests[batch->next_new].arrival;
	}
	run_admitted(batch, true);
	run_admitted(batch, false);
	admit(batch);
	settle(batch);
	batch->turn++;
	total = batch->prefills ? batch->rows : batch_max_rows(batch->rows);
	pad(batch, total);
	describe_step(batch, total, step);
	return 1;
}

void batch_abort(struct batch *batch, struct batch_step *step)
{
	clear_step(batch);
	for (uint32_t i = 0; i < batch->running_count; i++)
		end_attempt(batch, batch->running[i], R3RING_END_ABORTED);
	batch->running_count = 0;
	describe_step(batch, 0, step);
}
