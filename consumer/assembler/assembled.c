/* SPDX-License-Identifier: Apache-2.0 */
/* An assembled request as its user sees it: its accounts, and its rows read. */
#include <errno.h>
#include <string.h>

#include "consumer/assembler/choose.h"
#include "consumer/assembler/fill.h"

#define LINE_BYTES 64u

/* ---- accounts ----------------------------------------------------------- */

static void note_conflict(struct r3ring_assembled_info *info, uint32_t position, uint32_t layer,
			  const struct cell *cell)
{
	info->conflicts++;
	if (info->conflicts_told == R3RING_CONFLICTS_TOLD)
		return;
	info->conflict[info->conflicts_told++] = (struct r3ring_conflict){
		.position = position,
		.layer = (uint16_t)layer,
		.channel = {cell->channel[0], cell->channel[1]},
		.step = {cell->step[0], cell->step[1]},
	};
}

static void note_steps(struct r3ring_assembled_info *info, const struct chosen *chosen)
{
	for (uint32_t i = 0; i < chosen->rows; i++) {
		uint64_t step = row_tile(chosen->row[i])->step;

		if (!step)
			continue;
		if (!info->begin_step || step < info->begin_step)
			info->begin_step = step;
		if (step > info->end_step)
			info->end_step = step;
	}
}

static void count_cells(struct r3ring_assembled *assembled, uint32_t position,
			const struct chosen *chosen)
{
	struct r3ring_assembled_info *info = &assembled->info;
	struct cell cell;

	for (uint32_t layer = 0; layer < assembled->layers; layer++) {
		cell_read(assembled, chosen, layer, &cell);
		info->cells_valid += cell.ids != NULL;
		info->cells_missing[cell.cause] += cell.ids == NULL;
		if (cell.cause == R3RING_CAUSE_CONFLICT)
			note_conflict(info, position, layer, &cell);
	}
}

void assembled_count(struct r3ring_assembled *assembled)
{
	struct r3ring_assembled_info *info = &assembled->info;
	struct overlap overlap = {0};
	struct chosen chosen;

	info->cells = (uint64_t)info->tokens * assembled->layers;
	for (uint32_t position = 0; position < info->tokens; position++) {
		choose(assembled, position, &chosen);
		note_steps(info, &chosen);
		if (whole_row(&chosen))
			info->cells_valid += assembled->layers;
		else
			count_cells(assembled, position, &chosen);
		if (assembled->joined)
			overlap_add(&overlap, assembled, &chosen, position);
	}
	if (overlap_is_mixed(&overlap))
		strangers_note(assembled, overlap.by[0], overlap.by[1]);
}

const struct r3ring_assembled_info *r3ring_assembled_get_info(
	const struct r3ring_assembled *assembled)
{
	return &assembled->info;
}

/* ---- reading ------------------------------------------------------------ */

struct range {
	uint32_t layer, layers, top_k;
	size_t to; /* row of the output */
};

/* Whole rows of one tile that follow each other in the output. */
struct run {
	struct row *row[TILE_ROWS];
	uint32_t rows;
};

/* From a tile as it came, a layer of all of them after the other. */
static void read_layers(const struct range *range, const struct run *run, uint16_t *to)
{
	uint32_t from[TILE_ROWS];

	for (uint32_t i = 0; i < run->rows; i++)
		from[i] = run->row[i]->place * row_tile(run->row[i])->to_row;
	for (uint32_t i = 0; i < range->layers; i++)
		ids_gather(to + (size_t)i * range->top_k, range->layers * range->top_k,
			   row_tile(run->row[0])->ids +
				   (size_t)(range->layer + i) * row_tile(run->row[0])->to_layer,
			   from, run->rows, range->top_k, i + 1 < range->layers);
}

static void read_ids(const struct range *range, const struct run *run, uint16_t *to)
{
	const size_t row_ids_read = (size_t)range->layers * range->top_k;
	struct tile *tile = row_tile(run->row[0]);

	/* Rows that lie apart in the output, as those of a step's many requests, are read the
	 * cheaper when each layer's lines are read for all of them at once. */
	if (!tile->turned && run->rows * range->top_k * sizeof(uint16_t) < LINE_BYTES)
		tile_turn(tile);
	if (!tile->turned) {
		read_layers(range, run, to);
		return;
	}
	for (uint32_t i = 0; i < run->rows; i++)
		memcpy(to + i * row_ids_read, row_ids(run->row[i], range->layer),
		       row_ids_read * sizeof(uint16_t));
}

/* The run ends before row @range->to of the output. */
static void read_run(const struct range *range, struct run *run,
		     const struct r3ring_assembled_rows *rows)
{
	const size_t cells = (range->to - run->rows) * range->layers;

	if (!run->rows)
		return;
	if (rows->ids)
		read_ids(range, run, rows->ids + cells * range->top_k);
	if (rows->valid)
		memset(rows->valid + cells, 1, (size_t)run->rows * range->layers);
	if (rows->cause)
		memset(rows->cause + cells, 0, (size_t)run->rows * range->layers);
	run->rows = 0;
}

static bool run_takes(const struct run *run, const struct row *row)
{
	return row && run->rows < TILE_ROWS &&
	       (!run->rows || row_tile(run->row[0]) == row_tile(row));
}

static void read_cells(const struct r3ring_assembled *assembled, const struct range *range,
		       const struct chosen *chosen, const struct r3ring_assembled_rows *rows)
{
	const size_t bytes = range->top_k * sizeof(uint16_t);
	struct cell cell;

	for (uint32_t i = 0; i < range->layers; i++) {
		const size_t place = range->to * range->layers + i;

		cell_read(assembled, chosen, range->layer + i, &cell);
		if (rows->ids && cell.ids)
			memcpy(rows->ids + place * range->top_k, cell.ids, bytes);
		else if (rows->ids)
			memset(rows->ids + place * range->top_k, 0xFF, bytes);
		if (rows->valid)
			rows->valid[place] = cell.ids != NULL;
		if (rows->cause)
			rows->cause[place] = cell.cause;
	}
}

/* Of the first row that has a layer; what came from elsewhere ran under none here. */
static uint64_t weights_of(const struct chosen *chosen)
{
	for (uint32_t i = 0; i < chosen->passes; i++)
		if (row_has_any(chosen->row[i]))
			return row_tile(chosen->row[i])->weight_version;
	return 0;
}

int r3ring_assembled_read(const struct r3ring_assembled *assembled, uint32_t position,
			  uint32_t positions, uint32_t layer, uint32_t layers,
			  const struct r3ring_assembled_rows *rows)
{
	const struct r3ring_assembled_info *info = &assembled->info;
	struct range range = {layer, layers, info->top_k, 0};
	struct run run = {.rows = 0};

	if (position > info->tokens || positions > info->tokens - position ||
	    layer > assembled->layers || layers > assembled->layers - layer)
		return -ERANGE;
	for (uint32_t i = 0; i < positions; i++) {
		struct chosen chosen;
		struct row *whole;

		range.to = i;
		choose(assembled, position + i, &chosen);
		whole = whole_row(&chosen);
		if (!run_takes(&run, whole))
			read_run(&range, &run, rows);
		if (whole)
			run.row[run.rows++] = whole;
		else
			read_cells(assembled, &range, &chosen, rows);
		if (rows->weight_version)
			rows->weight_version[i] = weights_of(&chosen);
		if (rows->attempt)
			rows->attempt[i] = chosen.pass ? chosen.pass->number : 0;
	}
	range.to = positions;
	read_run(&range, &run, rows);
	return 0;
}
