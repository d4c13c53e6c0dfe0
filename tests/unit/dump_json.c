/* SPDX-License-Identifier: Apache-2.0 */
/* r3ring dump --json: what comes out is read back with a JSON parser. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "tests/support/record_examples.h"
#include "tools/dump.h"

struct line {
	char *text;
	size_t len;
	json_t *object;
};

/* Parses what was written; it must be one object on one line. */
static void parse_line(struct line *line)
{
	cr_assert(line->len > 0 && line->text[line->len - 1] == '\n');
	cr_assert_eq(strchr(line->text, '\n'), line->text + line->len - 1, "more than one line");
	line->object = json_loadb(line->text, line->len - 1, JSON_REJECT_DUPLICATES, NULL);
	cr_assert(json_is_object(line->object), "no object: %.200s", line->text);
}

static void free_line(struct line *line)
{
	json_decref(line->object);
	free(line->text);
}

static struct line print_record(const struct r3ring_record *record, uint16_t flags)
{
	const struct r3ring_view view = {.seq = 77, .type = record->type, .flags = flags};
	const struct dump_item item = {.view = &view, .record = record};
	struct line line = {0};
	FILE *out = open_memstream(&line.text, &line.len);

	cr_assert_eq(dump_json_record(out, &item), 0);
	fclose(out);
	parse_line(&line);
	return line;
}

static json_int_t integer(const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);

	cr_assert(json_is_integer(value), "%s is no integer", key);
	return json_integer_value(value);
}

static const char *string(const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);

	cr_assert(json_is_string(value), "%s is no string", key);
	return json_string_value(value);
}

/* ---- all types -------------------------------------------------------- */

Test(dump_json, every_record_of_every_size_is_one_object_on_a_line)
{
	static const char *const types[R3RING_RECORD_TYPES] = {
		[R3RING_SCHEMA] = "schema",     [R3RING_REQUEST] = "request",
		[R3RING_STEP] = "step",         [R3RING_SPANS] = "spans",
		[R3RING_ROWS] = "rows",         [R3RING_LAYER] = "layer",
		[R3RING_STEP_END] = "step_end", [R3RING_LOST] = "lost",
		[R3RING_EPLB] = "eplb",         [R3RING_KEY_COPY] = "key_copy",
		[R3RING_KEYFRAME] = "keyframe", [R3RING_CLOSED] = "closed",
	};

	for (uint16_t type = 1; type < R3RING_RECORD_TYPES; type++) {
		for (int size = EXAMPLE_MIN; size <= EXAMPLE_TYPICAL; size++) {
			struct r3ring_record record;
			struct line line;

			example_record(&record, type, (enum example_size)size);
			line = print_record(&record, 0);
			cr_expect_str_eq(string(line.object, "type"), types[type]);
			cr_expect_eq(integer(line.object, "seq"), 77);
			cr_expect_null(json_object_get(line.object, "repeated"));
			free_line(&line);
		}
	}
}

Test(dump_json, numbers_beyond_what_json_readers_hold_are_texts)
{
	struct r3ring_record record;
	struct line line;

	example_record(&record, R3RING_LOST, EXAMPLE_MAX);
	line = print_record(&record, 0);
	cr_expect_str_eq(string(line.object, "from"), "18446744073709551615");
	free_line(&line);
}

Test(dump_json, a_record_that_a_keyframe_says_again_is_marked)
{
	struct r3ring_record record;
	struct line line;

	example_record(&record, R3RING_SCHEMA, EXAMPLE_TYPICAL);
	line = print_record(&record, R3RING_DESC_REPEATED);
	cr_expect(json_is_true(json_object_get(line.object, "repeated")));
	free_line(&line);
}

/* ---- LAYER ------------------------------------------------------------ */

static struct r3ring_record small_layer(const uint16_t *ids)
{
	return (struct r3ring_record){
		.type = R3RING_LAYER,
		.u.layer = {.head = {.step = 9,
				     .layer_id = 42,
				     .layer_index = 41,
				     .kind = R3RING_LAYER_HASH,
				     .row = 128,
				     .rows = 3,
				     .total_rows = 256,
				     .valid_rows = 2,
				     .missing = 1,
				     .out_of_range = 0,
				     .top_k = 2},
			    .ids = ids},
	};
}

Test(dump_json, a_layer_has_its_fields_and_ids)
{
	static const uint16_t ids[] = {0, 65534, 9, 10, 100, 12345};
	struct r3ring_record record = small_layer(ids);
	struct line line = print_record(&record, 0);
	const json_t *rows = json_object_get(line.object, "ids");

	cr_expect_eq(integer(line.object, "step"), 9);
	cr_expect_eq(integer(line.object, "layer"), 42);
	cr_expect_str_eq(string(line.object, "kind"), "hash");
	cr_expect_eq(integer(line.object, "row"), 128);
	cr_expect_eq(integer(line.object, "rows"), 3);
	cr_expect_eq(integer(line.object, "total_rows"), 256);
	cr_expect_eq(integer(line.object, "valid_rows"), 2);
	cr_expect_eq(integer(line.object, "missing"), 1);
	cr_expect_eq(integer(line.object, "out_of_range"), 0);
	cr_assert_eq(json_array_size(rows), 3);
	for (size_t i = 0; i < 6; i++) {
		const json_t *row = json_array_get(rows, i / 2);

		cr_assert_eq(json_array_size(row), 2);
		cr_expect_eq(json_integer_value(json_array_get(row, i % 2)), ids[i]);
	}
	free_line(&line);
}

Test(dump_json, failure_26_a_missing_id_is_minus_one_and_no_expert)
{
	static const uint16_t ids[] = {R3RING_MISSING, 255, 1, 2, R3RING_MISSING, R3RING_MISSING};
	struct r3ring_record record = small_layer(ids);
	struct line line = print_record(&record, 0);

	cr_expect(strstr(line.text, "\"ids\":[[-1,255],[1,2],[-1,-1]]}"), "%s", line.text);
	free_line(&line);
}

Test(dump_json, a_layer_without_rows_has_an_empty_array)
{
	struct r3ring_record record = small_layer(NULL);
	struct line line;

	record.u.layer.head.rows = 0;
	record.u.layer.head.valid_rows = 0;
	line = print_record(&record, 0);
	cr_expect_eq(json_array_size(json_object_get(line.object, "ids")), 0);
	cr_expect(json_is_array(json_object_get(line.object, "ids")));
	free_line(&line);
}

Test(dump_json, failure_35_layer_kind_tells_layers_of_one_number_apart)
{
	const struct dump_layer moe = {.id = 1};
	const struct dump_layer mtp = {.id = 1, .mtp = true};
	const struct dump_layer all = {.all = true};
	struct r3ring_record record = small_layer(NULL);

	record.u.layer.head.layer_id = 1;
	record.u.layer.head.kind = R3RING_LAYER_MTP;
	cr_expect(!dump_wants(&moe, &record));
	cr_expect(dump_wants(&mtp, &record));
	cr_expect(dump_wants(&all, &record));
	record.u.layer.head.kind = R3RING_LAYER_HASH;
	cr_expect(dump_wants(&moe, &record));
	cr_expect(!dump_wants(&mtp, &record));
	record.u.layer.head.layer_id = 2;
	cr_expect(!dump_wants(&moe, &record));
}

/* ---- spans ------------------------------------------------------------ */

static struct r3ring_record one_span(const struct r3ring_span *span)
{
	return (struct r3ring_record){
		.type = R3RING_STEP,
		.u.step = {.head = {.step = 5,
				    .total_rows = 8,
				    .row_end = 8,
				    .valid_end = 8,
				    .spans = 1},
			   .spans = span},
	};
}

/* A table that has seen the beginning of a generation and one request. */
static struct r3ring_requests *requests_with(uint64_t handle, const char *id)
{
	const struct r3ring_view schema_view = {
		.seq = 1, .type = R3RING_SCHEMA, .flags = R3RING_DESC_BOUNDARY};
	const struct r3ring_view request_view = {.seq = 2, .type = R3RING_REQUEST};
	const struct r3ring_record request = {
		.type = R3RING_REQUEST,
		.u.request = {.head = {.handle = handle,
				       .event = R3RING_REQUEST_BEGIN,
				       .id_len = (uint16_t)strlen(id)},
			      .id = id},
	};
	struct r3ring_requests *requests = r3ring_requests_create();
	struct r3ring_record schema;

	example_record(&schema, R3RING_SCHEMA, EXAMPLE_TYPICAL);
	cr_assert_eq(r3ring_requests_feed(requests, &schema_view, &schema), 0);
	cr_assert_eq(r3ring_requests_feed(requests, &request_view, &request), 0);
	return requests;
}

static struct line print_span(const struct r3ring_span *span, struct r3ring_requests *requests)
{
	const struct r3ring_record record = one_span(span);
	const struct r3ring_view view = {.seq = 3, .type = R3RING_STEP};
	const struct dump_item item = {.view = &view, .record = &record, .requests = requests};
	struct line line = {0};
	FILE *out = open_memstream(&line.text, &line.len);

	cr_assert_eq(dump_json_record(out, &item), 0);
	fclose(out);
	parse_line(&line);
	return line;
}

Test(dump_json, a_span_names_its_request_by_text)
{
	const struct r3ring_span span = {.request = 11,
					 .position = 30,
					 .row = 2,
					 .rows = 4,
					 .accepted = R3RING_UNKNOWN_U32,
					 .attempt = 3,
					 .kind = R3RING_SPAN_EXTERNAL};
	struct r3ring_requests *requests = requests_with(11, "chat-\"7\"");
	struct line line = print_span(&span, requests);
	const json_t *object = json_array_get(json_object_get(line.object, "spans"), 0);

	cr_expect_str_eq(string(object, "request"), "chat-\"7\"");
	cr_expect_null(json_object_get(object, "attributed"));
	cr_expect_eq(integer(object, "position"), 30);
	cr_expect_eq(integer(object, "row"), 2);
	cr_expect_eq(integer(object, "rows"), 4);
	cr_expect_eq(integer(object, "attempt"), 3);
	cr_expect_str_eq(string(object, "kind"), "external");
	cr_expect(json_is_null(json_object_get(object, "accepted")));
	free_line(&line);
	r3ring_requests_destroy(requests);
}

Test(dump_json, a_draft_span_tells_how_many_rows_were_accepted)
{
	const struct r3ring_span span = {
		.request = 11, .rows = 4, .accepted = 2, .flags = R3RING_SPAN_DRAFT};
	struct line line = print_span(&span, NULL);
	const json_t *object = json_array_get(json_object_get(line.object, "spans"), 0);

	cr_expect(json_is_true(json_object_get(object, "draft")));
	cr_expect_eq(integer(object, "accepted"), 2);
	free_line(&line);
}

/* The end of request 11, which does not repeat its text. */
static struct line print_end(struct r3ring_requests *requests)
{
	const struct r3ring_record record = {
		.type = R3RING_REQUEST,
		.u.request.head = {.handle = 11,
				   .event = R3RING_REQUEST_END,
				   .reason = R3RING_END_FINISHED,
				   .accepted_tokens = 9},
	};
	const struct r3ring_view view = {.seq = 3, .type = R3RING_REQUEST};
	const struct dump_item item = {.view = &view, .record = &record, .requests = requests};
	struct line line = {0};
	FILE *out = open_memstream(&line.text, &line.len);

	cr_assert_eq(r3ring_requests_feed(requests, &view, &record), 0);
	cr_assert_eq(dump_json_record(out, &item), 0);
	fclose(out);
	parse_line(&line);
	return line;
}

/* Begins attempt 2 of request 11. */
static struct line print_begin(uint32_t since_first)
{
	const struct r3ring_record record = {
		.type = R3RING_REQUEST,
		.u.request = {.head = {.handle = 11,
				       .event = R3RING_REQUEST_BEGIN,
				       .attempt = 2,
				       .since_first = since_first,
				       .id_len = 1},
			      .id = "r"},
	};

	return print_record(&record, 0);
}

Test(dump_json, a_later_attempt_tells_the_handle_of_the_first_where_it_is_known)
{
	struct line told = print_begin(4), untold = print_begin(0);

	cr_expect_eq(integer(told.object, "first_handle"), 7);
	cr_expect(json_is_null(json_object_get(untold.object, "first_handle")));
	free_line(&told);
	free_line(&untold);
}

Test(dump_json, a_requests_end_names_it_by_the_text_of_its_beginning)
{
	struct r3ring_requests *requests = requests_with(11, "chat-7");
	struct line line = print_end(requests);

	cr_expect_str_eq(string(line.object, "request"), "chat-7");
	cr_expect_eq(integer(line.object, "accepted_tokens"), 9);
	free_line(&line);
	r3ring_requests_destroy(requests);
}

Test(dump_json, failure_49_an_end_of_an_unknown_request_names_none)
{
	struct r3ring_requests *requests = requests_with(12, "other");
	struct line line = print_end(requests);

	cr_expect(json_is_null(json_object_get(line.object, "request")));
	cr_expect_eq(integer(line.object, "handle"), 11);
	free_line(&line);
	r3ring_requests_destroy(requests);
}

Test(dump_json, failure_49_a_span_of_an_unknown_request_is_not_attributed)
{
	const struct r3ring_span span = {.request = 12, .rows = 1};
	struct r3ring_requests *requests = requests_with(11, "other");
	struct line line = print_span(&span, requests);
	const json_t *object = json_array_get(json_object_get(line.object, "spans"), 0);

	cr_expect(json_is_null(json_object_get(object, "request")));
	cr_expect(json_is_false(json_object_get(object, "attributed")));
	cr_expect_eq(integer(object, "handle"), 12);
	free_line(&line);
	r3ring_requests_destroy(requests);
}

/* ---- other types ------------------------------------------------------ */

Test(dump_json, a_loss_names_cause_steps_and_rows)
{
	const struct r3ring_record record = {
		.type = R3RING_LOST,
		.u.lost = {.from_step = 3,
			   .to_step = 5,
			   .steps = 3,
			   .rows = 96,
			   .layer_rows = 960,
			   .cause = R3RING_CAUSE_BUFFER_FULL},
	};
	struct line line = print_record(&record, 0);

	cr_expect_str_eq(string(line.object, "cause"), "buffer_full");
	cr_expect_eq(integer(line.object, "steps"), 3);
	cr_expect_eq(integer(line.object, "rows"), 96);
	cr_expect_eq(integer(line.object, "layer_rows"), 960);
	cr_expect_eq(integer(line.object, "from"), 3);
	cr_expect_eq(integer(line.object, "to"), 5);
	free_line(&line);
}

Test(dump_json, failure_8_a_step_tells_its_row_range_within_the_whole)
{
	struct r3ring_record record;
	struct line line;

	example_record(&record, R3RING_STEP, EXAMPLE_TYPICAL);
	line = print_record(&record, 0);
	cr_expect_eq(integer(line.object, "total_rows"), 256);
	cr_expect_eq(integer(line.object, "row_begin"), 128);
	cr_expect_eq(integer(line.object, "row_end"), 256);
	cr_expect_eq(integer(line.object, "valid_end"), 250);
	cr_expect_eq(json_array_size(json_object_get(line.object, "spans")), 64);
	cr_expect_eq(json_array_size(json_object_get(line.object, "keys")), 128);
	free_line(&line);
}

Test(dump_json, a_partial_step_names_each_missing_layer_and_why)
{
	struct r3ring_record record;
	struct line line;
	const json_t *missing;

	example_record(&record, R3RING_STEP_END, EXAMPLE_TYPICAL);
	line = print_record(&record, 0);
	missing = json_object_get(line.object, "missing");
	cr_expect_str_eq(string(line.object, "status"), "partial");
	cr_assert_eq(json_array_size(missing), 3);
	cr_expect_eq(integer(json_array_get(missing, 2), "layer"), 2);
	cr_expect_str_eq(string(json_array_get(missing, 2), "kind"), "mtp");
	cr_expect_str_eq(string(json_array_get(missing, 2), "cause"), "queue_full");
	cr_expect_eq(integer(json_array_get(missing, 2), "captured"), 2);
	cr_expect_eq(integer(json_array_get(missing, 2), "expected"), 3);
	free_line(&line);
}

Test(dump_json, an_eplb_map_is_layers_of_experts_of_replicas)
{
	struct r3ring_record record;
	struct line line;
	const json_t *map, *expert;

	example_record(&record, R3RING_EPLB, EXAMPLE_TYPICAL);
	line = print_record(&record, 0);
	map = json_object_get(line.object, "map");
	cr_assert_eq(json_array_size(map), 3);
	cr_assert_eq(json_array_size(json_array_get(map, 1)), 32);
	expert = json_array_get(json_array_get(map, 1), 3);
	cr_assert_eq(json_array_size(expert), 2);
	cr_expect_eq(json_integer_value(json_array_get(expert, 0)), (32 + 3) * 2 % 40);
	cr_expect_eq(json_integer_value(json_array_get(expert, 1)), -1);
	free_line(&line);
}

Test(dump_json, a_text_that_is_no_utf8_still_makes_valid_json)
{
	static const char id[] = "a\xff\x1b[2Jb";
	const struct r3ring_record record = {
		.type = R3RING_REQUEST,
		.u.request = {.head = {.event = R3RING_REQUEST_BEGIN, .id_len = sizeof(id) - 1},
			      .id = id},
	};
	struct line line = print_record(&record, 0);

	cr_expect_str_eq(string(line.object, "request"), "a\xef\xbf\xbd\x1b[2Jb");
	cr_expect_null(strchr(line.text, 0x1b));
	free_line(&line);
}

Test(dump_json, a_gap_of_the_reader_tells_how_much_and_where)
{
	const struct dump_gap gap = {
		.generation = 3, .lost = 40, .from_seq = 11, .to_seq = 50, .corrupt = true};
	struct line line = {0};
	FILE *out = open_memstream(&line.text, &line.len);

	cr_assert_eq(dump_json_gap(out, &gap), 0);
	fclose(out);
	parse_line(&line);
	cr_expect_str_eq(string(line.object, "type"), "gap");
	cr_expect_eq(integer(line.object, "generation"), 3);
	cr_expect_eq(integer(line.object, "lost"), 40);
	cr_expect_eq(integer(line.object, "from_seq"), 11);
	cr_expect_eq(integer(line.object, "to_seq"), 50);
	cr_expect_eq(integer(line.object, "missed"), 0);
	cr_expect(json_is_true(json_object_get(line.object, "corrupt")));
	free_line(&line);
}

Test(dump_json, a_corrupt_record_is_told_apart_from_one_of_a_later_version)
{
	const struct r3ring_view view = {.seq = 8, .type = 13, .len = 100};
	const struct dump_unreadable cases[] = {
		{.view = &view, .code = -EBADMSG, .text = "rows do not fit"},
		{.view = &view, .code = -ENOTSUP, .text = "unknown type"},
	};
	static const char *const types[] = {"corrupt", "unknown"};

	for (int i = 0; i < 2; i++) {
		struct line line = {0};
		FILE *out = open_memstream(&line.text, &line.len);

		cr_assert_eq(dump_json_unreadable(out, &cases[i]), 0);
		fclose(out);
		parse_line(&line);
		cr_expect_str_eq(string(line.object, "type"), types[i]);
		cr_expect_eq(integer(line.object, "seq"), 8);
		free_line(&line);
	}
}
