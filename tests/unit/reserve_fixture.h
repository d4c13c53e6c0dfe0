/* SPDX-License-Identifier: Apache-2.0 */
/* A small book, and what is put into it. */
#ifndef TESTS_UNIT_RESERVE_FIXTURE_H
#define TESTS_UNIT_RESERVE_FIXTURE_H

#include <r3ring/reserve.h>

/* Two layers of four experts, one a token. On two GPUs, experts 0 and 1 are on GPU 0. */
extern const struct r3ring_demand_shape book_small;

struct r3ring_book *book_open(const struct r3ring_demand_shape *shape, uint32_t gpus,
			      uint32_t capacity);

/* Of so many tokens, by evidence that is 9 ns old. */
struct r3ring_demand *book_demand(const struct r3ring_demand_shape *shape, const uint32_t *counts,
				  uint32_t tokens);

/* As r3ring_book_make(), at time 1000, for 100 ns. */
int book_make(struct r3ring_book *book, const char *key, uint64_t owner,
	      const struct r3ring_demand *demand, struct r3ring_reserve_answer *answer);

/* Expects that nothing is left of anything. */
void book_expect_empty(struct r3ring_book *book, uint32_t layers, uint32_t gpus, uint32_t experts);

#endif
