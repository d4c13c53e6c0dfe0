/* SPDX-License-Identifier: Apache-2.0 */
/* What a request is expected to need. */
#include <criterion/criterion.h>

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#include "consumer/reserve/demand.h"

static const struct r3ring_demand_shape kimi = {.layers = 92, .experts = 896, .top_k = 16};

static struct r3ring_demand *predict(const struct r3ring_demand_shape *shape,
				     const uint32_t *counts, uint32_t tokens)
{
	const struct r3ring_evidence evidence = {.counts = counts, .age_ns = 7};
	struct r3ring_demand *demand;

	cr_assert_eq(r3ring_demand_create(&demand, shape), 0);
	cr_assert_eq(r3ring_demand_predict(demand, &evidence, tokens), 0);
	return demand;
}

/* All units of a layer. */
static uint64_t layer_units(const struct r3ring_demand *demand, uint32_t layer)
{
	uint64_t units = demand->layer[layer].spread;

	for (uint32_t i = demand->layer[layer].first; i < demand->layer[layer].end; i++)
		units += demand->entry[i].units;
	return units;
}

Test(reserve_demand, without_evidence_every_expert_is_as_likely)
{
	const struct r3ring_demand_shape shape = {.layers = 2, .experts = 8, .top_k = 2};
	struct r3ring_demand *demand = predict(&shape, NULL, 4);

	for (uint32_t layer = 0; layer < 2; layer++) {
		for (uint32_t expert = 0; expert < 8; expert++)
			cr_expect_eq(r3ring_demand_of(demand, layer, expert),
				     R3RING_DEMAND_TOKEN * 4 * 2 / 8);
	}
	r3ring_demand_destroy(demand);
}

/* Weights 4, 2, 1 and 1 of 8. */
Test(reserve_demand, experts_are_expected_as_often_as_they_were_seen_and_once_more)
{
	const struct r3ring_demand_shape shape = {.layers = 1, .experts = 4, .top_k = 1};
	const uint32_t counts[] = {3, 1, 0, 0};
	const uint64_t expected[] = {512, 256, 128, 128};
	struct r3ring_demand *demand = predict(&shape, counts, 1);

	for (uint32_t expert = 0; expert < 4; expert++)
		cr_expect_eq(r3ring_demand_of(demand, 0, expert), expected[expert]);
	cr_expect_eq(demand->age_ns, 7);
	r3ring_demand_destroy(demand);
}

Test(reserve_demand, a_layer_without_counts_is_uniform)
{
	const struct r3ring_demand_shape shape = {.layers = 2, .experts = 4, .top_k = 1};
	const uint32_t counts[] = {0, 0, 0, 0, 7, 0, 0, 0};
	struct r3ring_demand *demand = predict(&shape, counts, 1);

	cr_expect_eq(r3ring_demand_of(demand, 0, 3), 256);
	cr_expect_eq(r3ring_demand_of(demand, 1, 3), R3RING_DEMAND_TOKEN * 1 / 11);
	r3ring_demand_destroy(demand);
}

Test(reserve_demand, a_token_visits_an_expert_at_most_once)
{
	const struct r3ring_demand_shape shape = {.layers = 1, .experts = 4, .top_k = 2};
	const uint32_t counts[] = {1000, 0, 0, 0};
	struct r3ring_demand *demand = predict(&shape, counts, 3);

	cr_expect_leq(r3ring_demand_of(demand, 0, 0), 3 * R3RING_DEMAND_TOKEN);
	cr_expect_eq(r3ring_demand_of(demand, 0, 1), R3RING_DEMAND_TOKEN);
	cr_expect_eq(layer_units(demand, 0), 3 * 2 * R3RING_DEMAND_TOKEN);
	r3ring_demand_destroy(demand);
}

Test(reserve_demand, no_unit_is_lost_or_made_whatever_the_counts)
{
	uint32_t *counts = calloc((size_t)kimi.layers * kimi.experts, sizeof(*counts));
	struct r3ring_demand *demand;

	srand(5);
	for (size_t i = 0; i < (size_t)kimi.layers * kimi.experts; i++)
		counts[i] = rand() % 3 ? (uint32_t)(rand() % (1 << rand() % 20)) : 0;
	for (uint32_t tokens = 0; tokens <= 8192; tokens = tokens * 3 + 1) {
		demand = predict(&kimi, counts, tokens);
		for (uint32_t layer = 0; layer < kimi.layers; layer++) {
			const struct demand_layer *at = &demand->layer[layer];

			cr_assert_eq(layer_units(demand, layer),
				     (uint64_t)tokens * kimi.top_k * R3RING_DEMAND_TOKEN);
			cr_assert_leq(at->end - at->first, R3RING_DEMAND_NAMED_MAX);
		}
		r3ring_demand_destroy(demand);
	}
	free(counts);
}

/* Whoever has more visits is named before one who has less. */
Test(reserve_demand, the_experts_with_the_most_visits_are_named)
{
	const struct r3ring_demand_shape shape = {.layers = 1, .experts = 300, .top_k = 8};
	uint32_t counts[300], least = UINT32_MAX, most_left = 0;
	bool named[300] = {false};
	struct r3ring_demand *demand;

	for (uint32_t i = 0; i < 300; i++)
		counts[i] = i * 7919 % 1009;
	demand = predict(&shape, counts, 1);
	cr_expect_eq(demand->layer[0].end, R3RING_DEMAND_NAMED_MAX);
	for (uint32_t i = 0; i < demand->layer[0].end; i++)
		named[demand->entry[i].expert] = true;
	for (uint32_t i = 0; i < 300; i++) {
		if (named[i] && counts[i] < least)
			least = counts[i];
		if (!named[i] && counts[i] > most_left)
			most_left = counts[i];
	}
	cr_expect_gt(least, most_left);
	r3ring_demand_destroy(demand);
}

Test(reserve_demand, of_equals_the_first_are_named_up_to_the_largest_count_there_is)
{
	const struct r3ring_demand_shape shape = {.layers = 1, .experts = 100, .top_k = 4};
	uint32_t counts[100];
	struct r3ring_demand *demand;

	for (uint32_t i = 0; i < 100; i++)
		counts[i] = UINT32_MAX;
	demand = predict(&shape, counts, 1);
	cr_assert_eq(demand->layer[0].end, R3RING_DEMAND_NAMED_MAX);
	for (uint32_t i = 0; i < R3RING_DEMAND_NAMED_MAX; i++)
		cr_expect_eq(demand->entry[i].expert, i);
	cr_expect_eq(layer_units(demand, 0), 4 * R3RING_DEMAND_TOKEN);
	r3ring_demand_destroy(demand);
}

Test(reserve_demand, those_seen_once_are_named_behind_one_seen_more_often)
{
	const struct r3ring_demand_shape shape = {.layers = 1, .experts = 100, .top_k = 4};
	struct r3ring_demand *demand;
	uint32_t counts[100];

	for (uint32_t i = 0; i < 100; i++)
		counts[i] = i == 99 ? 9 : 1;
	demand = predict(&shape, counts, 1);
	cr_assert_eq(demand->layer[0].end, R3RING_DEMAND_NAMED_MAX);
	cr_expect_eq(demand->entry[0].expert, 99);
	for (uint32_t i = 1; i < R3RING_DEMAND_NAMED_MAX; i++)
		cr_expect_eq(demand->entry[i].expert, i - 1);
	r3ring_demand_destroy(demand);
}

Test(reserve_demand, what_no_model_or_step_has_is_refused)
{
	const struct r3ring_demand_shape shapes[] = {
		{0, 8, 2}, {1, 0, 1}, {1, 8, 0}, {1, 8, 9}, {R3RING_LAYERS_MAX + 1, 8, 2},
	};
	struct r3ring_demand *demand = NULL;

	for (size_t i = 0; i < sizeof(shapes) / sizeof(*shapes); i++)
		cr_expect_eq(r3ring_demand_create(&demand, &shapes[i]), -EINVAL);
	cr_assert_eq(r3ring_demand_create(&demand, &kimi), 0);
	cr_expect_eq(r3ring_demand_predict(demand, &(struct r3ring_evidence){0},
					   R3RING_DEMAND_TOKENS_MAX + 1),
		     -EINVAL);
	cr_expect_eq(r3ring_demand_of(demand, 92, 0), 0);
	cr_expect_eq(r3ring_demand_of(demand, 0, 896), 0);
	r3ring_demand_destroy(demand);
}
