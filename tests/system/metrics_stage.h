/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Daemon, engine "prod" and `r3ring serve`, for tests of its /metrics; and a real Prometheus
 * that scrapes them.
 */
#ifndef TESTS_SYSTEM_METRICS_STAGE_H
#define TESTS_SYSTEM_METRICS_STAGE_H

#include "tests/support/http_client.h"
#include "tests/support/tool_stage.h"

#define PROMETHEUS "/usr/bin/prometheus"
#define PROMTOOL "/usr/bin/promtool"
#define PROMETHEUS_ABSENT "no " PROMETHEUS " here (Debian: prometheus)"
#define METRICS_ROWS 4u /* of a step */
#define METRICS_GPUS 2u
#define METRICS_TRIES 6000 /* of 10 ms */

/* One a process: what the functions below speak of. */
struct metrics_stage {
	struct tool_stage tool; /* daemon and engine */
	struct command server, prometheus;
	int server_port, prometheus_port;
	char dir[80]; /* for files of a test */
};

extern struct metrics_stage metrics;

/* For .init and .fini. */
void metrics_stage_start(void);
void metrics_stage_stop(void);

/* Serves "prod" with these options, NULL-terminated. */
void metrics_serve(const char *const *more);

/* The number that a program said behind these words; waits until it did. */
int metrics_port_of(const struct command *command, const char *before);

/* Runs steps of METRICS_ROWS rows. */
void metrics_run(unsigned int steps);

/* What /metrics answers, asked with more header lines. */
const char *metrics_scrape(const char *more);

/* The value of a line that begins so; below 0: it is not there. */
double metrics_scraped(const char *metric);
void metrics_await(const char *metric, double value);

/* The beginning of the engine's line of a metric of channels; overwritten by the next call. */
const char *metrics_of_channel(const char *metric);

/* ---- a Prometheus (metrics_prometheus.c) ------------------------------------- */

/* Skips the test where there is none. It scrapes as job "r3ring". */
void prometheus_start(void);

/* A path of its API; *@status may be NULL. A new reference. */
json_t *prometheus_ask(const char *path, int *status);

/* The answer to an expression; its errors fail the test. A new reference. */
json_t *prometheus_query(const char *expression);

/* Waits until the expression has that one value. */
void prometheus_expect(const char *expression, double expected);

/* Waits until the expression has any series; @why names it where it never has. */
void prometheus_expect_some(const char *expression, const char *why);

#endif
