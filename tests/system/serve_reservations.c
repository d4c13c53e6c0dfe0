/* SPDX-License-Identifier: Apache-2.0 */
/* Reservations over a real socket: how they are made, listed, and how they go. */
#include <criterion/criterion.h>

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
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

/* Room at the tightest place for a request that nothing is known of. */
static double margin_left(void)
{
	struct http_reply reply =
		ask("POST", "/v1/score", "{\"tokens\": 1, \"predictor\": \"uniform\"}");
	const json_t *first = json_array_get(at(reply.json, "ranked", NULL), 0);
	double margin = json_number_value(at(first, "tightest", "margin"));

	cr_assert_eq(reply.status, 200);
	json_decref(reply.json);
	return margin;
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

/* Reserves a token's room for an hour; @where receives the path of the reservation. */
static void reserve_at(char where[256], const char *key)
{
	struct http_reply reply = reserve(key, 1, 3600000);

	cr_assert_eq(reply.status, 201, "%s: %d", key, reply.status);
	snprintf(where, 256, "/v1/reservations/%s",
		 json_string_value(at(reply.json, "reservation", NULL)));
	json_decref(reply.json);
}

Test(serve_reservations, a_reservation_is_granted_once_committed_and_freed)
{
	struct http_reply reply;
	const json_t *only;
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
	reply = ask("GET", "/v1/reservations", NULL);
	only = json_array_get(at(reply.json, "reservations", NULL), 0);
	cr_expect(json_is_true(at(only, "committed", NULL)));
	cr_expect_float_eq(json_number_value(at(only, "visits", NULL)),
			   2 * ENGINE_TOP_K * ENGINE_LAYERS, 1e-9);
	json_decref(reply.json);
	reply = ask("DELETE", where, NULL);
	cr_expect_eq(reply.status, 200);
	json_decref(reply.json);
	reply = ask("DELETE", where, NULL);
	cr_expect_eq(reply.status, 404);
	json_decref(reply.json);
	cr_expect_eq(reservations(), 0);
}

Test(serve_reservations, of_one_that_was_there_no_predictor_is_told_that_was_not_used)
{
	struct http_reply reply;

	serve_stage_run(3);
	reply = reserve("twice", 4, 60000);
	cr_expect(at(reply.json, "predictor", NULL));
	json_decref(reply.json);
	reply = reserve("twice", 4, 60000);
	cr_assert_eq(reply.status, 200);
	cr_expect(json_is_true(at(reply.json, "existed", NULL)));
	cr_expect_not(at(reply.json, "predictor", NULL));
	json_decref(reply.json);
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

Test(serve_reservations, one_that_is_committed_lasts_as_long_as_was_said_then)
{
	char where[256];

	serve_stage_run(1);
	reserve_at(where, "req");
	expect_status("PATCH", where, "{\"commit\": true, \"ttl_ms\": 1}", 200);
	cr_expect(reservations_become(0));
	expect_status("PATCH", where, "{\"commit\": true}", 404);
}

/* Expects of the only reservation whether it is committed, and how long it lasts: 0, for ever. */
static void expect_lasts(bool committed, double least_ms, double most_ms)
{
	struct http_reply reply = ask("GET", "/v1/reservations", NULL);
	const json_t *only = json_array_get(at(reply.json, "reservations", NULL), 0);
	const json_t *left = at(only, "expires_in_ms", NULL);

	cr_expect_eq(json_is_true(at(only, "committed", NULL)), committed);
	if (most_ms > 0)
		cr_expect(json_number_value(left) > least_ms && json_number_value(left) <= most_ms);
	else
		cr_expect(json_is_null(left));
	json_decref(reply.json);
}

Test(serve_reservations, no_time_ends_one_that_is_committed_unless_one_is_said)
{
	char where[256];

	serve_stage_run(1);
	reserve_at(where, "long");
	expect_status("PATCH", where, "{\"ttl_ms\": 1200000}", 200);
	expect_lasts(false, 600000, 1200000);
	expect_status("PATCH", where, "{\"commit\": true}", 200);
	expect_lasts(true, 0, 0);
	expect_status("PATCH", where, "{\"tokens\": 2}", 200);
	expect_lasts(true, 0, 0);
	expect_status("PATCH", where, "{\"ttl_ms\": 600000}", 200);
	expect_lasts(true, 300000, 600000);
	expect_status("PATCH", where, "{\"commit\": false}", 400);
}

Test(serve_reservations, another_number_of_tokens_under_a_key_is_refused_with_what_is_held)
{
	struct http_reply reply;
	char where[256];

	serve_stage_run(1);
	reserve_at(where, "dup");
	reply = reserve("dup", 100000, 3600000);
	cr_expect_eq(reply.status, 409);
	cr_expect_float_eq(json_number_value(at(reply.json, "held", "visits")),
			   ENGINE_TOP_K * ENGINE_LAYERS, 1e-9);
	cr_expect(strstr(json_string_value(at(reply.json, "error", "message")), where));
	json_decref(reply.json);
	expect_reserved("dup", 1, 3600000, 200);
	expect_status("PATCH", where, "{\"tokens\": 2}", 200);
	expect_reserved("dup", 1, 3600000, 409);
	expect_reserved("dup", 2, 3600000, 200);
}

/* The first reservation of either: the book of each numbers it the same. */
Test(serve_reservations, what_a_killed_server_gave_does_not_name_what_the_next_one_gives)
{
	char old[256], new[256];

	serve_stage_run(1);
	reserve_at(old, "before");
	cr_assert_eq(kill(stage.server.pid, SIGKILL), 0);
	command_wait(&stage.server);
	command_free(&stage.server);
	serve_stage_run(1);
	reserve_at(new, "after");
	cr_expect_str_neq(old, new);
	expect_status("PATCH", old, "{\"tokens\": 1}", 404);
	expect_status("PATCH", old, "{\"commit\": true}", 404);
	expect_status("DELETE", old, NULL, 404);
	cr_expect_eq(reservations(), 1);
	expect_status("DELETE", new, NULL, 200);
}

Test(serve_reservations, an_id_that_is_not_exactly_one_that_was_given_is_404)
{
	const char *const behind[] = {"0", " ", "x", "-1"};
	char where[256], wrong[264];

	serve_stage_run(1);
	reserve_at(where, "req");
	for (size_t i = 0; i < sizeof(behind) / sizeof(*behind); i++) {
		snprintf(wrong, sizeof(wrong), "%s%s", where,
			 *behind[i] == ' ' ? "%20" : behind[i]);
		expect_status("DELETE", wrong, NULL, 404);
	}
	snprintf(wrong, sizeof(wrong), "/v1/reservations/%s/1", serve_stage_instance());
	expect_status("DELETE", wrong, NULL, 404);
	cr_expect_eq(reservations(), 1);
}

/* A row, and then the end for that reason. */
static void run_to_end(struct engine *engine, const char *id, uint32_t attempt,
		       enum r3ring_end_reason reason)
{
	const struct r3ring_request info = {.size = sizeof(info), .id = id, .attempt = attempt};
	int64_t handle = r3ring_request_begin(engine->producer, &info);

	cr_assert_gt(handle, 0);
	engine_step(engine, handle, 1);
	r3ring_request_end(engine->producer, handle, reason, attempt, R3RING_UNKNOWN_U32);
	engine_step(engine, 0, 1);
}

Test(serve_reservations, a_request_that_is_preempted_keeps_its_reservation_until_it_ends)
{
	serve_stage_run(1);
	expect_reserved("req-9", 1, 3600000, 201);
	run_to_end(&stage.tool.engine, "req-9", 0, R3RING_END_PREEMPTED);
	serve_stage_await(3);
	cr_expect_eq(reservations(), 1);
	run_to_end(&stage.tool.engine, "req-9", 1, R3RING_END_ABORTED);
	cr_expect(reservations_become(0));
}

/* What is left in ms, as the answer to this tells; below 0: no time ends it. */
static double time_left(const char *method, const char *what, const char *body, int status)
{
	struct http_reply reply = ask(method, what, body);
	const json_t *left = at(reply.json, "expires_in_ms", NULL);
	double ms = json_is_null(left) ? -1 : json_number_value(left);

	cr_expect_eq(reply.status, status, "%s %s: %d", method, what, reply.status);
	cr_expect_not_null(left, "%s %s does not tell", method, what);
	json_decref(reply.json);
	return ms;
}

Test(serve_reservations, who_asks_again_is_told_what_time_is_left)
{
	double left;

	serve_stage_run(1);
	expect_reserved("req", 1, 60000, 201);
	left = time_left("POST", "/v1/reservations", "{\"key\": \"req\", \"ttl_ms\": 3600000}",
			 200);
	cr_expect(left > 0 && left < 60000, "%f", left);
}

static bool is_over(const json_t *answer, const void *unused)
{
	(void)unused;
	return json_is_true(at(answer, "ended", NULL));
}

/* Its end has freed what it could; a time that the client says counts. */
Test(serve_reservations, what_is_committed_for_a_request_that_has_ended_keeps_its_time)
{
	char where[256];
	double left;

	serve_stage_run(1);
	run_to_end(&stage.tool.engine, "req-9", 0, R3RING_END_FINISHED);
	cr_assert(becomes("/v1/signature?request=req-9", is_over, NULL));
	reserve_at(where, "req-9");
	left = time_left("PATCH", where, "{\"commit\": true}", 200);
	cr_expect(left > 0 && left < 3600000, "%f", left);
	left = time_left("PATCH", where, "{\"commit\": true, \"tokens\": 2}", 200);
	cr_expect(left > 0 && left < 3600000, "%f", left);
	expect_status("PATCH", where, "{\"commit\": true, \"ttl_ms\": 1}", 200);
	cr_expect(reservations_become(0));
}

Test(serve_reservations, what_is_committed_for_a_request_that_was_not_seen_to_end_has_no_time)
{
	char where[256];

	serve_stage_run(1);
	reserve_at(where, "next");
	cr_expect_lt(time_left("PATCH", where, "{\"commit\": true}", 200), 0);
}

/* One book for both ranks: a request's two tokens are 2 x 6 visits, half of them a GPU's. */
Test(serve_reservations, ranks_of_an_engine_share_its_gpus_and_each_frees_what_its_requests_held)
{
	struct engine other = {0};
	struct r3ring_error err;

	serve_stage_run(1);
	cr_assert_eq(engine_open_rank(&other, stage.tool.daemon.dir, serve_stage_instance(),
				      (struct engine_rank){.rank = 1}, 64, &err),
		     0, "%s", err.text);
	cr_expect_float_eq(margin_left(), 97, 1e-9);
	expect_reserved("first", 2, 3600000, 201);
	expect_reserved("second", 2, 3600000, 201);
	cr_expect_float_eq(margin_left(), 85, 1e-9);
	run_to_end(&other, "second", 0, R3RING_END_FINISHED);
	cr_expect(reservations_become(1));
	cr_expect_float_eq(margin_left(), 91, 1e-9);
	run_to_end(&stage.tool.engine, "first", 0, R3RING_END_FINISHED);
	cr_expect(reservations_become(0));
	cr_expect_float_eq(margin_left(), 97, 1e-9);
	engine_close(&other);
}

static int64_t begin(struct engine *engine, const char *id)
{
	const struct r3ring_request info = {.size = sizeof(info), .id = id, .prompt_tokens = 1};
	int64_t handle = r3ring_request_begin(engine->producer, &info);

	cr_assert_gt(handle, 0);
	return handle;
}

static void open_other(struct engine *other)
{
	struct r3ring_error err;

	cr_assert_eq(engine_open_rank(other, stage.tool.daemon.dir, serve_stage_instance(),
				      (struct engine_rank){.rank = 1}, 64, &err),
		     0, "%s", err.text);
}

static bool is_one_of_two(const json_t *answer, const void *unused)
{
	(void)unused;
	return json_integer_value(at(answer, "same_id", NULL)) == 1;
}

static void finish(struct engine *engine, int64_t handle)
{
	r3ring_request_end(engine->producer, handle, R3RING_END_FINISHED, 0, R3RING_UNKNOWN_U32);
}

Test(serve_reservations, what_two_ranks_run_under_one_id_is_freed_when_the_last_of_them_ends)
{
	struct engine other = {0};
	int64_t first, second;

	serve_stage_run(1);
	open_other(&other);
	expect_reserved("twin", 1, 3600000, 201);
	expect_reserved("after", 1, 3600000, 201);
	first = begin(&stage.tool.engine, "twin");
	second = begin(&other, "twin");
	engine_step(&other, second, 1);
	engine_step(&stage.tool.engine, first, 1);
	cr_assert(becomes("/v1/signature?request=twin", is_one_of_two, NULL));
	finish(&stage.tool.engine, first);
	/* Once this one is freed, the end before it was read. */
	run_to_end(&stage.tool.engine, "after", 0, R3RING_END_FINISHED);
	cr_expect(reservations_become(1));
	/* Several turns later, too. */
	engine_step(&other, second, 1);
	expect_reserved("brief", 1, 100, 201);
	cr_expect(reservations_become(1));
	cr_expect(becomes("/v1/reservations", is_all_there_is, "twin"));
	finish(&other, second);
	engine_step(&other, 0, 1);
	cr_expect(reservations_become(0));
	engine_close(&other);
}

Test(serve_reservations, a_rank_that_goes_without_an_end_holds_nothing_up)
{
	struct engine other = {0};
	int64_t first, second;

	serve_stage_run(1);
	open_other(&other);
	expect_reserved("twin", 1, 3600000, 201);
	expect_reserved("after", 1, 3600000, 201);
	first = begin(&stage.tool.engine, "twin");
	second = begin(&other, "twin");
	engine_step(&other, second, 1);
	engine_step(&stage.tool.engine, first, 1);
	cr_assert(becomes("/v1/signature?request=twin", is_one_of_two, NULL));
	finish(&stage.tool.engine, first);
	run_to_end(&stage.tool.engine, "after", 0, R3RING_END_FINISHED);
	cr_expect(reservations_become(1));
	engine_close(&other);
	cr_expect(reservations_become(0));
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

/* Opens a connection and leaves it to a child, which asks once this process is dead, and tells the
 * status that it got. Files are closed before a process counts as dead: only a pidfd tells. */
static void leave_connection(int told)
{
	int fd = http_dial_path(stage.path), status;
	struct pollfd self = {.fd = (int)syscall(SYS_pidfd_open, getpid(), 0), .events = POLLIN};
	struct http_reply reply;

	if (self.fd < 0 || fork())
		_exit(0);
	if (poll(&self, 1, -1) != 1)
		_exit(1);
	reply = http_ask(fd, "POST", "/v1/reservations", "{\"key\": \"left\", \"ttl_ms\": 3600000}",
			 NULL);
	status = reply.status;
	_exit(write(told, &status, sizeof(status)) == sizeof(status) ? 0 : 1);
}

Test(serve_reservations, nothing_is_reserved_for_a_process_that_is_dead)
{
	int told[2], status = 0, ended;
	pid_t pid;

	serve_stage_run(1);
	expect_reserved("mine", 1, 3600000, 201);
	cr_assert_eq(pipe(told), 0);
	pid = fork();
	if (pid == 0)
		leave_connection(told[1]);
	waitpid(pid, &ended, 0);
	close(told[1]);
	cr_assert_eq(read(told[0], &status, sizeof(status)), sizeof(status));
	close(told[0]);
	cr_expect_eq(status, 400);
	cr_expect_eq(reservations(), 1);
}

/* ---- at work, and killed ------------------------------------------------------- */

/* Makes, commits, changes and frees until it is killed; a byte is written for each grant. */
static void work(int number, int told)
{
	for (uint32_t i = 0;; i++) {
		char key[32], where[128], byte = 0;
		struct http_reply reply;

		snprintf(key, sizeof(key), "c%d-%u", number, i);
		reply = reserve(key, 1 + (int)i % 2, 3600000);
		if (reply.status == 201) {
			snprintf(where, sizeof(where), "/v1/reservations/%s",
				 json_string_value(at(reply.json, "reservation", NULL)));
			if (write(told, &byte, 1) != 1)
				_exit(1);
			if (i % 3 == 1)
				json_decref(ask("PATCH", where, "{\"commit\": true}").json);
			if (i % 3 == 2)
				json_decref(ask("PATCH", where, "{\"tokens\": 3}").json);
			if (i % 4)
				json_decref(ask("DELETE", where, NULL).json);
		}
		json_decref(reply.json);
	}
}

Test(serve_reservations, clients_that_are_killed_at_work_leave_a_book_that_balances)
{
	enum { CLIENTS = 8, GRANTS = 25 };
	int told[CLIENTS][2], status;
	pid_t pid[CLIENTS];
	double before;

	/* What some keep never is too much for others. */
	serve_stage_serve((const char *[]){"--gpus", "2", "--capacity", "100000", NULL});
	engine_step(&stage.tool.engine, 0, 4);
	serve_stage_await(1);
	expect_reserved("mine", 1, 3600000, 201);
	before = margin_left();
	for (int i = 0; i < CLIENTS; i++) {
		cr_assert_eq(pipe(told[i]), 0);
		pid[i] = fork();
		if (pid[i] == 0)
			work(i, told[i][1]);
	}
	for (int i = 0; i < CLIENTS; i++) {
		/* The first ones die while the others go on. */
		for (int grants = 0; grants < 2 + GRANTS * i / CLIENTS; grants++) {
			char byte;

			cr_assert_eq(read(told[i][0], &byte, 1), 1);
		}
		kill(pid[i], SIGKILL);
		waitpid(pid[i], &status, 0);
		cr_expect(WIFSIGNALED(status));
	}
	cr_expect(reservations_become(1));
	cr_expect_float_eq(margin_left(), before, 1e-9);
	for (int i = 0; i < CLIENTS; i++) {
		close(told[i][0]);
		close(told[i][1]);
	}
}

/* ---- page by page -------------------------------------------------------------- */

/* Expects the keys "k" @first to "k" @end - 1, and what the next page is after; 0: no next. */
static void expect_page(const char *what, int first, int end, json_int_t next)
{
	struct http_reply reply = ask("GET", what, NULL);
	const json_t *list = at(reply.json, "reservations", NULL);
	char key[16];

	cr_expect_eq(reply.status, 200);
	cr_expect_eq(json_array_size(list), (size_t)(end - first), "%s", what);
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
	char what[16], fourth[256], where[256];

	serve_stage_run(1);
	for (int i = 1; i <= 10; i++) {
		snprintf(what, sizeof(what), "k%d", i);
		reserve_at(i == 4 ? fourth : where, what);
	}
	expect_page("/v1/reservations", 1, 11, 0);
	expect_page("/v1/reservations?limit=4", 1, 5, 4);
	expect_status("DELETE", fourth, NULL, 200);
	expect_page("/v1/reservations?limit=4&after=4", 5, 9, 8);
	expect_page("/v1/reservations?limit=2&after=8", 9, 11, 0);
	expect_page("/v1/reservations?after=10", 11, 11, 0);
	expect_page("/v1/reservations?after=18446744073709551615", 11, 11, 0);
}
