/* SPDX-License-Identifier: Apache-2.0 */
/*
 * /metrics of `r3ring serve`: the text, checked by promtool; and what a real Prometheus makes of
 * it, in its query language. Dashboard and alerts: metrics_watch.c.
 */
#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/system/metrics_stage.h"

#define STEPS 6u

TestSuite(metrics, .init = metrics_stage_start, .fini = metrics_stage_stop, .timeout = 300);

static void expect_checked(void)
{
	char path[128], line[512];
	const char *body = strstr(metrics_scrape(""), "\r\n\r\n");
	FILE *file;

	if (access(PROMTOOL, X_OK))
		cr_skip_test(PROMETHEUS_ABSENT);
	cr_assert(body);
	snprintf(path, sizeof(path), "%s/metrics", metrics.dir);
	file = fopen(path, "w");
	cr_assert(file);
	fputs(body + 4, file);
	fclose(file);
	snprintf(line, sizeof(line), PROMTOOL " check metrics < %s", path);
	cr_expect_eq(system(line), 0, "promtool has something to say");
}

Test(metrics, promtool_finds_nothing_wrong_with_them)
{
	metrics_serve((const char *[]){NULL});
	metrics_run(STEPS);
	metrics_await(metrics_of_channel("r3ring_steps_total"), STEPS);
	expect_checked();
}

Test(metrics, without_engine_and_daemon_there_is_an_answer_too)
{
	engine_close(&metrics.tool.engine);
	test_daemon_kill(&metrics.tool.daemon);
	metrics_serve((const char *[]){NULL});
	metrics_await("\nr3ring_daemon_up ", 0);
	cr_expect(strstr(metrics_scrape(""), "Content-Type: text/plain; version=0.0.4"));
	cr_expect(strstr(metrics_scrape(""), "\nr3ring_engine_live{"));
	expect_checked();
	test_daemon_restart(&metrics.tool.daemon, NULL);
	metrics_await("\nr3ring_daemon_up ", 1);
	tool_stage_open(&metrics.tool, "prod");
}

Test(metrics, counters_go_on_over_generations_and_a_daemons_death)
{
	metrics_serve((const char *[]){NULL});
	metrics_run(STEPS);
	metrics_await(metrics_of_channel("r3ring_steps_total"), STEPS);
	metrics_await(metrics_of_channel("r3ring_rows_total"), STEPS * METRICS_ROWS);
	engine_close(&metrics.tool.engine);
	tool_stage_open(&metrics.tool, "prod");
	metrics_run(STEPS + 1);
	metrics_await(metrics_of_channel("r3ring_steps_total"), 2 * STEPS + 1);
	test_daemon_kill(&metrics.tool.daemon);
	metrics_await("\nr3ring_daemon_up ", 0);
	cr_expect_float_eq(metrics_scraped(metrics_of_channel("r3ring_steps_total")), 2 * STEPS + 1,
			   1e-9);
	test_daemon_restart(&metrics.tool.daemon, NULL);
	metrics_await("\nr3ring_daemon_up ", 1);
	metrics_await(metrics_of_channel("r3ring_channel_live"), 1);
	cr_expect_geq(metrics_scraped(metrics_of_channel("r3ring_steps_total")), 2 * STEPS + 1);
	metrics_run(1);
	metrics_await(metrics_of_channel("r3ring_rows_total"), (2 * STEPS + 2) * METRICS_ROWS);
}

Test(metrics, they_are_guarded_as_all_else)
{
	char path[128];
	FILE *file;

	snprintf(path, sizeof(path), "%s/token", metrics.dir);
	file = fopen(path, "w");
	cr_assert(file);
	fputs("a-token-of-some-length\n", file);
	fclose(file);
	chmod(path, 0600);
	metrics_serve((const char *[]){"--token-file", path, NULL});
	cr_expect(strstr(metrics_scrape(""), "HTTP/1.1 401"));
	cr_expect(strstr(metrics_scrape("Authorization: Bearer a-token-of-some-length\r\n"),
			 "\nr3ring_build_info{"));
	cr_expect(strstr(http_exchange(http_dial_port(metrics.server_port),
				       "GET /metrics HTTP/1.1\r\nHost: evil.example\r\n"
				       "Authorization: Bearer a-token-of-some-length\r\n"
				       "Connection: close\r\n\r\n"),
			 "HTTP/1.1 421"));
	cr_expect(strstr(http_exchange(http_dial_port(metrics.server_port),
				       "POST /metrics HTTP/1.1\r\nHost: localhost\r\n"
				       "Authorization: Bearer a-token-of-some-length\r\n"
				       "Content-Length: 0\r\nConnection: close\r\n\r\n"),
			 "HTTP/1.1 405"));
}

/* ---- what dashboard and alerts ask for ------------------------------------------------ */

/* Of a histogram's series the family is told. */
static bool is_told(const char *told, const char *name, size_t length)
{
	static const char *const parts[] = {"", "_bucket", "_sum", "_count"};
	char line[160];

	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
		size_t part = strlen(parts[i]);

		if (length <= part || strncmp(name + length - part, parts[i], part))
			continue;
		snprintf(line, sizeof(line), "\n# TYPE %.*s ", (int)(length - part), name);
		if (strstr(told, line))
			return true;
	}
	return false;
}

static void expect_told(const char *told, const char *path)
{
	static char text[1 << 17];
	FILE *file = fopen(path, "r");
	unsigned int names = 0;

	cr_assert(file, "%s", path);
	text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
	fclose(file);
	for (const char *at = text; (at = strstr(at, "r3ring_")); names++) {
		size_t length = strspn(at, "abcdefghijklmnopqrstuvwxyz0123456789_");

		cr_expect(is_told(told, at, length), "%s asks for %.*s", path, (int)length, at);
		at += length;
	}
	cr_expect_gt(names, 20, "%s", path);
}

Test(metrics, dashboard_and_alerts_ask_for_nothing_that_is_not_told)
{
	char *told;

	metrics_serve((const char *[]){NULL});
	metrics_run(STEPS);
	metrics_await(metrics_of_channel("r3ring_steps_total"), STEPS);
	told = strdup(metrics_scrape(""));
	cr_assert(told);
	expect_told(told, "docs/grafana.json");
	expect_told(told, "docs/alerts.yml");
	free(told);
}

/* ---- what the engine ran, worked out by its rule ------------------------------------- */

static void count_layer(uint32_t layer, uint32_t counts[ENGINE_EXPERTS])
{
	memset(counts, 0, ENGINE_EXPERTS * sizeof(*counts));
	for (uint64_t step = 1; step <= STEPS; step++)
		for (uint32_t row = 0; row < METRICS_ROWS; row++)
			for (uint32_t k = 0; k < ENGINE_TOP_K; k++)
				counts[engine_id(step, layer, row, k)]++;
}

static void expect_layer(uint32_t layer)
{
	uint32_t counts[ENGINE_EXPERTS], most = 0, dead = 0, gpu[METRICS_GPUS] = {0};
	const double mean = (double)STEPS * METRICS_ROWS * ENGINE_TOP_K / ENGINE_EXPERTS;
	char text[128];

	count_layer(layer, counts);
	for (uint32_t e = 0; e < ENGINE_EXPERTS; e++) {
		most = counts[e] > most ? counts[e] : most;
		dead += !counts[e];
		gpu[e / (ENGINE_EXPERTS / METRICS_GPUS)] += counts[e];
	}
	snprintf(text, sizeof(text), "r3ring_layer_expert_load_ratio{layer=\"%u\",stat=\"max\"}",
		 ENGINE_FIRST_LAYER + layer);
	prometheus_expect(text, most / mean);
	snprintf(text, sizeof(text), "r3ring_layer_experts_without_load{layer=\"%u\"}",
		 ENGINE_FIRST_LAYER + layer);
	prometheus_expect(text, dead);
	snprintf(text, sizeof(text), "r3ring_layer_gpu_load_ratio{layer=\"%u\"}",
		 ENGINE_FIRST_LAYER + layer);
	prometheus_expect(text, (gpu[0] > gpu[1] ? gpu[0] : gpu[1]) * 2.0 / (gpu[0] + gpu[1]));
}

Test(metrics, a_prometheus_tells_what_the_engine_ran_and_lost)
{
	metrics_serve((const char *[]){NULL});
	metrics_await("\nr3ring_daemon_up ", 1);
	metrics_run(STEPS);
	/* More rows than its schema allows: lost, and said so. */
	cr_assert_lt(engine_begin(&metrics.tool.engine, 0, metrics.tool.engine.max_rows + 1), 0);
	prometheus_start();
	prometheus_expect("up", 1);
	prometheus_expect("r3ring_steps_total", STEPS + 1);
	prometheus_expect("r3ring_rows_total", STEPS * METRICS_ROWS);
	prometheus_expect("r3ring_load_cells_total", STEPS * METRICS_ROWS * ENGINE_LAYERS);
	prometheus_expect("r3ring_lost_steps_total{cause=\"too_big\"}", 1);
	prometheus_expect("r3ring_lost_rows_total{cause=\"too_big\"}",
			  metrics.tool.engine.max_rows + 1);
	prometheus_expect("sum(r3ring_lost_steps_total)", 1);
	prometheus_expect("r3ring_load_lost_cells_total{cause=\"too_big\"}",
			  (metrics.tool.engine.max_rows + 1) * ENGINE_LAYERS);
	prometheus_expect("r3ring_load_latency_seconds_count", STEPS);
	prometheus_expect("r3ring_load_latency_seconds_bucket{le=\"+Inf\"}", STEPS);
	prometheus_expect("r3ring_channel_layers_unbound", 0); /* they come by call */
	prometheus_expect("r3ring_channel_live", 1);
	prometheus_expect("r3ring_channel_readers", 2); /* the service: for load, for routes */
	for (uint32_t layer = 0; layer < ENGINE_LAYERS; layer++)
		expect_layer(layer);
}
