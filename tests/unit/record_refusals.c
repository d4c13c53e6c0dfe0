/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every reason for which a record is refused: by the decoder in a payload, and
 * by the encoder in its argument, with the same words.
 */
#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <r3ring/record.h>

#include "tests/support/guarded.h"
#include "tests/support/record_examples.h"

/* A typical record, spoilt in one way; and what the refusal must say. */
struct refusal {
	uint16_t type;
	void (*spoil)(struct r3ring_record *record);
	const char *says;
};

#define SPOIL(name, statement)                                                                     \
	static void name(struct r3ring_record *r)                                                  \
	{                                                                                          \
		statement;                                                                         \
	}

SPOIL(schema_no_layers, r->u.schema.head.layers = 0)
SPOIL(schema_layers, r->u.schema.head.layers = R3RING_LAYERS_MAX + 1)
SPOIL(schema_no_experts, r->u.schema.head.experts = 0)
SPOIL(schema_experts, r->u.schema.head.experts = 65536)
SPOIL(schema_no_top_k, r->u.schema.head.top_k = 0)
SPOIL(schema_top_k, r->u.schema.head.top_k = 257; r->u.schema.head.experts = 512)
SPOIL(schema_top_k_above_experts, r->u.schema.head.experts = 5)
SPOIL(schema_id_space, r->u.schema.head.id_space = 1)
SPOIL(schema_no_rows, r->u.schema.head.max_rows = 0)
SPOIL(schema_rows, r->u.schema.head.max_rows = R3RING_ROWS_MAX + 1)
SPOIL(schema_clock, r->u.schema.head.clock = 0)
SPOIL(schema_captures, r->u.schema.head.captures_rows = 2)
SPOIL(schema_model, memset(r->u.schema.head.model, 'm', sizeof(r->u.schema.head.model)))
SPOIL(schema_dp, r->u.schema.head.rank.dp.index = 1)
SPOIL(schema_tp, r->u.schema.head.rank.tp.index = 8)
SPOIL(schema_sp, r->u.schema.head.rank.sp.index = 1)
SPOIL(schema_pp, r->u.schema.head.rank.pp.index = 1)
SPOIL(schema_ep, r->u.schema.head.rank.ep.index = 1)
SPOIL(schema_cp, r->u.schema.head.rank.cp.index = 1)
SPOIL(schema_layer_kind, example_layers()[42].kind = 3; (void)r)
SPOIL(schema_layer_number, example_layers()[42].layer_id = -1; (void)r)
SPOIL(schema_layer_bound, example_layers()[42].bound = 2; (void)r)
SPOIL(schema_layer_twice, example_layers()[42] = example_layers()[0]; (void)r)

SPOIL(request_event, r->u.request.head.event = 3)
SPOIL(request_no_event, r->u.request.head.event = 0)
SPOIL(request_no_id, r->u.request.head.id_len = 0)
SPOIL(request_begin_reason, r->u.request.head.reason = R3RING_END_FINISHED)
SPOIL(request_no_reason, r->u.request.head.event = R3RING_REQUEST_END)
SPOIL(request_reason, r->u.request.head.event = R3RING_REQUEST_END; r->u.request.head.reason = 5)
SPOIL(request_first_of_none, r->u.request.head.attempt = 0)
SPOIL(request_first, r->u.request.head.since_first = 42)
SPOIL(request_id, r->u.request.head.id_len = R3RING_TEXT_ID_MAX + 1)
SPOIL(request_session, r->u.request.head.session_len = R3RING_TEXT_ID_MAX + 1)
SPOIL(request_turn, r->u.request.head.turn_len = R3RING_TEXT_ID_MAX + 1)
SPOIL(request_sample, r->u.request.head.sample_len = R3RING_TEXT_ID_MAX + 1)
SPOIL(request_nul, example_text()[11] = 0; (void)r)

SPOIL(step_zero, r->u.step.head.step = 0)
SPOIL(step_flags, r->u.step.head.flags = 32)
SPOIL(step_cause_of_no_drop, r->u.step.head.cause = R3RING_CAUSE_BUFFER_FULL)
SPOIL(step_spans_unknown_of_no_drop, r->u.step.head.spans_unknown = 1)
SPOIL(step_cause, r->u.step.head.flags |= R3RING_STEP_DROPPED;
      r->u.step.head.cause = R3RING_CAUSE_CONFLICT + 1)
SPOIL(step_spans_unknown, r->u.step.head.flags |= R3RING_STEP_DROPPED;
      r->u.step.head.spans_unknown = 2)
SPOIL(step_rows, r->u.step.head.total_rows = R3RING_ROWS_MAX + 1)
SPOIL(step_begin, r->u.step.head.row_begin = 257)
SPOIL(step_begin_after_end, r->u.step.head.row_end = 127)
SPOIL(step_end, r->u.step.head.row_end = 257)
SPOIL(step_valid, r->u.step.head.valid_end = 257)
SPOIL(step_key_kind, r->u.step.head.key_kind = 3)
SPOIL(step_keys_of_no_kind, r->u.step.head.key_kind = R3RING_KEYS_NONE)
SPOIL(step_keys_of_no_tokens, r->u.step.head.tokens_per_key = 0)
SPOIL(step_too_few_keys, example_spans()[63].keys = 1; (void)r)
SPOIL(step_too_many_keys, example_spans()[63].keys = 3; (void)r)
SPOIL(step_keys_wrap, example_spans()[0].keys = 0xffffffff; example_spans()[1].keys = 5; (void)r)
SPOIL(step_span_kind, example_spans()[63].kind = 3; (void)r)
SPOIL(step_span_flags, example_spans()[63].flags = 2; (void)r)
SPOIL(step_span_rows, example_spans()[63].rows++; (void)r)
SPOIL(step_span_row_wraps, example_spans()[63].row = 0xffffffff; (void)r)
SPOIL(step_span_position, example_spans()[63].position = 0xffffffff; (void)r)
SPOIL(step_span_accepted, example_spans()[0].flags = R3RING_SPAN_DRAFT;
      example_spans()[0].accepted = 2; (void)r)

SPOIL(spans_zero, r->u.spans.head.step = 0)
SPOIL(spans_flags, r->u.spans.head.flags = 8)
SPOIL(spans_key_kind, r->u.spans.head.key_kind = 3)
SPOIL(spans_too_many_keys, example_spans()[7].keys = 2; (void)r)
SPOIL(spans_span_rows, example_spans()[7].row = R3RING_ROWS_MAX; (void)r)
SPOIL(spans_span_kind, example_spans()[7].kind = 3; (void)r)

SPOIL(rows_zero, r->u.rows.head.step = 0)
SPOIL(rows_too_many, r->u.rows.head.row = R3RING_ROWS_MAX - 63)
SPOIL(rows_wrap, r->u.rows.head.row = 0xffffffff)
SPOIL(rows_no_content, r->u.rows.head.content = 0)
SPOIL(rows_content, r->u.rows.head.content = 4)

SPOIL(layer_zero, r->u.layer.head.step = 0)
SPOIL(layer_kind, r->u.layer.head.kind = 3)
SPOIL(layer_number, r->u.layer.head.layer_id = -1)
SPOIL(layer_index, r->u.layer.head.layer_index = R3RING_LAYERS_MAX)
SPOIL(layer_no_top_k, r->u.layer.head.top_k = 0)
SPOIL(layer_top_k, r->u.layer.head.top_k = R3RING_TOP_K_MAX + 1)
SPOIL(layer_total, r->u.layer.head.total_rows = R3RING_ROWS_MAX + 1)
SPOIL(layer_rows, r->u.layer.head.row = 129)
SPOIL(layer_rows_wrap, r->u.layer.head.row = 0xffffffff)
SPOIL(layer_valid, r->u.layer.head.valid_rows = 129)

SPOIL(end_zero, r->u.step_end.head.step = 0)
SPOIL(end_status, r->u.step_end.head.status = 3)
SPOIL(end_no_status, r->u.step_end.head.status = 0)
SPOIL(end_complete, r->u.step_end.head.status = R3RING_STEP_COMPLETE)
SPOIL(end_missing, r->u.step_end.head.missing = R3RING_LAYERS_MAX + 1)
SPOIL(end_layer_kind, example_missing()[2].kind = 3; (void)r)
SPOIL(end_layer_number, example_missing()[2].layer_id = -5; (void)r)
SPOIL(end_layer_cause, example_missing()[2].cause = R3RING_CAUSE_COUNT; (void)r)
SPOIL(end_layer_no_cause, example_missing()[2].cause = 0; (void)r)

SPOIL(lost_no_cause, r->u.lost.cause = 0)
SPOIL(lost_cause_of_layers, r->u.lost.cause = R3RING_CAUSE_NOT_CAPTURED)
SPOIL(lost_cause, r->u.lost.cause = R3RING_CAUSE_COUNT)
SPOIL(lost_unknown, r->u.lost.spans_unknown = 2)
SPOIL(lost_backwards, r->u.lost.from_step = 15)
SPOIL(lost_from_zero, r->u.lost.from_step = 0)
SPOIL(lost_steps, r->u.lost.steps = 6)

SPOIL(eplb_no_layers, r->u.eplb.head.layers = 0)
SPOIL(eplb_layers, r->u.eplb.head.first_layer = R3RING_LAYERS_MAX - 2)
SPOIL(eplb_layers_wrap, r->u.eplb.head.first_layer = 0xffffffff)
SPOIL(eplb_no_experts, r->u.eplb.head.experts = 0)
SPOIL(eplb_experts, r->u.eplb.head.experts = 65536; r->u.eplb.head.layers = 1)
SPOIL(eplb_no_physical, r->u.eplb.head.physical = 0)
SPOIL(eplb_physical, r->u.eplb.head.physical = 65536)
SPOIL(eplb_no_replicas, r->u.eplb.head.replicas = 0)
SPOIL(eplb_replicas, r->u.eplb.head.replicas = 41)
SPOIL(eplb_no_gpus, r->u.eplb.head.gpus = 0)
SPOIL(eplb_gpus, r->u.eplb.head.gpus = 3)
SPOIL(eplb_map, example_map()[190] = 40; (void)r)

SPOIL(copy_kind, r->u.key_copy.head.key_kind = 3)
SPOIL(copy_no_kind, r->u.key_copy.head.key_kind = R3RING_KEYS_NONE)
SPOIL(copy_no_tokens, r->u.key_copy.head.tokens_per_key = 0)

SPOIL(keyframe_live, r->u.keyframe.live_requests = 21)

SPOIL(closed_no_reason, r->u.closed.reason = 0)
SPOIL(closed_reason, r->u.closed.reason = 4)
SPOIL(closed_next, r->u.closed.next_generation = 0)
SPOIL(closed_name, memset(r->u.closed.next_name, 'n', sizeof(r->u.closed.next_name)))

static const struct refusal refusals[] = {
	{R3RING_SCHEMA, schema_no_layers, "no MoE layer"},
	{R3RING_SCHEMA, schema_layers, "1025 layers"},
	{R3RING_SCHEMA, schema_no_experts, "0 experts"},
	{R3RING_SCHEMA, schema_experts, "65536 experts"},
	{R3RING_SCHEMA, schema_no_top_k, "top_k 0"},
	{R3RING_SCHEMA, schema_top_k, "top_k 257"},
	{R3RING_SCHEMA, schema_top_k_above_experts, "5 experts"},
	{R3RING_SCHEMA, schema_id_space, "id space 1"},
	{R3RING_SCHEMA, schema_no_rows, "max_rows 0"},
	{R3RING_SCHEMA, schema_rows, "max_rows 1048577"},
	{R3RING_SCHEMA, schema_clock, "clock 0"},
	{R3RING_SCHEMA, schema_captures, "captures_rows"},
	{R3RING_SCHEMA, schema_model, "model name"},
	{R3RING_SCHEMA, schema_dp, "dp index 1"},
	{R3RING_SCHEMA, schema_tp, "tp index 8"},
	{R3RING_SCHEMA, schema_sp, "sp index 1"},
	{R3RING_SCHEMA, schema_pp, "pp index 1"},
	{R3RING_SCHEMA, schema_ep, "ep index 1"},
	{R3RING_SCHEMA, schema_cp, "cp index 1"},
	{R3RING_SCHEMA, schema_layer_kind, "kind 3"},
	{R3RING_SCHEMA, schema_layer_number, "-1 is negative"},
	{R3RING_SCHEMA, schema_layer_bound, "bound 2"},
	{R3RING_SCHEMA, schema_layer_twice, "stands twice"},
	{R3RING_REQUEST, request_event, "event 3"},
	{R3RING_REQUEST, request_no_event, "event 0"},
	{R3RING_REQUEST, request_no_id, "without a text id"},
	{R3RING_REQUEST, request_begin_reason, "BEGIN with end reason 1"},
	{R3RING_REQUEST, request_no_reason, "unknown reason 0"},
	{R3RING_REQUEST, request_reason, "unknown reason 5"},
	{R3RING_REQUEST, request_first_of_none, "attempt 0, handle 42, with a first attempt 40"},
	{R3RING_REQUEST, request_first, "a first attempt 42 handles before"},
	{R3RING_REQUEST, request_id, "id text of 257"},
	{R3RING_REQUEST, request_session, "session text of 257"},
	{R3RING_REQUEST, request_turn, "turn text of 257"},
	{R3RING_REQUEST, request_sample, "sample text of 257"},
	{R3RING_REQUEST, request_nul, "NUL within the id text"},
	{R3RING_STEP, step_zero, "step 0"},
	{R3RING_STEP, step_flags, "flags 0x20"},
	{R3RING_STEP, step_cause_of_no_drop, "cause 1 of a step that was not dropped"},
	{R3RING_STEP, step_spans_unknown_of_no_drop, "a step that was not dropped"},
	{R3RING_STEP, step_cause, "unknown cause 9"},
	{R3RING_STEP, step_spans_unknown, "or 2"},
	{R3RING_STEP, step_rows, "1048577 rows"},
	{R3RING_STEP, step_begin, "[257,256)"},
	{R3RING_STEP, step_begin_after_end, "[128,127)"},
	{R3RING_STEP, step_end, "[128,257)"},
	{R3RING_STEP, step_valid, "valid_end 257"},
	{R3RING_STEP, step_key_kind, "kind of keys 3"},
	{R3RING_STEP, step_keys_of_no_kind, "of no kind"},
	{R3RING_STEP, step_keys_of_no_tokens, "keys of 0 tokens"},
	{R3RING_STEP, step_too_few_keys, "spans have 127 keys"},
	{R3RING_STEP, step_too_many_keys, "spans have 129 keys"},
	{R3RING_STEP, step_keys_wrap, "spans have 4294967424 keys"},
	{R3RING_STEP, step_span_kind, "span 63 has unknown kind 3"},
	{R3RING_STEP, step_span_flags, "unknown flags 0x2"},
	{R3RING_STEP, step_span_rows, "194 rows from row 63"},
	{R3RING_STEP, step_span_row_wraps, "rows from row 4294967295"},
	{R3RING_STEP, step_span_position, "beyond the last position"},
	{R3RING_STEP, step_span_accepted, "2 accepted of 1"},
	{R3RING_SPANS, spans_zero, "step 0"},
	{R3RING_SPANS, spans_flags, "flags 0x8"},
	{R3RING_SPANS, spans_key_kind, "kind of keys 3"},
	{R3RING_SPANS, spans_too_many_keys, "spans have 9 keys"},
	{R3RING_SPANS, spans_span_rows, "from row 1048576"},
	{R3RING_SPANS, spans_span_kind, "unknown kind 3"},
	{R3RING_ROWS, rows_zero, "step 0"},
	{R3RING_ROWS, rows_too_many, "from row 1048513"},
	{R3RING_ROWS, rows_wrap, "from row 4294967295"},
	{R3RING_ROWS, rows_no_content, "content 0x0"},
	{R3RING_ROWS, rows_content, "content 0x4"},
	{R3RING_LAYER, layer_zero, "step 0"},
	{R3RING_LAYER, layer_kind, "kind 3"},
	{R3RING_LAYER, layer_number, "-1 is negative"},
	{R3RING_LAYER, layer_index, "place 1024"},
	{R3RING_LAYER, layer_no_top_k, "top_k 0"},
	{R3RING_LAYER, layer_top_k, "top_k 257"},
	{R3RING_LAYER, layer_total, "1048577 rows"},
	{R3RING_LAYER, layer_rows, "128 rows from row 129"},
	{R3RING_LAYER, layer_rows_wrap, "from row 4294967295"},
	{R3RING_LAYER, layer_valid, "129 valid rows of 128"},
	{R3RING_STEP_END, end_zero, "step 0"},
	{R3RING_STEP_END, end_status, "status 3"},
	{R3RING_STEP_END, end_no_status, "status 0"},
	{R3RING_STEP_END, end_complete, "3 layers are missing"},
	{R3RING_STEP_END, end_missing, "1025 missing layers"},
	{R3RING_STEP_END, end_layer_kind, "kind 3"},
	{R3RING_STEP_END, end_layer_number, "-5 is negative"},
	{R3RING_STEP_END, end_layer_cause, "cause 12"},
	{R3RING_STEP_END, end_layer_no_cause, "cause 0"},
	{R3RING_LOST, lost_no_cause, "cause 0"},
	{R3RING_LOST, lost_cause_of_layers, "cause 9"},
	{R3RING_LOST, lost_cause, "cause 12"},
	{R3RING_LOST, lost_unknown, "spans_unknown is 2"},
	{R3RING_LOST, lost_backwards, "from step 15 to step 14"},
	{R3RING_LOST, lost_from_zero, "from step 0"},
	{R3RING_LOST, lost_steps, "6 steps between"},
	{R3RING_EPLB, eplb_no_layers, "0 layers"},
	{R3RING_EPLB, eplb_layers, "from place 1022"},
	{R3RING_EPLB, eplb_layers_wrap, "from place 4294967295"},
	{R3RING_EPLB, eplb_no_experts, "0 experts"},
	{R3RING_EPLB, eplb_experts, "65536 experts"},
	{R3RING_EPLB, eplb_no_physical, "0 physical"},
	{R3RING_EPLB, eplb_physical, "65536 physical"},
	{R3RING_EPLB, eplb_no_replicas, "0 replicas"},
	{R3RING_EPLB, eplb_replicas, "41 replicas"},
	{R3RING_EPLB, eplb_no_gpus, "over 0 GPUs"},
	{R3RING_EPLB, eplb_gpus, "over 3 GPUs"},
	{R3RING_EPLB, eplb_map, "entry 190 of the map names physical expert 40"},
	{R3RING_KEY_COPY, copy_kind, "kind of keys 3"},
	{R3RING_KEY_COPY, copy_no_kind, "of no kind"},
	{R3RING_KEY_COPY, copy_no_tokens, "keys of 0 tokens"},
	{R3RING_KEYFRAME, keyframe_live, "21 live requests"},
	{R3RING_CLOSED, closed_no_reason, "reason 0"},
	{R3RING_CLOSED, closed_reason, "reason 4"},
	{R3RING_CLOSED, closed_next, "generation 0"},
	{R3RING_CLOSED, closed_name, "next segment's name"},
};

#define REFUSALS (sizeof(refusals) / sizeof(refusals[0]))

static int every_refusal[REFUSALS];

static struct criterion_test_params all_refusals(void)
{
	for (size_t i = 0; i < REFUSALS; i++)
		every_refusal[i] = (int)i;
	return cr_make_param_array(int, every_refusal, REFUSALS);
}

static void spoil(struct r3ring_record *record, const struct refusal *refusal)
{
	example_record(record, refusal->type, EXAMPLE_TYPICAL);
	refusal->spoil(record);
}

ParameterizedTestParameters(record, decoder_refuses)
{
	return all_refusals();
}

ParameterizedTest(const int *index, record, decoder_refuses)
{
	const struct refusal *refusal = &refusals[*index];
	struct r3ring_record record, decoded, untouched;
	struct r3ring_error err = {0};
	struct example_payload payload;
	struct guarded guarded;

	spoil(&record, refusal);
	payload = example_payload(&record);
	guarded = guarded_create(payload.len);
	memset(&untouched, 0x77, sizeof(untouched));
	decoded = untouched;
	cr_assert_eq(r3ring_record_decode(&decoded, refusal->type,
					  guarded_put(&guarded, payload.bytes, payload.len),
					  payload.len, &err),
		     -EBADMSG, "nothing said of \"%s\"", refusal->says);
	cr_assert_eq(err.code, -EBADMSG);
	cr_assert(strstr(err.text, refusal->says), "\"%s\" lacks \"%s\"", err.text, refusal->says);
	cr_assert(strstr(err.text, r3ring_record_type_name(refusal->type)), "%s", err.text);
	cr_assert_arr_eq(&decoded, &untouched, sizeof(decoded));
	guarded_destroy(&guarded);
	free(payload.bytes);
}

ParameterizedTestParameters(record, encoder_refuses_what_the_decoder_refuses)
{
	return all_refusals();
}

ParameterizedTest(const int *index, record, encoder_refuses_what_the_decoder_refuses)
{
	const struct refusal *refusal = &refusals[*index];
	static uint64_t out[1 << 20];
	struct r3ring_error err = {0};
	struct r3ring_record record;

	spoil(&record, refusal);
	cr_assert_eq(r3ring_record_encode(&record, out, sizeof(out), &err), -EINVAL,
		     "nothing said of \"%s\"", refusal->says);
	cr_assert_eq(err.code, -EINVAL);
	cr_assert(strstr(err.text, refusal->says), "\"%s\" lacks \"%s\"", err.text, refusal->says);
}

static const uint16_t with_arrays[] = {R3RING_SCHEMA, R3RING_REQUEST, R3RING_STEP,
				       R3RING_SPANS,  R3RING_ROWS,    R3RING_STEP_END,
				       R3RING_EPLB,   R3RING_KEY_COPY};

Test(record, encoder_refuses_an_array_that_is_not_there)
{
	static uint64_t out[1 << 16];

	for (size_t i = 0; i < sizeof(with_arrays) / sizeof(with_arrays[0]); i++) {
		struct r3ring_error err = {0};
		struct r3ring_record record;
		size_t head = example_head_bytes(with_arrays[i]);

		example_record(&record, with_arrays[i], EXAMPLE_TYPICAL);
		memset((uint8_t *)&record.u + head, 0, sizeof(record.u) - head);
		cr_assert_eq(r3ring_record_encode(&record, out, sizeof(out), &err), -EINVAL);
		cr_assert(strstr(err.text, "is NULL"), "%s", err.text);
	}
}
