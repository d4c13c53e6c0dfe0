/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "monitor/balance.h"
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

/* By how much load a GPU of the worst layer has. */
static double chance_of(const struct gpus *gpus, const double *worst)
{
	double sum = 0;

	for (uint32_t gpu = 0; gpu < gpus->count; gpu++)
		sum += worst[gpu];
	return balance_chance(sum / gpus->count, gpus->count);
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
	gpus->chance = chance_of(gpus, load + (size_t)balance.worst_layer * map->gpus);
	free(load);
	return gpus;
}

bool gpus_uneven(const struct gpus *gpus)
{
	return gpus->worst > BALANCE_GPUS_UNEVEN && gpus->worst > gpus->chance;
}

double gpus_to_mean(const struct gpus *gpus, uint32_t gpu)
{
	double sum = 0;

	for (uint32_t i = 0; i < gpus->count; i++)
		sum += gpus->load[i];
	return sum > 0 ? gpus->load[gpu] * gpus->count / sum : 0;
}

struct gpus *gpus_copy(const struct gpus *gpus)
{
	struct gpus *copy = gpus ? malloc(size_of(gpus->count)) : NULL;

	if (copy)
		memcpy(copy, gpus, size_of(gpus->count));
	return copy;
}
