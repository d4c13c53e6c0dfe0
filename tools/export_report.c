/* SPDX-License-Identifier: Apache-2.0 */
/* r3ring export: runs it, shows how far it is, and tells what came of it. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "tools/commands.h"
#include "tools/export.h"
#include "tools/json_values.h"
#include "tools/output.h"
#include "tools/plain_text.h"
#include "tools/progress.h"
#include "tools/quantity.h"

/* ---- summary ------------------------------------------------------------ */

static void print_filled(const struct export_summary *summary)
{
	uint64_t cells = export_summary_filled(summary);
	const char *separator = ":";

	if (!cells)
		return;
	fprintf(stderr, "  %" PRIu64 " of %" PRIu64 " cells were missing and are filled with %s",
		cells, summary->cells, export_fill_name(summary->missing));
	for (uint32_t cause = 0; cause < R3RING_MISSING_CAUSES; cause++) {
		if (!summary->filled[cause])
			continue;
		fprintf(stderr, "%s %s %" PRIu64, separator, r3ring_missing_cause_name(cause),
			summary->filled[cause]);
		separator = ",";
	}
	fputc('\n', stderr);
	if (summary->warning)
		fprintf(stderr, "  beware: %s\n", summary->warning);
}

static const char *why_of_no_request(const struct export_losses *losses)
{
	if (losses->late || losses->rotated.segments)
		return "the recording began in its middle";
	if (losses->gaps)
		return "records were lost that may have announced it";
	return "nobody announced it";
}

static void print_left_out(const struct export_line *line, const struct export_summary *summary)
{
	const struct {
		uint64_t count;
		const char *what;
	} left[] = {
		{summary->unfinished, export_unfinished_words(&line->options)},
		{summary->aborted, "aborted (--include aborted takes them)"},
		{summary->guessed, "that nobody said the length of (--include guessed takes them)"},
		{summary->other_times, "that ended at other times"},
	};

	for (size_t i = 0; i < sizeof(left) / sizeof(*left); i++)
		if (left[i].count)
			fprintf(stderr, "  left out: %" PRIu64 " %s\n", left[i].count,
				left[i].what);
	export_print_mixed(summary);
	export_print_cut(summary);
	if (summary->unattributed)
		fprintf(stderr, "  %" PRIu64 " rows are of no request: %s\n", summary->unattributed,
			why_of_no_request(&summary->losses));
	if (summary->keys_forgotten)
		fprintf(stderr,
			"  %" PRIu64
			" prefix cache keys were forgotten for want of room: hits on them "
			"count as missing\n",
			summary->keys_forgotten);
}

static void print_summary(const struct export_line *line, const struct export_summary *summary)
{
	char bytes[QUANTITY_TEXT];

	fprintf(stderr,
		"%s: %" PRIu64 " requests, %" PRIu64 " rows x %u layers x %u ids (%s), %s, %s\n",
		export_to_stdout(line->options.out) ? "standard output" : line->options.out,
		summary->requests, summary->rows, summary->layers, summary->top_k,
		export_dtype_name(summary->dtype), summary->format,
		quantity_bytes(bytes, summary->bytes));
	if (line->options.mtp && !summary->mtp_layers)
		fputs("  --mtp: the model has no layers of multi-token prediction that were "
		      "captured\n",
		      stderr);
	print_filled(summary);
	if (summary->rowless)
		fprintf(stderr,
			"  %" PRIu64 " requests have no rows: too short, or not in --positions\n",
			summary->rowless);
	if (summary->joined)
		fprintf(stderr, "  %" PRIu64 " last rows are from the next turn\n",
			summary->joined);
	if (summary->turns_forgotten)
		fprintf(stderr,
			"  %" PRIu64 " turns that waited for a next one were forgotten for want of "
			"room: their last rows are padded\n",
			summary->turns_forgotten);
	print_left_out(line, summary);
	export_print_repeated(summary);
	export_print_losses(&summary->losses);
}

static json_t *json_filled(const struct export_summary *summary)
{
	json_t *object = json_object();

	for (uint32_t cause = 0; object && cause < R3RING_MISSING_CAUSES; cause++)
		if (summary->filled[cause])
			json_object_set_new(object, r3ring_missing_cause_name(cause),
					    json_u64(summary->filled[cause]));
	return object;
}

static json_t *json_left_out(const struct export_summary *summary)
{
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "unfinished",
			 json_u64(summary->unfinished), "mixed", json_u64(summary->mixed),
			 "mixed_told", export_json_mixed(&summary->mixed_told), "too_long",
			 json_u64(summary->cut), "rows_beyond", json_u64(summary->rows_beyond),
			 "aborted", json_u64(summary->aborted), "guessed",
			 json_u64(summary->guessed), "other_times", json_u64(summary->other_times),
			 "not_asked", json_u64(summary->not_asked));
}

static json_t *json_summary(const struct export_line *line, const struct export_summary *summary)
{
	const bool beware = summary->warning && export_summary_filled(summary);
	json_t *object = json_pack(
		"{s:s, s:o, s:s, s:s, s:s, s:s, s:s, s:i, s:i, s:i, s:o, s:o, s:o, s:o}", "format",
		summary->format, "output", json_text(line->options.out, strlen(line->options.out)),
		"dtype", export_dtype_name(summary->dtype), "rows_rule",
		export_rows_name(summary->rule), "missing", export_fill_name(summary->missing),
		"pad", export_fill_name(summary->pad), "policy",
		line->options.policy == R3RING_ROWS_LATEST ? "latest" : "first", "layers",
		(int)summary->layers, "top_k", (int)summary->top_k, "experts",
		(int)summary->experts, "requests", json_u64(summary->requests), "rows",
		json_u64(summary->rows), "cells", json_u64(summary->cells), "bytes",
		json_u64(summary->bytes));
	json_t *told = json_pack(
		"{s:o, s:o?, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "filled",
		json_filled(summary), "warning", beware ? json_string(summary->warning) : NULL,
		"padded", json_u64(summary->padded), "joined", json_u64(summary->joined),
		"turns_forgotten", json_u64(summary->turns_forgotten), "left_out",
		json_left_out(summary), "rows_of_no_request", json_u64(summary->unattributed),
		"conflicts", json_u64(summary->conflicts), "repeated_ids",
		export_json_repeated(summary), "lost", export_json_losses(&summary->losses));
	int merged = object && told ? json_object_update(object, told) : -1;

	json_decref(told);
	if (!merged)
		return object;
	json_decref(object);
	return NULL;
}

/* ---- running ------------------------------------------------------------ */

int export_run_line(const struct export_line *line)
{
	bool shown = false, watched = line->progress || isatty(STDERR_FILENO);
	struct export_summary summary;
	struct r3ring_error err = {0};
	int rc;

	signal(SIGPIPE, SIG_IGN); /* a reader of the output that goes is an error to be told */
	rc = export_archive(line->dir, &line->options, watched ? progress_show : NULL, &shown,
			    &summary, &err);
	progress_hide(shown);
	if (rc) {
		plain_text_error("r3ring export", rc, &err);
		return rc == -EINVAL ? TOOL_USAGE : TOOL_FAILED;
	}
	print_summary(line, &summary);
	return line->json ? output_json("r3ring export", json_summary(line, &summary)) : TOOL_DONE;
}
