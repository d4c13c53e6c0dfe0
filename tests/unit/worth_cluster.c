/* SPDX-License-Identifier: Apache-2.0 */
/* The simulated cluster that reservation is measured on, by hand. */
#include <criterion/criterion.h>

#include "tests/bench/worth/cluster.h"

/* Two requests of two rows, one layer, eight experts, two of them a token. */
static uint16_t first_ids[] = {0, 1, 0, 2}, second_ids[] = {0, 3, 6, 7};
static struct recorded requests[] = {{.ids = first_ids, .rows = 2}, {.ids = second_ids, .rows = 2}};
static const struct corpus corpus = {
	.trace = {.layer_count = 1, .top_k = 2, .experts = 8},
	.request = requests,
	.count = 2,
	.cells = 8,
};
static const struct cost weights = {"weights", 4, 0.5};
static const struct running both[] = {{.request = 0}, {.request = 1}};

static struct cluster cluster_with(struct r3ring_eplb_map *map)
{
	return (struct cluster){.corpus = &corpus, .map = map, .cost = &weights, .workers = 1};
}

/* GPU 0 has experts 0 and 1, GPU 1 has 2 and 3, and so on. */
Test(worth_cluster, a_step_takes_what_its_slowest_gpu_takes)
{
	struct r3ring_eplb_map *map;
	struct cluster cluster;

	cr_assert_eq(r3ring_eplb_map_plain(&map, 1, 8, GPUS, NULL), 0);
	cluster = cluster_with(map);
	/* Row 0: 0, 1 and 0, 3. GPU 0: two experts, three visits. */
	cr_expect_float_eq(cluster_cost(&cluster, both, 2, 1),
			   FIXED_US + LAYER_US + 2 * 4 + 3 * 0.5, 1e-9);
	/* Row 1: 0, 2 and 6, 7. GPU 3: two experts, two visits. */
	cr_expect_float_eq(cluster_cost(&cluster, both, 2, 2),
			   2 * (FIXED_US + LAYER_US) + 2 * 4 + 3 * 0.5 + 2 * 4 + 2 * 0.5, 1e-9);
	/* Behind their ends nothing is visited; without requests nothing runs. */
	cr_expect_float_eq(cluster_cost(&cluster, both, 2, 3) - cluster_cost(&cluster, both, 2, 2),
			   FIXED_US + LAYER_US, 1e-9);
	cr_expect_float_eq(cluster_cost(&cluster, both, 0, 3), 0, 1e-9);
	/* Four visits on four GPUs, three of them on one. */
	cr_expect_float_eq(cluster_imbalance(&cluster, both, 2), 3, 1e-9);
	r3ring_eplb_map_free(map);
}

Test(worth_cluster, replicas_share_the_visits_of_their_expert)
{
	struct r3ring_eplb_map *map;
	struct cluster cluster;

	/* Expert 0 has a replica on GPU 3; three experts a GPU. */
	cr_assert_eq(r3ring_eplb_map_create(&map, 1, 8, 2, 12, GPUS, NULL), 0);
	for (uint16_t expert = 0; expert < 8; expert++)
		map->map[expert * 2] = (uint16_t)(expert / 2 * 3 + expert % 2);
	map->map[1] = 11;
	cluster = cluster_with(map);
	/* Row 0: expert 0 is visited once on GPU 0, once on GPU 3; GPU 0 has expert 1 as well. */
	cr_expect_float_eq(cluster_cost(&cluster, both, 2, 1),
			   FIXED_US + LAYER_US + 2 * 4 + 2 * 0.5, 1e-9);
	cr_expect_float_eq(cluster_imbalance(&cluster, both, 2), 2, 1e-9);
	r3ring_eplb_map_free(map);
}
