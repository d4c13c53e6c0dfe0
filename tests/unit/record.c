/* SPDX-License-Identifier: Apache-2.0 */
/* Records come out as they went in, and nothing is read beyond a payload. */
#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <r3ring/record.h>

#include "tests/support/guarded.h"
#include "tests/support/record_examples.h"

static int every_example[(R3RING_RECORD_TYPES - 1) * EXAMPLE_SIZES];
static int every_type[R3RING_RECORD_TYPES - 1];

static struct criterion_test_params examples(void)
{
	int n = (int)(sizeof(every_example) / sizeof(every_example[0]));

	for (int i = 0; i < n; i++)
		every_example[i] = i;
	return cr_make_param_array(int, every_example, (size_t)n);
}

static struct criterion_test_params types(void)
{
	for (int i = 0; i < R3RING_RECORD_TYPES - 1; i++)
		every_type[i] = i + 1;
	return cr_make_param_array(int, every_type, (size_t)R3RING_RECORD_TYPES - 1);
}

static void make(struct r3ring_record *record, int example)
{
	example_record(record, (uint16_t)(1 + example / EXAMPLE_SIZES),
		       (enum example_size)(example % EXAMPLE_SIZES));
}

ParameterizedTestParameters(record, encodes_to_the_documented_layout)
{
	return examples();
}

ParameterizedTest(const int *example, record, encodes_to_the_documented_layout)
{
	struct r3ring_record record;
	struct example_payload expected;
	struct r3ring_error err = {0};
	uint8_t *out;

	make(&record, *example);
	expected = example_payload(&record);
	out = aligned_alloc(64, (expected.len + 63) / 64 * 64);
	cr_assert_eq(r3ring_record_size(&record), expected.len);
	cr_assert_eq(r3ring_record_encode(&record, out, expected.len, &err), (long)expected.len,
		     "%s", err.text);
	cr_assert_arr_eq(out, expected.bytes, expected.len);
	free(out);
	free(expected.bytes);
}

ParameterizedTestParameters(record, decodes_what_was_encoded)
{
	return examples();
}

ParameterizedTest(const int *example, record, decodes_what_was_encoded)
{
	struct r3ring_record record, decoded;
	struct example_part parts[EXAMPLE_PARTS_MAX];
	struct example_payload payload;
	struct r3ring_error err = {0};
	const uint8_t *at;
	unsigned int n;

	make(&record, *example);
	payload = example_payload(&record);
	cr_assert_eq(r3ring_record_decode(&decoded, record.type, payload.bytes, payload.len, &err),
		     0, "%s", err.text);
	cr_assert_eq(decoded.type, record.type);
	cr_assert_arr_eq(&decoded.u, &record.u, example_head_bytes(record.type));
	at = payload.bytes + example_head_bytes(record.type);
	n = example_parts(&decoded, parts);
	for (unsigned int i = 0; i < n; i++) {
		cr_assert_eq(parts[i].data, at, "array %u lies elsewhere", i);
		at += parts[i].bytes;
	}
	cr_assert_eq(at, payload.bytes + payload.len);
	free(payload.bytes);
}

ParameterizedTestParameters(record, truncation_at_every_byte_is_refused_without_reading_outside)
{
	return types();
}

ParameterizedTest(const int *type, record,
		  truncation_at_every_byte_is_refused_without_reading_outside)
{
	struct r3ring_record record, untouched, decoded;
	struct example_payload payload;
	struct guarded guarded;

	example_record(&record, (uint16_t)*type, EXAMPLE_TYPICAL);
	payload = example_payload(&record);
	guarded = guarded_create(payload.len);
	memset(&untouched, 0x77, sizeof(untouched));
	decoded = untouched;
	for (size_t len = 0; len < payload.len; len++) {
		const uint8_t *at = guarded_put(&guarded, payload.bytes, len);

		cr_assert_eq(r3ring_record_decode(&decoded, record.type, at, len, NULL), -EBADMSG,
			     "%zu of %zu bytes", len, payload.len);
		cr_assert_arr_eq(&decoded, &untouched, sizeof(decoded));
	}
	cr_assert_eq(r3ring_record_decode(&decoded, record.type,
					  guarded_put(&guarded, payload.bytes, payload.len),
					  payload.len, NULL),
		     0);
	guarded_destroy(&guarded);
	free(payload.bytes);
}

ParameterizedTestParameters(record, one_byte_too_many_is_refused)
{
	return types();
}

ParameterizedTest(const int *type, record, one_byte_too_many_is_refused)
{
	struct r3ring_record record, decoded;
	struct example_payload payload;
	uint8_t *longer;

	example_record(&record, (uint16_t)*type, EXAMPLE_TYPICAL);
	payload = example_payload(&record);
	longer = aligned_alloc(64, (payload.len + 64) / 64 * 64);
	memcpy(longer, payload.bytes, payload.len);
	longer[payload.len] = 0;
	cr_assert_eq(r3ring_record_decode(&decoded, record.type, longer, payload.len + 1, NULL),
		     -EBADMSG);
	free(longer);
	free(payload.bytes);
}

ParameterizedTestParameters(record, a_buffer_one_byte_short_is_full_and_untouched)
{
	return types();
}

ParameterizedTest(const int *type, record, a_buffer_one_byte_short_is_full_and_untouched)
{
	struct r3ring_record record;
	struct r3ring_error err = {0};
	uint8_t *out, *before;
	size_t size;

	example_record(&record, (uint16_t)*type, EXAMPLE_TYPICAL);
	size = r3ring_record_size(&record);
	out = aligned_alloc(64, (size + 63) / 64 * 64);
	before = malloc(size);
	memset(out, 0x33, size);
	memset(before, 0x33, size);
	cr_assert_eq(r3ring_record_encode(&record, out, size - 1, &err), -ENOBUFS);
	cr_assert_eq(err.code, -ENOBUFS);
	cr_assert_arr_eq(out, before, size);
	free(before);
	free(out);
}

Test(record, an_unknown_type_is_told_from_a_corrupt_one)
{
	struct r3ring_record record = {.type = 0};
	uint64_t payload[64] = {0};
	const uint16_t unknown[] = {0, R3RING_RECORD_TYPES, 0xffff};

	for (size_t i = 0; i < 3; i++) {
		struct r3ring_record bad = {.type = unknown[i]};

		cr_assert_eq(
			r3ring_record_decode(&record, unknown[i], payload, sizeof(payload), NULL),
			-ENOTSUP);
		cr_assert_eq(r3ring_record_encode(&bad, payload, sizeof(payload), NULL), -EINVAL);
		cr_assert_eq(r3ring_record_size(&bad), 0);
	}
}

Test(record, a_layer_without_ids_is_encoded_as_its_head_alone)
{
	struct r3ring_record record;
	uint64_t out[16];

	example_record(&record, R3RING_LAYER, EXAMPLE_TYPICAL);
	record.u.layer.ids = NULL;
	memset(out, 0x44, sizeof(out));
	cr_assert_eq(r3ring_record_encode(&record, out, 64, NULL), 64);
	cr_assert_arr_eq(out, &record.u.layer.head, 64);
	cr_assert_eq(out[8], 0x4444444444444444ull);
	cr_assert_eq(r3ring_record_size(&record), 64u + 128 * 6 * 2);
}

Test(record, reserved_fields_are_zeroed)
{
	struct r3ring_record record, decoded;
	struct r3ring_layer_entry *layers = example_layers();
	uint64_t out[256];

	example_record(&record, R3RING_SCHEMA, EXAMPLE_MIN);
	layers[0].reserved = 9;
	cr_assert_eq(r3ring_record_encode(&record, out, sizeof(out), NULL), 192);
	cr_assert_eq(r3ring_record_decode(&decoded, R3RING_SCHEMA, out, 192, NULL), 0);
	cr_assert_eq(decoded.u.schema.layers[0].reserved, 0);

	example_record(&record, R3RING_LAYER, EXAMPLE_MIN);
	record.u.layer.head.reserved2 = 9;
	record.u.layer.head.reserved3[1] = 9;
	cr_assert_eq(r3ring_record_encode(&record, out, sizeof(out), NULL), 64);
	cr_assert_eq(((struct r3ring_layer_record *)out)->reserved2, 0);
	cr_assert_eq(((struct r3ring_layer_record *)out)->reserved3[1], 0);
}

Test(record, an_end_tells_nothing_of_a_first_attempt)
{
	struct r3ring_record record;
	uint64_t out[256];

	example_record(&record, R3RING_REQUEST, EXAMPLE_MIN);
	record.u.request.head.since_first = 9;
	cr_assert_eq(r3ring_record_encode(&record, out, sizeof(out), NULL), 32);
	cr_assert_eq(((struct r3ring_request_record *)out)->since_first, 0);
}

Test(record, attempts_of_a_request_lead_to_the_handle_of_its_first)
{
	const struct r3ring_request_record first = {.handle = 5},
					   untold = {.handle = 9, .attempt = 1},
					   later = {.handle = 9, .attempt = 2, .since_first = 4};

	cr_expect_eq(r3ring_request_first(&first), 5);
	cr_expect_eq(r3ring_request_first(&later), 5);
	cr_expect_eq(r3ring_request_first(&untold), 0, "not known");
}

Test(record, failure_26_minus_one_is_missing_and_no_expert)
{
	const int16_t trainers_view[] = {-1, 0, 255, -1, 254, 7};
	uint16_t ids[6];
	uint64_t missing, out_of_range;
	struct r3ring_record record;

	memcpy(ids, trainers_view, sizeof(ids));
	r3ring_ids_check(ids, 3, 2, 256, &missing, &out_of_range);
	cr_assert_eq(missing, 2);
	cr_assert_eq(out_of_range, 0);

	/* Not even a model with every id there can be has an expert 0xFFFF. */
	r3ring_ids_check(ids, 3, 2, 0xffffffffu, &missing, &out_of_range);
	cr_assert_eq(missing, 2);
	example_record(&record, R3RING_SCHEMA, EXAMPLE_MAX);
	record.u.schema.head.experts = 65536;
	cr_assert_eq(r3ring_record_size(&record), 0);
}

Test(record, failure_24_more_than_256_experts_keep_their_ids)
{
	struct r3ring_record record, decoded;
	uint16_t ids[] = {255, 256, 895, 65534};
	uint64_t out[16], missing, out_of_range;

	example_record(&record, R3RING_LAYER, EXAMPLE_MIN);
	record.u.layer.head.rows = record.u.layer.head.total_rows = 2;
	record.u.layer.head.top_k = 2;
	record.u.layer.ids = ids;
	cr_assert_eq(r3ring_record_encode(&record, out, sizeof(out), NULL), 72);
	cr_assert_eq(r3ring_record_decode(&decoded, R3RING_LAYER, out, 72, NULL), 0);
	cr_assert_arr_eq(decoded.u.layer.ids, ids, sizeof(ids));
	r3ring_ids_check(decoded.u.layer.ids, 2, 2, 65535, &missing, &out_of_range);
	cr_assert_eq(missing + out_of_range, 0);
}

Test(record, ids_are_counted_by_what_is_wrong_with_them)
{
	enum { ROWS = 9001, TOP_K = 3 };
	uint16_t *ids = calloc(ROWS * TOP_K, sizeof(*ids));
	uint64_t missing = 1, out_of_range = 1;

	r3ring_ids_check(ids, ROWS, TOP_K, 8, &missing, &out_of_range);
	cr_assert_eq(missing, 0);
	cr_assert_eq(out_of_range, 0);
	ids[0] = 0xffff;
	ids[4095] = 7;
	ids[4096] = 8;
	ids[ROWS * TOP_K - 2] = 0xfffe;
	ids[ROWS * TOP_K - 1] = 0xffff;
	r3ring_ids_check(ids, ROWS, TOP_K, 8, &missing, &out_of_range);
	cr_assert_eq(missing, 2);
	cr_assert_eq(out_of_range, 2);
	r3ring_ids_check(ids, ROWS, TOP_K, 8, NULL, NULL);
	free(ids);
}

Test(record, failure_34_model_layer_numbers_travel_with_the_data)
{
	/* The first three layers are dense: the first routed layer is layer 3. */
	struct r3ring_layer_entry table[] = {{.layer_id = 3}, {.layer_id = 4}, {.layer_id = 60}};
	struct r3ring_record record, decoded;
	uint64_t out[64];
	long len;

	example_record(&record, R3RING_SCHEMA, EXAMPLE_MIN);
	record.u.schema.head.layers = 3;
	record.u.schema.layers = table;
	len = r3ring_record_encode(&record, out, sizeof(out), NULL);
	cr_assert_eq(r3ring_record_decode(&decoded, R3RING_SCHEMA, out, (size_t)len, NULL), 0);
	cr_assert_eq(decoded.u.schema.layers[0].layer_id, 3);
	cr_assert_eq(decoded.u.schema.layers[2].layer_id, 60);

	example_record(&record, R3RING_LAYER, EXAMPLE_MIN);
	record.u.layer.head.layer_id = 60;
	record.u.layer.head.layer_index = 2;
	len = r3ring_record_encode(&record, out, sizeof(out), NULL);
	cr_assert_eq(r3ring_record_decode(&decoded, R3RING_LAYER, out, (size_t)len, NULL), 0);
	cr_assert_eq(decoded.u.layer.head.layer_id, 60);
	cr_assert_eq(decoded.u.layer.head.layer_index, 2);
}

Test(record, failure_35_layer_kind_is_part_of_its_identity)
{
	struct r3ring_layer_entry table[] = {{.layer_id = 1, .kind = R3RING_LAYER_MOE},
					     {.layer_id = 1, .kind = R3RING_LAYER_MTP}};
	struct r3ring_record record, decoded;
	struct r3ring_error err = {0};
	uint64_t out[64];
	long len;

	example_record(&record, R3RING_SCHEMA, EXAMPLE_MIN);
	record.u.schema.head.layers = 2;
	record.u.schema.layers = table;
	len = r3ring_record_encode(&record, out, sizeof(out), &err);
	cr_assert_eq(len, 200, "%s", err.text);
	cr_assert_eq(r3ring_record_decode(&decoded, R3RING_SCHEMA, out, (size_t)len, NULL), 0);
	cr_assert_eq(decoded.u.schema.layers[1].kind, R3RING_LAYER_MTP);

	table[1].kind = R3RING_LAYER_MOE;
	cr_assert_eq(r3ring_record_encode(&record, out, sizeof(out), &err), -EINVAL);
	cr_assert(strstr(err.text, "stands twice"), "%s", err.text);
}

Test(record, failure_8_every_record_of_rows_says_which_part_of_the_step_it_is)
{
	struct r3ring_record record, decoded;
	struct example_payload payload;

	example_record(&record, R3RING_STEP, EXAMPLE_TYPICAL);
	payload = example_payload(&record);
	cr_assert_eq(r3ring_record_decode(&decoded, R3RING_STEP, payload.bytes, payload.len, NULL),
		     0);
	cr_assert_eq(decoded.u.step.head.row_begin, 128);
	cr_assert_eq(decoded.u.step.head.row_end, 256);
	cr_assert_eq(decoded.u.step.head.total_rows, 256);
	free(payload.bytes);

	example_record(&record, R3RING_LAYER, EXAMPLE_TYPICAL);
	payload = example_payload(&record);
	cr_assert_eq(r3ring_record_decode(&decoded, R3RING_LAYER, payload.bytes, payload.len, NULL),
		     0);
	cr_assert_eq(decoded.u.layer.head.row, 128);
	cr_assert_eq(decoded.u.layer.head.rows, 128);
	cr_assert_eq(decoded.u.layer.head.total_rows, 256);
	free(payload.bytes);
}

Test(record, failure_20_a_loss_carries_its_cause_and_its_extent)
{
	for (uint32_t cause = R3RING_CAUSE_BUFFER_FULL; cause <= R3RING_CAUSE_CONFLICT; cause++) {
		struct r3ring_record record, decoded;
		uint64_t out[6];

		example_record(&record, R3RING_LOST, EXAMPLE_TYPICAL);
		record.u.lost.cause = cause;
		cr_assert_eq(r3ring_record_encode(&record, out, sizeof(out), NULL), 48);
		cr_assert_eq(r3ring_record_decode(&decoded, R3RING_LOST, out, 48, NULL), 0);
		cr_assert_eq(decoded.u.lost.cause, cause);
		cr_assert_eq(decoded.u.lost.steps, 5);
		cr_assert_eq(decoded.u.lost.rows, 1280);
		cr_assert_eq(decoded.u.lost.layer_rows, 1280 * 43);
		cr_assert_str_neq(r3ring_cause_name(cause), "?");
	}
}

Test(record, names_are_those_of_the_documents)
{
	cr_assert_str_eq(r3ring_record_type_name(R3RING_STEP_END), "STEP_END");
	cr_assert_str_eq(r3ring_record_type_name(R3RING_CLOSED), "CLOSED");
	cr_assert_str_eq(r3ring_record_type_name(0), "?");
	cr_assert_str_eq(r3ring_record_type_name(R3RING_RECORD_TYPES), "?");
	cr_assert_str_eq(r3ring_cause_name(R3RING_CAUSE_QUEUE_FULL), "queue_full");
	cr_assert_str_eq(r3ring_cause_name(R3RING_CAUSE_OVERLAP), "overlap");
	cr_assert_str_eq(r3ring_cause_name(R3RING_CAUSE_COUNT), "?");
	cr_assert_str_eq(r3ring_layer_kind_name(R3RING_LAYER_HASH), "hash");
	cr_assert_str_eq(r3ring_layer_kind_name(3), "?");
	cr_assert_str_eq(r3ring_span_kind_name(R3RING_SPAN_EXTERNAL), "EXTERNAL");
	cr_assert_str_eq(r3ring_span_kind_name(UINT32_MAX), "?");
}

Test(record, rows_of_others_and_padding_are_not_valid)
{
	struct r3ring_step_record step = {
		.total_rows = 40, .row_begin = 10, .row_end = 30, .valid_end = 25};

	cr_expect_eq(r3ring_step_valid_rows(&step), 15);
	step.valid_end = 40;
	cr_expect_eq(r3ring_step_valid_rows(&step), 20);
	step.valid_end = 5;
	cr_expect_eq(r3ring_step_valid_rows(&step), 0);
}
