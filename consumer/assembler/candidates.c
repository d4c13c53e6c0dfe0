/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An attempt that does not tell which request of its id it goes on with (another rank began it anew, or a
 * new life of its engine, or nobody says what was first) is put behind the one that there is. Where it
 * could be another's as well nobody can know whose it is, and what came of it is MIXED; also where that
 * other one is heard of later, since channels are fed apart. What has ended goes on no more.
 */
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "consumer/assembler/assembler.h"
#include "consumer/assembler/gone.h"

/* ---- ids that have ended ---------------------------------------------------- */

#define ENDED_MOST 4096u /* a power of two */

/* Each id has one place, which it shares with few others: the newest of them is remembered. */
static uint64_t hash_of(const char *id)
{
	return XXH3_64bits(id, strlen(id)) | 1;
}

bool ended_before(const struct channel *channel, const char *id)
{
	const uint64_t hash = hash_of(id);

	return channel->ended && channel->ended[hash % ENDED_MOST] == hash;
}

void ended_note(struct channel *channel, const char *id)
{
	const uint64_t hash = hash_of(id);

	if (!channel->ended)
		channel->ended = calloc(ENDED_MOST, sizeof(*channel->ended));
	if (channel->ended)
		channel->ended[hash % ENDED_MOST] = hash;
}

/* ---- requests ----------------------------------------------------------------- */

bool channels_may_share_requests(const struct channel *channel, const struct channel *other)
{
	return channel->instance == other->instance &&
	       (channel->schema.rank.dp.index != other->schema.rank.dp.index ||
		channels_share_engine(channel, other));
}

uint16_t request_newest_number(const struct request *request)
{
	uint16_t number = 0;

	for (const struct part *part = request->part; part; part = part->next)
		if (part->attempts && part_newest(part)->number > number)
			number = part_newest(part)->number;
	return number;
}

uint16_t request_oldest_number(const struct request *request)
{
	uint16_t number = UINT16_MAX;

	for (const struct part *part = request->part; part; part = part->next)
		if (part->attempts && part->attempt[0]->number < number)
			number = part->attempt[0]->number;
	return number;
}

/* An end of which nobody said how much was kept may be a daemon's word for what an engine left behind:
 * another engine may go on with that. */
static bool tells_of_end(const struct part *part, uint16_t number, bool of_its_engine)
{
	const struct attempt *attempt = part_find_attempt(part, number);

	return part_ended_for_good(part) && attempt && attempt->ended &&
	       (of_its_engine || !attempt->given_up);
}

bool request_may_go_on(const struct r3ring_assembler *assembler, const struct request *request,
		       const struct channel *channel)
{
	const uint16_t number = request_newest_number(request);

	for (const struct part *part = request->part; part; part = part->next)
		if (tells_of_end(part, number,
				 channel && channels_share_engine(
						    channel, assembler->channel[part->channel])))
			return false;
	return true;
}

static bool may_share(const struct r3ring_assembler *assembler, const struct request *request,
		      const struct channel *channel)
{
	for (const struct part *part = request->part; part; part = part->next)
		if (!channels_may_share_requests(channel, assembler->channel[part->channel]))
			return false;
	return true;
}

/* Whether the request has such an attempt, which is known to be its own. */
static bool has_its_own(const struct request *request, uint16_t number)
{
	for (const struct part *part = request->part; part; part = part->next) {
		const struct attempt *attempt = part_find_attempt(part, number);

		if (attempt && !attempt->guessed)
			return true;
	}
	return false;
}

/* Whether only ranks of the channel's engine told of the request, all in one order, and the channel itself not
 * before the attempt. */
static bool began_behind(const struct r3ring_assembler *assembler, const struct request *request,
			 const struct channel *channel, const struct attempt *attempt)
{
	const struct part *own = part_on(request, channel);

	if (own && own->attempts && own->attempt[0]->begun < attempt->begun)
		return false;
	for (const struct part *part = request->part; part; part = part->next) {
		const struct channel *its = assembler->channel[part->channel];

		if (!channels_share_engine(channel, its) || its->uncounted)
			return false;
	}
	return !channel->uncounted;
}

/* Whether two requests of an id are known to be two: one channel told of both, or two engines began the same
 * attempt. What two stages told apart, since something was lost, may be one. */
static bool parts_are_apart(const struct r3ring_assembler *assembler, const struct part *part,
			    const struct part *other)
{
	const struct channel *channel = assembler->channel[part->channel];
	const struct channel *its = assembler->channel[other->channel];

	if (channel == its)
		return true;
	for (uint32_t i = 0; i < part->attempts && !channels_share_engine(channel, its); i++)
		if (part_find_attempt(other, part->attempt[i]->number))
			return true;
	return false;
}

static bool are_apart(const struct r3ring_assembler *assembler, const struct request *request,
		      const struct request *other)
{
	for (const struct part *part = request->part; part; part = part->next)
		for (const struct part *its = other->part; its; its = its->next)
			if (channels_may_share_requests(assembler->channel[part->channel],
							assembler->channel[its->channel]) &&
			    parts_are_apart(assembler, part, its))
				return true;
	return false;
}

/* Whether the attempt, which the channel told of for another one, may be the request's. */
static bool may_be_of(const struct r3ring_assembler *assembler, const struct request *request,
		      const struct channel *channel, const struct attempt *attempt)
{
	return request_oldest_number(request) <= attempt->number &&
	       !has_its_own(request, attempt->number) && may_share(assembler, request, channel) &&
	       request_may_go_on(assembler, request, channel) &&
	       !began_behind(assembler, request, channel, attempt);
}

/* Nobody knows whether it has what is another's, of which the other channel told. */
static void doubt(struct request *request, uint32_t channel, uint32_t other)
{
	if (request->unclear)
		return;
	request->unclear = true;
	request->unclear_by[0] = channel;
	request->unclear_by[1] = other;
}

/* One of those where a request may have begun that nobody heard of; or NULL. */
static const struct channel *lossy_channel(const struct r3ring_assembler *assembler,
					   const struct channel *channel)
{
	for (uint32_t i = 0; i < assembler->channels; i++)
		if (assembler->channel[i]->lossy &&
		    channels_may_share_requests(channel, assembler->channel[i]))
			return assembler->channel[i];
	return NULL;
}

static void attempt_doubt(const struct r3ring_assembler *assembler, struct request *request,
			  const struct channel *channel, const struct attempt *attempt)
{
	const char *id = request->text[0];
	const struct gone *gone = gone_candidate(assembler, request, channel, attempt->number);
	const struct channel *lossy = attempt->early ? channel : lossy_channel(assembler, channel);

	if (lossy && request->has_others)
		doubt(request, channel->index, lossy->index);
	if (gone)
		doubt(request, channel->index, gone->part[0].channel);
	for (const struct request *other = requests_of(assembler, id, strlen(id)); other;
	     other = other->same)
		if (other != request && are_apart(assembler, request, other) &&
		    may_be_of(assembler, other, channel, attempt))
			doubt(request, channel->index, other->part->channel);
}

/* What a request begins with is its own, whosever it is. */
static void request_doubt(const struct r3ring_assembler *assembler, struct request *request)
{
	const uint16_t oldest = request_oldest_number(request);

	for (const struct part *part = request->part; part; part = part->next)
		for (uint32_t i = 0; i < part->attempts; i++)
			if (part->attempt[i]->guessed && part->attempt[i]->number > oldest)
				attempt_doubt(assembler, request, assembler->channel[part->channel],
					      part->attempt[i]);
}

/* That the id is not one request's alone is known from now on. */
static void note_others(const struct r3ring_assembler *assembler, struct request *begun)
{
	const char *id = begun->text[0];

	for (struct request *other = requests_of(assembler, id, strlen(id)); other;
	     other = other->same)
		if (other != begun && are_apart(assembler, begun, other))
			begun->has_others = other->has_others = true;
}

void requests_doubt(const struct r3ring_assembler *assembler, struct request *begun)
{
	const char *id = begun->text[0];

	if (assembler->options.min_ends)
		return;
	note_others(assembler, begun);
	for (struct request *request = requests_of(assembler, id, strlen(id)); request;
	     request = request->same)
		request_doubt(assembler, request);
}
