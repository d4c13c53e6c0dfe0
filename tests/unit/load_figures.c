/* SPDX-License-Identifier: Apache-2.0 */
/* Figures against those worked out by hand. */
#include <errno.h>

#include "tests/unit/load_fixture.h"

static struct r3ring_load_figures figures_of(const double *values, uint32_t count, uint32_t hottest)
{
	struct r3ring_load_figures figures;

	cr_assert_eq(r3ring_load_measure(values, count, hottest, &figures), 0);
	return figures;
}

Test(load_figures, of_an_even_layer)
{
	const double values[] = {5, 5, 5, 5};
	struct r3ring_load_figures f = figures_of(values, 4, 1);

	cr_assert_float_eq(f.sum, 20, 1e-12);
	cr_assert_float_eq(f.mean, 5, 1e-12);
	cr_assert_float_eq(f.max_to_mean, 1, 1e-12);
	cr_assert_float_eq(f.gini, 0, 1e-12);
	cr_assert_float_eq(f.jain, 1, 1e-12);
	cr_assert_float_eq(f.hottest, 0.25, 1e-12);
	cr_assert_eq(f.dead, 0);
}

Test(load_figures, of_one_that_has_all)
{
	const double values[] = {0, 0, 12, 0};
	struct r3ring_load_figures f = figures_of(values, 4, 2);

	cr_assert_float_eq(f.max, 12, 1e-12);
	cr_assert_float_eq(f.max_to_mean, 4, 1e-12);
	cr_assert_float_eq(f.gini, 0.75, 1e-12);
	cr_assert_float_eq(f.jain, 0.25, 1e-12);
	cr_assert_float_eq(f.hottest, 1, 1e-12);
	cr_assert_eq(f.dead, 3);
	cr_assert_eq(f.most, 2);
}

Test(load_figures, of_one_two_three_four)
{
	/* Gini: (-3 x 1 - 1 x 2 + 1 x 3 + 3 x 4) / (4 x 10) = 1/4. Jain: 100 / (4 x 30). */
	const double values[] = {3, 1, 4, 2};
	struct r3ring_load_figures f = figures_of(values, 4, 2);

	cr_assert_float_eq(f.gini, 0.25, 1e-12);
	cr_assert_float_eq(f.jain, 100 / 120.0, 1e-12);
	cr_assert_float_eq(f.max_to_mean, 1.6, 1e-12);
	cr_assert_float_eq(f.hottest, 0.7, 1e-12);
	cr_assert_eq(f.most, 2);
}

Test(load_figures, of_nothing)
{
	const double values[] = {0, 0, 0};
	struct r3ring_load_figures f = figures_of(values, 3, 1);

	cr_assert_float_eq(f.max_to_mean, 0, 1e-12);
	cr_assert_float_eq(f.gini, 0, 1e-12);
	cr_assert_eq(f.dead, 3);
	cr_assert_eq(r3ring_load_measure(values, 0, 1, &f), -EINVAL);
}

static uint16_t one_each(const struct feed *feed, uint64_t step, uint32_t row, uint32_t layer,
			 uint32_t k)
{
	(void)feed;
	(void)step;
	(void)row;
	return (uint16_t)(layer * 2 + k);
}

/* Each layer sends all its tokens to two experts of its own: over all layers six of eight
 * have the same, and only within a layer is it seen that two have all. */
Test(load_figures, failure_29_balance_is_over_the_experts_of_a_layer)
{
	const struct r3ring_load_info *info;

	load_open(NULL);
	load_feed.id = one_each;
	feed_whole(&load_feed, 1, 6, NULL, 0);
	info = read_load(0);
	for (uint32_t layer = 0; layer < info->layers; layer++) {
		struct r3ring_load_figures f =
			figures_of(info->counts + layer * info->experts, info->experts, 2);

		cr_assert_float_eq(f.max_to_mean, 4, 1e-12);
		cr_assert_float_eq(f.hottest, 1, 1e-12);
		cr_assert_eq(f.dead, 6);
	}
	load_close();
}

/* A monitor has a handful of figures a layer, however many experts there are, and whoever
 * wants all of them gets the matrix in one piece. */
Test(load_figures, failure_41_the_matrix_comes_in_one_piece_and_not_as_a_series_each)
{
	struct expected expected = {0};
	const struct r3ring_load_info *info;

	load_open(NULL);
	feed_whole(&load_feed, 1, 6, NULL, 0);
	expect_rows(&expected, 1, 0, 6);
	info = read_load(R3RING_LOAD_MERGED);
	for (uint32_t i = 0; i < FEED_LAYERS * LOAD_EXPERTS; i++)
		cr_assert_float_eq(info->counts[i],
				   expected.counts[i / LOAD_EXPERTS][i % LOAD_EXPERTS], 1e-12);
	load_close();
}
