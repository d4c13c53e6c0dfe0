/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A daemon is stopped in good order and another one started, while a request runs: what is recorded
 * of it is exported as the one request that it is, whole.
 */
#include <criterion/criterion.h>

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "tests/support/safetensors.h"
#include "tests/system/record_stage.h"

#define ARGS(...) ((const char *const[]){__VA_ARGS__, NULL})
#define STEPS_BEFORE 5u
#define STEPS (STEPS_BEFORE + 1)
#define TOLD_AGAIN "of these told again by a generation that went on: "

static struct record_stage stage;
static struct command tool;
static char out[96];

static void setup(void)
{
	record_stage_start(&stage, ARGS("--ring-size", "4M"));
	snprintf(out, sizeof(out), "%s/out.safetensors", stage.base);
}

static void teardown(void)
{
	unlink(out);
	command_free(&tool);
	record_stage_stop(&stage);
}

TestSuite(record_restart, .init = setup, .fini = teardown, .timeout = 120);

/* Row 0 of step i + 1 is position i. */
static void begin_step(int64_t handle, uint32_t position)
{
	const uint64_t request = (uint64_t)handle;
	const uint32_t rows = 1;
	struct engine *engine = &stage.ranks.engines[0];
	const struct r3ring_step step = {
		.size = sizeof(step),
		.total_rows = 1,
		.row_end = 1,
		.valid_end = 1,
		.spans = 1,
		.span_request = &request,
		.span_position = &position,
		.span_rows = &rows,
	};

	cr_assert_eq(r3ring_step_begin(engine->producer, &step, NULL), position + 1);
}

static void end_step(int64_t number)
{
	struct engine *engine = &stage.ranks.engines[0];

	for (uint32_t layer = 0; layer < ENGINE_LAYERS; layer++)
		engine_capture(engine, number, layer, 1);
	engine_end(engine);
}

static void run_step(int64_t handle, uint32_t position)
{
	begin_step(handle, position);
	end_step(position + 1);
}

static void restart_daemon(void)
{
	struct r3ring_producer_stats stats;

	cr_assert_eq(test_daemon_stop(&stage.ranks.daemon), 0);
	test_daemon_restart(&stage.ranks.daemon, NULL);
	do {
		poll(NULL, 0, 5);
		r3ring_producer_get_stats(stage.ranks.engines[0].producer, &stats);
	} while (!stats.connected);
}

static void record_over_a_restart(void)
{
	const struct r3ring_request request = {
		.size = sizeof(request), .id = "long one", .prompt_tokens = STEPS};
	int64_t handle;

	record_stage_record(&stage, NULL);
	ranks_open(&stage.ranks, 0);
	handle = r3ring_request_begin(stage.ranks.engines[0].producer, &request);
	cr_assert_gt(handle, 0);
	for (uint32_t i = 0; i < STEPS_BEFORE; i++)
		run_step(handle, i);
	cr_assert(record_stage_reads(&stage, 0, STEPS_BEFORE));
	restart_daemon();
	run_step(handle, STEPS_BEFORE);
	cr_assert_eq(r3ring_request_end(stage.ranks.engines[0].producer, handle,
					R3RING_END_FINISHED, 0, STEPS),
		     0);
	/* Whoever has read a later step has read that end. */
	cr_assert_gt(engine_step(&stage.ranks.engines[0], 0, 1), 0);
	cr_assert(record_stage_reads(&stage, 0, 2));
	cr_assert_eq(command_interrupt(&stage.tool), 0, "%s", stage.tool.err);
}

static void expect_routes(void)
{
	struct safetensors file;
	struct safetensors_tensor routes;
	const uint16_t *id;

	safetensors_read(&file, out);
	routes = safetensors_tensor(&file, "routes");
	cr_assert_eq(routes.shape[0], STEPS, "%lu rows", (unsigned long)routes.shape[0]);
	id = routes.data;
	for (uint32_t row = 0; row < STEPS; row++)
		for (uint32_t layer = 0; layer < ENGINE_LAYERS; layer++)
			for (uint32_t k = 0; k < ENGINE_TOP_K; k++)
				cr_assert_eq(*id++, engine_id(row + 1, layer, 0, k),
					     "row %u, layer %u", row, layer);
	safetensors_free(&file);
}

static void expect_said(const char *const *args, const char *what)
{
	command_free(&tool);
	cr_assert_eq(command_run(&tool, stage.ranks.daemon.dir, args), 0, "%s: %s", args[0],
		     tool.err);
	cr_expect(strstr(tool.out, what), "%s: %s", args[0], tool.out);
}

Test(record_restart, a_request_that_lives_over_a_restart_is_exported_whole)
{
	record_over_a_restart();
	/* Without --missing and --include: it fails where a cell is missing. */
	cr_assert_eq(command_run(&tool, stage.ranks.daemon.dir,
				 ARGS("export", stage.archive, "--format", "safetensors", "-o", out,
				      "--rows", "full")),
		     0, "%s", tool.err);
	cr_expect_null(strstr(tool.err, "left out"), "%s", tool.err);
	expect_routes();
	expect_said(ARGS("verify", stage.archive), TOLD_AGAIN "0 steps (0 rows), 1 attempts");
}

/* ---- a step that is open then --------------------------------------------- */

static void record_over_a_restart_in_a_step(void)
{
	const struct r3ring_request request = {
		.size = sizeof(request), .id = "long one", .prompt_tokens = STEPS};
	struct engine *engine;
	int64_t handle;

	record_stage_record(&stage, NULL);
	ranks_open(&stage.ranks, 0);
	engine = &stage.ranks.engines[0];
	handle = r3ring_request_begin(engine->producer, &request);
	cr_assert_gt(handle, 0);
	for (uint32_t i = 0; i < STEPS_BEFORE; i++)
		run_step(handle, i);
	cr_assert(record_stage_reads(&stage, 0, STEPS_BEFORE));
	begin_step(handle, STEPS_BEFORE);
	restart_daemon();
	end_step(STEPS);
	cr_assert_eq(r3ring_request_end(engine->producer, handle, R3RING_END_FINISHED, 0, STEPS),
		     0);
	cr_assert_gt(engine_step(engine, 0, 1), 0);
	cr_assert(record_stage_reads(&stage, 0, 2));
	cr_assert_eq(command_interrupt(&stage.tool), 0, "%s", stage.tool.err);
}

Test(record_restart, a_step_that_is_open_then_is_exported_whole_and_said_to_be_told_twice)
{
	record_over_a_restart_in_a_step();
	expect_said(ARGS("export", stage.archive, "--format", "safetensors", "-o", out, "--rows",
			 "full"),
		    "");
	expect_routes();
	expect_said(ARGS("verify", stage.archive), TOLD_AGAIN "1 steps (1 rows), 1 attempts");
}

Test(record_restart, a_step_that_is_open_then_is_load_once_and_nothing_of_it_is_lost)
{
	char counted[64];

	record_over_a_restart_in_a_step();
	snprintf(counted, sizeof(counted), "; %u steps of 1 channel\nrows x layers: %u counted\n",
		 STEPS + 1, (STEPS + 1) * ENGINE_LAYERS);
	expect_said(ARGS("plan", "--archive", stage.archive, "--gpus", "4", "--replicas", "256"),
		    counted);
}
