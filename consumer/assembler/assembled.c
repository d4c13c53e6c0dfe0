/* SPDX-License-Identifier: Apache-2.0 */
/* Which row counts at a position, and what its cells hold. */
#include <errno.h>
#include <string.h>

#include "consumer/assembler/assembled.h"
#include "consumer/assembler/fill.h"

#define LINE_BYTES 64u
#define ROWS_MAX 64u /* channels that have a row of one position */

/* The rows of one position, of one attempt. */
struct chosen {
	const struct pass *pass; /* NULL: no pass is known to have consumed the token */
	struct row *row[ROWS_MAX];
	const struct layer_map *map[ROWS_MAX];
	uint32_t rows;
	uint32_t passes; /* leading rows that may count; what is behind only contradicts */
	uint8_t cause;   /* of cells of which no row says why */
};

/* ---- choosing ----------------------------------------------------------- */

static const struct layer_map *map_of(const struct r3ring_assembled *assembled,
				      const struct row *row)
{
	for (uint32_t i = 0; i < assembled->maps; i++)
		if (assembled->map[i].pool == row_tile(row)->pool)
			return &assembled->map[i];
	return NULL;
}

/* Whether @row is of a pass before that of @other: steps are those of their instance. */
static bool is_before(const struct row *row, const struct row *other)
{
	const struct tile *tile = row_tile(row), *its = row_tile(other);

	if (tile->pool->instance == its->pool->instance)
		return tile->step < its->step;
	return tile->weight_version < its->weight_version;
}

/* The one that counts, where passes are of different weights, to the front. */
static void chosen_add(const struct r3ring_assembled *assembled, struct chosen *chosen,
		       struct row *row)
{
	bool latest = assembled->policy == R3RING_ROWS_LATEST;
	uint32_t place = chosen->rows++;

	while (place && !row_is_no_pass(row) &&
	       (row_is_no_pass(chosen->row[place - 1]) ||
		(latest ? is_before(chosen->row[place - 1], row)
			: is_before(row, chosen->row[place - 1])))) {
		chosen->row[place] = chosen->row[place - 1];
		chosen->map[place] = chosen->map[place - 1];
		place--;
	}
	chosen->row[place] = row;
	chosen->map[place] = map_of(assembled, row);
}

/* Another pass does not stand in for what was lost of the one that counts. */
static void add_contradictions(const struct r3ring_assembled *assembled,
			       const struct attempt *attempt, uint32_t position,
			       struct chosen *chosen)
{
	for (uint32_t i = 0; i < attempt->contradictions && chosen->rows < ROWS_MAX; i++) {
		struct row *row = attempt->contradiction[i].row;

		if (attempt->contradiction[i].position != position)
			continue;
		chosen->row[chosen->rows] = row;
		chosen->map[chosen->rows++] = map_of(assembled, row);
	}
}

static bool rows_of_pass(const struct r3ring_assembled *assembled, const struct pass *pass,
			 uint32_t position, struct chosen *chosen)
{
	const struct part *part;
	const struct attempt *attempt;

	for (part = assembled->request->part; part; part = part->next) {
		attempt = part_find_attempt(part, pass->number);
		if (attempt && attempt_row(attempt, position) && chosen->rows < ROWS_MAX)
			chosen_add(assembled, chosen, attempt_row(attempt, position));
	}
	chosen->passes = chosen->rows;
	for (part = assembled->request->part; part && chosen->rows; part = part->next) {
		attempt = part_find_attempt(part, pass->number);
		if (attempt)
			add_contradictions(assembled, attempt, position, chosen);
	}
	if (chosen->rows)
		chosen->pass = pass;
	return chosen->rows > 0;
}

/* A pass that sampled, and kept what it sampled, consumed all tokens before the last. */
static bool must_have_run(const struct pass *pass, uint32_t position)
{
	return pass->kept != R3RING_UNKNOWN_U32 && pass->kept > pass->prompt &&
	       position + 1 < pass->kept;
}

static void choose_first(const struct r3ring_assembled *assembled, uint32_t position,
			 struct chosen *chosen)
{
	for (uint32_t i = 0; i < assembled->passes; i++) {
		const struct pass *pass = &assembled->pass[i];

		/* What an attempt that is not known consumed was its to route. */
		if (pass->orphan && position < pass->prompt) {
			chosen->cause = R3RING_MISSING_GAP;
			return;
		}
		if (position >= pass->kept)
			continue;
		if (rows_of_pass(assembled, pass, position, chosen))
			return;
		/* A later pass over the token is not the one that sampled. */
		if (must_have_run(pass, position))
			return;
	}
}

static void choose_latest(const struct r3ring_assembled *assembled, uint32_t position,
			  struct chosen *chosen)
{
	for (uint32_t i = assembled->passes; i-- > 0;)
		if (position < assembled->pass[i].kept &&
		    rows_of_pass(assembled, &assembled->pass[i], position, chosen))
			return;
}

/* The part's schema that has the layer, or NULL. */
static const struct row_pool *part_pool(const struct r3ring_assembled *assembled,
					const struct part *part, uint32_t layer)
{
	for (uint32_t i = 0; i < assembled->maps; i++)
		if (assembled->map[i].pool->channel == part->channel &&
		    assembled->map[i].to_row[layer] != LAYER_ELSEWHERE)
			return assembled->map[i].pool;
	return NULL;
}

/* Whether the channel has the layer of a pass under other weights only. */
static bool has_other_pass(const struct chosen *chosen, const struct part *part, uint32_t layer)
{
	for (uint32_t i = 0; i < chosen->rows; i++) {
		const struct layer_map *map = chosen->map[i];

		if (map && map->pool->channel == part->channel &&
		    map->to_row[layer] != LAYER_ELSEWHERE)
			return true;
	}
	return false;
}

/* Of a cell whose channels have no row of the pass that counts, though others do. */
static uint8_t cause_of_layer(const struct r3ring_assembled *assembled, const struct chosen *chosen,
			      uint32_t layer)
{
	const uint32_t instance = row_tile(chosen->row[0])->pool->instance;
	const bool evicted = assembled->info.flags & R3RING_ASSEMBLED_EVICTED;
	uint8_t cause = R3RING_MISSING_OTHER_LAYERS;

	for (const struct part *part = assembled->request->part; part; part = part->next) {
		const struct row_pool *pool = part_pool(assembled, part, layer);

		if (!pool)
			continue;
		if (part->gap)
			return part->gap;
		/* Another rank of its instance heard of the attempt. */
		if (pool->instance == instance && !part_find_attempt(part, chosen->pass->number))
			return R3RING_MISSING_GAP;
		cause = evicted ? R3RING_MISSING_EVICTED : R3RING_MISSING_NOT_RUN;
		/* It ran this pass as well, and nothing was lost but how many drafts were accepted:
		 * where that never comes nothing stays that keeps another pass out. */
		if (!evicted && pool->instance == instance && has_other_pass(chosen, part, layer))
			return R3RING_MISSING_SPANS;
	}
	return cause;
}

static uint8_t cause_of_none(const struct r3ring_assembled *assembled, uint32_t position)
{
	if (assembled->info.flags & R3RING_ASSEMBLED_EVICTED)
		return R3RING_MISSING_EVICTED;
	if (position + 1 == assembled->info.tokens)
		return R3RING_MISSING_NOT_FED;
	for (const struct part *part = assembled->request->part; part; part = part->next)
		if (part->gap)
			return part->gap;
	return R3RING_MISSING_NOT_RUN;
}

static void choose(const struct r3ring_assembled *assembled, uint32_t position,
		   struct chosen *chosen)
{
	chosen->pass = NULL;
	chosen->rows = 0;
	chosen->passes = 0;
	chosen->cause = 0;
	if (assembled->policy == R3RING_ROWS_FIRST)
		choose_first(assembled, position, chosen);
	else
		choose_latest(assembled, position, chosen);
	if (chosen->rows)
		chosen->cause = R3RING_MISSING_OTHER_LAYERS;
	else if (!chosen->cause)
		chosen->cause = cause_of_none(assembled, position);
}

/* ---- one cell ----------------------------------------------------------- */

struct cell {
	const uint16_t *ids; /* NULL: missing */
	const struct row *from;
	uint8_t cause;
	bool shared;         /* two channels have ids of it, */
	bool apart;          /* which are not the same */
	uint32_t channel[2]; /* of a conflict */
	uint64_t step[2];
};

static void cell_conflict(struct cell *cell, const struct row *first, const struct row *second)
{
	cell->ids = NULL;
	cell->cause = R3RING_CAUSE_CONFLICT;
	cell->channel[0] = row_tile(first)->pool->channel;
	cell->step[0] = row_tile(first)->step;
	cell->channel[1] = row_tile(second)->pool->channel;
	cell->step[1] = row_tile(second)->step;
}

/* What was lost is told before what was nobody's to have. */
static bool says_more(uint8_t cause, uint8_t before)
{
	return before == R3RING_MISSING_OTHER_LAYERS ||
	       (before == R3RING_MISSING_EXTERNAL && cause != R3RING_MISSING_OTHER_LAYERS);
}

/* Ids of one more row of the pass; false once the cell is in conflict. */
static bool cell_add(struct cell *cell, const struct row *row, const uint16_t *ids, size_t bytes)
{
	bool same;

	if (!cell->ids) {
		cell->from = row;
		cell->ids = ids;
		cell->cause = 0;
		return true;
	}
	same = !memcmp(cell->ids, ids, bytes);
	if (row_tile(cell->from)->pool->channel != row_tile(row)->pool->channel) {
		cell->shared = true;
		cell->apart |= !same;
	}
	if (!same)
		cell_conflict(cell, cell->from, row);
	return same;
}

static void cell_read(const struct r3ring_assembled *assembled, const struct chosen *chosen,
		      uint32_t layer, struct cell *cell)
{
	const uint32_t top_k = assembled->info.top_k;

	*cell = (struct cell){.cause = chosen->cause};
	for (uint32_t i = 0; i < chosen->rows; i++) {
		struct row *row = chosen->row[i];
		uint16_t place = chosen->map[i] ? chosen->map[i]->to_row[layer] : LAYER_ELSEWHERE;
		uint8_t cause;

		/* What other weights came to is another pass, and does not count. */
		if (place == LAYER_ELSEWHERE ||
		    (!row_is_no_pass(row) &&
		     row_tile(row)->weight_version != row_tile(chosen->row[0])->weight_version))
			continue;
		cause = row_cell_cause(row, place);
		if (i >= chosen->passes && !cell->ids)
			continue;
		if (!cause && !cell_add(cell, row, row_ids(row, place), top_k * sizeof(uint16_t)))
			return;
		if (cause && !cell->ids && says_more(cause, cell->cause))
			cell->cause = cause;
	}
	if (chosen->rows && cell->cause == R3RING_MISSING_OTHER_LAYERS)
		cell->cause = cause_of_layer(assembled, chosen, layer);
}

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

/* Cells of which two channels have ids. */
struct overlap {
	uint64_t shared, apart;
};

/* A row of one channel that has all layers, and all of them valid. */
static struct row *whole_row(const struct chosen *chosen)
{
	struct row *row = chosen->rows == 1 ? chosen->row[0] : NULL;

	if (!row || row->empty || row_is_marred(row) || !chosen->map[0] || !chosen->map[0]->same)
		return NULL;
	return row;
}

static void count_cells(struct r3ring_assembled *assembled, uint32_t position,
			const struct chosen *chosen, struct overlap *overlap)
{
	struct r3ring_assembled_info *info = &assembled->info;
	struct cell cell;

	for (uint32_t layer = 0; layer < assembled->layers; layer++) {
		cell_read(assembled, chosen, layer, &cell);
		info->cells_valid += cell.ids != NULL;
		info->cells_missing[cell.cause] += cell.ids == NULL;
		overlap->shared += cell.shared;
		overlap->apart += cell.apart;
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
			count_cells(assembled, position, &chosen, &overlap);
	}
	/* Of one text a few may differ, as two machines round. */
	if (assembled->joined && overlap.apart > overlap.shared / 2)
		info->flags |= R3RING_ASSEMBLED_MIXED;
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
