/* SPDX-License-Identifier: Apache-2.0 */
/* Ids counted into cells, and cells of a step added to those of all. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "consumer/load/cells.h"

#define IDS 300u
#define STRIDE 112u
#define COUNT 48u
#define AT 16u

/* One by one. */
static void count_slowly(uint32_t *any, const uint16_t *ids, size_t count)
{
	for (size_t i = 0; i < count; i++)
		any[ids[i]] += 1;
}

static uint32_t next_random(void)
{
	static uint32_t state = 1;

	state = state * 1664525 + 1013904223;
	return state >> 8;
}

static void expect_same(const uint32_t *got, const uint32_t *expected, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		cr_assert_eq(got[i], expected[i], "place %u: %u, not %u", i, got[i], expected[i]);
}

Test(load_cells, ids_are_counted_whatever_they_are_and_wherever_they_lie)
{
	uint32_t *got = cells_alloc(CELLS_ANY_ID * sizeof(*got));
	uint32_t *expected = cells_alloc(CELLS_ANY_ID * sizeof(*expected));
	uint16_t ids[IDS + 4];

	cr_assert(got && expected);
	for (uint32_t i = 0; i < IDS + 4; i++)
		ids[i] = (uint16_t)(i % 7 ? next_random() % 100 : next_random());
	ids[17] = UINT16_MAX;
	for (uint32_t count = 0; count <= IDS; count++)
		for (uint32_t from = 0; from < 4; from++) {
			count_slowly(expected, ids + from, count);
			cells_count_ids(got, ids + from, count);
		}
	expect_same(got, expected, CELLS_ANY_ID);
	free(got);
	free(expected);
}

static void fill(struct cells_sums *sums)
{
	*sums = (struct cells_sums){.running = cells_alloc((AT + COUNT) * sizeof(uint32_t)),
				    .average = cells_alloc((AT + COUNT) * sizeof(float))};
	cr_assert(sums->running && sums->average);
	for (uint32_t i = 0; i < AT + COUNT; i++) {
		sums->running[i] = UINT32_MAX - 20 + 1000 * i;
		sums->average[i] = (float)(2 * i);
	}
}

static void empty(struct cells_sums *sums)
{
	free(sums->running);
	free(sums->average);
}

/* What is in front of AT must stay as it is in @to. */
static void expect_folded(bool in_place)
{
	uint32_t *counts = cells_alloc(COUNT * sizeof(*counts));
	struct cells_sums from, other, *to = in_place ? &from : &other;

	cr_assert_not_null(counts);
	fill(&from);
	fill(&other);
	for (uint32_t i = 0; i < COUNT; i++)
		counts[i] = i;
	cr_assert_eq(cells_fold(to, &from, counts, 0.5f, AT, COUNT), COUNT * (COUNT - 1) / 2);
	for (uint32_t i = 0; i < AT + COUNT; i++) {
		uint32_t more = i < AT ? 0 : i - AT;

		cr_assert_eq(to->running[i], UINT32_MAX - 20 + 1000 * i + more);
		cr_assert_eq(to->average[i], (float)(i < AT ? 2 * i : i + more));
	}
	for (uint32_t i = 0; i < COUNT; i++)
		cr_assert_eq(counts[i], 0);
	empty(&from);
	empty(&other);
	free(counts);
}

Test(load_cells, a_steps_counts_go_on_top_of_the_sums_and_are_empty_then)
{
	expect_folded(false);
	expect_folded(true);
}

Test(load_cells, counts_move_to_others_and_are_empty_then)
{
	uint32_t *to = cells_alloc(COUNT * sizeof(*to));
	uint32_t *counts = cells_alloc(COUNT * sizeof(*counts));

	cr_assert(to && counts);
	for (uint32_t i = 0; i < COUNT; i++) {
		to[i] = 7 * i;
		counts[i] = i;
	}
	cr_assert_eq(cells_move(to, counts, COUNT), COUNT * (COUNT - 1) / 2);
	for (uint32_t i = 0; i < COUNT; i++) {
		cr_assert_eq(to[i], 8 * i);
		cr_assert_eq(counts[i], 0);
	}
	free(to);
	free(counts);
}
