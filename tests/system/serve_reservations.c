/* SPDX-License-Identifier: Apache-2.0 */
/* Reservations over a real socket: how they are made, listed, and how they go. */
#include <criterion/criterion.h>

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/system/serve_stage.h"

TestSuite(serve_reservations, .init = serve_stage_start, .fini = serve_stage_stop);

/* How many reservations there are, and waits until it is @count. */
static size_t reservations(void)
{
	struct http_reply reply = ask("GET", "/v1/reservations", NULL);
	size_t count = json_array_size(at(reply.json, "reservations", NULL));

	cr_assert_eq(reply.status, 200);
	json_decref(reply.json);
	return count;
}

static bool reservations_become(size_t count)
{
	for (int tries = 0; tries < 6000; tries++) {
		if (reservations() == count)
			return true;
		poll(NULL, 0, 10);
	}
	return false;
}

static struct http_reply reserve(const char *key, int tokens, int ttl_ms)
{
	char body[256];

	snprintf(body, sizeof(body), "{\"key\": \"%s\", \"tokens\": %d, \"ttl_ms\": %d}", key,
		 tokens, ttl_ms);
	return ask("POST", "/v1/reservations", body);
}

static void expect_reserved(const char *key, int tokens, int ttl_ms, int status)
{
	struct http_reply reply = reserve(key, tokens, ttl_ms);

	cr_expect_eq(reply.status, status, "%s: %d", key, reply.status);
	json_decref(reply.json);
}

Test(serve_reservations, a_reservation_is_granted_once_committed_and_freed)
{
	struct http_reply reply;
	char where[256];

	serve_stage_run(3);
	reply = reserve("req", 4, 60000);
	cr_assert_eq(reply.status, 201);
	cr_expect(json_is_true(at(reply.json, "granted", NULL)));
	cr_expect_lt(json_number_value(at(reply.json, "tightest", "margin")), 100);
	snprintf(where, sizeof(where), "/v1/reservations/%s",
		 json_string_value(at(reply.json, "reservation", NULL)));
	json_decref(reply.json);
	expect_reserved("req", 4, 60000, 200);
	cr_expect_eq(reservations(), 1);
	reply = ask("PATCH", where, "{\"commit\": true}");
	cr_expect_eq(reply.status, 200);
	json_decref(reply.json);
	reply = ask("PATCH", where, "{\"tokens\": 2}");
	cr_expect_eq(reply.status, 200);
	json_decref(reply.json);
	reply = ask("DELETE", where, NULL);
	cr_expect_eq(reply.status, 200);
	json_decref(reply.json);
	reply = ask("DELETE", where, NULL);
	cr_expect_eq(reply.status, 404);
	json_decref(reply.json);
	cr_expect_eq(reservations(), 0);
}

Test(serve_reservations, what_does_not_fit_is_refused_with_the_place_and_what_is_wanting)
{
	struct http_reply reply;
	json_int_t layer;

	serve_stage_run(3);
	reply = reserve("large", 1000, 60000);
	cr_expect_eq(reply.status, 409);
	cr_expect(json_is_false(at(reply.json, "granted", NULL)));
	cr_expect_lt(json_number_value(at(reply.json, "tightest", "margin")), 0);
	/* As the model numbers them. */
	layer = json_integer_value(at(reply.json, "tightest", "layer"));
	cr_expect_geq(layer, ENGINE_FIRST_LAYER);
	cr_expect_lt(layer, ENGINE_FIRST_LAYER + (json_int_t)ENGINE_LAYERS);
	json_decref(reply.json);
	cr_expect_eq(reservations(), 0);
}

Test(serve_reservations, a_reservation_that_nobody_commits_expires)
{
	serve_stage_run(3);
	expect_reserved("kept", 1, 3600000, 201);
	expect_reserved("brief", 1, 1, 201);
	cr_expect(reservations_become(1));
}

Test(serve_reservations, the_end_of_a_request_frees_what_was_reserved_for_it)
{
	const struct r3ring_request info = {.size = sizeof(info), .id = "req-9"};
	int64_t handle;

	serve_stage_run(1);
	expect_reserved("req-9", 1, 3600000, 201);
	expect_reserved("other", 1, 3600000, 201);
	handle = r3ring_request_begin(stage.tool.engine.producer, &info);
	cr_assert_gt(handle, 0);
	engine_step(&stage.tool.engine, handle, 4);
	r3ring_request_end(stage.tool.engine.producer, handle, R3RING_END_FINISHED, 0, 5);
	engine_step(&stage.tool.engine, 0, 4);
	cr_expect(reservations_become(1));
}

Test(serve_reservations, a_killed_clients_reservations_are_freed)
{
	int told[2], status;
	char byte;
	pid_t pid;

	serve_stage_run(1);
	expect_reserved("mine", 1, 3600000, 201);
	cr_assert_eq(pipe(told), 0);
	pid = fork();
	if (pid == 0) {
		struct http_reply reply = reserve("theirs", 1, 3600000);

		byte = reply.status == 201;
		if (write(told[1], &byte, 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	cr_assert_eq(read(told[0], &byte, 1), 1);
	cr_expect_eq(byte, 1);
	cr_expect_eq(reservations(), 2);
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	cr_expect(reservations_become(1));
}

/* ---- clients that die -------------------------------------------------------- */

/* Asks, and is killed before it can hear an answer. */
static pid_t ask_and_die(int number)
{
	char text[512], body[128];
	pid_t pid = fork();
	int fd, len;

	cr_assert_geq(pid, 0);
	if (pid)
		return pid;
	snprintf(body, sizeof(body), "{\"key\": \"dead-%d\", \"ttl_ms\": 3600000}", number);
	len = snprintf(text, sizeof(text),
		       "POST /v1/reservations HTTP/1.1\r\nHost: localhost\r\n"
		       "Content-Length: %zu\r\n\r\n%s",
		       strlen(body), body);
	fd = http_dial_path(stage.path);
	if (write(fd, text, (size_t)len) == len)
		kill(getpid(), SIGKILL);
	_exit(1);
}

/* Some are dead but not yet buried when they are answered, some are. */
Test(serve_reservations, a_client_that_dies_while_it_asks_leaves_nothing_behind)
{
	enum { CLIENTS = 60 };
	pid_t pid[CLIENTS];
	int status;

	serve_stage_run(1);
	expect_reserved("mine", 1, 3600000, 201);
	for (int i = 0; i < CLIENTS; i++) {
		pid[i] = ask_and_die(i);
		if (i % 2)
			waitpid(pid[i], &status, 0);
	}
	for (int i = 0; i < CLIENTS; i += 2)
		waitpid(pid[i], &status, 0);
	/* Again and again: one of them may be answered only now. */
	for (int i = 0; i < 50; i++)
		cr_assert(reservations_become(1));
}

/* ---- page by page -------------------------------------------------------------- */

/* Expects the keys "k" @first to "k" @end - 1, and what the next page is after; 0: no next. */
static void expect_page(const char *what, int first, int end, json_int_t next)
{
	struct http_reply reply = ask("GET", what, NULL);
	const json_t *list = at(reply.json, "reservations", NULL);
	char key[16];

	cr_expect_eq(reply.status, 200);
	cr_expect_eq(json_array_size(list), end - first, "%s", what);
	for (int i = first; i < end; i++) {
		const char *told = json_string_value(
			at(json_array_get(list, (size_t)(i - first)), "key", NULL));

		snprintf(key, sizeof(key), "k%d", i);
		cr_expect(told && strcmp(told, key) == 0, "%s: %s, not %s", what, told, key);
	}
	if (next)
		cr_expect_eq(json_integer_value(at(reply.json, "next", NULL)), next, "%s", what);
	else
		cr_expect(json_is_null(at(reply.json, "next", NULL)), "%s", what);
	json_decref(reply.json);
}

Test(serve_reservations, pages_go_on_behind_one_that_was_freed_meanwhile)
{
	char what[128];

	serve_stage_run(1);
	for (int i = 1; i <= 10; i++) {
		snprintf(what, sizeof(what), "k%d", i);
		expect_reserved(what, 1, 3600000, 201);
	}
	expect_page("/v1/reservations", 1, 11, 0);
	expect_page("/v1/reservations?limit=4", 1, 5, 4);
	snprintf(what, sizeof(what), "/v1/reservations/%s/4", serve_stage_instance());
	expect_status("DELETE", what, NULL, 200);
	expect_page("/v1/reservations?limit=4&after=4", 5, 9, 8);
	expect_page("/v1/reservations?limit=2&after=8", 9, 11, 0);
	expect_page("/v1/reservations?after=10", 11, 11, 0);
	expect_page("/v1/reservations?after=18446744073709551615", 11, 11, 0);
}
