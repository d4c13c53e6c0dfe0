/* SPDX-License-Identifier: Apache-2.0 */
/* r3ring replay: what is told at the end. */
#include <inttypes.h>
#include <string.h>

#include "tools/json_values.h"
#include "tools/output.h"
#include "tools/plain_text.h"
#include "tools/replay.h"

static void print_missing(FILE *out, const struct replay_report *report)
{
	const struct {
		uint64_t count;
		const char *what;
	} left[] = {
		{report->lost_steps, "steps that the archive does not have are announced as lost"},
		{report->missing_layers, "layers of steps are missing in the archive, too"},
		{report->gaps, "gaps in the recording: prefix caches begin anew behind them"},
		{report->out_of_range, "ids that were no experts are missing now"},
		{report->unreadable, "records are of a later version, or cannot be decoded"},
		{report->refused, "requests, maps or spans were refused"},
		{report->damaged, "places at which the archive is damaged"},
		{report->absent, "requests that were asked for are not in the archive"},
		{report->dropped_steps, "steps were dropped on the way: a replay of less than all"},
	};

	for (size_t i = 0; i < sizeof(left) / sizeof(left[0]); i++) {
		if (left[i].count)
			fprintf(out, "  %" PRIu64 " %s\n", left[i].count, left[i].what);
	}
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
	return output_json(
		"r3ring replay",
		json_pack("{s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, "
			  "s:o, s:o, s:o, s:o, s:b, s:f}",
			  "archive", json_text(options->dir, strlen(options->dir)), "instance",
			  options->instance, "channels", json_u64(report->channels), "generations",
			  json_u64(report->generations), "requests", json_u64(report->requests),
			  "steps", json_u64(report->steps), "rows", json_u64(report->rows),
			  "layer_rows", json_u64(report->layer_rows), "lost_steps",
			  json_u64(report->lost_steps), "lost_rows", json_u64(report->lost_rows),
			  "gaps", json_u64(report->gaps), "missing_layers",
			  json_u64(report->missing_layers), "out_of_range",
			  json_u64(report->out_of_range), "unreadable",
			  json_u64(report->unreadable), "refused", json_u64(report->refused),
			  "damaged", json_u64(report->damaged), "absent", json_u64(report->absent),
			  "dropped_steps", json_u64(report->dropped_steps), "stopped",
			  report->stopped, "seconds", report->seconds));
}
