/* SPDX-License-Identifier: Apache-2.0 */
/* Records of every type in three sizes. */
#include <stdlib.h>
#include <string.h>

#include "tests/support/record_examples.h"

#define SPANS_MANY 4096u
#define KEYS_MANY (4u * SPANS_MANY)
#define IDS_MANY R3RING_ROWS_MAX
#define MAP_MANY (R3RING_LAYERS_MAX * 256u)

static struct r3ring_layer_entry layers[R3RING_LAYERS_MAX + 1];
static struct r3ring_span spans[SPANS_MANY];
static uint64_t keys[KEYS_MANY];
static int32_t positions[R3RING_ROWS_MAX], token_ids[R3RING_ROWS_MAX];
static uint16_t ids[IDS_MANY];
static struct r3ring_missing_layer missing[R3RING_LAYERS_MAX + 1];
static uint16_t map[MAP_MANY];
static struct r3ring_key_pair pairs[KEYS_MANY];
static char text[4 * (R3RING_TEXT_ID_MAX + 1)];

struct r3ring_layer_entry *example_layers(void)
{
	return layers;
}

struct r3ring_span *example_spans(void)
{
	return spans;
}

struct r3ring_missing_layer *example_missing(void)
{
	return missing;
}

uint16_t *example_map(void)
{
	return map;
}

char *example_text(void)
{
	return text;
}

static uint32_t pick(enum example_size size, uint32_t min, uint32_t typical, uint32_t max)
{
	return size == EXAMPLE_MIN ? min : size == EXAMPLE_TYPICAL ? typical : max;
}

static uint64_t pick64(enum example_size size, uint64_t min, uint64_t typical)
{
	return size == EXAMPLE_MIN ? min : size == EXAMPLE_TYPICAL ? typical : UINT64_MAX;
}

static void make_schema(struct r3ring_record *record, enum example_size size)
{
	struct r3ring_schema_record *head = &record->u.schema.head;

	head->layers = pick(size, 1, 43, R3RING_LAYERS_MAX);
	head->experts = pick(size, 1, 256, R3RING_EXPERTS_MAX);
	head->top_k = (uint16_t)pick(size, 1, 6, R3RING_TOP_K_MAX);
	head->max_rows = pick(size, 1, 16384, R3RING_ROWS_MAX);
	head->rows_per_record = pick(size, 0, 4096, R3RING_ROWS_MAX);
	head->clock = 1;
	head->rank.tp = (struct r3ring_coordinate){(uint16_t)pick(size, 0, 3, 65534),
						   (uint16_t)pick(size, 0, 8, 65535)};
	head->replica = (uint16_t)pick(size, 0, 1, 65535);
	head->captures_rows = pick(size, 0, 1, 1);
	head->weight_version = pick64(size, 0, 7);
	head->generation = pick64(size, 0, 3);
	memset(head->uuid, (int)pick(size, 0, 0x5a, 0xff), sizeof(head->uuid));
	memset(head->model, 'm', pick(size, 0, 17, R3RING_MODEL_NAME_MAX));
	for (uint32_t i = 0; i <= R3RING_LAYERS_MAX; i++)
		layers[i] = (struct r3ring_layer_entry){
			.layer_id = (int32_t)(i / 3), .kind = (uint8_t)(i % 3), .bound = i & 1};
	record->u.schema.layers = layers;
}

static void make_request(struct r3ring_record *record, enum example_size size)
{
	struct r3ring_request_record *head = &record->u.request.head;

	memset(text, 't', sizeof(text));
	head->handle = pick64(size, 0, 42);
	head->event = size == EXAMPLE_MIN ? R3RING_REQUEST_END : R3RING_REQUEST_BEGIN;
	head->reason = size == EXAMPLE_MIN ? R3RING_END_PREEMPTED : 0;
	head->prompt_tokens = pick(size, 0, 900, UINT32_MAX);
	head->accepted_tokens = R3RING_UNKNOWN_U32;
	head->attempt = (uint16_t)pick(size, 0, 2, 65535);
	head->since_first = pick(size, 0, 40, UINT32_MAX);
	head->id_len = (uint16_t)pick(size, 0, 12, R3RING_TEXT_ID_MAX);
	head->session_len = (uint16_t)pick(size, 0, 5, R3RING_TEXT_ID_MAX);
	head->turn_len = (uint16_t)pick(size, 0, 0, R3RING_TEXT_ID_MAX);
	head->sample_len = (uint16_t)pick(size, 0, 3, R3RING_TEXT_ID_MAX);
	record->u.request.id = text;
	record->u.request.session = text + R3RING_TEXT_ID_MAX;
	record->u.request.turn = text + 2 * R3RING_TEXT_ID_MAX;
	record->u.request.sample = text + 3 * R3RING_TEXT_ID_MAX;
}

/* Spans of one row each but for the last, which ends with the last row. */
static void fill_spans(uint32_t count, uint32_t total_rows, uint32_t keys_each)
{
	for (uint32_t i = 0; i < count; i++)
		spans[i] = (struct r3ring_span){
			.request = 100 + i,
			.position = 7 * i,
			.row = i,
			.rows = i + 1 < count ? 1 : total_rows - i,
			.accepted = R3RING_UNKNOWN_U32,
			.keys = keys_each,
			.attempt = (uint16_t)(i & 3),
		};
	for (uint32_t i = 0; i < KEYS_MANY; i++)
		keys[i] = 0x9e3779b97f4a7c15ull * (i + 1);
}

static void make_step(struct r3ring_record *record, enum example_size size)
{
	struct r3ring_step_record *head = &record->u.step.head;

	head->step = pick64(size, 1, 12345);
	head->total_rows = pick(size, 0, 256, R3RING_ROWS_MAX);
	head->row_begin = pick(size, 0, 128, 0);
	head->row_end = pick(size, 0, 256, R3RING_ROWS_MAX);
	head->valid_end = pick(size, 0, 250, R3RING_ROWS_MAX);
	head->flags = pick(size, 0, R3RING_STEP_GRAPH, 15);
	head->spans = pick(size, 0, 64, SPANS_MANY);
	head->keys = pick(size, 0, 128, KEYS_MANY);
	head->tokens_per_key = pick(size, 0, 16, UINT32_MAX);
	head->key_kind = pick(size, R3RING_KEYS_NONE, R3RING_KEYS_BLOCK_HASH, R3RING_KEYS_SLOT);
	head->weight_version = pick64(size, 0, 1);
	head->eplb_epoch = pick64(size, 0, 1);
	head->host_ns = pick64(size, 0, 1000000007);
	fill_spans(head->spans, head->total_rows, pick(size, 0, 2, 4));
	record->u.step.spans = spans;
	record->u.step.keys = keys;
}

static void make_spans(struct r3ring_record *record, enum example_size size)
{
	struct r3ring_spans_record *head = &record->u.spans.head;

	head->step = pick64(size, 1, 77);
	head->spans = pick(size, 0, 8, SPANS_MANY);
	head->keys = pick(size, 0, 8, KEYS_MANY);
	head->tokens_per_key = pick(size, 0, 1, UINT32_MAX);
	head->key_kind = pick(size, R3RING_KEYS_NONE, R3RING_KEYS_SLOT, R3RING_KEYS_SLOT);
	head->flags = pick(size, 0, R3RING_SPANS_REPLACE, 3);
	fill_spans(head->spans, pick(size, 0, 64, R3RING_ROWS_MAX), pick(size, 0, 1, 4));
	if (size == EXAMPLE_TYPICAL) {
		spans[0].flags = R3RING_SPAN_DRAFT;
		spans[0].accepted = 1;
		spans[1].kind = R3RING_SPAN_EXTERNAL;
		spans[1].row = R3RING_UNKNOWN_U32;
	}
	record->u.spans.spans = spans;
	record->u.spans.keys = keys;
}

static void make_rows(struct r3ring_record *record, enum example_size size)
{
	struct r3ring_rows_record *head = &record->u.rows.head;

	head->step = pick64(size, 1, 9);
	head->row = pick(size, 0, 32, 0);
	head->rows = pick(size, 0, 64, R3RING_ROWS_MAX);
	head->content = pick(size, R3RING_ROWS_POSITIONS, R3RING_ROWS_TOKEN_IDS, 3);
	for (uint32_t i = 0; i < R3RING_ROWS_MAX; i++) {
		positions[i] = (int32_t)i;
		token_ids[i] = (int32_t)(i * 2654435761u);
	}
	if (head->content & R3RING_ROWS_POSITIONS)
		record->u.rows.positions = positions;
	if (head->content & R3RING_ROWS_TOKEN_IDS)
		record->u.rows.token_ids = token_ids;
}

static void make_layer(struct r3ring_record *record, enum example_size size)
{
	struct r3ring_layer_record *head = &record->u.layer.head;

	head->step = pick64(size, 1, 555);
	head->layer_id = (int32_t)pick(size, 0, 42, INT32_MAX);
	head->layer_index = (uint16_t)pick(size, 0, 42, R3RING_LAYERS_MAX - 1);
	head->kind = (uint8_t)pick(size, R3RING_LAYER_MOE, R3RING_LAYER_HASH, R3RING_LAYER_MTP);
	head->row = pick(size, 0, 128, R3RING_ROWS_MAX - 4096);
	head->rows = pick(size, 0, 128, 4096);
	head->total_rows = pick(size, 0, 256, R3RING_ROWS_MAX);
	head->valid_rows = pick(size, 0, 122, 4096);
	head->missing = pick(size, 0, 3, UINT32_MAX);
	head->out_of_range = pick(size, 0, 1, UINT32_MAX);
	head->top_k = (uint16_t)pick(size, 1, 6, R3RING_TOP_K_MAX);
	for (uint32_t i = 0; i < IDS_MANY; i++)
		ids[i] = (uint16_t)(i * 40503u);
	record->u.layer.ids = ids;
}

static void make_step_end(struct r3ring_record *record, enum example_size size)
{
	struct r3ring_step_end_record *head = &record->u.step_end.head;

	head->step = pick64(size, 1, 31);
	head->status = size == EXAMPLE_MIN ? R3RING_STEP_COMPLETE : R3RING_STEP_PARTIAL;
	head->missing = pick(size, 0, 3, R3RING_LAYERS_MAX);
	head->host_begin_ns = pick64(size, 0, 1);
	head->publish_ns = pick64(size, 0, 5);
	for (uint32_t i = 0; i <= R3RING_LAYERS_MAX; i++)
		missing[i] = (struct r3ring_missing_layer){
			.layer_id = (int32_t)i,
			.kind = (uint8_t)(i % 3),
			.cause = (uint16_t)(1 + i % (R3RING_CAUSE_COUNT - 1)),
			.captured = i,
			.expected = i + 1,
		};
	record->u.step_end.missing = missing;
}

static void make_lost(struct r3ring_record *record, enum example_size size)
{
	struct r3ring_lost_record *lost = &record->u.lost;

	lost->from_step = pick64(size, 0, 10);
	lost->to_step = pick64(size, 0, 14);
	lost->steps = size == EXAMPLE_MAX ? 1 : pick(size, 0, 5, 0);
	lost->rows = pick64(size, 0, 1280);
	lost->layer_rows = pick64(size, 0, 1280 * 43);
	lost->cause = pick(size, R3RING_CAUSE_BUFFER_FULL, R3RING_CAUSE_QUEUE_FULL,
			   R3RING_CAUSE_CONFLICT);
	lost->spans_unknown = pick(size, 0, 1, 1);
}

static void make_eplb(struct r3ring_record *record, enum example_size size)
{
	struct r3ring_eplb_record *head = &record->u.eplb.head;

	head->epoch = pick64(size, 0, 2);
	head->first_step = pick64(size, 0, 100);
	head->layers = pick(size, 1, 3, R3RING_LAYERS_MAX);
	head->first_layer = pick(size, 0, 4, 0);
	head->experts = pick(size, 1, 32, 64);
	head->replicas = pick(size, 1, 2, 4);
	head->physical = pick(size, 1, 40, R3RING_EXPERTS_MAX);
	head->gpus = pick(size, 1, 8, R3RING_EXPERTS_MAX);
	for (uint32_t i = 0; i < MAP_MANY; i++)
		map[i] = (uint16_t)(i & 1 ? R3RING_MISSING : i % head->physical);
	record->u.eplb.map = map;
}

static void make_key_copy(struct r3ring_record *record, enum example_size size)
{
	struct r3ring_key_copy_record *head = &record->u.key_copy.head;

	head->step = pick64(size, 0, 3);
	head->pairs = pick(size, 0, 5, KEYS_MANY);
	head->tokens_per_key = pick(size, 0, 16, UINT32_MAX);
	head->key_kind = pick(size, R3RING_KEYS_NONE, R3RING_KEYS_SLOT, R3RING_KEYS_BLOCK_HASH);
	for (uint32_t i = 0; i < KEYS_MANY; i++)
		pairs[i] = (struct r3ring_key_pair){i, i + 1};
	record->u.key_copy.pairs = pairs;
}

static void make_keyframe(struct r3ring_record *record, enum example_size size)
{
	record->u.keyframe.step = pick64(size, 0, 700);
	record->u.keyframe.records = pick(size, 0, 20, UINT32_MAX);
	record->u.keyframe.live_requests = pick(size, 0, 18, UINT32_MAX);
	memset(&record->u.keyframe.totals, (int)pick(size, 0, 1, 0xff),
	       sizeof(record->u.keyframe.totals));
}

static void make_closed(struct r3ring_record *record, enum example_size size)
{
	record->u.closed.reason =
		pick(size, R3RING_CLOSED_SHUTDOWN, R3RING_CLOSED_NEXT, R3RING_CLOSED_CRASHED);
	record->u.closed.next_generation = pick64(size, 0, 4);
	memset(record->u.closed.next_name, 'n',
	       pick(size, 0, 20, sizeof(record->u.closed.next_name) - 1));
}

void example_record(struct r3ring_record *record, uint16_t type, enum example_size size)
{
	static void (*const make[R3RING_RECORD_TYPES])(struct r3ring_record *,
						       enum example_size) = {
		[R3RING_SCHEMA] = make_schema,     [R3RING_REQUEST] = make_request,
		[R3RING_STEP] = make_step,         [R3RING_SPANS] = make_spans,
		[R3RING_ROWS] = make_rows,         [R3RING_LAYER] = make_layer,
		[R3RING_STEP_END] = make_step_end, [R3RING_LOST] = make_lost,
		[R3RING_EPLB] = make_eplb,         [R3RING_KEY_COPY] = make_key_copy,
		[R3RING_KEYFRAME] = make_keyframe, [R3RING_CLOSED] = make_closed,
	};

	memset(record, 0, sizeof(*record));
	record->type = type;
	make[type](record, size);
}

size_t example_head_bytes(uint16_t type)
{
	static const size_t bytes[R3RING_RECORD_TYPES] = {
		[R3RING_SCHEMA] = 184,  [R3RING_REQUEST] = 32,   [R3RING_STEP] = 72,
		[R3RING_SPANS] = 32,    [R3RING_ROWS] = 24,      [R3RING_LAYER] = 64,
		[R3RING_STEP_END] = 48, [R3RING_LOST] = 48,      [R3RING_EPLB] = 40,
		[R3RING_KEY_COPY] = 24, [R3RING_KEYFRAME] = 280, [R3RING_CLOSED] = 144,
	};

	return bytes[type];
}

static unsigned int parts_of_map(const struct r3ring_span *span, uint32_t span_count,
				 const uint64_t *key, uint32_t key_count,
				 struct example_part *parts)
{
	parts[0] = (struct example_part){span, span_count * (size_t)32};
	parts[1] = (struct example_part){key, key_count * (size_t)8};
	return 2;
}

static unsigned int parts_of_rows(const struct r3ring_record *record, struct example_part *parts)
{
	size_t bytes = record->u.rows.head.rows * (size_t)4;
	unsigned int n = 0;

	if (record->u.rows.head.content & R3RING_ROWS_POSITIONS)
		parts[n++] = (struct example_part){record->u.rows.positions, bytes};
	if (record->u.rows.head.content & R3RING_ROWS_TOKEN_IDS)
		parts[n++] = (struct example_part){record->u.rows.token_ids, bytes};
	return n;
}

static unsigned int parts_of_request(const struct r3ring_record *record, struct example_part *parts)
{
	const struct r3ring_request_record *head = &record->u.request.head;

	parts[0] = (struct example_part){record->u.request.id, head->id_len};
	parts[1] = (struct example_part){record->u.request.session, head->session_len};
	parts[2] = (struct example_part){record->u.request.turn, head->turn_len};
	parts[3] = (struct example_part){record->u.request.sample, head->sample_len};
	return 4;
}

static unsigned int part_of_matrix(const struct r3ring_record *record, struct example_part *part)
{
	const struct r3ring_layer_record *layer = &record->u.layer.head;
	const struct r3ring_eplb_record *eplb = &record->u.eplb.head;

	if (record->type == R3RING_LAYER)
		*part = (struct example_part){record->u.layer.ids,
					      (size_t)2 * layer->rows * layer->top_k};
	else
		*part = (struct example_part){record->u.eplb.map, (size_t)2 * eplb->layers *
									  eplb->experts *
									  eplb->replicas};
	return 1;
}

unsigned int example_parts(const struct r3ring_record *record,
			   struct example_part parts[EXAMPLE_PARTS_MAX])
{
	switch (record->type) {
	case R3RING_SCHEMA:
		parts[0] = (struct example_part){record->u.schema.layers,
						 record->u.schema.head.layers * (size_t)8};
		return 1;
	case R3RING_REQUEST:
		return parts_of_request(record, parts);
	case R3RING_STEP:
		return parts_of_map(record->u.step.spans, record->u.step.head.spans,
				    record->u.step.keys, record->u.step.head.keys, parts);
	case R3RING_SPANS:
		return parts_of_map(record->u.spans.spans, record->u.spans.head.spans,
				    record->u.spans.keys, record->u.spans.head.keys, parts);
	case R3RING_ROWS:
		return parts_of_rows(record, parts);
	case R3RING_LAYER:
	case R3RING_EPLB:
		return part_of_matrix(record, parts);
	case R3RING_STEP_END:
		parts[0] = (struct example_part){record->u.step_end.missing,
						 record->u.step_end.head.missing * (size_t)16};
		return 1;
	case R3RING_KEY_COPY:
		parts[0] = (struct example_part){record->u.key_copy.pairs,
						 record->u.key_copy.head.pairs * (size_t)16};
		return 1;
	default:
		return 0;
	}
}

struct example_payload example_payload(const struct r3ring_record *record)
{
	struct example_part parts[EXAMPLE_PARTS_MAX];
	unsigned int n = example_parts(record, parts);
	struct example_payload payload = {.len = example_head_bytes(record->type)};
	size_t at = payload.len;

	for (unsigned int i = 0; i < n; i++)
		payload.len += parts[i].bytes;
	payload.bytes = aligned_alloc(64, (payload.len + 63) / 64 * 64);
	if (!payload.bytes)
		abort();
	memcpy(payload.bytes, &record->u, at);
	for (unsigned int i = 0; i < n; i++) {
		if (parts[i].bytes)
			memcpy(payload.bytes + at, parts[i].data, parts[i].bytes);
		at += parts[i].bytes;
	}
	return payload;
}
