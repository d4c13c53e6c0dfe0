/* SPDX-License-Identifier: Apache-2.0 */
/* What came out: lengths, figures, conflicts, flags, and each cell (cell.c). */
#include <string.h>

#include "tests/system/engine_sim/passes.h"

/* ---- a request ---------------------------------------------------------- */

static void check_figures(struct sim *sim, const struct sim_given *given)
{
	const struct r3ring_assembled_info *info = &given->info;
	uint64_t missing[R3RING_MISSING_CAUSES] = {0}, valid = 0;
	size_t cells = (size_t)info->tokens * info->layers;

	for (size_t i = 0; i < cells; i++) {
		valid += given->valid[i];
		missing[given->cause[i]] += given->cause[i] != 0;
	}
	if (info->cells != cells || info->cells_valid != valid ||
	    memcmp(missing, info->cells_missing, sizeof(missing)) ||
	    info->conflicts != missing[R3RING_CAUSE_CONFLICT] ||
	    info->conflicts_told != (info->conflicts < R3RING_CONFLICTS_TOLD
					     ? info->conflicts
					     : R3RING_CONFLICTS_TOLD))
		sim_fault(sim, "%s: figures are not those of its cells", given->request->name);
}

static bool is_in(const struct sim *sim, const struct sim_row *row, uint32_t channel, uint64_t step)
{
	return row->step->number == step && channel < sim->channels &&
	       sim->channel[channel].engine == row->step->engine;
}

/* A pass over the same tokens, by whoever: under one hash a cache may find any of them. */
static bool is_content(const struct sim *sim, const struct truth *truth, uint32_t channel,
		       uint64_t step)
{
	const uint64_t history = truth->request->history[truth->position];

	for (const struct sim_step *it = sim->steps; it; it = it->next)
		for (uint32_t i = 0; i < it->rows; i++)
			if (it->row[i].pass.history == history &&
			    is_in(sim, &it->row[i], channel, step))
				return true;
	return false;
}

static bool is_place(const struct sim *sim, const struct truth *truth, uint32_t channel,
		     uint64_t step)
{
	struct passes passes = {.truth = truth, .attempt = -1};
	const struct sim_row *row;

	while ((row = sim_passes_next(&passes)))
		if (is_in(sim, row, channel, step))
			return true;
	return sim->config.apart && is_content(sim, truth, channel, step);
}

/* Both places of a conflict are passes over that position. */
static void check_conflicts(struct sim *sim, const struct sim_given *given)
{
	for (uint32_t i = 0; i < given->info.conflicts_told; i++) {
		const struct r3ring_conflict *told = &given->info.conflict[i];
		struct truth truth = sim_truth_of(sim, given->request, told->position);

		if (!is_place(sim, &truth, told->channel[0], told->step[0]) ||
		    !is_place(sim, &truth, told->channel[1], told->step[1]) ||
		    (told->channel[0] == told->channel[1] && told->step[0] == told->step[1] &&
		     !sim->config.apart))
			sim_fault(sim, "%s: conflict at position %u names other places",
				  given->request->name, told->position);
	}
}

/* A known fault: of a part of another rank nothing may have been heard but the beginning, which may be
 * another request's. */
static bool may_begin_as_another(const struct sim *sim)
{
	return sim->config.ids != SIM_IDS_UNIQUE && !sim_config_is_lossless(&sim->config) &&
	       sim->config.stages * sim->config.shards > 1;
}

static void check_length(struct sim *sim, const struct sim_given *given)
{
	const struct sim_request *request = given->request;
	const struct sim_life *last = request->life[request->lives - 1];
	uint32_t flags = given->info.flags;
	bool kept = false;

	for (uint32_t i = 0; i < request->lives; i++)
		kept |= request->life[i]->kept == given->info.tokens;
	if (!(flags & R3RING_ASSEMBLED_LENGTH_GUESSED) && !kept)
		sim_fault(sim, "%s: %u tokens, which no attempt had", request->name,
			  given->info.tokens);
	if (!flags && given->info.tokens != last->kept)
		sim_fault(sim, "%s: %u tokens, it has %u", request->name, given->info.tokens,
			  last->kept);
	if (given->info.prompt_tokens != R3RING_UNKNOWN_U32 && request->given == 1 &&
	    !sim->config.disaggregated && !sim->config.max_bytes && !may_begin_as_another(sim) &&
	    given->info.prompt_tokens != request->life[0]->prompt)
		sim_fault(sim, "%s: prompt %u, it is %u", request->name, given->info.prompt_tokens,
			  request->life[0]->prompt);
	if (!flags && request->given == 1 && sim_config_is_lossless(&sim->config) &&
	    (given->info.prompt_tokens != request->life[0]->prompt ||
	     given->info.attempts != request->attempts + 1))
		sim_fault(sim, "%s: prompt %u, %u attempts", request->name,
			  given->info.prompt_tokens, given->info.attempts);
}

/* Whatever is lost must not look as if ids were not unique; and where they are not, as if nobody could
 * tell whose the parts are. */
static void check_mixed(struct sim *sim, const struct sim_given *given)
{
	if (!sim_may_be_mixed(sim, given))
		sim_fault(sim, "%s: is said to be mixed of several, by %s and %s",
			  given->request->name, given->info.mixed_by[0], given->info.mixed_by[1]);
}

static void check_given(struct sim *sim, const struct sim_given *given)
{
	if (given->info.flags & R3RING_ASSEMBLED_MIXED) {
		check_mixed(sim, given);
		sim->figures.mixed++;
		if (sim->config.ids != SIM_IDS_UNIQUE)
			return;
	}
	if (given->info.layers != sim->config.layers) {
		if (sim_config_is_lossless(&sim->config) && !sim_is_unclear(sim, given->request))
			sim_fault(sim, "%s: %u layers", given->request->name, given->info.layers);
		return;
	}
	check_figures(sim, given);
	if (!sim_is_unclear(sim, given->request))
		check_length(sim, given);
	for (uint32_t position = 0; position < given->info.tokens; position++) {
		struct truth truth = sim_truth_of(sim, given->request, position);

		for (uint32_t layer = 0; layer < given->info.layers; layer++)
			sim_check_cell(sim, given, &truth, position, layer);
	}
	if (!sim_is_unclear(sim, given->request))
		check_conflicts(sim, given);
}

/* ---- all ---------------------------------------------------------------- */

static void check_once(struct sim *sim, const struct sim_request *request)
{
	bool named = false;

	for (uint32_t i = 0; i < request->lives; i++)
		named |= request->life[i]->ever_named;
	/* It may have been put with others of its id. */
	if (sim_is_unclear(sim, request) || sim_one_is_mixed(sim, request))
		return;
	if (named && !request->given && !request->called)
		sim_fault(sim, "%s: never came out", request->name);
	if (sim_config_is_lossless(&sim->config) && request->lives && request->given != 1 &&
	    !sim_was_left(request))
		sim_fault(sim, "%s: came out %u times", request->name, request->given);
}

/* It was given up while it waited, and nobody tells of its end. */
static bool was_abandoned(const struct sim_life *last)
{
	return last->reason == R3RING_END_PREEMPTED;
}

/* Channels are fed apart: one may not know that it has ended on another engine. */
static bool moved(const struct sim_request *request)
{
	for (uint32_t i = 1; i < request->lives; i++)
		if (request->life[i]->engine != request->life[0]->engine)
			return true;
	return false;
}

/* Nothing lost: it comes when it ends, whole, and says so. */
static void check_flags(struct sim *sim, const struct sim_given *given)
{
	const struct sim_life *last = given->request->life[given->request->lives - 1];
	const uint32_t left = R3RING_ASSEMBLED_UNFINISHED | R3RING_ASSEMBLED_MIXED;
	uint32_t flags = last->reason == R3RING_END_ABORTED ? R3RING_ASSEMBLED_ABORTED : 0;
	bool waits = last->engine->prefill_only || was_abandoned(last);

	if (sim_was_left(given->request)) {
		if (!(given->info.flags & left) && given->request->given == 1 &&
		    !moved(given->request))
			sim_fault(sim, "%s: flags %u, though another began before it had ended",
				  given->request->name, given->info.flags);
		return;
	}
	if (sim_is_unclear(sim, given->request))
		return;
	if (last->told_kept == R3RING_UNKNOWN_U32)
		flags |= R3RING_ASSEMBLED_LENGTH_GUESSED;
	if (waits)
		flags |= R3RING_ASSEMBLED_UNFINISHED;
	if (given->info.flags != flags)
		sim_fault(sim, "%s: flags %u in place of %u", given->request->name,
			  given->info.flags, flags);
	if (given->flushed && !waits)
		sim_fault(sim, "%s: came at the end only", given->request->name);
}

uint32_t sim_check(struct sim *sim)
{
	const bool repeat = sim->config.ids != SIM_IDS_UNIQUE &&
			    !sim_config_is_lossless(&sim->config);

	sim_account(sim);
	for (struct sim_given *given = sim->given; repeat && given; given = given->next)
		if (given->info.layers == sim->config.layers)
			sim_find_whose(sim, given);
	for (const struct sim_given *given = sim->given; given; given = given->next) {
		check_given(sim, given);
		if (sim_config_is_lossless(&sim->config) && !sim_is_unclear(sim, given->request))
			check_flags(sim, given);
		sim->figures.given++;
	}
	for (uint32_t i = 0; i < sim->requests; i++)
		check_once(sim, &sim->request[i]);
	sim->figures.requests += sim->requests;
	return sim->faults;
}
