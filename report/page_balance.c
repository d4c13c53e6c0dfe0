/* SPDX-License-Identifier: Apache-2.0 */
/* How even each layer is, over its experts and over GPUs before and after a plan. */
#include <errno.h>

#include "monitor/balance.h"
#include "report/figures.h"
#include "report/html.h"
#include "report/page.h"

#define BAR_EMS 6.0 /* of the largest */

static void ratio(FILE *out, double value, double top)
{
	fprintf(out,
		"<td class=\"text ratio\"><span class=\"bar\" "
		"style=\"width:%.2fem\"></span>%.3f</td>",
		top > 0 ? BAR_EMS * value / top : 0, value);
}

static void head(FILE *out, const struct report *report)
{
	fputs("<div class=\"wide\"><table>\n<thead><tr><th scope=\"col\">layer</th>"
	      "<th scope=\"col\">tokens</th><th scope=\"col\" class=\"text\">experts, max/mean</th>"
	      "<th scope=\"col\">hottest</th><th scope=\"col\">its share</th>"
	      "<th scope=\"col\">hottest 8</th><th scope=\"col\">Gini</th>"
	      "<th scope=\"col\">without tokens</th>",
	      out);
	if (report->placed && report->placing.today)
		fputs("<th scope=\"col\" class=\"text\">GPUs today, max/mean</th>", out);
	if (report->placed)
		fputs("<th scope=\"col\" class=\"text\">GPUs as planned</th>", out);
	fputs("</tr></thead>\n<tbody>\n", out);
}

static double worst_gpus(const struct report *report)
{
	double today = report->placing.balance_today.worst;

	return today > report->placing.balance_next.worst ? today
							  : report->placing.balance_next.worst;
}

static int row(FILE *out, const struct report *report, uint32_t layer, double top)
{
	struct r3ring_load_figures figures;
	char name[HEATMAP_NAME];
	bool uneven;
	int r = figures_measure(report, layer, &figures);

	if (r < 0)
		return r;
	figures_layer_name(&report->info.layer[layer], name);
	uneven = figures.max_to_mean > BALANCE_UNEVEN &&
		 figures.max_to_mean > balance_chance(figures.mean, report->info.experts);
	fprintf(out, "<tr class=\"layer%s\"><th scope=\"row\">%s%s</th><td>",
		uneven ? " uneven" : "", name, uneven ? " uneven" : "");
	html_number(out, (uint64_t)report->info.rows[layer]);
	fputs("</td>", out);
	ratio(out, figures.max_to_mean, top);
	fprintf(out, "<td>%u</td><td>%.2f %%</td><td>%.1f %%</td><td>%.3f</td><td>%u</td>",
		figures.most, figures.sum > 0 ? 100 * figures.max / figures.sum : 0,
		100 * figures.hottest, figures.gini, figures.dead);
	if (report->placed && report->placing.today)
		ratio(out, report->placing.ratio_today[layer], worst_gpus(report));
	if (report->placed)
		ratio(out, report->placing.ratio_next[layer], worst_gpus(report));
	fputs("</tr>\n", out);
	return 0;
}

static void placing(FILE *out, const struct report *report)
{
	const struct placing *placing = &report->placing;

	if (!report->placed) {
		fputs("<p>How GPUs would share this load, and would after a plan: "
		      "<code>--gpus N --replicas N</code>.</p>\n",
		      out);
		return;
	}
	fprintf(out, "<p id=\"plan\">Planned: %u physical experts of a layer on %u GPUs.",
		placing->next->physical, placing->next->gpus);
	if (!placing->today)
		fputs(" Today is not known: no EPLB map was captured, and the GPUs do not divide "
		      "the experts.",
		      out);
	else if (placing->captured)
		fprintf(out, " Today: the captured map of epoch %llu, %u physical on %u GPUs.",
			(unsigned long long)placing->today->epoch, placing->today->physical,
			placing->today->gpus);
	else
		fputs(" Today, assumed: experts in order over the GPUs.", out);
	fputs(" A layer waits for its most loaded GPU: at 1.3 all others idle 0.3 of the mean. "
	      "<code>r3ring plan</code> prints the map.</p>\n",
	      out);
}

int page_balance(FILE *out, const struct report *report)
{
	struct figures_worst worst;
	int r = figures_find_worst(report, &worst);

	fputs("<section id=\"balance\">\n<h2>Balance of layers</h2>\n", out);
	placing(out, report);
	head(out, report);
	for (uint32_t i = 0; r == 0 && i < report->info.layers; i++)
		r = row(out, report, i, worst.ratio);
	fputs("</tbody></table></div>\n</section>\n", out);
	return r;
}
