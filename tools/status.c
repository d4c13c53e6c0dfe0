/* SPDX-License-Identifier: Apache-2.0 */
/*
 * r3ring status: what the daemon serves.
 */
#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "tools/commands.h"
#include "tools/daemon_status.h"
#include "tools/status_table.h"

static const char usage[] =
	"usage: r3ring status [--json]\n"
	"\n"
	"Shows the daemon's channels: model, generation, rate, rows, which layers capture is "
	"bound\n"
	"to and since when, and what was lost, by cause.\n"
	"\n"
	"  --json  all that the daemon tells: one object with \"daemon\" and \"channels\"\n"
	"  --help  this text\n"
	"\n"
	"exit codes: 0 done, 1 failed, 2 usage, 3 no daemon\n";

static int print_json(json_t *status)
{
	if (json_dumpf(status, stdout, JSON_INDENT(2)))
		return TOOL_FAILED; /* the stream's error is told at the end */
	putchar('\n');
	return TOOL_DONE;
}

static int show(bool json)
{
	struct r3ring_error err = {0};
	json_t *status;
	int code = daemon_status_get(&status, &err);

	if (code) {
		fprintf(stderr, "r3ring status: %s\n", err.text[0] ? err.text : strerror(-code));
		return daemon_is_missing(code) ? TOOL_NO_DAEMON : TOOL_FAILED;
	}
	if (json) {
		code = print_json(status);
	} else {
		status_table_print(stdout, status);
		code = TOOL_DONE;
	}
	json_decref(status);
	return code;
}

int cmd_status(int argc, char **argv)
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
			goto refused;
		json = true;
	}
	if (optind == argc)
		return show(json);
	fprintf(stderr, "r3ring status: '%s' is too much\n", argv[optind]);
refused:
	fputs("'r3ring status --help' shows the options.\n", stderr);
	return TOOL_USAGE;
}
