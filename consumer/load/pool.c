/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>

#include "consumer/load/cells.h"
#include "consumer/load/pool.h"

/* Not zeroed: a block is memory once it was written. */
int load_pool_open(struct load_pool *pool, size_t count, uint32_t blocks)
{
	pool->cells = aligned_alloc(CELLS_ALIGN, blocks * count * sizeof(*pool->cells));
	pool->holders = calloc(blocks, sizeof(*pool->holders));
	pool->count = count;
	pool->blocks = blocks;
	return pool->cells && pool->holders ? 0 : -ENOMEM;
}

void load_pool_close(struct load_pool *pool)
{
	free(pool->cells);
	free(pool->holders);
}

static uint32_t *holders_of(const struct load_pool *pool, const uint32_t *block)
{
	return &pool->holders[(size_t)(block - pool->cells) / pool->count];
}

uint32_t *load_pool_take(struct load_pool *pool)
{
	uint32_t i = 0;

	while (pool->holders[i])
		i++;
	pool->holders[i] = 1;
	if (i >= pool->touched)
		pool->touched = i + 1;
	return pool->cells + i * pool->count;
}

uint32_t *load_pool_share(struct load_pool *pool, uint32_t *block)
{
	++*holders_of(pool, block);
	return block;
}

void load_pool_leave(struct load_pool *pool, const uint32_t *block)
{
	if (block)
		--*holders_of(pool, block);
}

uint32_t *load_pool_own(struct load_pool *pool, uint32_t *block)
{
	if (block && *holders_of(pool, block) == 1)
		return block;
	load_pool_leave(pool, block);
	return load_pool_take(pool);
}

uint64_t load_pool_bytes(const struct load_pool *pool)
{
	return (uint64_t)pool->touched * pool->count * sizeof(*pool->cells);
}
