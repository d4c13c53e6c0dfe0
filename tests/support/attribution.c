/* SPDX-License-Identifier: Apache-2.0 */
/* Rows put back in their places and compared with the recording. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/support/attribution.h"

#define DEADLINE_S 30
#define WAIT_MS 100
#define RECORD_ALIGN 64

static void die(const char *what)
{
	fprintf(stderr, "attribution: %s\n", what);
	exit(1);
}

void attribution_init(struct attribution *attribution, const struct recording *recording)
{
	memset(attribution, 0, sizeof(*attribution));
	attribution->recording = recording;
	attribution->requests = r3ring_requests_create();
	attribution->seen = calloc((size_t)recording->rows, recording->layers);
	attribution->counts = calloc((size_t)recording->layers * recording->experts,
				     sizeof(*attribution->counts));
	if (!attribution->requests || !attribution->seen || !attribution->counts)
		die("out of memory");
}

void attribution_free(struct attribution *attribution)
{
	r3ring_requests_destroy(attribution->requests);
	free(attribution->seen);
	free(attribution->counts);
	free(attribution->buffer);
	memset(attribution, 0, sizeof(*attribution));
}

uint64_t attribution_not_once(const struct attribution *attribution)
{
	const struct recording *recording = attribution->recording;
	uint64_t count = 0;

	for (size_t i = 0; i < (size_t)recording->rows * recording->layers; i++)
		count += attribution->seen[i] != 1;
	return count;
}

uint64_t attribution_not_as_late(const struct attribution *attribution, const uint64_t *step_of_row)
{
	const struct recording *recording = attribution->recording;
	uint64_t count = 0;

	for (uint32_t row = 0; row < recording->rows; row++) {
		bool due = step_of_row[row] > attribution->ready_step;

		for (uint32_t layer = 0; layer < recording->layers; layer++)
			count += attribution->seen[(size_t)row * recording->layers + layer] != due;
	}
	return count;
}

/* ---- spans and requests ------------------------------------------------ */

static void become_ready(struct attribution *attribution, uint64_t step)
{
	if (!attribution->ready)
		attribution->ready_step = step;
	attribution->ready = true;
}

void attribution_follow(struct attribution *attribution, uint64_t seq, uint16_t type,
			const struct r3ring_keyframe_record *keyframe)
{
	if (keyframe) {
		attribution->keyframe_next = seq + 1;
		attribution->keyframe_step = keyframe->step;
		attribution->keyframe_left = keyframe->records;
	} else if (attribution->keyframe_left && seq == attribution->keyframe_next) {
		attribution->keyframe_next++;
		if (--attribution->keyframe_left == 0)
			become_ready(attribution, attribution->keyframe_step);
	} else {
		attribution->keyframe_left = 0;
	}
	if (type == R3RING_SCHEMA && seq == 1)
		become_ready(attribution, 0);
}

void attribution_step(struct attribution *attribution, uint64_t step)
{
	attribution->step = step;
	memset(attribution->owners, 0, sizeof(attribution->owners));
}

/* A row of a step has one owner, and a position that the recording has. */
static void own_rows(struct attribution *attribution, const struct recording_request *request,
		     const struct r3ring_span *span)
{
	for (uint32_t i = 0; i < span->rows; i++) {
		struct attribution_owner *owner;
		uint64_t position = (uint64_t)span->position + i;

		if (span->row + i >= ATTRIBUTION_STEP_ROWS || position < request->prompt_tokens ||
		    position - request->prompt_tokens >= request->rows ||
		    attribution->owners[span->row + i].known) {
			attribution->wrong_spans++;
			return;
		}
		owner = &attribution->owners[span->row + i];
		owner->known = true;
		owner->row = request->first_row + (uint32_t)(position - request->prompt_tokens);
	}
}

void attribution_span(struct attribution *attribution, const char *request,
		      const struct r3ring_span *span)
{
	const struct recording_request *found;

	if (!request)
		return;
	attribution->early += !attribution->ready;
	found = recording_find(attribution->recording, request);
	if (!found)
		attribution->wrong_spans++;
	else if (span->kind == R3RING_SPAN_COMPUTED)
		own_rows(attribution, found, span);
	else if (span->kind == R3RING_SPAN_EXTERNAL && span->position == 0 &&
		 span->rows == found->prompt_tokens)
		attribution->externals++;
	else
		attribution->wrong_spans++;
}

void attribution_end(struct attribution *attribution, const char *request,
		     const struct r3ring_request_record *head)
{
	const struct recording_request *found =
		request ? recording_find(attribution->recording, request) : NULL;

	if (!request)
		return;
	if (found && head->reason == R3RING_END_FINISHED && head->attempt == 0 &&
	    head->accepted_tokens == found->prompt_tokens + found->rows + 1)
		attribution->ends++;
	else
		attribution->wrong_ends++;
}

/* ---- layers ------------------------------------------------------------ */

static const struct attribution_owner *owner_of(const struct attribution *attribution,
						const struct r3ring_layer_record *head, uint32_t i)
{
	static const struct attribution_owner none;

	if (head->step != attribution->step || head->row + i >= ATTRIBUTION_STEP_ROWS)
		return &none;
	return &attribution->owners[head->row + i];
}

static bool fits(const struct attribution *attribution, const struct r3ring_layer_record *head)
{
	const struct recording *recording = attribution->recording;

	return head->layer_id >= 0 && (uint32_t)head->layer_id < recording->layers &&
	       head->top_k == recording->top_k && head->valid_rows <= head->rows &&
	       head->row + head->rows <= head->total_rows;
}

/* Rows that have an owner whose ids in the recording differ. */
static uint32_t compare(const struct attribution *attribution,
			const struct r3ring_layer_record *head, const uint16_t *ids)
{
	size_t bytes = head->top_k * sizeof(*ids);
	uint32_t different = 0;

	if (!fits(attribution, head))
		return head->rows;
	for (uint32_t i = 0; i < head->valid_rows; i++) {
		const struct attribution_owner *owner = owner_of(attribution, head, i);

		different += owner->known &&
			     memcmp(ids + i * head->top_k,
				    recording_ids(attribution->recording, owner->row,
						  (uint32_t)head->layer_id),
				    bytes) != 0;
	}
	return different;
}

static void count_ids(struct attribution *attribution, uint32_t layer, const uint16_t *ids)
{
	const struct recording *recording = attribution->recording;

	for (uint32_t k = 0; k < recording->top_k; k++) {
		if (ids[k] < recording->experts)
			attribution->counts[layer * recording->experts + ids[k]]++;
	}
}

static void mark_row(struct attribution *attribution, const struct attribution_owner *owner,
		     uint32_t layer, const uint16_t *ids)
{
	uint8_t *seen;

	if (!owner->known) {
		attribution->unowned++;
		attribution->unowned_ready += attribution->ready;
		return;
	}
	seen = &attribution->seen[(size_t)owner->row * attribution->recording->layers + layer];
	*seen = (uint8_t)(*seen + (*seen < UINT8_MAX));
	attribution->right++;
	count_ids(attribution, layer, ids);
}

/* Takes note of what was found intact. */
static void mark(struct attribution *attribution, const struct r3ring_layer_record *head,
		 const uint16_t *ids, uint32_t different)
{
	attribution->units += head->valid_rows;
	attribution->ids_missing += head->missing + head->out_of_range;
	attribution->wrong += different;
	if (!fits(attribution, head))
		return;
	for (uint32_t i = 0; i < head->valid_rows; i++)
		mark_row(attribution, owner_of(attribution, head, i), (uint32_t)head->layer_id,
			 ids + i * head->top_k);
	attribution->right -= different;
	for (uint32_t i = head->valid_rows * head->top_k; i < head->rows * head->top_k; i++)
		attribution->padding_not_empty += ids[i] != R3RING_MISSING;
}

void attribution_layer(struct attribution *attribution, const struct r3ring_layer_record *head,
		       const uint16_t *ids)
{
	mark(attribution, head, ids, compare(attribution, head, ids));
}

/* ---- records of a reader ----------------------------------------------- */

static void take_spans(struct attribution *attribution, const struct r3ring_span *spans,
		       uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		attribution_span(attribution,
				 r3ring_requests_id(attribution->requests, spans[i].request),
				 &spans[i]);
}

static void take_step_end(struct attribution *attribution,
			  const struct r3ring_step_end_record *head)
{
	attribution->steps_complete += head->status == R3RING_STEP_COMPLETE;
	attribution->steps_partial += head->status == R3RING_STEP_PARTIAL;
	attribution->newest_step_end = head->step;
}

static void take_record(struct attribution *attribution, const struct r3ring_record *record)
{
	switch (record->type) {
	case R3RING_STEP:
		attribution_step(attribution, record->u.step.head.step);
		take_spans(attribution, record->u.step.spans, record->u.step.head.spans);
		break;
	case R3RING_SPANS:
		take_spans(attribution, record->u.spans.spans, record->u.spans.head.spans);
		break;
	case R3RING_LAYER:
		attribution_layer(attribution, &record->u.layer.head, record->u.layer.ids);
		break;
	case R3RING_STEP_END:
		take_step_end(attribution, &record->u.step_end.head);
		break;
	case R3RING_REQUEST:
		if (record->u.request.head.event == R3RING_REQUEST_END)
			attribution_end(attribution,
					r3ring_requests_id(attribution->requests,
							   record->u.request.head.handle),
					&record->u.request.head);
		break;
	default:
		break;
	}
}

/* @view->data is a copy. */
static void take_copy(struct attribution *attribution, const struct r3ring_view *view)
{
	struct r3ring_record record;

	attribution->records++;
	if (r3ring_record_decode(&record, view->type, view->data, view->len, NULL) < 0) {
		attribution->wrong++;
		return;
	}
	if (r3ring_requests_feed(attribution->requests, view, &record) < 0)
		die("the table of requests is full");
	attribution_follow(attribution, view->seq, record.type,
			   record.type == R3RING_KEYFRAME ? &record.u.keyframe : NULL);
	take_record(attribution, &record);
}

/* Room for the largest record of the present generation. */
static void make_room(struct attribution *attribution, const struct r3ring_reader *reader)
{
	size_t need = r3ring_reader_max_record(reader) + RECORD_ALIGN;

	if (need <= attribution->capacity)
		return;
	free(attribution->buffer);
	attribution->capacity = need / RECORD_ALIGN * RECORD_ALIGN;
	attribution->buffer = aligned_alloc(RECORD_ALIGN, attribution->capacity);
	if (!attribution->buffer)
		die("out of memory");
}

static int refuse(struct attribution *attribution)
{
	attribution->refused++;
	r3ring_requests_gap(attribution->requests);
	return 1;
}

/* Compared where it lies; believed once it is known that it was intact. */
static int take_layer_in_place(struct attribution *attribution, struct r3ring_reader *reader,
			       const struct r3ring_view *view)
{
	struct r3ring_record record;
	uint32_t different = 0;
	int code = r3ring_record_decode(&record, view->type, view->data, view->len, NULL);

	if (code == 0) {
		const struct r3ring_layer_record *head = &record.u.layer.head;

		different = compare(attribution, head, record.u.layer.ids);
		memcpy(attribution->buffer, record.u.layer.ids,
		       (size_t)head->rows * head->top_k * sizeof(uint16_t));
	}
	if (r3ring_reader_check(reader) < 0)
		return refuse(attribution);
	attribution->records++;
	if (code < 0) {
		attribution->wrong++;
		return 1;
	}
	r3ring_requests_feed(attribution->requests, view, &record);
	attribution_follow(attribution, view->seq, record.type, NULL);
	mark(attribution, &record.u.layer.head, attribution->buffer, different);
	return 1;
}

static int take_in_place(struct attribution *attribution, struct r3ring_reader *reader,
			 struct r3ring_view *view)
{
	if (view->type == R3RING_LAYER)
		return take_layer_in_place(attribution, reader, view);
	memcpy(attribution->buffer, view->data, view->len);
	if (r3ring_reader_check(reader) < 0)
		return refuse(attribution);
	view->data = attribution->buffer;
	take_copy(attribution, view);
	return 1;
}

int attribution_take(struct attribution *attribution, struct r3ring_reader *reader,
		     enum attribution_way way)
{
	struct r3ring_view view;
	int code;

	make_room(attribution, reader);
	code = way == ATTRIBUTION_COPY ? r3ring_reader_read(reader, &view, attribution->buffer,
							    attribution->capacity)
				       : r3ring_reader_next(reader, &view);
	if (code == 1 && way == ATTRIBUTION_IN_PLACE)
		return take_in_place(attribution, reader, &view);
	if (code == 1)
		take_copy(attribution, &view);
	if (code == -EOVERFLOW || code == -EBADMSG) {
		attribution->overruns++;
		attribution->wrong += code == -EBADMSG;
		attribution->keyframe_left = 0;
		r3ring_requests_gap(attribution->requests);
		return 1;
	}
	return code == 1;
}

void attribution_take_all(struct attribution *attribution, struct r3ring_reader *reader,
			  enum attribution_way way)
{
	while (attribution_take(attribution, reader, way))
		;
}

bool attribution_take_until(struct attribution *attribution, struct r3ring_reader *reader,
			    bool (*done)(const struct attribution *attribution, uint64_t argument),
			    uint64_t argument)
{
	struct timespec now;
	time_t until;

	clock_gettime(CLOCK_MONOTONIC, &now);
	until = now.tv_sec + DEADLINE_S;
	while (!done(attribution, argument)) {
		if (attribution_take(attribution, reader, ATTRIBUTION_COPY))
			continue;
		clock_gettime(CLOCK_MONOTONIC, &now);
		if (now.tv_sec > until)
			return false;
		r3ring_reader_wait(reader, WAIT_MS);
	}
	return true;
}

bool attribution_has_step(const struct attribution *attribution, uint64_t step)
{
	return attribution->newest_step_end >= step;
}

bool attribution_has_ends(const struct attribution *attribution, uint64_t requests)
{
	return attribution->ends + attribution->wrong_ends >= requests;
}
