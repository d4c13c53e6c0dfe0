/* SPDX-License-Identifier: Apache-2.0 */
/* What engine a seed means, and what happens to it. */
#include "tests/system/engine_sim/sim.h"

static uint32_t one_of(uint64_t *chance, const uint32_t *values, uint32_t count)
{
	return values[sim_below(chance, count)];
}

static bool one_in(uint64_t *chance, uint32_t n)
{
	return sim_below(chance, n) == 0;
}

/* @most permille in one of three seeds, nothing in the others. */
static uint32_t rate(uint64_t *chance, uint32_t most)
{
	return one_in(chance, 3) ? 1 + sim_below(chance, most) : 0;
}

static void model_make(struct sim_config *config, uint64_t *chance)
{
	static const uint32_t experts[] = {8, 256, 300, 1000, 65535};
	static const uint32_t top_k[] = {1, 2, 3, 4, 6, 8};

	config->layers = 2 + sim_below(chance, SIM_LAYERS - 1);
	config->experts = one_of(chance, experts, 5);
	config->top_k = one_of(chance, top_k, 6);
	config->rows_per_record = 1 + sim_below(chance, 8);
	config->max_rows = 8 + sim_below(chance, SIM_ROWS - 8 + 1);
}

static void ranks_choose(struct sim_config *config, uint64_t *chance)
{
	config->stages = one_in(chance, 3) ? 2 : 1;
	config->shards = one_in(chance, 4) ? 2 : 1;
	config->replicas = one_in(chance, 4) ? 2 : 1;
	config->copies = one_in(chance, 4);
	config->draft_channel = one_in(chance, 4);
	config->disaggregated = config->replicas == 1 && one_in(chance, 4);
	config->skew = one_in(chance, 2) ? sim_below(chance, 40) : 0;
	config->min_ends = config->disaggregated ? 2 * config->stages * config->shards : 0;
}

static void cache_choose(struct sim_config *config, uint64_t *chance)
{
	static const uint32_t tokens[] = {1, 2, 4};

	config->key_kind = sim_below(chance, 4);
	if (config->key_kind > R3RING_KEYS_SLOT)
		config->key_kind = R3RING_KEYS_SLOT;
	config->block_tokens = one_of(chance, tokens, 3);
	config->blocks = SIM_POSITIONS / config->block_tokens + sim_below(chance, 48);
	if (config->blocks > SIM_BLOCKS)
		config->blocks = SIM_BLOCKS;
	config->keep_cache = config->key_kind == R3RING_KEYS_SLOT && one_in(chance, 2);
	config->copy = config->key_kind == R3RING_KEYS_SLOT ? rate(chance, 200) : 0;
	config->external = rate(chance, 300);
}

static void life_choose(struct sim_config *config, uint64_t *chance)
{
	config->batch = 1 + sim_below(chance, SIM_BATCH);
	config->chunk = 1 + sim_below(chance, config->max_rows);
	config->requests = 3 + sim_below(chance, 18);
	config->drafts = one_in(chance, 2) ? 1 + sim_below(chance, 4) : 0;
	config->lag = one_in(chance, 2) ? 1 + sim_below(chance, 4) : 0;
	config->preempt = rate(chance, 60);
	config->retract = rate(chance, 30);
	config->weights = rate(chance, 60);
	config->in_place = one_in(chance, 4);
	config->abort = rate(chance, 30);
	config->discard = rate(chance, 500);
	/* Hashes name their content, so passes of one content may not differ. */
	config->conflict = config->key_kind == R3RING_KEYS_BLOCK_HASH ? 0 : rate(chance, 60);
	config->bad = rate(chance, 40);
	config->policy = one_in(chance, 5) ? R3RING_ROWS_LATEST : R3RING_ROWS_FIRST;
}

static void faults_choose(struct sim_config *config, uint64_t *chance)
{
	config->map_spans = one_in(chance, 3) ? 1 + sim_below(chance, 3) : SIM_SPANS;
	config->keyframe_every = 5 + sim_below(chance, 60);
	config->late_steps = 0;
	if (one_in(chance, 3))
		return;
	config->gap = rate(chance, 40);
	config->dropped = rate(chance, 100);
	config->unheard = rate(chance, 60);
	config->partial = rate(chance, 60);
	config->never_late = rate(chance, 60);
	config->engine_dies = rate(chance, 20);
	config->daemon_dies = rate(chance, 20);
	config->late_reader = one_in(chance, 6);
	if (one_in(chance, 8))
		config->max_bytes = 4000 + sim_below(chance, 16000);
	if (one_in(chance, 8))
		config->max_keys = 2 + sim_below(chance, 20);
	if (one_in(chance, 8))
		config->late_steps = 1 + sim_below(chance, 3);
}

/* Ids that are not unique; they have to be over the engines that prefill and decode. */
static void ids_choose(struct sim_config *config, uint64_t *chance)
{
	static const uint32_t ids[] = {
		SIM_IDS_OVER,      SIM_IDS_OVER,    SIM_IDS_OVER,    SIM_IDS_PREEMPTED,
		SIM_IDS_PREEMPTED, SIM_IDS_COUNTED, SIM_IDS_COUNTED, SIM_IDS_AT_ONCE,
	};

	config->ids = (enum sim_ids)one_of(chance, ids, 8);
	config->names = 1 + sim_below(chance, 3);
	config->abandon = rate(chance, 200);
	if (!config->preempt)
		config->preempt = 1 + sim_below(chance, 60);
	if (config->ids == SIM_IDS_COUNTED && !config->engine_dies)
		config->engine_dies = 5 + sim_below(chance, 20);
}

/* It takes a request that is preempted several times. */
static void rewind_often(struct sim_config *config, uint64_t *chance)
{
	config->rewinds = true;
	config->preempt = 40 + sim_below(chance, 100);
	config->discard = 300 + sim_below(chance, 500);
}

bool sim_config_is_lossless(const struct sim_config *config)
{
	return !config->real && !config->gap && !config->dropped && !config->unheard &&
	       !config->partial && !config->never_late && !config->engine_dies &&
	       !config->daemon_dies && !config->late_reader && !config->max_bytes &&
	       !config->max_keys && !config->late_steps;
}

void sim_config_make(struct sim_config *config, uint64_t seed)
{
	uint64_t chance = sim_mix(seed, 0);

	*config = (struct sim_config){.seed = seed};
	model_make(config, &chance);
	ranks_choose(config, &chance);
	cache_choose(config, &chance);
	life_choose(config, &chance);
	faults_choose(config, &chance);
	config->prompt_once = one_in(&chance, 2);
	config->salted = one_in(&chance, 2);
	/* A key that was forgotten for want of room tells no more which weights ran it. */
	if (config->key_kind == R3RING_KEYS_BLOCK_HASH && !config->max_keys && !config->max_bytes)
		config->keep_cache = one_in(&chance, 2);
	config->device_rows = config->key_kind == R3RING_KEYS_NONE &&
			      sim_config_is_lossless(config) && one_in(&chance, 2);
	config->in_flight = config->key_kind == R3RING_KEYS_BLOCK_HASH && one_in(&chance, 2);
	/* A prefill engine and the one that decodes would contradict each other. */
	config->apart = config->key_kind == R3RING_KEYS_BLOCK_HASH && !config->disaggregated &&
			!config->max_keys && !config->max_bytes && one_in(&chance, 2);
	if (!config->disaggregated && one_in(&chance, 4))
		ids_choose(config, &chance);
	config->misses = config->key_kind == R3RING_KEYS_BLOCK_HASH && one_in(&chance, 2);
	if (one_in(&chance, 8))
		rewind_often(config, &chance);
	config->untold = one_in(&chance, config->replicas > 1 ? 2 : 8);
}
