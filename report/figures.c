/* SPDX-License-Identifier: Apache-2.0 */
#include "report/figures.h"

#include <errno.h>
#include <stdlib.h>

#include "monitor/heat.h"

/* ---- layers -------------------------------------------------------------------- */

void figures_layer_name(const struct r3ring_layer_entry *layer, char name[HEATMAP_NAME])
{
	snprintf(name, HEATMAP_NAME, "%s%d", layer->kind == R3RING_LAYER_MTP ? "mtp " : "",
		 layer->layer_id);
}

int figures_measure(const struct report *report, uint32_t layer,
		    struct r3ring_load_figures *figures)
{
	const struct r3ring_load_info *info = &report->info;

	return r3ring_load_measure(info->counts + (size_t)layer * info->experts, info->experts,
				   FIGURES_HOTTEST, figures);
}

int figures_find_worst(const struct report *report, struct figures_worst *worst)
{
	struct r3ring_load_figures figures;
	int r = 0;

	*worst = (struct figures_worst){0};
	for (uint32_t i = 0; r == 0 && i < report->info.layers; i++) {
		r = figures_measure(report, i, &figures);
		if (r == 0 && figures.max_to_mean > worst->ratio)
			*worst = (struct figures_worst){i, figures.most, figures.max_to_mean};
	}
	return r;
}

static void name_layer(const void *ctx, uint32_t row, char name[HEATMAP_NAME])
{
	const struct report *report = ctx;

	figures_layer_name(&report->info.layer[row], name);
}

/* ---- layers x experts ------------------------------------------------------------ */

static void name_expert(const void *ctx, uint32_t column, char name[HEATMAP_NAME])
{
	(void)ctx;
	snprintf(name, HEATMAP_NAME, "%u", column);
}

int figures_draw_load(const struct report *report, const char *title, struct picture *picture)
{
	const struct r3ring_load_info *info = &report->info;
	double *value = malloc((size_t)info->layers * info->experts * sizeof(*value));
	struct heatmap heat = {
		.title = title,
		.explained = "Each cell: tokens of an expert / mean of its layer",
		.down = "layer",
		.across = "expert",
		.unit = "x mean",
		.none = "none",
		.rows = info->layers,
		.columns = info->experts,
		.value = value,
		.name_row = name_layer,
		.name_column = name_expert,
		.ctx = report,
	};
	int r;

	if (!value)
		return -ENOMEM;
	heat_ratios(info->counts, info->layers, info->experts, value);
	heat.top = heat_max(value, info->layers * info->experts);
	r = heatmap_draw(&heat, picture);
	free(value);
	return r;
}

/* ---- layers x time ----------------------------------------------------------------- */

bool figures_time(const struct series *series, uint32_t *first, uint32_t *count)
{
	uint32_t end = 0;

	*first = SERIES_PIECES;
	for (uint32_t i = 0; i < SERIES_PIECES; i++) {
		const struct series_piece *piece = &series->piece[i];

		if (!piece->counted && !piece->lost && !piece->steps)
			continue;
		*first = i < *first ? i : *first;
		end = i + 1;
	}
	*count = end ? end - *first : 0;
	return end;
}

static void name_time(const void *ctx, uint32_t column, char name[HEATMAP_NAME])
{
	const struct report *report = ctx;
	double seconds = (double)(column * report->series.width_ns) / 1e9;

	snprintf(name, HEATMAP_NAME, seconds < 10 ? "%.1f" : "%.0f", seconds);
}

static double fill_balance(const struct series *series, uint32_t first, uint32_t count,
			   double *value)
{
	double top = 0;

	for (uint32_t layer = 0; layer < series->layers; layer++) {
		for (uint32_t i = 0; i < count; i++, value++) {
			*value = series_balance(series, layer, first + i);
			top = *value > top ? *value : top;
		}
	}
	return top;
}

int figures_draw_balance(const struct report *report, struct picture *picture)
{
	const struct series *series = &report->series;
	uint32_t first, count;
	struct heatmap heat = {
		.title = "Balance over time",
		.explained = "Each cell: hottest expert / mean of its layer, in that time",
		.down = "layer",
		.across = "seconds from the beginning",
		.unit = "max/mean",
		.none = "none",
		.rows = series->layers,
		.base = 1,
		.name_row = name_layer,
		.name_column = name_time,
		.ctx = report,
	};
	double *value;
	int r = -ENODATA;

	/* Of single requests the layers need not be those of all steps. */
	if (!figures_time(series, &first, &count) || count < 2 ||
	    series->layers != report->info.layers)
		return -ENODATA;
	value = malloc((size_t)series->layers * count * sizeof(*value));
	if (!value)
		return -ENOMEM;
	heat.value = value;
	heat.columns = count;
	heat.top = fill_balance(series, first, count, value);
	if (heat.top > 0)
		r = heatmap_draw(&heat, picture);
	free(value);
	return r;
}
