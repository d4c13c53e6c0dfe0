/* SPDX-License-Identifier: Apache-2.0 */
/* Load as cells: figures worked out by hand. */
#include <criterion/criterion.h>

#include "monitor/heat.h"

Test(heat, what_fits_is_not_folded)
{
	struct heat_fold fold = heat_fold(24, 32, 24, 70);

	cr_expect_eq(fold.layers_each, 1);
	cr_expect_eq(fold.experts_each, 1);
	cr_expect_eq(fold.rows, 24);
	cr_expect_eq(fold.columns, 32);
}

/* Kimi-K3 on 80x24: 896 experts in 70 columns are 13 each, 69 columns, the last of 12. */
Test(heat, what_does_not_fit_is_folded_by_whole_numbers)
{
	struct heat_fold fold = heat_fold(92, 896, 14, 70);

	cr_expect_eq(fold.experts_each, 13);
	cr_expect_eq(fold.columns, 69);
	cr_expect_eq(fold.layers_each, 7);
	cr_expect_eq(fold.rows, 14);
}

Test(heat, without_room_or_load_there_are_no_cells)
{
	cr_expect_eq(heat_fold(24, 32, 0, 70).rows, 0);
	cr_expect_eq(heat_fold(24, 32, 24, 0).columns, 0);
	cr_expect_eq(heat_fold(0, 0, 24, 70).rows, 0);
	heat_cells(&(struct heat_fold){0}, NULL, NULL);
}

/* Three layers of five experts into two rows of three columns: the last column is of one
 * expert, the last row of one layer. */
Test(heat, a_cell_is_the_largest_of_what_is_folded_into_it)
{
	const double values[3][5] = {
		{1, 2, 3, 4, 5},
		{9, 0, 0, 0, 6},
		{0, 0, 7, 8, 0},
	};
	const double expected[2][3] = {{9, 4, 6}, {0, 8, 0}};
	struct heat_fold fold = heat_fold(3, 5, 2, 3);
	double cells[2][3];

	cr_assert_eq(fold.rows, 2);
	cr_assert_eq(fold.columns, 3);
	heat_cells(&fold, values[0], cells[0]);
	for (int row = 0; row < 2; row++) {
		for (int column = 0; column < 3; column++)
			cr_expect_eq(cells[row][column], expected[row][column], "%d %d", row,
				     column);
	}
	cr_expect_eq(heat_max(cells[0], 6), 9);
	cr_expect_eq(heat_max(NULL, 0), 0);
}

/* A layer of 8 ids over 4 experts has a mean of 2; one of 40 over 4 a mean of 10. */
Test(heat, failure_29_each_value_is_measured_by_its_own_layers_mean)
{
	const double counts[3][4] = {{8, 0, 0, 0}, {5, 10, 15, 10}, {0, 0, 0, 0}};
	const double expected[3][4] = {{4, 0, 0, 0}, {0.5, 1, 1.5, 1}, {0, 0, 0, 0}};
	double ratios[3][4];

	heat_ratios(counts[0], 3, 4, ratios[0]);
	for (int layer = 0; layer < 3; layer++) {
		for (int expert = 0; expert < 4; expert++)
			cr_expect_eq(ratios[layer][expert], expected[layer][expert], "%d %d", layer,
				     expert);
	}
}

static void expect_levels(const struct heat_scale *scale, const double *values,
			  const uint32_t *levels, unsigned int count)
{
	for (unsigned int i = 0; i < count; i++)
		cr_expect_eq(heat_level(scale, values[i]), levels[i], "%g: %u, not %u", values[i],
			     heat_level(scale, values[i]), levels[i]);
}

Test(heat, a_linear_scale_has_even_steps_and_nothing_is_apart)
{
	const struct heat_scale scale = {.max = 80, .levels = 8};
	const double values[] = {0, 0.001, 10, 10.5, 20, 79, 80, 1000};
	const uint32_t levels[] = {0, 1, 1, 2, 2, 8, 8, 8};

	expect_levels(&scale, values, levels, 8);
}

/* Eight levels over eight octaves: 128 and up is the highest, 64 and up the next, ... */
Test(heat, a_logarithmic_scale_has_a_level_for_each_doubling)
{
	const struct heat_scale scale = {.max = 256, .levels = 8, .octaves = 8};
	const double values[] = {0, 0.5, 1, 2, 3, 4, 5, 64, 65, 128, 129, 256, 300};
	const uint32_t levels[] = {0, 1, 1, 1, 2, 2, 3, 6, 7, 7, 8, 8, 8};

	expect_levels(&scale, values, levels, 13);
}

Test(heat, a_scale_of_nothing_shows_nothing)
{
	const struct heat_scale scale = {.max = 0, .levels = 8, .octaves = 8};

	cr_expect_eq(heat_level(&scale, 0), 0);
	cr_expect_eq(heat_level(&scale, 1), 8);
}
