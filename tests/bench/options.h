/* SPDX-License-Identifier: Apache-2.0 */
/* The command line that both benchmark programs have. */
#ifndef TESTS_BENCH_OPTIONS_H
#define TESTS_BENCH_OPTIONS_H

#include <stdbool.h>

#define BENCH_REPEATS_MAX 99u

struct bench_options {
	bool names_json;    /* before: whether --json takes a file's name */
	const char *json;   /* that, or ""; NULL: not asked for */
	const char *filter; /* NULL: all rows */
	unsigned int repeats;
};

/*
 * Reads the arguments, or prints @usage and ends the program: with 0 where --help asked for
 * it, else with 2.
 */
void bench_options_parse(struct bench_options *options, int argc, char **argv, const char *usage);

#endif
