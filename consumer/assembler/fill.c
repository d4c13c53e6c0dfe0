/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "consumer/assembler/fill.h"
#include "consumer/assembler/rows.h"

/* With a constant size, a copy is a load and a store. */
#define FILL(bytes)                                                                                \
	for (uint32_t i = 0; i < rows; i++)                                                        \
		if (to[i])                                                                         \
	memcpy(to[i] + place, ids + (size_t)i * top_k, bytes)

static void fill_exact(uint16_t *const *to, size_t place, const uint16_t *ids, uint32_t rows,
		       uint32_t top_k)
{
	switch (top_k) {
	case 4:
		FILL(8);
		break;
	case 8:
		FILL(16);
		break;
	case 16:
		FILL(32);
		break;
	default:
		FILL(top_k * sizeof(uint16_t));
		break;
	}
}

void fill_rows(uint16_t *const *to, size_t place, const uint16_t *ids, uint32_t rows,
	       uint32_t top_k, bool loose)
{
	/* Rows of the record behind which it still has as much as a store takes. */
	uint32_t whole = 0;

	if (loose && top_k > 4 && top_k < 8) {
		whole = rows > 2 ? rows - 2 : 0;
		for (uint32_t i = 0; i < whole; i++)
			if (to[i])
				memcpy(to[i] + place, ids + (size_t)i * top_k, 16);
	}
	fill_exact(to + whole, place, ids + (size_t)whole * top_k, rows - whole, top_k);
}

static inline __attribute__((always_inline)) uint16_t highest(const uint16_t *ids, size_t count)
{
	uint16_t most = 0;

	for (size_t i = 0; i < count; i++)
		most = ids[i] > most ? ids[i] : most;
	return most;
}

#if defined(__x86_64__)

/* The baseline has no highest of unsigned words. */
static __attribute__((target("avx2"))) uint16_t highest_avx2(const uint16_t *ids, size_t count)
{
	return highest(ids, count);
}

static uint16_t highest_of(const uint16_t *ids, size_t count)
{
	return __builtin_cpu_supports("avx2") ? highest_avx2(ids, count) : highest(ids, count);
}

#else

static uint16_t highest_of(const uint16_t *ids, size_t count)
{
	return highest(ids, count);
}

#endif

bool fill_any_stranger(const uint16_t *ids, size_t count, uint32_t experts)
{
	return experts <= UINT16_MAX && highest_of(ids, count) >= experts;
}
