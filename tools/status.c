/* SPDX-License-Identifier: Apache-2.0 */
/*
 * r3ring status: what the daemon serves.
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "monitor/daemon_status.h"
#include "tools/arguments.h"
#include "tools/commands.h"
#include "tools/output.h"
#include "tools/plain_text.h"
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

static int show(bool json)
{
	struct r3ring_error err = {0};
	json_t *status;
	int code = daemon_status_get(&status, &err);

	if (code) {
		plain_text_error("r3ring status", code, &err);
		return daemon_is_missing(code) ? TOOL_NO_DAEMON : TOOL_FAILED;
	}
	if (json)
		return output_json("r3ring status", status);
	status_table_print(stdout, status);
	json_decref(status);
	return TOOL_DONE;
}

int cmd_status(int argc, char **argv)
{
	return arguments_json_only(argc, argv, usage, show);
}
