/* SPDX-License-Identifier: Apache-2.0 */
/* What becomes of reservations and answers when a map or the daemon goes, or where the room is
 * not known. */
#include <criterion/criterion.h>

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <r3ring/atomic.h>

#include "tests/support/lap.h"
#include "tests/support/stand_still.h"
#include "tests/support/worker.h"
#include "tests/system/serve_stage.h"

TestSuite(serve_failures, .init = serve_stage_start, .fini = serve_stage_stop);

/* ---- maps --------------------------------------------------------------------- */

/* All experts on GPU @first of two but for the last half, which are on the other. */
static void announce_map(uint64_t epoch, uint32_t first)
{
	static uint16_t map[ENGINE_LAYERS][ENGINE_EXPERTS];
	const struct r3ring_eplb_record head = {.epoch = epoch,
						.layers = ENGINE_LAYERS,
						.experts = ENGINE_EXPERTS,
						.replicas = 1,
						.physical = ENGINE_EXPERTS,
						.gpus = 2};

	for (uint32_t layer = 0; layer < ENGINE_LAYERS; layer++) {
		for (uint32_t expert = 0; expert < ENGINE_EXPERTS; expert++)
			map[layer][expert] =
				(uint16_t)((expert + first * ENGINE_EXPERTS / 2) % ENGINE_EXPERTS);
	}
	cr_assert_eq(r3ring_eplb(stage.tool.engine.producer, &head, &map[0][0]), 0);
	stage.tool.engine.eplb_epoch = epoch;
}

static bool is_under_epoch(const json_t *answer, const void *wanted)
{
	return (uint64_t)json_integer_value(at(answer, "epoch", NULL)) == *(const uint64_t *)wanted;
}

/* The book's GPU with the least left for a request that knows nothing, and the map it is by. */
static void expect_answer_under(uint64_t epoch)
{
	for (int tries = 0;; tries++) {
		struct http_reply reply = ask("POST", "/v1/score", "{\"tokens\": 1}");
		const json_t *first = json_array_get(at(reply.json, "ranked", NULL), 0);
		json_int_t told = json_integer_value(at(first, "tightest", "epoch"));

		json_decref(reply.json);
		if ((uint64_t)told == epoch)
			return;
		cr_assert_lt(tries, 6000, "answers are under epoch %lld, not %llu", (long long)told,
			     (unsigned long long)epoch);
		poll(NULL, 0, 10);
	}
}

Test(serve_failures, an_engine_that_begins_anew_counts_its_epochs_from_the_beginning)
{
	const uint64_t seven = 7, one = 1;

	serve_stage_serve((const char *[]){"--gpus", "2", "--capacity", "100", NULL});
	announce_map(7, 0);
	engine_step(&stage.tool.engine, 0, 4);
	cr_assert(becomes("/v1/load", is_under_epoch, &seven));
	expect_status("POST", "/v1/reservations", "{\"key\": \"kept\", \"ttl_ms\": 3600000}", 201);
	expect_answer_under(7);
	engine_close(&stage.tool.engine);
	tool_stage_open(&stage.tool, "prod");
	announce_map(1, 1);
	engine_step(&stage.tool.engine, 0, 4);
	cr_assert(becomes("/v1/load", is_under_epoch, &one));
	expect_answer_under(1);
	cr_expect(becomes("/v1/reservations", is_all_there_is, "kept"));
}

static bool has_gaps(const json_t *channels, const void *unused)
{
	const json_t *instance = json_array_get(at(channels, "instances", NULL), 0);

	(void)unused;
	return json_integer_value(at(instance, "gaps", NULL)) > 0;
}

/* With a ring of few steps. */
static void start_small(void)
{
	tool_stage_start(&stage.tool, (const char *[]){"--ring-size", "512K", NULL});
	tool_stage_open(&stage.tool, "prod");
	snprintf(stage.path, sizeof(stage.path), "%s/serve.sock", stage.tool.daemon.dir);
}

TestSuite(serve_lapped, .init = start_small, .fini = serve_stage_stop);

/* Where its reader goes on nothing may be known before a keyframe, which comes only with more steps. */
static void run_until_under_epoch(uint64_t epoch)
{
	bool is_so = false;

	for (int tries = 0; !is_so; tries++) {
		struct http_reply reply = ask("GET", "/v1/load", NULL);

		is_so = reply.status == 200 && is_under_epoch(reply.json, &epoch);
		json_decref(reply.json);
		cr_assert_lt(tries, 6000, "no load under epoch %llu", (unsigned long long)epoch);
		engine_step(&stage.tool.engine, 0, 16);
		poll(NULL, 0, 10);
	}
}

/* It stands still while the engine begins anew and goes beyond its first records. */
Test(serve_lapped, an_engine_whose_first_records_went_by_counts_its_epochs_from_the_beginning)
{
	struct engine *engine = &stage.tool.engine;
	const char *channel = tool_stage_channel(&stage.tool, "prod");
	const uint64_t seven = 7;

	serve_stage_serve((const char *[]){"--gpus", "2", "--capacity", "100", NULL});
	announce_map(7, 0);
	engine_step(engine, 0, 4);
	cr_assert(becomes("/v1/load", is_under_epoch, &seven));
	expect_status("POST", "/v1/reservations", "{\"key\": \"kept\", \"ttl_ms\": 3600000}", 201);
	expect_answer_under(7);
	stand_still(stage.server.pid);
	engine_close(engine);
	tool_stage_open(&stage.tool, "prod");
	announce_map(1, 1);
	cr_assert(engine_lap(engine, stage.tool.daemon.dir, channel, 16, 100));
	kill(stage.server.pid, SIGCONT);
	run_until_under_epoch(1);
	cr_expect(becomes("/v1/channels", has_gaps, NULL), "then nothing is seen of it");
	expect_answer_under(1);
}

/* ---- requests of several ranks ----------------------------------------------------- */

/* "shared" on a rank of its own, until it is killed. */
static int run_rank_one(struct worker_page *page, const void *ctx)
{
	const struct r3ring_request request = {.size = sizeof(request), .id = "shared"};
	struct engine engine;
	int64_t handle;

	(void)ctx;
	if (engine_open_rank(&engine, stage.tool.daemon.dir, serve_stage_instance(),
			     (struct engine_rank){.rank = 1}, 64, NULL) < 0)
		return 1;
	handle = r3ring_request_begin(engine.producer, &request);
	engine_step(&engine, handle, 4);
	r3ring_store_relaxed_u64(&page->progress, 1);
	for (;;)
		pause();
}

static bool is_of_two(const json_t *load, const void *unused)
{
	(void)unused;
	return json_integer_value(at(load, "channels", NULL)) == 2;
}

/* The daemon has told of its process, which takes it a second. */
static void await_rank_one_told(void)
{
	char line[160];

	snprintf(line, sizeof(line), "\nr3ring_channel_live{channel=\"%s/1\"} 1\n",
		 serve_stage_instance());
	for (int tries = 0; !strstr(http_exchange(http_dial_path(stage.path),
						  "GET /metrics HTTP/1.1\r\nHost: localhost\r\n"
						  "Connection: close\r\n\r\n"),
				    line);
	     tries++) {
		cr_assert_lt(tries, 6000, "not there: %s", line);
		poll(NULL, 0, 10);
	}
}

static bool has_another(const json_t *signature, const void *unused)
{
	(void)unused;
	return json_integer_value(at(signature, "same_id", NULL)) == 1;
}

static bool are_two(const json_t *answer, const void *unused)
{
	(void)unused;
	return json_array_size(at(answer, "reservations", NULL)) == 2;
}

/* One rank's end is told, the other's never is: no daemon is there to tell it. */
Test(serve_failures, a_request_that_ends_on_one_rank_and_dies_with_another_frees_what_was_reserved)
{
	const struct r3ring_request request = {.size = sizeof(request), .id = "shared"};
	struct worker other;
	int64_t handle;

	worker_start(&other, run_rank_one, NULL);
	cr_assert(worker_reaches(&other, 1));
	serve_stage_serve((const char *[]){"--gpus", "2", "--capacity", "100", NULL});
	handle = r3ring_request_begin(stage.tool.engine.producer, &request);
	engine_step(&stage.tool.engine, handle, 4);
	cr_assert(becomes("/v1/load", is_of_two, NULL));
	cr_assert(becomes("/v1/signature?request=shared", has_another, NULL));
	expect_status("POST", "/v1/reservations", "{\"key\": \"shared\", \"ttl_ms\": 3600000}",
		      201);
	expect_status("POST", "/v1/reservations", "{\"key\": \"kept\", \"ttl_ms\": 3600000}", 201);
	r3ring_request_end(stage.tool.engine.producer, handle, R3RING_END_FINISHED, 0, 4);
	engine_step(&stage.tool.engine, 0, 4);
	serve_stage_await(2);
	cr_expect(becomes("/v1/reservations", are_two, NULL), "freed by the first end");
	await_rank_one_told();
	test_daemon_kill(&stage.tool.daemon);
	worker_kill(&other);
	cr_expect(becomes("/v1/reservations", is_all_there_is, "kept"));
}

/* ---- the daemon ----------------------------------------------------------------- */

Test(serve_failures, while_the_daemon_is_gone_what_was_known_stays_and_reservations_too)
{
	serve_stage_run(3);
	expect_status("POST", "/v1/reservations", "{\"key\": \"kept\", \"ttl_ms\": 3600000}", 201);
	test_daemon_kill(&stage.tool.daemon);
	cr_expect(becomes("/v1/channels", is_in_state, "silent"));
	expect_status("GET", "/v1/load", NULL, 200);
	expect_status("POST", "/v1/reservations", "{\"key\": \"more\", \"ttl_ms\": 1}", 201);
	test_daemon_restart(&stage.tool.daemon, NULL);
	cr_expect(becomes("/v1/channels", is_in_state, "live"));
	for (int i = 0; i < 3; i++)
		engine_step(&stage.tool.engine, 0, 4);
	cr_expect(becomes("/v1/reservations", is_all_there_is, "kept"));
}

/* ---- what nobody knows --------------------------------------------------------- */

/* Nothing is promised of it. */
static void expect_unknown(const char *const *args, const char *option)
{
	struct http_reply reply;
	const char *text;

	serve_stage_serve(args);
	engine_step(&stage.tool.engine, 0, 4);
	serve_stage_await(1);
	reply = ask("POST", "/v1/reservations", "{\"key\": \"a\"}");
	text = json_string_value(at(reply.json, "error", "message"));
	cr_expect_eq(reply.status, 503, "%d", reply.status);
	cr_expect(text && strstr(text, option), "%s", text ? text : "");
	json_decref(reply.json);
}

Test(serve_failures, without_the_room_of_its_gpus_nothing_is_reserved_and_the_option_is_named)
{
	expect_unknown((const char *[]){"--gpus", "2", NULL}, "say so with --capacity");
}

Test(serve_failures, without_the_number_of_its_gpus_likewise)
{
	expect_unknown((const char *[]){"--capacity", "100", NULL}, "say so with --gpus");
}
