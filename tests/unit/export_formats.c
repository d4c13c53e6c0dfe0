/* SPDX-License-Identifier: Apache-2.0 */
/* Each format as its reader takes it, read back by other means than it was written. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "tests/unit/export_fixture.h"

TestSuite(export_formats, .init = trial_open, .fini = trial_close);

static uint8_t *content;
static size_t content_bytes;

static void load(void)
{
	FILE *file = fopen(trial.out, "rb");

	cr_assert_not_null(file);
	fseek(file, 0, SEEK_END);
	content_bytes = (size_t)ftell(file);
	rewind(file);
	content = malloc(content_bytes + 1);
	cr_assert_eq(fread(content, 1, content_bytes, file), content_bytes);
	content[content_bytes] = 0;
	fclose(file);
}

static void export_two(const char *format)
{
	trial_begin(format);
	trial_request(1, "a", 1);
	trial_request(2, "b", 3);
	trial_finish();
	load();
}

static uint16_t expected(uint64_t step, uint32_t row, uint32_t layer, uint32_t k)
{
	const uint32_t experts = trial.feed.experts ? trial.feed.experts : FEED_EXPERTS;

	return (uint16_t)(feed_id(0, step, row, layer, k) % experts);
}

/* The routes of a request of trial_request(), its position 3 from the second step. */
static uint16_t expected_at(uint64_t step, uint32_t position, uint32_t layer, uint32_t k)
{
	return position < 3 ? expected(step, position, layer, k) : expected(step + 1, 0, layer, k);
}

/* ---- npy ---------------------------------------------------------------- */

Test(export_formats, npy_is_one_array_with_its_type_and_shape)
{
	const char *shape = "{'descr': '<u2', 'fortran_order': False, 'shape': (4, 3, 2), }";
	const uint16_t *ids;

	trial_begin("npy");
	trial_request(1, "a", 1);
	trial_finish();
	load();
	cr_assert_eq(memcmp(content, "\x93NUMPY\x01\x00\x76\x00", 10), 0);
	cr_assert_eq(memcmp(content + 10, shape, strlen(shape)), 0);
	cr_assert_eq(content[127], '\n');
	cr_assert_eq(content_bytes, 128 + 4 * FEED_LAYERS * FEED_TOP_K * sizeof(uint16_t));
	ids = (const uint16_t *)(const void *)(content + 128);
	for (uint32_t i = 0; i < 4 * FEED_LAYERS * FEED_TOP_K; i++)
		cr_assert_eq(ids[i], expected_at(1, i / 6, i / 2 % 3, i % 2));
	free(content);
}

/* ---- jsonl -------------------------------------------------------------- */

Test(export_formats, jsonl_is_a_line_a_position_with_what_is_missing_and_why)
{
	char *line, *rest;
	json_t *object;

	trial.options.missing = EXPORT_FILL_MINUS_ONE;
	trial.feed.first_layer = 4;
	trial_begin("jsonl");
	trial_gapped_request(1, "a", 1);
	trial_finish();
	load();
	line = strtok_r((char *)content, "\n", &rest);
	for (uint32_t position = 0; position < 4; position++) {
		json_t *ids;

		cr_assert_not_null(line);
		object = json_loads(line, JSON_REJECT_DUPLICATES, NULL);
		cr_assert_str_eq(json_string_value(json_object_get(object, "request_id")), "a");
		cr_assert_eq(json_integer_value(json_object_get(object, "position")), position);
		ids = json_object_get(json_object_get(object, "routes"), "5");
		cr_assert_eq(json_array_size(ids), FEED_TOP_K);
		cr_assert_eq(json_integer_value(json_array_get(ids, 1)),
			     position < 3 ? expected(1, position, 1, 1) : -1);
		cr_assert_eq(json_object_get(object, "missing") == NULL, position < 3);
		if (position == 3)
			cr_assert_str_eq(json_string_value(json_object_get(
						 json_object_get(object, "missing"), "6")),
					 "ring_full");
		json_decref(object);
		line = strtok_r(NULL, "\n", &rest);
	}
	cr_assert_null(line);
	free(content);
}

/* ---- slime, miles: base64 ----------------------------------------------- */

static unsigned int letter_value(char letter)
{
	if (letter >= 'A' && letter <= 'Z')
		return (unsigned int)(letter - 'A');
	if (letter >= 'a' && letter <= 'z')
		return (unsigned int)(letter - 'a' + 26);
	if (letter >= '0' && letter <= '9')
		return (unsigned int)(letter - '0' + 52);
	cr_assert(letter == '+' || letter == '/', "'%c' is no letter of base64", letter);
	return letter == '+' ? 62 : 63;
}

/* Source: RFC 4648, section 4. Returns the bytes. */
static size_t decode_base64(const char *text, uint8_t *to)
{
	size_t bytes = 0;
	uint32_t bits = 0, held = 0;

	cr_assert_eq(strlen(text) % 4, 0);
	for (; *text && *text != '='; text++) {
		bits = bits << 6 | letter_value(*text);
		held += 6;
		if (held >= 8) {
			held -= 8;
			to[bytes++] = (uint8_t)(bits >> held);
		}
	}
	return bytes;
}

static void expect_line(const char *line, const char *id, uint64_t step)
{
	json_t *object = json_loads(line, JSON_REJECT_DUPLICATES, NULL);
	int32_t ids[4 * FEED_LAYERS * FEED_TOP_K];
	uint8_t bytes[sizeof(ids) + 3];
	const char *text = json_string_value(
		json_object_get(json_object_get(object, "meta_info"), "routed_experts"));

	cr_assert_str_eq(json_string_value(json_object_get(object, "request_id")), id);
	cr_assert_eq(json_integer_value(json_object_get(object, "tokens")), 5);
	cr_assert_eq(json_integer_value(json_array_get(json_object_get(object, "shape"), 0)), 4);
	cr_assert_not_null(text);
	cr_assert_eq(decode_base64(text, bytes), sizeof(ids));
	memcpy(ids, bytes, sizeof(ids));
	for (uint32_t i = 0; i < 4 * FEED_LAYERS * FEED_TOP_K; i++)
		cr_assert_eq(ids[i], expected_at(step, i / 6, i / 2 % 3, i % 2));
	json_decref(object);
}

static void expect_answers(const char *format)
{
	char *rest, *line;

	export_two(format);
	line = strtok_r((char *)content, "\n", &rest);
	expect_line(line, "a", 1);
	expect_line(strtok_r(NULL, "\n", &rest), "b", 3);
	cr_assert_null(strtok_r(NULL, "\n", &rest));
	free(content);
}

Test(export_formats, slime_gets_int32_in_base64_as_an_engine_answers)
{
	expect_answers("slime");
}

Test(export_formats, miles_gets_int32_in_base64_as_an_engine_answers)
{
	expect_answers("miles");
}

/* Lengths that end in the middle of a group of three, over more than one buffer. */
Test(export_formats, base64_goes_on_from_one_piece_to_the_next)
{
	const struct r3ring_span all = trial_span(1, 0, 70000);
	const size_t row_ids = (size_t)(FEED_LAYERS + 1) * FEED_TOP_K;
	json_t *object;
	const char *text;
	uint8_t *bytes;
	int32_t id;

	trial.options.model_layers = FEED_LAYERS + 1;
	trial_begin("slime");
	feed_begin(&trial.feed, 1, "long", 70000, 0);
	feed_whole(&trial.feed, 1, 70000, &all, 1);
	feed_end(&trial.feed, 1, R3RING_END_FINISHED, 0, 70001);
	trial_finish();
	load();
	object = json_loads((char *)content, JSON_DISABLE_EOF_CHECK, NULL);
	text = json_string_value(
		json_object_get(json_object_get(object, "meta_info"), "routed_experts"));
	bytes = malloc(strlen(text));
	cr_assert_eq(decode_base64(text, bytes), 70000 * row_ids * sizeof(id));
	for (uint32_t row = 0; row < 70000; row += 101) {
		memcpy(&id, bytes + row * row_ids * sizeof(id), sizeof(id));
		cr_assert_eq(id, expected(1, row, 0, 0), "%u", row);
	}
	free(bytes);
	json_decref(object);
	free(content);
}

/* ---- prime-rl: msgpack -------------------------------------------------- */

/* A reader at work; source: https://github.com/msgpack/msgpack/blob/master/spec.md. */
static const uint8_t *at;

static uint32_t big_endian(unsigned int bytes)
{
	uint32_t number = 0;

	while (bytes--)
		number = number << 8 | *at++;
	return number;
}

static uint32_t take_number(void)
{
	uint8_t type = *at++;

	if (type < 0x80)
		return type;
	cr_assert_eq(type, 0xCE);
	return big_endian(4);
}

static void take_text(char *text)
{
	uint8_t type = *at++;
	uint32_t bytes;

	if ((type & 0xE0) == 0xA0) {
		bytes = type & 0x1F;
	} else {
		cr_assert_eq(type, 0xDA);
		bytes = big_endian(2);
	}
	memcpy(text, at, bytes);
	text[bytes] = 0;
	at += bytes;
}

static void expect_text(const char *wanted)
{
	char text[R3RING_TEXT_ID_MAX + 1];

	take_text(text);
	cr_assert_str_eq(text, wanted);
}

static void expect_message(const char *id, uint64_t step)
{
	int16_t value;

	cr_assert_eq(*at++, 0x84);
	expect_text("request_id");
	expect_text(id);
	expect_text("tokens");
	cr_assert_eq(take_number(), 5);
	expect_text("prompt_tokens");
	cr_assert_eq(take_number(), 3);
	expect_text("routed_experts");
	cr_assert_eq(*at++, 0x83);
	expect_text("shape");
	cr_assert_eq(*at++, 0x93);
	cr_assert_eq(take_number(), 4);
	cr_assert_eq(take_number(), FEED_LAYERS);
	cr_assert_eq(take_number(), FEED_TOP_K);
	expect_text("dtype");
	expect_text("int16");
	expect_text("data");
	cr_assert_eq(*at++, 0xC6);
	cr_assert_eq(big_endian(4), 4 * FEED_LAYERS * FEED_TOP_K * sizeof(value));
	for (uint32_t i = 0; i < 4 * FEED_LAYERS * FEED_TOP_K; i++, at += sizeof(value)) {
		memcpy(&value, at, sizeof(value));
		cr_assert_eq(value, expected_at(step, i / 6, i / 2 % 3, i % 2));
	}
}

Test(export_formats, prime_rl_gets_shape_type_and_bytes_in_msgpack)
{
	char id[R3RING_TEXT_ID_MAX];

	memset(id, 'x', sizeof(id) - 1);
	id[sizeof(id) - 1] = 0;
	trial.feed.experts = 300;
	trial_begin("prime-rl");
	trial_request(1, "a", 1);
	trial_request(2, id, 3);
	trial_finish();
	load();
	at = content;
	expect_message("a", 1);
	expect_message(id, 3);
	cr_assert_eq(at - content, (ptrdiff_t)content_bytes);
	free(content);
}

/* ---- verl, NeMo-RL, SkyRL: tensors --------------------------------------- */

Test(export_formats, verl_gets_int16_with_a_row_a_token_and_zeros_behind_the_last)
{
	trial.feed.experts = 300;
	trial.feed.first_layer = 1;
	trial_begin("verl");
	trial_request(1, "a", 1);
	trial_finish();
	trial_read();
	cr_assert_str_eq(safetensors_tensor(&trial.file, "routed_experts").dtype, "I16");
	cr_assert_eq(safetensors_tensor(&trial.file, "routed_experts").shape[0], 5);
	cr_assert_eq(safetensors_tensor(&trial.file, "routed_experts").shape[1], FEED_LAYERS + 1);
	cr_assert(trial_is("routed_experts", 2, 1, 1, 2, 0));
	cr_assert_eq(trial_id("routed_experts", 2, 0, 1), 0);
	cr_assert_eq(trial_id("routed_experts", 4, 1, 1), 0);
}

static void expect_nemo_rl(uint32_t experts, const char *dtype)
{
	trial.feed.experts = experts;
	trial.options.missing = EXPORT_FILL_MINUS_ONE;
	trial_begin("nemo-rl");
	trial_gapped_request(1, "a", 1);
	trial_finish();
	trial_read();
	cr_assert_str_eq(safetensors_tensor(&trial.file, "routed_experts").dtype, dtype);
	cr_assert(trial_is("routed_experts", 1, 2, 1, 1, 2));
	for (uint32_t k = 0; k < FEED_TOP_K; k++) {
		cr_assert_eq(trial_id("routed_experts", 3, 0, k), -1);
		cr_assert_eq(trial_id("routed_experts", 4, 0, k), -1);
	}
	safetensors_free(&trial.file);
}

Test(export_formats, nemo_rl_gets_the_narrowest_signed_type_and_minus_one_for_no_route)
{
	expect_nemo_rl(128, "I8");
	expect_nemo_rl(129, "I16");
	expect_nemo_rl(32768, "I16");
	expect_nemo_rl(32769, "I32");
}

Test(export_formats, skyrl_gets_int32_and_distinct_experts_where_a_layer_is_dense)
{
	trial.feed.first_layer = 1;
	trial_begin("skyrl");
	trial_request(1, "a", 1);
	trial_finish();
	trial_read();
	cr_assert_str_eq(safetensors_tensor(&trial.file, "rollout_expert_indices").dtype, "I32");
	cr_assert_eq(safetensors_tensor(&trial.file, "rollout_expert_indices").shape[0], 4);
	cr_assert(trial_is("rollout_expert_indices", 3, 1, 2, 0, 0));
	cr_assert_eq(trial_id("rollout_expert_indices", 0, 0, 0), 0);
	cr_assert_eq(trial_id("rollout_expert_indices", 0, 0, 1), 1);
}
