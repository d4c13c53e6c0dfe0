/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/font.h"
#include "report/heatmap.h"

#define MARGIN 16u
#define GAP 8u
#define SCALE 2u /* of letters */
#define LINE (SCALE * FONT_HEIGHT)
#define LETTER (SCALE * (FONT_WIDTH + 1))
#define ROW_NAME (6 * LETTER)
#define TICK 5u
#define BAR_WIDTH 20u
#define BAR_HEIGHT 128u /* at least */
#define BAR_NAME (7 * LETTER)
#define WIDTH_WANTED 960u
#define HEIGHT_WANTED 640u
#define CELL_MOST 24u

static uint32_t at_least(uint32_t value, uint32_t least)
{
	return value > least ? value : least;
}

static uint32_t at_most(uint32_t value, uint32_t most)
{
	return value < most ? value : most;
}

static uint32_t cell_size(uint32_t wanted, uint32_t cells)
{
	return at_most(at_least(wanted / at_least(cells, 1), 1), CELL_MOST);
}

static uint32_t text_width(const char *text)
{
	return picture_text_width(text, SCALE);
}

static uint32_t bar_height(const struct heatmap *heat, const struct heatmap_place *place)
{
	return at_least(heat->rows * place->cell_height, BAR_HEIGHT);
}

struct heatmap_place heatmap_place(const struct heatmap *heat)
{
	struct heatmap_place place = {
		.left = MARGIN + ROW_NAME + GAP + TICK,
		.top = MARGIN + 3 * (LINE + GAP) + GAP,
		.cell_width = cell_size(WIDTH_WANTED, heat->columns),
		.cell_height = cell_size(HEIGHT_WANTED, heat->rows),
	};
	uint32_t lines = at_least(text_width(heat->title), text_width(heat->explained));

	place.width = place.left + heat->columns * place.cell_width + 3 * GAP + BAR_WIDTH + GAP +
		      BAR_NAME + MARGIN;
	place.width = at_least(place.width, lines + 2 * MARGIN);
	place.height = place.top + bar_height(heat, &place) + 3 * GAP + 2 * LINE + MARGIN;
	return place;
}

uint8_t heatmap_colour(const struct heatmap *heat, double value)
{
	if (!(value > 0))
		return COLOUR_NONE;
	if (value <= heat->base)
		return COLOUR_FIRST;
	return colour_of(value - heat->base, heat->top - heat->base);
}

/* ---- cells and axes ----------------------------------------------------------- */

static void draw_cells(const struct heatmap *heat, const struct heatmap_place *place,
		       struct picture *picture)
{
	for (uint32_t row = 0; row < heat->rows; row++) {
		const double *value = heat->value + (size_t)row * heat->columns;

		for (uint32_t column = 0; column < heat->columns; column++)
			picture_fill(picture, place->left + column * place->cell_width,
				     place->top + row * place->cell_height, place->cell_width,
				     place->cell_height, heatmap_colour(heat, value[column]));
	}
}

/* Each how many cells are named: a power of two, so that names do not touch. */
static uint32_t stride(uint32_t cell, uint32_t room)
{
	uint32_t cells = 1;

	while (cells * cell < room)
		cells *= 2;
	return cells;
}

static void name_rows(const struct heatmap *heat, const struct heatmap_place *place,
		      struct picture *picture)
{
	uint32_t step = stride(place->cell_height, LINE + 2);

	for (uint32_t row = 0; row < heat->rows; row += step) {
		uint32_t y = place->top + row * place->cell_height + place->cell_height / 2;
		char name[HEATMAP_NAME];

		heat->name_row(heat->ctx, row, name);
		picture_fill(picture, place->left - TICK, y, TICK - 1, 1, COLOUR_INK);
		picture_text(picture,
			     place->left - TICK - GAP - at_most(text_width(name), ROW_NAME),
			     y - LINE / 2, SCALE, name);
	}
	picture_text(picture, MARGIN, place->top - LINE - 2 * GAP, SCALE, heat->down);
}

static void name_columns(const struct heatmap *heat, const struct heatmap_place *place,
			 struct picture *picture)
{
	uint32_t step = stride(place->cell_width, 6 * LETTER);
	uint32_t below = place->top + heat->rows * place->cell_height;

	for (uint32_t column = 0; column < heat->columns; column += step) {
		uint32_t x = place->left + column * place->cell_width + place->cell_width / 2;
		char name[HEATMAP_NAME];

		heat->name_column(heat->ctx, column, name);
		picture_fill(picture, x, below + 1, 1, TICK - 1, COLOUR_INK);
		picture_text(picture, x - at_most(text_width(name) / 2, x), below + GAP, SCALE,
			     name);
	}
	picture_text(picture, place->left, below + 2 * GAP + LINE, SCALE, heat->across);
}

/* ---- the scale ------------------------------------------------------------------ */

static void name_value(const struct heatmap *heat, struct picture *picture, uint32_t x, uint32_t y,
		       uint32_t height, double value)
{
	double share = heat->top > heat->base ? (value - heat->base) / (heat->top - heat->base) : 0;
	uint32_t at = y + (uint32_t)lround((1 - share) * (height - 1));
	char name[HEATMAP_NAME];

	snprintf(name, sizeof(name), "%.*f", value >= 100 ? 0 : 2, value);
	picture_fill(picture, x - GAP, at, TICK, 1, COLOUR_INK);
	picture_text(picture, x, at - LINE / 2, SCALE, name);
}

static void draw_scale(const struct heatmap *heat, const struct heatmap_place *place,
		       struct picture *picture)
{
	uint32_t x = place->left + heat->columns * place->cell_width + 3 * GAP;
	uint32_t height = bar_height(heat, place), y = place->top;
	double middle = heat->base < 1 && heat->top > 2 ? 1 : (heat->base + heat->top) / 2;

	for (uint32_t i = 0; i < height; i++)
		picture_fill(picture, x, y + i, BAR_WIDTH, 1,
			     (uint8_t)(COLOUR_FIRST +
				       (COLOUR_STEPS - 1) * (height - 1 - i) / (height - 1)));
	name_value(heat, picture, x + BAR_WIDTH + GAP, y, height, heat->base);
	name_value(heat, picture, x + BAR_WIDTH + GAP, y, height, middle);
	name_value(heat, picture, x + BAR_WIDTH + GAP, y, height, heat->top);
	picture_text(picture, x, y - LINE - 2 * GAP, SCALE, heat->unit);
	picture_fill(picture, x, y + height + GAP, BAR_WIDTH, LINE, COLOUR_NONE);
	picture_text(picture, x + BAR_WIDTH + GAP, y + height + GAP, SCALE, heat->none);
}

int heatmap_draw(const struct heatmap *heat, struct picture *picture)
{
	struct heatmap_place place = heatmap_place(heat);
	int r = picture_make(picture, place.width, place.height);

	if (r < 0)
		return r;
	picture_text(picture, MARGIN, MARGIN, SCALE, heat->title);
	picture_text(picture, MARGIN, MARGIN + LINE + GAP, SCALE, heat->explained);
	draw_cells(heat, &place, picture);
	name_rows(heat, &place, picture);
	name_columns(heat, &place, picture);
	draw_scale(heat, &place, picture);
	return 0;
}
