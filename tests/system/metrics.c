/* SPDX-License-Identifier: Apache-2.0 */
/*
 * /metrics of `r3ring serve`: checked by promtool, scraped by a real Prometheus, and asked
 * for again by its query language; the dashboard and the alert rules against the same.
 */
#include <criterion/criterion.h>

#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/http_client.h"
#include "tests/support/tool_stage.h"

#define PROMETHEUS "/usr/bin/prometheus"
#define PROMTOOL "/usr/bin/promtool"
#define ABSENT "no " PROMETHEUS " here (Debian: prometheus)"
#define STEPS 6u
#define ROWS 4u
#define GPUS 2u
#define TRIES 6000 /* of 10 ms */

static struct tool_stage stage;
static struct command server, prometheus;
static int server_port, prometheus_port;
static char dir[80];

static int port_of(const struct command *command, const char *before)
{
	static char said[1 << 16];
	const char *at = NULL;
	char *end = said;

	/* With the line's end, so that all of the number is there. */
	for (int tries = 0; (!at || *end != '\n') && tries < TRIES; tries++) {
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

static void serve(const char *const *more)
{
	const char *args[16] = {
		"serve",    "--instance",  engine_instance(stage.daemon.dir, "prod"),
		"--listen", "127.0.0.1:0", "--gpus",
		"2"};
	int count = 7;

	for (; *more; more++)
		args[count++] = *more;
	command_start(&server, stage.daemon.dir, args);
	server_port = port_of(&server, "listening on 127.0.0.1:");
}

static void start(void)
{
	tool_stage_start(&stage, NULL);
	tool_stage_open(&stage, "prod");
	snprintf(dir, sizeof(dir), "/tmp/r3ring-metrics-%d", getpid());
	cr_assert_eq(mkdir(dir, 0700), 0);
}

static void stop(void)
{
	char line[128];

	command_free(&prometheus);
	command_free(&server);
	tool_stage_close(&stage);
	snprintf(line, sizeof(line), "rm -rf %s", dir);
	cr_expect_eq(system(line), 0);
}

TestSuite(metrics, .init = start, .fini = stop, .timeout = 300);

/* ---- the text itself ------------------------------------------------------------- */

static const char *scrape(const char *more)
{
	char request[512];

	snprintf(request, sizeof(request),
		 "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n%s\r\n", more);
	return http_exchange(http_dial_port(server_port), request);
}

/* The value of a line; below 0: it is not there. */
static double scraped(const char *metric)
{
	const char *at = strstr(scrape(""), metric);

	return at ? strtod(at + strlen(metric), NULL) : -1;
}

static void await(const char *metric, double value)
{
	double now = scraped(metric);

	for (int tries = 0; now != value && tries < TRIES; tries++) {
		poll(NULL, 0, 10);
		now = scraped(metric);
	}
	cr_assert_float_eq(now, value, 1e-9, "%s is %g, not %g", metric, now, value);
}

static const char *of_channel(const char *metric)
{
	static char text[256];

	snprintf(text, sizeof(text), "\n%s{channel=\"%s\"} ", metric,
		 tool_stage_channel(&stage, "prod"));
	return text;
}

static void expect_checked(void)
{
	char path[128], line[512];
	const char *body = strstr(scrape(""), "\r\n\r\n");
	FILE *file;

	if (access(PROMTOOL, X_OK))
		cr_skip_test(ABSENT);
	cr_assert(body);
	snprintf(path, sizeof(path), "%s/metrics", dir);
	file = fopen(path, "w");
	cr_assert(file);
	fputs(body + 4, file);
	fclose(file);
	snprintf(line, sizeof(line), PROMTOOL " check metrics < %s", path);
	cr_expect_eq(system(line), 0, "promtool has something to say");
}

static void run(unsigned int steps)
{
	for (unsigned int i = 0; i < steps; i++)
		engine_step(&stage.engine, 0, ROWS);
}

Test(metrics, promtool_finds_nothing_wrong_with_them)
{
	serve((const char *[]){NULL});
	run(STEPS);
	await(of_channel("r3ring_steps_total"), STEPS);
	expect_checked();
}

Test(metrics, without_engine_and_daemon_there_is_an_answer_too)
{
	engine_close(&stage.engine);
	test_daemon_kill(&stage.daemon);
	serve((const char *[]){NULL});
	await("\nr3ring_daemon_up ", 0);
	cr_expect(strstr(scrape(""), "Content-Type: text/plain; version=0.0.4"));
	cr_expect(strstr(scrape(""), "\nr3ring_engine_live{"));
	expect_checked();
	test_daemon_restart(&stage.daemon, NULL);
	await("\nr3ring_daemon_up ", 1);
	tool_stage_open(&stage, "prod");
}

Test(metrics, counters_go_on_over_generations_and_a_daemons_death)
{
	serve((const char *[]){NULL});
	run(STEPS);
	await(of_channel("r3ring_steps_total"), STEPS);
	await(of_channel("r3ring_rows_total"), STEPS * ROWS);
	engine_close(&stage.engine);
	tool_stage_open(&stage, "prod");
	run(STEPS + 1);
	await(of_channel("r3ring_steps_total"), 2 * STEPS + 1);
	test_daemon_kill(&stage.daemon);
	await("\nr3ring_daemon_up ", 0);
	cr_expect_float_eq(scraped(of_channel("r3ring_steps_total")), 2 * STEPS + 1, 1e-9);
	test_daemon_restart(&stage.daemon, NULL);
	await("\nr3ring_daemon_up ", 1);
	await(of_channel("r3ring_channel_live"), 1);
	cr_expect_geq(scraped(of_channel("r3ring_steps_total")), 2 * STEPS + 1);
	run(1);
	await(of_channel("r3ring_rows_total"), (2 * STEPS + 2) * ROWS);
}

Test(metrics, they_are_guarded_as_all_else)
{
	char path[128];
	FILE *file;

	snprintf(path, sizeof(path), "%s/token", dir);
	file = fopen(path, "w");
	cr_assert(file);
	fputs("a-token-of-some-length\n", file);
	fclose(file);
	chmod(path, 0600);
	serve((const char *[]){"--token-file", path, NULL});
	cr_expect(strstr(scrape(""), "HTTP/1.1 401"));
	cr_expect(strstr(scrape("Authorization: Bearer a-token-of-some-length\r\n"),
			 "\nr3ring_build_info{"));
	cr_expect(strstr(http_exchange(http_dial_port(server_port),
				       "GET /metrics HTTP/1.1\r\nHost: evil.example\r\n"
				       "Connection: close\r\n\r\n"),
			 "HTTP/1.1 4"));
	cr_expect(strstr(http_exchange(http_dial_port(server_port),
				       "POST /metrics HTTP/1.1\r\nHost: localhost\r\n"
				       "Authorization: Bearer a-token-of-some-length\r\n"
				       "Content-Length: 0\r\nConnection: close\r\n\r\n"),
			 "HTTP/1.1 405"));
}

/* ---- a Prometheus ------------------------------------------------------------------ */

static void write_config(void)
{
	char path[128], here[512];
	FILE *file;

	cr_assert(getcwd(here, sizeof(here)));
	snprintf(path, sizeof(path), "%s/prometheus.yml", dir);
	file = fopen(path, "w");
	cr_assert(file);
	fprintf(file,
		"global: {scrape_interval: 200ms, evaluation_interval: 500ms}\n"
		"rule_files: [%s/docs/alerts.yml]\n"
		"scrape_configs:\n"
		"  - job_name: r3ring\n"
		"    static_configs: [{targets: ['127.0.0.1:%d']}]\n",
		here, server_port);
	fclose(file);
}

/* By HTTP 1.0, which has no chunks; *@status may be NULL. A new reference. */
static json_t *ask(const char *path, int *status)
{
	char request[5000];
	const char *answer, *body;
	int code = 0;

	snprintf(request, sizeof(request), "GET %s HTTP/1.0\r\nHost: localhost\r\n\r\n", path);
	answer = http_exchange(http_dial_port(prometheus_port), request);
	body = strstr(answer, "\r\n\r\n");
	if (sscanf(answer, "HTTP/1.%*d %d", &code) != 1)
		code = 0;
	if (status)
		*status = code;
	return body ? json_loads(body + 4, 0, NULL) : NULL;
}

static void start_prometheus(void)
{
	char config[128], data[128];
	int status = 0;

	if (access(PROMETHEUS, X_OK))
		cr_skip_test(ABSENT);
	write_config();
	snprintf(config, sizeof(config), "--config.file=%s/prometheus.yml", dir);
	snprintf(data, sizeof(data), "--storage.tsdb.path=%s/data", dir);
	command_start_in(&prometheus, NULL, PROMETHEUS, stage.daemon.dir,
			 (const char *[]){config, data, "--web.listen-address=127.0.0.1:0", NULL});
	prometheus_port = port_of(&prometheus, "msg=\"Listening on\" address=127.0.0.1:");
	for (int tries = 0; status != 200 && tries < TRIES; tries++) {
		poll(NULL, 0, tries ? 10 : 0);
		json_decref(ask("/-/ready", &status));
	}
	cr_assert_eq(status, 200, "it does not get ready");
}

/* The answer to an expression; its errors fail the test. A new reference. */
static json_t *query(const char *expression)
{
	char path[4096] = "/api/v1/query?query=";
	size_t used = strlen(path);
	json_t *reply, *result;
	int status;

	for (; *expression && used < sizeof(path) - 4; expression++)
		used += (size_t)snprintf(path + used, 4, "%%%02X", (unsigned char)*expression);
	reply = ask(path, &status);
	cr_assert_eq(status, 200, "%s: %s", path,
		     json_string_value(json_object_get(reply, "error")));
	result = json_object_get(json_object_get(reply, "data"), "result");
	json_incref(result);
	json_decref(reply);
	return result;
}

/* The one value that an expression has; NAN: none, or several. */
static double value_of(const char *expression)
{
	json_t *result = query(expression);
	const json_t *value = json_object_get(json_array_get(result, 0), "value");
	double number = (double)NAN;

	if (json_array_size(result) == 1)
		number = strtod(json_string_value(json_array_get(value, 1)), NULL);
	json_decref(result);
	return number;
}

static void expect_value(const char *expression, double expected)
{
	double value = value_of(expression);

	for (int tries = 0; !(fabs(value - expected) < 1e-6) && tries < TRIES; tries++) {
		poll(NULL, 0, 10);
		value = value_of(expression);
	}
	cr_expect_float_eq(value, expected, 1e-6, "%s is %g, not %g", expression, value, expected);
}

/* ---- what the engine ran, worked out by its rule ------------------------------------- */

static void count_layer(uint32_t layer, uint32_t counts[ENGINE_EXPERTS])
{
	memset(counts, 0, ENGINE_EXPERTS * sizeof(*counts));
	for (uint64_t step = 1; step <= STEPS; step++)
		for (uint32_t row = 0; row < ROWS; row++)
			for (uint32_t k = 0; k < ENGINE_TOP_K; k++)
				counts[engine_id(step, layer, row, k)]++;
}

static void expect_layer(uint32_t layer)
{
	uint32_t counts[ENGINE_EXPERTS], most = 0, dead = 0, gpu[GPUS] = {0};
	const double mean = (double)STEPS * ROWS * ENGINE_TOP_K / ENGINE_EXPERTS;
	char text[128];

	count_layer(layer, counts);
	for (uint32_t e = 0; e < ENGINE_EXPERTS; e++) {
		most = counts[e] > most ? counts[e] : most;
		dead += !counts[e];
		gpu[e / (ENGINE_EXPERTS / GPUS)] += counts[e];
	}
	snprintf(text, sizeof(text), "r3ring_layer_expert_load_ratio{layer=\"%u\",stat=\"max\"}",
		 ENGINE_FIRST_LAYER + layer);
	expect_value(text, most / mean);
	snprintf(text, sizeof(text), "r3ring_layer_experts_without_load{layer=\"%u\"}",
		 ENGINE_FIRST_LAYER + layer);
	expect_value(text, dead);
	snprintf(text, sizeof(text), "r3ring_layer_gpu_load_ratio{layer=\"%u\"}",
		 ENGINE_FIRST_LAYER + layer);
	expect_value(text, (gpu[0] > gpu[1] ? gpu[0] : gpu[1]) * 2.0 / (gpu[0] + gpu[1]));
}

Test(metrics, a_prometheus_tells_what_the_engine_ran_and_lost)
{
	serve((const char *[]){NULL});
	await("\nr3ring_daemon_up ", 1);
	run(STEPS);
	/* More rows than its schema allows: lost, and said so. */
	cr_assert_lt(engine_begin(&stage.engine, 0, stage.engine.max_rows + 1), 0);
	start_prometheus();
	expect_value("up", 1);
	expect_value("r3ring_steps_total", STEPS + 1);
	expect_value("r3ring_rows_total", STEPS * ROWS);
	expect_value("r3ring_load_cells_total", STEPS * ROWS * ENGINE_LAYERS);
	expect_value("r3ring_lost_steps_total{cause=\"too_big\"}", 1);
	expect_value("r3ring_lost_rows_total{cause=\"too_big\"}", stage.engine.max_rows + 1);
	expect_value("sum(r3ring_lost_steps_total)", 1);
	expect_value("r3ring_load_lost_cells_total{cause=\"too_big\"}",
		     (stage.engine.max_rows + 1) * ENGINE_LAYERS);
	expect_value("r3ring_load_latency_seconds_count", STEPS);
	expect_value("r3ring_load_latency_seconds_bucket{le=\"+Inf\"}", STEPS);
	expect_value("r3ring_channel_layers_unbound", ENGINE_LAYERS); /* it binds nothing */
	expect_value("r3ring_channel_live", 1);
	expect_value("r3ring_channel_readers", 1);
	for (uint32_t layer = 0; layer < ENGINE_LAYERS; layer++)
		expect_layer(layer);
}

/* ---- the dashboard -------------------------------------------------------------------- */

/* As Grafana would fill it in. */
static void fill_in(const char *expression, char filled[1024])
{
	static const char *const with[][2] = {{"$__rate_interval", "5s"}, {"$job", ".+"}};
	size_t used = 0;

	while (*expression && used < 1000) {
		bool replaced = false;

		for (size_t i = 0; i < 2 && !replaced; i++) {
			replaced = !strncmp(expression, with[i][0], strlen(with[i][0]));
			if (replaced) {
				used += (size_t)snprintf(filled + used, 1024 - used, "%s",
							 with[i][1]);
				expression += strlen(with[i][0]);
			}
		}
		if (!replaced)
			filled[used++] = *expression++;
	}
	filled[used] = '\0';
}

static void expect_data(const char *expression)
{
	json_t *result = NULL;
	char filled[1024];
	size_t series = 0;

	fill_in(expression, filled);
	cr_assert(!strchr(filled, '$'), "%s", filled);
	for (int tries = 0; !series && tries < TRIES; tries++) {
		json_decref(result);
		poll(NULL, 0, tries ? 10 : 0);
		result = query(filled);
		series = json_array_size(result);
	}
	cr_expect_gt(series, 0, "nothing for %s", filled);
	json_decref(result);
}

Test(metrics, every_expression_of_the_dashboard_has_data)
{
	json_t *dashboard = json_load_file("docs/grafana.json", 0, NULL), *panel, *target;
	size_t i, j, expressions = 0;

	cr_assert(dashboard);
	serve((const char *[]){NULL});
	run(STEPS);
	start_prometheus();
	expect_value("r3ring_steps_total", STEPS);
	json_array_foreach (json_object_get(dashboard, "panels"), i, panel) {
		json_array_foreach (json_object_get(panel, "targets"), j, target) {
			expect_data(json_string_value(json_object_get(target, "expr")));
			expressions++;
		}
	}
	cr_expect_geq(expressions, 20);
	json_decref(dashboard);
}

/* ---- the alerts -------------------------------------------------------------------------- */

static size_t rules_well(void)
{
	json_t *reply = ask("/api/v1/rules", NULL), *rules, *rule;
	const json_t *groups = json_object_get(json_object_get(reply, "data"), "groups");
	size_t i, well = 0;

	rules = json_object_get(json_array_get(groups, 0), "rules");
	json_array_foreach (rules, i, rule) {
		const char *health = json_string_value(json_object_get(rule, "health"));

		cr_expect_str_neq(health, "err", "%s",
				  json_string_value(json_object_get(rule, "lastError")));
		well += !strcmp(health, "ok");
	}
	well = well == json_array_size(rules) ? well : 0;
	json_decref(reply);
	return well;
}

Test(metrics, a_prometheus_evaluates_every_alert_rule)
{
	size_t well = 0;

	serve((const char *[]){NULL});
	run(STEPS);
	start_prometheus();
	for (int tries = 0; !well && tries < TRIES; tries++) {
		poll(NULL, 0, 10);
		well = rules_well();
	}
	cr_expect_geq(well, 10);
}

/* So that no alert is without its test. */
static void expect_tested(const char *rules, const char *tests)
{
	const char *at = rules;
	unsigned int alerts = 0;

	while ((at = strstr(at, "- alert: "))) {
		char line[96];

		at += strlen("- alert: ");
		snprintf(line, sizeof(line), "alertname: %.*s\n", (int)strcspn(at, "\n"), at);
		cr_expect(strstr(tests, line), "no test: %s", line);
		alerts++;
	}
	cr_expect_gt(alerts, 0);
}

static const char *read_text(const char *path, char text[1 << 16])
{
	FILE *file = fopen(path, "r");

	cr_assert(file, "%s", path);
	text[fread(text, 1, (1 << 16) - 1, file)] = '\0';
	fclose(file);
	return text;
}

Test(metrics, promtool_sees_each_alert_fire)
{
	static char rules[1 << 16], tests[1 << 16];

	expect_tested(read_text("docs/alerts.yml", rules),
		      read_text("tests/system/alerts_test.yml", tests));
	if (access(PROMTOOL, X_OK))
		cr_skip_test(ABSENT);
	cr_expect_eq(system(PROMTOOL " check rules docs/alerts.yml > /dev/null"), 0);
	cr_expect_eq(system(PROMTOOL " test rules tests/system/alerts_test.yml > /dev/null"), 0);
}
