/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts of all layers of a channel, in one piece: [layers][stride], of which the columns
 * behind the experts are for ids that are no expert. Sums go eight at a time.
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

/* Of all steps; cells, and rows behind them. */
struct cells_sums {
	uint32_t *running; /* modulo 2^32 */
	float *average;    /* of steps that fade */
};

/*
 * Of the cells [at, at + count): to = from with a step's counts on top, average fading by
 * @decay; counts = 0. In one pass, also in place.
 *
 * @counts: of these cells only, [count].
 * @at, @count: multiples of 16; each pointer aligned to CELLS_ALIGN.
 *
 * Returns the sum of @counts, as it was.
 */
uint32_t cells_fold(const struct cells_sums *to, const struct cells_sums *from, uint32_t *counts,
		    float decay, size_t at, size_t count);

/* to += counts, counts = 0. Returns likewise. */
uint32_t cells_move(uint32_t *to, uint32_t *counts, size_t count);

/* A table with a place for whatever an id may be: ids need not be looked at to be counted. What is
 * behind a layer's cells is counted by nobody, and stays. */
#define CELLS_ANY_ID 65536u

/*
 * @any: [CELLS_ANY_ID].
 * @ids: may change meanwhile. Each is read once, and counted as what it was then.
 */
void cells_count_ids(uint32_t *any, const uint16_t *ids, size_t count);

/* For a few ids, straight into a layer's cells. They must not change. */
static inline void cells_count_few(uint32_t *layer, const uint16_t *ids, uint32_t count,
				   uint32_t experts)
{
	for (uint32_t i = 0; i < count; i++)
		layer[ids[i] < experts ? ids[i] : experts]++;
}

#endif
