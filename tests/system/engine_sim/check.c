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
		sim_fault(sim, "%s: figures are not those of its cells", given->request->id);
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
				  given->request->id, told->position);
	}
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
		sim_fault(sim, "%s: %u tokens, which no attempt had", request->id,
			  given->info.tokens);
	if (!flags && given->info.tokens != last->kept)
		sim_fault(sim, "%s: %u tokens, it has %u", request->id, given->info.tokens,
			  last->kept);
	if (given->info.prompt_tokens != R3RING_UNKNOWN_U32 && request->given == 1 &&
	    !sim->config.disaggregated && !sim->config.max_bytes &&
	    given->info.prompt_tokens != request->life[0]->prompt)
		sim_fault(sim, "%s: prompt %u, it is %u", request->id, given->info.prompt_tokens,
			  request->life[0]->prompt);
	if (!flags && request->given == 1 && sim_config_is_lossless(&sim->config) &&
	    (given->info.prompt_tokens != request->life[0]->prompt ||
	     given->info.attempts != request->attempts + 1))
		sim_fault(sim, "%s: prompt %u, %u attempts", request->id, given->info.prompt_tokens,
			  given->info.attempts);
}

static const struct sim_engine *engine_named(const struct sim *sim, const char *channel)
{
	for (uint32_t i = 0; i < sim->channels; i++)
		if (strcmp(sim->channel[i].name, channel) == 0)
			return sim->channel[i].engine;
	return NULL;
}

/* Whether an attempt was told to be given up by the one engine, and a later one begun by the other.
 * A daemon says so of all that an engine leaves behind; a replica that goes on with it then looks
 * as if it had a request of its own, whose beginning was not heard. */
static bool went_on_from_its_end(const struct sim_request *request, const struct sim_engine *one,
				 const struct sim_engine *other)
{
	for (uint32_t i = 0; i < request->lives; i++)
		for (uint32_t j = 0; j < request->lives; j++) {
			const struct sim_life *ended = request->life[i], *later = request->life[j];

			if (ended->over_heard && later->ever_named &&
			    later->attempt > ended->attempt && ended->engine == one &&
			    later->engine == other)
				return true;
		}
	return false;
}

/* Whether all that a channel told of it was told whole. */
static bool heard_whole(const struct sim_life *life, const struct sim_channel *channel)
{
	return life->heard_of[channel->index] && !life->torn[channel->index] &&
	       !life->open[channel->index];
}

/* Whether no attempt was heard of, with all its steps, on both channels: then they may have no step
 * together, and a request of the id each. */
static bool heard_of_nothing_together(const struct sim *sim, const struct sim_given *given)
{
	const struct sim_channel *by[2] = {NULL, NULL};
	const struct sim_request *request = given->request;

	for (uint32_t i = 0; i < sim->channels; i++)
		for (int j = 0; j < 2; j++)
			if (strcmp(sim->channel[i].name, given->info.mixed_by[j]) == 0)
				by[j] = &sim->channel[i];
	/* What was told of it before it was given out for want of room is forgotten, and what was to
	 * come of the steps that were settled for that. */
	if (request->given > 1 || given->info.flags & R3RING_ASSEMBLED_EVICTED)
		return by[0] && by[1] && by[0] != by[1];
	for (uint32_t i = 0; by[0] && by[1] && i < request->lives; i++)
		if (heard_whole(request->life[i], by[0]) && heard_whole(request->life[i], by[1]))
			return false;
	return by[0] && by[1] && by[0] != by[1];
}

/* Ids are unique here, and whatever is lost must not look as if they were not. */
static void check_mixed(struct sim *sim, const struct sim_given *given)
{
	const struct sim_engine *one, *other;

	if (!(given->info.flags & R3RING_ASSEMBLED_MIXED))
		return;
	one = engine_named(sim, given->info.mixed_by[0]);
	other = engine_named(sim, given->info.mixed_by[1]);
	if (one == other && heard_of_nothing_together(sim, given))
		return;
	if (sim->config.min_ends || one == other ||
	    (!went_on_from_its_end(given->request, one, other) &&
	     !went_on_from_its_end(given->request, other, one)))
		sim_fault(sim, "%s: is said to be mixed of several", given->request->id);
}

static void check_given(struct sim *sim, const struct sim_given *given)
{
	check_mixed(sim, given);
	if (given->info.layers != sim->config.layers) {
		if (sim_config_is_lossless(&sim->config))
			sim_fault(sim, "%s: %u layers", given->request->id, given->info.layers);
		return;
	}
	check_figures(sim, given);
	check_length(sim, given);
	for (uint32_t position = 0; position < given->info.tokens; position++) {
		struct truth truth = sim_truth_of(sim, given->request, position);

		for (uint32_t layer = 0; layer < given->info.layers; layer++)
			sim_check_cell(sim, given, &truth, position, layer);
	}
	check_conflicts(sim, given);
}

/* ---- all ---------------------------------------------------------------- */

static void check_once(struct sim *sim, const struct sim_request *request)
{
	bool named = false;

	for (uint32_t i = 0; i < request->lives; i++)
		named |= request->life[i]->ever_named;
	if (named && !request->given)
		sim_fault(sim, "%s: never came out", request->id);
	if (sim_config_is_lossless(&sim->config) && request->lives && request->given != 1)
		sim_fault(sim, "%s: came out %u times", request->id, request->given);
}

/* Nothing lost: it comes when it ends, whole, and says so. */
static void check_flags(struct sim *sim, const struct sim_given *given)
{
	const struct sim_life *last = given->request->life[given->request->lives - 1];
	uint32_t flags = last->reason == R3RING_END_ABORTED ? R3RING_ASSEMBLED_ABORTED : 0;
	bool waits = last->engine->prefill_only;

	if (last->told_kept == R3RING_UNKNOWN_U32)
		flags |= R3RING_ASSEMBLED_LENGTH_GUESSED;
	if (waits)
		flags |= R3RING_ASSEMBLED_UNFINISHED;
	if (given->info.flags != flags)
		sim_fault(sim, "%s: flags %u in place of %u", given->request->id, given->info.flags,
			  flags);
	if (given->flushed && !waits)
		sim_fault(sim, "%s: came at the end only", given->request->id);
}

uint32_t sim_check(struct sim *sim)
{
	sim_account(sim);
	for (const struct sim_given *given = sim->given; given; given = given->next) {
		check_given(sim, given);
		if (sim_config_is_lossless(&sim->config))
			check_flags(sim, given);
		sim->figures.given++;
	}
	for (uint32_t i = 0; i < sim->requests; i++)
		check_once(sim, &sim->request[i]);
	sim->figures.requests += sim->requests;
	return sim->faults;
}
