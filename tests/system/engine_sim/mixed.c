/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether it is true that nobody can know whose the parts of a request are, where it is said to be
 * mixed of several: in what the reference tells, and in nothing else.
 */
#include <string.h>

#include "tests/system/engine_sim/passes.h"

static const struct sim_channel *channel_named(const struct sim *sim, const char *name)
{
	for (uint32_t i = 0; i < sim->channels; i++)
		if (strcmp(sim->channel[i].name, name) == 0)
			return &sim->channel[i];
	return NULL;
}

/* ---- data-parallel ranks ---------------------------------------------------- */

static bool went_on_as(const struct sim_request *request, const struct sim_life *ended,
		       const struct sim_engine *other)
{
	for (uint32_t i = 0; i < request->lives; i++) {
		const struct sim_life *later = request->life[i];

		if (later->ever_named && later->attempt > ended->attempt && later->engine == other)
			return true;
	}
	return false;
}

/* Whether an attempt was told to be given up by the one engine, and a later one begun by the other.
 * A daemon says so of all that an engine leaves behind; a replica that goes on with it then looks
 * as if it had a request of its own, whose beginning was not heard. */
static bool went_on_from_its_end(const struct sim *sim, const struct sim_request *request,
				 const struct sim_engine *one, const struct sim_engine *other)
{
	for (uint32_t i = 0; i < request->lives; i++)
		for (uint32_t j = 0; j < sim->requests; j++)
			if (request->life[i]->over_heard && request->life[i]->engine == one &&
			    sim_same_id(request, &sim->request[j]) &&
			    went_on_as(&sim->request[j], request->life[i], other))
				return true;
	return false;
}

static bool replicas_may_be_mixed(const struct sim *sim, const struct sim_request *request,
				  const struct sim_engine *one, const struct sim_engine *other)
{
	for (uint32_t i = 0; i < sim->requests; i++)
		if (sim_same_id(request, &sim->request[i]) &&
		    (went_on_from_its_end(sim, &sim->request[i], one, other) ||
		     went_on_from_its_end(sim, &sim->request[i], other, one)))
			return true;
	return false;
}

/* ---- ranks of one engine ---------------------------------------------------- */

/* Whether all that a channel told of it was told whole. */
static bool heard_whole(const struct sim_life *life, const struct sim_channel *channel)
{
	return life->heard_of[channel->index] && !life->torn[channel->index] &&
	       !life->open[channel->index];
}

static bool heard_together(const struct sim_request *request, const struct sim_channel *one,
			   const struct sim_channel *other)
{
	for (uint32_t i = 0; i < request->lives; i++)
		if (heard_whole(request->life[i], one) && heard_whole(request->life[i], other))
			return true;
	return false;
}

/* Whether no attempt of a request of the id was heard of, with all its steps, on both channels: then they may
 * have no step together, and a request of the id each. */
static bool heard_of_nothing_together(const struct sim *sim, const struct sim_given *given,
				      const struct sim_channel *one,
				      const struct sim_channel *other)
{
	const struct sim_request *request = given->request;

	/* What was told of it before it was given out for want of room is forgotten, and what was to
	 * come of the steps that were settled for that. */
	if (request->given > 1 || given->info.flags & R3RING_ASSEMBLED_EVICTED)
		return true;
	for (uint32_t i = 0; i < sim->requests; i++)
		if (sim->request[i].lives && sim_same_id(request, &sim->request[i]) &&
		    !heard_together(&sim->request[i], one, other))
			return true;
	return false;
}

/* Likewise on one channel and any other of its engine: whose its requests are is not known then. */
static bool is_uncounted(const struct sim *sim, const struct sim_given *given,
			 const struct sim_channel *channel)
{
	for (uint32_t i = 0; i < channel->engine->channels; i++)
		if (heard_of_nothing_together(sim, given, channel,
					      &sim->channel[channel->engine->first_channel + i]))
			return true;
	return false;
}

/* Whether a request of the id went on. */
static bool one_went_on(const struct sim *sim, const struct sim_request *request)
{
	for (uint32_t i = 0; i < sim->requests; i++)
		for (uint32_t j = 0; j < sim->request[i].lives; j++)
			if (sim_same_id(request, &sim->request[i]) &&
			    sim->request[i].life[j]->attempt && sim->request[i].life[j]->ever_named)
				return true;
	return false;
}

/* ---- whose an attempt is -------------------------------------------------------- */

/* Whether an attempt before it was told of where this one is, in this life of its engine, and the handle of the
 * first such is told with it. */
static bool tells_whose(const struct sim *sim, const struct sim_life *life, uint32_t channel)
{
	const struct sim_request *request = life->request;

	if (sim->config.untold)
		return false;
	for (uint32_t i = 0; request->life[i] != life; i++)
		if (request->life[i]->engine == life->engine &&
		    request->life[i]->epoch == life->epoch && request->life[i]->heard_of[channel])
			return true;
	return false;
}

/* Whether a later attempt of the request was heard of, which does not tell whose it is. */
static bool went_on_untold(const struct sim *sim, const struct sim_request *request)
{
	for (uint32_t i = 0; i < request->lives; i++)
		for (uint32_t c = 0; c < sim->channels; c++)
			if (request->life[i]->attempt && request->life[i]->heard_of[c] &&
			    !tells_whose(sim, request->life[i], c))
				return true;
	return false;
}

static bool was_heard_of(const struct sim_request *request)
{
	for (uint32_t i = 0; i < request->lives; i++)
		if (request->life[i]->ever_named)
			return true;
	return false;
}

/* Whether two of the id lived at a time on one channel. */
static bool had_siblings(const struct sim *sim, const struct sim_request *request)
{
	for (uint32_t i = 0; i < sim->requests; i++)
		for (uint32_t c = 0; c < sim->channels; c++)
			if (sim_same_id(request, &sim->request[i]) &&
			    sim->request[i].has_sibling[c])
				return true;
	return false;
}

bool sim_is_unclear(const struct sim *sim, const struct sim_request *request)
{
	uint32_t heard = 0;
	bool untold = false;

	if (sim->config.ids == SIM_IDS_UNIQUE)
		return false;
	for (uint32_t i = 0; i < sim->requests; i++) {
		const struct sim_request *other = &sim->request[i];

		if (!other->lives || !sim_same_id(request, other))
			continue;
		heard += was_heard_of(other);
		untold |= went_on_untold(sim, other);
	}
	if (heard < 2)
		return false;
	/* Of two that live at a time the first is given out; what goes on with it may look like another rank's. */
	if (had_siblings(sim, request))
		return untold || (sim->config.replicas > 1 && one_went_on(sim, request));
	return untold && (sim->config.replicas > 1 || !sim_config_is_lossless(&sim->config));
}

static bool were_told_apart(const struct sim_request *request, const struct sim_request *other)
{
	for (uint32_t i = 0; i < request->lives; i++)
		for (uint32_t j = 0; j < other->lives; j++)
			if (request->life[i]->ever_named && other->life[j]->ever_named &&
			    request->life[i]->attempt == other->life[j]->attempt)
				return true;
	return false;
}

bool sim_seem_one(const struct sim *sim, const struct sim_request *request)
{
	if (sim->config.ids == SIM_IDS_UNIQUE || sim_config_is_lossless(&sim->config))
		return false;
	for (uint32_t i = 0; i < sim->requests; i++)
		for (uint32_t j = 0; j < i; j++)
			if (sim_same_id(request, &sim->request[i]) &&
			    sim_same_id(request, &sim->request[j]) &&
			    were_told_apart(&sim->request[i], &sim->request[j]))
				return false;
	return true;
}

bool sim_was_left(const struct sim_request *request)
{
	bool left = false;

	for (uint32_t i = 0; i < SIM_CHANNELS; i++)
		left |= request->left[i];
	return left;
}

bool sim_one_is_mixed(const struct sim *sim, const struct sim_request *request)
{
	for (const struct sim_given *given = sim->given; given; given = given->next)
		if (sim_same_id(given->request, request) &&
		    given->info.flags & R3RING_ASSEMBLED_MIXED)
			return true;
	return false;
}

bool sim_may_be_mixed(const struct sim *sim, const struct sim_given *given)
{
	const struct sim_channel *one = channel_named(sim, given->info.mixed_by[0]);
	const struct sim_channel *other = channel_named(sim, given->info.mixed_by[1]);

	if (!one || !other)
		return false;
	if (sim_is_unclear(sim, given->request))
		return true;
	if (one == other)
		return sim->config.ids != SIM_IDS_UNIQUE && !sim_config_is_lossless(&sim->config) &&
		       is_uncounted(sim, given, one);
	if (one->engine == other->engine)
		return heard_of_nothing_together(sim, given, one, other);
	return !sim->config.min_ends &&
	       replicas_may_be_mixed(sim, given->request, one->engine, other->engine);
}
