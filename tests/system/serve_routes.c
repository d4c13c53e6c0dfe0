/* SPDX-License-Identifier: Apache-2.0 */
/* Routes of requests, as the service tells them: against the recording, and the engine's rule. */
#include <criterion/criterion.h>

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/recording.h"
#include "tests/system/serve_stage.h"

#define TRIES 6000 /* of 10 ms */

TestSuite(serve_routes_told, .init = serve_stage_start, .fini = serve_stage_stop);

/* Asks until the answer has this status; its JSON is the caller's. */
static json_t *await(const char *path, int status)
{
	for (int tries = 0; tries < TRIES; tries++) {
		struct http_reply reply = ask("GET", path, NULL);

		if (reply.status == status)
			return reply.json;
		json_decref(reply.json);
		poll(NULL, 0, 10);
	}
	cr_assert_fail("%s: never %d", path, status);
	return NULL;
}

/* The request is known before its step is. */
static json_t *await_rows(const char *path, size_t rows)
{
	for (int tries = 0; tries < TRIES; tries++) {
		json_t *told = await(path, 200);

		if (json_array_size(at(told, "rows", NULL)) == rows)
			return told;
		json_decref(told);
		poll(NULL, 0, 10);
	}
	cr_assert_fail("%s: never %zu rows", path, rows);
	return NULL;
}

static int64_t begin(const char *id)
{
	const struct r3ring_request request = {
		.size = sizeof(request), .id = id, .prompt_tokens = 2};
	int64_t handle = r3ring_request_begin(stage.tool.engine.producer, &request);

	cr_assert_gt(handle, 0);
	return handle;
}

/* Of row @row (index) in the answer, layer @layer: its experts are those that the engine has by its
 * rule for row @number of the step. */
static void expect_cell(const json_t *told, uint32_t row, uint32_t layer, int64_t step,
			uint32_t number)
{
	const json_t *routes = at(json_array_get(at(told, "rows", NULL), row), "routes", NULL);
	const json_t *cell = json_array_get(routes, layer);

	cr_assert_eq(json_array_size(cell), ENGINE_TOP_K);
	for (uint32_t k = 0; k < ENGINE_TOP_K; k++)
		cr_expect_eq(json_integer_value(json_array_get(cell, k)),
			     engine_id((uint64_t)step, layer, number, k), "row %u, layer %u", row,
			     layer);
}

Test(serve_routes_told, a_request_that_runs_and_one_that_ended_are_told_by_position_and_layer)
{
	int64_t handle, step;
	json_t *told;

	serve_stage_serve((const char *[]){NULL});
	handle = begin("one");
	step = engine_step(&stage.tool.engine, handle, 4);
	told = await_rows("/v1/requests/one/routes", 4);
	cr_expect_str_eq(json_string_value(at(told, "state", NULL)), "running");
	for (uint32_t i = 0; i < 4 * ENGINE_LAYERS; i++)
		expect_cell(told, i / ENGINE_LAYERS, i % ENGINE_LAYERS, step, i / ENGINE_LAYERS);
	cr_expect_eq(json_integer_value(at(at(told, "coverage", NULL), "rows_known", NULL)), 4);
	json_decref(told);
	told = await("/v1/requests/one/routes?positions=2:3&layers=4:5", 200);
	cr_assert_eq(json_array_size(at(told, "rows", NULL)), 1);
	cr_expect_eq(json_array_size(at(told, "layers", NULL)), 1);
	cr_expect_eq(
		json_integer_value(json_array_get(
			json_array_get(
				at(json_array_get(at(told, "rows", NULL), 0), "routes", NULL), 0),
			0)),
		engine_id((uint64_t)step, 4 - ENGINE_FIRST_LAYER, 2, 0));
	json_decref(told);
	r3ring_request_end(stage.tool.engine.producer, handle, R3RING_END_FINISHED, 0, 5);
	for (int tries = 0; tries < TRIES; tries++) {
		told = await("/v1/requests/one/routes", 200);
		if (strcmp(json_string_value(at(told, "state", NULL)), "ended") == 0)
			break;
		json_decref(told);
		poll(NULL, 0, 10);
	}
	cr_expect_eq(json_integer_value(at(told, "tokens", NULL)), 5);
	expect_cell(told, 3, 1, step, 3);
	cr_expect_str_eq(json_string_value(json_array_get(
				 at(json_array_get(at(told, "rows", NULL), 4), "routes", NULL), 0)),
			 "not_fed");
	json_decref(told);
}

Test(serve_routes_told, a_layer_that_never_came_is_missing_with_its_cause)
{
	int64_t handle, step;
	json_t *told, *expected;

	serve_stage_serve((const char *[]){NULL});
	handle = begin("part");
	step = engine_begin(&stage.tool.engine, handle, 2);
	engine_capture(&stage.tool.engine, step, 0, 2);
	engine_end(&stage.tool.engine);
	told = await_rows("/v1/requests/part/routes", 2);
	expect_cell(told, 1, 0, step, 1);
	expected = json_loads("{\"not_captured\": 2}", 0, NULL);
	cr_expect(json_equal(at(at(told, "coverage", NULL), "rows_missing", NULL), expected));
	json_decref(expected);
	for (uint32_t layer = 1; layer < ENGINE_LAYERS; layer++)
		cr_expect_str_eq(
			json_string_value(json_array_get(
				at(json_array_get(at(told, "rows", NULL), 0), "routes", NULL),
				layer)),
			"not_captured");
	json_decref(told);
}

/* ---- whose id is it ----------------------------------------------------------- */

Test(serve_routes_told, an_id_of_any_bytes_is_found_where_the_list_says)
{
	static const char *const ids[] = {"\xff\xfe", "a/b/routes", "<b>&\"'",
					  "100%",     "..\n?#",     NULL};
	json_t *list, *told;
	size_t i;
	json_t *entry;

	serve_stage_serve((const char *[]){NULL});
	for (const char *const *id = ids; *id; id++)
		engine_step(&stage.tool.engine, begin(*id), 1);
	json_decref(await("/v1/requests/%2E%2E%0A%3F%23/routes", 200));
	list = await("/v1/requests", 200);
	cr_assert_eq(json_array_size(at(list, "requests", NULL)), 5);
	json_array_foreach (at(list, "requests", NULL), i, entry) {
		told = await_rows(json_string_value(at(entry, "routes", NULL)), 1);
		cr_expect(json_equal(at(told, "request", NULL), at(entry, "request", NULL)));
		cr_expect_eq(json_integer_value(at(told, "tokens", NULL)), 1);
		json_decref(told);
	}
	cr_expect_str_eq(json_string_value(at(json_array_get(at(list, "requests", NULL), 4),
					      "request", NULL)),
			 "\xef\xbf\xbd\xef\xbf\xbd");
	json_decref(list);
}

/* ---- memory --------------------------------------------------------------------- */

#define BOUND 65536
#define MANY 600

static void expect_bound(const json_t *list)
{
	const json_t *kept = json_array_get(at(list, "kept", NULL), 0);

	cr_expect_eq(json_integer_value(at(kept, "bytes_max", NULL)), BOUND);
	cr_expect_leq(json_integer_value(at(kept, "bytes", NULL)), BOUND);
}

static const char *message_of(const json_t *told)
{
	return json_string_value(at(told, "error", "message"));
}

Test(serve_routes_told, memory_is_bounded_and_what_had_to_go_says_so)
{
	static int64_t handles[MANY];
	json_t *told, *list;
	char id[32], path[64];

	serve_stage_serve((const char *[]){"--routes-memory", "64K", NULL});
	for (uint32_t i = 0; i < MANY; i++) {
		snprintf(id, sizeof(id), "r%u", i);
		handles[i] = begin(id);
		engine_step(&stage.tool.engine, handles[i], 4);
	}
	snprintf(path, sizeof(path), "/v1/requests/r%u/routes", MANY - 1);
	json_decref(await(path, 200));
	told = await("/v1/requests/r0/routes", 410);
	cr_expect(strstr(message_of(told), "evicted"), "%s", message_of(told));
	json_decref(told);
	list = await("/v1/requests", 200);
	expect_bound(list);
	cr_expect_gt(
		json_integer_value(at(json_array_get(at(list, "kept", NULL), 0), "evicted", NULL)),
		0);
	json_decref(list);
	/* Those that live give way to none that has ended, which go the oldest first. */
	for (uint32_t i = MANY - 20; i < MANY; i++) {
		r3ring_request_end(stage.tool.engine.producer, handles[i], R3RING_END_FINISHED, 0,
				   5);
		handles[i] = 0;
	}
	for (uint32_t i = 0; i < MANY; i++) {
		snprintf(id, sizeof(id), "s%u", i);
		handles[i] = begin(id);
		engine_step(&stage.tool.engine, handles[i], 4);
	}
	snprintf(path, sizeof(path), "/v1/requests/r%u/routes", MANY - 20);
	told = await(path, 410);
	cr_expect(strstr(message_of(told), "it ended"), "%s", message_of(told));
	json_decref(told);
	list = await("/v1/requests", 200);
	expect_bound(list);
	json_decref(list);
	/* Another one under the id of one that had ended lacks nothing. */
	snprintf(id, sizeof(id), "r%u", MANY - 20);
	engine_step(&stage.tool.engine, begin(id), 4);
	told = await(path, 200);
	cr_expect(json_is_false(at(told, "evicted_before", NULL)));
	json_decref(told);
}

Test(serve_routes_told, of_those_that_ended_the_newest_1024_are_kept)
{
	json_t *told;
	char id[32];

	serve_stage_serve((const char *[]){NULL});
	for (uint32_t i = 0; i < 1026; i++) {
		int64_t handle;

		snprintf(id, sizeof(id), "r%u", i);
		handle = begin(id);
		engine_step(&stage.tool.engine, handle, 4);
		r3ring_request_end(stage.tool.engine.producer, handle, R3RING_END_FINISHED, 0, 5);
	}
	engine_step(&stage.tool.engine, 0, 1);
	told = await("/v1/requests/r1/routes", 410);
	cr_expect(strstr(message_of(told), "it ended"), "%s", message_of(told));
	json_decref(told);
	json_decref(await("/v1/requests/r2/routes", 200));
	told = await("/v1/requests?limit=5", 200);
	cr_expect_eq(json_array_size(at(told, "requests", NULL)), 5);
	json_decref(told);
}

Test(serve_routes_told, without_memory_for_them_no_routes_are_kept_and_the_rest_is_told)
{
	json_t *told;

	serve_stage_serve((const char *[]){"--routes-memory", "0", NULL});
	engine_step(&stage.tool.engine, begin("one"), 4);
	serve_stage_await(1);
	told = await("/v1/requests/one/routes", 404);
	cr_expect(strstr(message_of(told), "--routes-memory"));
	json_decref(told);
	json_decref(await("/v1/signature?request=one", 200));
	told = await("/v1/requests", 200);
	cr_expect_eq(json_array_size(at(told, "kept", NULL)), 0);
	json_decref(told);
}

/* ---- the recording ----------------------------------------------------------------- */

static struct recording recording;

/* Rows before the recording's first are the prompt's, which is not in it. */
static uint32_t expect_recorded(const json_t *told, const struct recording_request *request)
{
	const json_t *rows = at(told, "rows", NULL);
	uint32_t known = 0;
	size_t i;
	json_t *row;

	json_array_foreach (rows, i, row) {
		uint32_t position = (uint32_t)json_integer_value(at(row, "position", NULL));
		uint32_t layer;
		json_t *cell;
		size_t k;
		json_t *id;

		if (position < request->prompt_tokens) {
			cr_assert_str_eq(
				json_string_value(json_array_get(at(row, "routes", NULL), 0)),
				"external");
			continue;
		}
		if (position - request->prompt_tokens == request->rows)
			continue;
		json_array_foreach (at(row, "routes", NULL), layer, cell) {
			const uint16_t *ids = recording_ids(
				&recording, request->first_row + position - request->prompt_tokens,
				layer);

			cr_assert_eq(json_array_size(cell), recording.top_k,
				     "%s: position %u, layer %u", request->id, position, layer);
			json_array_foreach (cell, k, id)
				cr_assert_eq(json_integer_value(id), ids[k],
					     "%s: position %u, layer %u", request->id, position,
					     layer);
		}
		known++;
	}
	return known;
}

/* All of its pages. */
static void expect_request(const char *path, const struct recording_request *request)
{
	uint32_t known = 0, from = 0, tokens = 1;
	char page[256];

	while (from < tokens) {
		json_t *told;

		snprintf(page, sizeof(page), "%s?positions=%u:%u", path, from, from + 100);
		told = await(page, 200);
		tokens = (uint32_t)json_integer_value(at(told, "tokens", NULL));
		known += expect_recorded(told, request);
		cr_assert_gt(json_integer_value(at(told, "to", NULL)), from);
		from = (uint32_t)json_integer_value(at(told, "to", NULL));
		json_decref(told);
	}
	cr_expect_eq(tokens, request->prompt_tokens + request->rows + 1, "%s", request->id);
	cr_expect_eq(known, request->rows, "%s", request->id);
}

static void expect_all(const json_t *list)
{
	uint32_t ended = 0;
	size_t i;
	json_t *entry;

	json_array_foreach (at(list, "requests", NULL), i, entry) {
		const char *id = json_string_value(at(entry, "request", NULL));

		if (strcmp(json_string_value(at(entry, "state", NULL)), "ended") != 0)
			continue;
		expect_request(json_string_value(at(entry, "routes", NULL)),
			       recording_find(&recording, id));
		ended++;
	}
	cr_expect_eq(ended, recording.request_count);
}

/* Until all that it has run have ended. */
static json_t *await_ended(const char *instance, uint32_t count)
{
	char path[128];

	snprintf(path, sizeof(path), "/v1/requests?limit=1000&instance=%s", instance);
	for (int tries = 0; tries < TRIES; tries++) {
		json_t *list = await(path, 200);

		if (json_integer_value(at(json_array_get(at(list, "kept", NULL), 0), "ended",
					  NULL)) == count) {
			json_decref(list); /* its entries may be older than its count */
			return await(path, 200);
		}
		json_decref(list);
		poll(NULL, 0, 10);
	}
	cr_assert_fail("not all have ended");
	return NULL;
}

Test(serve_routes_told, the_routes_of_each_request_of_the_recording_are_those_of_its_file)
{
	struct command produce;
	char instance[64];
	json_t *list;

	if (!recording_is_there())
		cr_skip_test(RECORDING_ABSENT);
	recording_read(&recording);
	snprintf(instance, sizeof(instance), "%s", engine_instance(stage.tool.daemon.dir, "trace"));
	serve_stage_serve((const char *[]){"--instance", instance, NULL});
	command_start(&produce, stage.tool.daemon.dir,
		      (const char *[]){"produce", "--instance", instance, "--trace",
				       RECORDING_HEADER, "--batch", "64", "--rate", "250", NULL});
	cr_assert_eq(command_wait(&produce), 0, "%s", produce.err);
	list = await_ended(instance, recording.request_count);
	expect_all(list);
	json_decref(list);
	command_free(&produce);
	recording_free(&recording);
}
