/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two ranks of an instance whose newest steps ran with different EPLB maps, and which stand still:
 * whatever tells of GPUs goes by the newest map, and says that they differ. What the GPUs have is
 * added up here from the engine's rule of ids.
 */
#include <criterion/criterion.h>

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/remove_dir.h"
#include "tests/system/serve_stage.h"

#define GPUS 2u
#define ROWS_0 4u
#define ROWS_1 7u

static struct engine second;
static int64_t steps[2];
static uint32_t rows_of_second = ROWS_1; /* that count */

static void start(void)
{
	struct r3ring_error err = {0};

	serve_stage_start();
	cr_assert_eq(engine_open_rank(&second, stage.tool.daemon.dir, serve_stage_instance(),
				      (struct engine_rank){.rank = 1}, 64, &err),
		     0, "%s", err.text);
}

static void stop(void)
{
	engine_close(&second);
	serve_stage_stop();
}

TestSuite(serve_epochs, .init = start, .fini = stop, .timeout = 300);

/* ---- maps ------------------------------------------------------------------------ */

enum placed { IN_ORDER, BY_PARITY, REVERSED };

static uint32_t place_of(enum placed placed, uint32_t expert)
{
	switch (placed) {
	case BY_PARITY:
		return expert % 2 * ENGINE_EXPERTS / 2 + expert / 2;
	case REVERSED:
		return ENGINE_EXPERTS - 1 - expert;
	default:
		return expert;
	}
}

static void announce_on(struct engine *engine, uint64_t epoch, enum placed placed, uint16_t gpus)
{
	static uint16_t map[ENGINE_LAYERS][ENGINE_EXPERTS];
	const struct r3ring_eplb_record head = {.epoch = epoch,
						.layers = ENGINE_LAYERS,
						.experts = ENGINE_EXPERTS,
						.replicas = 1,
						.physical = ENGINE_EXPERTS,
						.gpus = gpus};

	for (uint32_t i = 0; i < ENGINE_LAYERS * ENGINE_EXPERTS; i++)
		map[i / ENGINE_EXPERTS][i % ENGINE_EXPERTS] =
			(uint16_t)place_of(placed, i % ENGINE_EXPERTS);
	cr_assert_eq(r3ring_eplb(engine->producer, &head, &map[0][0]), 0);
	engine->eplb_epoch = epoch;
}

static void announce(struct engine *engine, uint64_t epoch, enum placed placed)
{
	announce_on(engine, epoch, placed, GPUS);
}

/* Rank 0 goes on to map 2, rank 1 stays at map 1. */
static void run_ranks(void)
{
	announce(&stage.tool.engine, 1, IN_ORDER);
	announce(&second, 1, IN_ORDER);
	steps[1] = engine_step(&second, 0, ROWS_1);
	announce(&stage.tool.engine, 2, BY_PARITY);
	steps[0] = engine_step(&stage.tool.engine, 0, ROWS_0);
}

static void add_visits(double gpu[GPUS], enum placed placed, uint32_t layer, int64_t step,
		       uint32_t rows)
{
	for (uint32_t i = 0; i < rows * ENGINE_TOP_K; i++)
		gpu[place_of(placed,
			     engine_id((uint64_t)step, layer, i / ENGINE_TOP_K, i % ENGINE_TOP_K)) *
		    GPUS / ENGINE_EXPERTS]++;
}

/* max/mean of a layer's GPUs, of both steps, by one map. */
static double ratio_by(enum placed placed, uint32_t layer)
{
	double gpu[GPUS] = {0};

	add_visits(gpu, placed, layer, steps[0], ROWS_0);
	add_visits(gpu, placed, layer, steps[1], rows_of_second);
	return (gpu[0] > gpu[1] ? gpu[0] : gpu[1]) * GPUS / (gpu[0] + gpu[1]);
}

/* ---- what is told ---------------------------------------------------------------- */

static bool is_of_two(const json_t *answer, const void *wanted)
{
	(void)wanted;
	return json_integer_value(at(answer, "channels", NULL)) == 2;
}

static bool is_of_one(const json_t *answer, const void *wanted)
{
	(void)wanted;
	return json_integer_value(at(answer, "channels", NULL)) == 1;
}

static double scraped(const char *metric)
{
	const char *text = http_exchange(http_dial_path(stage.path),
					 "GET /metrics HTTP/1.1\r\nHost: localhost\r\n"
					 "Connection: close\r\n\r\n");
	const char *found = strstr(text, metric);

	return found ? strtod(found + strlen(metric), NULL) : -1;
}

static double of_engine(const char *metric)
{
	char line[256];

	snprintf(line, sizeof(line), "\n%s{engine=\"%s\"} ", metric, serve_stage_instance());
	return scraped(line);
}

static void expect_ratios(enum placed placed)
{
	bool differ = false;
	char line[256];

	for (uint32_t i = 0; i < ENGINE_LAYERS; i++) {
		snprintf(line, sizeof(line),
			 "\nr3ring_layer_gpu_load_ratio{engine=\"%s\",layer=\"%u\"} ",
			 serve_stage_instance(), ENGINE_FIRST_LAYER + i);
		cr_expect_float_eq(scraped(line), ratio_by(placed, i), 1e-6, "layer %u: %g, not %g",
				   i, scraped(line), ratio_by(placed, i));
		differ |= ratio_by(IN_ORDER, i) != ratio_by(BY_PARITY, i);
	}
	cr_expect(differ, "then nothing is seen of it");
}

static void expect_tightest(const json_t *answer, uint64_t epoch, bool assumed, bool differ)
{
	const json_t *tightest = at(answer, "tightest", NULL);

	cr_expect_eq((uint64_t)json_integer_value(at(tightest, "epoch", NULL)), epoch, "%lld",
		     json_integer_value(at(tightest, "epoch", NULL)));
	cr_expect_eq(json_is_true(at(tightest, "assumed", NULL)), assumed);
	cr_expect_eq(json_is_true(at(tightest, "epochs_differ", NULL)), differ);
}

static void expect_score(uint64_t epoch, bool assumed, bool differ)
{
	struct http_reply reply = ask("POST", "/v1/score", "{\"tokens\": 1}");

	cr_expect_eq(reply.status, 200);
	expect_tightest(json_array_get(at(reply.json, "ranked", NULL), 0), epoch, assumed, differ);
	json_decref(reply.json);
}

/* @status: 201, made; 200, it was there. */
static void expect_reserved(int status, uint64_t epoch, bool assumed, bool differ)
{
	struct http_reply reply = ask("POST", "/v1/reservations", "{\"key\": \"one\"}");

	cr_expect_eq(reply.status, status);
	expect_tightest(reply.json, epoch, assumed, differ);
	json_decref(reply.json);
}

static void expect_plan(const json_t *plan)
{
	cr_expect_eq(json_integer_value(at(plan, "today", "epoch")), 2);
	cr_expect(json_is_true(at(plan, "epochs_differ", NULL)));
	for (size_t i = 0; i < ENGINE_LAYERS; i++)
		cr_expect_float_eq(
			json_real_value(json_array_get(at(plan, "today", "max_to_mean"), i)),
			ratio_by(BY_PARITY, (uint32_t)i), 1e-9, "layer %zu", i);
}

static json_t *tool_json(const char *const *args)
{
	const char *line;
	json_t *json;

	cr_assert_eq(tool_stage_tool(&stage.tool, args), 0, "%s", stage.tool.tool.err);
	line = strrchr(stage.tool.tool.out, '\n');
	while (line && line > stage.tool.tool.out && line[-1] != '\n')
		line--;
	json = line ? json_loads(line, 0, NULL) : NULL;
	cr_assert(json || (json = json_loads(stage.tool.tool.out, 0, NULL)), "%s",
		  stage.tool.tool.out);
	return json;
}

/* ---- tests ----------------------------------------------------------------------- */

Test(serve_epochs, the_service_goes_by_the_newest_map_of_a_rank_and_says_that_they_differ)
{
	struct http_reply reply;

	run_ranks();
	serve_stage_serve((const char *[]){"--capacity", "100", NULL});
	cr_assert(becomes("/v1/load", is_of_two, NULL));
	expect_score(2, false, true);
	expect_reserved(201, 2, false, true);
	reply = ask("GET", "/v1/load", NULL);
	cr_expect_eq(json_integer_value(at(reply.json, "epoch", NULL)), 2);
	cr_expect(json_is_true(at(reply.json, "epochs_differ", NULL)));
	json_decref(reply.json);
	expect_ratios(BY_PARITY);
	cr_expect_eq(of_engine("r3ring_placement_assumed"), 0);
	cr_expect_eq(of_engine("r3ring_eplb_epoch"), 2);
	cr_expect_eq(of_engine("r3ring_eplb_epochs_differ"), 1);
	reply = ask("GET", "/v1/plan", NULL);
	cr_expect_eq(reply.status, 200);
	expect_plan(reply.json);
	json_decref(reply.json);
}

static bool is_of_one_step(const json_t *answer, const void *wanted)
{
	return is_of_one(answer, wanted) && json_integer_value(at(answer, "steps", NULL)) == 1;
}

static void expect_no_epoch(const char *what, int status, const char *part)
{
	struct http_reply reply = ask("GET", what, NULL);
	const char *text = json_string_value(at(reply.json, "error", "message"));

	cr_expect_eq(reply.status, status, "%s: %d", what, reply.status);
	cr_expect(text && strstr(text, part), "%s: %s", what, text ? text : "");
	json_decref(reply.json);
}

Test(serve_epochs, of_an_epoch_are_the_ranks_that_are_at_it_now_and_their_steps_since)
{
	run_ranks();
	announce(&stage.tool.engine, 4, REVERSED);
	engine_step(&stage.tool.engine, 0, ROWS_0);
	serve_stage_serve((const char *[]){"--capacity", "100", NULL});
	cr_assert(becomes("/v1/load", is_of_two, NULL));
	cr_expect(becomes("/v1/load?epoch=4", is_of_one_step, NULL));
	cr_expect(becomes("/v1/load?epoch=1&over=time", is_of_one_step, NULL));
	expect_no_epoch("/v1/load?epoch=2", 404, "epoch 2, theirs is 4");
	expect_no_epoch("/v1/load?epoch=5", 503, "epoch 5, theirs is 4");
	expect_no_epoch("/v1/load?epoch=4&over=average", 400, "over=average");
}

Test(serve_epochs, a_mistake_in_an_epoch_is_told_before_all_that_may_pass)
{
	serve_stage_serve((const char *[]){"--capacity", "100", NULL});
	expect_no_epoch("/v1/load?epoch=newest", 400, "epoch=newest is no integer from 0 to");
	expect_no_epoch("/v1/load?epoch=4&over=average", 400, "over=average");
	expect_no_epoch("/v1/load?epoch=4", 503, "");
	engine_close(&stage.tool.engine);
	engine_close(&second);
	cr_assert(becomes("/v1/channels", is_in_state, "ended"));
	expect_no_epoch("/v1/load?epoch=newest", 400, "epoch=newest is no integer from 0 to");
	expect_no_epoch("/v1/load?epoch=4&over=average", 400, "over=average");
	expect_no_epoch("/v1/load?epoch=4", 503, "the engine has ended");
}

Test(serve_epochs, a_rank_that_goes_on_takes_the_book_along_and_one_that_is_behind_does_not)
{
	run_ranks();
	serve_stage_serve((const char *[]){"--capacity", "100", NULL});
	cr_assert(becomes("/v1/load", is_of_two, NULL));
	expect_score(2, false, true);
	announce(&second, 3, IN_ORDER);
	engine_step(&second, 0, ROWS_1);
	engine_step(&stage.tool.engine, 0, ROWS_0);
	serve_stage_await(2);
	for (int tries = 0; of_engine("r3ring_eplb_epoch") != 3; tries++)
		cr_assert_lt(tries, 6000);
	expect_score(3, false, true);
	announce(&stage.tool.engine, 3, IN_ORDER);
	engine_step(&stage.tool.engine, 0, ROWS_0);
	for (int tries = 0; of_engine("r3ring_eplb_epochs_differ") != 0; tries++)
		cr_assert_lt(tries, 6000);
	expect_score(3, false, false);
}

/* Of the tightest place for one that nobody knows: of GPUs and experts that are equal the first. */
static json_int_t scored(const char *field)
{
	struct http_reply reply = ask("POST", "/v1/score", "{\"tokens\": 1}");
	const json_t *ranked = json_array_get(at(reply.json, "ranked", NULL), 0);
	json_int_t value = json_integer_value(at(ranked, "tightest", field));

	json_decref(reply.json);
	return value;
}

Test(serve_epochs, a_rank_that_has_ended_takes_its_map_along)
{
	announce(&stage.tool.engine, 1, IN_ORDER);
	announce(&second, 1, IN_ORDER);
	steps[0] = engine_step(&stage.tool.engine, 0, ROWS_0);
	announce(&second, 2, BY_PARITY);
	engine_step(&second, 0, ROWS_1);
	serve_stage_serve((const char *[]){"--capacity", "100", NULL});
	cr_assert(becomes("/v1/load", is_of_two, NULL));
	cr_assert(becomes("/v1/channels", is_in_state, "live"));
	expect_reserved(201, 2, false, true);
	engine_close(&second);
	cr_assert(becomes("/v1/load", is_of_one, NULL));
	cr_expect_eq(of_engine("r3ring_eplb_epoch"), 1);
	cr_expect_eq(of_engine("r3ring_eplb_epochs_differ"), 0);
	rows_of_second = 0;
	expect_ratios(IN_ORDER);
	for (int tries = 0; scored("epoch") != 1; tries++)
		cr_assert_lt(tries, 6000);
	expect_score(1, false, false);
	expect_reserved(200, 1, false, false);
	/* And goes on from there. */
	announce(&stage.tool.engine, 2, BY_PARITY);
	engine_step(&stage.tool.engine, 0, ROWS_0);
	for (int tries = 0; of_engine("r3ring_eplb_epoch") != 2; tries++)
		cr_assert_lt(tries, 6000);
	expect_score(2, false, false);
}

Test(serve_epochs, where_only_ranks_without_a_map_are_left_experts_lie_in_order)
{
	engine_step(&stage.tool.engine, 0, ROWS_0);
	announce(&second, 1, REVERSED);
	engine_step(&second, 0, ROWS_1);
	serve_stage_serve((const char *[]){"--capacity", "100", NULL});
	cr_assert(becomes("/v1/load", is_of_two, NULL));
	cr_assert(becomes("/v1/channels", is_in_state, "live"));
	expect_reserved(201, 1, false, true);
	cr_expect_eq(scored("expert"), ENGINE_EXPERTS / 2);
	engine_close(&second);
	cr_assert(becomes("/v1/load", is_of_one, NULL));
	for (int tries = 0; scored("epoch") != 0; tries++)
		cr_assert_lt(tries, 6000);
	expect_score(0, true, false);
	cr_expect_eq(scored("expert"), 0);
}

Test(serve_epochs, of_an_engine_that_is_back_without_a_map_experts_lie_in_order)
{
	struct engine *engine = &stage.tool.engine;
	struct r3ring_error err = {0};

	announce(engine, 1, REVERSED);
	engine_step(engine, 0, ROWS_0);
	serve_stage_serve((const char *[]){"--gpus", "2", "--capacity", "100", NULL});
	cr_assert(becomes("/v1/channels", is_in_state, "live"));
	expect_reserved(201, 1, false, false);
	cr_expect_eq(scored("expert"), ENGINE_EXPERTS / 2);
	engine_close(engine);
	cr_assert_eq(engine_open_rank(engine, stage.tool.daemon.dir, serve_stage_instance(),
				      (struct engine_rank){.rank = 0}, 64, &err),
		     0, "%s", err.text);
	engine_step(engine, 0, ROWS_0);
	for (int tries = 0; scored("epoch") != 0; tries++)
		cr_assert_lt(tries, 6000);
	expect_score(0, true, false);
	cr_expect_eq(scored("expert"), 0);
}

static bool says(const char *text)
{
	struct http_reply reply = ask("POST", "/v1/reservations", "{\"key\": \"two\"}");
	const char *message = json_string_value(at(reply.json, "error", "message"));
	bool found = reply.status == 503 && message && strstr(message, text);

	json_decref(reply.json);
	return found;
}

/* The service takes a step in its own time. */
static bool soon_says(const char *text, bool wanted)
{
	for (int tries = 0; says(text) != wanted; tries++) {
		if (tries == 3000)
			return false;
		poll(NULL, 0, 10);
	}
	return true;
}

/* Of the only reservation; the caller's. */
static char *path_of_reserved(void)
{
	struct http_reply reply = ask("GET", "/v1/reservations", NULL);
	const json_t *one = json_array_get(at(reply.json, "reservations", NULL), 0);
	char *path = NULL;

	cr_expect_eq(reply.status, 200);
	cr_assert_geq(asprintf(&path, "/v1/reservations/%s",
			       json_string_value(at(one, "reservation", NULL))),
		      0);
	json_decref(reply.json);
	return path;
}

/* What is reserved then is of a map of other GPUs than the engine's newest. */
static void reserve_and_change_gpus(void)
{
	announce(&stage.tool.engine, 1, IN_ORDER);
	engine_step(&stage.tool.engine, 0, ROWS_0);
	serve_stage_serve((const char *[]){"--capacity", "100", NULL});
	cr_assert(becomes("/v1/channels", is_in_state, "live"));
	expect_reserved(201, 1, false, false);
	announce_on(&stage.tool.engine, 2, IN_ORDER, 2 * GPUS);
	engine_step(&stage.tool.engine, 0, ROWS_0);
}

Test(serve_epochs, what_is_held_on_other_GPUs_is_committed_and_freed_all_the_same)
{
	char *path;

	reserve_and_change_gpus();
	cr_assert(soon_says("its EPLB map is now of 4 GPUs", true));
	path = path_of_reserved();
	expect_status("PATCH", path, "{\"ttl_ms\": 60000}", 200);
	expect_status("PATCH", path, "{\"commit\": true}", 200);
	expect_status("PATCH", path, "{\"tokens\": 2}", 503);
	expect_status("DELETE", path, NULL, 200);
	expect_status("DELETE", path, NULL, 404);
	free(path);
}

Test(serve_epochs, nothing_is_promised_on_other_GPUs_than_the_book_is_of)
{
	reserve_and_change_gpus();
	cr_assert(soon_says("its EPLB map is now of 4 GPUs, and its reservations were made on 2",
			    true));
	cr_expect(says("start r3ring serve anew, and reserve again"));
	/* The book's GPUs are back. */
	announce(&stage.tool.engine, 3, BY_PARITY);
	engine_step(&stage.tool.engine, 0, ROWS_0);
	cr_assert(soon_says("start r3ring serve anew", false));
	expect_reserved(200, 3, false, false);
}

Test(serve_epochs, experts_in_order_are_said_to_be_assumed)
{
	steps[1] = engine_step(&second, 0, ROWS_1);
	steps[0] = engine_step(&stage.tool.engine, 0, ROWS_0);
	serve_stage_serve((const char *[]){"--gpus", "2", "--capacity", "100", NULL});
	cr_assert(becomes("/v1/load", is_of_two, NULL));
	expect_score(0, true, false);
	expect_ratios(IN_ORDER);
	cr_expect_eq(of_engine("r3ring_placement_assumed"), 1);
	cr_expect_eq(of_engine("r3ring_eplb_epoch"), -1, "there is none");
	cr_expect_eq(of_engine("r3ring_eplb_epochs_differ"), 0);
}

Test(serve_epochs, plans_go_by_it_too_from_the_ring_and_from_an_archive)
{
	char dir[128];
	json_t *plan;

	run_ranks();
	snprintf(dir, sizeof(dir), "%s/archive", stage.tool.daemon.dir);
	cr_assert_eq(
		tool_stage_tool(&stage.tool, ARGS("record", "--instance", serve_stage_instance(),
						  "-o", dir, "--until-idle", "2")),
		0, "%s", stage.tool.tool.err);
	plan = tool_json(ARGS("plan", "--instance", serve_stage_instance(), "--gpus", "2",
			      "--replicas", "256", "--json"));
	expect_plan(plan);
	json_decref(plan);
	plan = tool_json(
		ARGS("plan", "--archive", dir, "--gpus", "2", "--replicas", "256", "--json"));
	expect_plan(plan);
	json_decref(plan);
	cr_expect_eq(tool_stage_tool(&stage.tool, ARGS("plan", "--archive", dir, "--gpus", "2",
						       "--replicas", "256")),
		     0);
	cr_expect(strstr(stage.tool.tool.out, "map of epoch 2, ranks at 1 to 2\n"), "%s",
		  stage.tool.tool.out);
	remove_dir(dir);
}

Test(serve_epochs, top_says_it_in_a_line_and_in_a_frame)
{
	const json_t *load;
	json_t *line;

	run_ranks();
	line = tool_json(ARGS("top", "--jsonl", "--count", "2", "--interval", "0.3", "--instance",
			      serve_stage_instance(), "--window", "3600"));
	load = at(line, "load", NULL);
	cr_expect_eq(json_integer_value(at(load, "gpus", "epoch")), 2);
	cr_expect_eq(json_integer_value(at(load, "epoch", NULL)), 2);
	cr_expect(json_is_true(at(load, "epochs_differ", NULL)));
	json_decref(line);
	cr_assert_eq(tool_stage_tool(&stage.tool,
				     ARGS("top", "--once", "--interval", "0.3", "--instance",
					  serve_stage_instance(), "--window", "3600")),
		     0, "%s", stage.tool.tool.err);
	cr_expect(strstr(stage.tool.tool.out, "(ranks at maps 1 to 2)"), "%s", stage.tool.tool.out);
	cr_expect(strstr(stage.tool.tool.out, "2 GPUs, map 2 (ranks at 1 to 2): worst layer "),
		  "%s", stage.tool.tool.out);
}
