/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What attempts may have run in records that were lost, for all that readers can know. Where an
 * attempt's end was heard it ran no more than it says; where nothing was lost behind a channel's
 * newest span of it, no more than that; and of the rows of a shard, any of its channels tells.
 */
#include "tests/system/engine_sim/passes.h"

static bool is_reader_of(const struct sim *sim, const struct sim_life *life, uint32_t channel)
{
	return sim->channel[channel].engine == life->engine && !sim->channel[channel].copy &&
	       !sim->channel[channel].draft && life->heard_of[channel];
}

/* Whether a channel told of what came behind it: channels are read apart. */
static bool was_heard_out(const struct sim_life *life, uint32_t channel)
{
	const struct sim_request *request = life->request;

	for (uint32_t i = 0; i < request->lives; i++)
		if (request->life[i]->attempt > life->attempt &&
		    request->life[i]->heard_of[channel])
			return true;
	return life->ended[channel];
}

/* ---- how much was kept ---------------------------------------------------- */

static bool lost_end(const struct sim *sim, const struct sim_life *life)
{
	for (uint32_t c = 0; c < sim->channels; c++)
		if (is_reader_of(sim, life, c) &&
		    (life->ended[c] || (was_heard_out(life, c) && !life->open[c])))
			return false;
	return true;
}

/* With several engines that each have a part of it, what the others lost may be theirs. */
static bool others_lost(const struct sim *sim, const struct sim_request *request, int32_t attempt)
{
	uint32_t named = 0;

	for (uint32_t i = 0; i < request->lives; i++)
		named += request->life[i]->attempt == attempt && request->life[i]->ever_named;
	return sim->config.disaggregated && (sim->gaps || sim->losses) && named < 2;
}

/* Whether prompts of later attempts say what was kept of those before. */
static bool prompts_count(const struct sim_request *request)
{
	for (uint32_t i = 0; i < request->lives; i++)
		for (uint32_t j = 0; j < i; j++) {
			const struct sim_life *life = request->life[i], *before = request->life[j];

			if (life->engine == before->engine && life->ever_named &&
			    before->ever_named && life->told_prompt > before->told_prompt)
				return true;
		}
	return false;
}

static bool told_kept(const struct sim_life *life)
{
	return life->end_heard && life->told_kept != R3RING_UNKNOWN_U32;
}

/* Whether its engine ended the attempt without a word of how much was kept, which nothing bounds that
 * another one sampled of it. */
static bool left_open(const struct sim_life *life)
{
	const struct sim_request *request = life->request;

	if (told_kept(life))
		return false;
	for (uint32_t i = 0; i < request->lives; i++) {
		const struct sim_life *other = request->life[i];

		if (other->attempt == life->attempt && other->engine != life->engine &&
		    told_kept(other) && other->told_kept > other->told_prompt)
			return false;
	}
	return true;
}

struct kept sim_kept_of(const struct sim *sim, const struct sim_request *request, int32_t attempt)
{
	struct kept kept = {0};
	bool open = false, next = false, lost = others_lost(sim, request, attempt);

	for (uint32_t i = 0; i < request->lives; i++) {
		const struct sim_life *life = request->life[i];
		uint32_t least = life->told_prompt;

		if (!life->ever_named || life->attempt < attempt || life->attempt > attempt + 1)
			continue;
		next |= life->attempt == attempt + 1;
		if (life->attempt == attempt) {
			lost |= lost_end(sim, life);
			open |= left_open(life);
			if (told_kept(life))
				least = least > life->told_kept ? least : life->told_kept;
		}
		kept.least = kept.least > least ? kept.least : least;
	}
	kept.cut_off = (lost || open) && !(next && prompts_count(request));
	return kept;
}

static int32_t newest_named(const struct sim_request *request)
{
	int32_t newest = -1;

	for (uint32_t i = 0; i < request->lives; i++)
		if (request->life[i]->ever_named && request->life[i]->attempt > newest)
			newest = request->life[i]->attempt;
	return newest;
}

/* Whether the attempt ended without a word of how many tokens it kept, of those before it too, or nobody
 * heard of it. */
static bool may_have_thrown_away(const struct sim *sim, const struct sim_request *request,
				 int32_t attempt)
{
	bool named = false, untold = false;

	for (uint32_t i = 0; i < request->lives; i++) {
		const struct sim_life *life = request->life[i];

		named |= life->attempt == attempt && life->ever_named;
		untold |= life->attempt == attempt && life->ever_named && !told_kept(life);
	}
	if (!named)
		return !prompts_count(request);
	return untold && sim_kept_of(sim, request, attempt).cut_off;
}

bool sim_may_be_thrown_away(const struct sim *sim, const struct sim_request *request,
			    int32_t attempt, uint32_t position)
{
	for (; attempt < newest_named(request); attempt++)
		if (position >= request->prompt && may_have_thrown_away(sim, request, attempt))
			return true;
	return false;
}

/* ---- what was run ---------------------------------------------------------- */

/* Later positions that a channel was told of may be other shards' rows; and ones that are run again,
 * where new weights came in what was lost, say nothing of what was run before. */
static bool knows_not_run(const struct sim *sim, const struct sim_life *life, uint32_t channel,
			  uint32_t position)
{
	if (!was_heard_out(life, channel))
		return false;
	if (sim->config.shards > 1 && life->torn[channel])
		return false;
	for (uint32_t i = position; life->seen[channel] && i < SIM_POSITIONS; i++)
		if (life->seen[channel][i].known != SIM_NOTHING)
			return i > position && !life->torn[channel];
	return !life->open[channel] && !life->renewed[channel];
}

static bool life_may_have_run(const struct sim *sim, const struct sim_life *life, uint32_t position)
{
	for (uint32_t shard = 0; shard < sim->config.shards; shard++) {
		bool known = false;

		for (uint32_t c = 0; c < sim->channels; c++)
			known |= is_reader_of(sim, life, c) && sim->channel[c].shard == shard &&
				 knows_not_run(sim, life, c, position);
		if (!known)
			return true;
	}
	return false;
}

bool sim_may_have_run(const struct sim *sim, const struct sim_request *request, int32_t attempt,
		      uint32_t position)
{
	const struct kept kept = sim_kept_of(sim, request, attempt);

	if (position >= kept.least)
		return kept.cut_off;
	for (uint32_t i = 0; i < request->lives; i++)
		if (request->life[i]->attempt == attempt && request->life[i]->ever_named &&
		    life_may_have_run(sim, request->life[i], position))
			return true;
	return others_lost(sim, request, attempt);
}
