/* SPDX-License-Identifier: Apache-2.0 */
/* What happens to requests between steps. */
#include <string.h>

#include "tests/system/engine_sim/sim.h"

/* Engines of the same instance that could go on with it. */
static struct sim_engine *where_next(struct sim *sim, struct sim_engine *engine)
{
	if (sim->config.replicas == 1 || sim->config.ids == SIM_IDS_COUNTED)
		return engine;
	return &sim->engine[sim_below(&sim->chance, sim->engines)];
}

/* How much of it is kept: all tokens, or those of its prompt. */
static uint32_t tokens_kept(struct sim *sim, const struct sim_life *life)
{
	const struct sim_request *request = life->request;
	uint32_t least;

	if (life->engine->prefill_only || request->length <= life->prompt)
		return life->prompt;
	if (!sim_chance(&sim->chance, sim->config.discard))
		return request->length;
	least = sim->config.rewinds ? request->prompt : life->prompt;
	return least + sim_below(&sim->chance, request->length - least);
}

static void give_up(struct sim *sim, struct sim_life *life, enum sim_end_told told)
{
	struct sim_request *request = life->request;
	uint32_t kept = tokens_kept(sim, life);

	/* Then the next attempt's prompt says it. */
	if (told == SIM_END_TOLD && sim_below(&sim->chance, 4) == 0 && !sim->config.prompt_once)
		told = SIM_END_VAGUE;
	sim_life_end(sim, life, R3RING_END_PREEMPTED, kept, told);
	request->length = kept;
	request->attempts++;
	sim_enqueue(sim, where_next(sim, life->engine), request);
}

/* Preempted too often, or with all its tokens, it is not put back again. */
static bool may_be_put_back(const struct sim_life *life)
{
	return life->request->lives + 2 < SIM_ATTEMPTS;
}

static void abort_life(struct sim *sim, struct sim_life *life)
{
	struct sim_request *request = life->request;
	uint32_t kept = request->length < request->target ? request->length : request->target;

	sim_late_tell(sim, life->engine, life);
	sim_life_end(sim, life, R3RING_END_ABORTED, kept,
		     sim_below(&sim->chance, 3) ? SIM_END_TOLD : SIM_END_VAGUE);
	request->target = kept;
	sim_request_over(sim, request);
}

void sim_life_put_back(struct sim *sim, struct sim_life *life)
{
	sim_late_tell(sim, life->engine, life);
	if (life->request->length > life->request->target || !may_be_put_back(life))
		abort_life(sim, life);
	else
		give_up(sim, life, SIM_END_TOLD);
}

static void run_again(struct sim *sim, struct sim_life *life)
{
	sim_late_tell(sim, life->engine, life);
	sim_blocks_release(life);
	life->computed = 0;
	life->rerun = true;
}

static void retract_all(struct sim *sim, struct sim_engine *engine)
{
	while (engine->running)
		sim_life_put_back(sim, engine->run[engine->running - 1]);
}

static void weights_change(struct sim *sim, struct sim_engine *engine)
{
	if (sim->config.key_kind == R3RING_KEYS_BLOCK_HASH && !sim->config.in_place &&
	    !sim->config.in_flight)
		retract_all(sim, engine);
	engine->weights++;
	sim_trace(sim, "engine %u: weights %u", engine->index, (unsigned int)engine->weights);
	if (sim->config.keep_cache && !sim->config.in_place)
		return;
	sim_cache_flush(engine);
	for (uint32_t i = 0; sim->config.in_place && i < engine->running; i++)
		run_again(sim, engine->run[i]);
}

/* One that waits, of which nobody tells any more; one that was begun. */
static void abandon(struct sim *sim, struct sim_engine *engine, uint32_t place)
{
	struct sim_request *request = engine->wait[place];

	sim_trace(sim, "engine %u: %s is given up", engine->index, request->name);
	request->given_up = true;
	for (engine->waiting--; place < engine->waiting; place++)
		engine->wait[place] = engine->wait[place + 1];
	if (request->target > request->length)
		request->target = request->length;
	sim_request_over(sim, request);
}

static void abandon_one(struct sim *sim, struct sim_engine *engine)
{
	uint32_t place = sim_below(&sim->chance, engine->waiting);

	if (engine->wait[place]->lives)
		abandon(sim, engine, place);
}

static void abandon_all(struct sim *sim, struct sim_engine *engine)
{
	for (uint32_t i = engine->waiting; i-- > 0;)
		if (engine->wait[i]->lives)
			abandon(sim, engine, i);
}

/* With its engine; it is begun anew in the next one, unless that has others of its id. */
static void lose(struct sim *sim, struct sim_life *life)
{
	struct sim_request *request = life->request;
	uint32_t kept = request->length < request->target ? request->length : request->target;

	if (request->length <= request->target && may_be_put_back(life) &&
	    sim->config.ids != SIM_IDS_COUNTED) {
		give_up(sim, life, SIM_END_UNTOLD);
		return;
	}
	sim_life_end(sim, life, R3RING_END_ABORTED, kept, SIM_END_UNTOLD);
	request->target = kept;
	sim_request_over(sim, request);
}

/* Its process: what it had in KV is gone, and requests are begun anew in the next one. */
void sim_engine_die(struct sim *sim, struct sim_engine *engine)
{
	sim_trace(sim, "engine %u dies", engine->index);
	sim->losses++;
	for (struct sim_step *step = engine->pending; step; step = step->pending)
		for (uint32_t i = 0; i < step->spans; i++)
			step->span[i].life->untold = 0;
	engine->pending = NULL;
	while (engine->running)
		lose(sim, engine->run[engine->running - 1]);
	if (sim->config.ids == SIM_IDS_COUNTED)
		abandon_all(sim, engine);
	memset(engine->block, 0, sizeof(engine->block));
	engine->dying = false;
	engine->epoch++;
	engine->ids = 0;
	engine->handles = 0;
	engine->steps = 0;
	sim->port->open(sim, engine);
}

static struct sim_life *any_life(struct sim *sim, const struct sim_engine *engine)
{
	return engine->running ? engine->run[sim_below(&sim->chance, engine->running)] : NULL;
}

void sim_events(struct sim *sim, struct sim_engine *engine)
{
	const struct sim_config *config = &sim->config;
	struct r3ring_key_pair pair[2];
	uint32_t pairs = 0;

	engine->dying |= sim_chance(&sim->fault_chance, config->engine_dies);
	if (sim_chance(&sim->chance, config->preempt) && any_life(sim, engine))
		sim_life_put_back(sim, any_life(sim, engine));
	if (sim_chance(&sim->chance, config->retract)) {
		retract_all(sim, engine);
		weights_change(sim, engine);
	}
	if (sim_chance(&sim->chance, config->weights))
		weights_change(sim, engine);
	if (sim_chance(&sim->chance, config->abort) && any_life(sim, engine))
		abort_life(sim, any_life(sim, engine));
	if (sim_chance(&sim->chance, config->abandon) && engine->waiting)
		abandon_one(sim, engine);
	while (pairs < 2 && sim_chance(&sim->chance, config->copy) &&
	       sim_block_copy(sim, engine, &pair[pairs]))
		pairs++;
	if (pairs)
		sim->port->copy(sim, engine, pair, pairs);
}
