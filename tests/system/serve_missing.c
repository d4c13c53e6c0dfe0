/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is missing of a request: /v1/signature and /v1/requests/ID/routes tell the same, and what is
 * known by which fault the engine was run with.
 */
#include <criterion/criterion.h>

#include <poll.h>
#include <string.h>

#include "tests/system/serve_stage.h"

#define PATIENCE 3000 /* of 10 ms */

TestSuite(serve_missing, .init = serve_stage_start, .fini = serve_stage_stop, .timeout = 120);

enum fault {
	NO_FAULT,
	SPANS_LATE,    /* of the step with the positions 4 and 5 */
	NO_LAYER,      /* of the row at 4 */
	LAYER_LACKING, /* likewise */
	ID_OF_NO_EXPERT,
	SPANS_NEVER,    /* of that step */
	DAEMON_STOPPED, /* in front of them */
};

/* What the engine runs. */
struct run {
	const struct fault_case *now;
	uint64_t handle;
	uint16_t attempt;
};

struct fault_case {
	enum fault fault;
	bool preempted;     /* behind position 6, and run again */
	json_int_t known;   /* positions with all layers, of 10 tokens, */
	json_int_t missing; /* of which the last was not fed back */
	json_int_t in_part;
};

static void spoil(struct engine *engine, uint32_t rows)
{
	engine->ids[0] = ENGINE_EXPERTS + 1;
	r3ring_capture(engine->producer, ENGINE_FIRST_LAYER + 1,
		       &(const struct r3ring_topk){.ids = engine->ids,
						   .type = R3RING_INT32,
						   .rows = rows,
						   .columns = ENGINE_TOP_K,
						   .row_stride = ENGINE_TOP_K},
		       NULL);
}

static void capture(int64_t number, uint32_t rows, enum fault fault)
{
	struct engine *engine = &stage.tool.engine;

	for (uint32_t layer = 0; fault != NO_LAYER && layer < ENGINE_LAYERS; layer++) {
		if (layer == 1 && fault == ID_OF_NO_EXPERT)
			spoil(engine, rows);
		else if (layer != 1 || fault != LAYER_LACKING)
			engine_capture(engine, number, layer, rows);
	}
	engine_end(engine);
}

/* A step with rows of that position on. */
static void step(const struct run *run, uint32_t position, uint32_t rows, enum fault fault)
{
	const struct r3ring_step step = {
		.size = sizeof(step),
		.total_rows = rows,
		.row_end = rows,
		.valid_end = rows,
		.spans = 1,
		.span_request = &run->handle,
		.span_position = &position,
		.span_rows = &rows,
		.span_attempt = &run->attempt,
	};
	int64_t number = r3ring_step_begin(stage.tool.engine.producer, &step, NULL);

	cr_assert_gt(number, 0);
	capture(number, rows, fault);
}

static void stop_daemon(void)
{
	struct r3ring_producer_stats stats;

	cr_assert_eq(test_daemon_stop(&stage.tool.daemon), 0);
	test_daemon_restart(&stage.tool.daemon, NULL);
	do {
		poll(NULL, 0, 5);
		r3ring_producer_get_stats(stage.tool.engine.producer, &stats);
	} while (!stats.connected);
}

static json_int_t records(void)
{
	struct http_reply reply = ask("GET", "/v1/channels", NULL);
	json_int_t count = json_integer_value(
		at(json_array_get(at(reply.json, "instances", NULL), 0), "records", NULL));

	json_decref(reply.json);
	return count;
}

/* Until a step behind so many records was read: nobody counts it before its spans are known. */
static void await_step(json_int_t before)
{
	for (int tries = 0; records() < before + 2 + (json_int_t)ENGINE_LAYERS; tries++) {
		cr_assert_lt(tries, PATIENCE, "the step is never read");
		poll(NULL, 0, 10);
	}
}

/* Position 4, and a draft of 5 and 6 of which the first is accepted, which is told later. */
static void step_with_draft(const struct run *run)
{
	const uint64_t request[] = {run->handle, run->handle};
	const uint32_t position[] = {4, 5}, row[] = {0, 1}, rows[] = {1, 2};
	uint32_t accepted[] = {R3RING_UNKNOWN_U32, R3RING_UNKNOWN_U32};
	const uint16_t attempt[] = {run->attempt, run->attempt};
	const uint8_t flags[] = {0, R3RING_SPAN_DRAFT};
	const struct r3ring_step step = {
		.size = sizeof(step),
		.total_rows = 3,
		.row_end = 3,
		.valid_end = 3,
		.flags = R3RING_STEP_SPANS_FOLLOW,
		.spans = 2,
		.span_request = request,
		.span_position = position,
		.span_row = row,
		.span_rows = rows,
		.span_accepted = accepted,
		.span_attempt = attempt,
		.span_flags = flags,
	};
	json_int_t before;
	int64_t number;

	serve_stage_await(1);
	before = records();
	number = r3ring_step_begin(stage.tool.engine.producer, &step, NULL);
	cr_assert_gt(number, 0);
	capture(number, 3, NO_FAULT);
	await_step(before);
	if (run->now->fault == DAEMON_STOPPED)
		stop_daemon();
	accepted[1] = 1;
	if (run->now->fault != SPANS_NEVER)
		r3ring_step_spans(stage.tool.engine.producer, number, &step);
}

static void begin(struct run *run, uint32_t prompt)
{
	const struct r3ring_request request = {.size = sizeof(request),
					       .id = "one",
					       .prompt_tokens = prompt,
					       .attempt = run->attempt};

	run->handle = (uint64_t)r3ring_request_begin(stage.tool.engine.producer, &request);
	cr_assert_gt((int64_t)run->handle, 0);
}

/* A prompt of four, six tokens that are sampled; the last is not fed back. */
static void run_request(const struct fault_case *now)
{
	struct r3ring_producer *producer = stage.tool.engine.producer;
	struct run run = {.now = now};
	const bool drafts = now->fault == SPANS_LATE || now->fault == SPANS_NEVER ||
			    now->fault == DAEMON_STOPPED;

	begin(&run, 4);
	step(&run, 0, 4, NO_FAULT);
	if (drafts) {
		step_with_draft(&run);
	} else {
		step(&run, 4, 1, now->fault);
		step(&run, 5, 1, NO_FAULT);
	}
	step(&run, 6, 1, NO_FAULT);
	if (now->preempted) {
		r3ring_request_end(producer, (int64_t)run.handle, R3RING_END_PREEMPTED, 0, 8);
		run.attempt = 1;
		begin(&run, 8);
		step(&run, 0, 7, NO_FAULT);
	}
	step(&run, 7, 1, NO_FAULT);
	step(&run, 8, 1, NO_FAULT);
	r3ring_request_end(producer, (int64_t)run.handle, R3RING_END_FINISHED, run.attempt, 10);
}

/* ---- what is told ---------------------------------------------------------------- */

static bool is_over(const char *what, const json_t *told)
{
	if (strstr(what, "routes"))
		return strcmp(json_string_value(at(told, "state", NULL)), "ended") == 0;
	return json_is_true(at(told, "ended", NULL));
}

static json_t *await_over(const char *what)
{
	for (int tries = 0; tries < PATIENCE; tries++) {
		struct http_reply reply = ask("GET", what, NULL);

		if (reply.status == 200 && is_over(what, reply.json))
			return reply.json;
		json_decref(reply.json);
		poll(NULL, 0, 10);
	}
	cr_assert_fail("%s: it never ends", what);
	return NULL;
}

static json_int_t number(const json_t *json, const char *name)
{
	const json_t *found = at(json, name, NULL);

	cr_assert(json_is_integer(found), "%s is no number", name);
	return json_integer_value(found);
}

static void expect_routes(const struct fault_case *wanted)
{
	json_t *told = await_over("/v1/requests/one/routes");
	const json_t *coverage = at(told, "coverage", NULL), *count;
	const char *cause;
	json_int_t missing = 0;

	json_object_foreach ((json_t *)at(coverage, "rows_missing", NULL), cause, count)
		missing += strcmp(cause, "not_fed") ? json_integer_value(count) : 0;
	cr_expect_eq(number(coverage, "rows_known"), wanted->known);
	cr_expect_eq(missing, wanted->missing);
	cr_expect_eq(number(coverage, "rows_in_part"), wanted->in_part);
	json_decref(told);
}

static void expect_signature(const struct fault_case *wanted)
{
	json_t *told = await_over("/v1/signature?request=one");
	struct http_reply channels = ask("GET", "/v1/channels", NULL);
	const json_t *instance = json_array_get(at(channels.json, "instances", NULL), 0);

	cr_expect_eq(number(told, "prefill_rows") + number(told, "decode_rows"), wanted->known);
	cr_expect_eq(number(told, "missing_rows"), wanted->missing);
	cr_expect_eq(number(told, "part_rows"), wanted->in_part);
	cr_expect_eq(number(at(instance, "signatures", NULL), "rows_missing"), wanted->missing);
	json_decref(channels.json);
	json_decref(told);
}

static void expect_same(const struct fault_case *wanted)
{
	serve_stage_run(0);
	run_request(wanted);
	expect_routes(wanted);
	expect_signature(wanted);
}

#define CASE(...) (&(const struct fault_case){__VA_ARGS__})

Test(serve_missing, nothing_is_where_nothing_was_lost)
{
	expect_same(CASE(.known = 9));
}

Test(serve_missing, a_row_that_no_layer_was_captured_of_is)
{
	expect_same(CASE(.fault = NO_LAYER, .known = 8, .missing = 1));
}

Test(serve_missing, a_row_that_lacks_a_layer_is_in_part)
{
	expect_same(CASE(.fault = LAYER_LACKING, .known = 8, .missing = 1, .in_part = 1));
}

Test(serve_missing, a_row_with_an_id_that_is_no_expert_is_in_part)
{
	expect_same(CASE(.fault = ID_OF_NO_EXPERT, .known = 8, .missing = 1, .in_part = 1));
}

Test(serve_missing, positions_that_were_told_later_are_not)
{
	expect_same(CASE(.fault = SPANS_LATE, .known = 9));
}

Test(serve_missing, positions_that_were_never_told_are)
{
	expect_same(CASE(.fault = SPANS_NEVER, .known = 7, .missing = 2));
}

Test(serve_missing, positions_that_were_never_told_are_also_when_they_are_run_again)
{
	expect_same(CASE(.fault = SPANS_NEVER, .preempted = true, .known = 7, .missing = 2));
}

Test(serve_missing, positions_that_were_to_be_told_when_the_daemon_was_stopped_are)
{
	expect_same(CASE(.fault = DAEMON_STOPPED, .known = 7, .missing = 2));
}

Test(serve_missing, positions_that_were_to_be_told_then_are_also_when_they_are_run_again)
{
	expect_same(CASE(.fault = DAEMON_STOPPED, .preempted = true, .known = 7, .missing = 2));
}

Test(serve_missing, what_is_run_again_though_nothing_was_lost_is_not)
{
	expect_same(CASE(.preempted = true, .known = 9));
}
