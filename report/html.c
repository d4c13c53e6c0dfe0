/* SPDX-License-Identifier: Apache-2.0 */
#include "report/html.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <time.h>

#include "channel/base64.h"
#include "channel/utf8.h"

#define NS UINT64_C(1000000000)
#define REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */

/* ---- text ------------------------------------------------------------------- */

static const char *escaped(uint8_t letter)
{
	switch (letter) {
	case '&':
		return "&amp;";
	case '<':
		return "&lt;";
	case '>':
		return "&gt;";
	case '"':
		return "&quot;";
	case '\'':
		return "&#39;";
	default:
		return NULL;
	}
}

void html_text(FILE *out, const char *text)
{
	const uint8_t *at = (const uint8_t *)text;

	while (*at) {
		size_t bytes = utf8_bytes(at);

		if (!bytes || utf8_steers(at, bytes))
			fputs(REPLACEMENT, out);
		else if (escaped(*at))
			fputs(escaped(*at), out);
		else
			fwrite(at, 1, bytes, out);
		at += bytes ? bytes : 1;
	}
}

/* ---- quantities ---------------------------------------------------------------- */

void html_number(FILE *out, uint64_t number)
{
	if (number >= 1000) {
		html_number(out, number / 1000);
		fprintf(out, ",%03" PRIu64, number % 1000);
	} else {
		fprintf(out, "%" PRIu64, number);
	}
}

void html_time(FILE *out, uint64_t ns)
{
	time_t seconds = (time_t)(ns / NS);
	struct tm utc;
	char text[40], machine[40];

	if (!gmtime_r(&seconds, &utc) || !strftime(text, sizeof(text), "%F %T UTC", &utc) ||
	    !strftime(machine, sizeof(machine), "%FT%TZ", &utc))
		fprintf(out, "@%" PRIu64, ns / NS);
	else
		fprintf(out, "<time datetime=\"%s\">%s</time>", machine, text);
}

void html_duration(FILE *out, uint64_t ns)
{
	const double seconds = (double)ns / (double)NS;

	if (seconds < 1)
		fprintf(out, "%.0f ms", seconds * 1000);
	else if (seconds < 120)
		fprintf(out, "%.1f s", seconds);
	else if (seconds < 7200)
		fprintf(out, "%.1f min", seconds / 60);
	else
		fprintf(out, "%.1f h", seconds / 3600);
}

/* ---- pictures -------------------------------------------------------------------- */

static int put_base64(FILE *out, const char *data, size_t bytes)
{
	char *text = malloc(BASE64_LENGTH(bytes) + 1);

	if (!text)
		return -ENOMEM;
	base64_encode(data, bytes, text);
	fputs(text, out);
	free(text);
	return 0;
}

int html_picture(FILE *out, const struct picture *picture, const char *alt,
		 struct r3ring_error *err)
{
	char *png = NULL;
	size_t bytes = 0;
	FILE *stream = open_memstream(&png, &bytes);
	int r = stream ? picture_write_png(picture, stream, err) : -ENOMEM;

	if (stream && fclose(stream) && r == 0)
		r = -ENOMEM;
	if (r == 0) {
		fprintf(out, "<img width=\"%u\" height=\"%u\" alt=\"", picture->width,
			picture->height);
		html_text(out, alt);
		fputs("\" src=\"data:image/png;base64,", out);
		r = put_base64(out, png, bytes);
		fputs("\">", out);
	}
	free(png);
	return r;
}
