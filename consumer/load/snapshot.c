/* SPDX-License-Identifier: Apache-2.0 */
/* Reading: the newest image of a channel, or the sum of those of all. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "channel/clock.h"
#include "consumer/layers.h"
#include "consumer/load/load.h"

/* Whom a snapshot's newest step and its epoch are of. */
enum now {
	NOW_UNKNOWN,
	NOW_OF_ENDED,
	NOW_OF_RUNNING,
};

struct r3ring_load_snapshot {
	struct r3ring_load_info info;
	enum now now;
	struct r3ring_layer_entry *layer;
	uint32_t layers;
	double *counts, *rows, *no_expert; /* of one piece, that `counts` begins */
	size_t capacity;                   /* of that piece, in doubles */
};

int r3ring_load_snapshot_create(struct r3ring_load_snapshot **snapshot)
{
	struct r3ring_load_snapshot *created;

	if (!snapshot)
		return -EINVAL;
	created = calloc(1, sizeof(*created));
	if (!created)
		return -ENOMEM;
	*snapshot = created;
	return 0;
}

void r3ring_load_snapshot_free(struct r3ring_load_snapshot *snapshot)
{
	if (!snapshot)
		return;
	free(snapshot->layer);
	free(snapshot->counts);
	free(snapshot);
}

const struct r3ring_load_info *r3ring_load_snapshot_info(
	const struct r3ring_load_snapshot *snapshot)
{
	return &snapshot->info;
}

/* ---- which channels ----------------------------------------------------------- */

int load_asking_channels(struct load_asking *asking, uint32_t channel)
{
	/* Pairs with the release in r3ring_load_channel(). */
	uint32_t channels = r3ring_load_acquire_u32(&asking->load->channels);

	asking->merged = channel == R3RING_LOAD_MERGED;
	if (!asking->merged && channel >= channels)
		return -EINVAL;
	asking->first = asking->merged ? 0 : channel;
	asking->end = asking->merged ? channels : channel + 1;
	return 0;
}

static bool has_ended(const struct load_asking *asking, uint32_t channel)
{
	return r3ring_load_relaxed_u32(&asking->load->channel[channel]->ended);
}

/* The boards that are to be read of a channel: one, unless all that ever was is asked for.
 * Returns how many. */
static uint32_t boards_of(const struct load_asking *asking, uint32_t channel,
			  struct load_board *board[LOAD_BOARDS])
{
	const struct load_channel *one = asking->load->channel[channel];
	uint32_t boards;

	if (asking->over == R3RING_LOAD_EVER) {
		/* Pairs with the release in board.c, board_make(). */
		boards = r3ring_load_acquire_u32(&one->boards);
		memcpy(board, one->board, boards * sizeof(*board));
		return boards;
	}
	if (asking->merged && has_ended(asking, channel))
		return 0;
	board[0] = load_board_now(one);
	return board[0] != NULL;
}

struct load_board *load_asking_board(const struct load_asking *asking, uint32_t channel)
{
	struct load_board *board[LOAD_BOARDS];

	return boards_of(asking, channel, board) ? board[0] : NULL;
}

/* ---- images --------------------------------------------------------------------- */

/* Tries again only when a newer one came meanwhile. */
struct load_image *load_image_enter(struct load_board *board)
{
	for (;;) {
		/* Pairs with the release in load_board_show(). */
		uint32_t newest = r3ring_load_acquire_u32(&board->newest);

		if (!newest)
			return NULL;
		if (hold_enter(&board->image[newest - 1].hold))
			return &board->image[newest - 1];
	}
}

struct part {
	const uint32_t *running, *base; /* NULL for the average; base: NULL for all that was */
	const float *average;
	const struct load_stretch *stretch;
	double scale;
};

/* False when the image has nothing of what is asked for. */
static bool part_of_image(const struct load_asking *asking, const struct load_image *image,
			  struct part *part)
{
	uint32_t i = asking->over == R3RING_LOAD_TIME;
	const struct load_base *base = &image->all[i];

	*part = (struct part){.stretch = &base->stretch};
	if (asking->over == R3RING_LOAD_AVERAGE) {
		part->average = image->sums.average;
		part->scale = 1.0 / (double)image->weight;
		return true;
	}
	part->running = image->sums.running;
	if (asking->over == R3RING_LOAD_EVER) {
		part->stretch = &image->ever;
		return true;
	}
	if (asking->epoch != R3RING_LOAD_ANY_EPOCH) {
		if (asking->epoch != image->epoch)
			return false;
		if (image->since.version > base->version)
			base = &image->since;
	}
	part->base = base->counts;
	part->stretch = &base->stretch;
	return true;
}

static double cell(const struct part *part, size_t at)
{
	if (part->average)
		return (double)part->average[at] * part->scale;
	return part->base ? (double)(part->running[at] - part->base[at])
			  : (double)part->running[at];
}

static void add_layers(struct r3ring_load_snapshot *snapshot, const struct load_board *board,
		       const struct part *part)
{
	const struct cells_shape *shape = &board->shape;

	for (uint32_t i = 0; i < shape->layers; i++) {
		uint32_t to = layers_find(snapshot->layer, snapshot->layers, &board->layer[i], i);
		double *counts = snapshot->counts + (size_t)to * shape->experts;
		size_t from = (size_t)i * shape->stride;

		if (to == snapshot->layers)
			continue; /* of a schema that came just now */
		for (uint32_t e = 0; e < shape->experts; e++)
			counts[e] += cell(part, from + e);
		for (uint32_t e = shape->experts; e < shape->stride; e++)
			snapshot->no_expert[to] += cell(part, from + e);
		snapshot->rows[to] += cell(part, cells_count(shape) + i);
	}
}

/* ---- the account of it -------------------------------------------------------------- */

/* Of all that ever was: a channel that has ended holds no other back. */
static void add_now(struct r3ring_load_snapshot *snapshot, const struct load_stretch *stretch,
		    uint64_t epoch, bool ended)
{
	struct r3ring_load_info *info = &snapshot->info;

	if (ended && snapshot->now == NOW_OF_RUNNING)
		return;
	if (snapshot->now == NOW_UNKNOWN || (!ended && snapshot->now == NOW_OF_ENDED)) {
		info->to_ns = stretch->to_ns;
		info->epoch = epoch;
		info->epoch_oldest = epoch;
	} else {
		info->to_ns = info->to_ns < stretch->to_ns ? info->to_ns : stretch->to_ns;
		info->epoch = info->epoch > epoch ? info->epoch : epoch;
		info->epoch_oldest = info->epoch_oldest < epoch ? info->epoch_oldest : epoch;
	}
	snapshot->now = ended ? NOW_OF_ENDED : NOW_OF_RUNNING;
}

static void add_stretch(struct r3ring_load_info *info, const struct load_stretch *stretch)
{
	bool first = !info->channels++;

	if (first || info->steps < stretch->steps)
		info->steps = stretch->steps;
	if (first || info->from_ns > stretch->from_ns)
		info->from_ns = stretch->from_ns;
	info->from_step = first ? stretch->from_step : 0;
	info->to_step = first ? stretch->to_step : 0;
	info->window_cut |= stretch->cut;
	load_accounts_add(&info->accounts, &stretch->accounts);
}

static uint64_t age_of(uint64_t ns)
{
	uint64_t now = clock_now_ns();

	return now > ns ? now - ns : 0;
}

static void fill_info(struct r3ring_load_snapshot *snapshot, const struct load_asking *asking,
		      const struct load_board *board)
{
	struct r3ring_load_info *info = &snapshot->info;

	info->layers = snapshot->layers;
	info->experts = board->shape.experts;
	info->top_k = board->top_k;
	info->layer = snapshot->layer;
	info->counts = snapshot->counts;
	info->rows = snapshot->rows;
	info->no_expert = snapshot->no_expert;
	if (asking->merged && info->channels > 1) {
		info->from_step = 0;
		info->to_step = 0;
	}
	info->age_ns = age_of(info->to_ns);
}

/* ---- reading ------------------------------------------------------------------------- */

int load_asking_layers(const struct load_asking *asking, struct r3ring_layer_entry **layer,
		       uint32_t *layers)
{
	int r = 0;

	*layers = 0;
	for (uint32_t i = asking->first; r == 0 && i < asking->end; i++) {
		struct load_board *board[LOAD_BOARDS];
		uint32_t boards = boards_of(asking, i, board);

		for (uint32_t j = 0; r == 0 && j < boards; j++)
			r = layers_add(layer, layers, board[j]->layer, board[j]->shape.layers);
	}
	layers_sort(*layer, *layers);
	return r;
}

static int make_room(struct r3ring_load_snapshot *snapshot, uint32_t experts)
{
	size_t cells = (size_t)snapshot->layers * experts;
	size_t values = cells + 2 * (size_t)snapshot->layers;

	if (values > snapshot->capacity) {
		double *room = realloc(snapshot->counts, values * sizeof(*room));

		if (!room)
			return -ENOMEM;
		snapshot->counts = room;
		snapshot->capacity = values;
	}
	memset(snapshot->counts, 0, values * sizeof(*snapshot->counts));
	snapshot->rows = snapshot->counts + cells;
	snapshot->no_expert = snapshot->rows + snapshot->layers;
	return 0;
}

/* @stretch: receives, on top of what it has, the board's. */
static void add_board(const struct load_asking *asking, struct r3ring_load_snapshot *snapshot,
		      struct load_board *board, struct load_stretch *stretch, uint64_t *epoch)
{
	struct load_image *image = load_image_enter(board);
	struct part part;

	if (!image)
		return;
	if (part_of_image(asking, image, &part)) {
		bool newer = part.stretch->to_ns >= stretch->to_ns;
		uint64_t to_ns = newer ? part.stretch->to_ns : stretch->to_ns;

		add_layers(snapshot, board, &part);
		load_stretch_add(stretch, part.stretch);
		stretch->to_ns = to_ns;
		*epoch = newer ? image->epoch : *epoch;
	}
	hold_leave(&image->hold);
}

static void add_channel(const struct load_asking *asking, uint32_t channel,
			struct r3ring_load_snapshot *snapshot, struct load_board *const *board,
			uint32_t boards)
{
	struct load_stretch stretch = {0};
	uint64_t epoch = 0;

	for (uint32_t i = 0; i < boards; i++)
		add_board(asking, snapshot, board[i], &stretch, &epoch);
	if (!stretch.steps)
		return;
	add_stretch(&snapshot->info, &stretch);
	add_now(snapshot, &stretch, epoch, has_ended(asking, channel));
}

static int read_all(const struct load_asking *asking, struct r3ring_load_snapshot *snapshot)
{
	const struct load_board *any = NULL;
	int r = load_asking_layers(asking, &snapshot->layer, &snapshot->layers);

	for (uint32_t i = asking->first; r == 0 && i < asking->end; i++) {
		struct load_board *board[LOAD_BOARDS];
		uint32_t boards = boards_of(asking, i, board);

		if (!boards)
			continue;
		if (!any)
			r = make_room(snapshot, board[0]->shape.experts);
		if (r == 0)
			add_channel(asking, i, snapshot, board, boards);
		any = board[0];
	}
	if (r == 0 && any && snapshot->info.channels)
		fill_info(snapshot, asking, any);
	return r < 0 || snapshot->info.channels ? r : -ENODATA;
}

int r3ring_load_read(const struct r3ring_load *load, uint32_t channel, enum r3ring_load_over over,
		     uint64_t epoch, struct r3ring_load_snapshot *snapshot)
{
	struct load_asking asking = {.load = load, .over = over, .epoch = epoch};
	int r;

	if (!snapshot)
		return -EINVAL;
	r = load_asking_channels(&asking, channel);
	snapshot->info = (struct r3ring_load_info){0};
	snapshot->now = NOW_UNKNOWN;
	if (r == 0 && (over > R3RING_LOAD_EVER ||
		       (over >= R3RING_LOAD_AVERAGE && epoch != R3RING_LOAD_ANY_EPOCH)))
		r = -EINVAL;
	return r < 0 ? r : read_all(&asking, snapshot);
}
