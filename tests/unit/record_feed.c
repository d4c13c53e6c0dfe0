/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "tests/unit/record_feed.h"

#define ROWS_PER_RECORD 4u

uint16_t feed_id(uint32_t salt, uint64_t step, uint32_t row, uint32_t layer, uint32_t k)
{
	return (uint16_t)((salt * 977u + step * 7919u + row * 131u + layer * 17u + k * 5u) %
			  FEED_EXPERTS);
}

/* ---- records ------------------------------------------------------------ */

static int intact(void *reader)
{
	(void)reader;
	return 0;
}

/* Every other record where it lies, as if a reader had given it in place. */
static void feed_load(const struct feed *feed, const struct r3ring_view *view,
		      const struct r3ring_record *record)
{
	int r = view->seq % 2
			? r3ring_load_feed(feed->load, feed->channel, view, record)
			: r3ring_load_feed_view(feed->load, feed->channel, view, intact, NULL);

	cr_assert_eq(r, 0);
}

static void feed(struct feed *feed, const struct r3ring_record *record, uint16_t flags)
{
	size_t bytes = r3ring_record_size(record);
	void *payload = aligned_alloc(64, (bytes + 63) / 64 * 64 + 64);
	struct r3ring_record decoded;
	struct r3ring_error err = {0};
	struct r3ring_view view = {
		.seq = ++feed->seq,
		.step = record->type == R3RING_STEP    ? record->u.step.head.step
			: record->type == R3RING_LAYER ? record->u.layer.head.step
						       : 0,
		.units = feed->units +=
		record->type == R3RING_LAYER ? record->u.layer.head.valid_rows : 0,
		.generation = feed->generation,
		.type = record->type,
		.flags = flags,
		.data = payload,
		.len = (uint32_t)bytes,
	};

	cr_assert_gt(bytes, 0);
	cr_assert_eq(r3ring_record_encode(record, payload, bytes, &err), (long)bytes, "%s",
		     err.text);
	cr_assert_eq(r3ring_record_decode(&decoded, record->type, payload, bytes, &err), 0, "%s",
		     err.text);
	if (feed->record)
		feed->record(feed->ctx, &view);
	if (feed->assembler)
		cr_assert_eq(r3ring_assembler_feed(feed->assembler, feed->channel, &view, &decoded),
			     0);
	if (feed->load)
		feed_load(feed, &view, &decoded);
	if (feed->signatures)
		cr_assert_eq(
			r3ring_signatures_feed(feed->signatures, feed->channel, &view, &decoded),
			0);
	/* Nothing of it may be needed any more. */
	memset(payload, 0xA5, bytes);
	free(payload);
}

void feed_create(struct feed *to, const struct r3ring_assembler_options *options)
{
	*to = (struct feed){.generation = 1};
	cr_assert_eq(r3ring_assembler_create(&to->assembler, options, NULL), 0);
	cr_assert_eq(r3ring_assembler_channel(to->assembler, "test/0"), 0);
}

struct feed feed_channel(const struct feed *from, const char *name)
{
	struct feed other = {.assembler = from->assembler, .generation = 1};
	int channel = r3ring_assembler_channel(from->assembler, name);

	cr_assert_geq(channel, 0);
	other.channel = (uint32_t)channel;
	return other;
}

void feed_create_load(struct feed *to, const struct r3ring_load_options *options)
{
	*to = (struct feed){.generation = 1};
	cr_assert_eq(r3ring_load_create(&to->load, options, NULL), 0);
	cr_assert_eq(r3ring_load_channel(to->load, "test/0"), 0);
}

void feed_create_signatures(struct feed *to, const struct r3ring_signatures_options *options)
{
	*to = (struct feed){.generation = 1};
	cr_assert_eq(r3ring_signatures_create(&to->signatures, options, NULL), 0);
	cr_assert_eq(r3ring_signatures_channel(to->signatures, "test/0"), 0);
}

struct feed feed_signatures_channel(const struct feed *from, const char *name)
{
	struct feed other = *from;
	int channel = r3ring_signatures_channel(from->signatures, name);

	cr_assert_geq(channel, 0);
	other.channel = (uint32_t)channel;
	other.seq = 0;
	return other;
}

struct feed feed_load_channel(const struct feed *from, const char *name)
{
	struct feed other = *from;
	int channel = r3ring_load_channel(from->load, name);

	cr_assert_geq(channel, 0);
	other.channel = (uint32_t)channel;
	other.seq = 0;
	other.units = 0;
	return other;
}

void feed_destroy(struct feed *from)
{
	r3ring_assembler_destroy(from->assembler);
	r3ring_load_destroy(from->load);
	r3ring_signatures_destroy(from->signatures);
}

static void schema(struct feed *to, uint16_t flags)
{
	struct r3ring_layer_entry layers[FEED_LAYERS] = {0};
	struct r3ring_record record = {.type = R3RING_SCHEMA};

	for (uint32_t i = 0; i < FEED_LAYERS; i++) {
		layers[i].layer_id = to->first_layer + (int32_t)i;
		layers[i].kind = to->kinds ? to->kinds[i] : R3RING_LAYER_MOE;
	}
	record.u.schema.head = (struct r3ring_schema_record){
		.layers = FEED_LAYERS,
		.experts = to->experts ? to->experts : FEED_EXPERTS,
		.top_k = FEED_TOP_K,
		.max_rows = 64,
		.rows_per_record = ROWS_PER_RECORD,
		.clock = 1,
		.rank = to->rank,
		.replica = to->replica,
		.bound_since_ns = to->bound_since_ns,
		.continues = to->continues,
		.generation = to->generation,
		.model = "small",
	};
	record.u.schema.layers = layers;
	feed(to, &record, flags);
}

void feed_schema(struct feed *to)
{
	schema(to, 0);
}

static void begin(struct feed *to, uint64_t handle, const char *id, uint32_t prompt,
		  uint16_t attempt, uint16_t flags)
{
	struct r3ring_record record = {.type = R3RING_REQUEST};

	record.u.request.head = (struct r3ring_request_record){
		.handle = handle,
		.prompt_tokens = prompt,
		.accepted_tokens = R3RING_UNKNOWN_U32,
		.attempt = attempt,
		.event = R3RING_REQUEST_BEGIN,
		.id_len = (uint16_t)strlen(id),
		.since_first = to->since_first,
	};
	to->since_first = 0;
	record.u.request.id = id;
	record.u.request.session = record.u.request.turn = record.u.request.sample = "";
	if (to->session) {
		record.u.request.session = to->session;
		record.u.request.head.session_len = (uint16_t)strlen(to->session);
	}
	feed(to, &record, flags);
}

void feed_begin(struct feed *to, uint64_t handle, const char *id, uint32_t prompt, uint16_t attempt)
{
	begin(to, handle, id, prompt, attempt, 0);
}

void feed_repeated_begin(struct feed *to, uint64_t handle, const char *id, uint32_t prompt)
{
	begin(to, handle, id, prompt, 0, R3RING_DESC_REPEATED);
}

void feed_repeated_attempt(struct feed *to, uint64_t handle, const char *id, uint32_t prompt,
			   uint16_t attempt)
{
	begin(to, handle, id, prompt, attempt, R3RING_DESC_REPEATED);
}

void feed_end(struct feed *to, uint64_t handle, enum r3ring_end_reason reason, uint16_t attempt,
	      uint32_t accepted)
{
	struct r3ring_record record = {.type = R3RING_REQUEST};

	record.u.request.head = (struct r3ring_request_record){
		.handle = handle,
		.accepted_tokens = accepted,
		.attempt = attempt,
		.event = R3RING_REQUEST_END,
		.reason = (uint8_t)reason,
	};
	record.u.request.id = record.u.request.session = record.u.request.turn =
		record.u.request.sample = "";
	feed(to, &record, 0);
}

static void keyframe(struct feed *to, uint32_t requests, uint16_t flags)
{
	struct r3ring_record record = {.type = R3RING_KEYFRAME};

	record.u.keyframe.records = requests + 1;
	record.u.keyframe.live_requests = requests;
	record.u.keyframe.totals = to->totals;
	feed(to, &record, R3RING_DESC_KEYFRAME | R3RING_DESC_BOUNDARY | flags);
	schema(to, R3RING_DESC_REPEATED);
}

void feed_keyframe(struct feed *to, uint32_t requests)
{
	keyframe(to, requests, 0);
}

void feed_abridged_keyframe(struct feed *to, uint32_t requests)
{
	keyframe(to, requests, R3RING_DESC_ABRIDGED);
}

void feed_lost(struct feed *to, uint64_t from, uint64_t until, enum r3ring_cause cause,
	       uint32_t spans_unknown)
{
	struct r3ring_record record = {.type = R3RING_LOST};

	record.u.lost = (struct r3ring_lost_record){
		.from_step = from,
		.to_step = until,
		.steps = until - from + 1,
		.rows = to->lost_rows,
		.layer_rows = to->lost_cells,
		.cause = cause,
		.spans_unknown = spans_unknown,
	};
	feed(to, &record, 0);
}

/* ---- steps -------------------------------------------------------------- */

void feed_step(struct feed *to, uint64_t step, uint32_t rows, const struct r3ring_span *spans,
	       uint32_t count, const uint64_t *keys, uint32_t key_count)
{
	struct r3ring_record record = {.type = R3RING_STEP};

	record.u.step.head = (struct r3ring_step_record){
		.step = step,
		.total_rows = rows + to->padding,
		.row_begin = to->row_begin,
		.row_end = (to->row_end ? to->row_end : rows) + to->padding,
		.valid_end = to->row_end ? to->row_end : rows,
		.flags = to->flags,
		.spans = count,
		.keys = key_count,
		.tokens_per_key = to->tokens_per_key,
		.key_kind = key_count ? to->key_kind : R3RING_KEYS_NONE,
		.weight_version = to->weight_version,
		.eplb_epoch = to->epoch,
		.host_ns = to->host_ns,
	};
	record.u.step.spans = spans;
	record.u.step.keys = keys;
	feed(to, &record, R3RING_DESC_BOUNDARY);
}

static uint16_t id_to_feed(const struct feed *to, uint64_t step, uint32_t row, uint32_t layer,
			   uint32_t k)
{
	if (to->id)
		return to->id(to, step, row, layer, k);
	return (uint16_t)(feed_id(to->salt, step, row, layer, k) %
			  (to->experts ? to->experts : FEED_EXPERTS));
}

static void layer_part(struct feed *to, uint64_t step, uint32_t total, uint32_t layer, uint32_t row,
		       uint32_t rows)
{
	uint16_t ids[ROWS_PER_RECORD * FEED_TOP_K];
	struct r3ring_record record = {.type = R3RING_LAYER};
	uint32_t end = total - to->padding, valid = row < end ? end - row : 0;

	valid = valid < rows ? valid : rows;
	memset(ids, 0xFF, sizeof(ids));
	for (uint32_t i = 0; i < valid; i++)
		for (uint32_t k = 0; k < FEED_TOP_K; k++)
			ids[i * FEED_TOP_K + k] = id_to_feed(to, step, row + i, layer, k);
	record.u.layer.head = (struct r3ring_layer_record){
		.step = step,
		.layer_id = to->first_layer + (int32_t)layer,
		.layer_index = (uint16_t)layer,
		.row = row,
		.rows = rows,
		.total_rows = total,
		.valid_rows = valid,
		.top_k = FEED_TOP_K,
		.kind = to->kinds ? to->kinds[layer] : R3RING_LAYER_MOE,
	};
	record.u.layer.ids = ids;
	feed(to, &record, 0);
}

void feed_layers(struct feed *to, uint64_t step, uint32_t rows, uint32_t first, uint32_t end)
{
	uint32_t row_end = (to->row_end ? to->row_end : rows) + to->padding;

	for (uint32_t layer = first; layer < end; layer++)
		for (uint32_t row = to->row_begin; row < row_end; row += ROWS_PER_RECORD)
			layer_part(to, step, rows + to->padding, layer, row,
				   row_end - row < ROWS_PER_RECORD ? row_end - row
								   : ROWS_PER_RECORD);
}

void feed_spans_as(struct feed *to, uint32_t flags, uint64_t step, const struct r3ring_span *spans,
		   uint32_t count, const uint64_t *keys, uint32_t key_count)
{
	struct r3ring_record record = {.type = R3RING_SPANS};

	record.u.spans.head.step = step;
	record.u.spans.head.spans = count;
	record.u.spans.head.keys = key_count;
	record.u.spans.head.tokens_per_key = to->tokens_per_key;
	record.u.spans.head.key_kind = key_count ? to->key_kind : R3RING_KEYS_NONE;
	record.u.spans.head.flags = flags;
	record.u.spans.spans = spans;
	record.u.spans.keys = keys;
	feed(to, &record, 0);
}

void feed_spans(struct feed *to, uint64_t step, const struct r3ring_span *spans, uint32_t count)
{
	feed_spans_as(to, R3RING_SPANS_REPLACE, step, spans, count, NULL, 0);
}

void feed_rows(struct feed *to, uint64_t step, const int32_t *positions, uint32_t rows)
{
	struct r3ring_record record = {.type = R3RING_ROWS};

	record.u.rows.head.step = step;
	record.u.rows.head.row = to->row_begin;
	record.u.rows.head.rows = rows;
	record.u.rows.head.content = R3RING_ROWS_POSITIONS;
	record.u.rows.positions = positions;
	feed(to, &record, 0);
}

void feed_step_end(struct feed *to, uint64_t step, int32_t missing_layer, enum r3ring_cause cause)
{
	const struct r3ring_missing_layer missing = {
		.layer_id = missing_layer,
		.cause = (uint16_t)cause,
		.expected = 1,
	};
	struct r3ring_record record = {.type = R3RING_STEP_END};

	record.u.step_end.head.step = step;
	record.u.step_end.head.status = cause ? R3RING_STEP_PARTIAL : R3RING_STEP_COMPLETE;
	record.u.step_end.head.missing = cause ? 1 : 0;
	record.u.step_end.head.publish_ns = to->ns;
	record.u.step_end.missing = &missing;
	feed(to, &record, 0);
}

void feed_map(struct feed *to, uint64_t epoch, uint32_t replicas, uint32_t physical, uint32_t gpus,
	      const uint16_t *map)
{
	struct r3ring_record record = {.type = R3RING_EPLB};
	uint16_t *all = malloc((size_t)FEED_LAYERS * to->experts * replicas * sizeof(*all));

	cr_assert_not_null(all);
	for (uint32_t layer = 0; layer < FEED_LAYERS; layer++)
		memcpy(all + (size_t)layer * to->experts * replicas, map,
		       to->experts * replicas * sizeof(*all));
	/* In two parts, as the daemon says a large one. */
	for (uint32_t layer = 0; layer < FEED_LAYERS; layer += FEED_LAYERS - 1) {
		record.u.eplb.head = (struct r3ring_eplb_record){
			.epoch = epoch,
			.first_layer = layer,
			.layers = layer ? 1 : FEED_LAYERS - 1,
			.experts = to->experts,
			.replicas = replicas,
			.physical = physical,
			.gpus = gpus,
		};
		record.u.eplb.map = all + (size_t)layer * to->experts * replicas;
		feed(to, &record, 0);
	}
	free(all);
}

void feed_closed(struct feed *to)
{
	struct r3ring_record record = {.type = R3RING_CLOSED};

	record.u.closed.reason = to->crashed ? R3RING_CLOSED_CRASHED : R3RING_CLOSED_SHUTDOWN;
	record.u.closed.engine_lives = to->engine_lives;
	feed(to, &record, 0);
}

void feed_key_copy(struct feed *to, uint64_t from, uint64_t until)
{
	const struct r3ring_key_pair pair = {from, until};
	struct r3ring_record record = {.type = R3RING_KEY_COPY};

	record.u.key_copy.head.pairs = 1;
	record.u.key_copy.head.tokens_per_key = to->tokens_per_key;
	record.u.key_copy.head.key_kind = to->key_kind;
	record.u.key_copy.pairs = &pair;
	feed(to, &record, 0);
}

void feed_whole_keys(struct feed *to, uint64_t step, uint32_t rows, const struct r3ring_span *spans,
		     uint32_t count, const uint64_t *keys, uint32_t key_count)
{
	feed_step(to, step, rows, spans, count, keys, key_count);
	feed_layers(to, step, rows, 0, FEED_LAYERS);
	feed_step_end(to, step, 0, R3RING_CAUSE_NONE);
}

void feed_whole(struct feed *to, uint64_t step, uint32_t rows, const struct r3ring_span *spans,
		uint32_t count)
{
	feed_whole_keys(to, step, rows, spans, count, NULL, 0);
}

/* ---- what came out ------------------------------------------------------ */

struct r3ring_assembled *take(struct feed *from, const char *id)
{
	struct r3ring_assembled *assembled = r3ring_assembler_take(from->assembler);

	cr_assert_not_null(assembled, "%s is not ready", id);
	cr_assert_str_eq(r3ring_assembled_get_info(assembled)->id, id);
	return assembled;
}

uint8_t cell_of(const struct r3ring_assembled *assembled, uint32_t position, uint32_t layer,
		uint32_t salt, uint64_t step, uint32_t row)
{
	uint16_t ids[FEED_TOP_K];
	uint8_t valid, cause;
	const struct r3ring_assembled_rows rows = {.ids = ids, .valid = &valid, .cause = &cause};

	cr_assert_eq(r3ring_assembled_read(assembled, position, 1, layer, 1, &rows), 0);
	cr_assert_eq(valid, cause == 0);
	for (uint32_t k = 0; k < FEED_TOP_K; k++)
		cr_assert_eq(ids[k],
			     valid ? feed_id(salt, step, row, layer, k) : (uint16_t)R3RING_MISSING,
			     "position %u, layer %u, place %u", position, layer, k);
	return cause;
}
