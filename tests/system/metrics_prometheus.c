/* SPDX-License-Identifier: Apache-2.0 */
/* A real Prometheus, and its query language. */
#include <criterion/criterion.h>

#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/system/metrics_stage.h"

static void write_config(void)
{
	char path[128], here[512];
	FILE *file;

	cr_assert(getcwd(here, sizeof(here)));
	snprintf(path, sizeof(path), "%s/prometheus.yml", metrics.dir);
	file = fopen(path, "w");
	cr_assert(file);
	fprintf(file,
		"global: {scrape_interval: 200ms, evaluation_interval: 500ms}\n"
		"rule_files: [%s/docs/alerts.yml]\n"
		"scrape_configs:\n"
		"  - job_name: r3ring\n"
		"    static_configs: [{targets: ['127.0.0.1:%d']}]\n",
		here, metrics.server_port);
	fclose(file);
}

/* By HTTP 1.0, which has no chunks; *@status may be NULL. A new reference. */
json_t *prometheus_ask(const char *path, int *status)
{
	char request[5000];
	const char *answer, *body;
	int code = 0;

	snprintf(request, sizeof(request), "GET %s HTTP/1.0\r\nHost: localhost\r\n\r\n", path);
	answer = http_exchange(http_dial_port(metrics.prometheus_port), request);
	body = strstr(answer, "\r\n\r\n");
	if (sscanf(answer, "HTTP/1.%*d %d", &code) != 1)
		code = 0;
	if (status)
		*status = code;
	return body ? json_loads(body + 4, 0, NULL) : NULL;
}

void prometheus_start(void)
{
	char config[128], data[128];
	int status = 0;

	if (access(PROMETHEUS, X_OK))
		cr_skip_test(PROMETHEUS_ABSENT);
	write_config();
	snprintf(config, sizeof(config), "--config.file=%s/prometheus.yml", metrics.dir);
	snprintf(data, sizeof(data), "--storage.tsdb.path=%s/data", metrics.dir);
	command_start_in(&metrics.prometheus, NULL, PROMETHEUS, metrics.tool.daemon.dir,
			 (const char *[]){config, data, "--web.listen-address=127.0.0.1:0", NULL});
	metrics.prometheus_port =
		metrics_port_of(&metrics.prometheus, "msg=\"Listening on\" address=127.0.0.1:");
	for (int tries = 0; status != 200 && tries < METRICS_TRIES; tries++) {
		poll(NULL, 0, tries ? 10 : 0);
		json_decref(prometheus_ask("/-/ready", &status));
	}
	cr_assert_eq(status, 200, "it does not get ready");
}

/* The answer to an expression; its errors fail the test. A new reference. */
json_t *prometheus_query(const char *expression)
{
	char path[4096] = "/api/v1/query?query=";
	size_t used = strlen(path);
	json_t *reply, *result;
	int status;

	for (; *expression && used < sizeof(path) - 4; expression++)
		used += (size_t)snprintf(path + used, 4, "%%%02X", (unsigned char)*expression);
	reply = prometheus_ask(path, &status);
	cr_assert_eq(status, 200, "%s: %s", path,
		     json_string_value(json_object_get(reply, "error")));
	result = json_object_get(json_object_get(reply, "data"), "result");
	json_incref(result);
	json_decref(reply);
	return result;
}

/* The one value that an expression has; NAN: none, or several. */
static double prometheus_value(const char *expression)
{
	json_t *result = prometheus_query(expression);
	const json_t *value = json_object_get(json_array_get(result, 0), "value");
	double number = (double)NAN;

	if (json_array_size(result) == 1)
		number = strtod(json_string_value(json_array_get(value, 1)), NULL);
	json_decref(result);
	return number;
}

void prometheus_expect(const char *expression, double expected)
{
	double value = prometheus_value(expression);

	for (int tries = 0; !(fabs(value - expected) < 1e-6) && tries < METRICS_TRIES; tries++) {
		poll(NULL, 0, 10);
		value = prometheus_value(expression);
	}
	cr_expect_float_eq(value, expected, 1e-6, "%s is %g, not %g", expression, value, expected);
}

void prometheus_expect_some(const char *expression, const char *why)
{
	size_t series = 0;

	for (int tries = 0; !series && tries < METRICS_TRIES; tries++) {
		json_t *result = prometheus_query(expression);

		series = json_array_size(result);
		json_decref(result);
		poll(NULL, 0, series ? 0 : 10);
	}
	cr_expect_gt(series, 0, "%s: nothing for %s", why, expression);
}
