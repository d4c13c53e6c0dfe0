/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "monitor/heat.h"

/* How many of @count go into one of @room places, so that all find one. */
static uint32_t each(uint32_t count, uint32_t room)
{
	return (count + room - 1) / room;
}

struct heat_fold heat_fold(uint32_t layers, uint32_t experts, uint32_t rows, uint32_t columns)
{
	struct heat_fold fold = {.layers = layers, .experts = experts};

	if (!layers || !experts || !rows || !columns)
		return fold;
	fold.layers_each = each(layers, rows);
	fold.experts_each = each(experts, columns);
	fold.rows = each(layers, fold.layers_each);
	fold.columns = each(experts, fold.experts_each);
	return fold;
}

void heat_cells(const struct heat_fold *fold, const double *values, double *cells)
{
	for (uint32_t i = 0; i < fold->rows * fold->columns; i++)
		cells[i] = 0;
	for (uint32_t layer = 0; fold->rows && layer < fold->layers; layer++) {
		double *row = cells + layer / fold->layers_each * fold->columns;
		const double *value = values + (uint64_t)layer * fold->experts;

		for (uint32_t expert = 0; expert < fold->experts; expert++) {
			double *cell = row + expert / fold->experts_each;

			if (value[expert] > *cell)
				*cell = value[expert];
		}
	}
}

void heat_ratios(const double *counts, uint32_t layers, uint32_t experts, double *ratios)
{
	for (uint32_t layer = 0; layer < layers; layer++) {
		const double *count = counts + (uint64_t)layer * experts;
		double *ratio = ratios + (uint64_t)layer * experts;
		double sum = 0;

		for (uint32_t expert = 0; expert < experts; expert++)
			sum += count[expert];
		for (uint32_t expert = 0; expert < experts; expert++)
			ratio[expert] = sum > 0 ? count[expert] * experts / sum : 0;
	}
}

double heat_max(const double *values, uint32_t count)
{
	double max = 0;

	for (uint32_t i = 0; i < count; i++)
		max = values[i] > max ? values[i] : max;
	return max;
}

uint32_t heat_level(const struct heat_scale *scale, double value)
{
	double part = scale->max > 0 ? value / scale->max : 1;
	double level;

	if (!(value > 0))
		return 0;
	if (scale->octaves)
		part = 1 + log2(part) / scale->octaves;
	level = ceil(part * scale->levels);
	if (level < 1)
		return 1;
	return level < scale->levels ? (uint32_t)level : scale->levels;
}
