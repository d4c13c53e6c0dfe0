/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whose a request is that a channel begins: one that it knows, a part of one that others run, or a
 * new one. Nothing says that but its text id, the channels' coordinates, and their order: a channel
 * tells requests of one id one after the other, so the n-th of one rank is the n-th of another of
 * its engine. Those of one id are in that order, and wait for all ranks; a channel's next is the
 * first one behind its last of which it has no part.
 */
#include <string.h>

#include "consumer/assembler/assembler.h"

/* ---- channels ------------------------------------------------------------- */

static bool same_replica(const struct channel *channel, const struct channel *other)
{
	return channel->instance == other->instance &&
	       channel->schema.rank.dp.index == other->schema.rank.dp.index;
}

bool channels_of_one_engine(const struct channel *channel, const struct channel *other)
{
	const struct r3ring_coordinates *rank = &channel->schema.rank;
	const struct r3ring_coordinates *its = &other->schema.rank;

	return same_replica(channel, other) &&
	       (rank->pp.index != its->pp.index || rank->sp.index != its->sp.index ||
		rank->cp.index != its->cp.index || rank->tp.index != its->tp.index);
}

/* Both say to be the same rank of one engine: they are of two. */
static bool are_twins(const struct channel *channel, const struct channel *other)
{
	return channel != other && same_replica(channel, other) &&
	       !channels_of_one_engine(channel, other);
}

/* ---- requests ------------------------------------------------------------- */

struct part *part_on(const struct request *request, const struct channel *channel)
{
	struct part *part = request->part;

	while (part && part->channel != channel->index)
		part = part->next;
	return part;
}

static const struct attempt *newest_of(const struct part *part)
{
	return part->attempt[part->attempts - 1];
}

bool part_ended_for_good(const struct part *part)
{
	return part->final && !part->guessed && part->attempts;
}

uint64_t former_of(const struct channel *channel)
{
	const struct r3ring_schema_record *schema = &channel->schema;
	const uint64_t generation = channel->generation;

	return schema->generation == generation && schema->continues < generation
		       ? generation - schema->continues
		       : generation;
}

/* Whether the part is of the engine, whose handles go on with it, and of a generation before. One in
 * between may have been begun for it that it never heard of. */
static bool went_on(const struct part *part, const struct channel *channel)
{
	const uint64_t former = former_of(channel);

	return former != channel->generation && part->generation != channel->generation &&
	       (part->generation == former || part->former == former);
}

/* Whether the channel's engine ran the part since it was started last. */
static bool is_of_this_run(const struct part *part, const struct channel *channel)
{
	return part && (!part->attempts || newest_of(part)->run + 1 >= channel->runs);
}

/* Whether a keyframe names another request than the part's: it says handles again, in the generation
 * that gave them. Where it is not known which one an engine was in before, it was bound when it was. */
static bool keyframe_means_another(const struct part *part, const struct channel *channel,
				   uint64_t handle)
{
	const uint64_t bound_ns = channel->schema.bound_since_ns;

	if (part->generation == channel->generation || went_on(part, channel))
		return handle != part->handle;
	if (bound_ns && part->bound_ns)
		return bound_ns != part->bound_ns;
	return !is_of_this_run(part, channel);
}

/* Whether the part, in its engine's newest run that had it, is of the request that the handle began. */
static bool part_began_as(const struct part *part, uint64_t first)
{
	for (uint32_t i = part->attempts; i > 0; i--) {
		const struct attempt *attempt = part->attempt[i - 1];

		if (attempt->run == newest_of(part)->run &&
		    (attempt->first ? attempt->first : attempt->handle) == first)
			return true;
	}
	return false;
}

/* Whether the attempt tells that it goes on with another request of the channel's engine than the part is of. */
static bool goes_on_with_another(const struct part *part, const struct channel *channel,
				 const struct r3ring_request_record *head)
{
	const uint64_t first = r3ring_request_first(head);

	return head->attempt && first &&
	       (is_of_this_run(part, channel) || went_on(part, channel)) &&
	       !part_began_as(part, first);
}

bool part_is_told(const struct part *part, const struct channel *channel,
		  const struct r3ring_request_record *begin)
{
	const uint64_t first = r3ring_request_first(begin);

	return !begin->attempt || (first && part->attempts &&
				   (is_of_this_run(part, channel) || went_on(part, channel)) &&
				   part_began_as(part, first));
}

static bool is_said_again(const struct part *part, const struct channel *channel,
			  const struct item *item)
{
	const uint64_t handle = item->record.u.request.head.handle;

	if (item->repeated)
		return !keyframe_means_another(part, channel, handle);
	return item->carried && went_on(part, channel) && handle == part->handle;
}

bool request_is_another(const struct request *request, const struct channel *channel,
			const struct item *item)
{
	const struct r3ring_request_record *head = &item->record.u.request.head;
	const struct part *part = part_on(request, channel);

	if (!part || !part->attempts)
		return false;
	if (goes_on_with_another(part, channel, head))
		return true;
	/* Named no more, it may have been preempted, and goes on. */
	if (part_ended_for_good(part))
		return true;
	return head->attempt <= newest_of(part)->number && !is_said_again(part, channel, item);
}

/* Whether the channel may run the attempt as another part of the request. */
static bool part_may_join(const struct r3ring_assembler *assembler, const struct part *part,
			  const struct channel *channel, uint16_t attempt)
{
	const struct channel *other = assembler->channel[part->channel];
	const bool asked = assembler->options.min_ends > 0;

	if (channels_of_one_engine(channel, other))
		return part_may_be_of_run(assembler, part, channel);
	if (channel->instance != other->instance || same_replica(channel, other))
		return asked;
	/* A data-parallel rank runs an attempt whole, though others may run other attempts, and be
	 * heard of in any order. */
	return !part_find_attempt(part, attempt) &&
	       (asked || !part_ended_for_good(part) || attempt < newest_of(part)->number);
}

static bool may_join(const struct r3ring_assembler *assembler, const struct request *request,
		     const struct channel *channel, uint16_t attempt)
{
	for (const struct part *part = request->part; part; part = part->next)
		if (!part_may_join(assembler, part, channel, attempt))
			return false;
	return true;
}

struct request *request_known(const struct r3ring_assembler *assembler,
			      const struct channel *channel, const struct r3ring_record *record)
{
	struct request *first =
		requests_of(assembler, record->u.request.id, record->u.request.head.id_len);
	struct request *request = first ? first->before : NULL, *former = NULL;

	for (; request; request = request == first ? NULL : request->before) {
		const struct part *part = part_on(request, channel);

		if (is_of_this_run(part, channel))
			return request;
		if (part &&
		    (!former || newest_of(part)->run > newest_of(part_on(former, channel))->run))
			former = request;
	}
	return former;
}

/* Whether ranks of the channel's engine began the attempt under another handle, and it is not known how
 * many of the id were before it: then what was begun in their place is not the next one. */
static bool is_uncounted_other(const struct r3ring_assembler *assembler,
			       const struct request *request, const struct channel *channel,
			       const struct r3ring_record *record)
{
	const struct r3ring_request_record *head = &record->u.request.head;

	for (const struct part *part = request->part; part; part = part->next) {
		const struct channel *other = assembler->channel[part->channel];
		const struct attempt *attempt = part_find_attempt(part, head->attempt);

		if (attempt && attempt->handle && attempt->handle != head->handle &&
		    (channel->uncounted || part->unsure || !channels_count(channel, other)) &&
		    channels_of_one_engine(channel, other))
			return true;
	}
	return false;
}

struct request *request_to_join(const struct r3ring_assembler *assembler,
				const struct channel *channel, const struct r3ring_record *record,
				const struct request *known)
{
	struct request *request =
		requests_of(assembler, record->u.request.id, record->u.request.head.id_len);

	if (known && is_of_this_run(part_on(known, channel), channel))
		request = known->same;
	while (request && (part_on(request, channel) ||
			   !may_join(assembler, request, channel, record->u.request.head.attempt) ||
			   is_uncounted_other(assembler, request, channel, record)))
		request = request->same;
	return request;
}

static void note_twin(struct request *request, uint32_t channel, uint32_t other)
{
	if (request->has_twin)
		return;
	request->has_twin = true;
	request->twin[0] = channel;
	request->twin[1] = other;
}

static bool has_twins(const struct r3ring_assembler *assembler, const struct channel *channel)
{
	for (uint32_t i = 0; i < assembler->channels; i++)
		if (are_twins(channel, assembler->channel[i]))
			return true;
	return false;
}

void request_note_twins(const struct r3ring_assembler *assembler, struct request *request,
			const struct channel *channel)
{
	struct request *other = requests_of(assembler, request->text[0], strlen(request->text[0]));

	if (assembler->options.min_ends || !has_twins(assembler, channel))
		return;
	for (; other; other = other->same)
		for (const struct part *part = other->part; part && other != request;
		     part = part->next) {
			if (!are_twins(channel, assembler->channel[part->channel]))
				continue;
			note_twin(request, channel->index, part->channel);
			note_twin(other, part->channel, channel->index);
		}
}
