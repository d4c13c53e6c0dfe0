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

/* Both at once: what is copied to is seldom in a cache, and waiting for it takes longer. */
static inline __attribute__((always_inline)) bool copy(uint16_t *restrict to,
						       const uint16_t *restrict from, size_t count,
						       uint32_t experts)
{
	uint16_t most = 0;

	for (size_t i = 0; i < count; i++) {
		const uint16_t id = from[i];

		to[i] = id;
		most = id > most ? id : most;
	}
	return most >= experts;
}

#if defined(__x86_64__)

static __attribute__((target("avx512bw,avx512vl"))) bool copy_avx512(uint16_t *to,
								     const uint16_t *from,
								     size_t count, uint32_t experts)
{
	return copy(to, from, count, experts);
}

static __attribute__((target("avx2"))) bool copy_avx2(uint16_t *to, const uint16_t *from,
						      size_t count, uint32_t experts)
{
	return copy(to, from, count, experts);
}

bool ids_copy(uint16_t *to, const uint16_t *from, size_t count, uint32_t experts)
{
	if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl"))
		return copy_avx512(to, from, count, experts);
	if (__builtin_cpu_supports("avx2"))
		return copy_avx2(to, from, count, experts);
	return copy(to, from, count, experts);
}

#else

/* The baseline of other machines has vector instructions (NEON). */
bool ids_copy(uint16_t *to, const uint16_t *from, size_t count, uint32_t experts)
{
	return copy(to, from, count, experts);
}

#endif
