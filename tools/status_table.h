/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon's state for people.
 */
#ifndef TOOLS_STATUS_TABLE_H
#define TOOLS_STATUS_TABLE_H

#include <stdio.h>

#include <jansson.h>

/*
 * Prints what daemon_status_get() gave: a line for the daemon; for each channel
 * a line of the table, what is bound since when, and what was lost by cause.
 * Fields that the daemon does not tell are shown as "-".
 */
void status_table_print(FILE *out, const json_t *status);

/* Layer numbers as ranges: "0-2,5,7-42"; "none" for an empty array. */
void status_table_layers(FILE *out, const json_t *layers);

#endif
