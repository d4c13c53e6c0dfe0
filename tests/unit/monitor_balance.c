/* SPDX-License-Identifier: Apache-2.0 */
/* Layers out of balance: figures worked out by hand. */
#include <criterion/criterion.h>
#include <math.h>

#include "monitor/balance.h"

/* Layer 3 is even, 5 has half of its 40 ids with one of four experts, 9 has none. */
static const double counts[3][4] = {{10, 10, 10, 10}, {4, 20, 12, 4}, {0, 0, 0, 0}};
static const double rows[3] = {20, 20, 0};
static const struct r3ring_layer_entry table[3] = {
	{.layer_id = 3}, {.layer_id = 5}, {.layer_id = 9}};
static const struct r3ring_load_info info = {
	.channels = 1,
	.layers = 3,
	.experts = 4,
	.top_k = 2,
	.layer = table,
	.counts = counts[0],
	.rows = rows,
};

Test(balance, failure_29_layers_are_ranked_by_the_max_over_the_mean_of_their_own_experts)
{
	struct balance_layer layers[3];

	cr_assert_eq(balance_layers(&info, layers), 0);
	cr_expect_eq(layers[0].layer, 5);
	cr_expect_eq(layers[0].index, 1);
	cr_expect_eq(layers[0].figures.max_to_mean, 2);
	cr_expect_eq(layers[0].figures.most, 1);
	cr_expect_eq(layers[0].share, 0.5);
	cr_expect_eq(layers[1].layer, 3);
	cr_expect_eq(layers[1].figures.max_to_mean, 1);
	cr_expect_eq(layers[1].share, 0.25);
	cr_expect_eq(layers[2].layer, 9);
	cr_expect_eq(layers[2].figures.max_to_mean, 0);
	cr_expect_eq(layers[2].chance, 0);
}

/* Solved apart from this code: r ln r - r + 1 is 0.4382 at 2.0730, 6.4615 at 6.3898, and
 * 0.0064615 at 1.1158. */
Test(balance, few_tokens_are_uneven_by_chance)
{
	struct balance_layer layer = {.chance = 3.6, .figures = {.max_to_mean = 3}};

	cr_expect_float_eq(balance_chance(10, 4), 2.0730, 1e-4);
	cr_expect_float_eq(balance_chance(1, 32), 6.3898, 1e-4);
	cr_expect_float_eq(balance_chance(1000, 32), 1.1158, 1e-4);
	cr_expect_eq(balance_chance(0, 32), 0);
	cr_expect_not(balance_uneven(&layer, 2), "chance alone gives more");
	layer.figures.max_to_mean = 4;
	cr_expect(balance_uneven(&layer, 2));
	cr_expect_not(balance_uneven(&layer, 4));
}

Test(balance, the_hottest_experts_are_those_furthest_above_their_layers_mean)
{
	struct balance_expert hottest[16];

	cr_expect_eq(balance_hottest(&info, hottest, 16), 8, "none of layer 9");
	cr_expect_eq(hottest[0].layer, 5);
	cr_expect_eq(hottest[0].expert, 1);
	cr_expect_eq(hottest[0].ratio, 2);
	cr_expect_eq(hottest[0].share, 0.5);
	cr_expect_eq(hottest[1].expert, 2);
	cr_expect_eq(hottest[1].ratio, 1.2);
	for (uint32_t i = 0; i < 4; i++) {
		cr_expect_eq(hottest[2 + i].layer, 3);
		cr_expect_eq(hottest[2 + i].expert, i);
	}
	cr_expect_eq(balance_hottest(&info, hottest, 1), 1);
	cr_expect_eq(hottest[0].layer, 5);
	cr_expect_eq(balance_hottest(&info, hottest, 0), 0);
}
