/* SPDX-License-Identifier: Apache-2.0 */
/* The page: its frame, and what is to be known within seconds. */
#include "report/page.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "monitor/balance.h"
#include "report/figures.h"
#include "report/html.h"

#define UNEVEN_NAMED 16u /* the others are in the table */

static const char head[] =
	"<!DOCTYPE html>\n"
	"<html lang=\"en\">\n"
	"<head>\n"
	"<meta charset=\"utf-8\">\n"
	"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; img-src data:; "
	"style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'\">\n"
	"<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
	"<meta name=\"referrer\" content=\"no-referrer\">\n";

static const char style[] =
	"<style>\n"
	":root{color-scheme:light dark;--line:#8886;--good:#1a7f37;--bad:#c62828;--bar:#3d7ea6}\n"
	"@media(prefers-color-scheme:dark){:root{--good:#5fd17c;--bad:#ff8a80;--bar:#5fa8d3}}\n"
	"body{font:16px/1.5 system-ui,sans-serif;margin:0 auto;padding:1rem;max-width:80rem}\n"
	"h1{margin:0;line-height:1.2;overflow-wrap:anywhere}\n"
	"h2{margin:2rem 0 .5rem}\n"
	".state{font-size:1.15rem;margin:.3rem 0}\n"
	".good{color:var(--good)}.bad{color:var(--bad);font-weight:600}\n"
	".wide{overflow-x:auto}\n"
	"img,svg{max-width:100%;height:auto}img{image-rendering:pixelated}\n"
	"figure{margin:1rem 0}figcaption{font-size:.9rem}\n"
	"table{border-collapse:collapse;font-variant-numeric:tabular-nums}\n"
	"th,td{padding:.15rem .6rem;border-bottom:1px solid var(--line);text-align:right;"
	"vertical-align:top}\n"
	"th:first-child,td:first-child,.text{text-align:left}\n"
	".id{overflow-wrap:anywhere;min-width:8rem;max-width:24rem}\n"
	".ratio,.uneven>:first-child{white-space:nowrap}\n"
	".uneven>.ratio:nth-child(3){color:var(--bad);font-weight:600}\n"
	".bar{display:inline-block;height:.7em;background:var(--bar);margin-right:.4em}\n"
	"dl{display:grid;grid-template-columns:max-content 1fr;gap:.1rem 1rem;margin:1rem 0}\n"
	"dt{font-weight:600}dd{margin:0;overflow-wrap:anywhere}\n"
	"svg text{fill:currentColor;font:12px system-ui,sans-serif}\n"
	"</style>\n";

/* ---- what is to be known within seconds --------------------------------------------- */

uint64_t page_lost_cells(const struct report_coverage *coverage)
{
	uint64_t cells = 0;

	for (uint32_t cause = 0; cause < R3RING_MISSING_CAUSES; cause++)
		cells += request_cause_is_loss(cause) ? coverage->missing[cause] : 0;
	return cells;
}

uint64_t page_run_cells(const struct report_coverage *coverage)
{
	return coverage->valid + page_lost_cells(coverage);
}

static uint64_t gaps(const struct report *report)
{
	uint64_t sum = 0;

	for (uint32_t cause = ARCHIVE_GAP_LATE; cause < ARCHIVE_GAP_CAUSES; cause++)
		sum += report->counts.gaps[cause];
	return sum;
}

static void state_of_memory(FILE *out, const struct report_coverage *coverage)
{
	if (!coverage->evicted)
		return;
	fputs("<p class=\"state bad\" id=\"memory-state\">", out);
	html_number(out, coverage->evicted);
	fputs(" of ", out);
	html_number(out, coverage->requests);
	fputs(" requests were too large for the memory: what they ran once they were given up is "
	      "in no figure of requests here. Raise <code>--max-memory</code>.</p>\n",
	      out);
}

static void state_of_losses(FILE *out, const struct report *report)
{
	const uint64_t cells = page_lost_cells(&report->coverage),
		       steps = lost_account_steps(&report->counts.lost);

	const bool more = lost_account_more(&report->counts.lost);

	if (!cells && !steps && !more && !gaps(report) && !report->problems) {
		fprintf(out,
			"<p class=\"state good\" id=\"losses-state\">Nothing was lost: every route "
			"that was %s for %s requests is here.</p>\n",
			report->kept.layer_end || report->counts.absent.count ? "to be recorded"
									      : "run",
			report->coverage.evicted ? "the other" : "these");
		return;
	}
	fputs("<p class=\"state bad\" id=\"losses-state\">Lost: ", out);
	html_number(out, cells);
	fputs(" of ", out);
	html_number(out, page_run_cells(&report->coverage));
	fputs(" cells (tokens × layers) of requests, ", out);
	fputs(more ? "at least " : "", out);
	html_number(out, steps);
	fputs(" steps by the channels, and ", out);
	html_number(out, gaps(report));
	fputs(" gaps in what was recorded", out);
	if (report->problems)
		fputs(", as far as the archive could be read; of what damage hides only the "
		      "gaps are in these figures",
		      out);
	else if (report->coverage.missing[R3RING_MISSING_GAP] && !gaps(report))
		fputs(": the cells of cause gap are of steps that the beginning or the end of the "
		      "archive cuts",
		      out);
	fputs(". <a href=\"#coverage\">By cause</a></p>\n", out);
}

static void state_of_layers(FILE *out, const struct report *report)
{
	const struct archive_kept *kept = &report->kept;

	if (!kept->layer_end)
		return;
	fprintf(out,
		"<p class=\"state\" id=\"layers-state\">Only layers %u to %u were recorded "
		"(<code>record --layers</code>); of others ",
		kept->layer_first, kept->layer_end - 1);
	html_number(out, report->coverage.missing[R3RING_MISSING_NOT_RECORDED]);
	fputs(" cells of these requests are not here.</p>\n", out);
}

static void state_of_ranks(FILE *out, const struct report *report)
{
	const struct archive_absent_ranks *absent = &report->counts.absent;
	char text[ARCHIVE_RANK_TEXT];

	if (!absent->count)
		return;
	fputs("<p class=\"state bad\" id=\"ranks-state\">Not recorded, so in no figure here: ",
	      out);
	for (uint32_t i = 0; i < absent->told; i++) {
		archive_absent_rank_text(text, &absent->rank[i]);
		fputs(i ? "; " : "", out);
		html_text(out, text);
	}
	if (absent->count > absent->told) {
		fputs("; and ", out);
		html_number(out, absent->count - absent->told);
		fputs(" more ranks", out);
	}
	fputs(".</p>\n", out);
}

static void unread(FILE *out, const struct archive_unread *unread)
{
	if (!unread->bytes)
		return;
	fputs(" For damage ", out);
	html_number(out, unread->bytes);
	fputs(" bytes were not read, with ", out);
	if (!unread->records) {
		fputs("records of a number that is not known.", out);
		return;
	}
	fputs(unread->unsized ? "at least " : "", out);
	html_number(out, unread->records);
	fputs(" records.", out);
}

static void state_of_archive(FILE *out, const struct report *report)
{
	if (report->counts.first_segment > 1 && !report->counts.lacks_beginning) {
		fputs("<p class=\"state bad\" id=\"rotated-state\">The oldest ", out);
		html_number(out, report->counts.first_segment - 1);
		fputs(" segments were removed by the recorder (--rotate): nothing here is of "
		      "what they had.</p>\n",
		      out);
	}
	if (report->problems) {
		fputs("<p class=\"state bad\" id=\"problems-state\">The archive is damaged in ",
		      out);
		html_number(out, report->problems);
		fputs(" places: this report is of what could be read.", out);
		unread(out, &report->counts.unread);
		fputs(" <a href=\"#problems\">Where</a></p>\n", out);
	}
	if (report->counts.being_written)
		fputs("<p class=\"state\">A recorder is still writing: this is of what was there "
		      "by now.</p>\n",
		      out);
}

/* Moves the uneven ones to the front, the least even first. Returns how many. */
static uint32_t find_uneven(struct balance_layer *layer, uint32_t layers)
{
	uint32_t uneven = 0;

	for (uint32_t i = 0; i < layers; i++)
		if (balance_uneven(&layer[i], BALANCE_UNEVEN))
			layer[uneven++] = layer[i];
	return uneven;
}

/* They are marked in the table, too. */
static void name_uneven(FILE *out, const struct report *report, const struct balance_layer *layer,
			uint32_t uneven)
{
	char name[HEATMAP_NAME];

	fprintf(out, "<p class=\"state%s\" id=\"uneven\">", uneven ? " bad" : "");
	if (!uneven)
		fputs("No layer is uneven", out);
	else
		fprintf(out, "Uneven: %u of %u layers", uneven, report->info.layers);
	fprintf(out, " (an expert with more than %.0f times the mean, and more than chance)",
		BALANCE_UNEVEN);
	for (uint32_t i = 0; i < uneven && i < UNEVEN_NAMED; i++) {
		figures_layer_name(&report->info.layer[layer[i].index], name);
		fprintf(out, "%s %s (%.2f)", i ? "," : ": layer", name,
			layer[i].figures.max_to_mean);
	}
	if (uneven > UNEVEN_NAMED)
		fprintf(out, " and %u more: see <a href=\"#balance\">the table</a>",
			uneven - UNEVEN_NAMED);
	fputs(".</p>\n", out);
}

static int state_of_uneven(FILE *out, const struct report *report)
{
	struct balance_layer *layer = calloc(report->info.layers + 1u, sizeof(*layer));
	int r = layer ? balance_layers(&report->info, layer) : -ENOMEM;

	if (r == 0)
		name_uneven(out, report, layer, find_uneven(layer, report->info.layers));
	free(layer);
	return r;
}

static int state_of_balance(FILE *out, const struct report *report)
{
	struct figures_worst worst;
	char name[HEATMAP_NAME];
	int r = figures_find_worst(report, &worst);

	if (r < 0)
		return r;
	figures_layer_name(&report->info.layer[worst.layer], name);
	fprintf(out,
		"<p class=\"state\" id=\"balance-state\">Least even: layer %s, whose expert %u has "
		"%.2f times the mean.",
		name, worst.expert, worst.ratio);
	if (report->placed) {
		if (report->placing.today)
			fprintf(out, " GPUs of a layer, max/mean: %.3f today,",
				report->placing.balance_today.average);
		fprintf(out, " %.3f as planned (mean of layers).",
			report->placing.balance_next.average);
	}
	fputs("</p>\n", out);
	return 0;
}

static void fact(FILE *out, const char *name, const char *id)
{
	fprintf(out, "<dt>%s</dt><dd id=\"%s\">", name, id);
}

static void facts_of_model(FILE *out, const struct report *report)
{
	fact(out, "Model", "model");
	html_text(out, report->model);
	fprintf(out, ": %u layers of %u experts, top %u</dd>\n", report->info.layers,
		report->info.experts, report->info.top_k);
	fact(out, "Counted", "counted");
	html_number(out, report->accounts.counted);
	fputs(" rows × layers of ", out);
	html_number(out, report->counts.steps);
	fputs(" steps", out);
	for (uint32_t i = 0; i < R3RING_LOAD_REASONS; i++) {
		static const char *const reasons[] = {"warm-up", "padding", "rejected drafts",
						      "recomputed"};

		if (!report->accounts.left_out[i])
			continue;
		fputs("; left out: ", out);
		html_number(out, report->accounts.left_out[i]);
		fprintf(out, " (%s)", reasons[i]);
	}
	if (report->steps_unknown) {
		fputs("; not counted, as they came in front of a first keyframe: ", out);
		html_number(out, report->steps_unknown);
		fputs(" steps", out);
	}
	fputs("</dd>\n", out);
}

static void facts_of_time(FILE *out, const struct report *report, const struct page_source *source)
{
	const struct report_options *options = source->options;

	fact(out, "When", "when");
	html_time(out, report->series.first_ns);
	fputs(" to ", out);
	html_time(out, report->series.last_ns);
	fputs(" (", out);
	html_duration(out, report->series.last_ns - report->series.first_ns);
	fputs(")</dd>\n", out);
	fact(out, "Archive", "archive");
	html_text(out, source->archive);
	fputs(", ", out);
	html_number(out, report->counts.bytes);
	fprintf(out, " bytes in %" PRIu64 " segment%s</dd>\n", report->counts.segments,
		report->counts.segments == 1 ? "" : "s");
	if (!options->instance && !options->requests && !options->since_ns && !options->until_ns)
		return;
	fact(out, "Only", "only");
	if (options->instance) {
		fputs("instance <bdi>", out);
		html_text(out, options->instance);
		fputs("</bdi> ", out);
	}
	if (options->since_ns || options->until_ns)
		fputs("what was run, and what ended, in the time that was asked for ", out);
	if (options->requests)
		fprintf(out,
			"heatmap and balance: the routes of %u requests, as assembled; time line "
			"and channels: all",
			options->requests);
	fputs("</dd>\n", out);
}

static int summary(FILE *out, const struct report *report, const struct page_source *source)
{
	int r;

	fputs("<section id=\"summary\" aria-label=\"summary\">\n", out);
	state_of_memory(out, &report->coverage);
	state_of_losses(out, report);
	state_of_layers(out, report);
	state_of_ranks(out, report);
	state_of_archive(out, report);
	r = state_of_balance(out, report);
	if (r == 0)
		r = state_of_uneven(out, report);
	fputs("<dl>\n", out);
	facts_of_model(out, report);
	facts_of_time(out, report, source);
	fputs("</dl>\n</section>\n", out);
	return r;
}

/* ---- the heatmap --------------------------------------------------------------------- */

static int heatmap(FILE *out, const struct report *report, const char *title,
		   struct r3ring_error *err)
{
	struct picture picture;
	struct figures_worst worst;
	char alt[200], name[HEATMAP_NAME];
	int r = figures_draw_load(report, title, &picture);

	if (r < 0)
		return r;
	r = figures_find_worst(report, &worst);
	figures_layer_name(&report->info.layer[worst.layer], name);
	snprintf(
		alt, sizeof(alt),
		"Heatmap of %u layers by %u experts. The least even is layer %s: its expert %u has "
		"%.2f times the mean. The table below has the figures.",
		report->info.layers, report->info.experts, name, worst.expert, worst.ratio);
	fputs("<section id=\"heatmap\">\n<h2>Load of experts</h2>\n<figure>", out);
	if (r == 0)
		r = html_picture(out, &picture, alt, err);
	fputs("<figcaption>The scale is linear from 0 to the largest; grey is an expert to which "
	      "no token went. Each cell is a rectangle of one colour.</figcaption></figure>\n"
	      "</section>\n",
	      out);
	picture_free(&picture);
	return r;
}

static void problems(FILE *out, const struct report *report)
{
	if (!report->problems)
		return;
	fputs("<section id=\"problems\">\n<h2>Damage</h2>\n<ul>\n", out);
	for (uint32_t i = 0; i < REPORT_PROBLEMS_TOLD && i < report->problems; i++) {
		fputs("<li>", out);
		html_text(out, report->problem[i] ? report->problem[i] : "?");
		fputs("</li>\n", out);
	}
	fputs("</ul>\n", out);
	if (report->problems > REPORT_PROBLEMS_TOLD)
		fprintf(out, "<p>and %" PRIu64 " more.</p>\n",
			report->problems - REPORT_PROBLEMS_TOLD);
	fputs("<p><code>r3ring verify</code> says all that is wrong with it.</p>\n</section>\n",
	      out);
}

int page_write(FILE *out, const struct report *report, const struct page_source *source,
	       struct r3ring_error *err)
{
	int r;

	fputs(head, out);
	fputs("<title>", out);
	html_text(out, source->title);
	fputs("</title>\n", out);
	fputs(style, out);
	fputs("</head>\n<body>\n<main>\n<h1><bdi>", out);
	html_text(out, source->title);
	fputs("</bdi></h1>\n", out);
	r = summary(out, report, source);
	if (r == 0)
		r = heatmap(out, report, source->title, err);
	if (r == 0)
		r = page_balance(out, report);
	if (r == 0)
		r = page_time(out, report, err);
	page_coverage(out, report);
	page_channels(out, report);
	page_requests(out, report);
	problems(out, report);
	fputs("<footer><p>Made by r3ring " R3RING_VERSION ".</p></footer>\n</main>\n</body>\n"
	      "</html>\n",
	      out);
	return r < 0 && !err->text[0] ? r3ring_error_set(err, r, "no memory for the page") : r;
}
