/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "monitor/gpus.h"

static size_t size_of(uint32_t count)
{
	return sizeof(struct gpus) + count * sizeof(double);
}

static void add_up(struct gpus *gpus, const double *load, uint32_t layers)
{
	for (uint32_t layer = 0; layer < layers; layer++)
		for (uint32_t gpu = 0; gpu < gpus->count; gpu++)
			gpus->load[gpu] += load[(size_t)layer * gpus->count + gpu];
}

struct gpus *gpus_measure(const struct r3ring_eplb_map *map, const struct r3ring_load_info *info)
{
	struct r3ring_eplb_balance balance;
	struct gpus *gpus;
	double *load;

	if (!map || map->layers != info->layers || map->experts != info->experts)
		return NULL;
	gpus = calloc(1, size_of(map->gpus));
	load = calloc((size_t)map->layers * map->gpus, sizeof(*load));
	if (!gpus || !load || r3ring_eplb_evaluate(map, info->counts, &balance, NULL)) {
		free(load);
		free(gpus);
		return NULL;
	}
	gpus->epoch = map->epoch;
	gpus->worst = balance.worst;
	gpus->average = balance.average;
	gpus->worst_layer = info->layer[balance.worst_layer].layer_id;
	gpus->worst_gpu = balance.worst_gpu;
	gpus->count = map->gpus;
	r3ring_eplb_project(map, info->counts, NULL, load);
	add_up(gpus, load, map->layers);
	free(load);
	return gpus;
}

struct gpus *gpus_copy(const struct gpus *gpus)
{
	struct gpus *copy = gpus ? malloc(size_of(gpus->count)) : NULL;

	if (copy)
		memcpy(copy, gpus, size_of(gpus->count));
	return copy;
}
