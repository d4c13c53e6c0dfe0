/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/system/metrics_stage.h"

struct metrics_stage metrics;

int metrics_port_of(const struct command *command, const char *before)
{
	static char said[1 << 16];
	const char *at = NULL;
	char *end = said;

	/* With the line's end, so that all of the number is there. */
	for (int tries = 0; (!at || *end != '\n') && tries < METRICS_TRIES; tries++) {
		ssize_t got = pread(command->err_fd, said, sizeof(said) - 1, 0);

		said[got > 0 ? got : 0] = '\0';
		at = strstr(said, before);
		if (at)
			strtol(at + strlen(before), &end, 10);
		if (!at || *end != '\n')
			poll(NULL, 0, 10);
	}
	cr_assert(at && *end == '\n', "\"%s\" is not in: %s", before, said);
	return (int)strtol(at + strlen(before), NULL, 10);
}

void metrics_serve(const char *const *more)
{
	const char *args[16] = {
		"serve",    "--instance",  engine_instance(metrics.tool.daemon.dir, "prod"),
		"--listen", "127.0.0.1:0", "--gpus",
		"2"};
	int count = 7;

	for (; *more; more++)
		args[count++] = *more;
	command_start(&metrics.server, metrics.tool.daemon.dir, args);
	metrics.server_port = metrics_port_of(&metrics.server, "listening on 127.0.0.1:");
}

void metrics_stage_start(void)
{
	/* A ring that a reader who reads nothing soon holds up, and is soon demoted for. */
	tool_stage_start(&metrics.tool,
			 (const char *[]){"--ring-size", "1M", "--stall-limit", "200", NULL});
	tool_stage_open(&metrics.tool, "prod");
	snprintf(metrics.dir, sizeof(metrics.dir), "/tmp/r3ring-metrics-%d", getpid());
	cr_assert_eq(mkdir(metrics.dir, 0700), 0);
}

void metrics_stage_stop(void)
{
	char line[128];

	command_free(&metrics.prometheus);
	command_free(&metrics.server);
	tool_stage_close(&metrics.tool);
	snprintf(line, sizeof(line), "rm -rf %s", metrics.dir);
	cr_expect_eq(system(line), 0);
}

const char *metrics_scrape(const char *more)
{
	char request[512];

	snprintf(request, sizeof(request),
		 "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n%s\r\n", more);
	return http_exchange(http_dial_port(metrics.server_port), request);
}

/* The value of a line; below 0: it is not there. */
double metrics_scraped(const char *metric)
{
	const char *at = strstr(metrics_scrape(""), metric);

	return at ? strtod(at + strlen(metric), NULL) : -1;
}

void metrics_await(const char *metric, double value)
{
	double now = metrics_scraped(metric);

	for (int tries = 0; now != value && tries < METRICS_TRIES; tries++) {
		poll(NULL, 0, 10);
		now = metrics_scraped(metric);
	}
	cr_assert_float_eq(now, value, 1e-9, "%s is %g, not %g", metric, now, value);
}

const char *metrics_of_channel(const char *metric)
{
	static char text[256];

	snprintf(text, sizeof(text), "\n%s{channel=\"%s\"} ", metric,
		 tool_stage_channel(&metrics.tool, "prod"));
	return text;
}

void metrics_run(unsigned int steps)
{
	for (unsigned int i = 0; i < steps; i++)
		engine_step(&metrics.tool.engine, 0, METRICS_ROWS);
}
