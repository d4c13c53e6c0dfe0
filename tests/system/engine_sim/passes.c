/* SPDX-License-Identifier: Apache-2.0 */
/* Which pass over a position counts, and which others there were. */
#include "tests/system/engine_sim/passes.h"

/* By the engine that kept the most of it: one that only prefills ends where the prompt does. */
static uint32_t kept_of(const struct sim_request *request, uint32_t attempt)
{
	uint32_t kept = 0;
	bool ran = false;

	for (uint32_t i = 0; i < request->lives; i++) {
		const struct sim_life *life = request->life[i];

		ran |= life->attempt == attempt;
		if (life->attempt == attempt && life->kept > kept)
			kept = life->kept;
	}
	return ran ? kept : R3RING_UNKNOWN_U32;
}

uint32_t sim_limit_of(const struct sim_request *request, uint32_t attempt)
{
	uint32_t limit = R3RING_UNKNOWN_U32;

	while (++attempt <= request->attempts)
		if (kept_of(request, attempt) < limit)
			limit = kept_of(request, attempt);
	return limit;
}

/* What an engine ran past its own end does not count, where another went on with the attempt
 * either. */
static bool consumed(const struct sim_request *request, uint32_t attempt, uint32_t position)
{
	if (position >= sim_limit_of(request, attempt))
		return false;
	for (uint32_t i = 0; i < request->lives; i++)
		if (request->life[i]->attempt == attempt && position < request->life[i]->kept &&
		    (request->life[i]->fill[position].pass ||
		     request->life[i]->fill[position].external))
			return true;
	return false;
}

/* The attempt that counts; -1 when no pass consumed the token. */
static int32_t attempt_of(const struct sim *sim, const struct sim_request *request,
			  uint32_t position)
{
	int32_t attempt;

	if (sim->config.policy == R3RING_ROWS_LATEST) {
		for (attempt = (int32_t)request->attempts; attempt >= 0; attempt--)
			if (consumed(request, (uint32_t)attempt, position))
				return attempt;
		return -1;
	}
	for (attempt = 0; attempt <= (int32_t)request->attempts; attempt++)
		if (consumed(request, (uint32_t)attempt, position))
			return attempt;
	return -1;
}

bool sim_sampled_behind(const struct sim_request *request, uint32_t attempt, uint32_t position)
{
	for (uint32_t i = 0; i < request->lives; i++) {
		const struct sim_life *life = request->life[i];

		if (life->attempt == attempt && !life->engine->prefill_only &&
		    life->kept > life->prompt && position + 1 < life->kept)
			return true;
	}
	return false;
}

/* The pass of a life that counts. */
static const struct sim_row *pass_of(const struct sim *sim, const struct sim_fill *fill)
{
	if (!fill->again || sim->config.policy == R3RING_ROWS_FIRST ||
	    (fill->pass && fill->again->pass.weights == fill->pass->pass.weights))
		return fill->pass;
	return fill->again;
}

bool sim_counts_more(const struct sim *sim, const struct sim_row *pass, const struct sim_row *other)
{
	return sim->config.policy == R3RING_ROWS_FIRST ? pass->pass.weights < other->pass.weights
						       : pass->pass.weights > other->pass.weights;
}

static void truth_add(const struct sim *sim, struct truth *truth, const struct sim_row *pass)
{
	if (truth->passes && sim_counts_more(sim, pass, truth->pass[0]))
		truth->passes = 0;
	if (!truth->passes || pass->pass.weights == truth->pass[0]->pass.weights)
		truth->pass[truth->passes++] = pass;
}

struct truth sim_truth_of(const struct sim *sim, const struct sim_request *request,
			  uint32_t position)
{
	struct truth truth = {.attempt = attempt_of(sim, request, position),
			      .request = request,
			      .position = position};

	for (uint32_t i = 0; i < request->lives; i++) {
		const struct sim_fill *fill = &request->life[i]->fill[position];
		const struct sim_row *pass = pass_of(sim, fill);

		if ((int32_t)request->life[i]->attempt != truth.attempt ||
		    position >= request->life[i]->kept)
			continue;
		truth.external |= fill->external;
		if (pass)
			truth_add(sim, &truth, pass);
	}
	return truth;
}

const struct sim_life *sim_passes_life(const struct passes *passes)
{
	return passes->truth->request->life[passes->life - 1];
}

const struct sim_row *sim_passes_next(struct passes *passes)
{
	const struct sim_request *request = passes->truth->request;
	const struct sim_row *row = passes->next;

	if (row) {
		passes->next = row->former;
		return row;
	}
	while (passes->life < request->lives) {
		const struct sim_life *life = request->life[passes->life++];
		const struct sim_fill *fill = &life->fill[passes->truth->position];

		if (passes->attempt >= 0 && life->attempt != passes->attempt)
			continue;
		passes->next = fill->again;
		if (fill->pass)
			return fill->pass;
		if (passes->next)
			return sim_passes_next(passes);
	}
	return NULL;
}
