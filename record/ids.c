/* SPDX-License-Identifier: Apache-2.0 */
/* Counting what is wrong among expert ids. */
#include <r3ring/record.h>

/* Counts of one block stay in 32 bits, which compilers turn into vector code. */
#define BLOCK_IDS 4096u

static void count_block(const uint16_t *ids, size_t n, uint32_t experts, uint32_t *missing,
			uint32_t *not_experts)
{
	uint32_t m = 0, x = 0;

	for (size_t i = 0; i < n; i++) {
		m += ids[i] == R3RING_MISSING;
		x += ids[i] >= experts;
	}
	*missing = m;
	*not_experts = x;
}

void r3ring_ids_check(const uint16_t *ids, size_t rows, uint32_t top_k, uint32_t experts,
		      uint64_t *missing, uint64_t *out_of_range)
{
	/* 0xFFFF is never an expert, however many are claimed. */
	uint32_t bound = experts < R3RING_EXPERTS_MAX ? experts : R3RING_EXPERTS_MAX;
	size_t left = rows * top_k;
	uint64_t m = 0, x = 0;

	while (left) {
		size_t n = left < BLOCK_IDS ? left : BLOCK_IDS;
		uint32_t block_missing, block_not_experts;

		count_block(ids, n, bound, &block_missing, &block_not_experts);
		m += block_missing;
		x += block_not_experts;
		ids += n;
		left -= n;
	}
	if (missing)
		*missing = m;
	if (out_of_range)
		*out_of_range = x - m;
}
