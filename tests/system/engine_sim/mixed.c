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

/* ---- two that live at a time on one channel ------------------------------------ */

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

bool sim_has_sibling(const struct sim *sim, const struct sim_request *request)
{
	bool has = false;

	for (uint32_t i = 0; i < sim->channels; i++)
		has |= request->has_sibling[i];
	return has && one_went_on(sim, request);
}

/* Whether two of the id did on the channel: which of them this one is part of nobody can know. */
static bool had_siblings(const struct sim *sim, const struct sim_request *request,
			 const struct sim_channel *channel)
{
	for (uint32_t i = 0; i < sim->requests; i++)
		if (sim_same_id(request, &sim->request[i]) &&
		    sim->request[i].has_sibling[channel->index])
			return true;
	return false;
}

bool sim_was_left(const struct sim_request *request)
{
	bool left = false;

	for (uint32_t i = 0; i < SIM_CHANNELS; i++)
		left |= request->left[i];
	return left;
}

/* ---- a known fault ------------------------------------------------------------- */

bool sim_may_be_anothers(const struct sim *sim, const struct sim_request *request)
{
	bool beside = false;

	for (uint32_t i = 0; i < sim->requests; i++) {
		const struct sim_request *other = &sim->request[i];

		if (!sim_same_id(request, other))
			continue;
		beside |= other->beside;
		for (uint32_t c = 0; c < sim->channels; c++)
			beside |= !sim_config_is_lossless(&sim->config) && other->has_sibling[c];
	}
	return beside && one_went_on(sim, request);
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
	if (one == other && had_siblings(sim, given->request, one))
		return one_went_on(sim, given->request);
	if (one == other)
		return sim->config.ids != SIM_IDS_UNIQUE && !sim_config_is_lossless(&sim->config) &&
		       is_uncounted(sim, given, one);
	if (one->engine == other->engine)
		return heard_of_nothing_together(sim, given, one, other);
	return !sim->config.min_ends &&
	       replicas_may_be_mixed(sim, given->request, one->engine, other->engine);
}
