/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include <stdlib.h>
#include <string.h>

#include "tests/unit/reserve_fixture.h"

/* Experts 0 and 1 are on GPU 0, 2 and 3 on GPU 1. */
const struct r3ring_demand_shape book_small = {.layers = 2, .experts = 4, .top_k = 1};

struct r3ring_book *book_open(const struct r3ring_demand_shape *shape, uint32_t gpus,
			      uint32_t capacity)
{
	const struct r3ring_book_options options = {
		.size = sizeof(options),
		.shape = *shape,
		.gpus = gpus,
		.capacity = capacity,
	};
	struct r3ring_error err = {0};
	struct r3ring_book *book;

	cr_assert_eq(r3ring_book_create(&book, &options, &err), 0, "%s", err.text);
	return book;
}

struct r3ring_demand *book_demand(const struct r3ring_demand_shape *shape, const uint32_t *counts,
				  uint32_t tokens)
{
	struct r3ring_demand *demand;

	cr_assert_eq(r3ring_demand_create(&demand, shape), 0);
	cr_assert_eq(r3ring_demand_predict(demand,
					   &(struct r3ring_evidence){.counts = counts, .age_ns = 9},
					   tokens),
		     0);
	return demand;
}

int book_make(struct r3ring_book *book, const char *key, uint64_t owner,
	      const struct r3ring_demand *demand, struct r3ring_reserve_answer *answer)
{
	return r3ring_book_make(book,
				&(struct r3ring_reserve_request){
					.key = key,
					.owner = owner,
					.ttl_ns = 100,
					.now_ns = 1000,
				},
				demand, answer);
}

void book_expect_empty(struct r3ring_book *book, uint32_t layers, uint32_t gpus, uint32_t experts)
{
	uint64_t *gpu = calloc((size_t)layers * gpus, sizeof(*gpu));
	uint64_t *expert = calloc((size_t)layers * experts, sizeof(*expert));
	struct r3ring_book_stats stats;

	memset(gpu, 0xAA, (size_t)layers * gpus * sizeof(*gpu));
	memset(expert, 0xAA, (size_t)layers * experts * sizeof(*expert));
	r3ring_book_load(book, gpu, expert);
	for (size_t i = 0; i < (size_t)layers * gpus; i++)
		cr_assert_eq(gpu[i], 0);
	for (size_t i = 0; i < (size_t)layers * experts; i++)
		cr_assert_eq(expert[i], 0);
	r3ring_book_get_stats(book, &stats);
	cr_expect_eq(stats.reservations, 0);
	cr_expect_eq(stats.committed, 0);
	cr_expect_eq(stats.units, 0);
	cr_expect_eq(stats.bytes, 0);
	free(gpu);
	free(expert);
}
