/* SPDX-License-Identifier: Apache-2.0 */
/* What becomes of reservations and answers when a map or the daemon goes, or where the room is
 * not known. */
#include <criterion/criterion.h>

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

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
