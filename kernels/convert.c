/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Conversion of expert ids to u16 on the CPU. One plain loop a width, compiled
 * for each level of the machine's vector instructions (the Makefile asks for
 * vectorization in this file); the level is chosen at run time.
 */
#include <r3ring/record.h>

#include "kernels/convert.h"

/* A u16 lane counts no further than this. */
#define CONVERT_BLOCK 32768u

#define CONVERT_LOOP(bits)                                                                         \
	static inline __attribute__((always_inline))                                               \
	size_t block_u##bits(uint16_t *restrict to, const uint##bits##_t *restrict ids,            \
			     size_t count, uint##bits##_t limit)                                   \
	{                                                                                          \
		uint##bits##_t refused = 0;                                                        \
                                                                                                   \
		for (size_t i = 0; i < count; i++) {                                               \
			uint##bits##_t id = ids[i];                                                \
                                                                                                   \
			to[i] = id < limit ? (uint16_t)id : (uint16_t)R3RING_MISSING;              \
			refused = (uint##bits##_t)(refused + (id >= limit));                       \
		}                                                                                  \
		return (size_t)refused;                                                            \
	}                                                                                          \
	static inline __attribute__((always_inline)) size_t loop_u##bits(                          \
		uint16_t *to, const uint##bits##_t *ids, size_t count, uint##bits##_t limit)       \
	{                                                                                          \
		size_t refused = 0;                                                                \
                                                                                                   \
		for (; count > CONVERT_BLOCK; count -= CONVERT_BLOCK) {                            \
			refused += block_u##bits(to, ids, CONVERT_BLOCK, limit);                   \
			to += CONVERT_BLOCK;                                                       \
			ids += CONVERT_BLOCK;                                                      \
		}                                                                                  \
		return refused + block_u##bits(to, ids, count, limit);                             \
	}

CONVERT_LOOP(16)
CONVERT_LOOP(32)
CONVERT_LOOP(64)

#if defined(__x86_64__)

#define CONVERT_LEVEL(bits, level, instructions)                                                   \
	__attribute__((target(instructions))) static size_t level##_u##bits(                       \
		uint16_t *to, const uint##bits##_t *ids, size_t count, uint##bits##_t limit)       \
	{                                                                                          \
		return loop_u##bits(to, ids, count, limit);                                        \
	}

#define CONVERT(bits)                                                                              \
	CONVERT_LEVEL(bits, avx2, "avx2")                                                          \
	CONVERT_LEVEL(bits, avx512, "avx512bw,avx512vl")                                           \
	size_t convert_ids_u##bits(uint16_t *to, const uint##bits##_t *ids, size_t count,          \
				   uint##bits##_t limit)                                           \
	{                                                                                          \
		if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl"))      \
			return avx512_u##bits(to, ids, count, limit);                              \
		if (__builtin_cpu_supports("avx2"))                                                \
			return avx2_u##bits(to, ids, count, limit);                                \
		return loop_u##bits(to, ids, count, limit);                                        \
	}

#else

/* The baseline of other machines has vector instructions (NEON). */
#define CONVERT(bits)                                                                              \
	size_t convert_ids_u##bits(uint16_t *to, const uint##bits##_t *ids, size_t count,          \
				   uint##bits##_t limit)                                           \
	{                                                                                          \
		return loop_u##bits(to, ids, count, limit);                                        \
	}

#endif

CONVERT(16)
CONVERT(32)
CONVERT(64)
