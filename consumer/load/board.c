/* SPDX-License-Identifier: Apache-2.0 */
/* What is shown to those that read: the sums, each of a step's end, and what windows begin with. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "consumer/load/load.h"

/* Whoever refers to one of the pool's blocks: buckets, images with their bases, `own`, `since`. */
#define BLOCKS (LOAD_WINDOWS * LOAD_BUCKETS + LOAD_IMAGES * (LOAD_WINDOWS + 2) + 2)

/* ---- memory ------------------------------------------------------------------ */

void load_board_free(struct load_board *board)
{
	for (uint32_t i = 0; i < LOAD_IMAGES; i++)
		free(board->image[i].sums.average);
	free(board->own.average);
	load_pool_close(&board->pool);
	free(board->layer);
	free(board);
}

/* Nothing was counted yet. */
static int sums_open(struct load_board *board)
{
	const size_t bytes = cells_sum_bytes(&board->shape);
	bool made = load_pool_open(&board->pool, cells_sum_count(&board->shape), BLOCKS) == 0;

	for (uint32_t i = 0; i < LOAD_IMAGES; i++)
		made &= (board->image[i].sums.average = cells_alloc(bytes)) != NULL;
	made &= (board->own.average = cells_alloc(bytes)) != NULL;
	if (!made)
		return -ENOMEM;
	board->own.running = load_pool_take(&board->pool);
	memset(board->own.running, 0, bytes);
	board->now = &board->own;
	return 0;
}

static int board_open(struct load_board *board, const struct r3ring_load_options *options,
		      const struct r3ring_record *record)
{
	const struct r3ring_schema_record *schema = &record->u.schema.head;
	size_t table = schema->layers * sizeof(*board->layer);

	board->shape = cells_shape_of(schema->layers, schema->experts);
	board->top_k = schema->top_k;
	board->layer = malloc(table);
	if (!board->layer)
		return -ENOMEM;
	memcpy(board->layer, record->u.schema.layers, table);
	load_window_open(&board->window[0], R3RING_LOAD_STEPS, options->window_steps);
	load_window_open(&board->window[1], R3RING_LOAD_TIME, options->window_ns);
	return sums_open(board);
}

uint64_t load_board_bytes(const struct load_board *board)
{
	return load_pool_bytes(&board->pool) + (LOAD_IMAGES + 1) * cells_sum_bytes(&board->shape);
}

/* ---- one for each schema ------------------------------------------------------- */

static bool same_layers(const struct load_board *board, const struct r3ring_record *record)
{
	const struct r3ring_layer_entry *layer = record->u.schema.layers;

	if (board->shape.layers != record->u.schema.head.layers)
		return false;
	for (uint32_t i = 0; i < board->shape.layers; i++)
		if (board->layer[i].layer_id != layer[i].layer_id ||
		    board->layer[i].kind != layer[i].kind)
			return false;
	return true;
}

static int board_make(struct r3ring_load *load, struct load_channel *channel,
		      const struct r3ring_record *record)
{
	struct load_board *board;

	if (channel->boards == LOAD_BOARDS)
		return -EPROTO;
	board = calloc(1, sizeof(*board));
	if (!board)
		return -ENOMEM;
	if (board_open(board, &load->options, record) < 0) {
		load_board_free(board);
		return -ENOMEM;
	}
	channel->board[channel->boards] = board;
	/* Pairs with the acquire in snapshot.c, boards_of(): the board is made. */
	r3ring_store_release_u32(&channel->boards, channel->boards + 1);
	return 0;
}

int load_board_take(struct r3ring_load *load, struct load_channel *channel,
		    const struct r3ring_record *record)
{
	struct load_board *now = load_board_now(channel);
	uint32_t at = 0;
	int r;

	if (now && same_layers(now, record))
		return 0;
	/* Their steps have the former one's layers. */
	load_cut_stays(channel);
	if (now)
		load_steps_settle(load, channel, true);
	load_steps_free(channel);
	while (at < channel->boards && !same_layers(channel->board[at], record))
		at++;
	if (at == channel->boards) {
		r = board_make(load, channel, record);
		if (r < 0)
			return r;
	}
	/* Pairs with the acquire in load_board_now(): the board is made. */
	r3ring_store_release_u32(&channel->board_at, at + 1);
	return 0;
}

/* ---- counting --------------------------------------------------------------------- */

/* The newest one is what others are about to read. */
static struct load_image *claim_place(struct load_board *board)
{
	for (uint32_t i = 0; i < LOAD_IMAGES; i++)
		if (i + 1 != board->newest && &board->image[i] != board->next &&
		    hold_claim(&board->image[i].hold))
			return &board->image[i];
	return NULL;
}

/* Its sums are written: a window that begins with those before keeps them. */
static void ensure_next(struct load_board *board)
{
	struct cells_sums *sums;

	if (board->next)
		return;
	board->next = claim_place(board);
	if (!board->next)
		return;
	sums = &board->next->sums;
	sums->running = load_pool_own(&board->pool, sums->running);
}

/* What is shown has left `next`: so layers are not folded in place, and may be taken back. */
bool load_board_prepare(struct load_board *board)
{
	ensure_next(board);
	return board->next;
}

void load_board_fold(const struct r3ring_load *load, struct load_board *board,
		     struct load_step *step, uint32_t layer, uint64_t ids)
{
	const struct cells_shape *shape = &board->shape;
	const struct cells_sums *to = &board->next->sums;
	size_t at = (size_t)layer * shape->stride;
	uint64_t strangers =
		ids - cells_fold(to, board->now, load->any, load->decay, at, shape->stride);

	step->layer_folded[layer] = 1;
	if (!strangers)
		return;
	to->running[at + shape->experts] += (uint32_t)strangers;
	to->average[at + shape->experts] += (float)strangers;
}

/* What was not folded as it came, and the rows. */
static void fold_rest(const struct r3ring_load *load, struct load_board *board,
		      struct load_step *step)
{
	const struct cells_shape *shape = &board->shape;
	struct cells_sums *to = board->next ? &board->next->sums : &board->own;
	const struct cells_sums from = *board->now;
	size_t cells = cells_count(shape);

	/* Where it is what is now, a bucket may just have begun with it; then nothing was folded. */
	to->running = load_pool_own(&board->pool, to->running);
	for (uint32_t layer = 0; layer < shape->layers; layer++) {
		size_t at = (size_t)layer * shape->stride;

		if (!step->layer_folded[layer])
			cells_fold(to, &from, step->counts + at, load->decay, at, shape->stride);
	}
	cells_fold(to, &from, step->layer_rows, load->decay, cells, cells_sum_count(shape) - cells);
	board->now = to;
}

void load_board_add(const struct r3ring_load *load, struct load_board *board,
		    struct load_step *step)
{
	const struct load_stretch stretch = load_stretch_of(board, step);

	/* Before the windows: a bucket that begins with the same step is no older. */
	if (!board->ever.steps || board->epoch != step->head.eplb_epoch)
		load_bucket_begin(&board->since, board);
	load_stretch_add(&board->since.stretch, &stretch);
	for (uint32_t i = 0; i < LOAD_WINDOWS; i++)
		load_window_add(&board->window[i], board, step);
	load_stretch_add(&board->ever, &stretch);
	ensure_next(board);
	fold_rest(load, board, step);
	board->weight = board->weight * load->decay + 1;
	board->epoch = step->head.eplb_epoch;
}

bool load_board_account(struct load_board *board, const struct r3ring_load_accounts *accounts)
{
	for (uint32_t i = 0; i < LOAD_WINDOWS; i++)
		load_window_account(&board->window[i], accounts);
	if (board->window[0].used) {
		load_accounts_add(&board->since.stretch.accounts, accounts);
		load_accounts_add(&board->ever.accounts, accounts);
	}
	return board->window[0].used;
}

void load_board_end_epoch(struct load_board *board)
{
	load_bucket_begin(&board->since, board);
	board->epoch = 0;
}

/* ---- showing ------------------------------------------------------------------------ */

static void share_base(struct load_pool *pool, struct load_base *base,
		       const struct load_bucket *bucket)
{
	load_pool_leave(pool, base->counts);
	base->counts = load_pool_share(pool, bucket->start);
	base->version = bucket->version;
}

static void image_fill(struct load_image *image, struct load_board *board)
{
	for (uint32_t i = 0; i < LOAD_WINDOWS; i++)
		share_base(&board->pool, &image->all[i],
			   load_window_begin(&board->window[i], &image->all[i].stretch));
	share_base(&board->pool, &image->since, &board->since);
	image->since.stretch = board->since.stretch;
	image->weight = board->weight;
	image->ever = board->ever;
	image->epoch = board->epoch;
}

/* What it is given has the newest sums, or gets them. */
static void show(struct r3ring_load *load, struct load_board *board, struct load_image *image)
{
	if (board->now != &image->sums) {
		load_pool_leave(&board->pool, image->sums.running);
		image->sums.running = load_pool_share(&board->pool, board->now->running);
		memcpy(image->sums.average, board->now->average, cells_sum_bytes(&board->shape));
		board->now = &image->sums;
	}
	image_fill(image, board);
	hold_give_back(&image->hold);
	/* Pairs with the acquire in snapshot.c, load_image_enter(). */
	r3ring_store_release_u32(&board->newest, (uint32_t)(image - board->image) + 1);
	load->stats.snapshots++;
}

/* Where layers of an open step are is no place for what is shown now. */
static struct load_image *place_to_show(struct load_board *board)
{
	struct load_image *next = board->next;

	if (!next || board->now != &next->sums)
		return claim_place(board);
	board->next = NULL;
	return next;
}

void load_board_show(struct r3ring_load *load, struct load_board *board)
{
	struct load_image *image = place_to_show(board);

	if (image)
		show(load, board, image);
	else
		load->stats.snapshots_put_off++;
}
