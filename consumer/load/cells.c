/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include <r3ring/atomic.h>

#include "consumer/load/cells.h"

typedef uint32_t u32x8 __attribute__((vector_size(32)));
typedef int32_t s32x8 __attribute__((vector_size(32)));
typedef float f32x8 __attribute__((vector_size(32)));

#define LANES 8u

/* ---- sums ------------------------------------------------------------------- */

void *cells_alloc(size_t bytes)
{
	size_t whole = (bytes + CELLS_ALIGN - 1) / CELLS_ALIGN * CELLS_ALIGN;
	void *cells = aligned_alloc(CELLS_ALIGN, whole);

	if (cells)
		memset(cells, 0, whole);
	return cells;
}

static inline uint32_t sum_of(const u32x8 *lanes)
{
	uint32_t sum = 0;

	for (uint32_t i = 0; i < LANES; i++)
		sum += (*lanes)[i];
	return sum;
}

/* A step's counts are below 2^31: rows are, and an expert is once in a row. */
static inline __attribute__((always_inline)) uint32_t fold(const struct cells_sums *to,
							   const struct cells_sums *from,
							   uint32_t *counts, float decay, size_t at,
							   size_t count)
{
	s32x8 *more = (s32x8 *)(void *)counts;
	u32x8 *sum = (u32x8 *)(void *)(to->running + at);
	f32x8 *faded = (f32x8 *)(void *)(to->average + at);
	const u32x8 *old_sum = (const u32x8 *)(const void *)(from->running + at);
	const f32x8 *old_faded = (const f32x8 *)(const void *)(from->average + at);
	u32x8 all = {0};

	for (size_t i = 0; i < count / LANES; i++) {
		all += (u32x8)more[i];
		sum[i] = old_sum[i] + (u32x8)more[i];
		faded[i] = old_faded[i] * decay + __builtin_convertvector(more[i], f32x8);
		more[i] = (s32x8){0};
	}
	return sum_of(&all);
}

#if defined(__x86_64__)
/* Half the instructions, and the same results. */
__attribute__((target("avx2"))) static uint32_t fold_avx2(const struct cells_sums *to,
							  const struct cells_sums *from,
							  uint32_t *counts, float decay, size_t at,
							  size_t count)
{
	return fold(to, from, counts, decay, at, count);
}
#endif

uint32_t cells_fold(const struct cells_sums *to, const struct cells_sums *from, uint32_t *counts,
		    float decay, size_t at, size_t count)
{
#if defined(__x86_64__)
	if (__builtin_cpu_supports("avx2"))
		return fold_avx2(to, from, counts, decay, at, count);
#endif
	return fold(to, from, counts, decay, at, count);
}

uint32_t cells_move(uint32_t *to, uint32_t *counts, size_t count)
{
	u32x8 *sum = (u32x8 *)(void *)to, *more = (u32x8 *)(void *)counts, all = {0};

	for (size_t i = 0; i < count / LANES; i++) {
		all += more[i];
		sum[i] += more[i];
		more[i] = (u32x8){0};
	}
	return sum_of(&all);
}

/* ---- ids ----------------------------------------------------------------------- */

static inline void count_four(uint32_t *any, uint64_t ids)
{
	any[(uint16_t)ids]++;
	any[(uint16_t)(ids >> 16)]++;
	any[(uint16_t)(ids >> 32)]++;
	any[(uint16_t)(ids >> 48)]++;
}

static const uint16_t *count_each(uint32_t *any, const uint16_t *ids, size_t count)
{
	for (; count; ids++, count--)
		any[r3ring_load_relaxed_u16(ids)]++;
	return ids;
}

/* A processor stores one line a cycle, and an id is a store: the rest must fit in beside it. */
void cells_count_ids(uint32_t *any, const uint16_t *ids, size_t count)
{
	size_t odd = -(uintptr_t)ids % sizeof(uint64_t) / sizeof(*ids);

	if (odd > count)
		odd = count;
	ids = count_each(any, ids, odd);
	for (count -= odd; count >= 8; ids += 8, count -= 8) {
		const uint64_t *four = (const uint64_t *)(const void *)ids;
		uint64_t first = r3ring_load_relaxed_u64(four);
		uint64_t second = r3ring_load_relaxed_u64(four + 1);

		count_four(any, first);
		count_four(any, second);
	}
	count_each(any, ids, count);
}
