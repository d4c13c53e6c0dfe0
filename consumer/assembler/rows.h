/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows: one token's ids in all layers of a channel. A row belongs to whoever refers to
 * it: positions of requests, keys of a prefix cache. It is filled while its step is
 * open and not changed after that.
 */
#ifndef CONSUMER_ASSEMBLER_ROWS_H
#define CONSUMER_ASSEMBLER_ROWS_H

#include <stdbool.h>
#include <stdint.h>

#include <r3ring/assembler.h>

#define ROW_STORE 32u

/* The rows of one schema of one channel; lives until the assembler goes. */
struct row_pool {
	struct row_pool *next;
	uint32_t channel;
	uint32_t instance; /* the first channel of the same one */
	uint32_t layers;
	uint32_t top_k;
	uint32_t words;      /* of 64 layers each */
	uint32_t ids_offset; /* in a row */
	uint32_t slabs;
	size_t row_bytes;
	struct r3ring_layer_entry *layer; /* [layers] */
	struct row **spare;               /* [spares] to be taken, the last first; has room for
					   * all that there are */
	uint32_t spares, rows;            /* rows: that there are */
	struct row *ran;                  /* see row_that_ran() */
	void **slab;                      /* [slabs] that rows are cut from */
	uint64_t *bytes;                  /* of all rows of the assembler */
};

struct row {
	struct row_pool *pool;
	uint64_t step, generation;
	uint64_t weight_version;
	uint32_t refs;
	uint32_t number;  /* row of the step */
	uint8_t empty;    /* no ids: every cell is missing, of `cause` */
	uint8_t cause;    /* of missing cells without one of their own */
	uint8_t *causes;  /* [layers], NULL when no cell has one of its own */
	uint64_t valid[]; /* [words] a bit each layer; then uint16_t ids[layers][top_k], and
			   * room for what a store of ROW_STORE bytes at their end says too much */
};

struct row_pool *row_pool_create(const struct r3ring_schema_record *schema,
				 const struct r3ring_layer_entry *layers, uint64_t *bytes);
void row_pool_destroy(struct row_pool *pool); /* no row of it may be held */

/* With one reference; no cell is valid. NULL when memory is out. */
struct row *row_take(struct row_pool *pool);
/* All cells missing; to be shared by the rows of a step that have nothing else. */
struct row *row_take_empty(struct row_pool *pool, uint8_t cause);
/* The pool's row without ids, for positions of which it is enough to know that they were run;
 * NULL when memory is out. The pool's: who keeps it holds it. */
struct row *row_that_ran(struct row_pool *pool);
void row_drop(struct row *row);

size_t row_bytes(const struct row *row);

static inline struct row *row_hold(struct row *row)
{
	row->refs++;
	return row;
}

static inline uint16_t *row_ids(struct row *row)
{
	return (uint16_t *)(void *)((uint8_t *)row + row->pool->ids_offset);
}

static inline bool row_cell_valid(const struct row *row, uint32_t layer)
{
	return !row->empty && ((row->valid[layer / 64] >> (layer % 64)) & 1);
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

/* Why a cell is missing; 0 where it is not. */
uint8_t row_cell_cause(const struct row *row, uint32_t layer);

/* Makes a cell missing. Without memory for its cause the whole row is. */
void row_cell_spoil(struct row *row, uint32_t layer, uint8_t cause);

#endif
