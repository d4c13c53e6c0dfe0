/* SPDX-License-Identifier: Apache-2.0 */
/* The benchmark: whatever it measures on this machine, each of its rows is to be measured at all. */
#include <criterion/criterion.h>
#include <criterion/parameterized.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "tests/support/command.h"

#define LOWEST 19

struct group {
	char filter[16];
	unsigned int rows;
};

/* Beside other tests, whose time it is not to take. */
static bool give_way(void *ctx)
{
	(void)ctx;
	return nice(LOWEST) != -1;
}

/* One line of it, an object of a row. */
static void check_row(const char *line)
{
	json_t *row = json_loads(line, 0, NULL);
	const char *name = json_string_value(json_object_get(row, "row"));
	const char *verdict = json_string_value(json_object_get(row, "verdict"));

	cr_assert(name && verdict, "no row: %s", line);
	cr_expect_str_neq(verdict, "failed", "%s", line);
	cr_expect(!strcmp(verdict, "skipped") ||
			  json_number_value(json_object_get(row, "measured")) > 0,
		  "nothing was measured: %s", line);
	json_decref(row);
}

ParameterizedTestParameters(bench_runs, every_row_of_the_benchmark_can_be_measured)
{
	static struct group groups[] = {
		{"ring/", 3},     {"copy/", 2},    {"step/", 3},   {"capture/", 2},  {"drain/", 2},
		{"assemble/", 5}, {"load/", 11},   {"export/", 7}, {"daemon/", 3},   {"wake/", 1},
		{"unbound/", 1},  {"reserve/", 2}, {"record/", 3}, {"monitors/", 2},
	};

	return cr_make_param_array(struct group, groups, sizeof(groups) / sizeof(*groups));
}

ParameterizedTest(struct group *group, bench_runs, every_row_of_the_benchmark_can_be_measured)
{
	struct command bench;
	unsigned int rows = 0;
	char *rest;

	command_start_prepared(
		&bench, give_way, NULL, "tests/run-bench", "/nonexistent",
		(const char *const[]){"--json", "--repeats", "1", "--filter", group->filter, NULL});
	cr_expect_eq(command_wait(&bench), 0, "%s: %d: %s", group->filter, bench.code, bench.err);
	for (char *line = strtok_r(bench.out, "\n", &rest); line;
	     line = strtok_r(NULL, "\n", &rest)) {
		check_row(line);
		rows++;
	}
	cr_expect_eq(rows, group->rows, "%s: %u rows", group->filter, rows);
	command_free(&bench);
}
