/* SPDX-License-Identifier: Apache-2.0 */
/* Chance, and the routes that the model takes: slow, and obvious. */
#include "tests/system/engine_sim/sim.h"

/* Source: Steele, Lea, Flood, "Fast splittable pseudorandom number generators" (2014). */
uint64_t sim_mix(uint64_t a, uint64_t b)
{
	uint64_t z = a * UINT64_C(0x9E3779B97F4A7C15) + b + UINT64_C(0x632BE59BD9B4E019);

	z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
	return z ^ (z >> 31);
}

uint32_t sim_below(uint64_t *state, uint32_t limit)
{
	*state = sim_mix(*state, 1);
	return limit ? (uint32_t)((*state >> 16) % limit) : 0;
}

bool sim_chance(uint64_t *state, uint32_t permille)
{
	return permille && sim_below(state, 1000) < permille;
}

static uint64_t cell_hash(const struct sim_config *config, const struct sim_pass *pass,
			  uint32_t layer)
{
	uint64_t hash = sim_mix(config->seed, pass->weights);

	hash = sim_mix(hash, pass->history);
	hash = sim_mix(hash, pass->run);
	return sim_mix(hash, layer);
}

uint16_t sim_route(const struct sim_config *config, const struct sim_pass *pass, uint32_t layer,
		   uint32_t k)
{
	return (uint16_t)(sim_mix(cell_hash(config, pass, layer), k) % config->experts);
}

bool sim_row_is_bad(const struct sim_config *config, const struct sim_row *row, uint32_t layer)
{
	return row->bad && cell_hash(config, &row->pass, SIM_LAYERS) % config->layers == layer;
}

void sim_row_ids(const struct sim_config *config, const struct sim_row *row, uint32_t layer,
		 uint16_t *ids)
{
	for (uint32_t k = 0; k < config->top_k; k++)
		ids[k] = row->life ? sim_route(config, &row->pass, layer, k)
				   : (uint16_t)R3RING_MISSING;
	if (row->life && sim_row_is_bad(config, row, layer))
		ids[row->number % config->top_k] = R3RING_MISSING;
}
