/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "consumer/assembler/fill.h"

/* With a constant size, a copy is a load and a store. */
#define GATHER(bytes)                                                                              \
	for (uint32_t i = 0; i < rows; i++)                                                        \
	memcpy(to + i * apart, ids + from[i], bytes)

void ids_gather(uint16_t *to, size_t apart, const uint16_t *ids, const uint32_t *from,
		uint32_t rows, uint32_t top_k, bool loose)
{
	switch (loose && top_k > 4 && top_k < 8 ? 8 : top_k) {
	case 4:
		GATHER(8);
		break;
	case 8:
		GATHER(16);
		break;
	case 16:
		GATHER(32);
		break;
	default:
		GATHER(top_k * sizeof(uint16_t));
		break;
	}
}

/* Returns the largest. Both at once: what is copied to is seldom in a cache, and waiting for it
 * takes longer. */
static inline __attribute__((always_inline)) uint16_t copy(uint16_t *restrict to,
							   const uint16_t *restrict from,
							   size_t count)
{
	uint16_t most = 0;

	for (size_t i = 0; i < count; i++) {
		const uint16_t id = from[i];

		to[i] = id;
		most = id > most ? id : most;
	}
	return most;
}

static inline __attribute__((always_inline)) bool fill(const struct tile *tile, uint32_t layer,
						       uint32_t first, uint32_t rows,
						       const uint16_t *ids, uint32_t experts)
{
	const size_t top_k = tile ? tile->pool->top_k : 0;
	uint16_t most = 0;

	for (; tile && rows; tile = tile->next) {
		const uint32_t some = first < tile->rows ? tile->rows - first : 0;
		const uint32_t count = some < rows ? some : rows;
		uint16_t largest;

		if (!count) {
			first -= tile->rows;
			continue;
		}
		largest = copy(tile->ids + (size_t)layer * tile->to_layer +
				       (size_t)first * tile->to_row,
			       ids, count * top_k);
		most = largest > most ? largest : most;
		ids += count * top_k;
		rows -= count;
		first = 0;
	}
	return most >= experts;
}

#if defined(__x86_64__)

static __attribute__((target("avx512bw,avx512vl"))) bool fill_avx512(const struct tile *tile,
								     uint32_t layer, uint32_t first,
								     uint32_t rows,
								     const uint16_t *ids,
								     uint32_t experts)
{
	return fill(tile, layer, first, rows, ids, experts);
}

static __attribute__((target("avx2"))) bool fill_avx2(const struct tile *tile, uint32_t layer,
						      uint32_t first, uint32_t rows,
						      const uint16_t *ids, uint32_t experts)
{
	return fill(tile, layer, first, rows, ids, experts);
}

bool tiles_fill(struct tile *tile, uint32_t layer, uint32_t first, uint32_t rows,
		const uint16_t *ids, uint32_t experts)
{
	if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl"))
		return fill_avx512(tile, layer, first, rows, ids, experts);
	if (__builtin_cpu_supports("avx2"))
		return fill_avx2(tile, layer, first, rows, ids, experts);
	return fill(tile, layer, first, rows, ids, experts);
}

#else

/* The baseline of other machines has vector instructions (NEON). */
bool tiles_fill(struct tile *tile, uint32_t layer, uint32_t first, uint32_t rows,
		const uint16_t *ids, uint32_t experts)
{
	return fill(tile, layer, first, rows, ids, experts);
}

#endif
