/* SPDX-License-Identifier: Apache-2.0 */
/* Clients that die: what was reserved for them is freed, and for the dead nothing is reserved. */
#include <criterion/criterion.h>

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/system/reservation_stage.h"

TestSuite(serve_reserving_clients, .init = serve_stage_start, .fini = serve_stage_stop);

Test(serve_reserving_clients, a_killed_clients_reservations_are_freed)
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

Test(serve_reserving_clients, nothing_is_reserved_for_a_process_that_is_dead)
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

Test(serve_reserving_clients, clients_that_are_killed_at_work_leave_a_book_that_balances)
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
