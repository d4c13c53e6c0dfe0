/* SPDX-License-Identifier: Apache-2.0 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "consumer/load/cells.h"

typedef uint32_t u32x8 __attribute__((vector_size(32)));
typedef int32_t s32x8 __attribute__((vector_size(32)));
typedef uint16_t u16x8 __attribute__((vector_size(16)));
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

/* A step's counts are below 2^31: rows are, and an expert is once in a row. */
void cells_decay(float *to, const uint32_t *from, float decay, size_t count)
{
	f32x8 *a = (f32x8 *)(void *)to;
	const s32x8 *b = (const s32x8 *)(const void *)from;

	for (size_t i = 0; i < count / LANES; i++)
		a[i] = a[i] * decay + __builtin_convertvector(b[i], f32x8);
}

/* Eight at a time: asking of each id by itself costs as much as counting it. */
static bool all_experts(const uint16_t *ids, size_t count, uint32_t experts)
{
	const uint16_t limit = (uint16_t)experts; /* at most 65535 */
	u16x8 strangers = {0}, some;
	size_t i = 0;

	for (; i + 8 <= count; i += 8) {
		memcpy(&some, ids + i, sizeof(some));
		strangers |= (u16x8)(some >= limit);
	}
	for (; i < count; i++)
		strangers[0] |= (uint16_t)(ids[i] >= limit);
	memcpy(&some, &strangers, sizeof(some));
	for (i = 1; i < 8; i++)
		some[0] |= some[i];
	return !some[0];
}

void cells_count_ids(uint32_t *layer, const uint16_t *ids, size_t count, uint32_t experts)
{
	if (all_experts(ids, count, experts)) {
		for (size_t i = 0; i < count; i++)
			layer[ids[i]]++;
		return;
	}
	for (size_t i = 0; i < count; i++)
		layer[ids[i] < experts ? ids[i] : experts]++;
}
