/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "consumer/assembler/fill.h"

#define BATCH 16u

typedef uint16_t batch __attribute__((vector_size(BATCH * sizeof(uint16_t))));

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
static inline __attribute__((always_inline)) bool copy(uint16_t *to, const uint16_t *from,
						       size_t count, uint16_t limit)
{
	batch ids, strangers = {0};
	uint64_t words[sizeof(batch) / sizeof(uint64_t)];
	bool any = false;
	size_t i = 0;

	for (; i + BATCH <= count; i += BATCH) {
		memcpy(&ids, from + i, sizeof(ids));
		memcpy(to + i, &ids, sizeof(ids));
		strangers |= (batch)(ids >= limit);
	}
	for (; i < count; i++) {
		to[i] = from[i];
		any |= from[i] >= limit;
	}
	memcpy(words, &strangers, sizeof(words));
	for (size_t j = 0; j < sizeof(words) / sizeof(*words); j++)
		any |= words[j] != 0;
	return any;
}

#if defined(__x86_64__)

static __attribute__((target("avx2"))) bool copy_avx2(uint16_t *to, const uint16_t *from,
						      size_t count, uint16_t limit)
{
	return copy(to, from, count, limit);
}

static bool copy_any(uint16_t *to, const uint16_t *from, size_t count, uint16_t limit)
{
	return __builtin_cpu_supports("avx2") ? copy_avx2(to, from, count, limit)
					      : copy(to, from, count, limit);
}

#else

static bool copy_any(uint16_t *to, const uint16_t *from, size_t count, uint16_t limit)
{
	return copy(to, from, count, limit);
}

#endif

bool ids_copy(uint16_t *to, const uint16_t *from, size_t count, uint32_t experts)
{
	return copy_any(to, from, count, (uint16_t)experts);
}
