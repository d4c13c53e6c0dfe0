/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts of all layers of a channel, in one piece: [layers][stride], of which the column
 * at `experts` is for ids that are no expert. Sums go eight at a time.
 */
#ifndef CONSUMER_LOAD_CELLS_H
#define CONSUMER_LOAD_CELLS_H

#include <stddef.h>
#include <stdint.h>

#define CELLS_ALIGN 64u

/* Of one channel's schema. */
struct cells_shape {
	uint32_t layers;
	uint32_t experts;
	uint32_t stride; /* a multiple of 16, above experts */
};

/* Zeroed; free() gives it back. NULL when memory is out. */
void *cells_alloc(size_t bytes);

static inline struct cells_shape cells_shape_of(uint32_t layers, uint32_t experts)
{
	return (struct cells_shape){layers, experts, (experts + 1 + 15) / 16 * 16};
}

static inline size_t cells_count(const struct cells_shape *shape)
{
	return (size_t)shape->layers * shape->stride;
}

/* With a sum of rows for each layer behind the cells. */
static inline size_t cells_sum_count(const struct cells_shape *shape)
{
	return cells_count(shape) + (shape->layers + 15) / 16 * 16;
}

static inline size_t cells_sum_bytes(const struct cells_shape *shape)
{
	return cells_sum_count(shape) * sizeof(uint32_t);
}

/*
 * running += counts, average = average x decay + counts, counts = 0, in one pass.
 * @count: a multiple of 16; each pointer aligned to CELLS_ALIGN.
 */
void cells_settle(uint32_t *counts, uint32_t *running, float *average, float decay, size_t count);

/* Counts ids of a layer's rows; what is no expert goes to the column behind them. */
void cells_count_ids(uint32_t *layer, const uint16_t *ids, size_t count, uint32_t experts);

#endif
