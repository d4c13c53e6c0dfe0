/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "monitor/balance.h"

#define HOTTEST 8u
#define ONE_IN 20.0 /* cases that may be beyond chance */
#define BISECTIONS 40

static const double *counts_of(const struct r3ring_load_info *info, uint32_t layer)
{
	return info->counts + (size_t)layer * info->experts;
}

/* ---- layers ---------------------------------------------------------------- */

static double excess(double ratio)
{
	return ratio * log(ratio) - ratio + 1;
}

double balance_chance(double mean, uint32_t cells)
{
	double wanted, low = 1, high = 2;

	if (!(mean > 0) || !cells)
		return 0;
	wanted = log(ONE_IN * cells) / mean;
	while (excess(high) < wanted)
		high *= 2;
	for (int i = 0; i < BISECTIONS; i++) {
		double middle = (low + high) / 2;

		if (excess(middle) < wanted)
			low = middle;
		else
			high = middle;
	}
	return high;
}

bool balance_uneven(const struct balance_layer *layer, double limit)
{
	return layer->figures.max_to_mean > limit && layer->figures.max_to_mean > layer->chance;
}

static int fill(struct balance_layer *layer, const struct r3ring_load_info *info, uint32_t index)
{
	uint32_t hottest = info->experts < HOTTEST ? info->experts : HOTTEST;
	int r;

	*layer = (struct balance_layer){
		.index = index,
		.layer = info->layer[index].layer_id,
		.rows = info->rows[index],
	};
	r = r3ring_load_measure(counts_of(info, index), info->experts, hottest, &layer->figures);
	if (r < 0)
		return r;
	if (layer->figures.sum > 0)
		layer->share = layer->figures.max / layer->figures.sum;
	layer->chance = balance_chance(layer->figures.mean, info->experts);
	return 0;
}

static int furthest_first(const void *a, const void *b)
{
	const struct balance_layer *x = a, *y = b;

	if (x->figures.max_to_mean != y->figures.max_to_mean)
		return x->figures.max_to_mean < y->figures.max_to_mean ? 1 : -1;
	return (x->index > y->index) - (x->index < y->index);
}

int balance_layers(const struct r3ring_load_info *info, struct balance_layer *layers)
{
	for (uint32_t i = 0; i < info->layers; i++) {
		int r = fill(&layers[i], info, i);

		if (r < 0)
			return r;
	}
	qsort(layers, info->layers, sizeof(*layers), furthest_first);
	return 0;
}

/* ---- experts --------------------------------------------------------------- */

/* Puts it in front of those that are not as hot; the coldest falls off. */
static uint32_t insert(struct balance_expert *hottest, uint32_t count, uint32_t most,
		       const struct balance_expert *expert)
{
	uint32_t at = count;

	while (at && hottest[at - 1].ratio < expert->ratio)
		at--;
	if (at == most)
		return count;
	if (count < most)
		count++;
	memmove(&hottest[at + 1], &hottest[at], (count - at - 1) * sizeof(*hottest));
	hottest[at] = *expert;
	return count;
}

uint32_t balance_hottest(const struct r3ring_load_info *info, struct balance_expert *hottest,
			 uint32_t most)
{
	uint32_t count = 0;

	for (uint32_t layer = 0; layer < info->layers; layer++) {
		const double *counts = counts_of(info, layer);
		double sum = 0;

		for (uint32_t expert = 0; expert < info->experts; expert++)
			sum += counts[expert];
		for (uint32_t expert = 0; expert < info->experts; expert++) {
			const struct balance_expert one = {
				.index = layer,
				.layer = info->layer[layer].layer_id,
				.expert = expert,
				.ratio = sum > 0 ? counts[expert] * info->experts / sum : 0,
				.share = sum > 0 ? counts[expert] / sum : 0,
			};

			if (one.ratio > 0)
				count = insert(hottest, count, most, &one);
		}
	}
	return count;
}
