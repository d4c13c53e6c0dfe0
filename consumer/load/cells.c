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
#define CHUNK 64u /* ids */

void *cells_alloc(size_t bytes)
{
	size_t whole = (bytes + CELLS_ALIGN - 1) / CELLS_ALIGN * CELLS_ALIGN;
	void *cells = aligned_alloc(CELLS_ALIGN, whole);

	if (cells)
		memset(cells, 0, whole);
	return cells;
}

/* A step's counts are below 2^31: rows are, and an expert is once in a row. */
void cells_settle(uint32_t *counts, uint32_t *running, float *average, float decay, size_t count)
{
	s32x8 *from = (s32x8 *)(void *)counts;
	u32x8 *sum = (u32x8 *)(void *)running;
	f32x8 *decayed = (f32x8 *)(void *)average;

	for (size_t i = 0; i < count / LANES; i++) {
		sum[i] += (u32x8)from[i];
		decayed[i] = decayed[i] * decay + __builtin_convertvector(from[i], f32x8);
		from[i] = (s32x8){0};
	}
}

/* Of CHUNK ids, whether each is below @limit. */
static inline bool all_below(const uint16_t *ids, u16x8 limit)
{
	u16x8 some, strangers = {0};
	uint64_t words[2];

	for (size_t i = 0; i < CHUNK; i += LANES) {
		memcpy(&some, ids + i, sizeof(some));
		strangers |= (u16x8)(some >= limit);
	}
	memcpy(words, &strangers, sizeof(words));
	return !(words[0] | words[1]);
}

static inline void count_eight(uint32_t *layer, const uint16_t *ids)
{
	layer[ids[0]]++;
	layer[ids[1]]++;
	layer[ids[2]]++;
	layer[ids[3]]++;
	layer[ids[4]]++;
	layer[ids[5]]++;
	layer[ids[6]]++;
	layer[ids[7]]++;
}

static void count_any(uint32_t *layer, const uint16_t *ids, size_t count, uint32_t experts)
{
	for (size_t i = 0; i < count; i++)
		layer[ids[i] < experts ? ids[i] : experts]++;
}

/* A store for each id is what takes the time: a chunk is looked at beside those of the one
 * before it. */
void cells_count_ids(uint32_t *layer, const uint16_t *ids, size_t count, uint32_t experts)
{
	const u16x8 limit = (u16x8){0} + (uint16_t)experts; /* at most 65535 */

	for (; count >= CHUNK; ids += CHUNK, count -= CHUNK) {
		if (all_below(ids, limit))
			for (size_t i = 0; i < CHUNK; i += LANES)
				count_eight(layer, ids + i);
		else
			count_any(layer, ids, CHUNK, experts);
	}
	count_any(layer, ids, count, experts);
}
