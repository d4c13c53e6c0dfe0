/* SPDX-License-Identifier: Apache-2.0 */
/* Load over time: how much, and how even. */
#include <errno.h>

#include "report/figures.h"
#include "report/html.h"
#include "report/page.h"

#define CHART_WIDTH 960.0
#define CHART_HEIGHT 160.0

/* Tokens a second of a layer, as a mean over the layers. */
static double rate(const struct report *report, uint64_t cells)
{
	return (double)cells / report->series.layers / ((double)report->series.width_ns / 1e9);
}

static double most(const struct report *report, uint32_t first, uint32_t count)
{
	double top = 0;

	for (uint32_t i = first; i < first + count; i++) {
		const struct series_piece *piece = &report->series.piece[i];
		double value = rate(report, piece->counted + piece->lost);

		top = value > top ? value : top;
	}
	return top;
}

static void bar(FILE *out, double x, double width, double from, double height, const char *colour,
		const char *what, double value)
{
	if (height > 0)
		fprintf(out,
			"<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" "
			"fill=\"var(--%s)\">"
			"<title>%s: %.1f tokens/s</title></rect>\n",
			x, CHART_HEIGHT - from - height, width, height, colour, what, value);
}

static void bars(FILE *out, const struct report *report, uint32_t first, uint32_t count)
{
	const double width = CHART_WIDTH / count, top = most(report, first, count);

	for (uint32_t i = 0; top > 0 && i < count; i++) {
		const struct series_piece *piece = &report->series.piece[first + i];
		double counted = rate(report, piece->counted), lost = rate(report, piece->lost);
		double height = CHART_HEIGHT * counted / top;

		bar(out, i * width, width * 0.9, 0, height, "bar", "counted", counted);
		bar(out, i * width, width * 0.9, height, CHART_HEIGHT * lost / top, "bad", "lost",
		    lost);
	}
	fprintf(out, "<text x=\"0\" y=\"-4\">%.0f tokens/s</text>\n", top);
}

static void chart(FILE *out, const struct report *report, uint32_t first, uint32_t count)
{
	fprintf(out,
		"<figure><svg viewBox=\"0 -16 %.0f %.0f\" width=\"%.0f\" role=\"img\" "
		"aria-label=\"tokens a second over time\">\n",
		CHART_WIDTH, CHART_HEIGHT + 36, CHART_WIDTH);
	bars(out, report, first, count);
	fprintf(out,
		"<text x=\"0\" y=\"%.0f\">0 s</text><text x=\"%.0f\" y=\"%.0f\" "
		"text-anchor=\"end\">",
		CHART_HEIGHT + 16, CHART_WIDTH, CHART_HEIGHT + 16);
	html_duration(out, count * report->series.width_ns);
	fputs("</text>\n</svg><figcaption>Tokens a second that were run, as a mean over layers; "
	      "red: lost. A bar is ",
	      out);
	html_duration(out, report->series.width_ns);
	fputs(" long.</figcaption></figure>\n", out);
}

int page_time(FILE *out, const struct report *report, struct r3ring_error *err)
{
	struct picture picture;
	uint32_t first, count;
	int r = 0;

	if (!figures_time(&report->series, &first, &count) || !report->series.layers)
		return 0;
	fputs("<section id=\"time\">\n<h2>Load over time</h2>\n", out);
	chart(out, report, first, count);
	r = figures_draw_balance(report, &picture);
	if (r == 0) {
		fputs("<figure>", out);
		r = html_picture(out, &picture,
				 "Heatmap of the balance of layers over time: max/mean of experts.",
				 err);
		fputs("</figure>\n", out);
		picture_free(&picture);
	}
	fputs("</section>\n", out);
	return r == -ENODATA ? 0 : r;
}
