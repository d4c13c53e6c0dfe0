/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text ids. Each request has its own, or some are used again: by one that begins when another is
 * over, was preempted, or still runs; or since an engine counts from 1 at each start.
 */
#include <stdio.h>
#include <string.h>

#include "tests/system/engine_sim/sim.h"

bool sim_same_id(const struct sim_request *request, const struct sim_request *other)
{
	return strcmp(request->id, other->id) == 0;
}

/* Whether its newest attempt has not ended. */
static bool runs(const struct sim_request *request)
{
	return !request->life[request->lives - 1]->reason;
}

/* Whether another one may be begun under the id of a request that was begun, as the seed has it. */
static bool leaves_id(const struct sim *sim, const struct sim_request *request,
		      const struct sim_engine *engine)
{
	if (request->done || sim->config.ids == SIM_IDS_AT_ONCE)
		return true;
	return sim->config.ids == SIM_IDS_PREEMPTED && !runs(request) &&
	       request->life[request->lives - 1]->engine == engine;
}

static bool is_free(const struct sim *sim, const char *id, const struct sim_engine *engine)
{
	for (uint32_t i = 0; i < sim->requests; i++)
		if (sim->request[i].lives && strcmp(sim->request[i].id, id) == 0 &&
		    !leaves_id(sim, &sim->request[i], engine))
			return false;
	return true;
}

void sim_id_give(struct sim *sim, struct sim_engine *engine, struct sim_request *request)
{
	if (sim->config.ids == SIM_IDS_UNIQUE)
		return;
	if (sim->config.ids == SIM_IDS_COUNTED) {
		snprintf(request->id, sizeof(request->id), "%u-%u", engine->index, ++engine->ids);
		return;
	}
	snprintf(request->id, sizeof(request->id), "again-%u",
		 sim_below(&sim->chance, sim->config.names));
	if (!is_free(sim, request->id, engine))
		snprintf(request->id, sizeof(request->id), "%s", request->name);
}
