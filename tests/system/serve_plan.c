/* SPDX-License-Identifier: Apache-2.0 */
/* GET and POST /v1/plan beside `r3ring plan`. */
#include <criterion/criterion.h>

#include "tests/system/serve_stage.h"

TestSuite(serve_plan, .init = serve_stage_start, .fini = serve_stage_stop);

static void expect_same(const json_t *told, const json_t *planned, const char *part)
{
	cr_expect(json_equal(at(told, part, NULL), at(planned, part, NULL)), "%s differs", part);
}

Test(serve_plan, the_plan_that_is_told_is_the_one_that_the_tool_prints)
{
	struct http_reply got, posted;
	json_t *planned;

	serve_stage_run(7);
	cr_assert_eq(tool_stage_tool(&stage.tool, ARGS("plan", "--instance", serve_stage_instance(),
						       "--gpus", "4", "--replicas", "264",
						       "--nodes", "2", "--groups", "4", "--json")),
		     0);
	planned = json_loads(stage.tool.tool.out, 0, NULL);
	got = ask("GET", "/v1/plan?gpus=4&replicas=264&nodes=2&groups=4", NULL);
	cr_assert_eq(got.status, 200);
	posted = ask("POST", "/v1/plan",
		     "{\"gpus\": 4, \"replicas\": 264, \"nodes\": 2, \"groups\": 4}");
	cr_assert_eq(posted.status, 200);
	for (size_t i = 0; i < 4; i++) {
		const char *const parts[] = {"map", "today", "planned", "accounts"};

		cr_assert(at(planned, parts[i], NULL));
		expect_same(got.json, planned, parts[i]);
		expect_same(posted.json, planned, parts[i]);
	}
	json_decref(planned);
	json_decref(got.json);
	json_decref(posted.json);
}

Test(serve_plan, gpus_are_those_that_the_service_was_told_of)
{
	struct http_reply reply;

	serve_stage_run(1);
	reply = ask("GET", "/v1/plan?replicas=256", NULL);
	cr_expect_eq(reply.status, 200);
	cr_expect_eq(json_integer_value(at(reply.json, "planned", "gpus")), 2);
	json_decref(reply.json);
}

Test(serve_plan, what_cannot_be_planned_is_refused)
{
	serve_stage_serve((const char *[]){NULL});
	expect_status("GET", "/v1/plan?gpus=4&replicas=264", NULL, 503);
	engine_step(&stage.tool.engine, 0, 4);
	serve_stage_await(1);
	expect_status("GET", "/v1/plan", NULL, 400);
	expect_status("GET", "/v1/plan?gpus=4", NULL, 400);
	expect_status("GET", "/v1/plan?gpus=4&replicas=255", NULL, 400);
	expect_status("GET", "/v1/plan?gpus=5&replicas=264", NULL, 400);
	expect_status("GET", "/v1/plan?gpus=4&replicas=40000", NULL, 400);
	expect_status("GET", "/v1/plan?gpus=4&replicas=264&instance=never", NULL, 404);
	expect_status("POST", "/v1/plan", "{\"gpus\": 4, \"replica\": 264}", 400);
	expect_status("POST", "/v1/plan", NULL, 400);
}
