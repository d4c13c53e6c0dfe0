/* SPDX-License-Identifier: Apache-2.0 */
/* Channels: which rank of which engine has which rows and layers. */
#include <stdio.h>

#include "tests/system/engine_sim/sim.h"

struct r3ring_layer_entry sim_layer(uint32_t layer)
{
	if (layer == SIM_LAYERS - 1)
		return (struct r3ring_layer_entry){.layer_id = 3, .kind = R3RING_LAYER_MTP};
	return (struct r3ring_layer_entry){
		.layer_id = (int32_t)(3 * layer),
		.kind = layer ? R3RING_LAYER_MOE : R3RING_LAYER_HASH,
	};
}

void sim_rank_rows(const struct sim *sim, const struct sim_channel *channel,
		   const struct sim_step *step, uint32_t *begin, uint32_t *valid, uint32_t *end)
{
	uint32_t share = step->total / sim->config.shards;

	*begin = share * channel->shard;
	*end = *begin + share;
	*valid = step->rows < *begin ? *begin : step->rows > *end ? *end : step->rows;
}

struct r3ring_coordinates sim_rank_coordinates(const struct sim *sim,
					       const struct sim_channel *channel)
{
	const struct sim_config *config = &sim->config;

	return (struct r3ring_coordinates){
		.dp = {(uint16_t)(config->disaggregated ? 0 : channel->engine->index),
		       (uint16_t)config->replicas},
		.tp = {channel->copy, (uint16_t)(1 + config->copies)},
		.sp = {(uint16_t)channel->shard, (uint16_t)config->shards},
		.pp = {(uint16_t)channel->stage, (uint16_t)config->stages},
	};
}

static struct sim_channel *channel_add(struct sim *sim, struct sim_engine *engine, uint32_t rank,
				       const char *draft)
{
	struct sim_channel *channel = &sim->channel[sim->channels];

	*channel = (struct sim_channel){
		.index = sim->channels++,
		.rank = rank,
		.engine = engine,
		.draft = draft[0] != '\0',
		.layers = sim->config.layers,
		.heard_generation = 0,
	};
	snprintf(channel->name, sizeof(channel->name), "%s/%u%s", engine->instance, rank, draft);
	engine->channels++;
	return channel;
}

static void stage_cut(const struct sim *sim, struct sim_channel *channel, uint32_t stage)
{
	uint32_t first = sim->config.layers / 2;

	channel->stage = stage;
	if (sim->config.stages == 1)
		return;
	channel->first_layer = stage ? first : 0;
	channel->layers = stage ? sim->config.layers - first : first;
}

static void engine_make(struct sim *sim, struct sim_engine *engine, uint32_t *rank)
{
	const struct sim_config *config = &sim->config;
	uint32_t first = *rank;

	engine->first_channel = sim->channels;
	engine->weights = 1;
	for (uint32_t stage = 0; stage < config->stages; stage++)
		for (uint32_t shard = 0; shard < config->shards; shard++) {
			struct sim_channel *channel = channel_add(sim, engine, (*rank)++, "");

			stage_cut(sim, channel, stage);
			channel->shard = shard;
		}
	if (config->copies) {
		struct sim_channel *channel = channel_add(sim, engine, (*rank)++, "");

		stage_cut(sim, channel, 0);
		channel->copy = true;
	}
	if (config->draft_channel)
		stage_cut(sim, channel_add(sim, engine, first, ".draft"), 0);
}

void sim_ranks_make(struct sim *sim)
{
	uint32_t rank = 0;

	sim->engines = sim->config.disaggregated ? 2 : sim->config.replicas;
	for (uint32_t i = 0; i < sim->engines; i++) {
		struct sim_engine *engine = &sim->engine[i];

		engine->index = i;
		engine->instance = "sim";
		if (sim->config.disaggregated) {
			engine->instance = i ? "sim-decode" : "sim-prefill";
			engine->prefill_only = i == 0;
			engine->decode_only = i == 1;
			rank = 0;
		}
		engine_make(sim, engine, &rank);
	}
}
