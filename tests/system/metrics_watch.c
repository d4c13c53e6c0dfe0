/* SPDX-License-Identifier: Apache-2.0 */
/* The dashboard and the alert rules against a real Prometheus. */
#include <criterion/criterion.h>

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <r3ring/reader.h>

#include "tests/system/metrics_stage.h"

#define STEPS 6u
#define FULL_STEPS 1000u /* of all rows: the ring of 1 MiB has fewer */

TestSuite(metrics_watch, .init = metrics_stage_start, .fini = metrics_stage_stop, .timeout = 300);

/* ---- the dashboard -------------------------------------------------------------------- */

/* As Grafana would fill it in. */
static void fill_in(const char *expression, char filled[1024])
{
	static const char *const with[][2] = {{"$__rate_interval", "1m"}, {"$job", ".+"}};
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
	cr_assert(!strchr(filled, '$'), "%s", filled);
}

/* Every expression of the panels whose title begins so, compared with that, has a result.
 * Returns how many there are. */
static size_t expect_panels(const char *title, const char *compared)
{
	json_t *dashboard = json_load_file("docs/grafana.json", 0, NULL), *panel, *target;
	size_t i, j, expressions = 0;
	char filled[1024], whole[1100];

	cr_assert(dashboard);
	json_array_foreach (json_object_get(dashboard, "panels"), i, panel) {
		const char *name = json_string_value(json_object_get(panel, "title"));

		if (strncmp(name, title, strlen(title)))
			continue;
		json_array_foreach (json_object_get(panel, "targets"), j, target) {
			fill_in(json_string_value(json_object_get(target, "expr")), filled);
			snprintf(whole, sizeof(whole), "(%s)%s", filled, compared);
			prometheus_expect_some(whole, name);
			expressions++;
		}
	}
	json_decref(dashboard);
	cr_expect_gt(expressions, 0, "no panel \"%s\"", title);
	return expressions;
}

Test(metrics_watch, every_expression_of_the_dashboard_has_data)
{
	metrics_serve((const char *[]){NULL});
	metrics_run(STEPS);
	prometheus_start();
	prometheus_expect("r3ring_steps_total", STEPS);
	cr_expect_geq(expect_panels("", ""), 20);
}

/* ---- the alerts -------------------------------------------------------------------------- */

static size_t rules_well(void)
{
	json_t *reply = prometheus_ask("/api/v1/rules", NULL), *rules, *rule;
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

Test(metrics_watch, a_prometheus_evaluates_every_alert_rule)
{
	size_t well = 0;

	metrics_serve((const char *[]){NULL});
	metrics_run(STEPS);
	prometheus_start();
	for (int tries = 0; !well && tries < METRICS_TRIES; tries++) {
		poll(NULL, 0, 10);
		well = rules_well();
	}
	cr_expect_geq(well, 10);
}

/* ---- each of them, when what it is for happens ----------------------------------------------- */

/*
 * The alert's expression has a result. Limits that take minutes or gigabytes to reach are
 * lowered from @limit to @lowered; that the true ones are right, promtool tests.
 */
static void expect_alert(const char *name, const char *limit, const char *lowered)
{
	json_t *reply = prometheus_ask("/api/v1/rules", NULL), *rules, *rule;
	const json_t *groups = json_object_get(json_object_get(reply, "data"), "groups");
	char expression[1024] = "";
	size_t i;

	rules = json_object_get(json_array_get(groups, 0), "rules");
	json_array_foreach (rules, i, rule) {
		const char *text = json_string_value(json_object_get(rule, "query"));
		const char *at = limit ? strstr(text, limit) : NULL;

		if (strcmp(json_string_value(json_object_get(rule, "name")), name))
			continue;
		cr_assert(!limit || at, "%s has no \"%s\": %s", name, limit, text);
		if (limit)
			snprintf(expression, sizeof(expression), "%.*s%s%s", (int)(at - text), text,
				 lowered, at + strlen(limit));
		else
			snprintf(expression, sizeof(expression), "%s", text);
	}
	json_decref(reply);
	cr_assert(expression[0], "no alert %s", name);
	prometheus_expect_some(expression, name);
}

/* A step of which one layer comes, with ids that are no expert. */
static void run_bad_step(void)
{
	int32_t ids[ENGINE_TOP_K];
	const struct r3ring_topk topk = {
		.ids = ids,
		.type = R3RING_INT32,
		.rows = 1,
		.columns = ENGINE_TOP_K,
		.row_stride = ENGINE_TOP_K,
	};

	for (uint32_t k = 0; k < ENGINE_TOP_K; k++)
		ids[k] = (int32_t)(ENGINE_EXPERTS + k);
	cr_assert_gt(engine_begin(&metrics.tool.engine, 0, 1), 0);
	r3ring_capture(metrics.tool.engine.producer, ENGINE_FIRST_LAYER, &topk, NULL);
	engine_end(&metrics.tool.engine);
}

Test(metrics_watch, alerts_and_panels_tell_of_losses_when_they_happen)
{
	metrics_serve((const char *[]){NULL});
	prometheus_start();
	prometheus_expect("r3ring_channel_layers_unbound", ENGINE_LAYERS);
	expect_alert("R3ringLayersUnbound", NULL, NULL); /* this engine binds nothing */
	metrics_run(STEPS);
	prometheus_expect("r3ring_steps_total", STEPS);
	prometheus_expect("r3ring_channel_layers_unbound", 0); /* but its layers come */
	expect_alert("R3ringStale", "> 60", "> 0.2");
	expect_alert("R3ringImbalance", "> 1.5", "> 1");
	expect_alert("R3ringHotExpert", "> 10", "> 1");
	cr_assert_lt(engine_begin(&metrics.tool.engine, 0, metrics.tool.engine.max_rows + 1), 0);
	expect_alert("R3ringLosing", NULL, NULL);
	expect_panels("Steps lost", " > 0");
	expect_panels("Lost rows a second", " > 0");
	run_bad_step();
	expect_alert("R3ringPartialSteps", NULL, NULL);
	expect_alert("R3ringBadIds", NULL, NULL);
	expect_panels("Steps with something missing", " > 0");
}

static struct r3ring_reader *read_nothing(void)
{
	const struct r3ring_reader_options options = {
		.size = sizeof(options),
		.runtime_dir = metrics.tool.daemon.dir,
		.channel = tool_stage_channel(&metrics.tool, "prod"),
		.mode = R3RING_LOSSLESS,
	};
	struct r3ring_error err = {0};
	struct r3ring_reader *reader = NULL;

	cr_assert_eq(r3ring_reader_open(&reader, &options, &err), 0, "%s", err.text);
	return reader;
}

/* Until the channel has waited for it in vain. */
static void fill_ring(void)
{
	int tries = 0;

	while (metrics_scraped(metrics_of_channel("r3ring_readers_demoted_total")) < 1) {
		cr_assert_lt(tries++, METRICS_TRIES, "no reader is demoted");
		for (int step = 0; step < 50; step++)
			engine_step(&metrics.tool.engine, 0, metrics.tool.engine.max_rows);
	}
}

Test(metrics_watch, alerts_and_panels_tell_of_readers_that_are_slow)
{
	struct r3ring_reader *reader;

	metrics_serve((const char *[]){NULL});
	metrics_run(STEPS);
	prometheus_start();
	prometheus_expect("r3ring_steps_total", STEPS);
	reader = read_nothing();
	metrics_run(STEPS);
	expect_alert("R3ringReaderLags", "> 8.388608e+06", "> 0");
	expect_panels("Slowest reader", " > 0");
	fill_ring();
	expect_alert("R3ringReaderDemoted", NULL, NULL);
	expect_alert("R3ringReadersHoldUp", "> 0.05", "> 0");
	expect_panels("Waiting for lossless", " > 0");
	r3ring_reader_close(reader);
}

/* A counter that is not 0 when it is first scraped has no increase(). */
Test(metrics_watch, alerts_tell_of_losses_from_before_the_first_scrape)
{
	struct r3ring_reader *reader;

	metrics_serve((const char *[]){NULL});
	cr_assert_lt(engine_begin(&metrics.tool.engine, 0, metrics.tool.engine.max_rows + 1), 0);
	run_bad_step();
	reader = read_nothing();
	fill_ring();
	prometheus_start();
	prometheus_expect("r3ring_lost_steps_total{cause=\"too_big\"}", 1);
	prometheus_expect("increase(r3ring_lost_steps_total{cause=\"too_big\"}[5m])", 0);
	expect_alert("R3ringLosing", NULL, NULL);
	expect_alert("R3ringPartialSteps", NULL, NULL);
	expect_alert("R3ringBadIds", NULL, NULL);
	expect_alert("R3ringReaderDemoted", NULL, NULL);
	expect_panels("Steps lost, last 5 min", " > 0");
	r3ring_reader_close(reader);
}

/* ---- a server that gets no processor ------------------------------------------------------------ */

/* The signal comes to one thread, which stops the others: only the parent is told when none of
 * them runs on. */
static void stop_server(void)
{
	int status = 0;

	kill(metrics.server.pid, SIGSTOP);
	cr_assert_eq(waitpid(metrics.server.pid, &status, WUNTRACED), metrics.server.pid);
	cr_assert(WIFSTOPPED(status));
}

/* Steps that are published when this returns, one after the other. */
static void run_through(unsigned int steps, uint32_t rows)
{
	struct listener listener;

	listener_open(&listener, metrics.tool.daemon.dir,
		      tool_stage_channel(&metrics.tool, "prod"));
	for (unsigned int i = 0; i < steps; i++) {
		int64_t step = engine_step(&metrics.tool.engine, 0, rows);

		cr_assert_gt(step, 0);
		cr_assert(listener_read_until(&listener, listener_has_step, (uint64_t)step));
	}
	listener_close(&listener);
}

Test(metrics_watch, an_alert_and_a_panel_tell_of_load_that_is_late)
{
	metrics_serve((const char *[]){NULL});
	metrics_run(1);
	prometheus_start();
	prometheus_expect("r3ring_load_latency_seconds_count", 1);
	stop_server();
	run_through(STEPS, METRICS_ROWS);
	poll(NULL, 0, 300); /* so late at least */
	kill(metrics.server.pid, SIGCONT);
	expect_alert("R3ringLoadLate", NULL, NULL);
	expect_panels("Ring to load", " > 0.25");
}

Test(metrics_watch, an_alert_tells_of_load_that_lacks_what_was_overwritten)
{
	metrics_serve((const char *[]){NULL});
	metrics_run(1);
	prometheus_start();
	prometheus_expect("r3ring_load_latency_seconds_count", 1);
	prometheus_expect("r3ring_engine_gaps_total", 0);
	stop_server();
	run_through(FULL_STEPS, metrics.tool.engine.max_rows);
	kill(metrics.server.pid, SIGCONT);
	expect_alert("R3ringLoadGaps", NULL, NULL);
}

Test(metrics_watch, alerts_tell_of_whoever_is_gone)
{
	metrics_serve((const char *[]){NULL});
	metrics_run(1);
	prometheus_start();
	prometheus_expect("r3ring_channel_live", 1);
	engine_close(&metrics.tool.engine);
	expect_alert("R3ringProducerGone", NULL, NULL);
	test_daemon_kill(&metrics.tool.daemon);
	expect_alert("R3ringDaemonDown", NULL, NULL);
	kill(metrics.server.pid, SIGKILL);
	expect_alert("R3ringDown", NULL, NULL);
	test_daemon_restart(&metrics.tool.daemon, NULL);
	tool_stage_open(&metrics.tool, "prod");
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

Test(metrics_watch, promtool_sees_each_alert_fire)
{
	static char rules[1 << 16], tests[1 << 16];

	expect_tested(read_text("docs/alerts.yml", rules),
		      read_text("tests/system/alerts_test.yml", tests));
	if (access(PROMTOOL, X_OK))
		cr_skip_test(PROMETHEUS_ABSENT);
	cr_expect_eq(system(PROMTOOL " check rules docs/alerts.yml > /dev/null"), 0);
	cr_expect_eq(system(PROMTOOL " test rules tests/system/alerts_test.yml > /dev/null"), 0);
}
