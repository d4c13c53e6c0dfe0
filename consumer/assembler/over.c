/* SPDX-License-Identifier: Apache-2.0 */
/* Which requests are over, by what the channels that have a part of them told; those go to the user. */
#include <string.h>

#include <utlist.h>

#include "consumer/assembler/assembler.h"
#include "consumer/assembler/gone.h"

static uint32_t ranks_of_engine(const struct channel *channel)
{
	const struct r3ring_coordinates *rank = &channel->schema.rank;

	return coordinate_size(rank->pp) * coordinate_size(rank->sp) * coordinate_size(rank->cp);
}

/* How many channels know a request of this one. */
static uint32_t ends_needed(const struct r3ring_assembler *assembler, const struct channel *channel)
{
	if (assembler->options.min_ends)
		return assembler->options.min_ends;
	return ranks_of_engine(channel);
}

/* How many have told of its end. */
static uint32_t ends_told(const struct request *request)
{
	uint32_t ends = 0;

	/* One that was preempted may go on, here or elsewhere. */
	for (const struct part *part = request->part; part; part = part->next)
		ends += (part->final || part->left) && !part->live;
	return ends;
}

/* Whether an end that was no preemption is known, on any channel. Where a keyframe that did not
 * name it was all there was, it may have gone on since. */
static bool has_end(const struct request *request)
{
	for (const struct part *part = request->part; part; part = part->next)
		if (part->final)
			return true;
	return false;
}

/* Whether a rank told that the attempt that the request was in last was preempted, and none of another end
 * of it: where a daemon had lost sight of the others, the request may have gone on. */
static bool was_preempted_last(const struct request *request)
{
	bool preempted = false;
	uint16_t number = 0;

	for (const struct part *part = request->part; part; part = part->next)
		if (part->attempts && part_newest(part)->number > number)
			number = part_newest(part)->number;
	for (const struct part *part = request->part; part; part = part->next) {
		const struct attempt *last = part_find_attempt(part, number);

		if (!last || !last->ended)
			continue;
		if (part->final && !last->given_up)
			return false;
		preempted |= !part->final;
	}
	return preempted;
}

static bool has_told(const struct request *request, const struct channel *channel, uint16_t number)
{
	for (const struct part *part = request->part; part; part = part->next)
		if (part->channel == channel->index)
			return part->attempts && part_newest(part)->number >= number;
	return false;
}

/* Whether other ranks of the engine are yet to tell of an attempt that the part's told of: channels
 * are fed apart. One that lost records may have lost that. */
static bool waits_for_ranks(const struct r3ring_assembler *assembler, const struct part *part)
{
	const struct channel *channel = assembler->channel[part->channel];
	const struct attempt *newest = part_newest(part);
	uint32_t told = 1;

	if (part->final || part->left || !newest || part->generation != channel->generation)
		return false;
	for (uint32_t i = 0; i < assembler->channels; i++) {
		const struct channel *other = assembler->channel[i];

		if (!channels_of_one_engine(channel, other))
			continue;
		if (other->lossy)
			return false;
		told += has_told(part->request, other, newest->number);
	}
	return told < ranks_of_engine(channel);
}

bool all_have_told(const struct r3ring_assembler *assembler, const struct request *request)
{
	return ends_told(request) >=
	       ends_needed(assembler, assembler->channel[request->part->channel]);
}

/* Until it is known that the runs of its parts are of one start. */
static bool waits_for_times(const struct r3ring_assembler *assembler, const struct request *request)
{
	for (const struct part *part = request->part; part; part = part->next)
		for (const struct part *other = part->next; other; other = other->next)
			if (channels_of_one_engine(assembler->channel[part->channel],
						   assembler->channel[other->channel]) &&
			    parts_compare(assembler, part, other) == MAY_BE_ONE)
				return true;
	return false;
}

static bool is_over(const struct r3ring_assembler *assembler, const struct request *request)
{
	if (!has_end(request) || !all_have_told(assembler, request))
		return false;
	for (const struct part *part = request->part; part; part = part->next)
		if (part->live || waits_for_ranks(assembler, part))
			return false;
	return true;
}

/* Ranks that are yet to tell of a request that goes: what they tell next of its id is not counted by
 * those that are there. */
static void ranks_uncount(struct r3ring_assembler *assembler, const struct request *request)
{
	if (assembler->flushing)
		return;
	for (const struct part *part = request->part; part; part = part->next) {
		const struct channel *channel = assembler->channel[part->channel];

		if (ranks_of_engine(channel) * coordinate_size(channel->schema.rank.tp) == 1)
			continue;
		for (uint32_t i = 0; i < assembler->channels; i++) {
			struct channel *other = assembler->channel[i];
			const struct part *its = part_on(request, other);

			if (channels_of_one_engine(channel, other) &&
			    (!its || !(its->final || its->left)))
				other->uncounted = true;
		}
		assembler->let_go_early |= !all_have_told(assembler, request);
	}
}

void request_let_go(struct r3ring_assembler *assembler, struct request *request, uint32_t flags)
{
	ranks_uncount(assembler, request);
	gone_note(assembler, request, flags);
	for (struct part *part = request->part; part; part = part->next) {
		part_delist(assembler->channel[part->channel], part);
		if (part->guessed)
			flags |= R3RING_ASSEMBLED_LENGTH_GUESSED;
	}
	DL_DELETE(assembler->all, request);
	request_delist(assembler, request);
	assembler->stats.requests_live--;
	/* A rank that is silent is missing; an instance that is may have gone on. */
	if (!has_end(request) || was_preempted_last(request) ||
	    ends_told(request) < assembler->options.min_ends)
		flags |= R3RING_ASSEMBLED_UNFINISHED;
	if (request->aborted)
		flags |= R3RING_ASSEMBLED_ABORTED;
	if (assembler->onlooker.ctx) {
		assembler->onlooker.over(assembler->onlooker.ctx, request, flags);
		request_free(request);
	} else {
		request_give(assembler, request, flags);
	}
}

void request_give_if_over(struct r3ring_assembler *assembler, struct request *request)
{
	if (!is_over(assembler, request))
		return;
	if (waits_for_times(assembler, request))
		assembler->waits_for_times = true;
	else
		request_let_go(assembler, request, 0);
}

void requests_look_again(struct r3ring_assembler *assembler)
{
	struct request *request, *next;

	assembler->waits_for_times = false;
	DL_FOREACH_SAFE(assembler->all, request, next)
	{
		request_give_if_over(assembler, request);
	}
}
