/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "consumer/load/cells.h"

typedef uint32_t u32x8 __attribute__((vector_size(32)));
typedef int32_t s32x8 __attribute__((vector_size(32)));
typedef float f32x8 __attribute__((vector_size(32)));

#define LANES 8u

void *cells_alloc(size_t bytes)
{
	size_t whole = (bytes + CELLS_ALIGN - 1) / CELLS_ALIGN * CELLS_ALIGN;
	void *cells = aligned_alloc(CELLS_ALIGN, whole);

	if (cells)
		memset(cells, 0, whole);
	return cells;
}

void cells_add(uint32_t *to, const uint32_t *from, size_t count)
{
	u32x8 *a = (u32x8 *)(void *)to;
	const u32x8 *b = (const u32x8 *)(const void *)from;

	for (size_t i = 0; i < count / LANES; i++)
		a[i] += b[i];
}

void cells_subtract(uint32_t *from, const uint32_t *what, size_t count)
{
	u32x8 *a = (u32x8 *)(void *)from;
	const u32x8 *b = (const u32x8 *)(const void *)what;

	for (size_t i = 0; i < count / LANES; i++)
		a[i] -= b[i];
}

/* A step's counts are below 2^31: rows are, and an expert is once in a row. */
void cells_decay(float *to, const uint32_t *from, float decay, size_t count)
{
	f32x8 *a = (f32x8 *)(void *)to;
	const s32x8 *b = (const s32x8 *)(const void *)from;

	for (size_t i = 0; i < count / LANES; i++)
		a[i] = a[i] * decay + __builtin_convertvector(b[i], f32x8);
}

void cells_count_ids(uint32_t *layer, const uint16_t *ids, size_t count, uint32_t experts)
{
	for (size_t i = 0; i < count; i++) {
		uint32_t id = ids[i];

		layer[id < experts ? id : experts]++;
	}
}
