/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>

#include "consumer/layers.h"

int layers_compare(const void *a, const void *b)
{
	const struct r3ring_layer_entry *first = a, *second = b;
	int mtp = (first->kind == R3RING_LAYER_MTP) - (second->kind == R3RING_LAYER_MTP);

	if (mtp)
		return mtp;
	if (first->layer_id != second->layer_id)
		return first->layer_id < second->layer_id ? -1 : 1;
	return first->kind - second->kind;
}

uint32_t layers_find(const struct r3ring_layer_entry *table, uint32_t layers,
		     const struct r3ring_layer_entry *layer, uint32_t guess)
{
	uint32_t at = 0;

	if (guess < layers && !layers_compare(&table[guess], layer))
		return guess;
	while (at < layers && layers_compare(&table[at], layer))
		at++;
	return at;
}

int layers_add(struct r3ring_layer_entry **table, uint32_t *layers,
	       const struct r3ring_layer_entry *layer, uint32_t count)
{
	const uint32_t before = *layers;
	struct r3ring_layer_entry *longer =
		realloc(*table, ((size_t)before + count) * sizeof(*longer));

	if (!longer)
		return -ENOMEM;
	*table = longer;
	for (uint32_t i = 0; i < count; i++)
		if (layers_find(longer, before, &layer[i], i) == before)
			longer[(*layers)++] = layer[i];
	return 0;
}

bool layers_among(const struct r3ring_layer_entry *layer, uint32_t first, uint32_t end)
{
	return !end || (layer->kind != R3RING_LAYER_MTP && layer->layer_id >= 0 &&
			(uint32_t)layer->layer_id >= first && (uint32_t)layer->layer_id < end);
}

void layers_sort(struct r3ring_layer_entry *table, uint32_t layers)
{
	for (uint32_t i = 1; i < layers; i++) {
		if (layers_compare(&table[i - 1], &table[i]) > 0) {
			qsort(table, layers, sizeof(*table), layers_compare);
			return;
		}
	}
}
