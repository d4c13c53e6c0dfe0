/* SPDX-License-Identifier: Apache-2.0 */
/* Token maps as the engine's host knows them, when a step begins and later. */
#include <string.h>

#include "tests/system/engine_sim/sim.h"

static void map_add(struct sim_map *map, const struct sim_step *step, const struct sim_span *span,
		    bool with_keys)
{
	struct r3ring_span *told = &map->span[map->spans++];

	*told = span->told;
	if (!with_keys)
		told->keys = 0;
	memcpy(map->key + map->keys, step->key + span->first_key, told->keys * sizeof(*map->key));
	map->keys += told->keys;
}

/* Where the device tells positions, and nothing is lost, the host may be wrong about them. */
static void mislead(const struct sim *sim, struct sim_map *map, const struct sim_step *step)
{
	for (uint32_t i = 0; sim->config.device_rows && !sim->config.real && i < map->spans; i++)
		if (map->span[i].kind == R3RING_SPAN_COMPUTED && !step->late &&
		    map->span[i].position)
			map->span[i].position -= (step->number + i) % 2;
}

void sim_map_at_first(const struct sim *sim, const struct sim_step *step, struct sim_map *map)
{
	for (uint32_t i = 0; i < step->spans; i++) {
		const struct sim_span *span = &step->span[i];
		bool hashes = sim->config.key_kind == R3RING_KEYS_BLOCK_HASH;

		map_add(map, step, span, !span->late || (!step->positions_late && !hashes));
		if (!span->late)
			continue;
		map->span[i].accepted = R3RING_UNKNOWN_U32;
		if (step->positions_late)
			map->span[i].position += 1 + i % 3;
	}
	mislead(sim, map, step);
}

static bool names(const struct sim_step *step, const struct sim_life *life)
{
	for (uint32_t i = 0; i < step->spans; i++)
		if (step->span[i].late && step->span[i].life == life)
			return true;
	return false;
}

void sim_map_later(const struct sim_step *step, struct sim_map *map)
{
	for (uint32_t i = 0; i < step->spans; i++)
		if (names(step, step->span[i].life))
			map_add(map, step, &step->span[i], true);
}
