/* SPDX-License-Identifier: Apache-2.0 */
/* Requests begin, go on in other attempts, channels and generations, and end. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

/* A table that cannot grow refuses the entry and goes on. */
#define HASH_NONFATAL_OOM 1
#include "consumer/assembler/assembler.h"

/* ---- tables ------------------------------------------------------------- */

/* Handles are looked up for every span of every step. */
static unsigned int hash_of(uint64_t handle)
{
	return (unsigned int)(handle * UINT64_C(0x9E3779B97F4A7C15) >> 32);
}

static struct part *part_in(struct part *parts, uint64_t handle)
{
	const unsigned int hash = hash_of(handle);
	struct part *part;

	HASH_FIND_BYHASHVALUE(hh, parts, &handle, sizeof(handle), hash, part);
	return part;
}

struct part *part_of(const struct channel *channel, uint64_t handle)
{
	return part_in(channel->parts, handle);
}

static uint64_t parts_table(const struct part *parts)
{
	return parts ? table_bytes(parts->hh.tbl) : 0;
}

static uint64_t requests_table(const struct request *requests)
{
	return requests ? table_bytes(requests->hh.tbl) : 0;
}

static int part_enlist(struct channel *channel, struct part *part)
{
	const unsigned int before = HASH_COUNT(channel->parts), hash = hash_of(part->handle);
	const uint64_t table = parts_table(channel->parts);

	HASH_ADD_BYHASHVALUE(hh, channel->parts, handle, sizeof(part->handle), hash, part);
	part->request->memory->held += parts_table(channel->parts) - table;
	part->live = HASH_COUNT(channel->parts) > before;
	return part->live ? 0 : -ENOMEM;
}

static void part_delist(struct channel *channel, struct part *part)
{
	uint64_t tables;

	if (!part->live)
		return;
	tables = parts_table(channel->parts) + parts_table(channel->suspended);
	order_leave(channel, part);
	if (part_of(channel, part->handle) == part)
		HASH_DEL(channel->parts, part);
	else if (part_in(channel->suspended, part->handle) == part)
		HASH_DEL(channel->suspended, part);
	tables -= parts_table(channel->parts) + parts_table(channel->suspended);
	part->request->memory->held -= tables;
	part->live = false;
}

struct request *requests_of(const struct r3ring_assembler *assembler, const char *id, size_t len)
{
	struct request *first;

	HASH_FIND(hh, assembler->requests, id, len, first);
	return first;
}

static int table_add(struct r3ring_assembler *assembler, struct request *request)
{
	const size_t len = strlen(request->text[0]);
	const unsigned int before = HASH_COUNT(assembler->requests);
	struct request *first = requests_of(assembler, request->text[0], len);
	uint64_t table;

	DL_APPEND2(first, request, before, same);
	if (first != request)
		return 0;
	table = requests_table(assembler->requests);
	HASH_ADD_KEYPTR(hh, assembler->requests, request->text[0], len, request);
	assembler->memory.held += requests_table(assembler->requests) - table;
	return HASH_COUNT(assembler->requests) > before ? 0 : -ENOMEM;
}

static void scatter(struct request *first)
{
	for (struct request *next; first; first = next) {
		next = first->same;
		first->same = NULL;
		first->before = first;
	}
}

/* Without memory those that stay are not found again, and end as they are. */
static void table_remove(struct r3ring_assembler *assembler, struct request *request)
{
	const size_t len = strlen(request->text[0]);
	struct request *first = requests_of(assembler, request->text[0], len);
	const uint64_t table = requests_table(assembler->requests);
	const bool was_first = first == request;

	if (!was_first && request->before == request)
		return;
	if (was_first)
		HASH_DEL(assembler->requests, request);
	DL_DELETE2(first, request, before, same);
	if (was_first && first)
		HASH_ADD_KEYPTR(hh, assembler->requests, first->text[0], len, first);
	if (first && requests_of(assembler, request->text[0], len) != first)
		scatter(first);
	request->same = NULL;
	assembler->memory.held += requests_table(assembler->requests) - table;
}

/* The one that runs, or NULL. */
static struct attempt *part_newest(const struct part *part)
{
	return part->attempts ? part->attempt[part->attempts - 1] : NULL;
}

/* ---- out of the tables, to the user ------------------------------------- */

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

static bool all_have_told(const struct r3ring_assembler *assembler, const struct request *request)
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
	for (struct part *part = request->part; part; part = part->next) {
		part_delist(assembler->channel[part->channel], part);
		if (part->guessed)
			flags |= R3RING_ASSEMBLED_LENGTH_GUESSED;
	}
	DL_DELETE(assembler->all, request);
	table_remove(assembler, request);
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

static void give_if_over(struct r3ring_assembler *assembler, struct request *request)
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
		give_if_over(assembler, request);
	}
}

/* ---- begin -------------------------------------------------------------- */

/* Something is said of the request. */
static void request_touch(struct r3ring_assembler *assembler, struct request *request)
{
	request->touched = ++assembler->touches;
}

static struct request *request_new(struct r3ring_assembler *assembler,
				   const struct r3ring_record *record)
{
	struct request *request = request_create(record, &assembler->memory);

	if (!request)
		return NULL;
	if (table_add(assembler, request)) {
		request_free(request);
		return NULL;
	}
	DL_APPEND(assembler->all, request);
	request_touch(assembler, request);
	request->begun = request->touched;
	assembler->stats.requests_live++;
	if (assembler->onlooker.ctx)
		assembler->onlooker.begun(
			assembler->onlooker.ctx,
			requests_of(assembler, request->text[0], strlen(request->text[0])));
	return request;
}

/* The channel has begun another one of the id. Other ranks of its engine may be behind it. */
static void request_leave(struct r3ring_assembler *assembler, struct request *request,
			  struct channel *channel)
{
	struct part *part = part_on(request, channel);
	const bool lived = part->live;

	part_delist(channel, part);
	if (lived)
		part_tear(part, channel, R3RING_MISSING_GAP);
	part->left = true;
	if (assembler->options.min_ends || all_have_told(assembler, request))
		request_let_go(assembler, request, 0);
}

static struct request *request_of(struct r3ring_assembler *assembler, struct channel *channel,
				  const struct item *item)
{
	struct request *known = request_known(assembler, channel, &item->record), *request = known;
	bool sibling = false;

	if (!known || request_is_another(known, channel, item)) {
		request = request_to_join(assembler, channel, &item->record, known);
		sibling = known && !request_ended_on(known, channel);
		if (known)
			request_leave(assembler, known, channel);
	}
	if (!request)
		request = request_new(assembler, &item->record);
	if (request && sibling) {
		request->has_sibling = true;
		request->twin[0] = request->twin[1] = channel->index;
	}
	if (request)
		request_note_twins(assembler, request, channel);
	return request;
}

/* What it ran last may not have been seen. */
static void part_open(struct part *part)
{
	struct attempt *attempt = part_newest(part);

	if (attempt)
		attempt->lost = attempt->touched;
}

static struct attempt *attempt_begin(struct channel *channel, struct part *part,
				     const struct item *item)
{
	const uint16_t number = item->record.u.request.head.attempt;
	/* Known only as one that is said again: what it did before was not seen, or not all. */
	const bool known = part_find_attempt(part, number) && !(item->carried && channel->cut);
	const bool unseen = !channel->ready || ((item->repeated || item->carried) && !known);
	struct attempt *attempt = part_attempt(part, number);

	if (unseen)
		part_tear(part, channel, R3RING_MISSING_GAP);
	if (unseen && attempt)
		attempt->renewed |= !channel->steady;
	channel->lossy |= unseen;
	return attempt;
}

int request_begin(struct r3ring_assembler *assembler, struct channel *channel,
		  const struct item *item)
{
	const struct r3ring_request_record *head = &item->record.u.request.head;
	struct attempt *attempt;
	struct part *part, *other;
	struct request *request;

	runs_follow(channel, false);
	request = request_of(assembler, channel, item);
	part = request ? request_part(request, channel->index) : NULL;
	if (!part) {
		channel->uncounted = true;
		return -ENOMEM;
	}
	part->unsure |= channel->uncounted && !part->attempts;
	attempt = attempt_begin(channel, part, item);
	part->keyframe = item->keyframe;
	part->bound_ns = channel->schema.bound_since_ns;
	part->generation = channel->generation;
	part->former = former_of(channel);
	part->final = false;
	part->guessed = false;
	if (!attempt)
		return -ENOMEM;
	attempt->prompt = head->prompt_tokens;
	attempt->handle = head->handle;
	/* Steps of a generation that goes on are numbered from where its channel was then. */
	attempt->told_apart |= generation_goes_on(channel);
	attempt->run = channel->runs ? channel->runs - 1 : 0;
	request_touch(assembler, request);
	if (part->live && part->handle == head->handle && part_of(channel, head->handle) == part)
		return 0;
	part_delist(channel, part);
	/* A handle said of two requests is neither's any more. */
	other = part_of(channel, head->handle);
	if (other)
		part_delist(channel, other);
	part->handle = head->handle;
	return part_enlist(channel, part);
}

/* ---- end ---------------------------------------------------------------- */

static void part_over(struct r3ring_assembler *assembler, struct channel *channel,
		      struct part *part, bool final)
{
	struct request *request = part->request;

	part_delist(channel, part);
	part->final = final;
	give_if_over(assembler, request);
}

/* Its daemon did: the engine may have run more of it. */
static void part_lose_sight(struct part *part, struct channel *channel)
{
	channel->lossy = true;
	channel->uncounted = true;
	part_tear(part, channel, R3RING_CAUSE_DAEMON_RESTART);
}

void request_end(struct r3ring_assembler *assembler, struct channel *channel,
		 const struct r3ring_record *record)
{
	const struct r3ring_request_record *head = &record->u.request.head;
	struct part *part = part_of(channel, head->handle);
	struct attempt *attempt;

	if (!part)
		return;
	attempt = part_attempt(part, head->attempt);
	if (attempt) {
		attempt->accepted = head->accepted_tokens;
		attempt->ended = true;
		attempt->given_up = head->reason != R3RING_END_PREEMPTED &&
				    head->accepted_tokens == R3RING_UNKNOWN_U32;
	}
	if (head->reason == R3RING_END_UNKNOWN)
		part_lose_sight(part, channel);
	part->request->aborted |= head->reason == R3RING_END_ABORTED;
	request_touch(assembler, part->request);
	part_over(assembler, channel, part, head->reason != R3RING_END_PREEMPTED);
}

/* ---- keyframes, generations, gaps --------------------------------------- */

/* Parts that nobody names any more have ended, be it in a gap or with a generation. */
static void suspended_over(struct r3ring_assembler *assembler, struct channel *channel)
{
	struct part *part, *next;

	HASH_ITER (hh, channel->suspended, part, next) {
		part->guessed = true;
		part_over(assembler, channel, part, true);
	}
}

void requests_keyframe(struct r3ring_assembler *assembler, struct channel *channel,
		       uint64_t keyframe)
{
	struct part *part, *next;

	HASH_ITER (hh, channel->parts, part, next) {
		if (part->keyframe != keyframe) {
			part->guessed = true;
			part_open(part);
			part_over(assembler, channel, part, true);
		}
	}
	suspended_over(assembler, channel);
}

void requests_suspend(struct r3ring_assembler *assembler, struct channel *channel)
{
	struct part *part, *next;

	/* Of two generations ago: no keyframe of the last one named them. */
	suspended_over(assembler, channel);
	HASH_ITER (hh, channel->parts, part, next) {
		part_open(part);
		channel->lossy = true;
	}
	channel->suspended = channel->parts;
	channel->parts = NULL;
	channel->ordered = 0;
}

void requests_unfollowed(struct r3ring_assembler *assembler, struct channel *channel)
{
	struct part *part, *next;

	HASH_ITER (hh, channel->parts, part, next) {
		struct r3ring_record end = {.type = R3RING_REQUEST};

		end.u.request.head = (struct r3ring_request_record){
			.handle = part->handle,
			.accepted_tokens = R3RING_UNKNOWN_U32,
			.attempt = part->attempts ? part_newest(part)->number : 0,
			.event = R3RING_REQUEST_END,
			.reason = R3RING_END_UNKNOWN,
		};
		request_end(assembler, channel, &end);
	}
}

void part_tear(struct part *part, const struct channel *channel, uint8_t cause)
{
	struct attempt *attempt = part_newest(part);

	part->gap = cause;
	part_open(part);
	if (!attempt)
		return;
	attempt->torn = true;
	attempt->torn_step = channel->settled_step;
	attempt->torn_era = channel->era;
}

void requests_gap(struct channel *channel, uint8_t cause)
{
	struct part *part, *next;

	channel->lossy = true;
	channel->uncounted = true;
	HASH_ITER (hh, channel->parts, part, next) {
		part_tear(part, channel, cause);
	}
	HASH_ITER (hh, channel->suspended, part, next) {
		part_tear(part, channel, cause);
	}
}

/* ---- the end of all ----------------------------------------------------- */

static int by_touch(const struct request *one, const struct request *other)
{
	const uint64_t its = request_touched_at(one), others = request_touched_at(other);

	return (its > others) - (its < others);
}

void requests_flush(struct r3ring_assembler *assembler)
{
	assembler->flushing = true;
	DL_SORT(assembler->all, by_touch);
	while (assembler->all)
		request_let_go(assembler, assembler->all, 0);
	assembler->flushing = false;
}
