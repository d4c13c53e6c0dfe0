/* SPDX-License-Identifier: Apache-2.0 */
/* r3ring export: what its parts tell each other. */
#ifndef TOOLS_EXPORT_H
#define TOOLS_EXPORT_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "archive/export/export.h"

struct export_line {
	const char *dir;
	struct export_options options;
	bool progress, json, help;
};

/* Runs it and tells how it went; returns the exit code. */
int export_run_line(const struct export_line *line);

/* Where records were lost, and requests with the id of another: on standard error, nothing where
 * there are none; and for the summary, NULL when memory is out. */
void export_print_losses(const struct export_losses *losses);
void export_print_repeated(const struct export_summary *summary);
void export_print_mixed(const struct export_summary *summary);
void export_print_cut(const struct export_summary *summary);
json_t *export_json_losses(const struct export_losses *losses);
json_t *export_json_repeated(const struct export_summary *summary);
json_t *export_json_mixed(const struct export_mixed *mixed);

#endif
