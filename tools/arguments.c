/* SPDX-License-Identifier: Apache-2.0 */
/* Command lines. */
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "tools/arguments.h"
#include "tools/commands.h"

#define SECONDS_MAX 1e9

int arguments_refuse(const char *command, const char *surplus)
{
	if (surplus)
		fprintf(stderr, "%s: '%s' is too much\n", command, surplus);
	fprintf(stderr, "'%s --help' shows the options.\n", command);
	return TOOL_USAGE;
}

bool arguments_seconds(const char *text, uint64_t *ns)
{
	char *end;
	double seconds = strtod(text, &end);

	if (end == text || *end || !isfinite(seconds) || seconds <= 0 || seconds > SECONDS_MAX)
		return false;
	*ns = (uint64_t)(seconds * 1e9);
	return true;
}

int arguments_json_only(int argc, char **argv, const char *usage, int (*run)(bool json))
{
	static const struct option options[] = {
		{"json", no_argument, NULL, 'j'},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	bool json = false;
	int option;

	while ((option = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		if (option == 'h') {
			fputs(usage, stdout);
			return TOOL_DONE;
		}
		if (option != 'j')
			return arguments_refuse(argv[0], NULL);
		json = true;
	}
	return optind == argc ? run(json) : arguments_refuse(argv[0], argv[optind]);
}
