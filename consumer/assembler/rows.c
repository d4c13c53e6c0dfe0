/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "consumer/assembler/fill.h"
#include "consumer/assembler/rows.h"

/* A tile of which no more than one in so many rows is held gives the others' memory back. */
#define HELD_SHARE 4u

struct row_pool *row_pool_create(const struct r3ring_schema_record *schema,
				 const struct r3ring_layer_entry *layers, uint64_t *bytes)
{
	struct row_pool *pool = calloc(1, sizeof(*pool));

	if (!pool)
		return NULL;
	pool->layer = calloc(schema->layers, sizeof(*layers));
	if (!pool->layer) {
		free(pool);
		return NULL;
	}
	memcpy(pool->layer, layers, schema->layers * sizeof(*layers));
	pool->sp = schema->rank.sp;
	pool->cp = schema->rank.cp;
	pool->layers = schema->layers;
	pool->top_k = schema->top_k;
	row_pages_open(&pool->pages, (size_t)schema->layers * schema->top_k * sizeof(uint16_t));
	pool->bytes = bytes;
	for (uint8_t i = 0; i < TILE_ROWS; i++)
		pool->fresh[i] = (struct row){.refs = 1, .index = i, .place = i};
	return pool;
}

void row_pool_destroy(struct row_pool *pool)
{
	struct tile *tile;

	row_drop(pool->ran);
	while ((tile = pool->spare)) {
		pool->spare = tile->next;
		free(tile);
	}
	row_pages_close(&pool->pages);
	free(pool->layer);
	free(pool);
}

bool row_pool_squeeze(struct row_pool *pool)
{
	return pool->loose && tile_turn(pool->loose) == 0;
}

/* ---- tiles -------------------------------------------------------------- */

static size_t head_bytes(const struct tile *tile)
{
	return sizeof(*tile) + tile->rows * sizeof(*tile->row);
}

static struct tile *tile_alloc(struct row_pool *pool, uint32_t rows)
{
	struct tile *tile = pool->spare;

	if (!tile || rows != TILE_ROWS)
		return malloc(sizeof(*tile) + rows * sizeof(*tile->row));
	pool->spare = tile->next;
	return tile;
}

static struct tile *tile_make(struct row_pool *pool, uint32_t rows)
{
	struct tile *tile = tile_alloc(pool, rows);

	if (!tile)
		return NULL;
	*tile = (struct tile){.pool = pool, .rows = (uint8_t)rows, .live = row_bits(0, rows)};
	memcpy(tile->row, pool->fresh, rows * sizeof(*tile->row));
	*pool->bytes += head_bytes(tile);
	return tile;
}

/* Puts it where its ids are, or will be. */
static void tile_lay(struct tile *tile, const struct row_run *run, bool turned)
{
	const struct row_pool *pool = tile->pool;

	tile->page = run->page;
	tile->first = (uint8_t)run->first;
	tile->places = (uint8_t)run->rows;
	tile->ids = (uint16_t *)(void *)row_run_memory(&pool->pages, run);
	tile->turned = turned;
	tile->to_row = turned ? pool->layers * pool->top_k : pool->top_k;
	tile->to_layer = turned ? pool->top_k : run->rows * pool->top_k;
	*pool->bytes += run->rows * pool->pages.row_bytes;
}

/* Places of its page, a bit each, are others' from here on. */
static void tile_give(const struct tile *tile, uint64_t places)
{
	struct row_pool *pool = tile->pool;

	*pool->bytes -= (uint32_t)__builtin_popcountll(places) * pool->pages.row_bytes;
	row_pages_give(&pool->pages, tile->page, places << tile->first);
}

static void loose_join(struct tile *tile)
{
	if (!tile->prev)
		DL_APPEND(tile->pool->loose, tile);
}

static void loose_leave(struct tile *tile)
{
	if (tile->prev)
		DL_DELETE(tile->pool->loose, tile);
	tile->prev = NULL;
}

struct tile *tile_take(struct row_pool *pool, uint32_t rows)
{
	struct row_run run;
	struct tile *tile;

	if (row_pages_take(&pool->pages, 1, rows < TILE_ROWS ? rows : TILE_ROWS, &run) < 0)
		return NULL;
	tile = tile_make(pool, run.rows);
	if (!tile) {
		row_pages_give(&pool->pages, run.page, row_bits(run.first, run.rows));
		return NULL;
	}
	/* With one row it is the same either way. */
	tile_lay(tile, &run, run.rows == 1);
	return tile;
}

/* The ids of those that are live to where they lie row by row. */
static void move_live(const struct tile *tile, uint16_t *to)
{
	const uint32_t layers = tile->pool->layers, top_k = tile->pool->top_k;
	uint32_t from[TILE_ROWS], rows = 0;

	for (uint64_t live = tile->live; live; live &= live - 1)
		from[rows++] = tile->row[__builtin_ctzll(live)].place * tile->to_row;
	for (uint32_t layer = 0; layer < layers; layer++)
		ids_gather(to + (size_t)layer * top_k, layers * top_k,
			   tile->ids + (size_t)layer * tile->to_layer, from, rows, top_k,
			   layer + 1 < layers);
}

int tile_turn(struct tile *tile)
{
	struct row_pool *pool = tile->pool;
	const uint32_t rows = (uint32_t)__builtin_popcountll(tile->live);
	struct row_run run;
	uint8_t place = 0;

	if (row_pages_take(&pool->pages, rows, rows, &run) < 0)
		return -ENOMEM;
	move_live(tile, (uint16_t *)(void *)row_run_memory(&pool->pages, &run));
	loose_leave(tile);
	tile_give(tile, row_bits(0, tile->places));
	for (uint64_t live = tile->live; live; live &= live - 1)
		tile->row[__builtin_ctzll(live)].place = place++;
	tile_lay(tile, &run, true);
	return 0;
}

static size_t causes_bytes(const struct tile *tile)
{
	return (size_t)tile->rows * tile->pool->layers * sizeof(*tile->causes);
}

static void causes_free(struct tile *tile)
{
	*tile->pool->bytes -= causes_bytes(tile);
	free(tile->causes);
}

static void tile_free(struct tile *tile)
{
	struct row_pool *pool = tile->pool;

	loose_leave(tile);
	*pool->bytes -= head_bytes(tile);
	if (tile->causes)
		causes_free(tile);
	if (tile->rows != TILE_ROWS) {
		free(tile);
		return;
	}
	tile->next = pool->spare;
	pool->spare = tile;
}

static uint64_t places_of(const struct tile *tile, uint64_t rows)
{
	uint64_t places = 0;

	for (; rows; rows &= rows - 1)
		places |= UINT64_C(1) << tile->row[__builtin_ctzll(rows)].place;
	return places;
}

/* What others still need of it stays, or moves. */
static void tile_shrink(struct tile *tile)
{
	if (tile->turned)
		return;
	if ((uint32_t)__builtin_popcountll(tile->live) * HELD_SHARE > tile->places ||
	    tile_turn(tile) < 0)
		loose_join(tile);
}

void tile_rows_died(struct tile *tile, uint64_t died)
{
	tile->live &= ~died;
	if (tile->turned && tile->page)
		tile_give(tile, places_of(tile, died));
	else if (tile->page && !tile->live)
		tile_give(tile, row_bits(0, tile->places));
	if (tile->live)
		tile_shrink(tile);
	else
		tile_free(tile);
}

/* ---- rows --------------------------------------------------------------- */

struct row *row_take_empty(struct row_pool *pool, uint8_t cause)
{
	struct tile *tile = tile_make(pool, 1);

	if (!tile)
		return NULL;
	tile->row[0].empty = 1;
	tile->row[0].cause = cause;
	return &tile->row[0];
}

struct row *row_that_ran(struct row_pool *pool)
{
	if (!pool->ran)
		pool->ran = row_take_empty(pool, 0);
	return pool->ran;
}

size_t row_bytes(const struct row *row)
{
	const struct tile *tile = row_tile(row);

	return head_bytes(tile) / tile->rows + (tile->page ? tile->pool->pages.row_bytes : 0);
}

void rows_drop(struct row *const *row, uint32_t rows)
{
	struct tile *tile = NULL;
	uint64_t died = 0;

	for (uint32_t i = 0; i < rows; i++) {
		if (!row[i] || --row[i]->refs)
			continue;
		if (died && row_tile(row[i]) != tile) {
			tile_rows_died(tile, died);
			died = 0;
		}
		tile = row_tile(row[i]);
		died |= UINT64_C(1) << row[i]->index;
	}
	if (died)
		tile_rows_died(tile, died);
}

bool row_has_any(const struct row *row)
{
	for (uint32_t layer = 0; layer < row_tile(row)->pool->layers; layer++)
		if (row_cell_valid(row, layer))
			return true;
	return false;
}

static int causes_make(struct tile *tile)
{
	tile->causes = calloc(1, causes_bytes(tile));
	if (!tile->causes)
		return -ENOMEM;
	*tile->pool->bytes += causes_bytes(tile);
	return 0;
}

void row_cell_spoil(struct row *row, uint32_t layer, uint8_t cause)
{
	struct tile *tile = row_tile(row);
	const uint32_t layers = tile->pool->layers;

	if (!tile->causes && causes_make(tile) < 0) {
		row->cause = cause;
		row->empty = 1;
		return;
	}
	tile->causes[(size_t)row->index * layers + layer] = cause;
	tile->marred |= UINT64_C(1) << row->index;
}
