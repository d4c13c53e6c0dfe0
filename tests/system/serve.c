/* SPDX-License-Identifier: Apache-2.0 */
/* r3ring serve: a scheduler's questions, over real sockets, of an engine that really runs. */
#include <criterion/criterion.h>

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/system/serve_stage.h"

TestSuite(serve, .init = serve_stage_start, .fini = serve_stage_stop);

/* ---- load ----------------------------------------------------------------- */

/* Worked out again by the rule that the engine makes its ids by. */
Test(serve, the_load_that_is_told_is_what_the_engine_ran)
{
	enum { STEPS = 5, ROWS = 4 };
	struct http_reply reply;
	const json_t *layers, *layer;
	size_t index;

	serve_stage_run(STEPS);
	reply = ask("GET", "/v1/load?counts=1", NULL);
	cr_assert_eq(reply.status, 200);
	layers = at(reply.json, "layers", NULL);
	cr_assert_gt(json_array_size(layers), 0);
	json_array_foreach ((json_t *)(uintptr_t)layers, index, layer) {
		json_int_t top_k = json_integer_value(at(reply.json, "top_k", NULL));
		const json_t *counts = at(layer, "counts", NULL);
		double expected[1024] = {0};

		cr_assert_leq(json_array_size(counts), 1024);
		for (uint64_t step = 1; step <= STEPS; step++) {
			for (uint32_t i = 0; i < ROWS * (uint32_t)top_k; i++)
				expected[engine_id(step, (uint32_t)index, i / (uint32_t)top_k,
						   i % (uint32_t)top_k)]++;
		}
		for (size_t expert = 0; expert < json_array_size(counts); expert++)
			cr_expect_eq(json_number_value(json_array_get(counts, expert)),
				     expected[expert]);
	}
	json_decref(reply.json);
}

Test(serve, an_engine_that_is_not_there_yet_is_waited_for)
{
	struct http_reply reply;

	serve_stage_serve((const char *[]){"--instance", "later", NULL});
	reply = ask("GET", "/v1/load?instance=later", NULL);
	cr_expect_eq(reply.status, 503);
	json_decref(reply.json);
	reply = ask("GET", "/v1/load", NULL);
	cr_expect_eq(reply.status, 400, "there are two");
	json_decref(reply.json);
	reply = ask("GET", "/v1/load?instance=never", NULL);
	cr_expect_eq(reply.status, 404);
	json_decref(reply.json);
	reply = ask("GET", "/v1/channels", NULL);
	cr_expect_eq(reply.status, 200);
	cr_expect_eq(json_array_size(at(reply.json, "instances", NULL)), 2);
	json_decref(reply.json);
}

/* ---- signatures ------------------------------------------------------------ */

/* The engine runs so many rows of a request whose prompt had two tokens. */
static void run_request(const char *id, uint32_t rows)
{
	const struct r3ring_request request = {
		.size = sizeof(request), .id = id, .prompt_tokens = 2};
	int64_t handle = r3ring_request_begin(stage.tool.engine.producer, &request);

	cr_assert_gt(handle, 0);
	engine_step(&stage.tool.engine, handle, rows);
}

static bool signature_comes(const char *id, json_int_t rows)
{
	char what[128];

	snprintf(what, sizeof(what), "/v1/signature?request=%s", id);
	for (int tries = 0; tries < 6000; tries++) {
		struct http_reply reply = ask("GET", what, NULL);
		bool there =
			reply.status == 200 &&
			json_integer_value(at(reply.json, "prefill_rows", NULL)) +
					json_integer_value(at(reply.json, "decode_rows", NULL)) >=
				rows;

		json_decref(reply.json);
		if (there)
			return true;
		poll(NULL, 0, 10);
	}
	return false;
}

/* By the rule that the engine makes its ids by: one row, the first of step 2. */
Test(serve, a_requests_signature_counts_the_experts_its_tokens_went_to)
{
	struct http_reply reply;
	const json_t *layer;
	json_int_t visits = 0;
	size_t index;

	serve_stage_run(1);
	run_request("req-7", 1);
	cr_assert(signature_comes("req-7", 1));
	reply = ask("GET", "/v1/signature?request=req-7", NULL);
	json_array_foreach ((json_t *)(uintptr_t)at(reply.json, "layers", NULL), index, layer) {
		const json_t *prefill = at(layer, "prefill", NULL);

		cr_expect_geq(json_integer_value(
				      json_array_get(prefill, engine_id(2, (uint32_t)index, 0, 0))),
			      1);
		for (size_t expert = 0; expert < json_array_size(prefill); expert++)
			visits += json_integer_value(json_array_get(prefill, expert));
	}
	cr_expect_eq(visits, ENGINE_LAYERS * ENGINE_TOP_K);
	json_decref(reply.json);
	reply = ask("GET", "/v1/signature?request=nobody", NULL);
	cr_expect_eq(reply.status, 404);
	json_decref(reply.json);
}

static void expect_predictor(const char *body, int status, const char *predictor)
{
	struct http_reply reply = ask("POST", "/v1/reservations", body);
	const char *used = json_string_value(at(reply.json, "predictor", NULL));

	cr_expect_eq(reply.status, status, "%s: %d", body, reply.status);
	cr_expect(!predictor || (used && strcmp(used, predictor) == 0), "%s: %s", body,
		  used ? used : "none");
	json_decref(reply.json);
}

Test(serve, a_request_that_ran_is_foretold_by_its_own_routes)
{
	serve_stage_run(1);
	run_request("req-7", 1);
	cr_assert(signature_comes("req-7", 1));
	expect_predictor("{\"key\": \"req-7\"}", 201, "own");
	expect_predictor("{\"key\": \"again\", \"request\": \"req-7\"}", 201, "own");
	expect_predictor("{\"key\": \"other\"}", 201, "uniform");
	expect_predictor("{\"key\": \"all\", \"predictor\": \"global\"}", 201, "global");
	expect_predictor("{\"key\": \"some\", \"predictor\": \"uniform\"}", 201, "uniform");
	expect_predictor("{\"key\": \"none\", \"predictor\": \"own\"}", 404, NULL);
}

/* How many requests have finished, as far as the server knows. */
static json_int_t finished_requests(void)
{
	struct http_reply reply = ask("GET", "/v1", NULL);
	json_int_t count = json_integer_value(at(reply.json, "finished", "requests"));

	json_decref(reply.json);
	return count;
}

static void finish_request(const char *id)
{
	const struct r3ring_request request = {
		.size = sizeof(request), .id = id, .prompt_tokens = 2};
	int64_t handle = r3ring_request_begin(stage.tool.engine.producer, &request);
	json_int_t before = finished_requests();

	cr_assert_gt(handle, 0);
	engine_step(&stage.tool.engine, handle, 2);
	r3ring_request_end(stage.tool.engine.producer, handle, R3RING_END_FINISHED, 0, 3);
	engine_step(&stage.tool.engine, 0, 1);
	for (int tries = 0; finished_requests() == before; tries++) {
		cr_assert_lt(tries, 6000, "nobody keeps what %s did", id);
		poll(NULL, 0, 10);
	}
}

Test(serve, a_request_without_routes_is_foretold_by_its_prefix_then_its_class_else_uniformly)
{
	serve_stage_run(1);
	expect_predictor("{\"key\": \"a\", \"class\": \"code\", \"prefix_key\": \"p1\"}", 201,
			 "uniform");
	finish_request("a");
	expect_predictor("{\"key\": \"b\", \"class\": \"code\"}", 201, "class");
	expect_predictor("{\"key\": \"c\", \"class\": \"code\", \"prefix_key\": \"p1\"}", 201,
			 "prefix");
	expect_predictor("{\"key\": \"d\", \"class\": \"prose\", \"prefix_key\": \"p2\"}", 201,
			 "uniform");
	expect_predictor("{\"key\": \"e\", \"class\": \"prose\", \"predictor\": \"class\"}", 404,
			 NULL);
	expect_predictor("{\"key\": \"f\", \"class\": \"\"}", 400, NULL);
}

Test(serve, a_running_request_is_foretold_by_finished_ones_like_it)
{
	/* So many that some went where one of a's did. */
	enum { ROWS = 64 };

	serve_stage_run(1);
	finish_request("a");
	run_request("b", ROWS);
	cr_assert(signature_comes("b", ROWS));
	expect_predictor("{\"key\": \"b\", \"predictor\": \"similar\"}", 201, "similar");
	expect_predictor("{\"key\": \"c\", \"predictor\": \"similar\"}", 404, NULL);
}

/* Waits until room is known of so many instances; a new reference. */
static json_t *ranking_of(size_t known)
{
	for (int tries = 0; tries < 6000; tries++) {
		struct http_reply reply = ask("POST", "/v1/score", "{\"tokens\": 1}");
		const json_t *ranked = at(reply.json, "ranked", NULL), *one;
		size_t i, found = 0;

		json_array_foreach ((json_t *)(uintptr_t)ranked, i, one)
			found += json_is_true(at(one, "fits", NULL));
		if (found == known)
			return reply.json;
		json_decref(reply.json);
		poll(NULL, 0, 10);
	}
	cr_assert_fail("room is not known of %zu instances", known);
	return NULL;
}

/* All that is known of the first is that it has promised something; of the second, nothing. */
Test(serve, instances_are_ranked_for_a_request_by_the_room_they_have)
{
	struct engine other = {0};
	struct r3ring_error err;
	char body[160], first[64], spare[80];
	const json_t *ranked;
	json_t *ranking;

	snprintf(first, sizeof(first), "%s", serve_stage_instance());
	snprintf(spare, sizeof(spare), "%s-spare", first);
	cr_assert_eq(engine_open(&other, stage.tool.daemon.dir, spare, 64, &err), 0, "%s",
		     err.text);
	serve_stage_serve((const char *[]){"--gpus", "2", "--capacity", "100", "--instance",
					   "later", "--instance", spare, NULL});
	engine_step(&stage.tool.engine, 0, 4);
	engine_step(&other, 0, 4);
	json_decref(ranking_of(2));
	snprintf(body, sizeof(body), "{\"key\": \"a\", \"instance\": \"%s\"}", first);
	expect_status("POST", "/v1/reservations", body, 201);
	ranking = ranking_of(2);
	ranked = at(ranking, "ranked", NULL);
	cr_assert_eq(json_array_size(ranked), 3);
	/* A token has six visits, three of them a GPU's. */
	cr_expect_str_eq(json_string_value(at(json_array_get(ranked, 0), "instance", NULL)), spare);
	cr_expect_float_eq(json_number_value(at(json_array_get(ranked, 0), "tightest", "margin")),
			   97, 1e-9);
	cr_expect_str_eq(json_string_value(at(json_array_get(ranked, 1), "instance", NULL)), first);
	cr_expect_float_eq(json_number_value(at(json_array_get(ranked, 1), "tightest", "margin")),
			   94, 1e-9);
	cr_expect_str_eq(json_string_value(at(json_array_get(ranked, 2), "instance", NULL)),
			 "later");
	cr_expect(json_is_null(at(json_array_get(ranked, 2), "fits", NULL)));
	json_decref(ranking);
	engine_close(&other);
}

Test(serve, what_is_asked_wrongly_is_refused_by_name)
{
	const struct {
		const char *method, *what, *body;
		int status;
		const char *text;
	} wrong[] = {
		{"POST", "/v1/reservations", NULL, 400, "body"},
		{"POST", "/v1/reservations", "{}", 400, "key"},
		{"POST", "/v1/reservations", "{\"key\": \"\"}", 400, "key"},
		{"POST", "/v1/reservations", "{\"key\": \"a\\u0000b\"}", 400, "u0000"},
		{"POST", "/v1/reservations", "{\"key\": \"a\", \"token\": 1}", 400, "\"token\""},
		{"POST", "/v1/reservations", "{\"key\": \"a\", \"tokens\": 0}", 400, "tokens"},
		{"POST", "/v1/reservations", "{\"key\": \"a\", \"tokens\": 1.5}", 400, "tokens"},
		{"POST", "/v1/reservations", "{\"key\": \"a\", \"ttl_ms\": -1}", 400, "ttl_ms"},
		{"POST", "/v1/reservations", "{\"key\": \"a\", \"predictor\": \"x\"}", 400,
		 "predictor"},
		{"POST", "/v1/reservations", "{\"key\": \"a\", \"instance\": \"x\"}", 404, "x"},
		{"GET", "/v1/reservations?limit=0", NULL, 400, "limit"},
		{"GET", "/v1/reservations?after=-1", NULL, 400, "after"},
		{"PATCH", "/v1/reservations/x", "{\"commit\": true}", 404, "INSTANCE/ID"},
		{"DELETE", "/v1/reservations/x/1", NULL, 404, "x"},
		{"POST", "/v1/score", "{\"instance\": \"x\"}", 400, "instance"},
		{"POST", "/v1/score", "tokens=1", 400, "the body is no JSON: line 1"},
		{"POST", "/v1/score", "[1]", 400, "no JSON object"},
		{"GET", "/v1/signature", NULL, 400, "request"},
		{"GET", "/v1/load?instance=%ff%0a", NULL, 404, "??"},
		{"GET", "/v1/load?instance=%ff%00", NULL, 400, "zero byte"},
		{"GET", "/v1/load?count=1", NULL, 400, "no parameter count"},
		{"GET", "/v1/load?counts=1&counts=1", NULL, 400, "counts is there twice"},
		{"GET", "/v1/load?over=never", NULL, 400, "over"},
		{"GET", "/v1/load?counts=2", NULL, 400, "counts"},
		{"GET", "/v2", NULL, 404, "/v2"},
	};

	struct http_reply reply;

	serve_stage_run(1);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		const char *text;

		reply = ask(wrong[i].method, wrong[i].what, wrong[i].body);
		text = json_string_value(at(reply.json, "error", "message"));

		cr_expect_eq(reply.status, wrong[i].status, "%s %s: %d", wrong[i].what,
			     wrong[i].body ? wrong[i].body : "", reply.status);
		cr_expect(text && strstr(text, wrong[i].text), "\"%s\" is not in: %s",
			  wrong[i].text, text ? text : "");
		json_decref(reply.json);
	}
	reply = ask("GET", "/v1/reservations", NULL);
	cr_expect_eq(json_array_size(at(reply.json, "reservations", NULL)), 0);
	json_decref(reply.json);
}

/* A text of that many bytes in a field of that name, behind others. */
static const char *with_text(const char *others, const char *name, int bytes)
{
	static char body[600];

	snprintf(body, sizeof(body), "{%s\"%s\": \"%0*d\"}", others, name, bytes, 1);
	return body;
}

Test(serve, names_of_a_reservation_have_1_to_256_bytes)
{
	static const char *const names[] = {"class", "prefix_key"};
	static const char key[] = "\"key\": \"a\", ";

	serve_stage_run(1);
	expect_status("POST", "/v1/reservations", with_text("", "key", 257), 400);
	for (size_t i = 0; i < 2; i++) {
		expect_status("POST", "/v1/reservations", with_text(key, names[i], 257), 400);
		expect_status("POST", "/v1/score", with_text("", names[i], 257), 400);
		expect_status("POST", "/v1/score", with_text("", names[i], 256), 200);
	}
	expect_status("POST", "/v1/score", "{\"class\": \"\"}", 400);
	expect_status("POST", "/v1/reservations", with_text("", "key", 256), 201);
}

Test(serve, numbers_are_within_their_bounds)
{
	static const struct {
		const char *method, *what, *body;
	} beyond[] = {
		{"POST", "/v1/reservations", "{\"key\": \"a\", \"ttl_ms\": 0}"},
		{"POST", "/v1/reservations", "{\"key\": \"a\", \"ttl_ms\": 3600001}"},
		{"PATCH", "/v1/reservations/x/1", "{\"ttl_ms\": 3600001}"},
		{"POST", "/v1/reservations", "{\"key\": \"a\", \"tokens\": 1048577}"},
		{"POST", "/v1/score", "{\"tokens\": 1048577}"},
		{"POST", "/v1/plan", "{\"gpus\": 0}"},
		{"GET", "/v1/reservations?after=18446744073709551616", NULL},
		{"GET", "/v1/reservations?after=1x", NULL},
		{"GET", "/v1/reservations?after=+1", NULL},
		{"GET", "/v1/load?epoch=99999999999999999999", NULL},
	};

	serve_stage_run(1);
	for (size_t i = 0; i < sizeof(beyond) / sizeof(*beyond); i++)
		expect_status(beyond[i].method, beyond[i].what, beyond[i].body, 400);
}

Test(serve, without_gpus_or_capacity_nothing_can_be_reserved_and_the_remedy_is_named)
{
	struct http_reply reply;

	serve_stage_serve((const char *[]){NULL});
	engine_step(&stage.tool.engine, 0, 4);
	serve_stage_await(1);
	reply = ask("POST", "/v1/reservations", "{\"key\": \"req\"}");
	cr_expect_eq(reply.status, 503);
	cr_expect(strstr(json_string_value(at(reply.json, "error", "message")), "--gpus"));
	json_decref(reply.json);
}

/* ---- starting and ending --------------------------------------------------- */

Test(serve, it_ends_in_good_order_and_takes_its_socket_along)
{
	struct stat status;

	serve_stage_serve((const char *[]){NULL});
	cr_expect_eq(stat(stage.path, &status), 0);
	kill(stage.server.pid, SIGTERM);
	cr_expect_eq(command_wait(&stage.server), 0);
	cr_expect_neq(stat(stage.path, &status), 0);
}

Test(serve, with_a_token_nobody_else_is_answered)
{
	char file[160];
	struct http_reply reply;
	FILE *out;

	snprintf(file, sizeof(file), "%s/token", stage.tool.daemon.dir);
	out = fopen(file, "w");
	cr_assert(out);
	fputs("s3cret\n", out);
	fchmod(fileno(out), 0600);
	fclose(out);
	serve_stage_serve((const char *[]){"--token-file", file, NULL});
	reply = ask("GET", "/v1", NULL);
	cr_expect_eq(reply.status, 401);
	json_decref(reply.json);
	stage.token = "s3cret";
	reply = ask("GET", "/v1", NULL);
	cr_expect_eq(reply.status, 200);
	json_decref(reply.json);
}

Test(serve, what_cannot_be_served_is_refused_at_the_start)
{
	struct command tool = {0};

	cr_expect_eq(tool_stage_tool(&stage.tool, (const char *[]){"serve", NULL}), 2);
	command_free(&stage.tool.tool);
	cr_expect_eq(command_run(&tool, stage.tool.daemon.dir,
				 (const char *[]){"serve", "--instance", "prod", "--listen",
						  "0.0.0.0:0", NULL}),
		     1);
	cr_expect(strstr(tool.err, "--token-file"));
	command_free(&tool);
	cr_expect_eq(command_run(&tool, stage.tool.daemon.dir,
				 (const char *[]){"serve", "--instance", "prod", "--listen",
						  "nowhere", NULL}),
		     2);
	cr_expect(strstr(tool.err, "--listen is ADDR:PORT"), "%s", tool.err);
	command_free(&tool);
	cr_expect_eq(command_run(&tool, stage.tool.daemon.dir,
				 (const char *[]){"serve", "--instance", "prod", "--listen",
						  "192.0.2.1:0", NULL}),
		     1);
	cr_expect(strstr(tool.err, "address of this machine"), "%s", tool.err);
	command_free(&tool);
	cr_expect_eq(command_run(&tool, stage.tool.daemon.dir,
				 (const char *[]){"serve", "--instance", "no/name", NULL}),
		     2);
	cr_expect(strstr(tool.err, "not allowed"));
	command_free(&tool);
}

/* Of a command line with these options, which is refused, what is told of it. */
static void expect_refused(const char *const *more, const char *text)
{
	const char *args[64] = {"serve", "--instance", "prod"};
	struct command tool = {0};

	for (size_t i = 0; more[i]; i++)
		args[3 + i] = more[i];
	cr_expect_eq(command_run(&tool, stage.tool.daemon.dir, args), 2, "%s", text);
	cr_expect(strstr(tool.err, text), "\"%s\" is not in: %s", text, tool.err);
	command_free(&tool);
}

Test(serve, what_an_option_cannot_be_is_refused_by_name)
{
	static const char *const wrong[][3] = {
		{"--gpus", "0", "--gpus is 1 to 4096, not 0"},
		{"--gpus", "4097", "--gpus is 1 to 4096, not 4097"},
		{"--gpus", "8x", "--gpus is 1 to 4096, not 8x"},
		{"--capacity", "0", "--capacity is 1 to 1048576, not 0"},
		{"--capacity", "1048577", "--capacity is 1 to 1048576, not 1048577"},
		{"--window-steps", "0", "--window-steps is 1 to 1048576, not 0"},
		{"--window-steps", "1048577", "--window-steps is 1 to 1048576, not 1048577"},
		{"--routes-memory", "63K", "--routes-memory is 0 or 64K to 1T, not 63K"},
		{"--routes-memory", "2T", "--routes-memory is 0 or 64K to 1T, not 2T"},
		{"--instance", "prod", "named twice: prod"},
	};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		expect_refused((const char *[]){wrong[i][0], wrong[i][1], NULL}, wrong[i][2]);
	expect_refused((const char *[]){"--listen", ":0", "--unix", "x", NULL},
		       "either --listen or --unix");
}

Test(serve, more_names_of_its_own_than_it_can_know_are_refused)
{
	const char *more[2 * 14 + 1] = {NULL};

	for (size_t i = 0; i < 14; i++) {
		more[2 * i] = "--allow-host";
		more[2 * i + 1] = "r3ring.example";
	}
	expect_refused(more, "too many of --allow-host");
}
