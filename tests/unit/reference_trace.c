/* SPDX-License-Identifier: Apache-2.0 */
/* Recorded routing: the real recording, and every way a header can be wrong. */
#include <criterion/criterion.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jansson.h>

#include "producer/reference/engine.h"
#include "producer/reference/run.h"
#include "producer/reference/trace.h"

#define REAL_HEADER "../shared/data/gptoss20b/gptoss20b_many.json"
#define REAL_COUNTS "../shared/data/gptoss20b/gptoss20b_many.hist.json"

/* A recording of 3 rows, 2 layers, 2 of 4 experts, in a folder of its own. */
static const uint16_t good_ids[3][2][2] = {
	{{0, 1}, {2, 3}}, {{3, 2}, {1, 0}}, {{1, 3}, {0xFFFF, 2}}};
static const char good_header[] =
	"{\"file\":\"t.u16\",\"dtype\":\"uint16 little-endian\",\"shape\":[3,2,2],"
	"\"missing_value\":65535,\"model\":\"tiny\",\"num_experts\":4,\"k\":2,"
	"\"layer_ids\":[1,3],\"requests\":["
	"{\"request_id\":\"a\",\"first_row\":0,\"rows\":2,\"prompt_tokens\":5},"
	"{\"request_id\":\"b\",\"first_row\":2,\"rows\":1,\"prompt_tokens\":7}]}";

static char folder[] = "/tmp/r3ring-trace-XXXXXX";
static char header[PATH_MAX], raw[PATH_MAX];

static void put(const char *path, const void *bytes, size_t len)
{
	FILE *file = fopen(path, "w");

	cr_assert(file && fwrite(bytes, 1, len, file) == len);
	fclose(file);
}

static void make_folder(void)
{
	cr_assert(mkdtemp(folder));
	snprintf(header, sizeof(header), "%s/t.json", folder);
	snprintf(raw, sizeof(raw), "%s/t.u16", folder);
	put(raw, good_ids, sizeof(good_ids));
	put(header, good_header, strlen(good_header));
}

static void remove_folder(void)
{
	unlink(header);
	unlink(raw);
	rmdir(folder);
}

TestSuite(reference_trace, .init = make_folder, .fini = remove_folder);

/* Reading must fail so, and say these words besides the header's name. */
static void expect_refused(int code, const char *words)
{
	struct trace trace = {.rows = 77};
	struct r3ring_error err = {0};

	cr_assert_eq(trace_read(&trace, header, &err), code, "%d: %s", err.code, err.text);
	cr_assert(strstr(err.text, words), "\"%s\" lacks \"%s\"", err.text, words);
	cr_assert(strstr(err.text, folder), "%s", err.text);
	cr_assert_eq(trace.rows, 77);
}

/* The good header with one field changed (@value in JSON), or without it. */
static void change(const char *field, const char *value)
{
	json_t *root = json_loads(good_header, 0, NULL);
	json_t *object = root;
	char *text;

	if (!strncmp(field, "requests[1].", 12)) {
		object = json_array_get(json_object_get(root, "requests"), 1);
		field += 12;
	}
	if (value)
		json_object_set_new(object, field, json_loads(value, JSON_DECODE_ANY, NULL));
	else
		json_object_del(object, field);
	text = json_dumps(root, 0);
	put(header, text, strlen(text));
	free(text);
	json_decref(root);
}

Test(reference_trace, a_good_recording_is_read_as_it_is)
{
	struct r3ring_error err;
	struct trace t;

	cr_assert_eq(trace_read(&t, header, &err), 0, "%s", err.text);
	cr_assert_str_eq(t.model, "tiny");
	cr_assert_eq(t.rows, 3);
	cr_assert_eq(t.experts, 4);
	cr_assert_eq(t.layers[1].layer_id, 3);
	cr_assert_arr_eq(t.ids, good_ids, sizeof(good_ids));
	cr_assert_eq(t.request_count, 2);
	cr_assert_eq(t.requests[1].first_position, 7);
	trace_free(&t);
}

/* By sha256sum(1). */
#define GOOD_DIGEST "7373245864d7e33b2e2a456ca1ea3511525a2fce304a362e93347635dc7e0bdf"

Test(reference_trace, a_file_with_the_digest_that_its_header_says_is_read)
{
	struct r3ring_error err;
	struct trace t;

	change("sha256", "\"" GOOD_DIGEST "\"");
	cr_assert_eq(trace_read(&t, header, &err), 0, "%s", err.text);
	trace_free(&t);
}

Test(reference_trace, a_file_of_another_content_is_refused_with_its_digest)
{
	uint16_t other_ids[3][2][2];

	change("sha256", "\"" GOOD_DIGEST "\"");
	memcpy(other_ids, good_ids, sizeof(good_ids));
	other_ids[2][1][1] = 1;
	put(raw, other_ids, sizeof(other_ids));
	expect_refused(-EBADMSG, "t.u16: its sha256 is ");
	expect_refused(-EBADMSG, "get the file that belongs to it");
}

Test(reference_trace, a_digest_that_is_none_is_named)
{
	change("sha256", "\"feed\"");
	expect_refused(-EBADMSG, "\"sha256\" is missing or not 64 hexadecimal digits");
	change("sha256", "7");
	expect_refused(-EBADMSG, "\"sha256\"");
}

Test(reference_trace, a_directory_in_a_files_place_is_named)
{
	cr_assert_eq(unlink(raw), 0);
	cr_assert_eq(mkdir(raw, 0700), 0);
	expect_refused(-EISDIR, "Is a directory");
	rmdir(raw);
	unlink(header);
	cr_assert_eq(mkdir(header, 0700), 0);
	expect_refused(-EISDIR, "Is a directory: --trace takes a readable JSON header");
	rmdir(header);
}

Test(reference_trace, each_missing_field_is_named)
{
	static const char *const fields[] = {
		"file",
		"dtype",
		"shape",
		"missing_value",
		"model",
		"num_experts",
		"k",
		"layer_ids",
		"requests",
		"requests[1].request_id",
		"requests[1].first_row",
		"requests[1].rows",
		"requests[1].prompt_tokens",
	};

	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		change(fields[i], NULL);
		expect_refused(-EBADMSG, fields[i]);
	}
}

Test(reference_trace, a_field_of_another_type_is_named)
{
	change("k", "\"2\"");
	expect_refused(-EBADMSG, "\"k\" is missing or not a number");
	change("model", "3");
	expect_refused(-EBADMSG, "\"model\" is missing or not a text");
	change("shape", "[3,2]");
	expect_refused(-EBADMSG, "three numbers");
	change("requests", "[]");
	expect_refused(-EBADMSG, "\"requests\"");
}

Test(reference_trace, the_most_experts_fit_with_the_default_number_of_replicas)
{
	struct run_options options = {
		.trace = header,
		.repeat = 1,
		.batch_rows = 4,
		.prefill_chunk = 4,
		.eplb_replicas = RUN_EPLB_DEFAULT,
	};
	struct r3ring_error err = {0};
	struct engine engine = {0};

	change("num_experts", "65535");
	cr_expect_eq(engine_create(&engine, &options, &err), 0, "%s", err.text);
	engine_free(&engine);
}

Test(reference_trace, rows_of_two_requests_are_refused_with_both_names)
{
	change("requests[1].first_row", "1");
	expect_refused(-ERANGE, "requests \"a\" and \"b\" both have row 1");
}

Test(reference_trace, rows_of_no_request_are_refused_with_their_numbers)
{
	change("requests",
	       "[{\"request_id\":\"a\",\"first_row\":0,\"rows\":2,\"prompt_tokens\":5}]");
	expect_refused(-ERANGE, "rows 2 to 2 belong to no request");
	change("requests",
	       "[{\"request_id\":\"b\",\"first_row\":2,\"rows\":1,\"prompt_tokens\":5}]");
	expect_refused(-ERANGE, "rows 0 to 1 belong to no request");
}

Test(reference_trace, control_characters_in_a_text_are_refused)
{
	change("model", "\"ti\\u001b[31mny\"");
	expect_refused(-ERANGE, "\"model\" has a control character (0x1b)");
	change("requests[1].request_id", "\"b\\n\"");
	expect_refused(-ERANGE, "requests[1].request_id\" has a control character");
}

Test(reference_trace, a_file_of_another_size_is_refused_with_both_sizes)
{
	put(raw, good_ids, sizeof(good_ids) - 2);
	expect_refused(-EMSGSIZE, "has 22 bytes, but shape [3, 2, 2] of its header needs 24");
	put(raw, "", 0);
	expect_refused(-EMSGSIZE, "has 0 bytes");
}

Test(reference_trace, a_file_that_is_not_there_is_named)
{
	unlink(raw);
	expect_refused(-ENOENT, "t.u16: No such file");
	change("file", "\"../t.u16\"");
	expect_refused(-ERANGE, "without '/'");
}

Test(reference_trace, more_experts_a_token_than_there_are_is_refused)
{
	change("num_experts", "1");
	expect_refused(-ERANGE, "more than num_experts 1");
}

Test(reference_trace, more_than_65535_experts_are_refused)
{
	change("num_experts", "65536");
	expect_refused(-ERANGE, "\"num_experts\" is 65536, beyond 1 to 65535");
	change("num_experts", "0");
	expect_refused(-ERANGE, "\"num_experts\" is 0");
}

Test(reference_trace, sizes_that_contradict_each_other_are_refused)
{
	change("k", "3");
	expect_refused(-ERANGE, "\"k\" is 3, but shape[2] is 2");
	change("layer_ids", "[1]");
	expect_refused(-ERANGE, "names 1 layers, but shape[1] is 2");
	change("layer_ids", "[1,1]");
	expect_refused(-ERANGE, "layer 1 twice");
	change("dtype", "\"int32\"");
	expect_refused(-ERANGE, "int32");
}

Test(reference_trace, rows_of_a_request_beyond_the_recording_are_refused)
{
	change("requests[1].rows", "2");
	expect_refused(-ERANGE, "rows 2 to 3, but shape[0] is 3");
	change("requests[1].first_row", "3");
	expect_refused(-ERANGE, "requests[1].first_row");
	change("requests[1].prompt_tokens", "-1");
	expect_refused(-ERANGE, "requests[1].prompt_tokens");
}

Test(reference_trace, a_request_id_that_is_there_twice_is_refused)
{
	change("requests[1].request_id", "\"a\"");
	expect_refused(-ERANGE, "\"a\" is there twice");
}

Test(reference_trace, an_expert_beyond_the_last_is_refused_with_its_row)
{
	static const uint16_t bad[3][2][2] = {{{0, 1}, {2, 3}}, {{3, 2}, {1, 4}}};

	put(raw, bad, sizeof(bad));
	expect_refused(-ERANGE, "row 1 has expert 4, but num_experts is 4");
}

Test(reference_trace, what_is_no_json_header_is_refused)
{
	put(header, "{\"file\":", 8);
	expect_refused(-EBADMSG, "line 1");
	put(header, "[]", 2);
	expect_refused(-EBADMSG, "not an object");
	unlink(header);
	expect_refused(-ENOENT, "--trace takes a readable JSON header");
}

Test(reference_trace, repeated_rounds_have_ids_of_their_own)
{
	struct r3ring_error err;
	struct workload w;
	struct trace t;

	cr_assert_eq(trace_read(&t, header, &err), 0);
	cr_assert_eq(trace_workload(&t, 3, &w, &err), 0);
	cr_assert_eq(w.count, 6);
	cr_assert_str_eq(w.requests[1].id, "b");
	cr_assert_str_eq(w.requests[2].id, "a~2");
	cr_assert_str_eq(w.requests[5].id, "b~3");
	cr_assert_eq(workload_token(&w, &w.requests[5], 7), 2);
	cr_assert_eq(workload_accepted(&w.requests[0]), 5 + 2 + 1);
	workload_free(&w);
	cr_assert_eq(trace_workload(&t, 0, &w, &err), -EINVAL);
	cr_assert(strstr(err.text, "--repeat"));
	trace_free(&t);
}

Test(reference_trace, a_layers_ids_are_those_of_the_recorded_rows)
{
	const int32_t rows[] = {2, 0};
	struct trace t;
	uint16_t ids[4];

	cr_assert_eq(trace_read(&t, header, NULL), 0);
	trace_layer(&t, 1, rows, 2, ids);
	cr_assert_arr_eq(ids, ((const uint16_t[]){0xFFFF, 2, 2, 3}), sizeof(ids));
	trace_free(&t);
}

static void expect_counts(const struct trace *t, const json_t *counts)
{
	cr_assert_eq(json_array_size(counts), t->layer_count);
	for (uint32_t l = 0; l < t->layer_count; l++) {
		long seen[32] = {0};

		for (uint32_t row = 0; row < t->rows; row++) {
			for (uint32_t k = 0; k < t->top_k; k++)
				seen[t->ids[((size_t)row * t->layer_count + l) * t->top_k + k]]++;
		}
		for (size_t e = 0; e < 32; e++)
			cr_assert_eq(seen[e], json_integer_value(json_array_get(
						      json_array_get(counts, l), e)));
	}
}

Test(reference_trace, the_real_recording_has_its_published_expert_counts)
{
	struct r3ring_error err;
	uint64_t rows = 0;
	struct trace t;
	json_t *counts;

	if (access(REAL_HEADER, R_OK))
		cr_skip_test("%s is not there", REAL_HEADER);
	cr_assert_eq(trace_read(&t, REAL_HEADER, &err), 0, "%s", err.text);
	cr_assert_eq(t.rows, 15943);
	cr_assert_eq(t.request_count, 51);
	for (uint32_t i = 0; i < t.request_count; i++)
		rows += t.requests[i].rows;
	cr_assert_eq(rows, t.rows);
	counts = json_load_file(REAL_COUNTS, 0, NULL);
	cr_assert_not_null(counts);
	expect_counts(&t, json_object_get(counts, "counts"));
	json_decref(counts);
	trace_free(&t);
}
