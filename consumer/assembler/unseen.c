/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What attempts may have run that nobody saw: where records of their time were lost. What a rank
 * heard whole it knows not to have been run, of the rows that are its own.
 */
#include "consumer/assembler/assembled.h"
#include "consumer/assembler/assembler.h"

static const struct channel *channel_of(const struct r3ring_assembled *assembled,
					const struct part *part)
{
	return assembled->assembler->channel[part->channel];
}

static bool are_mates(const struct r3ring_assembled *assembled, const struct part *part,
		      const struct part *other)
{
	return channels_share_engine(channel_of(assembled, part), channel_of(assembled, other));
}

/* Whether the parts' channels have the same rows, if of other layers. */
static bool share_rows(const struct r3ring_assembled *assembled, const struct part *part,
		       const struct part *other)
{
	const struct r3ring_coordinates *rank = &channel_of(assembled, part)->schema.rank;
	const struct r3ring_coordinates *its = &channel_of(assembled, other)->schema.rank;

	return rank->sp.index == its->sp.index && rank->cp.index == its->cp.index;
}

static uint64_t shards_of(const struct r3ring_assembled *assembled, const struct part *part)
{
	const struct r3ring_coordinates *rank = &channel_of(assembled, part)->schema.rank;

	return (uint64_t)coordinate_size(rank->sp) * coordinate_size(rank->cp);
}

/* Whether the rank was heard beyond the attempt's time: channels may be fed apart, and a request be given
 * out before all have come to its end. */
static bool was_heard_out(const struct part *part, const struct attempt *attempt)
{
	return attempt->ended || attempt != part->attempt[part->attempts - 1];
}

/* What an attempt has no row of it ran in records that were lost, or not at all. It ran its positions
 * in their order, so what it was seen to run since is behind all that it had run, unless it began anew
 * under new weights meanwhile; but of a shard those may be others' rows. */
static bool knows_not_run(const struct r3ring_assembled *assembled, const struct part *part,
			  uint16_t number, uint32_t position)
{
	const struct attempt *attempt = part_find_attempt(part, number);

	if (!attempt || !was_heard_out(part, attempt) || attempt_row(attempt, position))
		return false;
	if (attempt->torn && (position < attempt->positions || shards_of(assembled, part) > 1))
		return false;
	return position < attempt->positions || (!attempt_is_open(attempt) && !attempt->renewed);
}

static bool counted_before(const struct r3ring_assembled *assembled, const struct part *part,
			   const struct part *mate, uint16_t number, uint32_t position)
{
	for (const struct part *other = assembled->request->part; other != mate;
	     other = other->next)
		if (are_mates(assembled, part, other) && share_rows(assembled, mate, other) &&
		    knows_not_run(assembled, other, number, position))
			return true;
	return false;
}

/* Whether the part's engine is known not to have run the position: by a rank of each shard. */
static bool engine_knows(const struct r3ring_assembled *assembled, const struct part *part,
			 uint16_t number, uint32_t position)
{
	uint64_t know = 0;

	for (const struct part *mate = assembled->request->part; mate; mate = mate->next)
		know += are_mates(assembled, part, mate) &&
			knows_not_run(assembled, mate, number, position) &&
			!counted_before(assembled, part, mate, number, position);
	return know >= shards_of(assembled, part);
}

bool engine_has_attempt(const struct r3ring_assembled *assembled, const struct part *part,
			uint16_t number)
{
	for (const struct part *mate = assembled->request->part; mate; mate = mate->next)
		if (are_mates(assembled, part, mate) && part_find_attempt(mate, number))
			return true;
	return false;
}

/* Whether an engine that has a part of each request may have run the attempt unseen. */
static bool engine_may_have(const struct r3ring_assembled *assembled, const struct part *part,
			    uint16_t number)
{
	return assembled->joined && channel_of(assembled, part)->lossy &&
	       !engine_has_attempt(assembled, part, number);
}

static bool all_was_heard(const struct r3ring_assembler *assembler)
{
	for (uint32_t i = 0; i < assembler->channels; i++)
		if (assembler->channel[i]->lossy)
			return false;
	return assembler->channels >= assembler->options.min_ends;
}

/* Whether engines that have a part of each request may have had theirs unheard. */
static bool parts_are_missing(const struct r3ring_assembled *assembled)
{
	uint32_t parts = 0;

	for (const struct part *part = assembled->request->part; part; part = part->next)
		parts++;
	return parts < assembled->assembler->options.min_ends &&
	       !all_was_heard(assembled->assembler);
}

bool pass_may_have_run(const struct r3ring_assembled *assembled, const struct pass *pass,
		       uint32_t position)
{
	for (const struct part *part = assembled->request->part; part; part = part->next)
		if (part_find_attempt(part, pass->number)
			    ? position < end_on_engine(assembled->assembler, part, pass->number) &&
				      !engine_knows(assembled, part, pass->number, position)
			    : engine_may_have(assembled, part, pass->number))
			return true;
	return parts_are_missing(assembled);
}

/* Whether each rank of the part's engine told of the attempt: together they know all that it ran. */
static bool all_ranks_told(const struct r3ring_assembled *assembled, const struct part *part,
			   uint16_t number)
{
	const struct r3ring_coordinates *rank = &channel_of(assembled, part)->schema.rank;
	uint64_t told = 0;

	for (const struct part *mate = assembled->request->part; mate; mate = mate->next)
		told += are_mates(assembled, part, mate) && part_find_attempt(mate, number);
	return told >= (uint64_t)coordinate_size(rank->pp) * shards_of(assembled, part);
}

/* Whether no rank of the part's engine heard the end, or all that came before it. */
static bool engine_lost_end(const struct r3ring_assembled *assembled, const struct part *part,
			    uint16_t number)
{
	for (const struct part *mate = assembled->request->part; mate; mate = mate->next) {
		const struct attempt *attempt = part_find_attempt(mate, number);

		if (attempt && are_mates(assembled, part, mate) &&
		    (!attempt->given_up || all_ranks_told(assembled, part, number)) &&
		    (attempt->ended || (was_heard_out(mate, attempt) && !attempt_is_open(attempt))))
			return false;
	}
	return true;
}

bool pass_lost_end(const struct r3ring_assembled *assembled, const struct pass *pass)
{
	for (const struct part *part = assembled->request->part; part; part = part->next)
		if (part_find_attempt(part, pass->number)
			    ? end_on_engine(assembled->assembler, part, pass->number) ==
					      R3RING_UNKNOWN_U32 &&
				      engine_lost_end(assembled, part, pass->number)
			    : engine_may_have(assembled, part, pass->number))
			return true;
	return parts_are_missing(assembled);
}

bool pass_left_open(const struct r3ring_assembled *assembled, const struct pass *pass)
{
	for (const struct part *part = assembled->request->part; part; part = part->next)
		if (part_find_attempt(part, pass->number) &&
		    kept_by_engine(assembled->assembler, part, pass->number) ==
			    R3RING_UNKNOWN_U32 &&
		    end_on_engine(assembled->assembler, part, pass->number) == R3RING_UNKNOWN_U32)
			return true;
	return false;
}

/* ---- shards of which there is no channel ------------------------------------- */

static bool is_of_stage(const struct channel *channel, const struct channel *other)
{
	return channel == other || (other->pool && channels_of_one_engine(channel, other) &&
				    channel->schema.rank.pp.index == other->schema.rank.pp.index);
}

static bool has_same_shard(const struct channel *channel, const struct channel *other)
{
	return channel->schema.rank.sp.index == other->schema.rank.sp.index &&
	       channel->schema.rank.cp.index == other->schema.rank.cp.index;
}

/* Shards of the channel's stage that were fed; copies of one count once. */
static uint64_t shards_fed(const struct r3ring_assembler *assembler, const struct channel *channel)
{
	uint64_t fed = 0;

	for (uint32_t i = 0; i < assembler->channels; i++) {
		uint32_t before = 0;

		if (!is_of_stage(channel, assembler->channel[i]))
			continue;
		while (before < i &&
		       !(is_of_stage(channel, assembler->channel[before]) &&
			 has_same_shard(assembler->channel[before], assembler->channel[i])))
			before++;
		fed += before == i;
	}
	return fed;
}

/* Whether a channel of the instance was read of which nobody knows what rows it has: what would have told
 * was lost. */
static bool has_unknown_rank(const struct r3ring_assembler *assembler,
			     const struct channel *channel)
{
	for (uint32_t i = 0; i < assembler->channels; i++) {
		const struct channel *other = assembler->channel[i];

		if (other->instance == channel->instance && other->lossy && !other->pool)
			return true;
	}
	return false;
}

/* Whether there was an attempt that no channel told of, of whatever shard. */
static bool lacks_attempt(const struct r3ring_assembled *assembled)
{
	for (uint32_t i = 0; i < assembled->passes; i++)
		if (assembled->pass[i].orphan)
			return true;
	return false;
}

bool shard_is_unheard(const struct r3ring_assembled *assembled)
{
	bool unheard = false;

	if (lacks_attempt(assembled))
		return false;

	for (const struct part *part = assembled->request->part; part; part = part->next) {
		const struct channel *channel = channel_of(assembled, part);

		if (channel->lossy || has_unknown_rank(assembled->assembler, channel))
			return false;
		unheard = unheard ||
			  (shards_of(assembled, part) > 1 &&
			   shards_fed(assembled->assembler, channel) < shards_of(assembled, part));
	}
	return unheard;
}

/* ---- what prompts count ---------------------------------------------------- */

/* Whether an attempt of the part has a longer prompt than one of the other before it. */
static bool prompt_grew(const struct part *part, const struct part *other)
{
	uint32_t least = UINT32_MAX, j = 0;

	for (uint32_t i = 0; i < part->attempts; i++) {
		const struct attempt *attempt = part->attempt[i];

		for (; j < other->attempts && other->attempt[j]->number < attempt->number; j++)
			if (other->attempt[j]->prompt && other->attempt[j]->prompt < least)
				least = other->attempt[j]->prompt;
		if (attempt->prompt > least)
			return true;
	}
	return false;
}

/* One that decodes may count a token that another sampled, so each engine is asked by itself. */
bool prompts_count(const struct r3ring_assembled *assembled)
{
	for (const struct part *part = assembled->request->part; part; part = part->next)
		for (const struct part *mate = assembled->request->part; mate; mate = mate->next)
			if (are_mates(assembled, part, mate) && prompt_grew(part, mate))
				return true;
	return false;
}
