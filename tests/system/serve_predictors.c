/* SPDX-License-Identifier: Apache-2.0 */
/* What reservations are foretold by where several instances are served. */
#include <criterion/criterion.h>

#include <stdio.h>

#include "tests/system/reservation_stage.h"

static struct engine other;

static void stop(void)
{
	engine_close(&other);
	serve_stage_stop();
}

TestSuite(serve_predictors, .init = serve_stage_start, .fini = stop);

static bool is_told(const json_t *answer, const void *unused)
{
	(void)unused;
	return at(answer, "request", NULL) != NULL;
}

static bool is_counted(const json_t *answer, const void *unused)
{
	(void)unused;
	return json_integer_value(at(answer, "steps", NULL)) > 0;
}

static bool has_finished(const json_t *answer, const void *unused)
{
	(void)unused;
	return json_integer_value(at(answer, "finished", "requests")) == 1;
}

/* Asks "prod" for room that this is to foretell. */
static int foretell(const char *key, const char *predictor)
{
	struct http_reply reply;
	char body[512];
	int status;

	snprintf(body, sizeof(body),
		 "{\"instance\": \"%s\", \"key\": \"%s\", \"request\": \"x\", \"class\": \"code\", "
		 "\"tokens\": 1, \"ttl_ms\": 3600000, \"predictor\": \"%s\"}",
		 serve_stage_instance(), key, predictor);
	reply = ask("POST", "/v1/reservations", body);
	status = reply.status;
	json_decref(reply.json);
	return status;
}

/* Serves "prod" and an instance of as many layers and experts, which runs request "x". */
static int64_t run_elsewhere(const char *model)
{
	const struct r3ring_request info = {.size = sizeof(info), .id = "x", .prompt_tokens = 1};
	char name[R3RING_INSTANCE_MAX + 1], load[128];
	struct r3ring_error err;
	int64_t handle;

	snprintf(name, sizeof(name), "%s-b", serve_stage_instance());
	cr_assert_eq(engine_open_rank(&other, stage.tool.daemon.dir, name,
				      (struct engine_rank){.model = model}, 64, &err),
		     0, "%s", err.text);
	serve_stage_serve(
		(const char *[]){"--instance", name, "--gpus", "2", "--capacity", "100", NULL});
	engine_step(&stage.tool.engine, 0, 4);
	snprintf(load, sizeof(load), "/v1/load?instance=%s", serve_stage_instance());
	cr_assert(becomes(load, is_counted, NULL));
	/* Says what it is, for those that come after it. */
	cr_assert_eq(foretell("x", "uniform"), 201);
	handle = r3ring_request_begin(other.producer, &info);
	cr_assert_gt(handle, 0);
	engine_step(&other, handle, 1);
	cr_assert(becomes("/v1/signature?request=x", is_told, NULL));
	return handle;
}

static void finish(int64_t handle)
{
	r3ring_request_end(other.producer, handle, R3RING_END_FINISHED, 0, 2);
	engine_step(&other, 0, 1);
	cr_assert(becomes("/v1", has_finished, NULL));
}

Test(serve_predictors, what_a_request_did_where_its_model_runs_is_its_own_and_of_its_class)
{
	int64_t handle = run_elsewhere("engine");

	cr_expect_eq(foretell("while it runs", "own"), 201);
	finish(handle);
	cr_expect_eq(foretell("after it", "class"), 201);
	cr_expect_eq(foretell("like it", "similar"), 201);
}

Test(serve_predictors, what_one_of_its_id_did_on_another_model_of_its_shape_is_not)
{
	int64_t handle = run_elsewhere("another");

	cr_expect_eq(foretell("while it runs", "own"), 404);
	finish(handle);
	cr_expect_eq(foretell("after it", "class"), 404);
	cr_expect_eq(foretell("like it", "similar"), 404);
}
