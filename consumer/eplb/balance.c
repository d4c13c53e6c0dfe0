/* SPDX-License-Identifier: Apache-2.0 */
/* What a map does to a load. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <r3ring/eplb.h>

static uint32_t replicas_of(const uint16_t *row, uint32_t columns)
{
	uint32_t count = 0;

	while (count < columns && row[count] != R3RING_MISSING)
		count++;
	return count;
}

static void project_layer(const struct r3ring_eplb_map *map, uint32_t layer, const double *load,
			  double *physical, double *gpu)
{
	const uint16_t *row = map->map + (size_t)layer * map->experts * map->replicas;
	const uint32_t per_gpu = map->physical / map->gpus;

	for (uint32_t e = 0; e < map->experts; e++, row += map->replicas) {
		uint32_t replicas = replicas_of(row, map->replicas);

		for (uint32_t i = 0; i < replicas; i++) {
			if (row[i] >= map->physical)
				continue;
			if (physical)
				physical[row[i]] += load[e] / replicas;
			if (gpu)
				gpu[row[i] / per_gpu] += load[e] / replicas;
		}
	}
}

void r3ring_eplb_project(const struct r3ring_eplb_map *map, const double *load, double *physical,
			 double *gpu)
{
	if (physical)
		memset(physical, 0, (size_t)map->layers * map->physical * sizeof(*physical));
	if (gpu)
		memset(gpu, 0, (size_t)map->layers * map->gpus * sizeof(*gpu));
	for (uint32_t layer = 0; layer < map->layers; layer++)
		project_layer(map, layer, load + (size_t)layer * map->experts,
			      physical ? physical + (size_t)layer * map->physical : NULL,
			      gpu ? gpu + (size_t)layer * map->gpus : NULL);
}

/* max/mean of a layer's GPUs; 0 without load. */
static double ratio_of(const double *gpu, uint32_t gpus, uint32_t *most)
{
	double sum = 0;

	*most = 0;
	for (uint32_t g = 0; g < gpus; g++) {
		sum += gpu[g];
		if (gpu[g] > gpu[*most])
			*most = g;
	}
	return sum > 0 ? gpu[*most] * gpus / sum : 0;
}

int r3ring_eplb_evaluate(const struct r3ring_eplb_map *map, const double *load,
			 struct r3ring_eplb_balance *balance, double *ratio)
{
	double *gpu = malloc((size_t)map->layers * map->gpus * sizeof(*gpu));
	struct r3ring_eplb_balance found = {0};
	uint32_t most;

	if (!gpu)
		return -ENOMEM;
	r3ring_eplb_project(map, load, NULL, gpu);
	for (uint32_t layer = 0; layer < map->layers; layer++) {
		double one = ratio_of(gpu + (size_t)layer * map->gpus, map->gpus, &most);

		if (ratio)
			ratio[layer] = one;
		found.layers_empty += one <= 0;
		found.average += one;
		if (one > found.worst) {
			found.worst = one;
			found.worst_layer = layer;
			found.worst_gpu = most;
		}
	}
	if (map->layers > found.layers_empty)
		found.average /= map->layers - found.layers_empty;
	*balance = found;
	free(gpu);
	return 0;
}
