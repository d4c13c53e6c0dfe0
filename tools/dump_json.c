/* SPDX-License-Identifier: Apache-2.0 */
/*
 * r3ring dump --json: records as JSON, one compact object a line.
 *
 * Heads are built with jansson; matrices of ids, which are nearly all of the
 * output, are written by hand behind them.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "tools/dump.h"
#include "tools/id_matrix.h"
#include "tools/json_values.h"
#include "tools/words.h"

/* ---- arrays within records -------------------------------------------- */

/* Appends to an array; a NULL value or array says that memory is out. */
static json_t *append(json_t *array, json_t *value)
{
	if (array && !json_array_append_new(array, value))
		return array;
	json_decref(array);
	return NULL;
}

/* Adds the second object's members to the first; likewise. */
static json_t *merge(json_t *object, json_t *more)
{
	bool merged = object && more && !json_object_update(object, more);

	json_decref(more);
	if (merged)
		return object;
	json_decref(object);
	return NULL;
}

static json_t *layer_table(const struct r3ring_record *record)
{
	const struct r3ring_layer_entry *layers = record->u.schema.layers;
	json_t *table = json_array();

	for (uint32_t i = 0; table && i < record->u.schema.head.layers; i++)
		table = append(table,
			       json_pack("{s:i, s:o, s:b}", "layer", (int)layers[i].layer_id,
					 "kind", json_lower(r3ring_layer_kind_name(layers[i].kind)),
					 "bound", (int)layers[i].bound));
	return table;
}

static json_t *coordinate(struct r3ring_coordinate one)
{
	return json_pack("{s:i, s:i}", "index", (int)one.index, "size",
			 one.size ? (int)one.size : 1);
}

static json_t *coordinates(const struct r3ring_coordinates *rank)
{
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "dp", coordinate(rank->dp), "tp",
			 coordinate(rank->tp), "sp", coordinate(rank->sp), "pp",
			 coordinate(rank->pp), "ep", coordinate(rank->ep), "cp",
			 coordinate(rank->cp));
}

static json_t *step_flags(uint32_t flags)
{
	json_t *names = json_array();
	const char *name;

	for (; names && (name = word_step_flag(flags)); flags &= flags - 1)
		names = append(names, json_string(name));
	return names;
}

/* Which request a span belongs to; null where that is not known for certain. */
static json_t *span_owner(const struct r3ring_span *span, const struct r3ring_requests *requests)
{
	const char *id = requests ? r3ring_requests_id(requests, span->request) : NULL;

	if (!id)
		return json_pack("{s:n, s:b, s:o}", "request", "attributed", 0, "handle",
				 json_u64(span->request));
	return json_pack("{s:o, s:o}", "request", json_text(id, strlen(id)), "handle",
			 json_u64(span->request));
}

static json_t *span_object(const struct r3ring_span *span, const struct r3ring_requests *requests)
{
	json_t *place = json_pack("{s:o, s:o, s:o, s:i, s:o, s:o, s:o}", "position",
				  json_u64(span->position), "row", json_u64(span->row), "rows",
				  json_u64(span->rows), "attempt", (int)span->attempt, "kind",
				  json_lower(r3ring_span_kind_name(span->kind)), "accepted",
				  json_known_u32(span->accepted), "keys", json_u64(span->keys));

	if (span->flags & R3RING_SPAN_DRAFT)
		place = merge(place, json_pack("{s:b}", "draft", 1));
	return merge(span_owner(span, requests), place);
}

static json_t *span_array(const struct r3ring_span *spans, uint32_t count,
			  const struct r3ring_requests *requests)
{
	json_t *array = json_array();

	for (uint32_t i = 0; array && i < count; i++)
		array = append(array, span_object(&spans[i], requests));
	return array;
}

static json_t *key_array(const uint64_t *keys, uint32_t count)
{
	json_t *array = json_array();

	for (uint32_t i = 0; array && i < count; i++)
		array = append(array, json_key(keys[i]));
	return array;
}

static json_t *key_pairs(const struct r3ring_key_pair *pairs, uint32_t count)
{
	json_t *array = json_array();

	for (uint32_t i = 0; array && i < count; i++)
		array = append(array,
			       json_pack("[o, o]", json_key(pairs[i].from), json_key(pairs[i].to)));
	return array;
}

static json_t *number_array(const int32_t *numbers, uint32_t count)
{
	json_t *array;

	if (!numbers)
		return json_null();
	array = json_array();
	for (uint32_t i = 0; array && i < count; i++)
		array = append(array, json_integer(numbers[i]));
	return array;
}

static json_t *missing_layers(const struct r3ring_missing_layer *missing, uint32_t count)
{
	json_t *array = json_array();

	for (uint32_t i = 0; array && i < count; i++)
		array = append(array, json_pack("{s:i, s:o, s:s, s:o, s:o}", "layer",
						(int)missing[i].layer_id, "kind",
						json_lower(r3ring_layer_kind_name(missing[i].kind)),
						"cause", r3ring_cause_name(missing[i].cause),
						"captured", json_u64(missing[i].captured),
						"expected", json_u64(missing[i].expected)));
	return array;
}

/* ---- what each type says ---------------------------------------------- */

static json_t *schema_body(const struct dump_item *item)
{
	const struct r3ring_schema_record *schema = &item->record->u.schema.head;
	json_t *sizes = json_pack(
		"{s:o, s:o, s:o, s:i, s:s, s:o, s:o}", "model",
		json_text(schema->model, strnlen(schema->model, sizeof(schema->model))), "layers",
		layer_table(item->record), "experts", json_u64(schema->experts), "top_k",
		(int)schema->top_k, "id_space",
		schema->id_space == R3RING_IDS_LOGICAL ? "logical" : "?", "max_rows",
		json_u64(schema->max_rows), "rows_per_record", json_u64(schema->rows_per_record));
	json_t *origin = json_pack(
		"{s:o, s:i, s:o, s:o, s:o, s:i, s:b, s:o, s:o, s:s, s:I}", "generation",
		json_u64(schema->generation), "continues", (int)schema->continues, "uuid",
		json_hex(schema->uuid, sizeof(schema->uuid)), "boot_id",
		json_hex(schema->boot_id, sizeof(schema->boot_id)), "rank",
		coordinates(&schema->rank), "replica", (int)schema->replica, "captures_rows",
		schema->captures_rows != 0, "weight_version", json_u64(schema->weight_version),
		"bound_since_ns", json_u64(schema->bound_since_ns), "clock",
		schema->clock == 1 ? "monotonic" : "?", "realtime_offset_ns",
		(json_int_t)schema->realtime_offset_ns);

	return merge(sizes, origin);
}

/* The texts lie one behind the other, not NUL-terminated. */
static json_t *request_body(const struct dump_item *item)
{
	const struct r3ring_record *record = item->record;
	const struct r3ring_request_record *head = &record->u.request.head;
	bool begin = head->event == R3RING_REQUEST_BEGIN;
	uint64_t first = r3ring_request_first(head);
	size_t id_len;
	const char *id = dump_request_id(item, &id_len);
	json_t *names = json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:i}", "event",
				  word_request_event(head->event), "request", json_text(id, id_len),
				  "handle", json_u64(head->handle), "session",
				  json_text(record->u.request.session, head->session_len), "turn",
				  json_text(record->u.request.turn, head->turn_len), "sample",
				  json_text(record->u.request.sample, head->sample_len), "attempt",
				  (int)head->attempt);

	if (begin)
		return merge(names,
			     json_pack("{s:o, s:o}", "prompt_tokens", json_u64(head->prompt_tokens),
				       "first_handle", first ? json_u64(first) : json_null()));
	return merge(names, json_pack("{s:s, s:o}", "reason", word_end_reason(head->reason),
				      "accepted_tokens", json_known_u32(head->accepted_tokens)));
}

static json_t *step_body(const struct dump_item *item)
{
	const struct r3ring_record *record = item->record;
	const struct r3ring_step_record *head = &record->u.step.head;
	json_t *rows = json_pack(
		"{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "step", json_u64(head->step),
		"total_rows", json_u64(head->total_rows), "row_begin", json_u64(head->row_begin),
		"row_end", json_u64(head->row_end), "valid_end", json_u64(head->valid_end), "flags",
		step_flags(head->flags), "weight_version", json_u64(head->weight_version),
		"eplb_epoch", json_u64(head->eplb_epoch), "host_ns", json_u64(head->host_ns));
	json_t *map = json_pack("{s:o, s:s, s:o, s:o}", "spans",
				span_array(record->u.step.spans, head->spans, item->requests),
				"key_kind", word_key_kind(head->key_kind), "tokens_per_key",
				json_u64(head->tokens_per_key), "keys",
				key_array(record->u.step.keys, head->keys));

	return merge(rows, map);
}

static json_t *spans_body(const struct dump_item *item)
{
	const struct r3ring_record *record = item->record;
	const struct r3ring_spans_record *head = &record->u.spans.head;

	return json_pack("{s:o, s:b, s:b, s:o, s:s, s:o, s:o}", "step", json_u64(head->step),
			 "more", (head->flags & R3RING_SPANS_MORE) != 0, "replace",
			 (head->flags & R3RING_SPANS_REPLACE) != 0, "spans",
			 span_array(record->u.spans.spans, head->spans, item->requests), "key_kind",
			 word_key_kind(head->key_kind), "tokens_per_key",
			 json_u64(head->tokens_per_key), "keys",
			 key_array(record->u.spans.keys, head->keys));
}

static json_t *rows_body(const struct dump_item *item)
{
	const struct r3ring_record *record = item->record;
	const struct r3ring_rows_record *head = &record->u.rows.head;

	return json_pack("{s:o, s:o, s:o, s:o, s:o}", "step", json_u64(head->step), "row",
			 json_u64(head->row), "rows", json_u64(head->rows), "positions",
			 number_array(record->u.rows.positions, head->rows), "token_ids",
			 number_array(record->u.rows.token_ids, head->rows));
}

static json_t *layer_body(const struct dump_item *item)
{
	const struct r3ring_layer_record *head = &item->record->u.layer.head;

	return json_pack("{s:o, s:i, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "step",
			 json_u64(head->step), "layer", (int)head->layer_id, "kind",
			 json_lower(r3ring_layer_kind_name(head->kind)), "row", json_u64(head->row),
			 "rows", json_u64(head->rows), "total_rows", json_u64(head->total_rows),
			 "valid_rows", json_u64(head->valid_rows), "missing",
			 json_u64(head->missing), "out_of_range", json_u64(head->out_of_range));
}

static json_t *step_end_body(const struct dump_item *item)
{
	const struct r3ring_record *record = item->record;
	const struct r3ring_step_end_record *head = &record->u.step_end.head;

	return json_pack("{s:o, s:s, s:o, s:o, s:o, s:o, s:o}", "step", json_u64(head->step),
			 "status", word_step_status(head->status), "missing",
			 missing_layers(record->u.step_end.missing, head->missing), "host_begin_ns",
			 json_u64(head->host_begin_ns), "device_begin_ns",
			 json_u64(head->device_begin_ns), "device_end_ns",
			 json_u64(head->device_end_ns), "publish_ns", json_u64(head->publish_ns));
}

static json_t *lost_body(const struct dump_item *item)
{
	const struct r3ring_lost_record *lost = &item->record->u.lost;

	return json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:b}", "cause",
			 r3ring_cause_name(lost->cause), "steps", json_u64(lost->steps), "rows",
			 json_u64(lost->rows), "layer_rows", json_u64(lost->layer_rows), "from",
			 json_u64(lost->from_step), "to", json_u64(lost->to_step), "spans_unknown",
			 lost->spans_unknown != 0);
}

static json_t *eplb_body(const struct dump_item *item)
{
	const struct r3ring_eplb_record *head = &item->record->u.eplb.head;

	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "epoch", json_u64(head->epoch),
			 "first_step", json_u64(head->first_step), "first_layer",
			 json_u64(head->first_layer), "layers", json_u64(head->layers), "experts",
			 json_u64(head->experts), "replicas", json_u64(head->replicas), "physical",
			 json_u64(head->physical), "gpus", json_u64(head->gpus));
}

static json_t *key_copy_body(const struct dump_item *item)
{
	const struct r3ring_record *record = item->record;
	const struct r3ring_key_copy_record *head = &record->u.key_copy.head;

	return json_pack("{s:o, s:s, s:o, s:o}", "step", json_u64(head->step), "key_kind",
			 word_key_kind(head->key_kind), "tokens_per_key",
			 json_u64(head->tokens_per_key), "pairs",
			 key_pairs(record->u.key_copy.pairs, head->pairs));
}

static json_t *totals_object(const struct r3ring_totals *totals)
{
	return json_pack(
		"{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "steps",
		json_u64(totals->steps), "steps_complete", json_u64(totals->steps_complete),
		"steps_partial", json_u64(totals->steps_partial), "rows", json_u64(totals->rows),
		"layer_records", json_u64(totals->layer_records), "layer_rows",
		json_u64(totals->layer_rows), "layers_missing", json_u64(totals->layers_missing),
		"ids_out_of_range", json_u64(totals->ids_out_of_range), "ids_missing",
		json_u64(totals->ids_missing), "lost",
		json_lost(totals->lost_steps, totals->lost_rows, "none"));
}

static json_t *keyframe_body(const struct dump_item *item)
{
	const struct r3ring_keyframe_record *head = &item->record->u.keyframe;

	return json_pack("{s:o, s:o, s:o, s:b, s:o}", "step", json_u64(head->step), "records",
			 json_u64(head->records), "live_requests", json_u64(head->live_requests),
			 "abridged", (item->view->flags & R3RING_DESC_ABRIDGED) != 0, "totals",
			 totals_object(&head->totals));
}

static json_t *closed_body(const struct dump_item *item)
{
	const struct r3ring_closed_record *closed = &item->record->u.closed;

	return json_pack("{s:s, s:b, s:o, s:o}", "reason", word_closed_reason(closed->reason),
			 "engine_lives", closed->engine_lives != 0, "next_generation",
			 json_u64(closed->next_generation), "next_segment",
			 json_text(closed->next_name,
				   strnlen(closed->next_name, sizeof(closed->next_name))));
}

typedef json_t *(*body_fn)(const struct dump_item *item);

static const body_fn bodies[R3RING_RECORD_TYPES] = {
	[R3RING_SCHEMA] = schema_body,     [R3RING_REQUEST] = request_body,
	[R3RING_STEP] = step_body,         [R3RING_SPANS] = spans_body,
	[R3RING_ROWS] = rows_body,         [R3RING_LAYER] = layer_body,
	[R3RING_STEP_END] = step_end_body, [R3RING_LOST] = lost_body,
	[R3RING_EPLB] = eplb_body,         [R3RING_KEY_COPY] = key_copy_body,
	[R3RING_KEYFRAME] = keyframe_body, [R3RING_CLOSED] = closed_body,
};

/* ---- lines ------------------------------------------------------------ */

static void write_layer_ids(FILE *out, const struct r3ring_record *record)
{
	fputs(",\"ids\":", out);
	id_matrix_write(out, record->u.layer.ids, record->u.layer.head.rows,
			record->u.layer.head.top_k);
}

/* map[layer][expert][replica] */
static void write_eplb_map(FILE *out, const struct r3ring_record *record)
{
	const struct r3ring_eplb_record *head = &record->u.eplb.head;
	size_t layer_ids = (size_t)head->experts * head->replicas;

	fputs(",\"map\":[", out);
	for (uint32_t layer = 0; layer < head->layers; layer++) {
		if (layer)
			putc_unlocked(',', out);
		id_matrix_write(out, record->u.eplb.map + layer * layer_ids, head->experts,
				head->replicas);
	}
	putc_unlocked(']', out);
}

/* Writes an object without its closing brace, so that more can follow. */
static int write_open_object(FILE *out, json_t *object)
{
	char *text = object ? json_dumps(object, JSON_COMPACT) : NULL;
	size_t len = text ? strlen(text) : 0;

	if (text)
		fwrite_unlocked(text, 1, len - 1, out);
	free(text);
	json_decref(object);
	return text ? 0 : -ENOMEM;
}

/* The channel's name goes first, where there are several. */
static json_t *begin_object(const char *channel)
{
	return channel ? json_pack("{s:s}", "channel", channel) : json_object();
}

static json_t *record_head(const struct r3ring_view *view, const char *channel)
{
	json_t *head = merge(begin_object(channel),
			     json_pack("{s:o, s:o}", "seq", json_u64(view->seq), "type",
				       json_lower(r3ring_record_type_name(view->type))));

	if (view->flags & R3RING_DESC_REPEATED)
		head = merge(head, json_pack("{s:b}", "repeated", 1));
	return head;
}

int dump_json_record(void *out, const struct dump_item *item)
{
	const struct r3ring_record *record = item->record;
	int code;

	code = write_open_object(
		out, merge(record_head(item->view, item->channel), bodies[record->type](item)));
	if (code)
		return code;
	if (record->type == R3RING_LAYER)
		write_layer_ids(out, record);
	if (record->type == R3RING_EPLB)
		write_eplb_map(out, record);
	fputs("}\n", out);
	return 0;
}

int dump_json_gap(void *out, const struct dump_gap *gap)
{
	json_t *body = json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:b}", "type", "gap", "generation",
				 json_u64(gap->generation), "lost", json_u64(gap->lost), "from_seq",
				 json_u64(gap->from_seq), "to_seq", json_u64(gap->to_seq), "missed",
				 json_u64(gap->missed), "corrupt", (int)gap->corrupt);
	int code = write_open_object(out, merge(begin_object(gap->channel), body));

	if (!code)
		fputs("}\n", out);
	return code;
}

int dump_json_unreadable(void *out, const struct dump_unreadable *unreadable)
{
	const struct r3ring_view *view = unreadable->view;
	json_t *body = json_pack("{s:o, s:s, s:i, s:i, s:o}", "seq", json_u64(view->seq), "type",
				 unreadable->code == -ENOTSUP ? "unknown" : "corrupt", "number",
				 (int)view->type, "bytes", (int)view->len, "error",
				 json_text(unreadable->text, strlen(unreadable->text)));
	int code = write_open_object(out, merge(begin_object(unreadable->channel), body));

	if (!code)
		fputs("}\n", out);
	return code;
}

struct dump_form dump_json_form(FILE *out)
{
	return (struct dump_form){
		.record = dump_json_record,
		.gap = dump_json_gap,
		.unreadable = dump_json_unreadable,
		.ctx = out,
	};
}
