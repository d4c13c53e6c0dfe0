/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "consumer/assembler/fill.h"

#define BATCH 64u /* ids */

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

static inline __attribute__((always_inline)) uint16_t highest(const uint16_t *ids, size_t count)
{
	uint16_t most[BATCH] = {0}, all = 0;
	size_t i = 0;

	for (; i + BATCH <= count; i += BATCH)
		for (size_t j = 0; j < BATCH; j++)
			most[j] = ids[i + j] > most[j] ? ids[i + j] : most[j];
	for (; i < count; i++)
		all = ids[i] > all ? ids[i] : all;
	for (size_t j = 0; j < BATCH; j++)
		all = most[j] > all ? most[j] : all;
	return all;
}

#if defined(__x86_64__)

/* The baseline has no highest of unsigned words. */
static __attribute__((target("avx2"))) uint16_t highest_avx2(const uint16_t *ids, size_t count)
{
	return highest(ids, count);
}

uint16_t ids_highest(const uint16_t *ids, size_t count)
{
	return __builtin_cpu_supports("avx2") ? highest_avx2(ids, count) : highest(ids, count);
}

#else

uint16_t ids_highest(const uint16_t *ids, size_t count)
{
	return highest(ids, count);
}

#endif
