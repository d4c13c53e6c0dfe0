/* SPDX-License-Identifier: Apache-2.0 */
/* What GPUs bear of promises, under any map, beside the plain definition. */
#include <criterion/criterion.h>

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/reserve_fixture.h"

enum { LAYERS = 3, EXPERTS = 40, GPUS = 5, PHYSICAL = 60, REPLICAS = 6, HELD = 50 };

static const struct r3ring_demand_shape middle = {.layers = LAYERS, .experts = EXPERTS, .top_k = 4};

/* Each expert once, the rest of the places by chance. */
static void random_map(uint16_t map[LAYERS][EXPERTS][REPLICAS])
{
	memset(map, 0xFF, LAYERS * sizeof(map[0]));
	for (uint32_t layer = 0; layer < LAYERS; layer++) {
		uint32_t count[EXPERTS] = {0};

		for (uint16_t physical = 0; physical < PHYSICAL; physical++) {
			uint32_t expert = physical < EXPERTS ? physical
							     : (uint32_t)rand() % EXPERTS;

			if (count[expert] < REPLICAS)
				map[layer][expert][count[expert]++] = physical;
		}
	}
}

/* What the GPU must bear, were units divisible at will. */
static double fair_load(struct r3ring_demand *const *held, uint16_t map[EXPERTS][REPLICAS],
			uint32_t layer, uint32_t gpu)
{
	double load = 0;

	for (uint32_t i = 0; i < HELD; i++) {
		for (uint32_t expert = 0; held[i] && expert < EXPERTS; expert++) {
			uint32_t here = 0, all = 0;

			for (uint32_t r = 0; r < REPLICAS; r++) {
				all += map[expert][r] != R3RING_MISSING;
				here += map[expert][r] != R3RING_MISSING &&
					map[expert][r] / (PHYSICAL / GPUS) == gpu;
			}
			load += (double)r3ring_demand_of(held[i], layer, expert) * here / all;
		}
	}
	return load;
}

static void expect_fair(struct r3ring_book *book, struct r3ring_demand *const *held,
			uint16_t map[LAYERS][EXPERTS][REPLICAS])
{
	uint64_t load[LAYERS][GPUS];
	struct r3ring_book_stats stats;

	r3ring_book_load(book, load[0], NULL);
	r3ring_book_get_stats(book, &stats);
	for (uint32_t layer = 0; layer < LAYERS; layer++) {
		uint64_t units = 0;

		for (uint32_t gpu = 0; gpu < GPUS; gpu++)
			units += load[layer][gpu];
		/* Only the parts of what is spread are rounded down. */
		cr_assert(units <= stats.units / LAYERS && units + GPUS >= stats.units / LAYERS);
		for (uint32_t gpu = 0; gpu < GPUS; gpu++)
			cr_assert_float_eq((double)load[layer][gpu],
					   fair_load(held, map[layer], layer, gpu),
					   HELD * EXPERTS + EXPERTS * REPLICAS);
	}
}

Test(reserve_fair, gpus_bear_their_fair_share_under_any_map_and_nothing_stays_behind)
{
	struct r3ring_book *book = book_open(&middle, GPUS, R3RING_DEMAND_TOKENS_MAX);
	struct r3ring_demand *held[HELD] = {NULL};
	uint16_t map[LAYERS][EXPERTS][REPLICAS];
	struct r3ring_eplb_map next = {
		.layers = LAYERS,
		.experts = EXPERTS,
		.replicas = REPLICAS,
		.physical = PHYSICAL,
		.gpus = GPUS,
		.map = map[0][0],
	};
	char key[16];

	srand(11);
	for (uint32_t turn = 0; turn < 400; turn++) {
		uint32_t i = (uint32_t)rand() % HELD, counts[LAYERS * EXPERTS];
		struct r3ring_reserve_answer answer;

		if (turn % 20 == 0) {
			random_map(map);
			next.epoch++;
			cr_assert_eq(r3ring_book_map(book, &next, NULL), 0);
		}
		snprintf(key, sizeof(key), "%u", i);
		if (held[i]) {
			cr_assert_eq(r3ring_book_ended(book, key), 0);
			r3ring_demand_destroy(held[i]);
			held[i] = NULL;
		} else {
			for (uint32_t c = 0; c < LAYERS * EXPERTS; c++)
				counts[c] = (uint32_t)(rand() % 50);
			held[i] = book_demand(&middle, counts, (uint32_t)(rand() % 64));
			cr_assert_eq(book_make(book, key, 0, held[i], &answer), 0);
		}
		expect_fair(book, held, map);
	}
	for (uint32_t i = 0; i < HELD; i++) {
		snprintf(key, sizeof(key), "%u", i);
		cr_expect_eq(r3ring_book_ended(book, key), held[i] ? 0 : -ENOENT);
		r3ring_demand_destroy(held[i]);
	}
	book_expect_empty(book, LAYERS, GPUS, EXPERTS);
	r3ring_book_destroy(book);
}
