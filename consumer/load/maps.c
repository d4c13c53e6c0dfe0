/* SPDX-License-Identifier: Apache-2.0 */
/* EPLB maps: put together from their records, kept while they are among the newest. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "consumer/load/load.h"

static void coming_drop(struct load_channel *channel)
{
	r3ring_eplb_map_free(channel->coming);
	free(channel->coming_layer);
	channel->coming = NULL;
	channel->coming_layer = NULL;
}

void load_maps_free(struct load_channel *channel)
{
	coming_drop(channel);
	for (uint32_t i = 0; i < LOAD_MAPS; i++)
		r3ring_eplb_map_free(channel->map[i].map);
}

static bool is_known(const struct load_channel *channel, uint64_t epoch)
{
	for (uint32_t i = 0; i < LOAD_MAPS; i++)
		if (channel->map[i].map && !channel->map[i].former &&
		    channel->map[i].map->epoch == epoch)
			return true;
	return false;
}

static bool belongs(const struct r3ring_eplb_map *map, const struct r3ring_eplb_record *head)
{
	return map && map->epoch == head->epoch && map->replicas == head->replicas &&
	       map->physical == head->physical && map->gpus == head->gpus;
}

static int coming_begin(struct load_channel *channel, const struct r3ring_eplb_record *head)
{
	const struct cells_shape *shape = &load_board_now(channel)->shape;
	int r;

	coming_drop(channel);
	channel->coming_layer = calloc(shape->layers, 1);
	if (!channel->coming_layer)
		return -ENOMEM;
	r = r3ring_eplb_map_create(&channel->coming, shape->layers, shape->experts, head->replicas,
				   head->physical, head->gpus, NULL);
	if (r < 0)
		coming_drop(channel);
	else
		channel->coming->epoch = head->epoch;
	return r;
}

static bool goes_before(const struct load_map *one, const struct load_map *other)
{
	if (!one->map || !other->map)
		return !one->map && other->map;
	if (one->former != other->former)
		return one->former;
	return one->map->epoch < other->map->epoch;
}

/* The place of the oldest map, unless somebody reads it. */
static struct load_map *place_for_new(struct load_channel *channel)
{
	struct load_map *oldest = &channel->map[0];

	for (uint32_t i = 1; i < LOAD_MAPS; i++)
		if (goes_before(&channel->map[i], oldest))
			oldest = &channel->map[i];
	return hold_claim(&oldest->hold) ? oldest : NULL;
}

void load_maps_end(struct load_channel *channel)
{
	coming_drop(channel);
	for (uint32_t i = 0; i < LOAD_MAPS; i++)
		r3ring_store_relaxed_u32(&channel->map[i].former, 1);
}

static void coming_complete(struct r3ring_load *load, struct load_channel *channel)
{
	struct load_map *place;

	if (r3ring_eplb_map_check(channel->coming, NULL) < 0) {
		load->stats.maps_refused++;
		coming_drop(channel);
		return;
	}
	place = place_for_new(channel);
	if (!place)
		return; /* it is taken when its records come again */
	r3ring_eplb_map_free(place->map);
	place->map = channel->coming;
	r3ring_store_relaxed_u32(&place->former, 0);
	hold_give_back(&place->hold);
	channel->coming = NULL;
	coming_drop(channel);
	load->stats.maps++;
}

int load_maps_take(struct r3ring_load *load, struct load_channel *channel,
		   const struct r3ring_record *record)
{
	const struct r3ring_eplb_record *head = &record->u.eplb.head;
	const struct cells_shape *shape = &load_board_now(channel)->shape;
	size_t row = (size_t)head->experts * head->replicas;
	int r = 0;

	if (is_known(channel, head->epoch))
		return 0;
	if (head->experts != shape->experts || head->first_layer > shape->layers ||
	    head->layers > shape->layers - head->first_layer) {
		load->stats.maps_refused++;
		return 0;
	}
	if (!belongs(channel->coming, head))
		r = coming_begin(channel, head);
	if (r < 0) {
		load->stats.maps_refused += r == -EINVAL;
		return r == -EINVAL ? 0 : r;
	}
	memcpy(channel->coming->map + head->first_layer * row, record->u.eplb.map,
	       head->layers * row * sizeof(uint16_t));
	memset(channel->coming_layer + head->first_layer, 1, head->layers);
	if (!memchr(channel->coming_layer, 0, shape->layers))
		coming_complete(load, channel);
	return 0;
}
