/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows: one token's ids in all layers of a channel. A row belongs to whoever refers to
 * it: positions of requests, keys of a prefix cache. It is filled while its step is
 * open and not changed after that.
 *
 * A step's rows lie in tiles, as they came: the ids of a layer of all of a tile's rows side
 * by side. A tile is turned, so that each row's ids lie side by side, once rows of it are
 * read one by one, or when few of its rows are held or memory is short: then rows that
 * nobody refers to go. A row keeps its place in memory, its ids do not.
 */
#ifndef CONSUMER_ASSEMBLER_ROWS_H
#define CONSUMER_ASSEMBLER_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <r3ring/assembler.h>

#include "consumer/assembler/row_pages.h"

#define TILE_ROWS PAGE_ROWS

struct tile;

struct row {
	uint32_t refs;
	uint8_t index; /* in its tile */
	uint8_t place; /* of its ids, among those of the tile */
	uint8_t cause; /* of an empty row's cells */
	uint8_t empty; /* no ids: every cell is missing */
};

/* The rows of one schema of one channel; lives until the assembler goes. */
struct row_pool {
	struct row_pool *next;
	uint32_t channel;
	uint32_t instance; /* the first channel of the same one */
	struct r3ring_coordinate sp, cp;
	uint32_t layers;
	uint32_t top_k;
	struct r3ring_layer_entry *layer; /* [layers] */
	struct row_pages pages;
	struct tile *loose; /* not turned, and with rows that nobody refers to; oldest first */
	struct row *ran;    /* see row_that_ran() */
	struct tile *spare; /* whole ones to be taken, by `next` */
	uint64_t *bytes;    /* of all rows of the assembler */
	struct row fresh[TILE_ROWS]; /* as a tile's begin */
};

struct tile {
	struct row_pool *pool;
	struct tile *prev, *next; /* while loose; before that `next` is its step's */
	uint64_t step, generation;
	uint64_t weight_version;
	uint64_t live;   /* rows that are referred to, a bit each */
	uint64_t marred; /* rows with cells that are missing */
	uint8_t *causes; /* [rows][layers] 0: valid; NULL while none is marred */
	struct row_page *page;
	uint16_t *ids;
	uint32_t to_row, to_layer; /* ids from one to the next */
	uint32_t number;           /* row of the step that the first one is */
	uint8_t first;             /* in the page */
	uint8_t places;            /* whose ids it has, those of `live` at least */
	uint8_t rows;
	bool turned;
	struct row row[];
};

struct row_pool *row_pool_create(const struct r3ring_schema_record *schema,
				 const struct r3ring_layer_entry *layers, uint64_t *bytes);
void row_pool_destroy(struct row_pool *pool); /* no row of it may be held */

/* Turns the oldest loose tile. False when there is none, or no memory for it. */
bool row_pool_squeeze(struct row_pool *pool);

/* At most @rows rows, each with one reference and all cells valid. NULL when memory is out. */
struct tile *tile_take(struct row_pool *pool, uint32_t rows);
/* Returns 0 or -ENOMEM: it is as it was. */
int tile_turn(struct tile *tile);

/* All cells missing; to be shared by the rows of a step that have nothing else. */
struct row *row_take_empty(struct row_pool *pool, uint8_t cause);
/* The pool's row without ids, for positions of which it is enough to know that they were run;
 * NULL when memory is out. The pool's: who keeps it holds it. */
struct row *row_that_ran(struct row_pool *pool);

static inline struct tile *row_tile(const struct row *row)
{
	return (struct tile *)((uintptr_t)(row - row->index) - offsetof(struct tile, row));
}

static inline struct row *row_hold(struct row *row)
{
	row->refs++;
	return row;
}

/* Rows of one tile, a bit each, that lost their last reference. */
void tile_rows_died(struct tile *tile, uint64_t died);

static inline void row_drop(struct row *row)
{
	if (row && !--row->refs)
		tile_rows_died(row_tile(row), UINT64_C(1) << row->index);
}

/* Those of a tile that follow each other go at once. Any may be NULL. */
void rows_drop(struct row *const *row, uint32_t rows);

/* That it takes; those of its tile that nobody refers to are not its. */
size_t row_bytes(const struct row *row);

static inline const uint16_t *row_ids(const struct row *row, uint32_t layer)
{
	const struct tile *tile = row_tile(row);

	return tile->ids + (size_t)row->place * tile->to_row + (size_t)layer * tile->to_layer;
}

static inline bool row_is_marred(const struct row *row)
{
	return (row_tile(row)->marred >> row->index) & 1;
}

/* Why a cell is missing; 0 where it is not. */
static inline uint8_t row_cell_cause(const struct row *row, uint32_t layer)
{
	const struct tile *tile = row_tile(row);

	if (row->empty)
		return row->cause;
	return row_is_marred(row) ? tile->causes[(size_t)row->index * tile->pool->layers + layer]
				  : 0;
}

static inline bool row_cell_valid(const struct row *row, uint32_t layer)
{
	return !row->empty && !row_cell_cause(row, layer);
}

/* Whether it stands for no pass, so that one that comes later is the first. */
static inline bool row_is_no_pass(const struct row *row)
{
	return row->empty &&
	       (row->cause == R3RING_MISSING_EXTERNAL || row->cause == R3RING_MISSING_UNKNOWN_KEY ||
		row->cause == R3RING_MISSING_SPANS);
}

/* Whether any cell is valid. */
bool row_has_any(const struct row *row);

/* compare.c: how many cells differ, of those that both have. */
uint32_t rows_differing(const struct row *row, const struct row *other);
/* Whether @other has a cell that @row lost, so that a third row can tell of it that the passes
 * differ. */
bool row_has_more(const struct row *row, const struct row *other);

/* Makes a cell missing. Without memory for its cause the whole row is. */
void row_cell_spoil(struct row *row, uint32_t layer, uint8_t cause);

#endif
