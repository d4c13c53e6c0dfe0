/* SPDX-License-Identifier: Apache-2.0 */
#include "archive/export/json_text.h"
#include "channel/utf8.h"

/* @escape: how a backslash is written at this depth. */
static void put(FILE *out, const char *text, const char *escape)
{
	const uint8_t *at = (const uint8_t *)text;

	while (*at) {
		size_t bytes = utf8_bytes(at);

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
