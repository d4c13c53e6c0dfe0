/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tool's standard output: what of it was not taken is told at the end, with the
 * reason of the write that failed first.
 */
#ifndef TOOLS_OUTPUT_H
#define TOOLS_OUTPUT_H

#include <jansson.h>

/* Before anything is printed. Returns 0 or -1 (no memory). */
int output_open(void);

/*
 * Prints a report, indented. @object is taken over; NULL when there was no memory
 * for it, which is said in the name of @command. Returns an exit code.
 */
int output_json(const char *command, json_t *object);

/* Returns @code, or TOOL_FAILED when something could not be written; a pipe whose
 * reader has had enough (`r3ring status | head -1`) is no failure. */
int output_finish(int code);

#endif
