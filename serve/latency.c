/* SPDX-License-Identifier: Apache-2.0 */
#include <r3ring/atomic.h>

#include "serve/latency.h"

#define US UINT64_C(1000)
#define MS UINT64_C(1000000)

const uint64_t latency_bound_ns[LATENCY_BOUNDS] = {
	50 * US, 100 * US, 250 * US, 500 * US, 1 * MS,   2500 * US, 5 * MS,
	10 * MS, 25 * MS,  50 * MS,  100 * MS, 250 * MS, 1000 * MS, 10000 * MS,
};

/* Only one thread writes. */
static void add(uint64_t *word, uint64_t value)
{
	r3ring_store_relaxed_u64(word, r3ring_load_relaxed_u64(word) + value);
}

void latency_note(struct latency *latency, uint64_t ns)
{
	uint32_t i = 0;

	while (i < LATENCY_BOUNDS && ns > latency_bound_ns[i])
		i++;
	add(&latency->sum_ns, ns);
	add(&latency->bucket[i], 1);
}

void latency_read(const struct latency *latency, struct latency *copy)
{
	for (uint32_t i = 0; i <= LATENCY_BOUNDS; i++)
		copy->bucket[i] = r3ring_load_relaxed_u64(&latency->bucket[i]);
	copy->sum_ns = r3ring_load_relaxed_u64(&latency->sum_ns);
}
