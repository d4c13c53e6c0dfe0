/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text of a stranger's, as a terminal may be given it.
 */
#ifndef TOOLS_PLAIN_TEXT_H
#define TOOLS_PLAIN_TEXT_H

#include <stddef.h>
#include <stdio.h>

/* Prints @text; what would steer a terminal is shown, not sent. */
void plain_text_print(FILE *out, const char *text, size_t len);

/* How many bytes plain_text_print() prints. */
size_t plain_text_length(const char *text, size_t len);

#endif
