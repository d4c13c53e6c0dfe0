/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text of a stranger's, as a terminal may be given it.
 */
#include <ctype.h>

#include "tools/plain_text.h"

#define ESCAPED_LENGTH 4 /* of "\\x1b" */

void plain_text_print(FILE *out, const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (iscntrl((unsigned char)text[i]))
			fprintf(out, "\\x%02x", (unsigned char)text[i]);
		else
			fputc(text[i], out);
	}
}

size_t plain_text_length(const char *text, size_t len)
{
	size_t length = 0;

	for (size_t i = 0; i < len; i++)
		length += iscntrl((unsigned char)text[i]) ? ESCAPED_LENGTH : 1;
	return length;
}
