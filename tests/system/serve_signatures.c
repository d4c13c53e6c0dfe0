/* SPDX-License-Identifier: Apache-2.0 */
/* What is kept of requests' routing, and what had to go, as /v1/channels and /metrics tell it. */
#include <criterion/criterion.h>

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/system/serve_stage.h"

/* As include/r3ring/signature.h has them where nobody says otherwise. */
enum { KEPT_ENDED = 1024, KEPT = 4096 };
enum { BATCH = 32 };

#define METRICS "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"

static uint32_t begun;       /* requests */
static int64_t first_handle; /* of those that began last */

static void stop(void)
{
	begun = 0;
	serve_stage_stop();
}

TestSuite(serve_signatures, .init = serve_stage_start, .fini = stop, .timeout = 240);

/* The sum of some of the figures, of one answer. */
static json_int_t sum_of(const char *const *figures)
{
	struct http_reply reply = ask("GET", "/v1/channels", NULL);
	const json_t *instance = json_array_get(at(reply.json, "instances", NULL), 0);
	json_int_t sum = 0;

	for (; *figures; figures++) {
		const json_t *found = at(instance, "signatures", *figures);

		cr_assert(json_is_integer(found), "%s is no number", *figures);
		sum += json_integer_value(found);
	}
	json_decref(reply.json);
	return sum;
}

#define TOLD(...) sum_of((const char *[]){__VA_ARGS__, NULL})

static void await_figure(const char *figure, json_int_t value)
{
	json_int_t now = TOLD(figure);

	for (int tries = 0; now != value && tries < 3000; tries++) {
		poll(NULL, 0, 10);
		now = TOLD(figure);
	}
	cr_assert_eq(now, value, "%s: %lld, not %lld", figure, (long long)now, (long long)value);
}

/* All requests that ever began are kept, or were. */
static void await_begun(void)
{
	json_int_t seen = 0;

	for (int tries = 0; tries < 3000; tries++) {
		seen = TOLD("live", "ended", "evicted", "forgotten");
		if (seen == (json_int_t)begun)
			return;
		poll(NULL, 0, 10);
	}
	cr_assert_fail("of %u requests %lld were seen", begun, (long long)seen);
}

/* A line of /metrics, of the engine; more labels behind it as they stand there. */
static void expect_metric(const char *name, const char *more, uint64_t value)
{
	const char *answer = http_exchange(http_dial_path(stage.path), METRICS);
	char line[256];

	snprintf(line, sizeof(line), "\n%s{engine=\"%s\"%s} %llu\n", name, serve_stage_instance(),
		 more, (unsigned long long)value);
	cr_expect(strstr(answer, line), "%s is not in:\n%s", line + 1, answer);
}

/* A step with a row of each of these requests. */
static void run_step(const uint64_t *handle, uint32_t count)
{
	static const uint32_t positions[BATCH];
	struct engine *engine = &stage.tool.engine;
	uint32_t row[BATCH], rows[BATCH];
	struct r3ring_step step = {
		.size = sizeof(step),
		.total_rows = count,
		.row_end = count,
		.valid_end = count,
		.spans = count,
		.span_request = handle,
		.span_position = positions,
		.span_row = row,
		.span_rows = rows,
	};
	int64_t number;

	for (uint32_t i = 0; i < count; i++) {
		row[i] = i;
		rows[i] = 1;
	}
	number = r3ring_step_begin(engine->producer, &step, NULL);
	cr_assert_gt(number, 0);
	for (uint32_t layer = 0; layer < ENGINE_LAYERS; layer++)
		engine_capture(engine, number, layer, count);
	engine_end(engine);
}

/* A row of each of so many new requests; they then have ended, or run on. */
static void run_requests(uint32_t count, bool end)
{
	struct r3ring_producer *producer = stage.tool.engine.producer;
	struct r3ring_request request = {.size = sizeof(request), .prompt_tokens = 1};
	uint64_t handle[BATCH];
	char id[32];

	for (uint32_t done = 0; done < count; done += BATCH) {
		uint32_t some = count - done < BATCH ? count - done : BATCH;

		for (uint32_t i = 0; i < some; i++) {
			snprintf(id, sizeof(id), "req-%u", begun++);
			request.id = id;
			handle[i] = (uint64_t)r3ring_request_begin(producer, &request);
			cr_assert_gt((int64_t)handle[i], 0);
		}
		run_step(handle, some);
		for (uint32_t i = 0; end && i < some; i++)
			r3ring_request_end(producer, (int64_t)handle[i], R3RING_END_FINISHED, 0, 2);
		if (!done)
			first_handle = (int64_t)handle[0];
		/* Neither daemon nor follower miss any. */
		engine_step(&stage.tool.engine, 0, 1);
		await_begun();
	}
}

Test(serve_signatures, what_had_to_go_for_others_is_counted_and_never_falls)
{
	serve_stage_run(1);
	run_requests(KEPT_ENDED + 6, true);
	await_figure("ended", KEPT_ENDED);
	await_figure("forgotten", 6);
	cr_expect_eq(TOLD("live"), 0);
	cr_expect_eq(TOLD("rows_missing"), 0, "so that what follows can be worked out");
	cr_expect_eq(TOLD("evicted"), 0);
	/* Of each only the prompt has rows: 16 bits for each expert of each layer. */
	cr_expect_eq(TOLD("bytes"), KEPT_ENDED * ENGINE_LAYERS * ENGINE_EXPERTS * 2, "%lld",
		     (long long)TOLD("bytes"));
	expect_metric("r3ring_signatures", ",state=\"ended\"", KEPT_ENDED);
	expect_metric("r3ring_signatures_evicted_total", ",state=\"ended\"", 6);
	expect_metric("r3ring_signatures_evicted_total", ",state=\"live\"", 0);

	/* Those that run take the place of all that have ended, then of three that run. */
	run_requests(KEPT + 3, false);
	await_figure("live", KEPT);
	await_figure("evicted", 3);
	cr_expect_eq(TOLD("ended"), 0);
	cr_expect_eq(TOLD("forgotten"), KEPT_ENDED + 6);
	cr_expect_eq(TOLD("rows_unkept"), 0);
	/* Of the first of them; its first position was counted before. */
	engine_step(&stage.tool.engine, first_handle, 2);
	await_figure("rows_unkept", 1);
	expect_metric("r3ring_signatures", ",state=\"live\"", KEPT);
	expect_metric("r3ring_signatures_evicted_total", ",state=\"live\"", 3);
	expect_metric("r3ring_signatures_evicted_total", ",state=\"ended\"", KEPT_ENDED + 6);
	expect_metric("r3ring_signature_rows_unkept_total", "", 1);
	expect_metric("r3ring_signature_keys_evicted_total", "", 0);
	expect_metric("r3ring_signature_bytes", "", (uint64_t)TOLD("bytes", "key_bytes"));
}
