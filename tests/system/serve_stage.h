/* SPDX-License-Identifier: Apache-2.0 */
/* An engine that really runs, and `r3ring serve` that follows it, for tests of what it answers. */
#ifndef TESTS_SYSTEM_SERVE_STAGE_H
#define TESTS_SYSTEM_SERVE_STAGE_H

#include "tests/support/http_client.h"
#include "tests/support/tool_stage.h"

struct serve_stage {
	struct tool_stage tool; /* daemon and engine */
	struct command server;
	char path[128];    /* of its socket */
	const char *token; /* that is shown; NULL: none */
};

/* One a process: what the functions below speak of. */
extern struct serve_stage stage;

/* Daemon and engine "prod"; for .init and .fini. */
void serve_stage_start(void);
void serve_stage_stop(void);

/* Its instance's whole name. */
const char *serve_stage_instance(void);

/* Serves "prod" with these options, NULL-terminated. */
void serve_stage_serve(const char *const *more);

/* The same with two GPUs that have room for 100 visits, once it has seen @steps steps of four
 * rows, which the engine runs. */
void serve_stage_run(unsigned int steps);

/* Waits until the load is of so many steps. */
void serve_stage_await(json_int_t steps);

struct http_reply ask(const char *method, const char *what, const char *body);

/* A member, or a member's member where @second is one. */
const json_t *at(const json_t *json, const char *first, const char *second);

/* Asks, expects that status, and drops the answer. */
void expect_status(const char *method, const char *what, const char *body, int status);

/* Asks again and again until the answer is as it should be. */
bool becomes(const char *what, bool (*is)(const json_t *answer, const void *wanted),
	     const void *wanted);

/* Of /v1/channels: the first instance is in that state. */
bool is_in_state(const json_t *answer, const void *wanted);

/* Of /v1/reservations: one, under that key. */
bool is_all_there_is(const json_t *answer, const void *wanted);

#endif
