/* SPDX-License-Identifier: Apache-2.0 */
/* r3ring report: what its parts tell each other. */
#ifndef TOOLS_REPORT_H
#define TOOLS_REPORT_H

#include <stdbool.h>

#include "report/report.h"

struct report_line {
	const char *dir;
	const char *page, *png; /* NULL: not asked for */
	const char *title;      /* NULL: of the model's name */
	struct report_options options;
	struct r3ring_eplb_options place; /* gpus 0: nobody said */
	bool progress, help;
};

/* Makes the report and tells how it went; returns the exit code. */
int report_run_line(const struct report_line *line);

#endif
