/* SPDX-License-Identifier: Apache-2.0 */
/* What Prometheus is told, as text: names, labels, numbers worked out by hand. */
#include <criterion/criterion.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "monitor/daemon_totals.h"
#include "serve/exposition.h"
#include "serve/latency.h"
#include "serve/metrics.h"

static char *text;
static size_t bytes;

static FILE *begin(void)
{
	return open_memstream(&text, &bytes);
}

static void expect_line(const char *line)
{
	char whole[512];
	const char *found;

	snprintf(whole, sizeof(whole), "%s\n", line);
	found = strstr(text, whole);
	cr_expect(found && (found == text || found[-1] == '\n'), "\"%s\" is not in:\n%s", line,
		  text);
}

/* ---- the format ------------------------------------------------------------------- */

Test(serve_metrics, a_metric_is_written_as_the_format_has_it)
{
	FILE *out = begin();

	metric_begin(out, "r3ring_x_total", METRIC_COUNTER, "What it is.");
	metric_count(out, "r3ring_x_total", NULL, UINT64_MAX);
	metric_count(out, "r3ring_x_total", METRIC_LABELS({"a", "b"}, {"c", "d"}), 0);
	metric_value(out, "r3ring_y", METRIC_LABELS({"a", ""}), 0.001);
	metric_value(out, "r3ring_y", NULL, (double)NAN);
	metric_value(out, "r3ring_y", NULL, (double)INFINITY);
	metric_value(out, "r3ring_y", NULL, -(double)INFINITY);
	fclose(out);
	cr_expect_str_eq(text, "# HELP r3ring_x_total What it is.\n"
			       "# TYPE r3ring_x_total counter\n"
			       "r3ring_x_total 18446744073709551615\n"
			       "r3ring_x_total{a=\"b\",c=\"d\"} 0\n"
			       "r3ring_y{a=\"\"} 0.001\n"
			       "r3ring_y NaN\n"
			       "r3ring_y +Inf\n"
			       "r3ring_y -Inf\n");
	free(text);
}

Test(serve_metrics, values_of_labels_are_escaped_and_what_is_not_utf8_is_replaced)
{
	FILE *out = begin();

	metric_count(out, "x", METRIC_LABELS({"model", "a\"b\\c\nd} 1\xff \xc3\xa9"}), 1);
	fclose(out);
	cr_expect_str_eq(text, "x{model=\"a\\\"b\\\\c\\nd} 1\xef\xbf\xbd \xc3\xa9\"} 1\n");
	free(text);
}

/* ---- figures ------------------------------------------------------------------------ */

Test(serve_metrics, a_quantile_is_the_smallest_value_that_enough_are_not_above)
{
	static const double ten[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
	static const double one[] = {7};

	cr_expect_float_eq(metrics_quantile(ten, 10, 0.5), 5, 1e-12);
	cr_expect_float_eq(metrics_quantile(ten, 10, 0.9), 9, 1e-12);
	cr_expect_float_eq(metrics_quantile(ten, 10, 0.99), 10, 1e-12);
	cr_expect_float_eq(metrics_quantile(ten, 10, 1), 10, 1e-12);
	cr_expect_float_eq(metrics_quantile(one, 1, 0.5), 7, 1e-12);
}

Test(serve_metrics, a_latency_is_in_the_bucket_whose_bound_it_does_not_exceed)
{
	struct latency latency = {0}, copy;

	latency_note(&latency, 0);
	latency_note(&latency, 50000);
	latency_note(&latency, 50001);
	latency_note(&latency, UINT64_C(10000000000));
	latency_note(&latency, UINT64_C(10000000001));
	latency_read(&latency, &copy);
	cr_expect_eq(copy.bucket[0], 2);
	cr_expect_eq(copy.bucket[1], 1);
	cr_expect_eq(copy.bucket[LATENCY_BOUNDS - 1], 1);
	cr_expect_eq(copy.bucket[LATENCY_BOUNDS], 1);
	cr_expect_eq(copy.sum_ns, UINT64_C(20000100002));
}

/* ---- the daemon ---------------------------------------------------------------------- */

static struct daemon_totals totals;
static struct picture_reader readers[] = {{.lag_records = 3, .lag_bytes = 700},
					  {.lag_records = 9, .lag_bytes = 500}};
static struct picture_channel channel = {
	.name = "prod/0",
	.model = "a \"model\"",
	.uuid = "u",
	.state = "live",
	.generation = 4,
	.steps = 12,
	.waited_for_readers_ms = 1500,
	.last_step_age_ms = -1,
	.producer_died = true,
	.unbound_count = 2,
	.readers = readers,
	.reader_count = 2,
	.attached_readers = 5,
};

Test(serve_metrics, a_channel_is_told_with_its_sums_losses_and_lag)
{
	struct daemon_picture picture = {.channels = &channel, .channel_count = 1};
	FILE *out = begin();

	channel.lost.rows[R3RING_CAUSE_BUFFER_FULL] = 8;
	channel.lost.rows[R3RING_CAUSE_NONE] = 1;
	daemon_totals_take(&totals, &picture);
	metrics_of_daemon(out, &picture, &totals);
	fclose(out);
	expect_line("r3ring_daemon_up 1");
	expect_line("r3ring_steps_total{channel=\"prod/0\"} 12");
	expect_line("r3ring_reader_wait_seconds_total{channel=\"prod/0\"} 1.5");
	expect_line("r3ring_lost_rows_total{channel=\"prod/0\",cause=\"buffer_full\"} 8");
	expect_line("r3ring_lost_rows_total{channel=\"prod/0\",cause=\"ring_full\"} 0");
	expect_line("r3ring_lost_rows_total{channel=\"prod/0\",cause=\"other\"} 1");
	expect_line("r3ring_channel_live{channel=\"prod/0\"} 1");
	expect_line("r3ring_channel_producer_died{channel=\"prod/0\"} 1");
	expect_line("r3ring_channel_crashed{channel=\"prod/0\"} 0");
	expect_line("r3ring_channel_layers_unbound{channel=\"prod/0\"} 2");
	expect_line("r3ring_channel_readers{channel=\"prod/0\"} 5");
	expect_line("r3ring_reader_lag_records{channel=\"prod/0\"} 9");
	expect_line("r3ring_reader_lag_bytes{channel=\"prod/0\"} 700");
	expect_line("r3ring_channel_info{channel=\"prod/0\",model=\"a \\\"model\\\"\"} 1");
	cr_expect(!strstr(text, "r3ring_step_age_seconds{"), "there was no step yet");
	free(text);
}

Test(serve_metrics, without_a_daemon_sums_stay_and_what_is_now_is_not_told)
{
	struct daemon_picture live = {.channels = &channel, .channel_count = 1};
	struct daemon_picture gone = {.state = PICTURE_NO_DAEMON};
	FILE *out = begin();

	daemon_totals_take(&totals, &live);
	daemon_totals_take(&totals, &gone);
	metrics_of_daemon(out, &gone, &totals);
	fclose(out);
	expect_line("r3ring_daemon_up 0");
	expect_line("r3ring_steps_total{channel=\"prod/0\"} 12");
	cr_expect(!strstr(text, "r3ring_channel_live{"), "%s", text);
	free(text);
}

Test(serve_metrics, before_the_first_picture_there_is_an_answer_too)
{
	FILE *out = begin();

	metrics_of_daemon(out, NULL, &totals);
	cr_expect_eq(metrics_of_engines(out, NULL, 0), 0);
	fclose(out);
	expect_line("r3ring_daemon_up 0");
	free(text);
}
