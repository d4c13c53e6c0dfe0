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

static inline __attribute__((always_inline)) uint16_t copy(uint16_t *restrict to,
							   const uint16_t *restrict from,
							   size_t count)
{
	uint16_t highest = 0;

	for (size_t i = 0; i < count; i++) {
		to[i] = from[i];
		highest = from[i] > highest ? from[i] : highest;
	}
	return highest;
}

#if defined(__x86_64__)

/* The baseline has no highest of unsigned words. */
static __attribute__((target("avx2"))) uint16_t copy_avx2(uint16_t *to, const uint16_t *from,
							  size_t count)
{
	return copy(to, from, count);
}

uint16_t ids_copy(uint16_t *to, const uint16_t *from, size_t count)
{
	return __builtin_cpu_supports("avx2") ? copy_avx2(to, from, count) : copy(to, from, count);
}

#else

uint16_t ids_copy(uint16_t *to, const uint16_t *from, size_t count)
{
	return copy(to, from, count);
}

#endif
