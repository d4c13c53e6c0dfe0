/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "channel/socket.h"
#include "consumer/load/load.h"
#include "consumer/options.h"

#define WINDOW_STEPS_DEFAULT 256u
#define WINDOW_NS_DEFAULT UINT64_C(1000000000)
#define HALF_LIFE_DEFAULT 64u
#define LATE_STEPS_DEFAULT 8u
#define HELD_MAX_DEFAULT (UINT64_C(64) << 20)
#define REQUESTS_MAX_DEFAULT (1u << 16)

static int options_take(struct r3ring_load_options *to, const struct r3ring_load_options *from,
			struct r3ring_error *err)
{
	int r = options_copy(to, from, sizeof(*to), err);

	if (r < 0)
		return r;
	if (!to->window_steps)
		to->window_steps = WINDOW_STEPS_DEFAULT;
	if (!to->window_ns)
		to->window_ns = WINDOW_NS_DEFAULT;
	if (!to->half_life)
		to->half_life = HALF_LIFE_DEFAULT;
	if (!to->late_steps)
		to->late_steps = LATE_STEPS_DEFAULT;
	if (!to->max_held_bytes)
		to->max_held_bytes = HELD_MAX_DEFAULT;
	if (!to->max_requests)
		to->max_requests = REQUESTS_MAX_DEFAULT;
	return 0;
}

int r3ring_load_create(struct r3ring_load **load, const struct r3ring_load_options *options,
		       struct r3ring_error *err)
{
	struct r3ring_load *created;
	int r;

	if (!load)
		return r3ring_error_set(err, -EINVAL, "r3ring_load_create: load is NULL");
	created = calloc(1, sizeof(*created));
	if (!created)
		return r3ring_error_set(err, -ENOMEM, "out of memory");
	r = options_take(&created->options, options, err);
	if (r < 0) {
		free(created);
		return r;
	}
	created->any = cells_alloc(CELLS_ANY_ID * sizeof(*created->any));
	if (!created->any) {
		free(created);
		return r3ring_error_set(err, -ENOMEM, "out of memory");
	}
	created->decay = (float)exp2(-1.0 / created->options.half_life);
	*load = created;
	return 0;
}

static void channel_free(struct load_channel *channel)
{
	load_steps_free(channel);
	load_watch_clear(&channel->watch);
	load_maps_free(channel);
	for (uint32_t i = 0; i < channel->boards; i++)
		load_board_free(channel->board[i]);
	free(channel->name);
	free(channel);
}

void r3ring_load_destroy(struct r3ring_load *load)
{
	if (!load)
		return;
	for (uint32_t i = 0; i < load->channels; i++)
		channel_free(load->channel[i]);
	free(load->any);
	free(load->copy);
	free(load);
}

static struct load_channel *channel_create(const struct r3ring_load *load, const char *name,
					   bool draft)
{
	struct load_channel *channel = calloc(1, sizeof(*channel));

	if (!channel)
		return NULL;
	channel->name = strdup(name);
	if (!channel->name) {
		free(channel);
		return NULL;
	}
	channel->index = load->channels;
	channel->draft = draft;
	channel->watch.most = load->options.max_requests;
	return channel;
}

int r3ring_load_channel(struct r3ring_load *load, const char *name)
{
	struct r3ring_channel_name parsed;
	uint32_t index = load->channels;

	if (!name || channel_name_parse(&parsed, name, NULL) < 0)
		return -EINVAL;
	for (uint32_t i = 0; i < index; i++)
		if (strcmp(load->channel[i]->name, name) == 0)
			return (int)i;
	if (index == R3RING_LOAD_CHANNELS_MAX)
		return -ENOSPC;
	load->channel[index] = channel_create(load, name, parsed.draft);
	if (!load->channel[index])
		return -ENOMEM;
	/* Pairs with the acquire in snapshot.c, channels_of(): the channel is made. */
	r3ring_store_release_u32(&load->channels, index + 1);
	return (int)index;
}

static uint64_t steps_bytes(const struct load_channel *channel)
{
	const struct load_board *board = load_board_now(channel);

	return board ? (channel->open_steps + channel->spare_steps) *
			       (uint64_t)cells_sum_bytes(&board->shape)
		     : 0;
}

static uint64_t map_bytes(const struct r3ring_eplb_map *map)
{
	return map ? (uint64_t)map->layers * map->experts * map->replicas * sizeof(*map->map) : 0;
}

static void add_channel(struct r3ring_load_stats *stats, const struct load_channel *channel)
{
	stats->requests_watched += HASH_CNT(by_handle, channel->watch.by_handle);
	stats->requests_forgotten += channel->watch.forgotten;
	stats->held_bytes += channel->held_bytes;
	stats->bytes += channel->held_bytes + steps_bytes(channel) + map_bytes(channel->coming);
	for (uint32_t i = 0; i < channel->boards; i++)
		stats->bytes += load_board_bytes(channel->board[i]);
	for (uint32_t i = 0; i < LOAD_MAPS; i++)
		stats->bytes += map_bytes(channel->map[i].map);
}

void r3ring_load_get_stats(const struct r3ring_load *load, struct r3ring_load_stats *stats)
{
	*stats = load->stats;
	stats->bytes += CELLS_ANY_ID * sizeof(*load->any) + load->copy_bytes;
	for (uint32_t i = 0; i < load->channels; i++)
		add_channel(stats, load->channel[i]);
}
