/* SPDX-License-Identifier: Apache-2.0 */
/* Entries that are no step, and what is said of a producer that is gone. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include <r3ring/atomic.h>

#include "capture_daemon/drain.h"
#include "capture_daemon/log.h"

/* Of one that was told in the ring before, by a daemon that died before it gave the entry back, the
 * beginning was carried from there. */
static int say_request(struct drain *drain, const struct r3ring_record *record,
		       const uint8_t *payload, size_t bytes)
{
	const struct r3ring_request_record *head = &record->u.request.head;
	int r;

	if (head->event == R3RING_REQUEST_BEGIN && live_has_request(&drain->publisher.live, head))
		return 0;
	r = live_note_request(&drain->publisher.live, head, payload, bytes);
	if (r < 0)
		log_warn("channel %s: request %" PRIu64 " is not repeated for late readers: %s",
			 drain->label, head->handle, strerror(-r));
	return publish_record(&drain->publisher, record, 0);
}

/* The schema comes again when layers were bound or unbound; nothing else of it
 * may change within a generation. */
static int say_schema(struct drain *drain, const struct r3ring_record *record,
		      struct r3ring_error *err)
{
	struct publisher *publisher = &drain->publisher;
	const struct r3ring_schema_record *head = &record->u.schema.head;

	if (head->layers != publisher->schema.layers)
		return r3ring_error_set(err, -EBADMSG, "a schema with %u layers instead of %u",
					head->layers, publisher->schema.layers);
	for (uint32_t i = 0; i < head->layers; i++) {
		if (record->u.schema.layers[i].layer_id != publisher->layers[i].layer_id ||
		    record->u.schema.layers[i].kind != publisher->layers[i].kind)
			return r3ring_error_set(err, -EBADMSG, "a schema with other layers");
	}
	pthread_mutex_lock(&drain->report_lock);
	for (uint32_t i = 0; i < head->layers; i++) {
		publisher->layers[i].bound = record->u.schema.layers[i].bound;
		r3ring_store_relaxed_u32(&drain->layer_comes[i], 0);
	}
	publisher->schema.bound_since_ns = head->bound_since_ns;
	pthread_mutex_unlock(&drain->report_lock);
	return publish_schema(publisher, 0);
}

static int say(struct drain *drain, const struct r3ring_record *record, const uint8_t *payload,
	       size_t bytes, struct r3ring_error *err)
{
	switch (record->type) {
	case R3RING_REQUEST:
		return say_request(drain, record, payload, bytes);
	case R3RING_SPANS:
		return publish_spans(&drain->publisher, record);
	case R3RING_EPLB:
		return publish_map(&drain->publisher, record);
	case R3RING_KEY_COPY:
		return publish_record(&drain->publisher, record, 0);
	case R3RING_SCHEMA:
		return say_schema(drain, record, err);
	default:
		return r3ring_error_set(err, -EBADMSG, "a producer may not submit %s records",
					r3ring_record_type_name(record->type));
	}
}

static void say_too_big(struct drain *drain, uint16_t type, size_t bytes)
{
	log_warn("channel %s: a %s record of %zu bytes does not fit the ring (at most %zu): give "
		 "r3ringd a larger --ring-size",
		 drain->label, r3ring_record_type_name(type), bytes,
		 drain->publisher.scratch_bytes);
	drain_check(drain, publish_too_big(&drain->publisher), "LOST");
}

int drain_record(struct drain *drain, const uint8_t *payload, size_t bytes, uint16_t type,
		 struct r3ring_error *err)
{
	struct r3ring_record record;
	int r = r3ring_record_decode(&record, type, payload, bytes, err);

	if (r < 0)
		return r;
	r = say(drain, &record, payload, bytes, err);
	if (r == -EMSGSIZE) {
		say_too_big(drain, type, bytes);
		r = 0;
	}
	r3ring_writer_wake(drain->publisher.writer);
	drain_update_report(drain);
	return r;
}

/* ---- keyframes ---------------------------------------------------------- */

/* Once a channel. */
static void note_left_out(struct drain *drain)
{
	const struct publisher *publisher = &drain->publisher;

	if (!publisher->left_out || drain->left_out_told)
		return;
	drain->left_out_told = true;
	log_warn(
		"channel %s: %u of %u live requests are not repeated for late readers, who know no "
		"request of their rows: a keyframe takes a quarter of the ring at most (%zu bytes, "
		"%u records); a larger --ring-size has room for more",
		drain->label, publisher->left_out, HASH_COUNT(publisher->live.requests),
		publisher->arena_bytes / KEYFRAME_SHARE, publisher->depth / KEYFRAME_SHARE);
}

void drain_keyframe(struct drain *drain)
{
	drain_check(drain, publish_keyframe(&drain->publisher), "KEYFRAME");
	note_left_out(drain);
}

void drain_keyframe_when_due(struct drain *drain)
{
	if (keyframe_due(&drain->publisher))
		drain_keyframe(drain);
}

/* ---- a producer that is gone -------------------------------------------- */

void drain_end_requests(struct drain *drain, enum r3ring_end_reason reason)
{
	struct live *live = &drain->publisher.live;
	struct live_payload *request, *next;

	HASH_ITER (hh, live->requests, request, next) {
		struct r3ring_record record = {.type = R3RING_REQUEST};
		struct r3ring_request_record begin;

		memcpy(&begin, request->bytes, sizeof(begin));
		record.u.request.head = (struct r3ring_request_record){
			.handle = request->key,
			.accepted_tokens = R3RING_UNKNOWN_U32,
			.attempt = begin.attempt,
			.event = R3RING_REQUEST_END,
			.reason = (uint8_t)reason,
		};
		drain_check(drain, publish_record(&drain->publisher, &record, 0), "REQUEST");
		live_note_request(live, &record.u.request.head, NULL, 0);
		drain_keyframe_when_due(drain);
	}
}

/* Steps that were begun and never reached the queue. */
static void say_died(struct drain *drain)
{
	struct pages_begun begun = pages_read_begun(&drain->pages);
	struct r3ring_lost_record lost = {
		.from_step = drain->last_step + 1,
		.to_step = begun.step,
		.steps = begun.step - drain->last_step,
		.rows = begun.rows > drain->rows_seen ? begun.rows - drain->rows_seen : 0,
		.cause = R3RING_CAUSE_PRODUCER_DIED,
		.spans_unknown = 1,
	};

	if (begun.step <= drain->last_step)
		return;
	lost.layer_rows = lost.rows * drain->geometry.layers;
	drain->publisher.totals.steps += lost.steps;
	drain_check(drain, publish_lost(&drain->publisher, &lost), "LOST");
}

/* It had the time to say why its last steps found no entry. */
static void say_closed(struct drain *drain)
{
	struct pages_begun begun = pages_read_begun(&drain->pages);
	struct lane_gap causes;

	memcpy(&causes, &drain->pages.words->closing_gap, sizeof(causes));
	if (begun.step > drain->last_step)
		drain_say_gap(drain, begun.step + 1, begun.rows, &causes);
}

void drain_say_gone(struct drain *drain, enum drain_producer how)
{
	if (how == DRAIN_PRODUCER_DIED)
		say_died(drain);
	else
		say_closed(drain);
	drain_end_requests(drain, R3RING_END_ABORTED);
}
