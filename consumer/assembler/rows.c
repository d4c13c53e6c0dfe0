/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "consumer/assembler/rows.h"

#define SPARES_MAX 4096u

static size_t full_bytes(const struct row_pool *pool)
{
	return sizeof(struct row) + pool->words * sizeof(uint64_t) +
	       (size_t)pool->layers * pool->top_k * sizeof(uint16_t);
}

struct row_pool *row_pool_create(const struct r3ring_schema_record *schema,
				 const struct r3ring_layer_entry *layers, uint32_t channel,
				 uint64_t *bytes)
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
	pool->channel = channel;
	pool->layers = schema->layers;
	pool->top_k = schema->top_k;
	pool->words = (schema->layers + 63) / 64;
	pool->bytes = bytes;
	return pool;
}

void row_pool_destroy(struct row_pool *pool)
{
	struct row *row;

	while ((row = pool->spare)) {
		pool->spare = row->next;
		free(row);
	}
	free(pool->layer);
	free(pool);
}

static struct row *row_new(struct row_pool *pool, size_t bytes)
{
	struct row *row = pool->spare;

	if (row && bytes == full_bytes(pool)) {
		pool->spare = row->next;
		pool->spares--;
	} else {
		row = malloc(bytes);
		if (!row)
			return NULL;
	}
	*pool->bytes += bytes;
	memset(row, 0, sizeof(*row));
	row->pool = pool;
	row->refs = 1;
	return row;
}

struct row *row_take(struct row_pool *pool)
{
	struct row *row = row_new(pool, full_bytes(pool));

	if (row)
		memset(row->valid, 0, pool->words * sizeof(uint64_t));
	return row;
}

struct row *row_take_empty(struct row_pool *pool, uint8_t cause)
{
	struct row *row = row_new(pool, sizeof(*row));

	if (row) {
		row->empty = 1;
		row->cause = cause;
	}
	return row;
}

size_t row_bytes(const struct row *row)
{
	return row->empty ? sizeof(*row) : full_bytes(row->pool);
}

void row_drop(struct row *row)
{
	struct row_pool *pool;

	if (!row || --row->refs)
		return;
	pool = row->pool;
	*pool->bytes -= row_bytes(row);
	free(row->causes);
	if (row->empty || pool->spares == SPARES_MAX) {
		free(row);
		return;
	}
	row->next = pool->spare;
	pool->spare = row;
	pool->spares++;
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
