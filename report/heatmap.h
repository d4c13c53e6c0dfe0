/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A heatmap with its title, axes and scale. Each cell is a rectangle of one colour, all
 * of the same size: what a dot shows can be read back.
 */
#ifndef REPORT_HEATMAP_H
#define REPORT_HEATMAP_H

#include "report/picture.h"

#define HEATMAP_NAME 16

struct heatmap {
	const char *title, *explained; /* ASCII; a line each */
	const char *down, *across;     /* what rows and columns are */
	const char *unit;              /* of the scale, short */
	const char *none;              /* what a value of 0 is, short */
	uint32_t rows, columns;
	const double *value; /* [rows][columns] */
	double base, top;    /* of the scale; what is below `base` has its first colour */
	void (*name_row)(const void *ctx, uint32_t row, char name[HEATMAP_NAME]);
	void (*name_column)(const void *ctx, uint32_t column, char name[HEATMAP_NAME]);
	const void *ctx;
};

/* Where cells are: that of row r and column c begins at (left + c * cell_width, top + r *
 * cell_height). */
struct heatmap_place {
	uint32_t left, top, cell_width, cell_height;
	uint32_t width, height; /* of the whole picture */
};

struct heatmap_place heatmap_place(const struct heatmap *heat);

/* The colour of a cell. */
uint8_t heatmap_colour(const struct heatmap *heat, double value);

/* Returns 0 or -ENOMEM; pairs with picture_free(). */
int heatmap_draw(const struct heatmap *heat, struct picture *picture);

#endif
