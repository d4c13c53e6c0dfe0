/* SPDX-License-Identifier: Apache-2.0 */
/* What was measured, as text and as JSON. */
#include <errno.h>
#include <jansson.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "tests/bench/bench.h"
#include "tests/bench/peers/report.h"

/* Medians of the repeats that were kept. */
struct figures {
	double p50, p99, p999, rate, line;
	size_t samples;
};

/* The median of what lies @offset bytes into each kept sample. */
static double median(const struct peer_row *row, size_t offset)
{
	double values[BENCH_REPEATS_MAX];

	for (unsigned int i = 0; i < row->kept; i++)
		memcpy(&values[i], (const char *)&row->samples[i] + offset, sizeof(values[i]));
	return row->kept ? bench_percentile(values, row->kept, 50) : 0;
}

static struct figures figures_of(const struct peer_row *row)
{
	struct figures figures = {
		.p50 = median(row, offsetof(struct peer_sample, result.p50)),
		.p99 = median(row, offsetof(struct peer_sample, result.p99)),
		.p999 = median(row, offsetof(struct peer_sample, result.p999)),
		.rate = median(row, offsetof(struct peer_sample, result.rate)),
		.line = median(row, offsetof(struct peer_sample, before)),
	};

	for (unsigned int i = 0; i < row->kept; i++)
		figures.samples += row->samples[i].result.samples;
	return figures;
}

static const char *state_of(const struct peer_row *row)
{
	if (row->code == -ENOTSUP)
		return "cannot run here";
	if (row->code)
		return "failed";
	if (row->counts.wrong)
		return "wrong";
	if (row->counts.lost)
		return "lost";
	return row->kept ? "ok" : "thrown away";
}

bool report_failed(const struct peer_table *table)
{
	for (size_t i = 0; i < table->count; i++) {
		const struct peer_row *row = &table->rows[i];

		if ((row->code && row->code != -ENOTSUP) || row->counts.wrong || row->counts.lost)
			return true;
	}
	return false;
}

/* ---- text ----------------------------------------------------------------------- */

static void print_row(const struct peer_row *row)
{
	struct figures figures = figures_of(row);

	printf("%-44s ", row->name);
	if (row->code) {
		printf("%s: %s\n", state_of(row), strerror(-row->code));
		return;
	}
	printf("%9.0f %9.0f %10.0f %11.4g %9.4g %8.1f  %u/%u  %s\n", figures.p50, figures.p99,
	       figures.p999, figures.rate / 1e6, figures.rate * (double)row->size / 1e9,
	       figures.line, row->kept, row->kept + row->thrown, state_of(row));
}

void report_print(const struct peer_table *table)
{
	const struct peer_floors *floors = &table->floors;

	printf("floors: a cache line's way %.4g ns, futex wake %.0f ns", table->line_ns,
	       floors->futex_ns);
	for (size_t i = 0; i < floors->size_count; i++)
		printf(", memcpy of %zu B %.4g ns", floors->sizes[i], floors->memcpy_ns[i]);
	printf("; clocks %.1f ns apart\n\n", floors->clock_distance_ns);
	printf("%-44s %9s %9s %10s %11s %9s %8s  kept\n", "row", "p50 ns", "p99 ns", "p99.9 ns",
	       "messages/us", "GB/s", "line ns");
	for (size_t i = 0; i < table->count; i++)
		print_row(&table->rows[i]);
}

/* ---- JSON ------------------------------------------------------------------------ */

static void cpu_model(char *model, size_t size)
{
	FILE *file = fopen("/proc/cpuinfo", "re");
	char line[256];

	snprintf(model, size, "unknown");
	while (file && fgets(line, sizeof(line), file)) {
		char *value = strncmp(line, "model name", 10) ? NULL : strchr(line, ':');

		if (value) {
			snprintf(model, size, "%.*s", (int)strcspn(value + 2, "\n"), value + 2);
			break;
		}
	}
	if (file)
		fclose(file);
}

static json_t *machine_json(void)
{
	struct utsname system = {.release = "unknown", .machine = "unknown"};
	char model[256];

	cpu_model(model, sizeof(model));
	uname(&system);
	return json_pack("{s:s s:i s:s s:s s:s}", "cpu", model, "cores", (int)bench_cpus(),
			 "kernel", system.release, "architecture", system.machine, "compiler",
			 __VERSION__);
}

static json_t *floors_json(const struct peer_table *table)
{
	const struct peer_floors *floors = &table->floors;
	json_t *copies = json_object();

	for (size_t i = 0; i < floors->size_count; i++) {
		char size[32];

		snprintf(size, sizeof(size), "%zu", floors->sizes[i]);
		json_object_set_new(copies, size, json_real(floors->memcpy_ns[i]));
	}
	return json_pack("{s:f s:f s:f s:o}", "line_ns", table->line_ns, "clock_distance_ns",
			 floors->clock_distance_ns, "futex_wake_ns", floors->futex_ns, "memcpy_ns",
			 copies);
}

/* What lies @offset bytes into each kept sample. */
static json_t *repeats_json(const struct peer_row *row, size_t offset)
{
	json_t *values = json_array();

	for (unsigned int i = 0; i < row->kept; i++) {
		double value;

		memcpy(&value, (const char *)&row->samples[i] + offset, sizeof(value));
		json_array_append_new(values, json_real(value));
	}
	return values;
}

static void add_figures(json_t *object, const struct peer_row *row)
{
	struct figures figures = figures_of(row);
	json_t *json = json_pack("{s:f s:f s:f s:f s:f s:I}", "p50_ns", figures.p50, "p99_ns",
				 figures.p99, "p999_ns", figures.p999, "messages_per_s",
				 figures.rate, "line_ns", figures.line, "samples",
				 (json_int_t)figures.samples);

	json_object_update(object, json);
	json_object_set_new(object, "each_p50_ns",
			    repeats_json(row, offsetof(struct peer_sample, result.p50)));
	json_object_set_new(object, "each_messages_per_s",
			    repeats_json(row, offsetof(struct peer_sample, result.rate)));
	json_decref(json);
}

static json_t *row_json(const struct peer_row *row)
{
	const struct peer *peer = row->peer;
	json_t *object = json_pack(
		"{s:s s:s s:s s:s s:I s:i s:s s:i s:i s:I s:I s:I s:I}", "peer", peer->name,
		"version", peer->version(), "how", peer->how, "packages", peer->sources, "size",
		(json_int_t)row->size, "readers", (int)row->readers, "state", state_of(row), "kept",
		(int)row->kept, "thrown_away", (int)row->thrown, "sent",
		(json_int_t)row->counts.sent, "received", (json_int_t)row->counts.received, "lost",
		(json_int_t)row->counts.lost, "wrong", (json_int_t)row->counts.wrong);

	if (object && row->code)
		json_object_set_new(object, "reason", json_string(strerror(-row->code)));
	if (object && row->kept)
		add_figures(object, row);
	return object;
}

int report_write(const struct peer_table *table, const char *path)
{
	json_t *rows = json_array(), *all;
	int rc;

	for (size_t i = 0; i < table->count; i++)
		json_array_append_new(rows, row_json(&table->rows[i]));
	all = json_pack("{s:o s:o s:o}", "machine", machine_json(), "floors", floors_json(table),
			"rows", rows);
	rc = all && !json_dump_file(all, path, JSON_INDENT(1)) ? 0 : -EIO;
	json_decref(all);
	return rc;
}
