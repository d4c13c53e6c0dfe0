/* SPDX-License-Identifier: Apache-2.0 */
/* Open steps: what came of a step, until it is whole and goes into the windows. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "consumer/load/load.h"

/* ---- their memory ------------------------------------------------------------ */

static void step_free(struct load_step *step)
{
	free(step->counts);
	free(step->layer_came);
	free(step->layer_lost);
	free(step->layer_folded);
	free(step);
}

static struct load_step *step_make(const struct cells_shape *shape)
{
	struct load_step *step = calloc(1, sizeof(*step));

	if (!step)
		return NULL;
	step->counts = cells_alloc(cells_sum_bytes(shape));
	step->layer_came = calloc(shape->layers, sizeof(*step->layer_came));
	step->layer_lost = calloc(shape->layers, sizeof(*step->layer_lost));
	step->layer_folded = calloc(shape->layers, sizeof(*step->layer_folded));
	if (!step->counts || !step->layer_came || !step->layer_lost || !step->layer_folded) {
		step_free(step);
		return NULL;
	}
	step->layer_rows = step->counts + cells_count(shape);
	return step;
}

static struct load_step *step_take(struct load_channel *channel, const struct cells_shape *shape)
{
	struct load_step *step = channel->spare;

	if (!step)
		return step_make(shape);
	channel->spare = step->next;
	channel->spare_steps--;
	return step;
}

static void drop_rows(struct load_channel *channel, struct load_step *step)
{
	const struct load_board *board = load_board_now(channel);

	if (step->held_rows)
		channel->held_bytes -= (uint64_t)board->shape.layers * step->held_rows *
				       board->top_k * sizeof(*step->held);
	free(step->state);
	free(step->place);
	free(step->held);
	free(step->held_came);
	free(step->span);
}

/* Empty, to be taken again. */
static void step_give_back(struct load_channel *channel, struct load_step *step)
{
	const struct cells_shape *shape = &load_board_now(channel)->shape;
	struct load_step empty = {
		.next = channel->spare,
		.counts = step->counts,
		.layer_rows = step->layer_rows,
		.layer_came = step->layer_came,
		.layer_lost = step->layer_lost,
		.layer_folded = step->layer_folded,
	};

	drop_rows(channel, step);
	if (channel->spare_steps > 1) {
		step_free(step);
		return;
	}
	memset(step->layer_came, 0, shape->layers * sizeof(*step->layer_came));
	memset(step->layer_lost, 0, shape->layers * sizeof(*step->layer_lost));
	memset(step->layer_folded, 0, shape->layers * sizeof(*step->layer_folded));
	*step = empty;
	channel->spare = step;
	channel->spare_steps++;
}

void load_step_drop(struct load_channel *channel, struct load_step *step)
{
	struct load_step **at = &channel->open;

	while (*at != step)
		at = &(*at)->next;
	*at = step->next;
	channel->open_steps--;
	memset(step->counts, 0, cells_sum_bytes(&load_board_now(channel)->shape));
	step_give_back(channel, step);
}

void load_steps_free(struct load_channel *channel)
{
	struct load_step *step;

	while ((step = channel->open)) {
		channel->open = step->next;
		drop_rows(channel, step);
		step_free(step);
	}
	while ((step = channel->spare)) {
		channel->spare = step->next;
		step_free(step);
	}
	channel->open_steps = 0;
	channel->spare_steps = 0;
}

/* ---- beginning ------------------------------------------------------------------ */

static void append(struct load_channel *channel, struct load_step *step)
{
	struct load_step **last = &channel->open;

	while (*last)
		last = &(*last)->next;
	*last = step;
	step->next = NULL;
	channel->open_steps++;
}

/* Whether it is the one that was the newest when the generation before ended. */
static bool begins_again(struct load_channel *channel, uint64_t number)
{
	const bool again = number == channel->begun_step &&
			   channel->begun_generation != channel->generation;

	channel->begun_step = number;
	channel->begun_generation = channel->generation;
	return again;
}

int load_step_begin(struct r3ring_load *load, struct load_channel *channel,
		    const struct r3ring_record *record)
{
	const struct r3ring_step_record *head = &record->u.step.head;
	const bool again = begins_again(channel, head->step);
	struct load_step *step;
	int r = 0;

	/* LOST says what it cost. */
	if (head->flags & R3RING_STEP_DROPPED) {
		if (!(head->flags & R3RING_STEP_WARMUP))
			load_rows_ran(channel, record->u.step.spans, head->spans);
		return 0;
	}
	step = step_take(channel, &load_board_now(channel)->shape);
	if (!step)
		return -ENOMEM;
	step->head = *head;
	step->generation = channel->generation;
	step->again = again;
	step->ns = head->host_ns;
	step->rows = r3ring_step_valid_rows(head);
	step->warmup = head->flags & R3RING_STEP_WARMUP;
	step->spans_follow = head->flags & (R3RING_STEP_SPANS_FOLLOW | R3RING_STEP_MAP_CONTINUED);
	step->plain = true;
	if (!step->warmup)
		r = load_rows_decide(load, channel, step, record->u.step.spans, head->spans);
	if (r < 0) {
		step_give_back(channel, step);
		return r;
	}
	step->first = !step->warmup && !channel->open &&
		      load_board_prepare(load_board_now(channel));
	append(channel, step);
	return 0;
}

struct load_step *load_step_find(const struct load_channel *channel, uint64_t number)
{
	struct load_step *step = channel->open;

	while (step && !(step->head.step == number && step->generation == channel->generation))
		step = step->next;
	return step;
}

/* ---- a layer ---------------------------------------------------------------------- */

/* One that lies beyond the step or came already is not of this step. */
static bool layer_fits(const struct load_board *board, const struct load_step *step,
		       const struct r3ring_layer_record *head, uint32_t rows)
{
	uint32_t layer = head->layer_index;

	return layer < board->shape.layers && head->top_k == board->top_k &&
	       board->layer[layer].layer_id == head->layer_id &&
	       board->layer[layer].kind == head->kind &&
	       rows <= step->rows - step->layer_came[layer];
}

/* Valid rows of the record within the step. */
static struct load_part part_of(const struct load_step *step, const struct r3ring_record *record)
{
	const struct r3ring_layer_record *head = &record->u.layer.head;
	struct load_part part = {.layer = head->layer_index, .ids = record->u.layer.ids};
	uint32_t rest;

	if (head->row < step->head.row_begin || head->row - step->head.row_begin > step->rows)
		return part;
	part.first = head->row - step->head.row_begin;
	rest = step->rows - part.first;
	part.rows = head->rows < rest ? head->rows : rest;
	return part;
}

bool load_step_look(struct r3ring_load *load, const struct load_channel *channel,
		    const struct r3ring_record *record)
{
	const struct load_board *board = load_board_now(channel);
	const struct load_step *step = load_step_find(channel, record->u.layer.head.step);
	struct load_part part;

	if (!step || step->warmup || !step->plain)
		return false;
	part = part_of(step, record);
	if (!layer_fits(board, step, &record->u.layer.head, part.rows))
		return false;
	cells_count_ids(load->any, part.ids, (size_t)part.rows * board->top_k);
	return true;
}

void load_step_layer(struct r3ring_load *load, struct load_channel *channel,
		     const struct r3ring_record *record, bool looked)
{
	const struct r3ring_layer_record *head = &record->u.layer.head;
	struct load_step *step = load_step_find(channel, head->step);
	struct load_part part;

	if (!step) {
		channel->unseen.lost[R3RING_MISSING_GAP] += head->valid_rows;
		load_note_unknown(load, channel, head->step);
		return;
	}
	part = part_of(step, record);
	if (!layer_fits(load_board_now(channel), step, head, part.rows))
		return;
	step->layer_came[head->layer_index] += part.rows;
	step->accounts.left_out[R3RING_LOAD_PADDING] += head->rows - part.rows;
	if (step->warmup)
		step->accounts.left_out[R3RING_LOAD_WARMUP] += part.rows;
	else if (looked)
		load_rows_take(load, channel, step, &part);
	else
		load_rows_count(load, channel, step, &part);
}

/* ---- ending ------------------------------------------------------------------------- */

void load_step_end(struct load_channel *channel, const struct r3ring_record *record)
{
	const struct r3ring_step_end_record *head = &record->u.step_end.head;
	const struct load_board *board = load_board_now(channel);
	struct load_step *step = load_step_find(channel, head->step);

	if (!step)
		return;
	step->ended = true;
	if (head->publish_ns)
		step->ns = head->publish_ns;
	for (uint32_t i = 0; i < head->missing; i++) {
		step->cut |= record->u.step_end.missing[i].cause == R3RING_CAUSE_DAEMON_RESTART;
		for (uint32_t layer = 0; layer < board->shape.layers; layer++)
			if (board->layer[layer].layer_id ==
				    record->u.step_end.missing[i].layer_id &&
			    board->layer[layer].kind == record->u.step_end.missing[i].kind)
				step->layer_lost[layer] =
					(uint8_t)record->u.step_end.missing[i].cause;
	}
}

void load_steps_end_all(struct load_channel *channel)
{
	for (struct load_step *step = channel->open; step; step = step->next)
		step->ended = true;
}

static uint32_t rows_that_count(const struct load_step *step)
{
	uint32_t rows = 0;

	for (uint32_t i = 0; !step->plain && i < step->rows; i++)
		rows += step->state[i] == LOAD_ROW_COUNTS;
	return step->plain ? step->rows : rows;
}

/* What STEP_END takes back did not come. */
static void lose_layers(const struct load_board *board, struct load_step *step)
{
	for (uint32_t layer = 0; layer < board->shape.layers; layer++) {
		if (!step->layer_lost[layer] || step->warmup)
			continue;
		step->accounts.lost[step->layer_lost[layer]] += rows_that_count(step);
		step->layer_rows[layer] = 0;
		step->layer_folded[layer] = 0;
		memset(step->counts + (size_t)layer * board->shape.stride, 0,
		       board->shape.stride * sizeof(*step->counts));
	}
}

static void lose_step(const struct load_board *board, struct load_step *step)
{
	memset(step->counts, 0, cells_sum_bytes(&board->shape));
	memset(step->layer_folded, 0, board->shape.layers * sizeof(*step->layer_folded));
	step->accounts = (struct r3ring_load_accounts){
		.lost[R3RING_CAUSE_DAEMON_RESTART] = step->lost_cells,
	};
}

static void settle(struct r3ring_load *load, struct load_channel *channel, struct load_step *step)
{
	struct load_board *board = load_board_now(channel);

	if (step->waiting) {
		load_rows_give_up(channel, step);
		load->stats.steps_late++;
	}
	if (step->lost)
		lose_step(board, step);
	else
		lose_layers(board, step);
	if (step->warmup) {
		load_accounts_add(&channel->unseen, &step->accounts);
		return;
	}
	for (uint32_t layer = 0; layer < board->shape.layers; layer++)
		step->accounts.counted += step->layer_rows[layer];
	load_board_add(load, board, step);
	load->stats.steps++;
}

static bool is_ready(const struct r3ring_load *load, const struct load_channel *channel,
		     const struct load_step *step, bool all)
{
	if (!step->ended || step == load_cut_step(channel))
		return false;
	return !step->waiting || all || channel->open_steps > load->options.late_steps;
}

void load_steps_settle(struct r3ring_load *load, struct load_channel *channel, bool all)
{
	struct load_step *step;
	uint64_t before = load->stats.steps;

	while ((step = channel->open) && is_ready(load, channel, step, all)) {
		settle(load, channel, step);
		channel->open = step->next;
		channel->open_steps--;
		step_give_back(channel, step);
	}
	if (load->stats.steps != before)
		load_board_show(load, load_board_now(channel));
}
