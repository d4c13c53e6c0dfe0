/* SPDX-License-Identifier: Apache-2.0 */
/* What is shown to those that read: copies of the windows' sums, each of a step's end. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "consumer/load/load.h"

/* ---- memory ------------------------------------------------------------------ */

void load_board_free(struct load_board *board)
{
	for (uint32_t i = 0; i < LOAD_WINDOWS; i++)
		load_window_close(&board->window[i]);
	for (uint32_t i = 0; i < LOAD_IMAGES; i++) {
		for (uint32_t j = 0; j < LOAD_WINDOWS; j++) {
			free(board->image[i].all[j].counts);
			free(board->image[i].since[j].counts);
		}
		free(board->image[i].running);
		free(board->image[i].average);
	}
	free(board->since.start);
	free(board->running);
	free(board->average);
	free(board->layer);
	free(board);
}

/* That of the newest epoch is made when there is a second one. */
static int image_open(struct load_image *image, size_t bytes)
{
	for (uint32_t i = 0; i < LOAD_WINDOWS; i++) {
		image->all[i].counts = cells_alloc(bytes);
		if (!image->all[i].counts)
			return -ENOMEM;
	}
	image->running = cells_alloc(bytes);
	image->average = cells_alloc(bytes);
	return image->running && image->average ? 0 : -ENOMEM;
}

static int board_open(struct load_board *board, const struct r3ring_load_options *options,
		      const struct r3ring_record *record)
{
	const struct r3ring_schema_record *schema = &record->u.schema.head;
	size_t bytes, table = schema->layers * sizeof(*board->layer);
	int r;

	board->shape = cells_shape_of(schema->layers, schema->experts);
	board->top_k = schema->top_k;
	board->layer = malloc(table);
	if (!board->layer)
		return -ENOMEM;
	memcpy(board->layer, record->u.schema.layers, table);
	bytes = cells_sum_bytes(&board->shape);
	r = load_window_open(&board->window[0], R3RING_LOAD_STEPS, options->window_steps,
			     &board->shape);
	if (r == 0)
		r = load_window_open(&board->window[1], R3RING_LOAD_TIME, options->window_ns,
				     &board->shape);
	board->since.start = cells_alloc(bytes);
	board->running = cells_alloc(bytes);
	board->average = cells_alloc(bytes);
	for (uint32_t i = 0; r == 0 && i < LOAD_IMAGES; i++)
		r = image_open(&board->image[i], bytes);
	return board->since.start && board->running && board->average ? r : -ENOMEM;
}

uint64_t load_board_bytes(const struct load_board *board)
{
	uint64_t sums = LOAD_WINDOWS * LOAD_BUCKETS + 3 + LOAD_IMAGES * (LOAD_WINDOWS + 2);

	for (uint32_t i = 0; i < LOAD_IMAGES; i++)
		for (uint32_t j = 0; j < LOAD_WINDOWS; j++)
			sums += board->image[i].since[j].counts != NULL;
	return sums * cells_sum_bytes(&board->shape);
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

/* ---- counting and showing -------------------------------------------------------- */

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
	cells_settle(step->counts, board->running, board->average, load->decay,
		     cells_sum_count(&board->shape));
	step->added = true;
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

/* Most steps find the same bucket at the beginning as the image that was here before. */
static void copy_base(struct load_base *base, const struct load_bucket *bucket, size_t bytes)
{
	if (base->version == bucket->version)
		return;
	if (!base->counts)
		base->counts = cells_alloc(bytes);
	base->version = base->counts ? bucket->version : 0;
	if (base->counts)
		memcpy(base->counts, bucket->start, bytes);
}

static void image_fill(struct load_image *image, const struct load_board *board)
{
	const size_t bytes = cells_sum_bytes(&board->shape);

	for (uint32_t i = 0; i < LOAD_WINDOWS; i++) {
		const struct load_bucket *all;

		all = load_window_begin(&board->window[i], &image->all[i].stretch);
		copy_base(&image->all[i], all, bytes);
		image->mixed[i] = board->since.version > all->version;
		image->since[i].stretch = board->since.stretch;
		if (image->mixed[i])
			copy_base(&image->since[i], &board->since, bytes);
	}
	memcpy(image->running, board->running, bytes);
	memcpy(image->average, board->average, bytes);
	image->weight = board->weight;
	image->ever = board->ever;
	image->epoch = board->epoch;
}

void load_board_show(struct r3ring_load *load, struct load_board *board)
{
	for (uint32_t i = 0; i < LOAD_IMAGES; i++) {
		/* The newest one is what others are about to read. */
		if (i + 1 == board->newest || !hold_claim(&board->image[i].hold))
			continue;
		image_fill(&board->image[i], board);
		hold_give_back(&board->image[i].hold);
		/* Pairs with the acquire in snapshot.c, image_enter(). */
		r3ring_store_release_u32(&board->newest, i + 1);
		load->stats.snapshots++;
		return;
	}
	load->stats.snapshots_put_off++;
}
