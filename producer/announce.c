/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Announcements beside the steps: requests, late spans, EPLB maps, key copies.
 * They go through the side lane. What must not be lost and finds it full waits
 * in the spill, and nothing overtakes it.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include <r3ring/atomic.h>
#include <r3ring/eplb.h>

#include "channel/clock.h"
#include "producer/producer.h"
#include "producer/token_map.h"

/* ---- the side lane ---------------------------------------------------- */

/* Counts what is in the lane or in the spill: steps that follow come after it. */
static void note_announced(struct r3ring_producer *producer)
{
	/* Pairs with the acquire in the step's submit(). */
	r3ring_store_release_u64(&producer->announced, producer->announced + 1);
}

/* With side_lock held: room behind what waits in the spill. */
static struct lane_entry *reserve(struct r3ring_producer *producer, uint16_t record_type,
				  uint32_t bytes)
{
	struct lane_entry *entry;

	if (!producer_flush_spill(producer))
		return NULL;
	entry = lane_reserve(&producer->sides, bytes);
	if (entry)
		entry->record_type = record_type;
	return entry;
}

static void submit(struct r3ring_producer *producer, struct lane_entry *entry)
{
	entry->after = lane_number(&producer->steps);
	lane_submit(&producer->sides);
	note_announced(producer);
}

bool producer_flush_spill(struct r3ring_producer *producer)
{
	struct spill *spill = &producer->spill;

	while (spill->first) {
		const struct spill_item *item = spill->first;
		struct lane_entry *entry = lane_reserve(&producer->sides, item->bytes);

		if (!entry)
			return false;
		entry->record_type = item->record_type;
		memcpy(entry + 1, item->payload, item->bytes);
		entry->after = item->after;
		lane_submit(&producer->sides);
		spill_remove(spill);
	}
	return true;
}

/* Hands on a record that is never dropped. Returns 0 or -ENOBUFS. */
static int put_or_keep(struct r3ring_producer *producer, uint16_t record_type, const void *payload,
		       uint32_t bytes)
{
	struct lane_entry *entry;
	int ret = 0;

	pthread_mutex_lock(&producer->side_lock);
	entry = reserve(producer, record_type, bytes);
	if (entry) {
		memcpy(entry + 1, payload, bytes);
		submit(producer, entry);
	} else {
		ret = spill_append(&producer->spill, record_type, lane_number(&producer->steps),
				   payload, bytes);
		if (!ret)
			note_announced(producer);
	}
	pthread_mutex_unlock(&producer->side_lock);

	if (!entry && !ret)
		producer_helper_kick(producer);
	pages_wake(&producer->pages);
	return ret;
}

/* Hands on a record that may be dropped. Returns 0, -ENOBUFS or -EINVAL. */
static int put_encoded(struct r3ring_producer *producer, const struct r3ring_record *record,
		       uint32_t bytes, const char *call)
{
	struct r3ring_error err = {0};
	struct lane_entry *entry;
	int ret = -ENOBUFS;

	pthread_mutex_lock(&producer->side_lock);
	entry = reserve(producer, record->type, bytes);
	if (entry && r3ring_record_encode(record, entry + 1, bytes, &err) == (long)bytes) {
		submit(producer, entry);
		ret = 0;
	}
	pthread_mutex_unlock(&producer->side_lock);

	pages_wake(&producer->pages);
	if (!ret)
		return 0;
	if (err.code)
		return producer_side_failed(producer, -EINVAL, "%s: %s", call, err.text);
	r3ring_store_relaxed_u64(&producer->dropped_records, producer->dropped_records + 1);
	return producer_side_failed(producer, ret, "%s: the queue is full; dropped", call);
}

/* ---- requests --------------------------------------------------------- */

#define REQUEST_BYTES_MAX (sizeof(struct r3ring_request_record) + 4 * R3RING_TEXT_ID_MAX)

/* Measures one text. Returns 0 or -ENAMETOOLONG. */
static int measure(struct r3ring_producer *producer, const char *name, const char *text,
		   uint16_t *len)
{
	size_t bytes = text ? strnlen(text, R3RING_TEXT_ID_MAX + 1) : 0;

	if (bytes > R3RING_TEXT_ID_MAX)
		return producer_side_failed(producer, -ENAMETOOLONG,
					    "request_begin: %s \"%.40s...\" is longer than %d "
					    "bytes",
					    name, text, R3RING_TEXT_ID_MAX);
	*len = (uint16_t)bytes;
	return 0;
}

static int measure_texts(struct r3ring_producer *producer, const struct r3ring_request *request,
			 struct r3ring_request_record *head)
{
	int ret = measure(producer, "id", request->id, &head->id_len);

	if (!ret)
		ret = measure(producer, "session", request->session, &head->session_len);
	if (!ret)
		ret = measure(producer, "turn", request->turn, &head->turn_len);
	return ret ? ret : measure(producer, "sample", request->sample, &head->sample_len);
}

static int put_request(struct r3ring_producer *producer, const struct r3ring_record *record)
{
	uint64_t payload[REQUEST_BYTES_MAX / sizeof(uint64_t)];
	struct r3ring_error err = {0};
	long bytes = r3ring_record_encode(record, payload, sizeof(payload), &err);

	if (bytes < 0)
		return producer_side_failed(producer, (int)bytes, "request: %s", err.text);
	if (put_or_keep(producer, R3RING_REQUEST, payload, (uint32_t)bytes))
		return producer_side_failed(producer, -ENOBUFS,
					    "request: the queue and the %u MiB behind it are full; "
					    "nothing was announced",
					    SPILL_BYTES_MAX >> 20);
	return 0;
}

/* Returns 0 or -EINVAL. */
static int check_request(struct r3ring_producer *producer, const struct r3ring_request *request)
{
	if (!request)
		return producer_side_failed(producer, -EINVAL, "request_begin: request is NULL");
	if (request->size != sizeof(*request))
		return producer_side_failed(producer, -EINVAL,
					    "request_begin: size is %zu, not sizeof(struct "
					    "r3ring_request), %zu",
					    request->size, sizeof(*request));
	if (!request->id || !*request->id)
		return producer_side_failed(producer, -EINVAL,
					    "request_begin: id is missing; 1 to %d bytes",
					    R3RING_TEXT_ID_MAX);
	if (request->attempt > UINT16_MAX)
		return producer_side_failed(producer, -EINVAL,
					    "request_begin: attempt is %u; 0 to %u are allowed",
					    request->attempt, UINT16_MAX);
	if (request->first < R3RING_FIRST_UNKNOWN || request->first > (int64_t)producer->handles ||
	    (request->first && !request->attempt))
		return producer_side_failed(
			producer, -EINVAL,
			"request_begin: first is %" PRId64
			" of attempt %u; a later attempt's is a handle that was "
			"given, 0 or R3RING_FIRST_UNKNOWN, and the first one's 0",
			request->first, request->attempt);
	return 0;
}

/* Of the request's attempts here, this one among them. */
static uint64_t first_handle(const struct r3ring_producer *producer,
			     const struct r3ring_request *request,
			     const struct r3ring_request_record *head)
{
	const bool may_be_elsewhere = producer->schema.u.schema.head.rank.dp.size > 1;
	uint64_t first = 0;

	if (request->first > 0)
		return (uint64_t)request->first;
	if (head->attempt && !request->first && !may_be_elsewhere)
		first = ongoing_first(&producer->ongoing, request->id, head->id_len);
	return first ? first : head->handle;
}

int64_t r3ring_request_begin(struct r3ring_producer *producer, const struct r3ring_request *request)
{
	struct r3ring_record record = {.type = R3RING_REQUEST};
	struct r3ring_request_record *head = &record.u.request.head;
	uint64_t first;
	int ret;

	if (!producer_is_own(producer))
		return -ESTALE;
	ret = check_request(producer, request);
	if (!ret)
		ret = measure_texts(producer, request, head);
	if (ret)
		return ret;

	head->handle = producer->handles + 1;
	head->event = R3RING_REQUEST_BEGIN;
	head->attempt = (uint16_t)request->attempt;
	head->prompt_tokens = request->prompt_tokens;
	head->accepted_tokens = R3RING_UNKNOWN_U32;
	record.u.request.id = request->id;
	record.u.request.session = request->session;
	record.u.request.turn = request->turn;
	record.u.request.sample = request->sample;
	first = first_handle(producer, request, head);
	if (head->handle - first <= UINT32_MAX)
		head->since_first = (uint32_t)(head->handle - first);
	if (ongoing_begin(&producer->ongoing, head->handle, first, request->id, head->id_len))
		return producer_side_failed(producer, -ENOMEM, "request_begin: out of memory");
	ret = put_request(producer, &record);
	if (ret) {
		ongoing_end(&producer->ongoing, head->handle, false);
		return ret;
	}
	ongoing_resume(&producer->ongoing, first, request->id, head->id_len);
	return (int64_t)++producer->handles;
}

int r3ring_request_end(struct r3ring_producer *producer, int64_t handle,
		       enum r3ring_end_reason reason, uint32_t attempt, uint32_t accepted_tokens)
{
	struct r3ring_record record = {.type = R3RING_REQUEST};
	struct r3ring_request_record *head = &record.u.request.head;
	int ret;

	if (!producer_is_own(producer))
		return -ESTALE;
	if (handle < 1 || (uint64_t)handle > producer->handles)
		return producer_side_failed(producer, -EINVAL,
					    "request_end: handle %" PRId64 " was never given",
					    handle);
	if (reason < R3RING_END_FINISHED || reason > R3RING_END_PREEMPTED)
		return producer_side_failed(producer, -EINVAL,
					    "request_end: reason is %d; finished (1), aborted (2), "
					    "preempted (3) are allowed",
					    (int)reason);
	if (attempt > UINT16_MAX)
		return producer_side_failed(producer, -EINVAL,
					    "request_end: attempt is %u; 0 to %u are allowed",
					    attempt, UINT16_MAX);
	if (!ongoing_lives(&producer->ongoing, (uint64_t)handle))
		return producer_side_failed(producer, -EALREADY,
					    "request_end: handle %" PRId64
					    " has ended; a later attempt begins with another",
					    handle);

	head->handle = (uint64_t)handle;
	head->event = R3RING_REQUEST_END;
	head->reason = (uint8_t)reason;
	head->attempt = (uint16_t)attempt;
	head->accepted_tokens = accepted_tokens;
	ret = put_request(producer, &record);
	if (!ret)
		ongoing_end(&producer->ongoing, head->handle, reason == R3RING_END_PREEMPTED);
	return ret;
}

/* ---- spans, maps, keys ------------------------------------------------ */

/* Puts spans that were checked. Returns whether there was room. */
static bool put_spans(struct r3ring_producer *producer, int64_t step_number,
		      const struct r3ring_step *spans, uint64_t bytes)
{
	const struct r3ring_spans_record head = {
		.step = (uint64_t)step_number,
		.spans = spans->spans,
		.keys = spans->keys,
		.tokens_per_key = spans->tokens_per_key,
		.key_kind = spans->key_kind,
		.flags = R3RING_SPANS_REPLACE,
	};
	struct lane_entry *entry;

	pthread_mutex_lock(&producer->side_lock);
	entry = reserve(producer, R3RING_SPANS, (uint32_t)bytes);
	if (entry) {
		memcpy(entry + 1, &head, sizeof(head));
		token_map_write(spans, R3RING_ROWS_MAX, (uint8_t *)(entry + 1) + sizeof(head));
		submit(producer, entry);
	}
	pthread_mutex_unlock(&producer->side_lock);
	pages_wake(&producer->pages);
	return entry != NULL;
}

int r3ring_step_spans(struct r3ring_producer *producer, int64_t step_number,
		      const struct r3ring_step *spans)
{
	uint64_t bytes;
	const char *fault;

	if (!producer_is_own(producer))
		return -ESTALE;
	if (!spans)
		return producer_side_failed(producer, -EINVAL, "step_spans: spans is NULL");
	if (step_number < 1 || (uint64_t)step_number > r3ring_load_relaxed_u64(&producer->step))
		return producer_side_failed(producer, -EINVAL,
					    "step_spans: step %" PRId64 " has not begun",
					    step_number);
	bytes = sizeof(struct r3ring_spans_record) + token_map_bytes(spans);
	fault = token_map_write(spans, R3RING_ROWS_MAX, NULL);
	if (fault || bytes > lane_largest(producer->sides.bytes))
		return producer_side_failed(producer, -EINVAL, "step_spans of step %" PRId64 ": %s",
					    step_number,
					    fault ? fault : "more than the queue takes at once");
	if (put_spans(producer, step_number, spans, bytes))
		return 0;
	r3ring_store_relaxed_u64(&producer->dropped_records, producer->dropped_records + 1);
	return producer_side_failed(producer, -ENOBUFS,
				    "step_spans of step %" PRId64 ": the queue is full; dropped",
				    step_number);
}

static const char *eplb_fault(const struct r3ring_producer *producer,
			      const struct r3ring_eplb_record *head)
{
	uint64_t end = (uint64_t)head->first_layer + head->layers;

	if (end > producer->geometry.layers)
		return "first_layer and layers reach beyond the schema's layers";
	if (head->experts != producer->geometry.experts)
		return "experts is not the schema's";
	if (!head->gpus || !head->physical || head->physical % head->gpus)
		return "gpus does not divide physical";
	if (!head->replicas || head->replicas > head->physical)
		return "replicas is not 1 to physical";
	return NULL;
}

/* What every reader would refuse: an expert without a place, or a place of two. */
static int eplb_refuse_places(struct r3ring_producer *producer,
			      const struct r3ring_eplb_record *head, const uint16_t *map)
{
	const struct r3ring_eplb_map places = {
		.layers = head->layers,
		.experts = head->experts,
		.replicas = head->replicas,
		.physical = head->physical,
		.gpus = head->gpus,
		.map = (uint16_t *)map,
	};
	struct r3ring_error err;

	if (r3ring_eplb_map_check(&places, &err) != -EBADMSG)
		return 0;
	return producer_side_failed(producer, -EINVAL, "eplb: %s", err.text);
}

int r3ring_eplb(struct r3ring_producer *producer, const struct r3ring_eplb_record *head,
		const uint16_t *map)
{
	struct r3ring_record record = {.type = R3RING_EPLB};
	uint64_t most, bytes;
	const char *fault;

	if (!producer_is_own(producer))
		return -ESTALE;
	fault = head && map ? eplb_fault(producer, head) : "head or map is NULL";
	if (fault)
		return producer_side_failed(producer, -EINVAL, "eplb: %s", fault);
	record.u.eplb.head = *head;
	record.u.eplb.map = map;
	bytes = r3ring_record_size(&record);
	most = lane_largest(producer->sides.bytes);
	if (bytes > most)
		return producer_side_failed(producer, -EMSGSIZE,
					    "eplb: map of %" PRIu64
					    " bytes; the queue takes %" PRIu64
					    ": announce fewer layers at once or raise queue_bytes",
					    bytes, most);
	if (eplb_refuse_places(producer, head, map) < 0)
		return -EINVAL;
	return put_encoded(producer, &record, (uint32_t)bytes, "eplb");
}

int r3ring_key_copy(struct r3ring_producer *producer, uint32_t key_kind, uint32_t tokens_per_key,
		    const struct r3ring_key_pair *pairs, uint32_t count)
{
	struct r3ring_record record = {.type = R3RING_KEY_COPY};
	uint64_t bytes;

	if (!producer_is_own(producer))
		return -ESTALE;
	if (count && !pairs)
		return producer_side_failed(producer, -EINVAL,
					    "key_copy: pairs is NULL, but count is %u", count);
	record.u.key_copy.head = (struct r3ring_key_copy_record){
		.step = r3ring_load_relaxed_u64(&producer->step) + 1,
		.pairs = count,
		.tokens_per_key = tokens_per_key,
		.key_kind = key_kind,
	};
	record.u.key_copy.pairs = pairs;
	bytes = r3ring_record_size(&record);
	if (bytes > lane_largest(producer->sides.bytes))
		return producer_side_failed(producer, -EINVAL,
					    "key_copy: %u pairs; the queue takes %" PRIu64 " bytes "
					    "at once",
					    count, lane_largest(producer->sides.bytes));
	return put_encoded(producer, &record, (uint32_t)bytes, "key_copy");
}

/* ---- what is bound ---------------------------------------------------- */

void producer_note_bound(struct r3ring_producer *producer, const uint8_t *bound)
{
	uint64_t payload[PRODUCER_SCHEMA_BYTES_MAX / sizeof(uint64_t)];
	uint32_t layers = producer->geometry.layers, count = 0;
	struct r3ring_error err;
	long bytes;

	pthread_mutex_lock(&producer->side_lock);
	for (uint32_t i = 0; i < layers; i++) {
		producer->layers[i].bound = bound ? bound[i] : 0;
		count += producer->layers[i].bound;
	}
	producer->schema.u.schema.head.bound_since_ns = count ? clock_now_ns() : 0;
	bytes = r3ring_record_encode(&producer->schema, payload, sizeof(payload), &err);
	pthread_mutex_unlock(&producer->side_lock);

	r3ring_store_relaxed_u32(&producer->bound_layers, count);
	if (bytes < 0)
		producer_log(producer, R3RING_LOG_ERROR, "announcing what is bound: %s", err.text);
	else if (put_or_keep(producer, R3RING_SCHEMA, payload, (uint32_t)bytes))
		producer_log(producer, R3RING_LOG_WARN,
			     "announcing what is bound: the queue is full; the daemon's status "
			     "shows what was bound before");
}
