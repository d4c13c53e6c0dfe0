/* SPDX-License-Identifier: Apache-2.0 */
/* Paged KV: blocks, each with the passes that filled it, found again by their content. */
#include <string.h>

#include "tests/system/engine_sim/sim.h"

static void block_use(struct sim_engine *engine, struct sim_block *block)
{
	block->used = ++engine->clock;
}

/* A free block; else the cached one that was not used for longest. */
static struct sim_block *block_find(struct sim *sim, struct sim_engine *engine)
{
	struct sim_block *found = NULL;

	for (uint32_t i = 0; i < sim->config.blocks; i++) {
		struct sim_block *block = &engine->block[i];

		if (block->refs)
			continue;
		if (!found || (block->content == 0) > (found->content == 0) ||
		    ((block->content == 0) == (found->content == 0) && block->used < found->used))
			found = block;
	}
	return found;
}

uint32_t sim_blocks_free(const struct sim *sim, const struct sim_engine *engine)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < sim->config.blocks; i++)
		count += engine->block[i].refs == 0;
	return count;
}

bool sim_block_take(struct sim *sim, struct sim_life *life)
{
	struct sim_engine *engine = life->engine;
	struct sim_block *block = block_find(sim, engine);

	if (!block)
		return false;
	block->refs = 1;
	block->content = 0;
	memset(block->row, 0, sizeof(block->row));
	block_use(engine, block);
	life->block[life->blocks++] = (uint32_t)(block - engine->block);
	return true;
}

void sim_blocks_release(struct sim_life *life)
{
	for (uint32_t i = 0; i < life->blocks; i++)
		life->engine->block[life->block[i]].refs--;
	life->blocks = 0;
	life->labelled = 0;
}

/* The newest block of a content: keys are rewritten in the ring's order. */
static struct sim_block *cache_find(struct sim *sim, struct sim_engine *engine, uint64_t content)
{
	struct sim_block *found = NULL;

	for (uint32_t i = 0; i < sim->config.blocks; i++) {
		struct sim_block *block = &engine->block[i];

		if (block->content == content && (!found || block->used > found->used))
			found = block;
	}
	return found;
}

uint32_t sim_cache_match(struct sim *sim, struct sim_life *life)
{
	const uint32_t tokens = sim->config.block_tokens;
	uint32_t covered = 0;

	/* At least one token is run: it gives the next one. */
	while (covered + tokens < life->request->length) {
		struct sim_block *block =
			cache_find(sim, life->engine, life->request->history[covered + tokens - 1]);

		if (!block)
			break;
		block->refs++;
		block_use(life->engine, block);
		life->block[life->blocks++] = (uint32_t)(block - life->engine->block);
		for (uint32_t i = 0; i < tokens; i++)
			life->fill[covered + i] = (struct sim_fill){
				.pass = block->row[i],
				.external = !block->row[i],
			};
		covered += tokens;
	}
	life->labelled = life->blocks;
	return covered;
}

void sim_cache_label(const struct sim *sim, struct sim_life *life, uint32_t computed)
{
	const uint32_t tokens = sim->config.block_tokens;

	if (sim->config.key_kind == R3RING_KEYS_NONE)
		return;
	for (; (life->labelled + 1) * tokens <= computed; life->labelled++) {
		struct sim_block *block = &life->engine->block[life->block[life->labelled]];

		block->content = life->request->history[(life->labelled + 1) * tokens - 1];
		block_use(life->engine, block);
	}
}

void sim_cache_flush(struct sim_engine *engine)
{
	engine->flushes++;
	for (uint32_t i = 0; i < SIM_BLOCKS; i++)
		engine->block[i].content = 0;
}

uint64_t sim_block_key(const struct sim *sim, const struct sim_life *life, uint32_t block)
{
	const uint32_t tokens = sim->config.block_tokens;
	const uint64_t hash = life->request->history[(block + 1) * tokens - 1];
	struct sim_block *found = &life->engine->block[life->block[block]];

	if (sim->config.key_kind == R3RING_KEYS_SLOT)
		return life->block[block];
	if (!sim->config.salted)
		return hash;
	if (!found->content)
		found->salt = life->engine->weights;
	return sim_mix(hash, found->salt);
}

static uint64_t hash_of(const struct sim *sim, uint64_t content, uint64_t salt)
{
	return sim->config.salted ? sim_mix(content, salt) : content;
}

uint64_t sim_block_hash(const struct sim *sim, const struct sim_life *life, uint32_t block)
{
	const uint32_t tokens = sim->config.block_tokens;

	return hash_of(sim, life->request->history[(block + 1) * tokens - 1],
		       life->engine->weights);
}

/* One that is full and will be labelled. */
static bool life_holds(const struct sim *sim, const struct sim_life *life, uint64_t hash)
{
	const uint32_t tokens = sim->config.block_tokens;

	for (uint32_t i = life->labelled; (i + 1) * tokens <= life->computed; i++)
		if (hash_of(sim, life->request->history[(i + 1) * tokens - 1],
			    life->engine->block[life->block[i]].salt) == hash)
			return true;
	return false;
}

bool sim_hash_is_held(const struct sim *sim, const struct sim_engine *engine, uint64_t hash)
{
	for (uint32_t i = 0; i < sim->config.blocks; i++)
		if (engine->block[i].content &&
		    hash_of(sim, engine->block[i].content, engine->block[i].salt) == hash)
			return true;
	for (uint32_t i = 0; i < engine->running; i++)
		if (life_holds(sim, engine->run[i], hash))
			return true;
	return false;
}

bool sim_block_copy(struct sim *sim, struct sim_engine *engine, struct r3ring_key_pair *pair)
{
	struct sim_block *from = NULL, *to;

	for (uint32_t i = 0; i < sim->config.blocks && !from; i++)
		if (!engine->block[i].refs && engine->block[i].content &&
		    sim_below(&sim->chance, 2))
			from = &engine->block[i];
	if (!from)
		return false;
	from->refs++;
	to = block_find(sim, engine);
	from->refs--;
	if (!to)
		return false;
	memcpy(to->row, from->row, sizeof(to->row));
	to->content = from->content;
	from->content = 0;
	block_use(engine, to);
	*pair = (struct r3ring_key_pair){(uint64_t)(from - engine->block),
					 (uint64_t)(to - engine->block)};
	return true;
}
