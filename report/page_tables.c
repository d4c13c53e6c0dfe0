/* SPDX-License-Identifier: Apache-2.0 */
/* Coverage and losses, channels, requests. */
#include <inttypes.h>

#include "report/html.h"
#include "report/page.h"

static void cell(FILE *out, uint64_t number)
{
	fputs("<td>", out);
	html_number(out, number);
	fputs("</td>", out);
}

static double percent(uint64_t part, uint64_t whole)
{
	return whole ? 100 * (double)part / (double)whole : 0;
}

/* Never rounded up to all, where something is missing. */
static void share(FILE *out, uint64_t part, uint64_t whole)
{
	double value = percent(part, whole);

	if (part < whole && value > 99.99)
		value = 99.99;
	fprintf(out, "%.2f %%", value);
}

/* ---- coverage ---------------------------------------------------------------------- */

static const char *word_of(uint32_t cause)
{
	if (cause == R3RING_MISSING_NOT_RECORDED)
		return "left out by the recorder";
	return request_cause_is_loss(cause) ? "lost" : "not run here";
}

static void missing_row(FILE *out, uint32_t cause, uint64_t cells, uint64_t of)
{
	fprintf(out, "<tr><th scope=\"row\"%s>%s</th>",
		request_cause_is_loss(cause) ? " class=\"bad\"" : "",
		r3ring_missing_cause_name(cause));
	cell(out, cells);
	fputs("<td>", out);
	share(out, cells, of);
	fprintf(out, "</td><td class=\"text\">%s</td></tr>\n", word_of(cause));
}

static void requests_left(FILE *out, const struct report_coverage *coverage)
{
	fputs("<p>", out);
	html_number(out, coverage->requests);
	fputs(" requests of ", out);
	html_number(out, coverage->tokens);
	fputs(" tokens; ", out);
	html_number(out, coverage->unfinished);
	fputs(" without an end, ", out);
	html_number(out, coverage->aborted);
	fputs(" aborted, ", out);
	html_number(out, coverage->evicted);
	fputs(" too large for the memory (<code>--max-memory</code>).", out);
	if (coverage->not_asked) {
		fputs(" Not asked for: ", out);
		html_number(out, coverage->not_asked);
		fputs(".", out);
	}
	if (coverage->unattributed) {
		fputs(coverage->evicted
			      ? " Rows of requests that were given up, or of none that is known: "
			      : " Rows of no request that is known, as the recording began in its "
				"middle: ",
		      out);
		html_number(out, coverage->unattributed);
		fputs(".", out);
	}
	fputs("</p>\n", out);
}

void page_coverage(FILE *out, const struct report *report)
{
	const struct report_coverage *coverage = &report->coverage;

	fputs("<section id=\"coverage\">\n<h2>Coverage and losses</h2>\n", out);
	requests_left(out, coverage);
	fputs("<div class=\"wide\"><table>\n<thead><tr><th scope=\"col\">cells (tokens × "
	      "layers)</th>"
	      "<th scope=\"col\">count</th><th scope=\"col\">share</th><th></th></tr></thead>\n"
	      "<tbody><tr id=\"cells-there\"><th scope=\"row\">there</th>",
	      out);
	cell(out, coverage->valid);
	fputs("<td>", out);
	share(out, coverage->valid, coverage->cells);
	fputs("</td><td></td></tr>\n", out);
	for (uint32_t cause = 0; cause < R3RING_MISSING_CAUSES; cause++)
		if (coverage->missing[cause])
			missing_row(out, cause, coverage->missing[cause], coverage->cells);
	fputs("</tbody></table></div>\n</section>\n", out);
}

/* ---- channels ------------------------------------------------------------------------ */

/* What of it is known by totals only, and what may be lost beyond. */
static void lost_unheard(FILE *out, const struct lost_account *lost)
{
	const uint64_t steps = lost_account_unheard(lost);

	if (steps) {
		fputs(" (of these ", out);
		html_number(out, steps);
		fputs(" steps told by totals only: their records fell into a gap)", out);
	}
	if (lost_account_more(lost) && !lost_account_steps(lost))
		fputs("by the channel: nothing that is known", out);
	if (lost->unproved)
		fprintf(out,
			" (at least: behind %" PRIu64
			" gaps no keyframe came that would tell more)",
			lost->unproved);
	if (lost->unfollowed)
		fprintf(out,
			" (at least: behind %" PRIu64
			" ends of generations only the engine knows what it ran)",
			lost->unfollowed);
}

static void lost_by_channel(FILE *out, const struct archive_verified *counts)
{
	const struct lost_account *lost = &counts->lost;
	const char *separator = "";

	for (uint32_t cause = 0; cause < R3RING_CAUSE_COUNT; cause++) {
		if (!lost->steps[cause] && !lost->rows[cause])
			continue;
		fprintf(out, "%s%s: ", separator, r3ring_cause_name(cause));
		html_number(out, lost->steps[cause]);
		fputs(" steps (", out);
		html_number(out, lost->rows[cause]);
		fputs(" rows)", out);
		separator = "; ";
	}
	lost_unheard(out, lost);
	if (lost_account_more(lost))
		separator = "; ";
	for (uint32_t cause = ARCHIVE_GAP_LATE; cause < ARCHIVE_GAP_CAUSES; cause++) {
		if (!counts->gaps[cause])
			continue;
		fprintf(out, "%snot recorded, %s: ", separator, archive_gap_cause_name(cause));
		html_number(out, counts->gap_records[cause]);
		fprintf(out, " records in %" PRIu64 " gaps", counts->gaps[cause]);
		separator = "; ";
	}
	if (counts->gaps_unsized)
		fprintf(out, " (%" PRIu64 " of unknown size)", counts->gaps_unsized);
	if (!separator[0])
		fputs("nothing", out);
}

static void channel_row(FILE *out, const char *name, const struct archive_verified *counts)
{
	fputs("<tr><th scope=\"row\" class=\"id\"><bdi>", out);
	html_text(out, name);
	fputs("</bdi></th>", out);
	cell(out, counts->steps);
	cell(out, counts->steps_complete);
	cell(out, counts->steps_partial);
	cell(out, counts->steps_dropped);
	cell(out, counts->rows);
	cell(out, counts->layer_rows);
	fputs("<td class=\"text\">", out);
	lost_by_channel(out, counts);
	fputs("</td></tr>\n", out);
}

#define CHANNELS_TOLD 256u

void page_channels(FILE *out, const struct report *report)
{
	uint32_t told = 0, left = 0;

	fputs("<section id=\"channels\">\n<h2>Channels</h2>\n<div class=\"wide\"><table>\n"
	      "<thead><tr><th scope=\"col\">channel</th><th scope=\"col\">steps</th>"
	      "<th scope=\"col\">complete</th><th scope=\"col\">partial</th>"
	      "<th scope=\"col\">dropped</th><th scope=\"col\">rows</th>"
	      "<th scope=\"col\">rows × layers</th><th scope=\"col\" class=\"text\">lost</th></tr>"
	      "</thead>\n<tbody>\n",
	      out);
	for (uint32_t i = 0; i < report->channels; i++) {
		if (!report->channel[i].name)
			continue;
		if (told++ < CHANNELS_TOLD)
			channel_row(out, report->channel[i].name, &report->channel[i].counts);
		else
			left++;
	}
	if (told > 1)
		channel_row(out, "all", &report->counts);
	fputs("</tbody></table></div>\n", out);
	if (left)
		fprintf(out, "<p>%u channels more are in the sum alone.</p>\n", left);
	fputs("</section>\n", out);
}

/* ---- requests ------------------------------------------------------------------------- */

static void request_missing(FILE *out, const struct request_row *row)
{
	const char *separator = "";

	for (uint32_t cause = 0; cause < R3RING_MISSING_CAUSES; cause++) {
		if (!row->missing[cause])
			continue;
		fprintf(out, "%s%s ", separator, r3ring_missing_cause_name(cause));
		html_number(out, row->missing[cause]);
		separator = ", ";
	}
}

static const char *end_of(const struct request_row *row)
{
	if (row->flags & R3RING_ASSEMBLED_MIXED)
		return "mixed of several";
	if (row->flags & R3RING_ASSEMBLED_CUT)
		return "cut";
	if (row->flags & R3RING_ASSEMBLED_ABORTED)
		return "aborted";
	if (row->flags & R3RING_ASSEMBLED_EVICTED)
		return "too large";
	if (row->flags & R3RING_ASSEMBLED_UNFINISHED)
		return "no end seen";
	return row->flags & R3RING_ASSEMBLED_LENGTH_GUESSED ? "length guessed" : "finished";
}

static void request_row(FILE *out, const struct request_row *row)
{
	fputs("<tr class=\"request\"><th scope=\"row\" class=\"id\"><bdi>", out);
	html_text(out, row->id);
	fputs("</bdi></th>", out);
	if (row->prompt_tokens == R3RING_UNKNOWN_U32)
		fputs("<td>unknown</td>", out);
	else
		cell(out, row->prompt_tokens);
	cell(out, row->tokens);
	cell(out, row->attempts);
	fprintf(out, "<td class=\"text\">%s</td>", end_of(row));
	cell(out, row->valid);
	fprintf(out, "<td%s>", row->lost ? " class=\"bad\"" : "");
	html_number(out, row->lost);
	fputs("</td><td class=\"text\">", out);
	request_missing(out, row);
	fputs("</td></tr>\n", out);
}

void page_requests(FILE *out, const struct report *report)
{
	const struct request_table *table = &report->requests;

	fputs("<section id=\"requests\">\n<h2>Requests</h2>\n", out);
	if (table->seen > table->count) {
		fputs("<p id=\"requests-left-out\">", out);
		html_number(out, table->count);
		fputs(" of ", out);
		html_number(out, table->seen);
		fputs(" are told, those first of which most was lost; ", out);
		html_number(out, table->seen - table->count);
		fputs(" are left out (<code>--table</code>).</p>\n", out);
	}
	fputs("<div class=\"wide\"><table>\n<thead><tr><th scope=\"col\">request</th>"
	      "<th scope=\"col\">prompt</th><th scope=\"col\">tokens</th>"
	      "<th scope=\"col\">attempts</th><th scope=\"col\" class=\"text\">end</th>"
	      "<th scope=\"col\">cells there</th><th scope=\"col\">lost</th>"
	      "<th scope=\"col\" class=\"text\">missing, by cause</th></tr></thead>\n<tbody>\n",
	      out);
	for (uint32_t i = 0; i < table->count; i++)
		request_row(out, &table->row[i]);
	fputs("</tbody></table></div>\n</section>\n", out);
}
