/* SPDX-License-Identifier: Apache-2.0 */
/* The program that measures this project's ring beside its peers. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/bench/options.h"
#include "tests/bench/peers/report.h"
#include "tests/bench/peers/rows.h"

static const char usage[] =
	"usage: run-peers [--filter TEXT] [--repeats N] [--json FILE]\n"
	"\n"
	"Sends messages from one process to one or eight others, through this project's\n"
	"ring and through others, all in turn, N times (default 5). Prints the medians.\n"
	"Before and after each the way of a cache line is measured; where these disagree by\n"
	"more than 25 % with each other, or with most of the run, what was measured in\n"
	"between is thrown away.\n"
	"\n"
	"  --filter TEXT  only rows whose name holds TEXT, e.g. '64 B', 'r3ring', '1 reader'\n"
	"  --repeats N    1 to 99\n"
	"  --json FILE    writes everything there too\n";

static int run(const struct bench_options *options, struct peer_table *table)
{
	int rc;

	rows_list(table, options->filter);
	if (!table->count) {
		fputs("run-peers: no row's name holds that\n", stderr);
		return 2;
	}
	rc = rows_floors(table);
	if (rc) {
		fprintf(stderr, "run-peers: floors: %s\n", strerror(-rc));
		return 1;
	}
	for (unsigned int i = 0; i < options->repeats; i++)
		rows_run(table);
	rows_sift(table);
	report_print(table);
	rc = options->json ? report_write(table, options->json) : 0;
	if (rc)
		fprintf(stderr, "run-peers: %s: %s\n", options->json, strerror(-rc));
	return rc || report_failed(table);
}

int main(int argc, char **argv)
{
	struct bench_options options = {.names_json = true};
	struct peer_table *table;
	int rc;

	bench_options_parse(&options, argc, argv, usage);
	table = calloc(1, sizeof(*table));
	if (!table)
		return 1;
	rc = run(&options, table);
	free(table);
	return rc;
}
