/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of benchmark programs. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/bench/options.h"

#define REPEATS_DEFAULT 5

static bool parse_repeats(const char *text, unsigned int *repeats)
{
	char *end;
	unsigned long value = strtoul(text, &end, 10);

	*repeats = (unsigned int)value;
	return *text && !*end && value >= 1 && value <= BENCH_REPEATS_MAX;
}

static _Noreturn void explain(const char *usage, bool asked_for)
{
	fputs(usage, asked_for ? stdout : stderr);
	exit(asked_for ? 0 : 2);
}

void bench_options_parse(struct bench_options *options, int argc, char **argv, const char *usage)
{
	const struct option known[] = {
		{"json", options->names_json ? required_argument : no_argument, NULL, 'j'},
		{"filter", required_argument, NULL, 'f'},
		{"repeats", required_argument, NULL, 'r'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0}};
	int option;

	options->repeats = REPEATS_DEFAULT;
	while ((option = getopt_long(argc, argv, "", known, NULL)) != -1) {
		if (option == 'j')
			options->json = optarg ? optarg : "";
		else if (option == 'f')
			options->filter = optarg;
		else if (option != 'r' || !parse_repeats(optarg, &options->repeats))
			explain(usage, option == 'h');
	}
	if (optind != argc)
		explain(usage, false);
}
