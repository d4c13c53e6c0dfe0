/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "tests/system/serve_stage.h"

struct serve_stage stage;

const char *serve_stage_instance(void)
{
	return engine_instance(stage.tool.daemon.dir, "prod");
}

void serve_stage_serve(const char *const *more)
{
	const char *args[24] = {"serve", "--instance", NULL, "--unix", stage.path};
	int count = 5;

	args[2] = serve_stage_instance();
	for (; *more; more++)
		args[count++] = *more;
	command_start(&stage.server, stage.tool.daemon.dir, args);
	cr_assert(command_tells(&stage.server, "listening on"));
}

void serve_stage_start(void)
{
	tool_stage_start(&stage.tool, NULL);
	tool_stage_open(&stage.tool, "prod");
	snprintf(stage.path, sizeof(stage.path), "%s/serve.sock", stage.tool.daemon.dir);
}

void serve_stage_stop(void)
{
	command_free(&stage.server);
	tool_stage_close(&stage.tool);
}

struct http_reply ask(const char *method, const char *what, const char *body)
{
	return http_ask(http_dial_path(stage.path), method, what, body, stage.token);
}

void expect_status(const char *method, const char *what, const char *body, int status)
{
	struct http_reply reply = ask(method, what, body);

	cr_expect_eq(reply.status, status, "%s %s %s: %d", method, what, body ? body : "",
		     reply.status);
	json_decref(reply.json);
}

const json_t *at(const json_t *json, const char *first, const char *second)
{
	const json_t *found = json_object_get(json, first);

	return second ? json_object_get(found, second) : found;
}

/* Steps that the load is of; 0 before there are any. */
static json_int_t steps_seen(void)
{
	struct http_reply reply = ask("GET", "/v1/load", NULL);
	json_int_t steps = reply.status == 200 ? json_integer_value(at(reply.json, "steps", NULL))
					       : 0;

	json_decref(reply.json);
	return steps;
}

void serve_stage_await(json_int_t steps)
{
	for (int tries = 0; steps_seen() < steps; tries++) {
		cr_assert_lt(tries, 6000, "the server does not see the engine's steps");
		poll(NULL, 0, 10);
	}
}

void serve_stage_run(unsigned int steps)
{
	serve_stage_serve((const char *[]){"--gpus", "2", "--capacity", "100", NULL});
	for (unsigned int i = 0; i < steps; i++)
		engine_step(&stage.tool.engine, 0, 4);
	serve_stage_await((json_int_t)steps);
}

/* ---- what becomes --------------------------------------------------------------- */

bool becomes(const char *what, bool (*is)(const json_t *answer, const void *wanted),
	     const void *wanted)
{
	for (int tries = 0; tries < 6000; tries++) {
		struct http_reply reply = ask("GET", what, NULL);
		bool found = reply.status == 200 && is(reply.json, wanted);

		json_decref(reply.json);
		if (found)
			return true;
		poll(NULL, 0, 10);
	}
	return false;
}

bool is_in_state(const json_t *answer, const void *wanted)
{
	const json_t *instance = json_array_get(at(answer, "instances", NULL), 0);
	const char *state = json_string_value(at(instance, "state", NULL));

	return state && strcmp(state, wanted) == 0;
}

bool is_all_there_is(const json_t *answer, const void *wanted)
{
	const json_t *list = at(answer, "reservations", NULL);
	const char *key = json_string_value(at(json_array_get(list, 0), "key", NULL));

	return json_array_size(list) == 1 && strcmp(key, wanted) == 0;
}
