/* SPDX-License-Identifier: Apache-2.0 */
/*
 * r3ring produce: progress and summaries.
 */
#include <errno.h>
#include <inttypes.h>

#include <jansson.h>

#include <r3ring/record.h>

#include "tools/json_values.h"
#include "tools/produce.h"

#define PROGRESS_SECONDS 0.2

static double rows_per_second(const struct run_report *report)
{
	return report->seconds > 0 ? (double)report->rows / report->seconds : 0;
}

static uint32_t never_begun(const struct run_report *report)
{
	return report->requests - report->begun;
}

static uint64_t dropped_steps(const struct run_report *report)
{
	uint64_t steps = 0;

	for (uint32_t c = 0; c < R3RING_CAUSE_COUNT; c++)
		steps += report->producer.dropped_steps[c];
	return steps;
}

void produce_show_progress(void *ctx, const struct run_report *report)
{
	struct produce_progress *progress = ctx;

	if (report->seconds - progress->shown < PROGRESS_SECONDS)
		return;
	progress->shown = report->seconds;
	progress->drawn = 1;
	fprintf(progress->terminal,
		"\r%s: step %" PRIu64 ", %" PRIu64 " rows, %u of %u requests done, %.0f rows/s, "
		"%" PRIu64 " steps dropped\033[K",
		report->model, report->steps, report->rows, report->finished, report->requests,
		rows_per_second(report), dropped_steps(report));
	fflush(progress->terminal);
}

void produce_clear_progress(struct produce_progress *progress)
{
	if (!progress->drawn)
		return;
	fputs("\r\033[K", progress->terminal);
	fflush(progress->terminal);
	progress->drawn = 0;
}

/* What no daemon took by the end is lost to the absence of one. */
static void count_undelivered(struct r3ring_producer_stats *stats)
{
	stats->dropped_steps[R3RING_CAUSE_DAEMON_RESTART] += stats->undelivered_steps;
	stats->dropped_rows[R3RING_CAUSE_DAEMON_RESTART] += stats->undelivered_rows;
}

static void print_drops(FILE *out, const struct r3ring_producer_stats *stats)
{
	const char *separator = "dropped: ";

	for (uint32_t c = 0; c < R3RING_CAUSE_COUNT; c++) {
		if (!stats->dropped_steps[c])
			continue;
		fprintf(out, "%s%s %" PRIu64 " steps (%" PRIu64 " rows)", separator,
			r3ring_cause_name(c), stats->dropped_steps[c], stats->dropped_rows[c]);
		separator = ", ";
	}
	fputs(separator[0] == ',' ? "\n" : "dropped: nothing\n", out);
	if (stats->undelivered_steps)
		fprintf(out,
			"of these, announced but not taken by any daemon: %" PRIu64
			" steps (%" PRIu64 " rows)\n",
			stats->undelivered_steps, stats->undelivered_rows);
}

void produce_print_text(FILE *out, const struct run_options *options,
			const struct run_report *report)
{
	struct r3ring_producer_stats stats = report->producer;

	fprintf(out,
		"%s/%u: %s, %" PRIu64 " steps, %" PRIu64 " rows, %u of %u requests finished "
		"in %.1f s (%.0f rows/s)%s\n",
		options->instance, options->rank, report->model, report->steps, report->rows,
		report->finished, report->requests, report->seconds, rows_per_second(report),
		report->stopped ? ", stopped early" : "");
	count_undelivered(&stats);
	print_drops(out, &stats);
}

int produce_print_json(FILE *out, const struct run_options *options,
		       const struct run_report *report)
{
	struct r3ring_producer_stats stats = report->producer;
	json_t *summary;
	int rc;

	count_undelivered(&stats);
	summary = json_pack(
		"{s:s, s:o, s:s, s:o, s:o, s:i, s:i, s:i, s:o, s:o, s:f, s:b, s:o, s:i, s:b, s:o, "
		"s:{s:o, s:o}}",
		"instance", options->instance, "rank", json_u64(options->rank), "model",
		report->model, "steps", json_u64(report->steps), "rows", json_u64(report->rows),
		"requests", (int)report->requests, "never_begun", (int)never_begun(report),
		"finished", (int)report->finished, "preempted", json_u64(report->preempted),
		"aborted", json_u64(report->aborted), "seconds", report->seconds, "stopped",
		report->stopped, "generation", json_u64(stats.generation), "bound_layers",
		(int)stats.bound_layers, "connected", (int)stats.connected, "dropped",
		json_lost(stats.dropped_steps, stats.dropped_rows, "none"), "undelivered", "steps",
		json_u64(stats.undelivered_steps), "rows", json_u64(stats.undelivered_rows));
	rc = summary ? json_dumpf(summary, out, JSON_COMPACT) : -1;
	json_decref(summary);
	if (rc)
		return -ENOMEM;
	fputc('\n', out);
	return 0;
}
