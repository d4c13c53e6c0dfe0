/* SPDX-License-Identifier: Apache-2.0 */
/* Ids counted into cells, and cells of a step added to those of all. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "consumer/load/cells.h"

#define EXPERTS 100u
#define IDS 300u
#define COUNT 48u

/* One by one. */
static void count_slowly(uint32_t *layer, const uint16_t *ids, size_t count)
{
	for (size_t i = 0; i < count; i++)
		layer[ids[i] >= EXPERTS ? EXPERTS : ids[i]] += 1;
}

Test(load_cells, ids_are_counted_and_strangers_apart_however_many_there_are)
{
	uint16_t ids[IDS];
	uint32_t state = 1;

	for (uint32_t count = 0; count <= IDS; count++) {
		uint32_t got[EXPERTS + 1] = {0}, expected[EXPERTS + 1] = {0};

		for (uint32_t i = 0; i < count; i++) {
			state = state * 1664525 + 1013904223;
			ids[i] = (uint16_t)((state >> 8) % EXPERTS);
		}
		if (count % 3 == 0 && count) {
			ids[state % count] = EXPERTS;
			ids[(state >> 9) % count] = UINT16_MAX;
		}
		count_slowly(expected, ids, count);
		cells_count_ids(got, ids, count, EXPERTS);
		cr_assert_eq(memcmp(got, expected, sizeof(got)), 0, "%u ids", count);
	}
}

Test(load_cells, a_step_is_added_to_the_sum_and_to_the_average_and_is_empty_then)
{
	uint32_t *counts = cells_alloc(COUNT * sizeof(*counts));
	uint32_t *running = cells_alloc(COUNT * sizeof(*running));
	float *average = cells_alloc(COUNT * sizeof(*average));

	cr_assert(counts && running && average);
	for (uint32_t i = 0; i < COUNT; i++) {
		counts[i] = i;
		running[i] = 1000 * i;
		average[i] = (float)(2 * i);
	}
	cells_settle(counts, running, average, 0.5f, COUNT);
	for (uint32_t i = 0; i < COUNT; i++) {
		cr_assert_eq(counts[i], 0);
		cr_assert_eq(running[i], 1001 * i);
		cr_assert_eq(average[i], (float)(2 * i));
	}
	free(counts);
	free(running);
	free(average);
}
