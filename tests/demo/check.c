/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares what was received with what was expected.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/demo/check.h"

#define STRANGER UINT32_MAX

/* A span of the present step, its request found. */
struct owner {
	uint32_t request; /* STRANGER when it is not one of the workload's */
	uint32_t position;
	uint32_t row, rows;
	uint32_t attempt;
};

struct checker {
	struct findings *findings;
	const struct expected *expected;
	struct r3ring_requests *requests;
	uint8_t **seen; /* [request * EXPECTED_ATTEMPTS + attempt] -> [rows][layers] */
	uint64_t step;  /* whose spans `owners` holds */
	struct owner *owners;
	uint32_t owner_count;
};

/* ---- what went wrong -------------------------------------------------- */

static void note(struct findings *findings, const struct r3ring_layer_record *layer, uint32_t row,
		 const char *what)
{
	if (!findings->first_wrong[0])
		snprintf(findings->first_wrong, sizeof(findings->first_wrong),
			 "step %" PRIu64 ", layer %d, row %u: %s", layer->step, layer->layer_id,
			 row, what);
}

/* ---- spans ------------------------------------------------------------ */

static struct owner find_owner(const struct checker *checker, const struct r3ring_span *span)
{
	const char *id = r3ring_requests_id(checker->requests, span->request);
	int32_t request = id ? expected_find(checker->expected, id) : -1;

	return (struct owner){
		.request = request < 0 ? STRANGER : (uint32_t)request,
		.position = span->position,
		.row = span->row,
		.rows = span->rows,
		.attempt = span->attempt,
	};
}

static int add_owners(struct checker *checker, const struct r3ring_span *spans, uint32_t count)
{
	struct owner *owners =
		realloc(checker->owners, (checker->owner_count + count + 1) * sizeof(*owners));

	if (!owners)
		return -ENOMEM;
	checker->owners = owners;
	for (uint32_t i = 0; i < count; i++) {
		if (spans[i].kind == R3RING_SPAN_COMPUTED)
			owners[checker->owner_count++] = find_owner(checker, &spans[i]);
	}
	return 0;
}

static int take_step(struct checker *checker, const struct r3ring_record *record)
{
	const struct r3ring_step_record *step = &record->u.step.head;
	uint32_t end = step->valid_end < step->row_end ? step->valid_end : step->row_end;

	checker->findings->steps++;
	if (end > step->row_begin)
		checker->findings->rows += end - step->row_begin;
	checker->step = step->step;
	checker->owner_count = 0;
	return add_owners(checker, record->u.step.spans, step->spans);
}

static int take_spans(struct checker *checker, const struct r3ring_record *record)
{
	if (record->u.spans.head.step != checker->step)
		return 0;
	return add_owners(checker, record->u.spans.spans, record->u.spans.head.spans);
}

static const struct owner *owner_of(const struct checker *checker, uint32_t row)
{
	for (uint32_t i = 0; i < checker->owner_count; i++) {
		const struct owner *owner = &checker->owners[i];

		if (row >= owner->row && row - owner->row < owner->rows)
			return owner->request == STRANGER ? NULL : owner;
	}
	return NULL;
}

/* ---- rows ------------------------------------------------------------- */

/* Marks a row of a layer as seen; false when it is not expected, or was before. */
static bool mark_seen(const struct checker *checker, const struct owner *owner, uint32_t position,
		      uint32_t layer)
{
	const struct expected *expected = checker->expected;
	uint32_t rows = owner->attempt < EXPECTED_ATTEMPTS
				? expected_rows(expected, owner->request, owner->attempt)
				: 0;
	uint8_t *mark;

	if (position >= rows)
		return false;
	mark = checker->seen[owner->request * EXPECTED_ATTEMPTS + owner->attempt] +
	       (size_t)position * expected->layers + layer;
	if (*mark)
		return false;
	*mark = 1;
	return true;
}

static void compare(struct findings *findings, const struct r3ring_layer_record *layer,
		    uint32_t row, const uint16_t *got, const uint16_t *wanted)
{
	for (uint32_t i = 0; i < layer->top_k; i++) {
		if (got[i] == wanted[i])
			continue;
		findings->mismatches++;
		note(findings, layer, row, "an id differs from the reference");
	}
	findings->ids_compared += layer->top_k;
}

static void add_load(const struct checker *checker, uint32_t layer, const uint16_t *ids)
{
	const struct expected *expected = checker->expected;
	uint32_t *load = checker->findings->load + (size_t)layer * expected->experts;

	for (uint32_t i = 0; i < expected->top_k; i++) {
		if (ids[i] < expected->experts)
			load[ids[i]]++;
	}
}

static void take_row(const struct checker *checker, const struct r3ring_layer_record *layer,
		     uint32_t row, const uint16_t *ids)
{
	struct findings *findings = checker->findings;
	const struct owner *owner = layer->step == checker->step ? owner_of(checker, row) : NULL;
	uint32_t position;

	if (!owner) {
		findings->unexpected++;
		note(findings, layer, row, "belongs to no request of the text's");
		return;
	}
	position = owner->position + (row - owner->row);
	if (!mark_seen(checker, owner, position, layer->layer_index)) {
		findings->unexpected++;
		note(findings, layer, row, "came twice, or was never asked for");
		return;
	}
	compare(findings, layer, row, ids,
		expected_route(checker->expected, owner->request, position, layer->layer_index));
	add_load(checker, layer->layer_index, ids);
}

static int take_layer(struct checker *checker, const struct r3ring_record *record)
{
	const struct r3ring_layer_record *layer = &record->u.layer.head;
	const struct expected *expected = checker->expected;

	checker->findings->layer_records++;
	checker->findings->id_bytes += (uint64_t)layer->valid_rows * layer->top_k * 2;
	if (layer->layer_index >= expected->layers || layer->top_k != expected->top_k ||
	    layer->layer_id != expected->layer_ids[layer->layer_index]) {
		checker->findings->unexpected += layer->valid_rows;
		note(checker->findings, layer, layer->row, "is no layer of the model's");
		return 0;
	}
	for (uint32_t i = 0; i < layer->valid_rows; i++)
		take_row(checker, layer, layer->row + i,
			 record->u.layer.ids + (size_t)i * layer->top_k);
	return 0;
}

/* ---- losses and times ------------------------------------------------- */

static void take_lost(struct findings *findings, const struct r3ring_lost_record *lost)
{
	if (lost->cause < R3RING_CAUSE_COUNT)
		findings->lost_rows[lost->cause] += lost->layer_rows;
}

static void take_step_end(const struct checker *checker, const struct received *received,
			  const struct received_record *from, const struct r3ring_record *record)
{
	const struct r3ring_step_end_record *end = &record->u.step_end.head;
	struct findings *findings = checker->findings;

	for (uint32_t i = 0; i < end->missing; i++) {
		const struct r3ring_missing_layer *missing = &record->u.step_end.missing[i];

		if (missing->cause < R3RING_CAUSE_COUNT)
			findings->lost_rows[missing->cause] += missing->expected;
	}
	/* What was published before the reader was there says nothing about it. */
	if (end->device_end_ns && end->publish_ns >= received->attached_ns &&
	    from->arrived_ns >= end->device_end_ns)
		findings->latencies[findings->latency_count++] =
			from->arrived_ns - end->device_end_ns;
}

static int compare_u64(const void *a, const void *b)
{
	uint64_t left = *(const uint64_t *)a;
	uint64_t right = *(const uint64_t *)b;

	return (left > right) - (left < right);
}

/* ---- all records ------------------------------------------------------ */

static int take_record(struct checker *checker, const struct received *received,
		       const struct received_record *from)
{
	struct r3ring_record record;
	int code;

	if (r3ring_record_decode(&record, from->view.type, from->view.data, from->view.len, NULL)) {
		checker->findings->unreadable++;
		return 0;
	}
	code = r3ring_requests_feed(checker->requests, &from->view, &record);
	if (code)
		return code;
	switch (record.type) {
	case R3RING_STEP:
		return take_step(checker, &record);
	case R3RING_SPANS:
		return take_spans(checker, &record);
	case R3RING_LAYER:
		return take_layer(checker, &record);
	case R3RING_STEP_END:
		take_step_end(checker, received, from, &record);
		return 0;
	case R3RING_LOST:
		take_lost(checker->findings, &record.u.lost);
		return 0;
	default:
		return 0;
	}
}

/* Rows of a layer that never came, and how many of them nothing accounts for. */
static void count_absent(const struct checker *checker)
{
	const struct expected *expected = checker->expected;
	struct findings *findings = checker->findings;
	uint64_t explained = 0;

	for (uint32_t i = 0; i < expected->workload.count * EXPECTED_ATTEMPTS; i++) {
		size_t marks = (size_t)expected_rows(expected, i / EXPECTED_ATTEMPTS,
						     i % EXPECTED_ATTEMPTS) *
			       expected->layers;

		for (size_t mark = 0; mark < marks; mark++)
			findings->absent += !checker->seen[i][mark];
	}
	for (uint32_t cause = 0; cause < R3RING_CAUSE_COUNT; cause++)
		explained += findings->lost_rows[cause];
	if (!findings->lapped && findings->absent > explained)
		findings->unexplained = findings->absent - explained;
}

static int prepare(struct checker *checker, const struct received *received)
{
	const struct expected *expected = checker->expected;
	uint32_t attempts = expected->workload.count * EXPECTED_ATTEMPTS;
	struct findings *findings = checker->findings;

	checker->requests = r3ring_requests_create();
	checker->seen = calloc(attempts, sizeof(*checker->seen));
	findings->load =
		calloc((size_t)expected->layers * expected->experts, sizeof(*findings->load));
	findings->latencies = calloc(received->count + 1, sizeof(*findings->latencies));
	if (!checker->requests || !checker->seen || !findings->load || !findings->latencies)
		return -ENOMEM;
	for (uint32_t i = 0; i < attempts; i++) {
		uint32_t rows =
			expected_rows(expected, i / EXPECTED_ATTEMPTS, i % EXPECTED_ATTEMPTS);

		checker->seen[i] = calloc((size_t)rows + 1, expected->layers);
		if (!checker->seen[i])
			return -ENOMEM;
	}
	return 0;
}

static void release(struct checker *checker)
{
	for (uint32_t i = 0;
	     checker->seen && i < checker->expected->workload.count * EXPECTED_ATTEMPTS; i++)
		free(checker->seen[i]);
	free(checker->seen);
	free(checker->owners);
	r3ring_requests_destroy(checker->requests);
}

int check(struct findings *findings, const struct received *received,
	  const struct expected *expected)
{
	struct checker checker = {.findings = findings, .expected = expected};
	int code = prepare(&checker, received);

	findings->lapped = received->stats.now.lost + received->stats.lost_before;
	for (size_t i = 0; !code && i < received->count; i++)
		code = take_record(&checker, received, &received->records[i]);
	if (!code) {
		count_absent(&checker);
		qsort(findings->latencies, findings->latency_count, sizeof(uint64_t), compare_u64);
	}
	release(&checker);
	return code;
}

void findings_free(struct findings *findings)
{
	free(findings->load);
	free(findings->latencies);
}

bool findings_good(const struct findings *findings)
{
	return !findings->mismatches && !findings->unexpected && !findings->absent &&
	       !findings->unexplained && !findings->unreadable && findings->ids_compared;
}

uint64_t findings_latency(const struct findings *findings, double share)
{
	size_t rank = (size_t)(share * (double)findings->latency_count);

	if (!findings->latency_count)
		return 0;
	if (rank >= findings->latency_count)
		rank = findings->latency_count - 1;
	return findings->latencies[rank];
}
