/* SPDX-License-Identifier: Apache-2.0 */
/* r3ring replay: what is told at the end. */
#include <inttypes.h>
#include <string.h>

#include "tools/json_values.h"
#include "tools/output.h"
#include "tools/plain_text.h"
#include "tools/replay.h"

static void print_count(FILE *out, uint64_t count, const char *what)
{
	if (count)
		fprintf(out, "  %" PRIu64 " %s\n", count, what);
}

/* Announced as lost. */
static void print_lost(FILE *out, const struct replay_report *report)
{
	if (report->lost_steps)
		fprintf(out,
			"  %" PRIu64 " steps (%" PRIu64
			" rows) that the archive does not have are announced as lost\n",
			report->lost_steps, report->lost_rows);
	print_count(out, report->lost_as_too_big,
		    "of these as too_big, which here means that the archive does not say why, or "
		    "that it is told with the last of several");
	if (report->late)
		fprintf(out,
			"  %" PRIu64 " generations begin in their middle, behind %" PRIu64
			" records: these are one lost step\n",
			report->late, report->late_records);
	print_count(out, report->missed_generations,
		    "generations are not there, or not what model they are of");
	if (!report->gaps)
		return;
	fprintf(out, "  %" PRIu64 " gaps in the recording, %" PRIu64 " records", report->gaps,
		report->gap_records);
	if (report->gaps_unsized)
		fprintf(out, " and, in %" PRIu64 " of them, nobody knows how many",
			report->gaps_unsized);
	fputs(": prefix caches begin anew behind them\n", out);
}

static void print_missing(FILE *out, const struct replay_report *report)
{
	print_lost(out, report);
	print_count(out, report->missing_layers, "layers of steps are missing in the archive, too");
	print_count(out, report->skipped, "layer records were left out by record --layers");
	print_count(out, report->out_of_range, "ids that were no experts are missing now");
	print_count(out, report->unfinished,
		    "attempts of requests have no end in the archive, or an unknown one: aborted");
	print_count(out, report->unreadable,
		    "records are of a later version, or cannot be decoded");
	print_count(out, report->refused, "requests, maps or spans were refused");
	print_count(out, report->damaged, "places at which the archive is damaged");
	print_count(out, report->absent, "requests that were asked for are not in the archive");
	print_count(out, report->dropped_steps,
		    "steps were dropped on the way: a replay of less than all");
}

void replay_print(FILE *out, const struct replay_options *options,
		  const struct replay_report *report)
{
	plain_text_print(out, options->dir, strlen(options->dir));
	fprintf(out,
		" as %s: %" PRIu64 " channels, %" PRIu64 " generations, %" PRIu64
		" requests, %" PRIu64 " steps, %" PRIu64 " rows, %" PRIu64
		" rows x layers in %.1f s%s\n",
		options->instance, report->channels, report->generations, report->requests,
		report->steps, report->rows, report->layer_rows, report->seconds,
		report->stopped ? ", stopped early" : "");
	print_missing(out, report);
}

int replay_print_json(const struct replay_options *options, const struct replay_report *report)
{
	const struct {
		const char *name;
		uint64_t count;
	} numbers[] = {
		{"channels", report->channels},
		{"generations", report->generations},
		{"requests", report->requests},
		{"steps", report->steps},
		{"rows", report->rows},
		{"layer_rows", report->layer_rows},
		{"lost_steps", report->lost_steps},
		{"lost_rows", report->lost_rows},
		{"lost_as_too_big", report->lost_as_too_big},
		{"late", report->late},
		{"late_records", report->late_records},
		{"missed_generations", report->missed_generations},
		{"gaps", report->gaps},
		{"gap_records", report->gap_records},
		{"gaps_unsized", report->gaps_unsized},
		{"missing_layers", report->missing_layers},
		{"skipped", report->skipped},
		{"out_of_range", report->out_of_range},
		{"unfinished", report->unfinished},
		{"unreadable", report->unreadable},
		{"refused", report->refused},
		{"damaged", report->damaged},
		{"absent", report->absent},
		{"dropped_steps", report->dropped_steps},
	};
	json_t *object = json_pack("{s:o, s:s, s:b, s:f}", "archive",
				   json_text(options->dir, strlen(options->dir)), "instance",
				   options->instance, "stopped", report->stopped, "seconds",
				   report->seconds);

	for (size_t i = 0; object && i < sizeof(numbers) / sizeof(numbers[0]); i++)
		json_object_set_new(object, numbers[i].name, json_u64(numbers[i].count));
	return output_json("r3ring replay", object);
}
