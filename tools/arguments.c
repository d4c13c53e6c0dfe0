/* SPDX-License-Identifier: Apache-2.0 */
/* Command lines. */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
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

int arguments_refuse_value(const char *command, const char *option, const char *value,
			   const char *wanted)
{
	fprintf(stderr, "%s: %s: '%s' is not %s\n", command, option, value, wanted);
	return -EINVAL;
}

int arguments_number(const char *command, const char *option, const char *value, uint64_t least,
		     uint64_t most, uint64_t *number)
{
	char wanted[80], *end;
	uint64_t parsed;

	errno = 0;
	parsed = strtoull(value, &end, 10);
	if (value[0] >= '0' && value[0] <= '9' && !*end && !errno && parsed >= least &&
	    parsed <= most) {
		*number = parsed;
		return 0;
	}
	snprintf(wanted, sizeof(wanted), "a number from %" PRIu64 " to %" PRIu64, least, most);
	return arguments_refuse_value(command, option, value, wanted);
}

int arguments_append(const char *command, const char *const **list, uint32_t *count,
		     const char *value)
{
	const char **grown =
		reallocarray((void *)(uintptr_t)*list, *count + 1u, sizeof(const char *));

	if (!grown) {
		fprintf(stderr, "%s: no memory\n", command);
		return -ENOMEM;
	}
	grown[(*count)++] = value;
	*list = grown;
	return 0;
}

void arguments_free(const char *const *list)
{
	free((void *)(uintptr_t)list);
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
