/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "consumer/assembler/rows.h"

/* Rows are written a layer at a time, so all rows of a step lie in few pages: large ones
 * where the kernel has them. */
#define SLAB_BYTES (2u << 20)
#define ROW_ALIGN 64u
#define EXPECT_BYTES 1024u
#define EXPECT_AHEAD 4u

static size_t align_up(size_t bytes)
{
	return (bytes + ROW_ALIGN - 1) / ROW_ALIGN * ROW_ALIGN;
}

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
	pool->layers = schema->layers;
	pool->top_k = schema->top_k;
	pool->words = (schema->layers + 63) / 64;
	pool->ids_offset = (uint32_t)align_up(sizeof(struct row) + pool->words * sizeof(uint64_t));
	pool->row_bytes =
		align_up(pool->ids_offset +
			 (size_t)schema->layers * schema->top_k * sizeof(uint16_t) + ROW_STORE);
	pool->bytes = bytes;
	return pool;
}

void row_pool_destroy(struct row_pool *pool)
{
	row_drop(pool->ran);
	for (uint32_t i = 0; i < pool->slabs; i++)
		free(pool->slab[i]);
	free(pool->slab);
	free(pool->spare);
	free(pool->layer);
	free(pool);
}

/* Room for what a slab is cut into, so that giving a row back never fails. */
static int pool_reserve(struct row_pool *pool, size_t more)
{
	void **slabs = realloc(pool->slab, (pool->slabs + 1) * sizeof(*slabs));
	struct row **spare;

	if (!slabs)
		return -ENOMEM;
	pool->slab = slabs;
	spare = realloc(pool->spare, (pool->rows + more) * sizeof(*spare));
	if (!spare)
		return -ENOMEM;
	pool->spare = spare;
	return 0;
}

/* Cuts another slab into spare rows. */
static int pool_grow(struct row_pool *pool)
{
	size_t bytes = pool->row_bytes > SLAB_BYTES ? pool->row_bytes : SLAB_BYTES;
	size_t rows;
	uint8_t *slab;

	bytes = (bytes + SLAB_BYTES - 1) / SLAB_BYTES * SLAB_BYTES;
	rows = bytes / pool->row_bytes;
	if (pool_reserve(pool, rows))
		return -ENOMEM;
	slab = aligned_alloc(SLAB_BYTES, bytes);
	if (!slab)
		return -ENOMEM;
	madvise(slab, bytes, MADV_HUGEPAGE); /* or not: only faster */
	pool->slab[pool->slabs++] = slab;
	pool->rows += (uint32_t)rows;
	while (rows-- > 0)
		pool->spare[pool->spares++] = (struct row *)(void *)(slab + rows * pool->row_bytes);
	return 0;
}

static void row_init(struct row *row, struct row_pool *pool, size_t bytes)
{
	*pool->bytes += bytes;
	memset(row, 0, sizeof(*row));
	row->pool = pool;
	row->refs = 1;
}

/* Asks for a row that is taken soon: it was given back long ago. */
static void row_expect(const struct row *row, size_t bytes)
{
	for (size_t at = 0; at < bytes && at < EXPECT_BYTES; at += ROW_ALIGN)
		__builtin_prefetch((const uint8_t *)row + at, 1);
}

struct row *row_take(struct row_pool *pool)
{
	struct row *row;

	if (!pool->spares && pool_grow(pool))
		return NULL;
	row = pool->spare[--pool->spares];
	if (pool->spares >= EXPECT_AHEAD)
		row_expect(pool->spare[pool->spares - EXPECT_AHEAD], pool->row_bytes);
	row_init(row, pool, pool->row_bytes);
	memset(row->valid, 0, pool->words * sizeof(uint64_t));
	return row;
}

struct row *row_take_empty(struct row_pool *pool, uint8_t cause)
{
	struct row *row = malloc(sizeof(*row));

	if (!row)
		return NULL;
	row_init(row, pool, sizeof(*row));
	row->empty = 1;
	row->cause = cause;
	return row;
}

struct row *row_that_ran(struct row_pool *pool)
{
	if (!pool->ran)
		pool->ran = row_take_empty(pool, 0);
	return pool->ran;
}

size_t row_bytes(const struct row *row)
{
	return row->empty ? sizeof(*row) : row->pool->row_bytes;
}

void row_drop(struct row *row)
{
	struct row_pool *pool;

	if (!row || --row->refs)
		return;
	pool = row->pool;
	*pool->bytes -= row_bytes(row);
	free(row->causes);
	if (row->empty) {
		free(row);
		return;
	}
	pool->spare[pool->spares++] = row;
}

bool row_has_any(const struct row *row)
{
	for (uint32_t word = 0; !row->empty && word < row->pool->words; word++)
		if (row->valid[word])
			return true;
	return false;
}

uint8_t row_cell_cause(const struct row *row, uint32_t layer)
{
	if (row_cell_valid(row, layer))
		return 0;
	return row->causes && row->causes[layer] ? row->causes[layer] : row->cause;
}

void row_cell_spoil(struct row *row, uint32_t layer, uint8_t cause)
{
	if (!row->causes)
		row->causes = calloc(row->pool->layers, sizeof(*row->causes));
	if (!row->causes) {
		row->cause = cause;
		memset(row->valid, 0, row->pool->words * sizeof(uint64_t));
		return;
	}
	row->causes[layer] = cause;
	row->valid[layer / 64] &= ~(UINT64_C(1) << (layer % 64));
}
