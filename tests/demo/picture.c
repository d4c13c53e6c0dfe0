/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small picture of expert load.
 */
#include <math.h>

#include "tests/demo/picture.h"

#define LINES_MAX 12
#define COLUMNS_MAX 64
#define SHADES 9

/* The load, folded: a cell is the mean over its layers and experts, relative to
 * a balanced load, which is 1. */
struct picture {
	double cells[LINES_MAX][COLUMNS_MAX];
	uint32_t lines, columns;
	double least, most;
};

/* First of the things that fall into part @part of @parts. */
static uint32_t part_begin(uint32_t things, uint32_t part, uint32_t parts)
{
	return (uint32_t)((uint64_t)things * part / parts);
}

static double mean_load(const uint32_t *load, uint32_t layers, uint32_t experts,
			const struct picture *picture, uint32_t line, uint32_t column)
{
	uint32_t layer_end = part_begin(layers, line + 1, picture->lines);
	uint32_t expert_end = part_begin(experts, column + 1, picture->columns);
	double sum = 0;
	uint32_t count = 0;

	for (uint32_t layer = part_begin(layers, line, picture->lines); layer < layer_end;
	     layer++) {
		for (uint32_t expert = part_begin(experts, column, picture->columns);
		     expert < expert_end; expert++) {
			sum += load[(size_t)layer * experts + expert];
			count++;
		}
	}
	return sum / count;
}

static void fold(struct picture *picture, const uint32_t *load, uint32_t layers, uint32_t experts)
{
	double balanced = 0;

	for (size_t i = 0; i < (size_t)layers * experts; i++)
		balanced += load[i];
	balanced /= (double)layers * experts;
	picture->least = INFINITY;
	for (uint32_t line = 0; line < picture->lines; line++) {
		for (uint32_t column = 0; column < picture->columns; column++) {
			double mean = mean_load(load, layers, experts, picture, line, column);
			double cell = balanced > 0 ? mean / balanced : 0;

			picture->cells[line][column] = cell;
			picture->least = fmin(picture->least, cell);
			picture->most = fmax(picture->most, cell);
		}
	}
}

static void draw_cell(FILE *out, const struct picture *picture, double cell, bool blocks)
{
	static const char *const block[SHADES] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
	static const char letters[] = " .:-=+*#@";
	double range = picture->most - picture->least;
	int shade = range > 0 ? (int)((cell - picture->least) / range * (SHADES - 1) + 0.5) : 0;

	if (blocks)
		fputs(block[shade], out);
	else
		fputc(letters[shade], out);
}

void picture_draw(FILE *out, const uint32_t *load, const int32_t *layer_ids, uint32_t layers,
		  uint32_t experts, bool blocks)
{
	struct picture picture = {
		.lines = layers < LINES_MAX ? layers : LINES_MAX,
		.columns = experts < COLUMNS_MAX ? experts : COLUMNS_MAX,
	};

	fold(&picture, load, layers, experts);
	for (uint32_t line = 0; line < picture.lines; line++) {
		int32_t first = layer_ids[part_begin(layers, line, picture.lines)];
		int32_t last = layer_ids[part_begin(layers, line + 1, picture.lines) - 1];

		fprintf(out, "  layers %2d-%-2d  |", first, last);
		for (uint32_t column = 0; column < picture.columns; column++)
			draw_cell(out, &picture, picture.cells[line][column], blocks);
		fputs("|\n", out);
	}
	fprintf(out,
		"  %u layers folded to %u lines, %u experts to %u columns; a balanced expert is"
		" 1.00,\n  the picture goes from %.2f to %.2f\n",
		layers, picture.lines, experts, picture.columns, picture.least, picture.most);
}
