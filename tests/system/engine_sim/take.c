/* SPDX-License-Identifier: Apache-2.0 */
/* Takes what the assembler gives out, and keeps it until all is known. */
#include <stdlib.h>
#include <string.h>

#include "tests/system/engine_sim/sim.h"

/* Of several of one id the turn of its session tells which it is, as it told when it was begun first. */
static struct sim_request *request_of(struct sim *sim, const struct r3ring_assembled_info *info)
{
	for (uint32_t i = 0; i < sim->requests; i++)
		if (strcmp(sim->request[i].id, info->id) == 0 &&
		    strcmp(sim->request[i].session, info->session) == 0 &&
		    strcmp(sim->request[i].turn, info->turn) == 0)
			return &sim->request[i];
	return NULL;
}

static void note_texts(struct sim *sim, const struct r3ring_assembled_info *info)
{
	if (info->sample[0] || strcmp(info->model, "simulated") ||
	    info->experts != sim->config.experts || info->top_k != sim->config.top_k)
		sim_fault(sim, "%s: texts or sizes are another's", info->id);
	for (uint32_t i = 0; i < info->layers && info->layers == sim->config.layers; i++)
		if (info->layer[i].layer_id != sim_layer(i).layer_id ||
		    info->layer[i].kind != sim_layer(i).kind)
			sim_fault(sim, "%s: layer %u is another", info->id, i);
}

static uint32_t silent_channels(const struct sim *sim)
{
	uint32_t silent = 0;

	for (uint32_t c = 0; c < sim->channels; c++)
		if (!sim->channel[c].rank_heard && !sim->channel[c].loss_heard)
			silent |= 1u << c;
	return silent;
}

static struct sim_given *given_make(struct sim *sim, const struct r3ring_assembled *assembled)
{
	struct sim_given *given = calloc(1, sizeof(*given));
	size_t cells;

	given->info = *r3ring_assembled_get_info(assembled);
	cells = (size_t)given->info.tokens * given->info.layers;
	given->ids = malloc((cells * given->info.top_k + 1) * sizeof(*given->ids));
	given->valid = malloc(cells + 1);
	given->cause = malloc(cells + 1);
	given->weights = malloc((given->info.tokens + 1) * sizeof(*given->weights));
	given->attempt = malloc((given->info.tokens + 1) * sizeof(*given->attempt));
	given->request = request_of(sim, &given->info);
	return given;
}

static void given_read(struct sim *sim, const struct r3ring_assembled *assembled,
		       struct sim_given *given)
{
	const struct r3ring_assembled_rows rows = {
		.ids = given->ids,
		.valid = given->valid,
		.cause = given->cause,
		.weight_version = given->weights,
		.attempt = given->attempt,
	};

	if (r3ring_assembled_read(assembled, 0, given->info.tokens, 0, given->info.layers, &rows))
		sim_fault(sim, "%s: cannot be read", given->info.id);
}

void sim_take(struct sim *sim, bool flushed)
{
	struct r3ring_assembled *assembled;

	while ((assembled = r3ring_assembler_take(sim->assembler))) {
		struct sim_given *given = given_make(sim, assembled);

		given->flushed = flushed;
		given->at = sim->fed;
		given->silent = silent_channels(sim);
		given_read(sim, assembled, given);
		if (!given->request) {
			sim_fault(sim, "%s: nobody asked for it", given->info.id);
			sim_given_free(given);
		} else {
			sim_trace(sim, "%s is given: %u tokens, flags %u%s", given->request->name,
				  given->info.tokens, given->info.flags,
				  flushed ? ", at the end" : "");
			note_texts(sim, &given->info);
			given->request->given++;
			given->request->called = true;
			given->next = sim->given;
			sim->given = given;
		}
		r3ring_assembled_free(assembled);
	}
}

void sim_given_free(struct sim_given *given)
{
	free(given->ids);
	free(given->valid);
	free(given->cause);
	free(given->weights);
	free(given->attempt);
	free(given);
}
