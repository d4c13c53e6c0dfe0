/* SPDX-License-Identifier: Apache-2.0 */
/* Maps of replicas: made, and checked. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <r3ring/eplb.h>

#include "consumer/eplb/sizes.h"

int eplb_check_sizes(uint32_t layers, uint32_t experts, uint32_t physical, uint32_t gpus,
		     struct r3ring_error *err)
{
	if (layers < 1 || layers > R3RING_LAYERS_MAX)
		return r3ring_error_set(err, -EINVAL, "%u layers; a map has 1 to %u", layers,
					R3RING_LAYERS_MAX);
	if (experts < 1 || experts > R3RING_EXPERTS_MAX)
		return r3ring_error_set(err, -EINVAL, "%u experts; a layer has 1 to %u", experts,
					R3RING_EXPERTS_MAX);
	if (physical < 1 || physical > R3RING_EXPERTS_MAX)
		return r3ring_error_set(err, -EINVAL, "%u physical experts; a layer has 1 to %u",
					physical, R3RING_EXPERTS_MAX);
	if (gpus < 1 || physical % gpus)
		return r3ring_error_set(err, -EINVAL,
					"%u GPUs cannot hold equally many of %u physical experts; "
					"take a multiple of the GPUs",
					gpus, physical);
	return 0;
}

int r3ring_eplb_map_create(struct r3ring_eplb_map **map, uint32_t layers, uint32_t experts,
			   uint32_t replicas, uint32_t physical, uint32_t gpus,
			   struct r3ring_error *err)
{
	size_t entries = (size_t)layers * experts * replicas;
	struct r3ring_eplb_map *made;
	int r;

	if (!map)
		return r3ring_error_set(err, -EINVAL, "no place for the map: map is NULL");
	r = eplb_check_sizes(layers, experts, physical, gpus, err);
	if (r < 0)
		return r;
	if (replicas < 1 || replicas > physical)
		return r3ring_error_set(err, -EINVAL,
					"%u replicas of one expert among %u physical ones",
					replicas, physical);
	made = malloc(sizeof(*made));
	if (!made)
		return r3ring_error_set(err, -ENOMEM, "no memory for an EPLB map");
	*made = (struct r3ring_eplb_map){
		.layers = layers,
		.experts = experts,
		.replicas = replicas,
		.physical = physical,
		.gpus = gpus,
		.map = malloc(entries * sizeof(*made->map)),
	};
	if (!made->map) {
		free(made);
		return r3ring_error_set(err, -ENOMEM, "no memory for an EPLB map");
	}
	memset(made->map, 0xFF, entries * sizeof(*made->map));
	*map = made;
	return 0;
}

void r3ring_eplb_map_free(struct r3ring_eplb_map *map)
{
	if (!map)
		return;
	free(map->map);
	free(map);
}

int r3ring_eplb_map_plain(struct r3ring_eplb_map **map, uint32_t layers, uint32_t experts,
			  uint32_t gpus, struct r3ring_error *err)
{
	struct r3ring_eplb_map *made;
	int r = r3ring_eplb_map_create(map ? &made : NULL, layers, experts, 1, experts, gpus, err);

	if (r < 0)
		return r;
	for (size_t i = 0; i < (size_t)layers * experts; i++)
		made->map[i] = (uint16_t)(i % experts);
	*map = made;
	return 0;
}

/* @taken: [physical] by whom, R3RING_MISSING for free. */
static int check_layer(const struct r3ring_eplb_map *map, uint32_t layer, uint16_t *taken,
		       struct r3ring_error *err)
{
	const uint16_t *row = map->map + (size_t)layer * map->experts * map->replicas;

	memset(taken, 0xFF, map->physical * sizeof(*taken));
	for (uint32_t e = 0; e < map->experts; e++, row += map->replicas) {
		if (row[0] == R3RING_MISSING)
			return r3ring_error_set(err, -EBADMSG, "layer %u: expert %u has no place",
						layer, e);
		for (uint32_t i = 0; i < map->replicas && row[i] != R3RING_MISSING; i++) {
			if (row[i] >= map->physical || taken[row[i]] != R3RING_MISSING)
				return r3ring_error_set(
					err, -EBADMSG,
					"layer %u: expert %u is said to be at place %u, which %s",
					layer, e, row[i],
					row[i] >= map->physical ? "does not exist" : "another has");
			taken[row[i]] = (uint16_t)e;
		}
	}
	return 0;
}

int r3ring_eplb_map_check(const struct r3ring_eplb_map *map, struct r3ring_error *err)
{
	uint16_t *taken;
	int r = 0;

	if (!map)
		return r3ring_error_set(err, -EINVAL, "r3ring_eplb_map_check: map is NULL");
	taken = malloc(map->physical * sizeof(*taken));
	if (!taken)
		return r3ring_error_set(err, -ENOMEM, "no memory to check an EPLB map");
	for (uint32_t layer = 0; r == 0 && layer < map->layers; layer++)
		r = check_layer(map, layer, taken, err);
	free(taken);
	return r;
}
