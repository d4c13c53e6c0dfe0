/* SPDX-License-Identifier: Apache-2.0 */
/* Scoring rules against cases worked out by hand. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "producer/reference/router.h"

static struct moe_model small(enum score_rule rule, uint32_t experts, uint32_t top_k)
{
	return (struct moe_model){
		.experts = experts, .top_k = top_k, .groups = 1, .groups_kept = 1, .rule = rule};
}

static void expect_ids(const uint16_t *ids, const uint16_t *expected, uint32_t count)
{
	for (uint32_t k = 0; k < count; k++)
		cr_assert_eq(ids[k], expected[k], "place %u: expert %u, not %u", k, ids[k],
			     expected[k]);
}

static void expect_near(double value, double expected)
{
	cr_assert(fabs(value - expected) < 1e-12, "%.15g, not %.15g", value, expected);
}

Test(reference_router, sqrt_softplus_weights_are_normalised_scores)
{
	/* softplus(0) = ln 2; softplus(ln(e^4 - 1)) = 4, its root 2; beyond 20
	 * softplus is the identity: root of 25 is 5. */
	const struct moe_model model = small(SCORE_SQRT_SOFTPLUS, 4, 2);
	double logits[] = {0.0, log(exp(4.0) - 1.0), -50.0, 25.0};
	uint16_t ids[2];
	double weights[2];

	router_select(&model, logits, NULL, ids, weights);
	expect_ids(ids, (const uint16_t[]){3, 1}, 2);
	expect_near(logits[0], sqrt(log(2.0)));
	expect_near(weights[0], 5.0 / 7.0);
	expect_near(weights[1], 2.0 / 7.0);
}

Test(reference_router, bias_moves_the_selection_and_not_the_weights)
{
	/* Scores 3/4, 1/2, 1/4; with bias 3/4, 1/2, 1. */
	const struct moe_model model = small(SCORE_SIGMOID, 3, 2);
	const double bias[] = {0.0, 0.0, 0.75};
	double logits[] = {log(3.0), 0.0, -log(3.0)};
	uint16_t ids[2];
	double weights[2];

	router_select(&model, logits, bias, ids, weights);
	expect_ids(ids, (const uint16_t[]){2, 0}, 2);
	expect_near(weights[0], 0.25);
	expect_near(weights[1], 0.75);
}

Test(reference_router, softmax_weights_are_normalised_over_the_selected)
{
	/* Probabilities 1/10, 2/10, 3/10, 4/10. */
	const struct moe_model model = small(SCORE_SOFTMAX, 4, 2);
	double logits[] = {log(1.0), log(2.0), log(3.0), log(4.0)};
	uint16_t ids[2];
	double weights[2];

	router_select(&model, logits, NULL, ids, weights);
	expect_ids(ids, (const uint16_t[]){3, 2}, 2);
	expect_near(logits[0], 0.1);
	expect_near(weights[0], 4.0 / 7.0);
	expect_near(weights[1], 3.0 / 7.0);
}

Test(reference_router, softmax_of_topk_sees_the_selected_logits_only)
{
	const struct moe_model model = small(SCORE_SOFTMAX_OF_TOPK, 4, 2);
	double logits[] = {log(9.0), 100.0 + log(3.0), 100.0, 1.0};
	uint16_t ids[2];
	double weights[2];

	router_select(&model, logits, NULL, ids, weights);
	expect_ids(ids, (const uint16_t[]){1, 2}, 2);
	expect_near(weights[0], 0.75);
	expect_near(weights[1], 0.25);
}

Test(reference_router, equal_choices_go_to_the_lower_expert)
{
	const struct moe_model model = small(SCORE_SIGMOID, 6, 3);
	double logits[] = {1.0, 2.0, 1.0, 2.0, 1.0, 0.0};
	uint16_t ids[3];
	double weights[3];

	router_select(&model, logits, NULL, ids, weights);
	expect_ids(ids, (const uint16_t[]){1, 3, 0}, 3);
}

Test(reference_router, groups_are_kept_by_the_sum_of_their_two_best)
{
	/* Groups {.9 .1}, {.6 .5}, {.6 .3}, {.8 .4}: sums 1.0, 1.1, .9, 1.2. The
	 * best expert of all is in a group that is not kept. */
	struct moe_model model = small(SCORE_SIGMOID, 8, 3);
	const double scores[] = {0.9, 0.1, 0.6, 0.5, 0.6, 0.3, 0.8, 0.4};
	double logits[8];
	uint16_t ids[3];
	double weights[3];

	model.groups = 4;
	model.groups_kept = 2;
	for (int e = 0; e < 8; e++)
		logits[e] = log(scores[e] / (1.0 - scores[e]));
	router_select(&model, logits, NULL, ids, weights);
	expect_ids(ids, (const uint16_t[]){6, 2, 3}, 3);
	expect_near(weights[0], 0.8 / 1.9);
}

Test(reference_router, bias_counts_in_the_groups_scores)
{
	struct moe_model model = small(SCORE_SIGMOID, 4, 1);
	const double bias[] = {0.0, 0.0, 0.0, 0.5};
	double logits[] = {1.0, 0.0, 0.5, 0.0};
	uint16_t ids[1];
	double weights[1];

	model.groups = 2;
	model.groups_kept = 1;
	router_select(&model, logits, bias, ids, weights);
	expect_ids(ids, (const uint16_t[]){3}, 1);
	expect_near(weights[0], 1.0);
}

Test(reference_router, equal_groups_go_to_the_lower_number)
{
	struct moe_model model = small(SCORE_SIGMOID, 6, 2);
	double logits[] = {0.0, 0.0, 0.0, 0.0, 0.0, 0.0};
	uint16_t ids[2];
	double weights[2];

	model.groups = 3;
	model.groups_kept = 1;
	router_select(&model, logits, NULL, ids, weights);
	expect_ids(ids, (const uint16_t[]){0, 1}, 2);
}

Test(reference_router, hash_layer_weighs_its_experts_by_their_scores)
{
	const struct moe_model model = small(SCORE_SQRT_SOFTPLUS, 8, 2);
	const double logits[] = {25.0, 100.0};
	double weights[2];

	router_hash_weights(&model, logits, weights);
	expect_near(weights[0], 5.0 / 15.0);
	expect_near(weights[1], 10.0 / 15.0);
}
