/* SPDX-License-Identifier: Apache-2.0 */
/* Whatever the service answers is as docs/openapi.json describes it. */
#include <criterion/criterion.h>

#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "tests/support/json_schema.h"
#include "tests/system/serve_stage.h"

static json_t *document;
static char argument[256]; /* what stands in place of a path's {parameters} */

static void start(void)
{
	struct http_reply reply;

	serve_stage_start();
	serve_stage_run(5);
	reply = ask("GET", "/v1/openapi.json", NULL);
	document = reply.json;
	cr_assert_eq(reply.status, 200);
}

static void stop(void)
{
	json_decref(document);
	serve_stage_stop();
}

TestSuite(serve_answers, .init = start, .fini = stop);

static const json_t *schema_of(const char *path, const char *method, int status)
{
	const json_t *operation = at(json_object_get(document, "paths"), path, method);
	const json_t *responses = json_object_get(operation, "responses"), *response;
	const char *reference;
	char code[16];

	snprintf(code, sizeof(code), "%d", status);
	response = json_object_get(responses, code);
	if (!response)
		response = json_object_get(responses, "default");
	reference = json_string_value(json_object_get(response, "$ref"));
	if (reference)
		response = json_schema_find(document, reference);
	return at(at(response, "content", "application/json"), "schema", NULL);
}

static void fill(const char *path, char filled[512])
{
	size_t fixed = strcspn(path, "{?");
	const char *last = strrchr(path, '}');

	if (last)
		snprintf(filled, 512, "%.*s%s%s", (int)fixed, path, argument, last + 1);
	else
		snprintf(filled, 512, "%s", path);
}

static struct http_reply expect_described(const char *method, const char *path, const char *query,
					  const char *body, int status)
{
	char what[640], filled[512], verb[8], why[256] = "";
	struct http_reply reply;

	fill(path, filled);
	snprintf(what, sizeof(what), "%s%s", filled, query);
	for (size_t i = 0; i <= strlen(method); i++)
		verb[i] = method[i] ? (char)(method[i] - 'A' + 'a') : '\0';
	reply = ask(method, what, body);
	cr_expect_eq(reply.status, status, "%s %s %s: %d", method, what, body ? body : "",
		     reply.status);
	cr_expect(json_schema_holds(document, schema_of(path, verb, reply.status), reply.json, why),
		  "%s %s: %d: %s", method, what, reply.status, why);
	return reply;
}

static void expect_as_described(const char *method, const char *path, const char *query,
				const char *body, int status)
{
	json_decref(expect_described(method, path, query, body, status).json);
}

#define ONE "/v1/reservations/{instance}/{id}"

Test(serve_answers, what_is_told_of_engines_is_as_described)
{
	expect_as_described("GET", "/v1", "", NULL, 200);
	expect_as_described("GET", "/v1/channels", "", NULL, 200);
	expect_as_described("GET", "/v1/load", "", NULL, 200);
	expect_as_described("GET", "/v1/load", "?over=average&counts=1", NULL, 200);
	expect_as_described("GET", "/v1/load", "?epoch=9", NULL, 503);
	expect_as_described("GET", "/v1/plan", "?gpus=4&replicas=264", NULL, 200);
	expect_as_described("GET", "/v1/plan", "?gpus=3&replicas=264", NULL, 200);
	expect_as_described("GET", "/v1/plan", "?gpus=4", NULL, 400);
	expect_as_described("POST", "/v1/plan", "", "{\"gpus\": 4, \"replicas\": 264}", 200);
	expect_as_described("GET", "/v1/load", "?over=never", NULL, 400);
}

/* The newest second of the past; waits for one. */
static json_int_t newest_frame(void)
{
	for (int tries = 0; tries < 6000; tries++) {
		struct http_reply reply = ask("GET", "/v1/history", NULL);
		const json_t *frames = at(reply.json, "frames", NULL);
		json_int_t id = json_integer_value(
			at(json_array_get(frames, json_array_size(frames) - 1), "id", NULL));

		json_decref(reply.json);
		if (id)
			return id;
		poll(NULL, 0, 10);
	}
	cr_assert_fail("nothing is kept of the past");
	return 0;
}

Test(serve_answers, what_is_told_of_the_past_is_as_described)
{
	snprintf(argument, sizeof(argument), "%lld", (long long)newest_frame());
	expect_as_described("GET", "/v1/history", "", NULL, 200);
	expect_as_described("GET", "/v1/history/{frame}", "", NULL, 200);
	snprintf(argument, sizeof(argument), "1000000");
	expect_as_described("GET", "/v1/history/{frame}", "", NULL, 404);
}

/* The routes are read by a reader of their own. */
static void await_routes(const char *path)
{
	struct http_reply reply = ask("GET", path, NULL);

	for (int tries = 0; reply.status != 200; tries++) {
		cr_assert_lt(tries, 6000, "%s: %d", path, reply.status);
		json_decref(reply.json);
		poll(NULL, 0, 10);
		reply = ask("GET", path, NULL);
	}
	json_decref(reply.json);
}

Test(serve_answers, what_is_told_of_requests_and_reservations_is_as_described)
{
	const struct r3ring_request request = {
		.size = sizeof(request), .id = "r", .prompt_tokens = 2};
	int64_t handle = r3ring_request_begin(stage.tool.engine.producer, &request);
	struct http_reply reply;

	engine_step(&stage.tool.engine, handle, 4);
	serve_stage_await(6);
	expect_as_described("GET", "/v1/signature", "?request=r", NULL, 200);
	expect_as_described("GET", "/v1/signature", "?request=s", NULL, 404);
	snprintf(argument, sizeof(argument), "r");
	await_routes("/v1/requests/r/routes");
	expect_as_described("GET", "/v1/requests", "", NULL, 200);
	expect_as_described("GET", "/v1/requests", "?limit=0", NULL, 400);
	expect_as_described("GET", "/v1/requests/{id}/routes", "", NULL, 200);
	expect_as_described("GET", "/v1/requests/{id}/routes", "?positions=1:2&layers=4:6", NULL,
			    200);
	expect_as_described("GET", "/v1/requests/{id}/routes", "?positions=2:1", NULL, 400);
	expect_as_described("GET", "/v1/requests/{id}/routes", "?layers=a:", NULL, 400);
	expect_as_described("GET", "/v1/requests/{id}/routes", "?instance=other", NULL, 404);
	snprintf(argument, sizeof(argument), "s");
	expect_as_described("GET", "/v1/requests/{id}/routes", "", NULL, 404);
	expect_as_described("POST", "/v1/score", "", "{\"tokens\": 1}", 200);
	expect_as_described("POST", "/v1/score", "", "{\"tokens\": 0}", 400);
	expect_as_described("POST", "/v1/reservations", "", "{\"key\": \"a\", \"tokens\": 1000}",
			    409);
	reply = expect_described("POST", "/v1/reservations", "", "{\"key\": \"a\"}", 201);
	snprintf(argument, sizeof(argument), "%s",
		 json_string_value(at(reply.json, "reservation", NULL)));
	json_decref(reply.json);
	expect_as_described("POST", "/v1/reservations", "", "{\"key\": \"a\"}", 200);
	expect_as_described("POST", "/v1/reservations", "", "{\"key\": \"a\", \"tokens\": 2}", 409);
	expect_as_described("PATCH", ONE, "", "{\"ttl_ms\": 60000}", 200);
	expect_as_described("GET", "/v1/reservations", "?limit=1", NULL, 200);
	expect_as_described("PATCH", ONE, "", "{\"commit\": true}", 200);
	expect_as_described("PATCH", ONE, "", "{\"tokens\": 2}", 200);
	expect_as_described("PATCH", ONE, "", "{\"tokens\": 2, \"commit\": true}", 200);
	expect_as_described("PATCH", ONE, "", "{}", 400);
	expect_as_described("DELETE", ONE, "", NULL, 200);
	expect_as_described("DELETE", ONE, "", NULL, 404);
}
