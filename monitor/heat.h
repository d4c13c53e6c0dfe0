/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Load as a picture of cells: layers x experts, folded to what a screen has room for, and
 * coloured by a scale. Calculation only; any thread.
 */
#ifndef MONITOR_HEAT_H
#define MONITOR_HEAT_H

#include <stdbool.h>
#include <stdint.h>

/*
 * How layers and experts go into cells: each row stands for `layers_each` layers, each
 * column for `experts_each` experts, the last ones for what is left. Whole numbers, so that
 * no expert is in two columns.
 */
struct heat_fold {
	uint32_t layers, experts;
	uint32_t rows, columns; /* cells, at most what there was room for */
	uint32_t layers_each, experts_each;
};

/*
 * The finest fold that fits.
 *
 * @rows, @columns: room, in cells. Without room, layers or experts it has no cells.
 */
struct heat_fold heat_fold(uint32_t layers, uint32_t experts, uint32_t rows, uint32_t columns);

/*
 * Each cell is the largest value that is folded into it: one hot expert is what is looked
 * for, and a mean would hide it among its neighbours.
 *
 * @values: [fold->layers][fold->experts]
 * @cells:  [fold->rows][fold->columns]
 */
void heat_cells(const struct heat_fold *fold, const double *values, double *cells);

/*
 * Each value over the mean of its layer: 1 is what every expert would have if the layer were
 * even, so that layers compare whatever rows they had. All 0 in a layer without load.
 *
 * @counts, @ratios: [layers][experts]; may be the same.
 */
void heat_ratios(const double *counts, uint32_t layers, uint32_t experts, double *ratios);

/* The largest of [count] values; 0 of none. */
double heat_max(const double *values, uint32_t count);

struct heat_scale {
	double max;       /* the value that has the highest level */
	uint32_t levels;  /* highest level; at least 1 */
	uint32_t octaves; /* 0: linear. Else logarithmic: levels are spread over so many
			   * halvings of max */
};

/*
 * The level of a value: 0 only for nothing at all, 1 to `levels` for more, `levels` for max
 * and beyond. Linear: level l is for (l - 1, l] / levels of max. Logarithmic, with as many
 * octaves as levels: each level is for twice the values of the one below it, and the
 * lowest for all that is less.
 */
uint32_t heat_level(const struct heat_scale *scale, double value);

#endif
