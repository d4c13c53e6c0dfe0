/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text of a stranger's, as a terminal may be given it.
 */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "channel/utf8.h"
#include "tools/plain_text.h"

#define ESCAPED_LENGTH 4 /* of "\\x1b" */
#define UTF8_MAX 4

/* Bytes of the next character, and whether it can be shown as it is. */
static size_t next_character(const char *text, size_t len, bool *plain)
{
	uint8_t character[UTF8_MAX + 1] = {0};
	size_t bytes;

	memcpy(character, text, len < UTF8_MAX ? len : UTF8_MAX);
	bytes = utf8_bytes(character);
	*plain = bytes && !utf8_steers(character, bytes);
	return bytes ? bytes : 1;
}

void plain_text_print(FILE *out, const char *text, size_t len)
{
	while (len) {
		bool plain;
		const size_t bytes = next_character(text, len, &plain);

		for (size_t i = 0; i < bytes; i++) {
			if (plain)
				fputc(text[i], out);
			else
				fprintf(out, "\\x%02x", (unsigned char)text[i]);
		}
		text += bytes;
		len -= bytes;
	}
}

void plain_text_error(const char *command, int code, const struct r3ring_error *err)
{
	const char *text = err->text[0] ? err->text : strerror(-code);

	fprintf(stderr, "%s: ", command);
	plain_text_print(stderr, text, strlen(text));
	fputc('\n', stderr);
}

size_t plain_text_length(const char *text, size_t len)
{
	size_t length = 0;

	while (len) {
		bool plain;
		const size_t bytes = next_character(text, len, &plain);

		length += plain ? bytes : bytes * ESCAPED_LENGTH;
		text += bytes;
		len -= bytes;
	}
	return length;
}
