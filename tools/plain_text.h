/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text of a stranger's, as a terminal may be given it.
 */
#ifndef TOOLS_PLAIN_TEXT_H
#define TOOLS_PLAIN_TEXT_H

#include <stddef.h>
#include <stdio.h>

#include <r3ring/error.h>

/* Prints @text; what would steer a terminal, and what is not UTF-8, is shown, not sent. */
void plain_text_print(FILE *out, const char *text, size_t len);

/* Tells on standard error what ended @command ("r3ring NAME"): @err, or @code where that is
 * empty. */
void plain_text_error(const char *command, int code, const struct r3ring_error *err);

/* How many bytes plain_text_print() prints. */
size_t plain_text_length(const char *text, size_t len);

#endif
