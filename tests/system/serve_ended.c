/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Engines that have ended, or were killed: no scheduler is sent there, and what runs on is judged
 * without them. The daemon keeps their rings open all the while.
 */
#include <criterion/criterion.h>

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "tests/system/serve_stage.h"

TestSuite(serve_ended, .init = serve_stage_start, .fini = serve_stage_stop);

/* ---- engines of the tests ------------------------------------------------------ */

#define RANKS 2

static char name[64]; /* of the instance that is served first */
static struct command rank[RANKS];

/* Serves an instance of real ranks, which need not be there yet, and then the stage's. */
static void serve_it(const char *suffix)
{
	snprintf(name, sizeof(name), "%s-%s", serve_stage_instance(), suffix);
	command_start(&stage.server, stage.tool.daemon.dir,
		      ARGS("serve", "--instance", name, "--instance", serve_stage_instance(),
			   "--unix", stage.path, "--gpus", "2", "--capacity", "1000000"));
	cr_assert(command_tells(&stage.server, "listening on"));
}

/* One that runs until it is ended: for minutes. */
static void start_rank_of(unsigned int number, const char *model, const char *rate,
			  const char *requests)
{
	char text[16];

	snprintf(text, sizeof(text), "%u", number);
	command_free(&rank[number]);
	command_start(&rank[number], stage.tool.daemon.dir,
		      ARGS("produce", "--instance", name, "--rank", text, "--model", model,
			   "--text", "LICENSE", "--rate", rate, "--requests", requests));
}

static void start_rank(unsigned int number)
{
	start_rank_of(number, "gpt-oss-20b", "20", "4000");
}

static void end_rank(unsigned int number, int signal)
{
	kill(rank[number].pid, signal);
	command_wait(&rank[number]);
}

static void free_ranks(void)
{
	for (unsigned int i = 0; i < RANKS; i++)
		command_free(&rank[i]);
}

/* "/v1/load?instance=NAME"; static. */
static const char *of_it(const char *what)
{
	static char path[160];

	snprintf(path, sizeof(path), "%s?instance=%s", what, name);
	return path;
}

static struct http_reply reserve(const char *key)
{
	char body[200];

	snprintf(body, sizeof(body), "{\"instance\": \"%s\", \"key\": \"%s\", \"ttl_ms\": 3600000}",
		 name, key);
	return ask("POST", "/v1/reservations", body);
}

static void expect_granted(const char *key)
{
	struct http_reply reply = reserve(key);

	cr_expect_eq(reply.status, 201, "%s: %d", key, reply.status);
	json_decref(reply.json);
}

/* ---- what is told ---------------------------------------------------------------- */

static bool is_of_channels(const json_t *answer, const void *wanted)
{
	return json_integer_value(at(answer, "channels", NULL)) == *(const json_int_t *)wanted;
}

static bool has_steps(const json_t *answer, const void *least)
{
	return json_integer_value(at(answer, "steps", NULL)) >= *(const json_int_t *)least;
}

static void await_channels(json_int_t count)
{
	cr_assert(becomes(of_it("/v1/load"), is_of_channels, &count),
		  "the load does not become that of %lld channels", (long long)count);
}

/* The stage's engine is ranked first only once a server that starts has read its step. */
static void await_stage(void)
{
	char path[160];

	snprintf(path, sizeof(path), "/v1/load?instance=%s", serve_stage_instance());
	cr_assert(becomes(path, has_steps, &(json_int_t){1}), "the stage's step is not read");
}

static const json_t *ended_of(const json_t *answer)
{
	return at(json_array_get(at(answer, "instances", NULL), 0), "ended", NULL);
}

/* Exactly that rank of it, by its number. */
static bool has_ended_alone(const json_t *answer, const void *number)
{
	const char *told = json_string_value(json_array_get(ended_of(answer), 0));
	char wanted[96];

	snprintf(wanted, sizeof(wanted), "%s/%u", name, *(const unsigned int *)number);
	return json_array_size(ended_of(answer)) == 1 && strcmp(told, wanted) == 0;
}

static const char *reason = "the engine has ended", *remedy = "start it again";

static void expect_refusal(struct http_reply reply, const char *what)
{
	const char *words = json_string_value(at(reply.json, "error", "message"));

	cr_expect_eq(reply.status, 503, "%s: %d", what, reply.status);
	cr_expect(words && strstr(words, name), "%s: whose? %s", what, words);
	cr_expect(words && strstr(words, reason), "%s: %s", what, words);
	cr_expect(words && strstr(words, remedy), "%s: remedy? %s", what, words);
	json_decref(reply.json);
}

/* Ranked behind the stage's, and not known to fit. */
static void expect_ranked_last(void)
{
	struct http_reply reply;
	const json_t *ranked, *first, *last;

	await_stage();
	reply = ask("POST", "/v1/score", "{\"tokens\": 1}");
	ranked = at(reply.json, "ranked", NULL);
	first = json_array_get(ranked, 0);
	last = json_array_get(ranked, 1);
	cr_expect(json_is_true(at(first, "fits", NULL)));
	cr_expect_str_eq(json_string_value(at(first, "instance", NULL)), serve_stage_instance());
	cr_expect(json_is_null(at(last, "fits", NULL)));
	cr_expect_str_eq(json_string_value(at(last, "instance", NULL)), name);
	cr_expect(strstr(json_string_value(at(last, "error", NULL)), reason));
	json_decref(reply.json);
}

static const char *metrics(void)
{
	return http_exchange(http_dial_path(stage.path),
			     "GET /metrics HTTP/1.1\r\nHost: localhost\r\n"
			     "Connection: close\r\n\r\n");
}

static void expect_live_metric(int value)
{
	char line[160];

	snprintf(line, sizeof(line), "\nr3ring_engine_live{engine=\"%s\"} %d\n", name, value);
	cr_expect(strstr(metrics(), line), "not there: %s", line);
}

/* Of one of its layers at least, or of none. */
static void expect_layer_metrics(bool there)
{
	static const char *const of_layers[] = {"expert_load_ratio", "experts_without_load",
						"gpu_load_ratio"};
	const char *text = metrics();
	char line[160];

	for (size_t i = 0; i < sizeof(of_layers) / sizeof(*of_layers); i++) {
		snprintf(line, sizeof(line), "\nr3ring_layer_%s{engine=\"%s\"", of_layers[i], name);
		cr_expect_eq(strstr(text, line) != NULL, there, "%s", line);
	}
}

static void expect_offered_to_nobody(void)
{
	expect_refusal(reserve("more"), "a reservation");
	expect_refusal(ask("GET", of_it("/v1/load"), NULL), "load");
	expect_refusal(ask("GET", of_it("/v1/plan"), NULL), "a plan");
	expect_ranked_last();
}

static bool has_none(const json_t *answer, const void *unused)
{
	(void)unused;
	return json_array_size(at(answer, "reservations", NULL)) == 0;
}

/* ---- all of it ---------------------------------------------------------------------- */

static void expect_ended_by(int signal)
{
	serve_it("ends");
	engine_step(&stage.tool.engine, 0, 4);
	start_rank(0);
	await_channels(1);
	expect_live_metric(1);
	expect_layer_metrics(true);
	expect_granted("first");
	end_rank(0, signal);
	cr_assert(becomes("/v1/channels", is_in_state, "ended"));
	expect_offered_to_nobody();
	expect_live_metric(0);
	expect_layer_metrics(false);
	cr_expect(becomes(of_it("/v1/reservations"), has_none, NULL));

	start_rank(0);
	cr_assert(becomes("/v1/channels", is_in_state, "live"));
	await_channels(1);
	expect_granted("second");
	expect_live_metric(1);
	free_ranks();
}

Test(serve_ended, a_killed_engine_is_offered_to_nobody_until_it_is_back)
{
	expect_ended_by(SIGKILL);
}

Test(serve_ended, an_engine_that_ended_in_good_order_is_offered_to_nobody_until_it_is_back)
{
	expect_ended_by(SIGTERM);
}

Test(serve_ended, an_engine_that_had_ended_before_the_server_came_is_never_offered)
{
	serve_it("before");
	engine_step(&stage.tool.engine, 0, 4);
	start_rank(0);
	await_channels(1);
	command_interrupt(&stage.server);
	command_free(&stage.server);
	end_rank(0, SIGKILL);
	serve_it("before");
	cr_expect(becomes("/v1/channels", is_in_state, "ended"));
	expect_offered_to_nobody();
	free_ranks();
}

/* Asks for it from the server's first moment on until its end is known. */
static void expect_no_grant_from_the_start(void)
{
	for (bool ended = false; !ended;) {
		struct http_reply reply = reserve("early"), channels;

		cr_assert_eq(reply.status, 503, "%d", reply.status);
		json_decref(reply.json);
		channels = ask("GET", "/v1/channels", NULL);
		ended = is_in_state(channels.json, "ended");
		json_decref(channels.json);
	}
}

/* Many steps, which take the server some time to read. */
Test(serve_ended, an_engine_that_had_ended_is_not_offered_while_the_server_starts)
{
	enum { STARTS = 8 };

	serve_it("starts");
	start_rank_of(0, "gpt-oss-20b", "1000", "4000");
	await_channels(1);
	cr_assert(becomes(of_it("/v1/load"), has_steps, &(json_int_t){256}));
	end_rank(0, SIGKILL);
	cr_assert(becomes("/v1/channels", is_in_state, "ended"));
	for (int i = 0; i < STARTS; i++) {
		command_interrupt(&stage.server);
		command_free(&stage.server);
		serve_it("starts");
		expect_no_grant_from_the_start();
	}
	free_ranks();
}

/* ---- a part of it --------------------------------------------------------------------- */

static bool is_young(const json_t *answer, const void *unused)
{
	(void)unused;
	return json_number_value(at(answer, "age_ms", NULL)) < 1000 &&
	       json_integer_value(at(answer, "epoch", NULL)) > 0;
}

Test(serve_ended, a_rank_that_ended_leaves_the_load_to_the_others_until_it_is_back)
{
	const unsigned int one = 1;

	serve_it("ranks");
	start_rank(0);
	start_rank(1);
	await_channels(2);
	expect_granted("kept");
	end_rank(1, SIGKILL);
	cr_assert(becomes("/v1/channels", has_ended_alone, &one));
	await_channels(1);
	cr_expect(becomes("/v1/channels", is_in_state, "live"));
	cr_expect(becomes(of_it("/v1/load"), is_young, NULL), "judged by the rank that ended");
	expect_status("GET", of_it("/v1/plan"), NULL, 200);
	expect_granted("more");
	expect_live_metric(1);
	start_rank(1);
	await_channels(2);
	free_ranks();
}

/* ---- requests of an engine that was killed ----------------------------------------------- */

static bool has_rows(const json_t *answer, const void *wanted)
{
	(void)wanted;
	return json_integer_value(at(answer, "prefill_rows", NULL)) > 0;
}

/* Another rank lives, so that reservations of requests that no rank has begun stay. */
Test(serve_ended, a_killed_ranks_requests_free_what_was_reserved_for_them)
{
	serve_it("killed");
	start_rank(0);
	cr_assert(becomes("/v1/signature?request=req-0009", has_rows, NULL));
	start_rank_of(1, "gpt-oss-20b", "1", "8");
	await_channels(2);
	expect_granted("req-0009");
	expect_granted("next");
	end_rank(0, SIGKILL);
	cr_expect(becomes(of_it("/v1/reservations"), is_all_there_is, "next"));
	free_ranks();
}

/* ---- the daemon ---------------------------------------------------------------------------- */

/* All the states that were seen until it was live again. */
static void expect_never_ended(void)
{
	for (int tries = 0;; tries++) {
		struct http_reply reply = ask("GET", "/v1/channels", NULL);
		bool live = is_in_state(reply.json, "live");

		cr_assert(!is_in_state(reply.json, "ended"));
		cr_assert_eq(json_array_size(ended_of(reply.json)), 0);
		json_decref(reply.json);
		if (live)
			return;
		cr_assert_lt(tries, 6000, "it is not live again");
		poll(NULL, 0, 10);
	}
}

static void expect_daemon_is_missed(void (*end)(void))
{
	serve_it("goes-on");
	start_rank(0);
	await_channels(1);
	expect_granted("kept");
	end();
	cr_assert(becomes("/v1/channels", is_in_state, "silent"));
	expect_status("GET", of_it("/v1/load"), NULL, 200);
	test_daemon_restart(&stage.tool.daemon, NULL);
	expect_never_ended();
	expect_granted("more");
	expect_status("GET", of_it("/v1/load"), NULL, 200);
	free_ranks();
}

static void kill_daemon(void)
{
	test_daemon_kill(&stage.tool.daemon);
}

static void stop_daemon(void)
{
	test_daemon_stop(&stage.tool.daemon);
}

Test(serve_ended, an_engine_whose_daemon_was_killed_and_comes_back_has_not_ended)
{
	expect_daemon_is_missed(kill_daemon);
}

Test(serve_ended, an_engine_whose_daemon_ended_in_good_order_and_comes_back_has_not_ended)
{
	expect_daemon_is_missed(stop_daemon);
}

/* ---- engines that die without a daemon that could tell --------------------------------------- */

static bool is_daemon_up(void)
{
	return strstr(metrics(), "\nr3ring_daemon_up 1\n");
}

/* The daemon has told of its process, which takes it a second. */
static void await_rank_told(void)
{
	char line[160];

	snprintf(line, sizeof(line), "\nr3ring_channel_live{channel=\"%s/0\"} 1\n", name);
	for (int tries = 0; !strstr(metrics(), line); tries++) {
		cr_assert_lt(tries, 6000, "not there: %s", line);
		poll(NULL, 0, 10);
	}
}

Test(serve_ended, an_engine_that_dies_while_its_daemon_is_gone_is_offered_to_nobody_from_then_on)
{
	serve_it("both-die");
	engine_step(&stage.tool.engine, 0, 4);
	start_rank(0);
	await_channels(1);
	expect_granted("first");
	await_rank_told();
	kill_daemon();
	cr_assert(becomes("/v1/channels", is_in_state, "silent"));
	end_rank(0, SIGKILL);
	cr_assert(becomes("/v1/channels", is_in_state, "ended"));
	expect_offered_to_nobody();
	cr_expect(becomes(of_it("/v1/reservations"), has_none, NULL));

	test_daemon_restart(&stage.tool.daemon, NULL);
	for (int after = 0; after < 50; after += is_daemon_up())
		expect_offered_to_nobody();
	start_rank(0);
	await_channels(1);
	expect_granted("second");
	free_ranks();
}

static bool second_is_live(const json_t *answer, const void *unused)
{
	const json_t *second = json_array_get(at(answer, "instances", NULL), 1);

	(void)unused;
	engine_step(&stage.tool.engine, 0, 4);
	return strcmp(json_string_value(at(second, "state", NULL)), "live") == 0;
}

/* Also where it has more room: nothing is reserved there. */
static void expect_silent_is_last(void)
{
	struct http_reply reply = ask("POST", "/v1/score", "{\"tokens\": 1}");
	const json_t *ranked = at(reply.json, "ranked", NULL);
	const json_t *first = json_array_get(ranked, 0), *last = json_array_get(ranked, 1);

	cr_expect_str_eq(json_string_value(at(first, "state", NULL)), "live");
	cr_expect_str_eq(json_string_value(at(last, "state", NULL)), "silent");
	cr_expect_str_eq(json_string_value(at(last, "instance", NULL)), name);
	cr_expect(json_is_true(at(last, "fits", NULL)));
	cr_expect_gt(json_number_value(at(last, "age_ms", NULL)),
		     json_number_value(at(first, "age_ms", NULL)));
	cr_expect_gt(json_number_value(at(last, "tightest", "margin")),
		     json_number_value(at(first, "tightest", "margin")));
	json_decref(reply.json);
}

/* It stands still, and does not come back to the next daemon for now. */
Test(serve_ended, an_engine_that_gives_no_sign_of_life_is_ranked_behind_one_that_lives)
{
	char body[160];

	serve_it("silent");
	engine_step(&stage.tool.engine, 0, 4);
	start_rank(0);
	await_channels(1);
	snprintf(body, sizeof(body),
		 "{\"instance\": \"%s\", \"key\": \"k\", \"tokens\": 1000, "
		 "\"ttl_ms\": 3600000}",
		 serve_stage_instance());
	expect_status("POST", "/v1/reservations", body, 201);
	kill(rank[0].pid, SIGSTOP);
	kill_daemon();
	cr_assert(becomes("/v1/channels", is_in_state, "silent"));
	test_daemon_restart(&stage.tool.daemon, NULL);
	cr_assert(becomes("/v1/channels", second_is_live, NULL));
	expect_silent_is_last();
	kill(rank[0].pid, SIGCONT);
	free_ranks();
}
