/* SPDX-License-Identifier: Apache-2.0 */
/* Placement against maps worked out by hand, and what a map does to a load. */
#include <criterion/criterion.h>
#include <errno.h>
#include <math.h>
#include <string.h>

#include <r3ring/eplb.h>

static struct r3ring_eplb_map *map;

static void free_map(void)
{
	r3ring_eplb_map_free(map);
}

TestSuite(eplb, .fini = free_map);

static struct r3ring_eplb_options options(uint32_t physical, uint32_t gpus, uint32_t nodes,
					  uint32_t groups)
{
	return (struct r3ring_eplb_options){.size = sizeof(struct r3ring_eplb_options),
					    .physical = physical,
					    .gpus = gpus,
					    .nodes = nodes,
					    .groups = groups};
}

static void place(const double *load, uint32_t layers, uint32_t experts,
		  struct r3ring_eplb_options how)
{
	struct r3ring_error err = {0};

	cr_assert_eq(r3ring_eplb_place(&map, load, layers, experts, &how, &err), 0, "%s", err.text);
	cr_assert_eq(r3ring_eplb_map_check(map, &err), 0, "%s", err.text);
}

Test(eplb, the_most_loaded_expert_gets_the_replica_and_the_heaviest_is_packed_first)
{
	/* One more of expert 0: its two carry 30 each. In order 30 30 25 20 15 10, each to
	 * the lighter of two GPUs: {30 25 10} and {30 20 15}. */
	const double load[] = {60, 25, 20, 15, 10};
	double gpu[2], physical[6];

	place(load, 1, 5, options(6, 2, 1, 1));
	cr_assert_eq(map->replicas, 2);
	r3ring_eplb_project(map, load, physical, gpu);
	cr_assert_float_eq(gpu[0], 65, 1e-9);
	cr_assert_float_eq(gpu[1], 65, 1e-9);
	cr_assert_float_eq(physical[map->map[0]], 30, 1e-9);
	cr_assert_float_eq(physical[map->map[1]], 30, 1e-9);
	cr_assert_neq(map->map[0] / 3, map->map[1] / 3, "both replicas are on one GPU");
}

Test(eplb, of_equal_loads_the_one_of_the_lower_number_is_packed_first)
{
	const double load[] = {7, 7, 7, 7};

	place(load, 1, 4, options(4, 2, 1, 1));
	for (uint32_t e = 0; e < 4; e++)
		cr_expect_eq(map->map[e] / 2, e % 2, "expert %u is at place %u", e, map->map[e]);
}

Test(eplb, groups_stay_on_one_node_where_the_nodes_divide_them)
{
	/* Groups carry 100, 10, 90, 20: {100 10} and {90 20} are the even pairs of two. */
	const double load[] = {50, 50, 5, 5, 45, 45, 10, 10};

	place(load, 1, 8, options(8, 4, 2, 4));
	for (uint32_t e = 0; e < 8; e += 2)
		cr_assert_eq(map->map[e] / 4, map->map[e + 1] / 4, "group %u is torn apart", e / 2);
	cr_assert_eq(map->map[0] / 4, map->map[2] / 4);
	cr_assert_eq(map->map[4] / 4, map->map[6] / 4);
}

Test(eplb, groups_that_nodes_do_not_divide_are_placed_over_all_gpus)
{
	const double load[] = {90, 30, 30, 30, 30, 30};
	double gpu[4];

	/* 3 groups, 2 nodes. Two more of expert 0: every replica carries 30. */
	place(load, 1, 6, options(8, 4, 2, 3));
	r3ring_eplb_project(map, load, NULL, gpu);
	for (uint32_t g = 0; g < 4; g++)
		cr_assert_float_eq(gpu[g], 60, 1e-9);
}

Test(eplb, a_layer_without_load_is_placed_as_if_it_were_even)
{
	const double load[] = {0, 0, 0, 0, 8, 0, 0, 0};

	place(load, 2, 4, options(8, 4, 1, 1));
	for (uint32_t e = 0; e < 4; e++)
		cr_assert_neq(map->map[e * map->replicas + 1], R3RING_MISSING,
			      "expert %u has no second replica", e);
	/* All four go to the one that has load. */
	cr_assert_eq(map->replicas, 5);
}

Test(eplb, balance_is_that_of_each_layers_most_loaded_gpu)
{
	/* GPUs hold experts {0 1} and {2 3}: 8 and 2; 3 and 3; nothing. */
	const double load[] = {5, 3, 2, 0, 1, 2, 3, 0, 0, 0, 0, 0};
	struct r3ring_eplb_balance balance;
	double ratio[3];

	cr_assert_eq(r3ring_eplb_map_plain(&map, 3, 4, 2, NULL), 0);
	cr_assert_eq(r3ring_eplb_evaluate(map, load, &balance, ratio), 0);
	cr_assert_float_eq(ratio[0], 1.6, 1e-9);
	cr_assert_float_eq(ratio[1], 1, 1e-9);
	cr_assert_float_eq(ratio[2], 0, 1e-9);
	cr_assert_float_eq(balance.worst, 1.6, 1e-9);
	cr_assert_float_eq(balance.average, 1.3, 1e-9);
	cr_assert_eq(balance.worst_layer, 0);
	cr_assert_eq(balance.worst_gpu, 0);
	cr_assert_eq(balance.layers_empty, 1);
}

Test(eplb, failure_29_load_is_summed_over_the_gpus_of_a_layer_and_not_over_its_experts)
{
	/* Each expert has the same over both layers; each layer's first GPU has it all. */
	const double load[] = {4, 4, 0, 0, 0, 0, 4, 4};
	struct r3ring_eplb_balance balance;

	cr_assert_eq(r3ring_eplb_map_plain(&map, 2, 4, 2, NULL), 0);
	cr_assert_eq(r3ring_eplb_evaluate(map, load, &balance, NULL), 0);
	cr_assert_float_eq(balance.average, 2, 1e-9);
}

Test(eplb, what_a_projection_is_written_over_is_not_added_to)
{
	const double load[] = {5, 3, 2, 0, 1, 2, 3, 0};
	double physical[8], gpu[4];

	for (uint32_t i = 0; i < 8; i++)
		physical[i] = gpu[i / 2] = 100;
	cr_assert_eq(r3ring_eplb_map_plain(&map, 2, 4, 2, NULL), 0);
	r3ring_eplb_project(map, load, physical, gpu);
	for (uint32_t i = 0; i < 8; i++)
		cr_expect_float_eq(physical[i], load[i], 1e-9);
	for (uint32_t g = 0; g < 4; g++)
		cr_expect_float_eq(gpu[g], load[2 * g] + load[2 * g + 1], 1e-9);
}

/* ---- what is refused ------------------------------------------------------ */

Test(eplb, an_expert_has_one_replica_at_least_and_no_more_than_there_are_places)
{
	struct r3ring_error err = {0};

	cr_expect_eq(r3ring_eplb_map_create(&map, 1, 2, 0, 4, 1, &err), -EINVAL);
	cr_expect(strstr(err.text, "0 replicas"), "%s", err.text);
	cr_expect_eq(r3ring_eplb_map_create(&map, 1, 2, 5, 4, 1, &err), -EINVAL);
	cr_expect(strstr(err.text, "5 replicas"), "%s", err.text);
	cr_assert_eq(r3ring_eplb_map_create(&map, 1, 2, 4, 4, 1, &err), 0);
}

Test(eplb, a_plain_map_of_gpus_that_do_not_divide_the_experts_is_refused)
{
	struct r3ring_error err = {0};

	cr_expect_eq(r3ring_eplb_map_plain(&map, 1, 4, 3, &err), -EINVAL);
	cr_expect(strstr(err.text, "3 GPUs"), "%s", err.text);
	cr_expect_null(map);
}

static void expect_refused(uint32_t experts, struct r3ring_eplb_options how, const char *why)
{
	const double load[8] = {1, 1, 1, 1, 1, 1, 1, 1};
	struct r3ring_error err = {0};

	cr_assert_eq(r3ring_eplb_place(&map, load, 1, experts, &how, &err), -EINVAL);
	cr_assert(strstr(err.text, why), "%s", err.text);
	cr_assert_null(map);
}

Test(eplb, options_that_do_not_fit_one_another_are_refused_by_name)
{
	expect_refused(8, options(7, 7, 1, 1), "7 physical experts for 8");
	expect_refused(8, options(10, 4, 1, 1), "multiple of the GPUs");
	expect_refused(8, options(8, 4, 3, 1), "3 nodes");
	expect_refused(8, options(8, 4, 1, 3), "3 groups");
	expect_refused(8, options(8, 0, 1, 1), "0 GPUs");
	expect_refused(8, options(65536, 8, 1, 1), "65536 physical");
	expect_refused(0, options(8, 4, 1, 1), "0 experts");
}

Test(eplb, a_load_that_is_no_number_is_refused_by_place)
{
	const double load[] = {1, 2, 3, NAN};
	const struct r3ring_eplb_options how = options(2, 1, 1, 1);
	struct r3ring_error err = {0};

	cr_assert_eq(r3ring_eplb_place(&map, load, 2, 2, &how, &err), -EINVAL);
	cr_assert(strstr(err.text, "layer 1, expert 1"), "%s", err.text);
}

Test(eplb, a_map_with_one_place_for_two_experts_or_none_for_one_is_refused)
{
	struct r3ring_error err = {0};

	cr_assert_eq(r3ring_eplb_map_plain(&map, 2, 4, 2, NULL), 0);
	cr_assert_eq(r3ring_eplb_map_check(map, NULL), 0);
	map->map[5] = 3;
	cr_assert_eq(r3ring_eplb_map_check(map, &err), -EBADMSG);
	cr_assert(strstr(err.text, "layer 1: expert 3"), "%s", err.text);
	map->map[5] = 4;
	cr_assert_eq(r3ring_eplb_map_check(map, &err), -EBADMSG);
	cr_assert(strstr(err.text, "does not exist"), "%s", err.text);
	map->map[5] = R3RING_MISSING;
	cr_assert_eq(r3ring_eplb_map_check(map, &err), -EBADMSG);
	cr_assert(strstr(err.text, "has no place"), "%s", err.text);
}
