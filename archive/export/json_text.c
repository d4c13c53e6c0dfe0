/* SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "archive/export/json_text.h"

/* Source: RFC 3629, section 4. */
size_t export_utf8_bytes(const uint8_t *text)
{
	size_t more = text[0] < 0x80   ? 0
		      : text[0] < 0xC2 ? 4
		      : text[0] < 0xE0 ? 1
		      : text[0] < 0xF0 ? 2
		      : text[0] < 0xF5 ? 3
				       : 4;

	if (more == 4)
		return 0;
	for (size_t i = 1; i <= more; i++)
		if ((text[i] & 0xC0) != 0x80)
			return 0;
	/* Too long for its value, a surrogate, beyond U+10FFFF. */
	if ((text[0] == 0xE0 && text[1] < 0xA0) || (text[0] == 0xED && text[1] > 0x9F) ||
	    (text[0] == 0xF0 && text[1] < 0x90) || (text[0] == 0xF4 && text[1] > 0x8F))
		return 0;
	return more + 1;
}

/* @escape: how a backslash is written at this depth. */
static void put(FILE *out, const char *text, const char *escape)
{
	const uint8_t *at = (const uint8_t *)text;

	while (*at) {
		size_t bytes = export_utf8_bytes(at);

		if (!bytes || *at < 0x20 || *at == 0x7F) {
			fprintf(out, "%su%04x", escape, bytes ? *at : 0xFFFDu);
			bytes = 1;
		} else if (*at == '"' || *at == '\\') {
			/* The character itself needs the escape of the outer depth as well. */
			fputs(escape, out);
			if (escape[1])
				fputc('\\', out);
			fputc(*at, out);
		} else {
			fwrite(at, 1, bytes, out);
		}
		at += bytes;
	}
}

void export_json_string(FILE *out, const char *text)
{
	fputc('"', out);
	put(out, text, "\\");
	fputc('"', out);
}

void export_json_nested(FILE *out, const char *text)
{
	fputs("\\\"", out);
	put(out, text, "\\\\");
	fputs("\\\"", out);
}
