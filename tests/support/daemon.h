/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A real r3ringd in a runtime directory of its own, for system tests. The program
 * is the one of this build: beside the directory of the test binary. What is
 * started here is killed, and its directory and segments are removed, when the
 * test's process ends, however it ends.
 */
#ifndef TESTS_SUPPORT_DAEMON_H
#define TESTS_SUPPORT_DAEMON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define TEST_DAEMON_LOG 65536

struct test_daemon {
	pid_t pid; /* 0 while it does not run */
	char dir[64];
	int log_fd; /* its standard error, -1 when none */
	size_t log_len;
	char log[TEST_DAEMON_LOG]; /* what it has said so far, NUL-terminated */
	/* Called in the new process before the program starts; NULL: nothing. One
	 * that returns false makes the start fail. */
	bool (*prepare)(void *ctx);
	void *prepare_ctx;
	struct test_daemon *next; /* of those to clean up */
};

/*
 * Makes a new runtime directory and starts a daemon in it; waits for its ready
 * line. @args: options beside --runtime-dir, NULL-terminated; NULL: none. Fields
 * but `prepare` need not be filled in. Ends the test's process when it cannot.
 */
void test_daemon_start(struct test_daemon *daemon, const char *const *args);

/* The same in the directory of before. */
void test_daemon_restart(struct test_daemon *daemon, const char *const *args);

/* Starts it and expects it to end by itself. Returns its exit code. Makes a
 * directory if there is none yet. */
int test_daemon_run(struct test_daemon *daemon, const char *const *args);

/* Sends SIGTERM and waits. Returns the exit code, or -signal. */
int test_daemon_stop(struct test_daemon *daemon);

/* Sends SIGKILL and waits. */
void test_daemon_kill(struct test_daemon *daemon);

/* Waits until it has said @text; false after ten seconds. */
bool test_daemon_said(struct test_daemon *daemon, const char *text);

/* Ends it, removes its directory and what it left in /dev/shm. */
void test_daemon_close(struct test_daemon *daemon);

/* Path of a program of this build ("r3ringd", "r3ring"); a static text. */
const char *test_program(const char *name);

/* Whether /dev/shm has so much room. */
bool test_shm_takes(uint64_t bytes);

/* How many names /dev/shm has that contain @part. */
unsigned int test_shm_names(const char *part);

/* Waits until it has none; false after ten seconds. */
bool test_shm_names_gone(const char *part);

#endif
