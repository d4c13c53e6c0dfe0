/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Engines that come back with another model under the name that is served: it is served with all
 * that it did, and nothing of the one before is left but sums, which go on.
 */
#include <criterion/criterion.h>

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <r3ring/atomic.h>

#include "tests/support/worker.h"
#include "tests/system/serve_stage.h"

TestSuite(serve_models, .init = serve_stage_start, .fini = serve_stage_stop);

/* ---- engines of the tests ------------------------------------------------------ */

struct model {
	const char *name;
	json_int_t layers, experts;
};

static const struct model gpt = {"gpt-oss-20b", 24, 32}, qwen = {"qwen3-235b", 94, 128};

#define RANKS 2

static char name[64]; /* of the instance */
static struct command rank[RANKS];

static void serve_it(const char *suffix)
{
	snprintf(name, sizeof(name), "%s-%s", serve_stage_instance(), suffix);
	command_start(&stage.server, stage.tool.daemon.dir,
		      ARGS("serve", "--instance", name, "--unix", stage.path, "--gpus", "2",
			   "--capacity", "1000000"));
	cr_assert(command_tells(&stage.server, "listening on"));
}

/* It computes as fast as it can, or runs until it is ended: for minutes. */
static void start_rank(unsigned int number, const struct model *model, const char *rate,
		       const char *requests)
{
	char text[16];

	snprintf(text, sizeof(text), "%u", number);
	command_free(&rank[number]);
	command_start(&rank[number], stage.tool.daemon.dir,
		      ARGS("produce", "--instance", name, "--rank", text, "--model", model->name,
			   "--text", "LICENSE", "--rate", rate, "--requests", requests, "--json"));
}

static void run_rank(unsigned int number, const struct model *model)
{
	start_rank(number, model, "20", "4000");
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

/* Runs some requests to their end; the cells that they had, as the engine itself counts rows. */
static uint64_t run_to_the_end(const struct model *model)
{
	json_t *told;
	uint64_t rows;

	start_rank(0, model, "100", "4");
	cr_assert_eq(command_wait(&rank[0]), 0, "%s", rank[0].err);
	told = json_loads(rank[0].out, 0, NULL);
	rows = (uint64_t)json_integer_value(at(told, "rows", NULL));
	json_decref(told);
	cr_assert_gt(rows, 0);
	return rows * (uint64_t)model->layers;
}

/* ---- what is told ---------------------------------------------------------------- */

static bool is_of_model(const json_t *load, const void *wanted)
{
	const struct model *model = wanted;

	return json_integer_value(at(load, "experts", NULL)) == model->experts &&
	       json_array_size(at(load, "layers", NULL)) == (size_t)model->layers;
}

static void await_load(const struct model *model)
{
	cr_assert(becomes("/v1/load", is_of_model, model), "no load of %s", model->name);
}

/* Of /v1/channels. */
static const json_t *replaced(const json_t *channels, const char *what)
{
	return at(at(json_array_get(at(channels, "instances", NULL), 0), "replaced", NULL), what,
		  NULL);
}

static const char *scrape(void)
{
	return http_exchange(http_dial_path(stage.path),
			     "GET /metrics HTTP/1.1\r\nHost: localhost\r\n"
			     "Connection: close\r\n\r\n");
}

static uint64_t counter(const char *metric)
{
	char line[160];
	const char *found;

	snprintf(line, sizeof(line), "\n%s{engine=\"%s\"} ", metric, name);
	found = strstr(scrape(), line);
	cr_assert(found, "not there: %s", line);
	return strtoull(found + strlen(line), NULL, 10);
}

static void await_cells(uint64_t cells)
{
	for (int tries = 0; counter("r3ring_load_cells_total") < cells; tries++) {
		cr_assert_lt(tries, 6000, "%llu cells, not %llu",
			     (unsigned long long)counter("r3ring_load_cells_total"),
			     (unsigned long long)cells);
		poll(NULL, 0, 10);
	}
}

/* The name of what was granted; static. */
static const char *reserve(const char *key)
{
	static char reservation[128];
	char body[200];
	struct http_reply reply;

	snprintf(body, sizeof(body), "{\"key\": \"%s\", \"ttl_ms\": 3600000}", key);
	reply = ask("POST", "/v1/reservations", body);
	cr_assert_eq(reply.status, 201, "%d", reply.status);
	snprintf(reservation, sizeof(reservation), "/v1/reservations/%s",
		 json_string_value(at(reply.json, "reservation", NULL)));
	json_decref(reply.json);
	return reservation;
}

static void expect_refusal(struct http_reply reply, int status, const char *reason,
			   const char *remedy)
{
	const char *words = json_string_value(at(reply.json, "error", "message"));

	cr_expect_eq(reply.status, status, "%d: %s", reply.status, words);
	cr_expect(words && strstr(words, reason), "%s", words);
	cr_expect(words && strstr(words, remedy), "remedy? %s", words);
	json_decref(reply.json);
}

/* ---- another model ----------------------------------------------------------------- */

static void expect_scored(void)
{
	struct http_reply reply = ask("POST", "/v1/score", "{\"tokens\": 1}");
	const json_t *first = json_array_get(at(reply.json, "ranked", NULL), 0);

	cr_expect(json_is_true(at(first, "fits", NULL)));
	json_decref(reply.json);
}

static void expect_planned(const struct model *model)
{
	struct http_reply reply = ask("POST", "/v1/plan", "{\"replicas\": 256}");

	cr_expect_eq(reply.status, 200, "%d", reply.status);
	cr_expect_eq(json_integer_value(at(reply.json, "experts", NULL)), model->experts);
	cr_expect_eq(json_integer_value(at(reply.json, "layers", NULL)), model->layers);
	json_decref(reply.json);
}

static bool has_signature_of(const json_t *signature, const void *wanted)
{
	const struct model *model = wanted;

	return json_integer_value(at(signature, "experts", NULL)) == model->experts &&
	       json_array_size(at(signature, "layers", NULL)) == (size_t)model->layers &&
	       json_integer_value(at(signature, "prefill_rows", NULL)) > 0;
}

static void expect_layer_metrics(const struct model *model)
{
	const char *text = scrape();
	char line[160];

	for (json_int_t layer = 0; layer <= model->layers; layer++) {
		snprintf(line, sizeof(line),
			 "\nr3ring_layer_experts_without_load{engine=\"%s\",layer=\"%lld\"}", name,
			 (long long)layer);
		cr_expect_eq(strstr(text, line) != NULL, layer < model->layers, "%s", line);
	}
}

Test(serve_models, an_engine_that_is_back_with_another_model_is_served_with_that)
{
	char former[128];
	struct http_reply reply;

	serve_it("other");
	run_rank(0, &gpt);
	await_load(&gpt);
	cr_assert(becomes("/v1/signature?request=req-0000", has_signature_of, &gpt));
	snprintf(former, sizeof(former), "%s", reserve("kept"));
	end_rank(0, SIGTERM);
	run_rank(0, &qwen);
	await_load(&qwen);

	cr_expect(command_tells(&stage.server, "runs qwen3-235b now, gpt-oss-20b before"));
	reply = ask("GET", "/v1/channels", NULL);
	cr_expect_eq(json_integer_value(replaced(reply.json, "models")), 2);
	cr_expect_str_eq(json_string_value(replaced(reply.json, "former")), gpt.name);
	json_decref(reply.json);
	cr_expect(becomes("/v1/signature?request=req-0000", has_signature_of, &qwen));
	expect_refusal(ask("PATCH", former, "{\"commit\": true}"), 404, "another model, qwen3-235b",
		       "reserve again");
	expect_scored();
	expect_planned(&qwen);
	expect_layer_metrics(&qwen);
	cr_expect(strcmp(reserve("kept"), former) != 0, "another one has the name %s", former);
	expect_status("PATCH", reserve("more"), "{\"commit\": true}", 200);
	free_ranks();
}

/* None of its records went by: its sums are exactly what both engines ran. */
Test(serve_models, all_that_the_other_model_did_is_counted_on_top_of_what_was)
{
	uint64_t cells, records;

	serve_it("sums");
	cells = run_to_the_end(&gpt);
	await_cells(cells);
	records = counter("r3ring_engine_records_total");
	cells += run_to_the_end(&qwen);
	await_cells(cells);
	cr_expect_gt(counter("r3ring_engine_records_total"), records);
	cells += run_to_the_end(&gpt);
	await_cells(cells);
	cr_expect_eq(counter("r3ring_load_cells_total"), cells);
	free_ranks();
}

/* ---- while a part of it runs ---------------------------------------------------------- */

static bool is_of_channels(const json_t *load, const void *wanted)
{
	return json_integer_value(at(load, "channels", NULL)) == *(const json_int_t *)wanted;
}

/* 503 for that reason. */
static bool refuses_other_model(void)
{
	struct http_reply reply = ask("GET", "/v1/load", NULL);
	const char *words = json_string_value(at(reply.json, "error", "message"));
	bool refuses = reply.status == 503 && words && strstr(words, "another model runs there");

	json_decref(reply.json);
	return refuses;
}

static void await_refusal(void)
{
	for (int tries = 0; !refuses_other_model(); tries++) {
		cr_assert_lt(tries, 6000);
		poll(NULL, 0, 10);
	}
}

/* What the other one did meanwhile is not lost. */
Test(serve_models, another_model_waits_until_the_ranks_of_the_one_before_have_ended)
{
	const json_int_t both = 2;
	uint64_t cells;

	serve_it("part");
	run_rank(0, &gpt);
	run_rank(1, &gpt);
	cr_assert(becomes("/v1/load", is_of_channels, &both));
	end_rank(0, SIGTERM);
	start_rank(0, &qwen, "100", "4");
	await_refusal();
	expect_refusal(ask("POST", "/v1/reservations", "{\"key\": \"k\"}"), 503,
		       "another model runs there", "served once they have");
	command_wait(&rank[0]);
	run_rank(0, &qwen);
	await_refusal();
	end_rank(1, SIGKILL);
	await_load(&qwen);
	cells = counter("r3ring_load_cells_total");
	end_rank(0, SIGTERM);
	cr_assert(becomes("/v1/channels", is_in_state, "ended"));
	run_rank(1, &gpt);
	await_load(&gpt);
	cr_expect_gt(counter("r3ring_load_cells_total"), cells);
	free_ranks();
}

Test(serve_models, a_rank_that_is_back_with_the_model_of_the_others_goes_on_with_them)
{
	const json_int_t both = 2;
	struct http_reply reply;

	serve_it("back");
	run_rank(0, &gpt);
	run_rank(1, &gpt);
	cr_assert(becomes("/v1/load", is_of_channels, &both));
	end_rank(0, SIGTERM);
	run_rank(0, &qwen);
	await_refusal();
	end_rank(0, SIGTERM);
	run_rank(0, &gpt);
	cr_assert(becomes("/v1/load", is_of_channels, &both));
	reply = ask("GET", "/v1/channels", NULL);
	cr_expect(json_is_null(
		at(json_array_get(at(reply.json, "instances", NULL), 0), "replaced", NULL)));
	json_decref(reply.json);
	free_ranks();
}

/* ---- asked all the while ------------------------------------------------------------------ */

/* A scrape's counters of the engine, in their order. */
#define COUNTERS 64

static uint32_t read_counters(const char *text, uint64_t value[COUNTERS])
{
	uint32_t count = 0;

	for (const char *line = text; line && count < COUNTERS; line = strchr(line + 1, '\n')) {
		const char *total = strstr(line + 1, "_total{engine="), *end;

		end = strchr(line + 1, '\n');
		if (!total || !end || total > end)
			continue;
		while (end > total && end[-1] != ' ')
			end--;
		value[count++] = strtoull(end, NULL, 10);
	}
	return count;
}

/* Each is at least what it was. Returns 0, or 1 and one more than the place of one that is not. */
static int scrape_again(uint64_t before[COUNTERS], uint32_t *known)
{
	uint64_t now[COUNTERS];
	uint32_t count = read_counters(scrape(), now);

	if (count < 10 || (*known && count != *known))
		return 100;
	for (uint32_t i = 0; i < *known; i++)
		if (now[i] < before[i])
			return 1 + (int)i;
	memcpy(before, now, sizeof(now));
	*known = count;
	return 0;
}

static bool is_an_answer(const char *method, const char *what, const char *body)
{
	struct http_reply reply = ask(method, what, body);
	bool known = reply.json &&
		     (reply.status == 200 || reply.status == 201 || reply.status == 404 ||
		      reply.status == 409 || reply.status == 503);

	json_decref(reply.json);
	return known;
}

/* Returns 0, or the number of what went wrong. */
static int ask_all_the_while(struct worker_page *page, const void *ctx)
{
	uint64_t before[COUNTERS];
	uint32_t known = 0;
	char wish[64];
	int r = 0;

	(void)ctx;
	/* A key is one client's. */
	snprintf(wish, sizeof(wish), "{\"key\": \"of-%d\"}", (int)getpid());
	while (!r && !r3ring_load_relaxed_u64(&page->stop)) {
		if (!is_an_answer("GET", "/v1/load?counts=1", NULL) ||
		    !is_an_answer("POST", "/v1/score",
				  "{\"tokens\": 4, \"request\": \"req-0000\"}") ||
		    !is_an_answer("POST", "/v1/reservations", wish) ||
		    !is_an_answer("GET", "/v1/reservations?limit=2", NULL) ||
		    !is_an_answer("GET", "/v1/plan?replicas=256", NULL) ||
		    !is_an_answer("GET", "/v1/signature?request=req-0001", NULL) ||
		    !is_an_answer("GET", "/v1/channels", NULL) ||
		    !is_an_answer("GET", "/v1/history", NULL))
			return 200;
		r = scrape_again(before, &known);
		r3ring_store_relaxed_u64(&page->progress, page->progress + 1);
	}
	return r;
}

/* Events of a stream that lives through it: frames of both models. */
static bool has_heard(const char *text, const struct model *model)
{
	char part[64];

	snprintf(part, sizeof(part), "\"experts\":%lld,", (long long)model->experts);
	return strstr(text, part) != NULL;
}

static char *heard;
static size_t heard_bytes;

static void hear_of(int fd, const struct model *model)
{
	char some[65536];

	while (!heard || !has_heard(heard, model)) {
		ssize_t got = read(fd, some, sizeof(some));

		cr_assert_gt(got, 0, "the stream ended");
		heard = realloc(heard, heard_bytes + (size_t)got + 1);
		cr_assert(heard);
		memcpy(heard + heard_bytes, some, (size_t)got);
		heard_bytes += (size_t)got;
		heard[heard_bytes] = '\0';
	}
}

Test(serve_models, whoever_asks_while_models_change_is_answered_and_no_counter_goes_back)
{
	enum { CHANGES = 4 };
	const struct model *const models[] = {&gpt, &qwen};
	struct worker asking[2];
	int stream;

	serve_it("asked");
	run_rank(0, models[0]);
	await_load(models[0]);
	for (int i = 0; i < 2; i++)
		worker_start(&asking[i], ask_all_the_while, NULL);
	stream = http_dial_path(stage.path);
	dprintf(stream,
		"GET /v1/events?interval_ms=50&over=sum HTTP/1.0\r\nHost: localhost\r\n\r\n");
	hear_of(stream, models[0]);
	for (int i = 1; i <= CHANGES; i++) {
		end_rank(0, SIGKILL);
		run_rank(0, models[i % 2]);
		await_load(models[i % 2]);
		cr_assert(worker_reaches(&asking[0],
					 r3ring_load_relaxed_u64(&asking[0].page->progress) + 2),
			  "it ended: %d", worker_wait(&asking[0]));
	}
	hear_of(stream, models[1]);
	for (int i = 0; i < 2; i++) {
		r3ring_store_relaxed_u64(&asking[i].page->stop, 1);
		cr_expect_eq(worker_wait(&asking[i]), 0, "see ask_all_the_while()");
	}
	free_ranks();
}
