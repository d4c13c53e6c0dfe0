/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room: what goes when more is held than the limit, until no more is. Rows that nobody refers
 * to, then requests, the one that was quiet longest first, then keys of prefix caches; with an
 * onlooker, or where it is asked for, keys before requests. At last what waits for spans is settled.
 */
#include <utlist.h>

#include "consumer/assembler/assembler.h"

static bool has_room(const struct r3ring_assembler *assembler)
{
	return memory_has_room(&assembler->memory);
}

/* Gives back what rows take that nobody refers to any more. */
static void rows_make_room(struct r3ring_assembler *assembler)
{
	for (uint32_t i = 0; i < assembler->channels; i++)
		for (struct row_pool *pool = assembler->channel[i]->pools; pool; pool = pool->next)
			while (!has_room(assembler) && row_pool_squeeze(pool))
				;
}

/* False when there are none. */
static bool keys_make_room(struct r3ring_assembler *assembler)
{
	bool any = false;

	for (uint32_t i = 0; i < assembler->channels; i++) {
		any |= assembler->channel[i]->keys.keys != NULL;
		key_store_shrink(&assembler->channel[i]->keys);
	}
	return any;
}

static int by_touch(const struct request *one, const struct request *other)
{
	const uint64_t its = request_touched_at(one), others = request_touched_at(other);

	return (its > others) - (its < others);
}

static void sort(struct r3ring_assembler *assembler)
{
	struct request *request;

	DL_SORT(assembler->all, by_touch);
	assembler->sorted_at = assembler->touches;
	DL_FOREACH(assembler->all, request)
	{
		request->sorted = true;
	}
}

/*
 * The one that was touched longest ago. Attempts are touched by every span, which moves nobody:
 * they are sorted now and then, and those touched since go behind all that were not.
 */
static struct request *quietest(struct r3ring_assembler *assembler)
{
	struct request *first;

	for (;;) {
		if (!assembler->all->sorted)
			sort(assembler);
		first = assembler->all;
		if (request_touched_at(first) <= assembler->sorted_at)
			return first;
		first->sorted = false;
		DL_DELETE(assembler->all, first);
		DL_APPEND(assembler->all, first);
	}
}

static void evict(struct r3ring_assembler *assembler)
{
	assembler->stats.requests_evicted++;
	request_let_go(assembler, quietest(assembler), R3RING_ASSEMBLED_EVICTED);
}

static bool has_open_step(const struct channel *channel)
{
	const struct item *item;

	DL_FOREACH(channel->items, item)
	{
		if (item->type == ITEM_STEP && !item->step.ended)
			return true;
	}
	return false;
}

/* What waits is settled as it is. What is still to come of a step that had not ended is lost, for
 * requests that it may not have named yet too. */
static void settle_early(struct r3ring_assembler *assembler, struct channel *channel)
{
	const bool open = has_open_step(channel);

	channel_settle(assembler, channel, true);
	if (open)
		requests_gap(channel, R3RING_MISSING_EVICTED);
}

/* False when there is nothing left of which to make room. */
static bool make_some_room(struct r3ring_assembler *assembler)
{
	const bool keys_first = assembler->onlooker.ctx || assembler->options.keys_go_first;
	bool any = false;

	if (keys_first && keys_make_room(assembler))
		return true;
	if (assembler->all) {
		evict(assembler);
		return true;
	}
	if (keys_make_room(assembler))
		return true;
	for (uint32_t i = 0; i < assembler->channels; i++) {
		if (!assembler->channel[i]->items)
			continue;
		settle_early(assembler, assembler->channel[i]);
		any = true;
	}
	return any;
}

void requests_make_room(struct r3ring_assembler *assembler)
{
	while (!has_room(assembler)) {
		rows_make_room(assembler);
		if (!has_room(assembler) && !make_some_room(assembler))
			return;
	}
}
