/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <math.h>

#include "channel/utf8.h"
#include "serve/exposition.h"

void metric_begin(FILE *out, const char *name, enum metric_type type, const char *help)
{
	static const char *const types[] = {
		[METRIC_COUNTER] = "counter",
		[METRIC_GAUGE] = "gauge",
		[METRIC_HISTOGRAM] = "histogram",
	};

	fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, types[type]);
}

static void put_escaped(FILE *out, const char *text)
{
	const uint8_t *at = (const uint8_t *)text;

	while (*at) {
		size_t bytes = utf8_bytes(at);

		if (!bytes)
			fputs("\xef\xbf\xbd", out);
		else if (*at == '\n')
			fputs("\\n", out);
		else if (*at == '"' || *at == '\\')
			fprintf(out, "\\%c", *at);
		else
			fwrite(at, 1, bytes, out);
		at += bytes ? bytes : 1;
	}
}

static void put_name(FILE *out, const char *name, const struct metric_label *labels)
{
	char before = '{';

	fputs(name, out);
	for (; labels && labels->name; labels++) {
		fprintf(out, "%c%s=\"", before, labels->name);
		put_escaped(out, labels->value);
		fputc('"', out);
		before = ',';
	}
	fputs(before == ',' ? "} " : " ", out);
}

void metric_count(FILE *out, const char *name, const struct metric_label *labels, uint64_t value)
{
	put_name(out, name, labels);
	fprintf(out, "%" PRIu64 "\n", value);
}

void metric_value(FILE *out, const char *name, const struct metric_label *labels, double value)
{
	put_name(out, name, labels);
	if (isnan(value))
		fputs("NaN\n", out);
	else if (isinf(value))
		fputs(value > 0 ? "+Inf\n" : "-Inf\n", out);
	else
		fprintf(out, "%.15g\n", value);
}
