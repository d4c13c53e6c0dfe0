/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which rows of a step count. Most steps' rows all do; of the others each row has a state.
 * Ids of a row that waits are held, and counted or forgotten once it is decided.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "consumer/load/load.h"

static bool is_draft(const struct r3ring_span *span)
{
	return span->flags & R3RING_SPAN_DRAFT;
}

static bool is_open(const struct r3ring_span *span)
{
	return is_draft(span) && span->accepted == R3RING_UNKNOWN_U32;
}

static uint32_t rows_kept(const struct r3ring_span *span)
{
	return is_draft(span) && span->accepted < span->rows ? span->accepted : span->rows;
}

static uint32_t end_of(const struct r3ring_span *span)
{
	uint64_t end = (uint64_t)span->position + rows_kept(span);

	return end > UINT32_MAX ? UINT32_MAX : (uint32_t)end;
}

static enum load_row state_of(const struct r3ring_span *span, uint32_t i,
			      const struct load_ran *ran)
{
	const uint64_t position = (uint64_t)span->position + i;

	if (is_open(span))
		return LOAD_ROW_WAITS;
	if (i >= rows_kept(span))
		return LOAD_ROW_REJECTED;
	return load_ran_any(ran, position, position + 1) ? LOAD_ROW_RECOMPUTED : LOAD_ROW_COUNTS;
}

/* ---- a step that begins ----------------------------------------------------- */

static const struct load_ran *ran_before(const struct load_channel *channel,
					 const struct load_step *step, uint64_t request)
{
	static const struct load_ran nothing;

	return step->again ? &nothing : load_watch_ran(&channel->watch, request);
}

static bool runs_again(const struct load_channel *channel, const struct load_step *step,
		       const struct r3ring_span *span)
{
	return load_ran_any(ran_before(channel, step, span->request), span->position,
			    (uint64_t)span->position + span->rows);
}

static bool all_count(const struct load_channel *channel, const struct load_step *step,
		      const struct r3ring_span *spans, uint32_t count)
{
	if (step->spans_follow)
		return false;
	for (uint32_t i = 0; i < count; i++)
		if (spans[i].kind == R3RING_SPAN_COMPUTED &&
		    (is_draft(&spans[i]) || runs_again(channel, step, &spans[i])))
			return false;
	return true;
}

static void span_state(struct load_step *step, const struct r3ring_span *span,
		       const struct load_ran *ran)
{
	for (uint32_t i = 0; i < span->rows; i++) {
		uint64_t row = (uint64_t)span->row + i;

		if (row >= step->head.row_begin && row - step->head.row_begin < step->rows)
			step->state[row - step->head.row_begin] = (uint8_t)state_of(span, i, ran);
	}
}

static int keep_span(struct load_step *step, const struct r3ring_span *span)
{
	struct r3ring_span *spans = realloc(step->span, (step->spans + 1) * sizeof(*spans));

	if (!spans)
		return -ENOMEM;
	step->span = spans;
	spans[step->spans++] = *span;
	return 0;
}

static int give_states(struct load_channel *channel, struct load_step *step,
		       const struct r3ring_span *spans, uint32_t count)
{
	int r = 0;

	step->state = malloc(step->rows + 1);
	if (!step->state)
		return -ENOMEM;
	memset(step->state, step->spans_follow ? LOAD_ROW_WAITS : LOAD_ROW_COUNTS, step->rows);
	for (uint32_t i = 0; r == 0 && i < count; i++) {
		if (spans[i].kind != R3RING_SPAN_COMPUTED)
			continue;
		span_state(step, &spans[i], ran_before(channel, step, spans[i].request));
		if (is_open(&spans[i]))
			r = keep_span(step, &spans[i]);
	}
	return r;
}

/* Room for the ids of rows that wait; without it they are lost. */
static void hold_rows(struct r3ring_load *load, struct load_channel *channel,
		      struct load_step *step)
{
	const struct load_board *board = load_board_now(channel);
	uint64_t cells, bytes;

	for (uint32_t i = 0; i < step->rows; i++)
		step->waiting += step->state[i] == LOAD_ROW_WAITS;
	cells = (uint64_t)board->shape.layers * step->waiting;
	bytes = cells * board->top_k * sizeof(*step->held);
	if (!step->waiting || channel->held_bytes + bytes > load->options.max_held_bytes)
		return;
	step->place = calloc(step->rows, sizeof(*step->place));
	step->held = malloc(bytes);
	step->held_came = calloc(1, cells);
	if (!step->place || !step->held || !step->held_came)
		return;
	for (uint32_t i = 0; i < step->rows; i++)
		if (step->state[i] == LOAD_ROW_WAITS)
			step->place[i] = step->held_rows++;
	channel->held_bytes += bytes;
}

/* Without a place to be held in, what waits is lost at once. */
static void lose_unheld(const struct load_channel *channel, struct load_step *step)
{
	uint64_t layers = load_board_now(channel)->shape.layers;

	if (!step->waiting || step->held_rows)
		return;
	for (uint32_t i = 0; i < step->rows; i++)
		if (step->state[i] == LOAD_ROW_WAITS)
			step->state[i] = LOAD_ROW_LOST;
	step->accounts.lost[R3RING_MISSING_EVICTED] += step->waiting * layers;
	step->waiting = 0;
}

void load_rows_ran(struct load_channel *channel, const struct r3ring_span *spans, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		if (spans[i].kind == R3RING_SPAN_COMPUTED && !is_open(&spans[i]))
			load_watch_add(&channel->watch, spans[i].request, spans[i].position,
				       end_of(&spans[i]));
}

int load_rows_decide(struct r3ring_load *load, struct load_channel *channel, struct load_step *step,
		     const struct r3ring_span *spans, uint32_t count)
{
	int r = 0;

	step->plain = all_count(channel, step, spans, count);
	if (!step->plain) {
		r = give_states(channel, step, spans, count);
		if (r < 0)
			return r;
		hold_rows(load, channel, step);
		lose_unheld(channel, step);
	}
	/* Only now: spans of one step may be in any order. */
	load_rows_ran(channel, spans, count);
	return 0;
}

/* ---- a layer ------------------------------------------------------------------ */

static void left_out(struct load_step *step, enum load_row state, uint64_t cells)
{
	if (state == LOAD_ROW_REJECTED)
		step->accounts.left_out[R3RING_LOAD_REJECTED] += cells;
	else if (state == LOAD_ROW_RECOMPUTED)
		step->accounts.left_out[R3RING_LOAD_RECOMPUTED] += cells;
}

/* From the table to the step's cells. */
static void keep_counts(const struct r3ring_load *load, const struct load_board *board,
			struct load_step *step, uint32_t layer, uint64_t ids)
{
	const struct cells_shape *shape = &board->shape;
	uint32_t *cells = step->counts + (size_t)layer * shape->stride;
	uint64_t strangers = ids - cells_move(cells, load->any, shape->stride);

	if (!strangers)
		return;
	cells[shape->experts] += (uint32_t)strangers;
}

/* A layer that is whole may go to the sums at once, where they can still do without it. */
void load_rows_take(struct r3ring_load *load, struct load_channel *channel, struct load_step *step,
		    const struct load_part *part)
{
	struct load_board *board = load_board_now(channel);
	uint64_t ids = (uint64_t)part->rows * board->top_k;

	if (step->first && part->rows == step->rows && !step->layer_folded[part->layer])
		load_board_fold(load, board, step, part->layer, ids);
	else
		keep_counts(load, board, step, part->layer, ids);
	step->layer_rows[part->layer] += part->rows;
}

static void hold_ids(const struct load_board *board, struct load_step *step, uint32_t layer,
		     uint32_t row, const uint16_t *ids)
{
	size_t cell = (size_t)layer * step->held_rows + step->place[row];

	memcpy(step->held + cell * board->top_k, ids, board->top_k * sizeof(*ids));
	step->held_came[cell] = 1;
}

/* Rows of one state, from @row on. */
static uint32_t same_state(const struct load_step *step, uint32_t row, uint32_t end)
{
	uint32_t next = row + 1;

	while (next < end && step->state[next] == step->state[row])
		next++;
	return next - row;
}

static void count_by_state(const struct r3ring_load *load, const struct load_board *board,
			   struct load_step *step, const struct load_part *part)
{
	uint32_t run, end = part->first + part->rows, counted = 0;

	for (uint32_t row = part->first; row < end; row += run) {
		const uint16_t *from = part->ids + (size_t)(row - part->first) * board->top_k;
		enum load_row state = step->state[row];

		run = same_state(step, row, end);
		if (state == LOAD_ROW_COUNTS) {
			cells_count_ids(load->any, from, (size_t)run * board->top_k);
			counted += run;
		}
		for (uint32_t j = 0; state == LOAD_ROW_WAITS && j < run; j++)
			hold_ids(board, step, part->layer, row + j,
				 from + (size_t)j * board->top_k);
		left_out(step, state, run);
	}
	keep_counts(load, board, step, part->layer, (uint64_t)counted * board->top_k);
	step->layer_rows[part->layer] += counted;
}

void load_rows_count(struct r3ring_load *load, struct load_channel *channel, struct load_step *step,
		     const struct load_part *part)
{
	const struct load_board *board = load_board_now(channel);

	if (!step->plain) {
		count_by_state(load, board, step, part);
		return;
	}
	cells_count_ids(load->any, part->ids, (size_t)part->rows * board->top_k);
	load_rows_take(load, channel, step, part);
}

/* ---- what comes late ------------------------------------------------------------ */

static void count_held(const struct load_board *board, struct load_step *step, uint32_t row)
{
	for (uint32_t layer = 0; layer < board->shape.layers; layer++) {
		size_t cell = (size_t)layer * step->held_rows + step->place[row];

		if (!step->held_came[cell])
			continue;
		if (step->state[row] == LOAD_ROW_COUNTS) {
			cells_count_few(step->counts + (size_t)layer * board->shape.stride,
					step->held + cell * board->top_k, board->top_k,
					board->shape.experts);
			step->layer_rows[layer]++;
		}
		left_out(step, (enum load_row)step->state[row], 1);
		if (step->state[row] == LOAD_ROW_LOST)
			step->accounts.lost[R3RING_MISSING_SPANS]++;
	}
}

static void decide(const struct load_board *board, struct load_step *step, uint32_t row,
		   enum load_row state)
{
	if (step->state[row] != LOAD_ROW_WAITS || state == LOAD_ROW_WAITS)
		return;
	step->state[row] = (uint8_t)state;
	step->waiting--;
	count_held(board, step, row);
}

static void learn_span(struct load_channel *channel, struct load_step *step,
		       const struct r3ring_span *span)
{
	const struct load_board *board = load_board_now(channel);
	const struct load_ran *ran = ran_before(channel, step, span->request);

	if (span->kind != R3RING_SPAN_COMPUTED)
		return;
	if (is_open(span)) {
		/* Without memory it is as if nobody had claimed its rows. */
		keep_span(step, span);
		return;
	}
	for (uint32_t i = 0; i < span->rows; i++) {
		uint64_t row = (uint64_t)span->row + i;

		if (row >= step->head.row_begin && row - step->head.row_begin < step->rows)
			decide(board, step, (uint32_t)(row - step->head.row_begin),
			       state_of(span, i, ran));
	}
	load_watch_add(&channel->watch, span->request, span->position, end_of(span));
}

static bool is_claimed(const struct load_step *step, uint32_t row)
{
	uint64_t number = (uint64_t)step->head.row_begin + row;

	for (uint32_t i = 0; i < step->spans; i++)
		if (number >= step->span[i].row && number - step->span[i].row < step->span[i].rows)
			return true;
	return false;
}

void load_rows_map_ended(struct load_channel *channel, struct load_step *step)
{
	const struct load_board *board = load_board_now(channel);

	step->spans_follow = false;
	for (uint32_t row = 0; step->waiting && row < step->rows; row++)
		if (step->state[row] == LOAD_ROW_WAITS && !is_claimed(step, row))
			decide(board, step, row, LOAD_ROW_COUNTS);
}

void load_rows_learn(struct load_channel *channel, struct load_step *step,
		     const struct r3ring_record *record)
{
	for (uint32_t i = 0; step->waiting && i < record->u.spans.head.spans; i++)
		learn_span(channel, step, &record->u.spans.spans[i]);
}

void load_rows_give_up(struct load_channel *channel, struct load_step *step)
{
	const struct load_board *board = load_board_now(channel);

	for (uint32_t i = 0; i < step->spans; i++)
		for (uint32_t j = 0; j < step->span[i].rows; j++) {
			uint64_t row = (uint64_t)step->span[i].row + j;

			if (row >= step->head.row_begin && row - step->head.row_begin < step->rows)
				decide(board, step, (uint32_t)(row - step->head.row_begin),
				       LOAD_ROW_LOST);
		}
	for (uint32_t row = 0; step->waiting && row < step->rows; row++)
		decide(board, step, row, step->spans_follow ? LOAD_ROW_LOST : LOAD_ROW_COUNTS);
}
