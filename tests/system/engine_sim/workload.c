/* SPDX-License-Identifier: Apache-2.0 */
/* Requests: their prompts, turns and tokens; an attempt begins and ends. */
#include <stdio.h>
#include <stdlib.h>

#include "tests/system/engine_sim/sim.h"

#define PROMPT_MOST 40u
#define SAMPLED_MOST 16u
#define FAMILIES 3u
#define LONGEST 96u /* and what an engine runs past the stop */

void sim_sample(struct sim_request *request, uint32_t tokens, uint64_t salt)
{
	for (uint32_t i = 0; i < tokens && request->length < SIM_POSITIONS; i++) {
		uint64_t before = request->length ? request->history[request->length - 1] : 0;
		uint64_t token = sim_mix(request->number, salt);

		request->history[request->length++] = sim_mix(before, token) | 1;
	}
}

/* A prefix that requests of one family share, then tokens of its own. */
static void prompt_make(struct sim *sim, struct sim_request *request)
{
	uint32_t shared = sim_below(&sim->chance, 2) ? 4 * sim_below(&sim->chance, 5) : 0;
	uint64_t family = 1000 + sim_below(&sim->chance, FAMILIES);

	if (shared > request->prompt)
		shared = request->prompt;
	for (uint32_t i = 0; i < shared; i++)
		request->history[i] = sim_mix(i ? request->history[i - 1] : 0, sim_mix(family, i)) |
				      1;
	request->length = shared;
	sim_sample(request, request->prompt - shared, 0);
}

static void request_make(struct sim *sim, struct sim_request *request)
{
	request->prompt = 1 + sim_below(&sim->chance, PROMPT_MOST);
	request->target = request->prompt + 1 + sim_below(&sim->chance, SAMPLED_MOST);
	request->conversation = request->number;
	request->turns = 1;
	prompt_make(sim, request);
}

/* Its prompt is what the turn before was given and gave, and so many tokens more; how many
 * those are is known when that is over. */
static void turn_make(struct sim *sim, struct sim_request *request, struct sim_request *before)
{
	before->next_turn = request;
	request->prompt = 1 + sim_below(&sim->chance, 6);
	request->target = request->prompt + 1 + sim_below(&sim->chance, SAMPLED_MOST / 2);
	request->conversation = before->conversation;
	request->turns = before->turns + 1;
}

void sim_workload_make(struct sim *sim)
{
	sim->requests = sim->config.requests;
	for (uint32_t i = 0; i < sim->requests; i++) {
		struct sim_request *request = &sim->request[i];
		struct sim_request *before = i ? &sim->request[i - 1] : NULL;

		request->number = i;
		if (before && sim_below(&sim->chance, 4) == 0)
			turn_make(sim, request, before);
		else
			request_make(sim, request);
		snprintf(request->name, sizeof(request->name), "request-%u", i);
		snprintf(request->id, sizeof(request->id), "%s", request->name);
		snprintf(request->session, sizeof(request->session), "session-%u",
			 request->conversation);
		snprintf(request->turn, sizeof(request->turn), "%u", request->turns);
	}
}

void sim_enqueue(struct sim *sim, struct sim_engine *engine, struct sim_request *request)
{
	sim_trace(sim, "engine %u: %s waits", engine->index, request->name);
	engine->wait[engine->waiting++] = request;
}

struct sim_life *sim_life_begin(struct sim *sim, struct sim_engine *engine,
				struct sim_request *request)
{
	struct sim_life *life = calloc(1, sizeof(*life));

	if (!request->lives)
		sim_id_give(sim, engine, request);
	request->life[request->lives++] = life;
	life->request = request;
	life->engine = engine;
	life->attempt = (uint16_t)request->attempts;
	life->epoch = engine->epoch;
	life->handle = ++engine->handles;
	life->prompt = request->length;
	life->told_prompt = sim->config.prompt_once ? request->life[0]->prompt : life->prompt;
	life->kept = R3RING_UNKNOWN_U32;
	life->told_kept = R3RING_UNKNOWN_U32;
	sim_trace(sim, "engine %u: %s attempt %u begins as %u, '%s', prompt %u", engine->index,
		  request->name, life->attempt, (unsigned int)life->handle, request->id,
		  life->prompt);
	sim->port->begin(sim, life);
	return life;
}

uint64_t sim_life_first(const struct sim_life *life)
{
	struct sim_life *const *first = life->request->life;

	while ((*first)->engine != life->engine || (*first)->epoch != life->epoch)
		first++;
	return (*first)->handle;
}

void sim_request_over(struct sim *sim, struct sim_request *request)
{
	struct sim_request *next = request->next_turn;

	request->done = true;
	if (!next)
		return;
	if (request->target + next->target > LONGEST) {
		next->done = true;
		return;
	}
	for (uint32_t i = 0; i < request->target; i++)
		next->history[i] = request->history[i];
	next->length = request->target;
	next->target += request->target;
	sim_sample(next, next->prompt, 0);
	next->prompt = next->length;
	sim_enqueue(sim, &sim->engine[0], next);
}

void sim_life_end(struct sim *sim, struct sim_life *life, enum r3ring_end_reason reason,
		  uint32_t kept, enum sim_end_told told)
{
	struct sim_engine *engine = life->engine;
	uint32_t i = 0;

	life->reason = (uint8_t)reason;
	life->kept = kept;
	if (told == SIM_END_TOLD)
		life->told_kept = kept;
	while (engine->run[i] != life)
		i++;
	for (engine->running--; i < engine->running; i++)
		engine->run[i] = engine->run[i + 1];
	sim_blocks_release(life);
	sim_trace(sim, "engine %u: %s attempt %u ends (%u), %u tokens%s", engine->index,
		  life->request->name, life->attempt, reason, kept,
		  told == SIM_END_TOLD ? "" : ", but nobody says so");
	if (told != SIM_END_UNTOLD)
		sim->port->end(sim, life);
}
