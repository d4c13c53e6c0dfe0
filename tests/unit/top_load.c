/* SPDX-License-Identifier: Apache-2.0 */
/* The load that `r3ring top` shows: its layers, and what a map makes of it. */
#include <criterion/criterion.h>

#include "tools/top_load.h"

static struct top_load *load_of(const double cells[2][4], double rows, int32_t first,
				const struct r3ring_eplb_map *map)
{
	const struct r3ring_layer_entry table[2] = {{.layer_id = first}, {.layer_id = first + 1}};
	const double row_counts[2] = {rows, rows};
	const struct r3ring_load_info info = {
		.channels = 1,
		.layers = 2,
		.experts = 4,
		.top_k = 2,
		.layer = table,
		.counts = cells[0],
		.rows = row_counts,
		.steps = (uint64_t)rows,
	};
	struct top_load *load = top_load_of(&info, TOP_SINCE, map);

	cr_assert_not_null(load);
	return load;
}

static const double counts[2][4] = {{10, 5, 3, 4}, {8, 4, 4, 0}};

/* Layer 3: 10 of 22 over 4 experts; layer 4: 8 of 16. */
Test(top_load, layers_are_ranked_and_found_by_their_place)
{
	struct top_load *load = load_of(counts, 9, 3, NULL);

	cr_expect_eq(load->balance[0].layer, 4);
	cr_expect_eq(load->rank[0], 1);
	cr_expect_eq(load->rank[1], 0);
	cr_expect_float_eq(load->balance[1].figures.max_to_mean, 10 / 5.5, 1e-12);
	cr_expect_float_eq(load->ratios[4], 2, 1e-12);
	cr_expect_eq(load->hottest[0].layer, 4);
	cr_expect_null(load->gpus, "nobody said which there are");
	top_load_free(load);
}

/* Two GPUs of two experts: layer 3 has 15 and 7, layer 4 12 and 4: 1.5 times its mean. All
 * layers: 27 and 11, of a mean of 19. */
Test(top_load, gpus_have_the_load_of_their_experts)
{
	struct r3ring_eplb_map *map;
	struct top_load *load;

	cr_assert_eq(r3ring_eplb_map_plain(&map, 2, 4, 2, NULL), 0);
	map->epoch = 6;
	load = load_of(counts, 9, 3, map);
	cr_assert(load->gpus);
	cr_expect_eq(load->gpus->count, 2);
	cr_expect_eq(load->gpus->epoch, 6);
	cr_expect_eq(load->gpus->worst_layer, 4);
	cr_expect_eq(load->gpus->worst_gpu, 0);
	cr_expect_float_eq(load->gpus->worst, 1.5, 1e-12);
	cr_expect_float_eq(gpus_to_mean(load->gpus, 0), 27 / 19.0, 1e-12);
	cr_expect_float_eq(gpus_to_mean(load->gpus, 1), 11 / 19.0, 1e-12);
	top_load_free(load);
	r3ring_eplb_map_free(map);
}
