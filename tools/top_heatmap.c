/* SPDX-License-Identifier: Apache-2.0 */
/* Layers x experts, folded to what there is room for; beside it how even each layer is. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "monitor/balance.h"
#include "monitor/heat.h"
#include "tools/quantity.h"
#include "tools/top_frame.h"

#define LABEL_MOST 12u
#define RATIO_COLUMNS 5u /* "3.74x", "12.3x", "123x" */

struct heatmap {
	const struct top_frame *frame;
	const struct top_load *load;
	struct grid *grid;
	struct heat_fold fold;
	uint32_t label, cell; /* columns of a label, of a cell */
	double *cells;
	struct heat_scale scale;
};

static uint32_t last_layer(const struct heatmap *map, uint32_t row)
{
	uint32_t end = (row + 1) * map->fold.layers_each;

	return end < map->fold.layers ? end - 1 : map->fold.layers - 1;
}

static void label_of(const struct heatmap *map, uint32_t row, char text[32])
{
	int32_t first = map->load->layer[row * map->fold.layers_each].layer_id;
	int32_t last = map->load->layer[last_layer(map, row)].layer_id;

	if (first == last)
		snprintf(text, 32, "%" PRId32, first);
	else
		snprintf(text, 32, "%" PRId32 "-%" PRId32, first, last);
}

static uint32_t label_width(const struct heatmap *map)
{
	uint32_t width = 0;
	char text[32];

	for (uint32_t row = 0; row < map->fold.rows; row++) {
		label_of(map, row, text);
		if (strlen(text) > width)
			width = (uint32_t)strlen(text);
	}
	return width < LABEL_MOST ? width : LABEL_MOST;
}

static uint32_t digits_of(uint32_t number)
{
	uint32_t digits = 1;

	for (; number > 9; number /= 10)
		digits++;
	return digits;
}

/* Of a line without its cells: label, two bars, ratio, a space, an expert. */
static uint32_t columns_beside(const struct heatmap *map)
{
	return map->label + 2 + RATIO_COLUMNS + 2 + digits_of(map->fold.experts - 1);
}

/* Layers first, which decide how wide labels are; then experts into what is left. */
static bool fit(struct heatmap *map, uint32_t rows)
{
	const struct r3ring_load_info *info = &map->load->info;
	uint32_t taken, columns = map->grid->columns;

	map->fold = heat_fold(info->layers, info->experts, rows, 1);
	if (!map->fold.rows)
		return false;
	map->label = label_width(map);
	taken = columns_beside(map);
	if (columns <= taken)
		return false;
	map->fold = heat_fold(info->layers, info->experts, rows, columns - taken);
	map->cell = (columns - taken) / map->fold.columns;
	return true;
}

/* ---- drawing --------------------------------------------------------------- */

/* The worst of the layers that are folded into a row. */
static const struct balance_layer *worst_of(const struct heatmap *map, uint32_t row)
{
	uint32_t best = map->fold.layers;

	for (uint32_t layer = row * map->fold.layers_each; layer <= last_layer(map, row); layer++) {
		if (map->load->rank[layer] < best)
			best = map->load->rank[layer];
	}
	return &map->load->balance[best];
}

static void draw_beside(const struct heatmap *map, uint32_t row, uint32_t at, uint32_t column)
{
	const struct balance_layer *worst = worst_of(map, row);
	enum grid_style style = balance_uneven(worst, BALANCE_UNEVEN) ? GRID_WARN : GRID_PLAIN;

	char ratio[16];

	if (worst->figures.sum > 0)
		grid_print(map->grid, at, column, style, "%s e%" PRIu32,
			   top_ratio(ratio, worst->figures.max_to_mean), worst->figures.most);
	else
		grid_text(map->grid, at, column, GRID_FAINT, "no load");
}

static void draw_row(const struct heatmap *map, uint32_t row, uint32_t at)
{
	uint32_t column = map->label;
	char text[32];

	label_of(map, row, text);
	grid_print(map->grid, at, 0, GRID_FAINT, "%*s", (int)map->label, text);
	column = grid_text(map->grid, at, column, GRID_FAINT, "|");
	for (uint32_t i = 0; i < map->fold.columns * map->cell; i++) {
		double value = map->cells[row * map->fold.columns + i / map->cell];

		grid_heat(map->grid, at, column++, heat_level(&map->scale, value));
	}
	column = grid_text(map->grid, at, column, GRID_FAINT, "|");
	draw_beside(map, row, at, column);
}

/* Of what a cell shows the largest, where it stands for several. Beside an age and a count of
 * tokens there is no room for more at 80 columns. */
static void say_fold(const struct heatmap *map, char *text, size_t size)
{
	const struct heat_fold *fold = &map->fold;

	if (fold->experts_each > 1 && fold->layers_each > 1)
		snprintf(text, size, "max of %u layers x %u experts", fold->layers_each,
			 fold->experts_each);
	else if (fold->experts_each > 1)
		snprintf(text, size, "layers by max of %u experts", fold->experts_each);
	else if (fold->layers_each > 1)
		snprintf(text, size, "max of %u layers, by experts", fold->layers_each);
	else
		snprintf(text, size, "layers by experts");
}

static double rows_of(const struct top_load *load)
{
	double most = 0;

	for (uint32_t i = 0; i < load->info.layers; i++)
		most = load->rows[i] > most ? load->rows[i] : most;
	return most;
}

static void draw_head(const struct heatmap *map, uint32_t at)
{
	const struct top_frame *frame = map->frame;
	char fold[64], age[QUANTITY_TEXT], most[16];
	uint32_t column = 0;

	grid_paint(map->grid, at, 0, GRID_HEAD);
	if (top_is_past(frame))
		column = grid_print(map->grid, at, 0, GRID_WARN, "%s: %s ago; ", top_is_past(frame),
				    quantity_duration(age, top_load_age(frame)));
	say_fold(map, fold, sizeof(fold));
	grid_print(map->grid, at, column, GRID_HEAD, "%s; %s to %s; %.0f tokens", fold,
		   frame->logarithmic ? "log" : "linear", top_ratio(most, map->scale.max),
		   rows_of(map->load));
}

static void draw(struct heatmap *map, struct top_space *space)
{
	const struct heat_fold *fold = &map->fold;

	heat_cells(fold, map->load->ratios, map->cells);
	map->scale = (struct heat_scale){
		.max = heat_max(map->cells, fold->rows * fold->columns),
		.levels = GRID_HEAT_LEVELS,
		.octaves = map->frame->logarithmic ? GRID_HEAT_LEVELS : 0,
	};
	draw_head(map, space->row++);
	for (uint32_t row = 0; row < fold->rows; row++)
		draw_row(map, row, space->row++);
}

/* ---- why there is none ------------------------------------------------------ */

static void draw_absence(const struct top_frame *frame, struct top_space *space)
{
	struct flow flow = {.indent = 2};
	const char *what = "no step was seen yet";

	if (frame->follower.tail.state == TAIL_WAITING && frame->follower.tail.error[0])
		what = frame->follower.tail.error;
	else if (frame->ended)
		what = "the engine has ended, and no step of it was seen";
	else if (!frame->instance[0])
		what = "no engine is there yet; it will be shown as soon as one is";
	flow_add(&flow, GRID_FAINT, "no load to show: %s", what);
	flow_draw(&flow, space);
}

void top_draw_heatmap(const struct top_frame *frame, struct top_space *space)
{
	struct heatmap map = {.frame = frame, .load = frame->load, .grid = space->grid};

	if (space->row >= space->end)
		return;
	if (!frame->load || frame->load->code || !frame->load->info.layers) {
		draw_absence(frame, space);
		return;
	}
	if (space->end - space->row < 2 || !fit(&map, space->end - space->row - 1)) {
		grid_text(space->grid, space->row, 0, GRID_FAINT, "no room for the heatmap");
		return;
	}
	map.cells = calloc((size_t)map.fold.rows * map.fold.columns, sizeof(*map.cells));
	if (map.cells)
		draw(&map, space);
	free(map.cells);
}
