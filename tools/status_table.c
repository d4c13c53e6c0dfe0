/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon's state for people.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "tools/absent_channels.h"
#include "tools/absent_ranks.h"
#include "tools/plain_text.h"
#include "tools/quantity.h"
#include "tools/status_table.h"

#define MS_NS 1000000ull
#define NAME_COLUMNS 20 /* at least, of a channel's and a model's name */

static const char *string(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "-";
}

static json_int_t integer(const json_t *object, const char *key)
{
	return json_integer_value(json_object_get(object, key));
}

/* ---- layers ----------------------------------------------------------- */

static json_int_t layer_at(const json_t *layers, size_t index)
{
	return json_integer_value(json_array_get(layers, index));
}

void status_table_layers(FILE *out, const json_t *layers)
{
	size_t count = json_array_size(layers);
	size_t end;

	if (!count)
		fputs("none", out);
	for (size_t begin = 0; begin < count; begin = end) {
		end = begin + 1;
		while (end < count && layer_at(layers, end) == layer_at(layers, end - 1) + 1)
			end++;
		fprintf(out, "%s%" JSON_INTEGER_FORMAT, begin ? "," : "", layer_at(layers, begin));
		if (end - begin > 1)
			fprintf(out, "-%" JSON_INTEGER_FORMAT, layer_at(layers, end - 1));
	}
}

static void print_binding(FILE *out, const json_t *channel)
{
	const json_t *bound = json_object_get(channel, "bound_layers");
	const json_t *called = json_object_get(channel, "called_layers");
	const json_t *unbound = json_object_get(channel, "unbound_layers");

	fputs("    bound: ", out);
	if (json_array_size(bound)) {
		fputs("layers ", out);
		status_table_layers(out, bound);
		fprintf(out, " since %s", string(channel, "bound_since"));
	} else if (json_array_size(called)) {
		fputs("no layer", out);
	} else {
		fputs("NO LAYER: nothing is captured", out);
	}
	if (json_array_size(called)) {
		fputs("; captured by call: layers ", out);
		status_table_layers(out, called);
	}
	if (json_array_size(unbound)) {
		fputs("; NOT BOUND: layers ", out);
		status_table_layers(out, unbound);
	}
	fputc('\n', out);
}

/* ---- losses ----------------------------------------------------------- */

static void print_losses(FILE *out, const json_t *channel)
{
	json_t *lost = json_object_get(channel, "lost");
	bool crashed = json_is_true(json_object_get(channel, "crashed"));
	const char *cause, *separator = "";
	const json_t *counts;

	fputs("    lost: ", out);
	if (!json_object_size(lost))
		fputs(crashed ? "nothing that is known" : "nothing", out);
	json_object_foreach (lost, cause, counts) {
		fprintf(out, "%s%s %" JSON_INTEGER_FORMAT " steps (%" JSON_INTEGER_FORMAT " rows)",
			separator, cause, integer(counts, "steps"), integer(counts, "rows"));
		separator = ", ";
	}
	if (integer(channel, "steps_partial"))
		fprintf(out, "; %" JSON_INTEGER_FORMAT " steps with missing layers",
			integer(channel, "steps_partial"));
	if (integer(channel, "ids_missing") || integer(channel, "ids_out_of_range"))
		fprintf(out,
			"; ids missing %" JSON_INTEGER_FORMAT
			", OUT OF RANGE %" JSON_INTEGER_FORMAT,
			integer(channel, "ids_missing"), integer(channel, "ids_out_of_range"));
	if (crashed)
		fputs("; its engine ran on without a daemon, more may be lost", out);
	fputc('\n', out);
}

/* ---- readers ---------------------------------------------------------- */

static void print_reader(FILE *out, const json_t *reader)
{
	const char *label = string(reader, "label");
	bool labelled = json_string_length(json_object_get(reader, "label")) > 0;

	fprintf(out, "    reader %" JSON_INTEGER_FORMAT, integer(reader, "pid"));
	if (labelled) {
		putc(' ', out);
		plain_text_print(out, label, strlen(label));
	}
	fprintf(out,
		": %s, %" JSON_INTEGER_FORMAT " records (%" JSON_INTEGER_FORMAT
		" bytes) behind, got %" JSON_INTEGER_FORMAT ", lost %" JSON_INTEGER_FORMAT
		", skipped %" JSON_INTEGER_FORMAT,
		string(reader, "mode"), integer(reader, "lag_records"),
		integer(reader, "lag_bytes"), integer(reader, "got"), integer(reader, "lost"),
		integer(reader, "skipped"));
	if (json_is_true(json_object_get(reader, "demoted")))
		fprintf(out,
			"; DEMOTED with %" JSON_INTEGER_FORMAT " to %" JSON_INTEGER_FORMAT
			" unread",
			integer(reader, "demoted_from"), integer(reader, "demoted_to"));
	fputc('\n', out);
}

static void print_readers(FILE *out, const json_t *channel)
{
	const json_t *reader;
	size_t i;

	json_array_foreach (json_object_get(channel, "readers"), i, reader) {
		print_reader(out, reader);
	}
}

/* ---- lines ------------------------------------------------------------ */

static void print_age(FILE *out, const json_t *age_ms)
{
	char text[QUANTITY_TEXT];

	if (!json_is_integer(age_ms))
		fputs("none yet\n", out);
	else
		fprintf(out, "%s ago\n",
			quantity_duration(text, (uint64_t)json_integer_value(age_ms) * MS_NS));
}

/* As wide as the widest of the column. */
static size_t column_width(const json_t *channels, const char *key)
{
	size_t width = NAME_COLUMNS;
	const json_t *channel;
	size_t i;

	json_array_foreach (channels, i, channel) {
		const char *text = string(channel, key);
		size_t length = plain_text_length(text, strlen(text));

		if (length > width)
			width = length;
	}
	return width;
}

static void print_column(FILE *out, const char *text, size_t width)
{
	size_t len = strlen(text);
	size_t length = plain_text_length(text, len);

	plain_text_print(out, text, len);
	fprintf(out, "%*s ", (int)(width > length ? width - length : 0), "");
}

static void print_rate(FILE *out, double steps_per_s)
{
	if (steps_per_s > 0)
		fprintf(out, "%8.1f", steps_per_s);
	else
		fprintf(out, "%8s", "-");
}

/* That of a channel that a dead daemon left is not known. */
static void print_process(FILE *out, const json_t *pid)
{
	if (json_is_integer(pid))
		fprintf(out, "%8" JSON_INTEGER_FORMAT "  ", json_integer_value(pid));
	else
		fprintf(out, "%8s  ", "-");
}

static const char *state_of(const json_t *channel)
{
	const char *state = string(channel, "state");

	return !strcmp(state, "ended") && json_is_true(json_object_get(channel, "producer_died"))
		       ? "died"
		       : state;
}

static void print_channel(FILE *out, const json_t *channel, size_t name_width, size_t model_width)
{
	char layers[32];
	size_t bound = json_array_size(json_object_get(channel, "bound_layers"));
	size_t called = json_array_size(json_object_get(channel, "called_layers"));
	size_t unbound = json_array_size(json_object_get(channel, "unbound_layers"));

	snprintf(layers, sizeof(layers), "%zu/%zu", bound + called, bound + called + unbound);
	print_column(out, string(channel, "channel"), name_width);
	print_column(out, string(channel, "model"), model_width);
	fprintf(out, "%-6s %4" JSON_INTEGER_FORMAT " ", state_of(channel),
		integer(channel, "generation"));
	print_rate(out, json_number_value(json_object_get(channel, "steps_per_s")));
	fprintf(out, " %10" JSON_INTEGER_FORMAT " %12" JSON_INTEGER_FORMAT " %9s ",
		integer(channel, "steps"), integer(channel, "rows"), layers);
	print_process(out, json_object_get(channel, "producer_pid"));
	print_age(out, json_object_get(channel, "last_step_age_ms"));
	print_binding(out, channel);
	print_losses(out, channel);
	print_readers(out, channel);
}

static void print_daemon(FILE *out, const json_t *daemon)
{
	char uptime[QUANTITY_TEXT];

	snprintf(uptime, sizeof(uptime), "less than 1 s");
	if (integer(daemon, "uptime_s") > 0)
		quantity_duration(uptime, (uint64_t)integer(daemon, "uptime_s") * 1000 * MS_NS);
	fprintf(out, "r3ringd %s, process %" JSON_INTEGER_FORMAT ", up %s, %s, in %s\n",
		string(daemon, "version"), integer(daemon, "pid"), uptime, string(daemon, "loop"),
		string(daemon, "runtime_dir"));
}

static void print_absent(FILE *out, const json_t *status)
{
	struct daemon_picture *picture = daemon_picture_of(status);
	struct archive_absent_ranks absent;

	if (picture && absent_channels_find(picture, NULL, &absent) == 0)
		absent_ranks_print(out, "no channel here", &absent);
	else
		fputs("of which ranks there is no channel is not known: no memory\n", out);
	daemon_picture_put(picture);
}

void status_table_print(FILE *out, const json_t *status)
{
	const json_t *channels = json_object_get(status, "channels");
	size_t name_width = column_width(channels, "channel");
	size_t model_width = column_width(channels, "model");
	const json_t *channel;
	size_t i;

	print_daemon(out, json_object_get(status, "daemon"));
	if (!json_array_size(channels)) {
		fputs("no channels\n", out);
		return;
	}
	fprintf(out, "\n%-*s %-*s %-6s %4s %8s %10s %12s %9s %8s  %s\n", (int)name_width, "CHANNEL",
		(int)model_width, "MODEL", "STATE", "GEN", "STEPS/S", "STEPS", "ROWS", "BOUND",
		"PRODUCER", "NEWEST STEP");
	json_array_foreach (channels, i, channel) {
		print_channel(out, channel, name_width, model_width);
	}
	print_absent(out, status);
}
