/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whose a step's spans are. Most steps have the requests of the one before, in its order, so
 * who had the turn there is asked first.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "consumer/assembler/assembler.h"

/* How many leading spans are of those who had these turns before. */
static uint32_t turns_again(const struct channel *channel, const struct map *map)
{
	const struct turn *turn = channel->order;
	const uint32_t most = map->spans < channel->ordered ? map->spans : channel->ordered;
	uint32_t i = 0;

	while (i < most && turn[i].part && turn[i].handle == map->span[i].request)
		i++;
	return i;
}

/* @at: of the former order, who is asked. */
static struct turn turn_of(const struct channel *channel, const struct r3ring_span *span,
			   uint32_t *at)
{
	const struct turn *former = *at < channel->ordered ? &channel->order[*at] : NULL;
	struct part *part;

	++*at;
	if (former && former->part && former->handle == span->request)
		return *former;
	part = part_of(channel, span->request);
	if (part)
		*at = part->place + 1;
	return (struct turn){
		.handle = span->request,
		.part = part,
		.attempt = part ? part_find_attempt(part, span->attempt) : NULL,
	};
}

int order_follow(struct channel *channel, const struct map *map)
{
	const uint32_t again = turns_again(channel, map);
	uint32_t at = again;
	struct turn *turn;

	if (again < map->spans) {
		turn = malloc(map->spans * sizeof(*turn));
		if (!turn)
			return -ENOMEM;
		if (again)
			memcpy(turn, channel->order, again * sizeof(*turn));
		for (uint32_t i = again; i < map->spans; i++) {
			turn[i] = turn_of(channel, &map->span[i], &at);
			if (turn[i].part)
				turn[i].part->place = i;
		}
		free(channel->order);
		channel->order = turn;
	}
	channel->ordered = map->spans;
	return 0;
}

void order_leave(struct channel *channel, const struct part *part)
{
	for (uint32_t i = 0; i < channel->ordered; i++)
		if (channel->order[i].part == part)
			channel->order[i] = (struct turn){.part = NULL};
}
