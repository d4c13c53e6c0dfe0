/* SPDX-License-Identifier: Apache-2.0 */
/* r3ring record: progress and summaries. */
#include <inttypes.h>

#include <jansson.h>

#include "tools/absent_ranks.h"
#include "tools/json_values.h"
#include "tools/lost_text.h"
#include "tools/output.h"
#include "tools/quantity.h"
#include "tools/record.h"

static double per_second(uint64_t count, uint64_t ns)
{
	return ns ? (double)count * 1e9 / (double)ns : 0;
}

void record_progress_show(struct record_progress *progress, const struct record_report *report)
{
	char entries[QUANTITY_TEXT], stored[QUANTITY_TEXT];

	if (!progress->terminal)
		return;
	progress->drawn = true;
	fprintf(progress->terminal,
		"\rrecording %u channels: %" PRIu64 " records (%.0f a second), %s as %s in %" PRIu64
		" segments; lost: %" PRIu64 " records, by the channels %" PRIu64 " steps\033[K",
		report->channels, report->records, per_second(report->records, report->ns),
		quantity_bytes(entries, report->archive.entry_bytes),
		quantity_bytes(stored, report->archive.stored_bytes), report->archive.segment,
		report->lost, lost_account_steps(&report->channels_lost));
	fflush(progress->terminal);
}

void record_progress_clear(struct record_progress *progress)
{
	if (!progress->drawn)
		return;
	fputs("\r\033[K", progress->terminal);
	fflush(progress->terminal);
	progress->drawn = false;
}

static double share(const struct archive_writer_stats *stats)
{
	return stats->entry_bytes ? 100.0 * (double)stats->stored_bytes / (double)stats->entry_bytes
				  : 0;
}

/* What the channels lost is in the archive as that; what is in no record is a gap. */
static void print_losses(FILE *out, const struct record_report *report)
{
	const bool any = lost_text_print(out, "", &report->channels_lost);

	if (report->full)
		fputs("ended early: the archive is as large as it may be (--max-size); what the "
		      "channels said after that is not recorded, and not counted here\n",
		      out);
	if (report->partial_steps)
		fprintf(out, "layers are missing in %" PRIu64 " steps\n", report->partial_steps);
	if (report->gaps)
		fprintf(out,
			"not recorded: %" PRIu64 " records in %" PRIu64 " gaps (%" PRIu64
			" were corrupt; %" PRIu64 " gaps are of unknown size)\n",
			report->lost, report->gaps, report->corrupt, report->unsized);
	else if (report->full)
		fputs("lost: nothing up to there\n", out);
	else if (any || report->partial_steps || report->unreadable)
		fputs("not recorded: nothing is missing of what the channels said\n", out);
	else
		fputs(report->absent.count ? "lost: nothing of these channels\n"
					   : "lost: nothing\n",
		      out);
	if (report->unreadable)
		fprintf(out,
			"damaged: %" PRIu64 " records, as the ring had them: r3ring verify says "
			"which\n",
			report->unreadable);
	absent_ranks_print(out, "not recorded", &report->absent);
	if (report->missed)
		fprintf(out,
			"missed: %" PRIu64 " generations, gone before this recorder came to them\n",
			report->missed);
}

/* What this run wrote, wherever it is by now. */
static void print_run(FILE *out, const struct record_report *report)
{
	const struct archive_writer_stats *stats = &report->archive;
	char entries[QUANTITY_TEXT], stored[QUANTITY_TEXT];

	fprintf(out, "%s: this run wrote %" PRIu64 " records of %u channels, %s as %s (%.1f %%)\n",
		report->dir, stats->stored_records, report->channels,
		quantity_bytes(entries, stats->entry_bytes),
		quantity_bytes(stored, stats->stored_bytes), share(stats));
	if (stats->left_out)
		fprintf(out, "of these %" PRIu64 " are layer records that --layers left out\n",
			stats->left_out);
}

/* What there is, whoever wrote it. */
static void print_archive(FILE *out, const struct archive_writer_stats *stats)
{
	char whole[QUANTITY_TEXT];

	fputs("the archive has ", out);
	if (stats->archive_counted)
		fprintf(out, "%" PRIu64 " records%s", stats->archive_records,
			stats->left_out ? ", those left out counted," : "");
	else
		fputs("records of a number that is not known, as files are missing or damaged,",
		      out);
	fprintf(out, " in %" PRIu64 " segments, %s\n", stats->archive_segments,
		quantity_bytes(whole, stats->archive_bytes));
	if (!stats->removed_segments)
		return;
	fprintf(out, "removed by this run (--rotate): %" PRIu64 " segments",
		stats->removed_segments);
	if (stats->archive_counted)
		fprintf(out, " with %" PRIu64 " records", stats->removed_records);
	fputc('\n', out);
}

void record_print_text(FILE *out, const struct record_report *report)
{
	print_run(out, report);
	print_archive(out, &report->archive);
	print_losses(out, report);
}

static json_t *counted(const struct archive_writer_stats *stats, uint64_t records)
{
	return stats->archive_counted ? json_u64(records) : json_null();
}

int record_print_json(const struct record_options *options, const struct record_report *report)
{
	const struct archive_writer_stats *stats = &report->archive;

	return output_json(
		"record",
		json_pack(
			"{s:s, s:s, s:b, s:o, s:i, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, "
			"s:o, s:o, s:o, s:o, s:o, s:o, s:o, "
			"s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:b, s:b, s:f}",
			"directory", report->dir, "instance", options->instance, "resumed",
			report->resumed, "cut_bytes", json_u64(report->cut_bytes), "channels",
			(int)report->channels, "records", json_u64(report->records),
			"stored_records", json_u64(stats->stored_records), "lost",
			json_u64(report->lost), "gaps", json_u64(report->gaps), "gaps_unsized",
			json_u64(report->unsized), "missed_generations", json_u64(report->missed),
			"corrupt", json_u64(report->corrupt), "unreadable",
			json_u64(report->unreadable), "demotions", json_u64(report->demotions),
			"lost_by_channels",
			json_lost(report->channels_lost.steps, report->channels_lost.rows, "none"),
			"lost_by_totals_only", lost_text_unheard_json(&report->channels_lost),
			"lost_gaps_unproved", json_u64(report->channels_lost.unproved),
			"lost_ends_unfollowed", json_u64(report->channels_lost.unfollowed),
			"not_recorded", absent_ranks_json(&report->absent), "partial_steps",
			json_u64(report->partial_steps), "entry_bytes",
			json_u64(stats->entry_bytes), "stored_bytes", json_u64(stats->stored_bytes),
			"archive_bytes", json_u64(stats->archive_bytes), "newest_segment",
			json_u64(stats->segment), "removed_segments",
			json_u64(stats->removed_segments), "removed_records",
			counted(stats, stats->removed_records), "left_out",
			json_u64(stats->left_out), "archive_segments",
			json_u64(stats->archive_segments), "archive_records",
			counted(stats, stats->archive_records), "full", report->full, "io_uring",
			stats->uring, "seconds", (double)report->ns / 1e9));
}
