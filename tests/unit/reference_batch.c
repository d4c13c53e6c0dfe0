/* SPDX-License-Identifier: Apache-2.0 */
/* What continuous batching must never do: skip, repeat or misplace a row. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "producer/reference/batch.h"

#define REQUESTS 40u
#define ROWS_MAX 512u

static int32_t text_ids[997];
static struct tokens text = {text_ids, 997};

/* What a check has seen of each request. */
struct seen {
	uint32_t next;    /* position that must come next in this attempt */
	uint16_t attempt; /* that runs */
	bool live, finished;
	uint32_t preempted;
};

static struct seen seen[REQUESTS];

static struct workload workload_of(uint64_t seed)
{
	struct workload w;

	for (uint32_t i = 0; i < text.count; i++)
		text_ids[i] = (int32_t)(i * 31);
	cr_assert_eq(workload_from_text(&w, &text, REQUESTS, seed, NULL), 0);
	return w;
}

static void see_begins(const struct batch_step *step)
{
	for (uint32_t i = 0; i < step->begins; i++) {
		struct seen *s = &seen[step->begin[i].request];

		cr_assert(!s->live && !s->finished);
		cr_assert_eq(step->begin[i].attempt, s->preempted);
		s->live = true;
		s->attempt = step->begin[i].attempt;
		s->next = 0;
	}
}

static void see_span(const struct workload *w, const struct batch_step *step, uint32_t i)
{
	struct seen *s = &seen[step->span_request[i]];
	const struct workload_request *r = &w->requests[step->span_request[i]];

	cr_assert(s->live);
	cr_assert_eq(step->span_attempt[i], s->attempt);
	cr_assert_eq(step->span_position[i], s->next);
	cr_assert_eq(step->span_kind[i], R3RING_SPAN_COMPUTED);
	for (uint32_t n = 0; n < step->span_rows[i]; n++) {
		uint32_t row = step->span_row[i] + n;

		cr_assert_eq(step->positions[row], (int32_t)(s->next + n));
		cr_assert_eq(step->token_ids[row], workload_token(w, r, s->next + n));
	}
	s->next += step->span_rows[i];
}

static void see_ends(const struct workload *w, const struct batch_step *step)
{
	for (uint32_t i = 0; i < step->ends; i++) {
		struct seen *s = &seen[step->end[i].request];
		const struct workload_request *r = &w->requests[step->end[i].request];

		cr_assert(s->live);
		cr_assert_eq(step->end[i].attempt, s->attempt);
		cr_assert_eq(step->end[i].accepted, s->next + 1);
		s->live = false;
		s->finished = step->end[i].reason == R3RING_END_FINISHED;
		s->preempted += step->end[i].reason == R3RING_END_PREEMPTED;
		if (s->finished)
			cr_assert_eq(s->next, r->rows);
		else
			cr_assert_eq(s->next, r->preempt_after);
	}
}

static void see_sizes(const struct batch_step *step, uint32_t batch_rows, uint32_t chunk)
{
	uint32_t row = 0;

	for (uint32_t i = 0; i < step->spans; i++) {
		cr_assert_eq(step->span_row[i], row);
		cr_assert(step->span_rows[i] >= 1 && step->span_rows[i] <= chunk);
		row += step->span_rows[i];
	}
	cr_assert_eq(row, step->rows);
	cr_assert(step->rows >= 1 && step->rows <= batch_rows);
	cr_assert_eq(step->total_rows, step->decode_only ? batch_max_rows(step->rows) : step->rows);
	for (; row < step->total_rows; row++)
		cr_assert_eq(step->token_ids[row] | step->positions[row], 0);
}

static void run_all(uint32_t batch_rows, uint32_t chunk, uint64_t seed)
{
	struct workload w = workload_of(seed);
	struct batch_step step;
	struct batch *batch;

	memset(seen, 0, sizeof(seen));
	cr_assert_eq(batch_create(&batch, &w, batch_rows, chunk, NULL), 0);
	while (batch_next(batch, &step)) {
		see_begins(&step);
		see_sizes(&step, batch_rows, chunk);
		for (uint32_t i = 0; i < step.spans; i++)
			see_span(&w, &step, i);
		see_ends(&w, &step);
	}
	for (uint32_t i = 0; i < REQUESTS; i++) {
		cr_assert(seen[i].finished, "request %u of %u", i, REQUESTS);
		cr_assert_eq(seen[i].preempted, w.requests[i].preempt_after ? 1 : 0);
	}
	batch_free(batch);
	workload_free(&w);
}

Test(reference_batch, every_position_runs_once_an_attempt_in_order)
{
	run_all(64, 32, 1);
	run_all(256, 16, 2);
	run_all(ROWS_MAX, ROWS_MAX, 3);
}

Test(reference_batch, a_batch_of_one_row_still_serves_everyone)
{
	run_all(1, 32, 4);
}

Test(reference_batch, a_batch_smaller_than_a_chunk_still_serves_everyone)
{
	run_all(7, 64, 5);
}

Test(reference_batch, steps_mix_prefill_with_decode)
{
	struct workload w = workload_of(1);
	struct batch_step step;
	struct batch *batch;
	uint32_t mixed = 0, padded = 0;

	cr_assert_eq(batch_create(&batch, &w, 64, 16, NULL), 0);
	while (batch_next(batch, &step)) {
		uint32_t ones = 0;

		for (uint32_t i = 0; i < step.spans; i++)
			ones += step.span_rows[i] == 1;
		mixed += ones && ones < step.spans;
		padded += step.total_rows > step.rows;
	}
	cr_assert_gt(mixed, 10);
	cr_assert_gt(padded, 10);
	batch_free(batch);
	workload_free(&w);
}

Test(reference_batch, positions_from_elsewhere_are_external_once)
{
	struct workload_request requests[2] = {
		{.id = "a", .prompt_tokens = 9, .first_position = 9, .rows = 3, .source = 5},
		{.id = "b", .prompt_tokens = 4, .first_position = 4, .rows = 2, .source = 8},
	};
	struct workload w = {requests, 2, NULL};
	struct batch_step step;
	struct batch *batch;

	cr_assert_eq(batch_create(&batch, &w, 16, 8, NULL), 0);
	cr_assert_eq(batch_next(batch, &step), 1);
	cr_assert_eq(step.spans, 4);
	cr_assert_eq(step.span_kind[0], R3RING_SPAN_EXTERNAL);
	cr_assert_eq(step.span_position[0], 0);
	cr_assert_eq(step.span_rows[0], 9);
	cr_assert_eq(step.span_kind[1], R3RING_SPAN_COMPUTED);
	cr_assert_eq(step.span_position[1], 9);
	cr_assert_eq(step.span_row[3], 1);
	cr_assert_eq(step.token_ids[0], 5);
	cr_assert_eq(step.token_ids[1], 8);
	cr_assert_eq(step.rows, 2);
	cr_assert_eq(step.total_rows, 8);
	cr_assert_eq(batch_next(batch, &step), 1);
	cr_assert_eq(step.spans, 2);
	cr_assert_eq(step.ends, 1);
	cr_assert_eq(step.end[0].accepted, 4 + 2 + 1);
	cr_assert_eq(batch_next(batch, &step), 1);
	cr_assert_eq(step.end[0].accepted, 9 + 3 + 1);
	cr_assert_eq(batch_next(batch, &step), 0);
	batch_free(batch);
}

Test(reference_batch, an_abort_ends_whatever_runs)
{
	struct workload w = workload_of(1);
	struct batch_step step;
	struct batch *batch;
	uint32_t live = 0;

	cr_assert_eq(batch_create(&batch, &w, 64, 32, NULL), 0);
	for (int i = 0; i < 30; i++) {
		cr_assert_eq(batch_next(batch, &step), 1);
		live += step.begins;
		live -= step.ends;
	}
	batch_abort(batch, &step);
	cr_assert_gt(live, 0);
	cr_assert_eq(step.ends, live);
	for (uint32_t i = 0; i < live; i++)
		cr_assert_eq(step.end[i].reason, R3RING_END_ABORTED);
	batch_free(batch);
	workload_free(&w);
}

Test(reference_batch, sizes_out_of_range_are_refused_by_their_option)
{
	struct r3ring_error err;

	cr_assert_eq(batch_check(0, 1, &err), -EINVAL);
	cr_assert(strstr(err.text, "--batch"));
	cr_assert_eq(batch_check(R3RING_ROWS_MAX + 1, 1, &err), -EINVAL);
	cr_assert_eq(batch_check(1, 0, &err), -EINVAL);
	cr_assert(strstr(err.text, "--prefill-chunk"));
	cr_assert_eq(batch_check(R3RING_ROWS_MAX, R3RING_ROWS_MAX, &err), 0);
}
