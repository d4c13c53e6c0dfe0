/* SPDX-License-Identifier: Apache-2.0 */
/* Reading EPLB maps: joined from those of channels, and which of them a load lies by, of what epoch. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "consumer/layers.h"
#include "consumer/load/load.h"

/* A map for the layers of all channels that are asked for. */
struct joined {
	struct r3ring_layer_entry *layer; /* [layers] */
	bool *has;                        /* [layers] those that came */
	uint32_t layers;
	struct r3ring_eplb_map *map; /* NULL: of none so far */
};

static int joined_open(struct joined *joined, const struct load_asking *asking)
{
	int r = load_asking_layers(asking, &joined->layer, &joined->layers);

	if (r < 0)
		return r;
	joined->has = calloc(joined->layers + 1, sizeof(*joined->has));
	return joined->has ? 0 : -ENOMEM;
}

static void joined_empty(struct joined *joined)
{
	r3ring_eplb_map_free(joined->map);
	joined->map = NULL;
	memset(joined->has, 0, joined->layers * sizeof(*joined->has));
}

static void joined_close(struct joined *joined)
{
	r3ring_eplb_map_free(joined->map);
	free(joined->layer);
	free(joined->has);
}

static bool is_whole(const struct joined *joined)
{
	return joined->map && !memchr(joined->has, false, joined->layers * sizeof(*joined->has));
}

static bool same_sizes(const struct r3ring_eplb_map *one, const struct r3ring_eplb_map *other)
{
	return one->experts == other->experts && one->replicas == other->replicas &&
	       one->physical == other->physical && one->gpus == other->gpus;
}

/* The layers that did not come yet. The first map makes the sizes, and the epoch. */
static int join(struct joined *joined, const struct load_board *board,
		const struct r3ring_eplb_map *from)
{
	size_t row = (size_t)from->experts * from->replicas;
	int r = 0;

	if (!joined->map) {
		r = r3ring_eplb_map_create(&joined->map, joined->layers, from->experts,
					   from->replicas, from->physical, from->gpus, NULL);
		if (r < 0)
			return r;
		joined->map->epoch = from->epoch;
	}
	if (!same_sizes(joined->map, from))
		return -EBADMSG;
	for (uint32_t i = 0; i < from->layers; i++) {
		uint32_t at = layers_find(joined->layer, joined->layers, &board->layer[i], i);

		if (at == joined->layers || joined->has[at])
			continue;
		memcpy(joined->map->map + at * row, from->map + i * row, row * sizeof(*from->map));
		joined->has[at] = true;
	}
	return 0;
}

/* ---- the maps of channels ------------------------------------------------------------ */

/* Whether there is one to be read; then the caller leaves it. */
static bool enter(struct load_map *one, const struct load_board *board)
{
	if (!hold_enter(&one->hold))
		return false;
	if (one->map && !r3ring_load_relaxed_u32(&one->former) &&
	    one->map->layers == board->shape.layers)
		return true;
	hold_leave(&one->hold);
	return false;
}

static int join_channel(struct joined *joined, struct load_channel *channel,
			const struct load_board *board, uint64_t epoch)
{
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < LOAD_MAPS; i++) {
		struct load_map *one = &channel->map[i];

		if (!enter(one, board))
			continue;
		if (one->map->epoch == epoch)
			r = join(joined, board, one->map);
		hold_leave(&one->hold);
	}
	return r;
}

/* Returns 0, -ENOMEM, or, once all that fit are joined, -EBADMSG where sizes of others differ. */
static int join_epoch(struct joined *joined, const struct load_asking *asking, uint64_t epoch)
{
	bool differ = false;

	for (uint32_t i = asking->first; i < asking->end; i++) {
		const struct load_board *board = load_asking_board(asking, i);
		int r = board ? join_channel(joined, asking->load->channel[i], board, epoch) : 0;

		if (r < 0 && r != -EBADMSG)
			return r;
		differ |= r == -EBADMSG;
	}
	return differ ? -EBADMSG : 0;
}

static uint64_t newest_of(struct load_channel *channel, const struct load_board *board,
			  uint64_t epoch)
{
	uint64_t newest = 0;

	for (uint32_t i = 0; i < LOAD_MAPS; i++) {
		struct load_map *one = &channel->map[i];

		if (!enter(one, board))
			continue;
		if (one->map->epoch <= epoch && one->map->epoch > newest)
			newest = one->map->epoch;
		hold_leave(&one->hold);
	}
	return newest;
}

/* The newest epoch up to that one that there is a map of; 0: none. */
static uint64_t newest_up_to(const struct load_asking *asking, uint64_t epoch)
{
	uint64_t newest = 0;

	for (uint32_t i = asking->first; i < asking->end; i++) {
		const struct load_board *board = load_asking_board(asking, i);
		uint64_t one = board ? newest_of(asking->load->channel[i], board, epoch) : 0;

		newest = one > newest ? one : newest;
	}
	return newest;
}

/* ---- which is asked for -------------------------------------------------------------- */

static int find_epoch(struct joined *joined, const struct load_asking *asking)
{
	return join_epoch(joined, asking, asking->epoch);
}

/* Where a map's layers are not all known, those of earlier ones of its sizes stand in; where no
 * such ones do, the next earlier map is tried. */
static int find_in_force(struct joined *joined, const struct load_asking *asking)
{
	uint64_t first = newest_up_to(asking, asking->epoch);
	int r = 0;

	for (; first; first = newest_up_to(asking, first - 1)) {
		uint64_t epoch = first;

		joined_empty(joined);
		for (; epoch && !is_whole(joined); epoch = newest_up_to(asking, epoch - 1)) {
			r = join_epoch(joined, asking, epoch);
			if (r < 0 && r != -EBADMSG)
				return r;
		}
		if (is_whole(joined))
			return 0;
	}
	return 0;
}

static int read_map(struct load_asking *asking, uint32_t channel,
		    int (*find)(struct joined *joined, const struct load_asking *asking),
		    struct r3ring_eplb_map **map)
{
	struct joined joined = {0};
	int r = load_asking_channels(asking, channel);

	if (r == 0)
		r = joined_open(&joined, asking);
	if (r == 0)
		r = find(&joined, asking);
	if (r == 0 && (!is_whole(&joined) || r3ring_eplb_map_check(joined.map, NULL) < 0))
		r = -ENOENT;
	if (r == 0) {
		*map = joined.map;
		joined.map = NULL;
	}
	joined_close(&joined);
	return r;
}

int r3ring_load_map(const struct r3ring_load *load, uint32_t channel, uint64_t epoch,
		    struct r3ring_eplb_map **map)
{
	struct load_asking asking = {.load = load, .epoch = epoch};

	return read_map(&asking, channel, find_epoch, map);
}

int r3ring_load_map_in_force(const struct r3ring_load *load, uint32_t channel, uint64_t epoch,
			     struct r3ring_eplb_map **map)
{
	struct load_asking asking = {.load = load, .epoch = epoch};

	return read_map(&asking, channel, find_in_force, map);
}

/* ---- its epoch ------------------------------------------------------------------------ */

static int add_epoch(const struct load_asking *asking, uint32_t channel, uint64_t *newest)
{
	struct load_board *board = load_asking_board(asking, channel);
	struct load_image *image = board ? load_image_enter(board) : NULL;

	if (!image)
		return -ENODATA;
	*newest = image->epoch > *newest ? image->epoch : *newest;
	hold_leave(&image->hold);
	return 0;
}

int r3ring_load_epoch(const struct r3ring_load *load, uint32_t channel, uint64_t *epoch)
{
	struct load_asking asking = {.load = load};
	uint64_t newest = 0;
	int r, found = -ENODATA;

	if (!epoch)
		return -EINVAL;
	r = load_asking_channels(&asking, channel);
	if (r < 0)
		return r;
	for (uint32_t i = asking.first; i < asking.end; i++)
		found = add_epoch(&asking, i, &newest) == 0 ? 0 : found;
	if (found == 0)
		*epoch = newest;
	return found;
}
