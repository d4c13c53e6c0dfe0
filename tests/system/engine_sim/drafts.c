/* SPDX-License-Identifier: Apache-2.0 */
/* Speculative decoding: what was accepted, and when the host learns of it. */
#include "tests/system/engine_sim/sim.h"

uint32_t sim_drafts_accept(struct sim *sim, uint32_t rows)
{
	return 1 + sim_below(&sim->chance, rows);
}

void sim_late_note(struct sim *sim, struct sim_step *step)
{
	struct sim_step **end = &step->engine->pending;

	if (!step->late)
		return;
	step->due = sim->config.lag + 1;
	while (*end)
		end = &(*end)->pending;
	*end = step;
}

static bool has_life(const struct sim_step *step, const struct sim_life *life)
{
	for (uint32_t i = 0; i < step->spans; i++)
		if (step->span[i].life == life && step->span[i].late)
			return true;
	return false;
}

/* How many tokens of its request are computed, once the step's span is known. */
static uint32_t tokens_behind(const struct r3ring_span *span)
{
	return span->position + (span->flags & R3RING_SPAN_DRAFT ? span->accepted : span->rows);
}

static void tell_first(struct sim *sim, struct sim_engine *engine)
{
	struct sim_step *step = engine->pending;

	engine->pending = step->pending;
	if (!sim_chance(&sim->fault_chance, sim->config.never_late))
		sim->port->late(sim, step);
	else
		sim->losses++;
	for (uint32_t i = 0; i < step->spans; i++) {
		struct sim_life *life = step->span[i].life;

		if (!step->span[i].late)
			continue;
		life->untold--;
		if (!life->reason)
			sim_cache_label(sim, life, tokens_behind(&step->span[i].told));
	}
}

void sim_late_tell(struct sim *sim, struct sim_engine *engine, const struct sim_life *life)
{
	struct sim_step *step;
	uint32_t told = 0, count = 0;

	for (step = engine->pending; step; step = step->pending) {
		count++;
		if (!life && step->due)
			step->due--;
		if (life ? has_life(step, life) : step->due == 0)
			told = count;
	}
	while (told--)
		tell_first(sim, engine);
}
