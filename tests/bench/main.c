/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The benchmark program: rows of measurements beside their floors, with the
 * target each has to reach.
 */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "tests/bench/bench.h"
#include "tests/bench/options.h"

static const struct bench_group *const groups[] = {
	&bench_ring,        &bench_copy,     &bench_step,   &bench_capture,
	&bench_drain,       &bench_assemble, &bench_load,   &bench_load_served,
	&bench_load_memory, &bench_export,   &bench_daemon, &bench_wake,
	&bench_unbound,     &bench_reserve,  &bench_record, &bench_monitors,
};

#define GROUP_COUNT (sizeof(groups) / sizeof(groups[0]))

static const char usage[] =
	"usage: run-bench [--json] [--filter TEXT] [--repeats N]\n"
	"\n"
	"Measures each row between two measurements of its floor, N times (default 5),\n"
	"and prints the medians. A row whose floors disagree by more than 25 % is marked\n"
	"unreliable: measure it again on a quieter machine.\n"
	"\n"
	"  --json         one JSON object for each row\n"
	"  --filter TEXT  only rows whose GROUP/NAME holds TEXT; all of a group: ring/\n"
	"  --repeats N    1 to 99\n";

static const char *verdict(const struct bench_result *result)
{
	if (result->code == -ENOTSUP)
		return "skipped";
	if (result->code)
		return "failed";
	return result->met ? "met" : "missed";
}

static const char *target_sign(const struct bench_row *row)
{
	return row->kind == BENCH_RATIO_AT_LEAST ? ">=" : "<=";
}

static void print_text(const struct bench_group *group, const struct bench_row *row,
		       const struct bench_result *result)
{
	const char *times = row->kind <= BENCH_RATIO_AT_LEAST ? "x" : "";

	printf("%-8s %-52s ", group->name, row->name);
	if (result->code)
		printf("%s: %s\n", verdict(result), strerror(-result->code));
	else
		printf("%10.4g %10.4g %-7s %7.3g%s  %s %.3g%s  %s%s\n", result->floor,
		       result->measured, row->unit, result->figure, times, target_sign(row),
		       row->target, times, verdict(result),
		       result->reliable ? "" : " (unreliable: the floors disagree)");
	fflush(stdout);
}

static int print_json(const struct bench_group *group, const struct bench_row *row,
		      const struct bench_result *result)
{
	const char *error = result->code ? strerror(-result->code) : NULL;
	json_t *object = json_pack("{s:s s:s s:s s:f s:f s:f s:s s:f s:f s:s s:b s:s*}", "group",
				   group->name, "row", row->name, "unit", row->unit, "floor",
				   result->floor, "measured", result->measured, "figure",
				   result->figure, "target_sign", target_sign(row), "target",
				   row->target, "floors_disagree", result->disagreement, "verdict",
				   verdict(result), "reliable", result->reliable, "error", error);
	int rc = object ? json_dumpf(object, stdout, JSON_COMPACT) : -1;

	json_decref(object);
	putchar('\n');
	fflush(stdout);
	return rc;
}

static int selected(const struct bench_options *options, const struct bench_group *group,
		    const struct bench_row *row)
{
	char name[128];

	snprintf(name, sizeof(name), "%s/%s", group->name, row->name);
	return !options->filter || strstr(name, options->filter);
}

/* Returns 1 when a row failed, else 0; a missed target is a result. */
static int run_group(const struct bench_group *group, const struct bench_options *options)
{
	int failed = 0;

	for (size_t i = 0; i < group->count; i++) {
		const struct bench_row *row = &group->rows[i];
		struct bench_result result;

		if (!selected(options, group, row))
			continue;
		result = bench_run(row, options->repeats);
		failed |= result.code && result.code != -ENOTSUP;
		if (!options->json)
			print_text(group, row, &result);
		else if (print_json(group, row, &result))
			failed = 1;
	}
	return failed;
}

int main(int argc, char **argv)
{
	struct bench_options options = {0};
	int failed = 0;

	bench_options_parse(&options, argc, argv, usage);
	if (!options.json)
		printf("%-8s %-52s %10s %10s %-7s %8s  %s\n", "group", "row", "floor", "measured",
		       "unit", "ratio", "target");
	for (size_t i = 0; i < GROUP_COUNT; i++)
		failed |= run_group(groups[i], &options);
	return failed;
}
