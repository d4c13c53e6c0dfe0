/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks of running counts that never change while several refer to them: what windows begin
 * with are the sums that were shown, kept. Of the thread that feeds alone; who reads sees a
 * block through an image, which refers to it.
 */
#ifndef CONSUMER_LOAD_POOL_H
#define CONSUMER_LOAD_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct load_pool {
	uint32_t *cells;   /* [blocks][count] */
	size_t count;      /* of a block */
	uint32_t blocks;   /* as many as there may be that refer to one */
	uint32_t touched;  /* blocks that ever were taken: the others are no memory yet */
	uint32_t *holders; /* [blocks] how many refer to it; 0: free */
};

/* @count: a multiple of 16. Returns 0 or -ENOMEM; load_pool_close() in any case. */
int load_pool_open(struct load_pool *pool, size_t count, uint32_t blocks);
void load_pool_close(struct load_pool *pool);
/* A block of one's own, with anything in it. One that refers to none finds one. */
uint32_t *load_pool_take(struct load_pool *pool);
/* One more refers to the block, which is returned. */
uint32_t *load_pool_share(struct load_pool *pool, uint32_t *block);
/* NULL is fine. */
void load_pool_leave(struct load_pool *pool, const uint32_t *block);
/* The block itself where nobody else refers to it, or another one instead. NULL is fine. */
uint32_t *load_pool_own(struct load_pool *pool, uint32_t *block);
uint64_t load_pool_bytes(const struct load_pool *pool);

#endif
