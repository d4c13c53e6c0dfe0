/* SPDX-License-Identifier: Apache-2.0 */
/* What r3ring serve tells monitors: events, the last minutes and the page, of an engine that
 * really runs. */
#include <criterion/criterion.h>

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "serve/streams.h"
#include "tests/support/base64_read.h"
#include "tests/system/serve_stage.h"

#define HEARD_MAX (1u << 20)

TestSuite(serve_monitor, .init = serve_stage_start, .fini = serve_stage_stop);

/* ---- events ----------------------------------------------------------------- */

struct heard {
	int fd;
	size_t length;
	char text[HEARD_MAX]; /* what came and was not taken yet */
};

static struct heard heard;

static void listen_to(const char *what)
{
	heard = (struct heard){.fd = http_dial_path(stage.path)};
	dprintf(heard.fd, "GET %s HTTP/1.0\r\nHost: localhost\r\n\r\n", what);
}

/* The data of the next event of that name; the others are forgotten. */
static json_t *hear(const char *name)
{
	char head[64];

	snprintf(head, sizeof(head), "event: %s\ndata: ", name);
	for (;;) {
		char *begin = strstr(heard.text, head);
		char *end = begin ? strstr(begin, "\n\n") : NULL;
		ssize_t got;

		if (end) {
			size_t used = (size_t)(end + 2 - heard.text);
			json_t *data;

			*end = '\0';
			data = json_loads(begin + strlen(head), 0, NULL);
			cr_assert(data, "%s", begin);
			heard.length -= used;
			memmove(heard.text, heard.text + used, heard.length + 1);
			return data;
		}
		cr_assert_lt(heard.length, HEARD_MAX - 1);
		got = recv(heard.fd, heard.text + heard.length, HEARD_MAX - 1 - heard.length, 0);
		cr_assert_gt(got, 0, "no %s comes; so far: %s", name, heard.text);
		heard.length += (size_t)got;
		heard.text[heard.length] = '\0';
	}
}

/* The next frame whose layers have had so many rows. */
static json_t *hear_rows(double rows)
{
	for (;;) {
		json_t *frame = hear("frame");

		if (json_number_value(at(frame, "rows", NULL)) == rows)
			return frame;
		cr_assert_lt(json_number_value(at(frame, "rows", NULL)), rows);
		json_decref(frame);
	}
}

/* Worked out again by the rule that the engine makes its ids by. */
static void expect_steps(const json_t *frame, uint64_t first, uint64_t last, uint32_t rows)
{
	size_t count;
	uint8_t *told = base64_read(json_string_value(at(frame, "counts", NULL)), &count);
	unsigned int expected[ENGINE_LAYERS][ENGINE_EXPERTS] = {0};

	cr_assert_eq(count, ENGINE_LAYERS * ENGINE_EXPERTS);
	cr_assert_str_eq(json_string_value(at(frame, "code", NULL)), "u8");
	cr_assert_eq(json_number_value(at(frame, "unit", NULL)), 1);
	cr_assert_eq(json_array_size(at(frame, "layers", NULL)), ENGINE_LAYERS);
	cr_assert_eq(json_integer_value(at(frame, "experts", NULL)), ENGINE_EXPERTS);
	cr_expect_eq(json_integer_value(json_array_get(at(frame, "layers", NULL), 0)),
		     ENGINE_FIRST_LAYER);
	for (uint64_t step = first; step <= last; step++)
		for (uint32_t i = 0; i < ENGINE_LAYERS * rows * ENGINE_TOP_K; i++) {
			uint32_t layer = i / (rows * ENGINE_TOP_K);
			uint32_t row = i / ENGINE_TOP_K % rows;

			expected[layer][engine_id(step, layer, row, i % ENGINE_TOP_K)]++;
		}
	for (uint32_t i = 0; i < ENGINE_LAYERS * ENGINE_EXPERTS; i++)
		cr_assert_eq(told[i], expected[i / ENGINE_EXPERTS][i % ENGINE_EXPERTS],
			     "layer %u, expert %u", i / ENGINE_EXPERTS, i % ENGINE_EXPERTS);
	free(told);
}

Test(serve_monitor, frames_hold_the_counts_of_what_the_engine_ran)
{
	json_t *frame;

	serve_stage_serve((const char *[]){NULL});
	listen_to("/v1/events?interval_ms=50");
	for (unsigned int i = 0; i < 5; i++)
		engine_step(&stage.tool.engine, 0, 4);
	frame = hear_rows(20);
	expect_steps(frame, 1, 5, 4);
	cr_expect_str_eq(json_string_value(at(frame, "state", NULL)), "live");
	cr_expect(json_is_null(at(frame, "gpus", NULL)), "without a map nobody knows");
	json_decref(frame);
	frame = hear("tick");
	cr_expect_gt(json_number_value(at(frame, "age_ms", NULL)), 0, "nothing new ran");
	json_decref(frame);
	close(heard.fd);
}

Test(serve_monitor, a_sum_begins_with_its_stream)
{
	char what[128];
	json_t *frame;

	serve_stage_serve((const char *[]){NULL});
	listen_to("/v1/events?interval_ms=50");
	engine_step(&stage.tool.engine, 0, 4);
	json_decref(hear_rows(4));
	close(heard.fd);
	snprintf(what, sizeof(what), "/v1/events?interval_ms=50&over=sum&channel=%s",
		 tool_stage_channel(&stage.tool, "prod"));
	listen_to(what);
	json_decref(hear_rows(0));
	engine_step(&stage.tool.engine, 0, 4);
	engine_step(&stage.tool.engine, 0, 4);
	frame = hear_rows(8);
	expect_steps(frame, 2, 3, 4);
	json_decref(frame);
	close(heard.fd);
}

static bool has_reader(const json_t *channel, const char *label)
{
	const json_t *reader;
	size_t i;

	json_array_foreach (at(channel, "readers", NULL), i, reader) {
		if (!strcmp(json_string_value(at(reader, "label", NULL)), label))
			return true;
	}
	return false;
}

Test(serve_monitor, its_readers_say_what_they_read_for)
{
	const json_t *channel;
	json_t *told = NULL;

	serve_stage_serve((const char *[]){NULL});
	listen_to("/v1/events?interval_ms=50");
	do {
		json_decref(told);
		told = hear("daemon");
		channel = json_array_get(at(told, "channels", NULL), 0);
	} while (json_array_size(at(channel, "readers", NULL)) < 2);
	cr_expect(has_reader(channel, "serve:load"));
	cr_expect(has_reader(channel, "serve:routes"));
	json_decref(told);
}

Test(serve_monitor, what_the_daemon_says_of_channels_and_readers_comes_along)
{
	const json_t *channel, *reader;
	json_t *told = NULL;

	serve_stage_serve((const char *[]){NULL});
	engine_step(&stage.tool.engine, 0, 4);
	listen_to("/v1/events?interval_ms=50");
	do {
		json_decref(told);
		told = hear("daemon");
		channel = json_array_get(at(told, "channels", NULL), 0);
		reader = json_array_get(at(channel, "readers", NULL), 0);
	} while (!reader || json_integer_value(at(channel, "steps", NULL)) < 1);
	cr_expect_str_eq(json_string_value(at(told, "daemon", NULL)), "live");
	cr_expect_str_eq(json_string_value(at(channel, "channel", NULL)),
			 tool_stage_channel(&stage.tool, "prod"));
	cr_expect_eq(json_integer_value(at(reader, "pid", NULL)), stage.server.pid);
	cr_expect_eq(json_object_size(at(channel, "lost", NULL)), 0);
	cr_expect(json_is_integer(at(channel, "bound_layers", NULL)));
	json_decref(told);
	test_daemon_kill(&stage.tool.daemon);
	do {
		told = hear("daemon");
		if (strcmp(json_string_value(at(told, "daemon", NULL)), "live") != 0)
			break;
		json_decref(told);
	} while (true);
	cr_expect_gt(json_string_length(at(told, "reason", NULL)), 0);
	json_decref(told);
	close(heard.fd);
}

#define EVENTS "/v1/events?interval_ms=5000"

/* What the next event of the daemon says was lost just now, of the one channel; -1: it has none. */
static json_int_t lost_just_now(void)
{
	json_t *told = hear("daemon");
	const json_t *channel = json_array_get(at(told, "channels", NULL), 0);
	json_int_t steps = channel ? 0 : -1;
	const char *cause;
	json_t *lost;

	json_object_foreach ((json_t *)(uintptr_t)at(channel, "lost_just_now", NULL), cause, lost)
		steps += json_integer_value(at(lost, "steps", NULL));
	json_decref(told);
	return steps;
}

Test(serve_monitor, a_loss_between_two_events_that_lie_far_apart_is_told_once)
{
	serve_stage_serve((const char *[]){NULL});
	engine_step(&stage.tool.engine, 0, 4);
	serve_stage_await(1);
	/* Until the daemon was seen, and so can be told of in the first event. */
	for (listen_to(EVENTS); lost_just_now() != 0; listen_to(EVENTS))
		close(heard.fd);
	/* More rows than its schema allows. */
	cr_assert_lt(engine_begin(&stage.tool.engine, 0, stage.tool.engine.max_rows + 1), 0);
	cr_expect_eq(lost_just_now(), 1);
	cr_expect_eq(lost_just_now(), 0);
	close(heard.fd);
}

/* ---- the past ---------------------------------------------------------------- */

/* Cells of all frames so far; the number of the newest one that has any to @newest. */
static json_int_t counted(json_int_t *newest)
{
	struct http_reply reply = ask("GET", "/v1/history", NULL);
	json_int_t sum = 0;
	const json_t *frame;
	size_t i;

	cr_assert_eq(reply.status, 200);
	json_array_foreach ((json_t *)(uintptr_t)at(reply.json, "frames", NULL), i, frame) {
		sum += json_integer_value(at(frame, "counted", NULL));
		if (json_integer_value(at(frame, "counted", NULL)))
			*newest = json_integer_value(at(frame, "id", NULL));
	}
	json_decref(reply.json);
	return sum;
}

Test(serve_monitor, each_step_is_in_one_frame_of_the_past)
{
	enum { STEPS = 12, ROWS = 4 };
	json_int_t newest = 0;
	struct http_reply reply;
	char what[64];

	serve_stage_serve((const char *[]){NULL});
	for (unsigned int i = 0; i < STEPS; i++) {
		engine_step(&stage.tool.engine, 0, ROWS);
		poll(NULL, 0, 100);
	}
	for (int tries = 0; counted(&newest) < STEPS * ROWS * (json_int_t)ENGINE_LAYERS; tries++) {
		cr_assert_lt(tries, 6000);
		poll(NULL, 0, 10);
	}
	cr_expect_eq(counted(&newest), STEPS * ROWS * ENGINE_LAYERS);
	snprintf(what, sizeof(what), "/v1/history/%lld", (long long)newest);
	reply = ask("GET", what, NULL);
	cr_expect_eq(reply.status, 200);
	cr_expect_str_eq(json_string_value(at(reply.json, "code", NULL)), "m8");
	cr_expect_eq(json_string_length(at(reply.json, "counts", NULL)),
		     (ENGINE_LAYERS * ENGINE_EXPERTS + 2) / 3 * 4);
	json_decref(reply.json);
}

/* Two GPUs, of which the first has the first half of all experts. */
static void announce_map(uint64_t epoch)
{
	static uint16_t map[ENGINE_LAYERS][ENGINE_EXPERTS];
	const struct r3ring_eplb_record head = {.epoch = epoch,
						.layers = ENGINE_LAYERS,
						.experts = ENGINE_EXPERTS,
						.replicas = 1,
						.physical = ENGINE_EXPERTS,
						.gpus = 2};

	for (uint32_t i = 0; i < ENGINE_LAYERS * ENGINE_EXPERTS; i++)
		map[i / ENGINE_EXPERTS][i % ENGINE_EXPERTS] = (uint16_t)(i % ENGINE_EXPERTS);
	cr_assert_eq(r3ring_eplb(stage.tool.engine.producer, &head, &map[0][0]), 0);
	stage.tool.engine.eplb_epoch = epoch;
}

/* Visits of a step of four rows, over all layers, to the GPU. */
static uint32_t visits_of(int64_t step, uint32_t gpu)
{
	uint32_t visits = 0;

	for (uint32_t i = 0; i < ENGINE_LAYERS * 4 * ENGINE_TOP_K; i++)
		visits += engine_id((uint64_t)step, i / (4 * ENGINE_TOP_K), i / ENGINE_TOP_K % 4,
				    i % ENGINE_TOP_K) /
				  (ENGINE_EXPERTS / 2) ==
			  gpu;
	return visits;
}

Test(serve_monitor, a_frame_of_the_past_has_the_load_of_gpus_where_a_map_was_known)
{
	json_int_t before = 0, newest = 0;
	struct http_reply reply;
	char what[64];
	int64_t step;

	serve_stage_serve((const char *[]){NULL});
	engine_step(&stage.tool.engine, 0, 4);
	for (int tries = 0; counted(&before) < 4 * (json_int_t)ENGINE_LAYERS; tries++) {
		cr_assert_lt(tries, 6000);
		poll(NULL, 0, 10);
	}
	announce_map(7);
	step = engine_step(&stage.tool.engine, 0, 4);
	for (int tries = 0; counted(&newest) < 8 * (json_int_t)ENGINE_LAYERS; tries++) {
		cr_assert_lt(tries, 6000);
		poll(NULL, 0, 10);
	}
	snprintf(what, sizeof(what), "/v1/history/%lld", (long long)newest);
	reply = ask("GET", what, NULL);
	cr_expect_eq(json_integer_value(at(reply.json, "gpus", "epoch")), 7);
	cr_assert_eq(json_array_size(at(reply.json, "gpus", "load")), 2);
	for (uint32_t gpu = 0; gpu < 2; gpu++)
		cr_expect_float_eq(
			json_number_value(json_array_get(at(reply.json, "gpus", "load"), gpu)),
			visits_of(step, gpu), 1e-9);
	json_decref(reply.json);
	snprintf(what, sizeof(what), "/v1/history/%lld", (long long)before);
	reply = ask("GET", what, NULL);
	cr_expect(json_is_null(at(reply.json, "gpus", NULL)), "none was known then");
	json_decref(reply.json);
}

/* ---- who may ask, and for what ------------------------------------------------ */

Test(serve_monitor, what_is_asked_wrongly_is_refused_by_name)
{
	const struct {
		const char *what;
		int status;
		const char *text;
	} wrong[] = {
		{"/v1/events?interval_ms=1", 400, "interval_ms"},
		{"/v1/events?interval_ms=9999", 400, "interval_ms"},
		{"/v1/events?over=never", 400, "none of steps, time, average, sum"},
		{"/v1/events?instance=x", 404, "x"},
		{"/v1/events?channel=nobody/0", 404, "nobody/0"},
		{"/v1/history?after=x", 400, "after"},
		{"/v1/history/x", 400, "frame"},
		{"/v1/history/0", 400, "frame"},
		{"/v1/history/99999", 404, "no such frame"},
	};

	serve_stage_serve((const char *[]){NULL});
	engine_step(&stage.tool.engine, 0, 4);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		struct http_reply reply = ask("GET", wrong[i].what, NULL);
		const char *text = json_string_value(at(reply.json, "error", "message"));

		cr_expect_eq(reply.status, wrong[i].status, "%s: %d", wrong[i].what, reply.status);
		cr_expect(text && strstr(text, wrong[i].text), "\"%s\" is not in: %s",
			  wrong[i].text, text ? text : "");
		json_decref(reply.json);
	}
}

static const char *write_token(void)
{
	static char file[160];
	FILE *out;

	snprintf(file, sizeof(file), "%s/token", stage.tool.daemon.dir);
	out = fopen(file, "w");
	cr_assert(out);
	fputs("s3cret\n", out);
	fchmod(fileno(out), 0600);
	fclose(out);
	return file;
}

Test(serve_monitor, the_page_needs_no_token_and_what_it_shows_does)
{
	static const char *const guarded[] = {"/v1/events", "/v1/history", "/v1/history/1",
					      "/v1",        "//",          "/index.html"};
	const char *answer;

	serve_stage_serve((const char *[]){"--token-file", write_token(), NULL});
	answer = http_exchange(http_dial_path(stage.path),
			       "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
	cr_expect(strncmp(answer, "HTTP/1.1 200", 12) == 0);
	cr_expect(strstr(answer, "Content-Security-Policy: default-src 'none'"));
	cr_expect(strstr(answer, "X-Content-Type-Options: nosniff"));
	cr_expect(strstr(answer, "Referrer-Policy: no-referrer"));
	cr_expect(strstr(answer, "</html>"));
	for (size_t i = 0; i < sizeof(guarded) / sizeof(*guarded); i++) {
		struct http_reply reply = ask("GET", guarded[i], NULL);

		cr_expect_eq(reply.status, 401, "%s: %d", guarded[i], reply.status);
		json_decref(reply.json);
	}
	heard = (struct heard){.fd = http_dial_path(stage.path)};
	dprintf(heard.fd, "GET /v1/events HTTP/1.0\r\nAuthorization: Bearer s3cret\r\n\r\n");
	json_decref(hear("daemon"));
	close(heard.fd);
}

Test(serve_monitor, one_stream_more_than_there_may_be_is_refused_and_says_how_many)
{
	int fd[STREAMS_MAX];
	struct http_reply reply;

	serve_stage_serve((const char *[]){NULL});
	for (uint32_t i = 0; i < STREAMS_MAX; i++) {
		listen_to("/v1/events?interval_ms=5000");
		json_decref(hear("daemon"));
		fd[i] = heard.fd;
	}
	reply = ask("GET", "/v1/events", NULL);
	cr_assert_eq(reply.status, 503, "%d", reply.status);
	cr_expect(strstr(json_string_value(at(reply.json, "error", "message")), "32 at most"));
	json_decref(reply.json);
	for (uint32_t i = 0; i < STREAMS_MAX; i++)
		close(fd[i]);
}

Test(serve_monitor, it_ends_in_good_order_while_somebody_listens)
{
	serve_stage_serve((const char *[]){NULL});
	listen_to("/v1/events?interval_ms=5000");
	json_decref(hear("daemon"));
	kill(stage.server.pid, SIGTERM);
	cr_expect_eq(command_wait(&stage.server), 0);
	close(heard.fd);
}
