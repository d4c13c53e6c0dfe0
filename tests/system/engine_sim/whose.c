/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whose rows came out, where requests have one id and records were lost: what began a request may
 * be all that was heard of it, and another of its id be put in its place. The rows have to be one's.
 */
#include "tests/system/engine_sim/cell.h"

static bool is_of(const struct cell *cell)
{
	const struct truth truth = {.request = cell->request, .position = cell->position};
	struct passes passes = {.truth = &truth, .attempt = -1};
	const struct sim_row *row;

	while ((row = sim_passes_next(&passes)))
		if (cell_ids_are(cell, row))
			return true;
	return false;
}

/* How many cells hold what the request ran there. */
static uint32_t cells_of(struct sim *sim, const struct sim_given *given,
			 const struct sim_request *request)
{
	const uint32_t layers = given->info.layers, cells = given->info.tokens * layers;
	uint32_t count = 0;

	for (uint32_t i = 0; i < cells; i++) {
		const struct cell cell = {
			.sim = sim,
			.given = given,
			.request = request,
			.position = i / layers,
			.layer = i % layers,
			.ids = given->ids + (size_t)i * sim->config.top_k,
		};

		count += given->valid[i] && is_of(&cell);
	}
	return count;
}

void sim_find_whose(struct sim *sim, struct sim_given *given)
{
	struct sim_request *called = given->request;
	uint32_t most = cells_of(sim, given, called);

	for (uint32_t i = 0; i < sim->requests; i++) {
		struct sim_request *other = &sim->request[i];
		uint32_t count;

		if (other == called || !other->lives || !sim_same_id(other, called))
			continue;
		count = cells_of(sim, given, other);
		if (count <= most)
			continue;
		most = count;
		given->request = other;
	}
	called->given--;
	given->request->given++;
}
