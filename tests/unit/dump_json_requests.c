/* SPDX-License-Identifier: Apache-2.0 */
/* r3ring dump --json: requests, and whose spans are. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "tests/support/record_examples.h"
#include "tests/unit/dump_line.h"

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

static struct dump_line print_span(const struct r3ring_span *span, struct r3ring_requests *requests)
{
	const struct r3ring_record record = one_span(span);
	const struct r3ring_view view = {.seq = 3, .type = R3RING_STEP};
	const struct dump_item item = {.view = &view, .record = &record, .requests = requests};
	struct dump_line line = {0};
	FILE *out = open_memstream(&line.text, &line.len);

	cr_assert_eq(dump_json_record(out, &item), 0);
	fclose(out);
	dump_line_parse(&line);
	return line;
}

Test(dump_json_requests, a_span_names_its_request_by_text)
{
	const struct r3ring_span span = {.request = 11,
					 .position = 30,
					 .row = 2,
					 .rows = 4,
					 .accepted = R3RING_UNKNOWN_U32,
					 .attempt = 3,
					 .kind = R3RING_SPAN_EXTERNAL};
	struct r3ring_requests *requests = requests_with(11, "chat-\"7\"");
	struct dump_line line = print_span(&span, requests);
	const json_t *object = json_array_get(json_object_get(line.object, "spans"), 0);

	cr_expect_str_eq(dump_line_string(object, "request"), "chat-\"7\"");
	cr_expect_null(json_object_get(object, "attributed"));
	cr_expect_eq(dump_line_integer(object, "position"), 30);
	cr_expect_eq(dump_line_integer(object, "row"), 2);
	cr_expect_eq(dump_line_integer(object, "rows"), 4);
	cr_expect_eq(dump_line_integer(object, "attempt"), 3);
	cr_expect_str_eq(dump_line_string(object, "kind"), "external");
	cr_expect(json_is_null(json_object_get(object, "accepted")));
	dump_line_free(&line);
	r3ring_requests_destroy(requests);
}

Test(dump_json_requests, a_draft_span_tells_how_many_rows_were_accepted)
{
	const struct r3ring_span span = {
		.request = 11, .rows = 4, .accepted = 2, .flags = R3RING_SPAN_DRAFT};
	struct dump_line line = print_span(&span, NULL);
	const json_t *object = json_array_get(json_object_get(line.object, "spans"), 0);

	cr_expect(json_is_true(json_object_get(object, "draft")));
	cr_expect_eq(dump_line_integer(object, "accepted"), 2);
	dump_line_free(&line);
}

/* The end of request 11, which does not repeat its text. */
static struct dump_line print_end(struct r3ring_requests *requests)
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
	struct dump_line line = {0};
	FILE *out = open_memstream(&line.text, &line.len);

	cr_assert_eq(r3ring_requests_feed(requests, &view, &record), 0);
	cr_assert_eq(dump_json_record(out, &item), 0);
	fclose(out);
	dump_line_parse(&line);
	return line;
}

/* Begins attempt 2 of request 11. */
static struct dump_line print_begin(uint32_t since_first)
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

	return dump_line_of(&record, 0);
}

Test(dump_json_requests, a_later_attempt_tells_the_handle_of_the_first_where_it_is_known)
{
	struct dump_line told = print_begin(4), untold = print_begin(0);

	cr_expect_eq(dump_line_integer(told.object, "first_handle"), 7);
	cr_expect(json_is_null(json_object_get(untold.object, "first_handle")));
	dump_line_free(&told);
	dump_line_free(&untold);
}

Test(dump_json_requests, a_requests_end_names_it_by_the_text_of_its_beginning)
{
	struct r3ring_requests *requests = requests_with(11, "chat-7");
	struct dump_line line = print_end(requests);

	cr_expect_str_eq(dump_line_string(line.object, "request"), "chat-7");
	cr_expect_eq(dump_line_integer(line.object, "accepted_tokens"), 9);
	dump_line_free(&line);
	r3ring_requests_destroy(requests);
}

Test(dump_json_requests, failure_49_an_end_of_an_unknown_request_names_none)
{
	struct r3ring_requests *requests = requests_with(12, "other");
	struct dump_line line = print_end(requests);

	cr_expect(json_is_null(json_object_get(line.object, "request")));
	cr_expect_eq(dump_line_integer(line.object, "handle"), 11);
	dump_line_free(&line);
	r3ring_requests_destroy(requests);
}

Test(dump_json_requests, failure_49_a_span_of_an_unknown_request_is_not_attributed)
{
	const struct r3ring_span span = {.request = 12, .rows = 1};
	struct r3ring_requests *requests = requests_with(11, "other");
	struct dump_line line = print_span(&span, requests);
	const json_t *object = json_array_get(json_object_get(line.object, "spans"), 0);

	cr_expect(json_is_null(json_object_get(object, "request")));
	cr_expect(json_is_false(json_object_get(object, "attributed")));
	cr_expect_eq(dump_line_integer(object, "handle"), 12);
	dump_line_free(&line);
	r3ring_requests_destroy(requests);
}
