/* SPDX-License-Identifier: Apache-2.0 */
/* Which EPLB map a load lies by where the ranks of an instance are at different ones. All loads of
 * GPUs are computed by hand, from where the maps below put experts 0 to 3. */
#include <errno.h>

#include "tests/unit/load_fixture.h"

#define STEPS_ROWS 3u
#define OTHER_ROWS 5u

/* Experts 0 to 3 on GPU 0, 4 to 7 on GPU 1. */
static const uint16_t in_order[LOAD_EXPERTS] = {0, 1, 2, 3, 4, 5, 6, 7};
/* Even ones on GPU 0, odd ones on GPU 1. */
static const uint16_t by_parity[LOAD_EXPERTS] = {0, 4, 1, 5, 2, 6, 3, 7};
/* Experts 4 to 7 on GPU 0, 0 to 3 on GPU 1. */
static const uint16_t turned[LOAD_EXPERTS] = {4, 5, 6, 7, 0, 1, 2, 3};

static struct feed other;

/* Each row of channel 0 is of experts 0 and 1, each of channel 1 of 2 and 3. */
static uint16_t expert_of_channel(const struct feed *feed, uint64_t step, uint32_t row,
				  uint32_t layer, uint32_t k)
{
	(void)step;
	(void)row;
	(void)layer;
	return (uint16_t)(feed->channel * 2 + k);
}

static void open_ranks(void)
{
	load_open(NULL);
	load_feed.id = expert_of_channel;
	other = feed_load_channel(&load_feed, "test/1");
}

TestSuite(load_in_force, .init = open_ranks, .fini = load_close);

static void map_of(struct feed *feed, uint64_t epoch, const uint16_t *map)
{
	feed_map(feed, epoch, 1, LOAD_EXPERTS, 2, map);
}

static void run(struct feed *feed, uint64_t epoch, uint32_t rows)
{
	feed->epoch = epoch;
	feed_whole(feed, 1, rows, NULL, 0);
}

/* The merged load's map; NULL: there is none. */
static struct r3ring_eplb_map *in_force(uint64_t epoch, uint64_t oldest)
{
	const struct r3ring_load_info *info = read_load(R3RING_LOAD_MERGED);
	struct r3ring_eplb_map *map = NULL;
	uint64_t alone = UINT64_MAX;
	int r;

	cr_expect_eq(r3ring_load_epoch(load_feed.load, R3RING_LOAD_MERGED, &alone), 0);
	cr_expect_eq(alone, epoch, "without reading it: %llu", (unsigned long long)alone);
	cr_expect_eq(info->epoch, epoch, "epoch %llu", (unsigned long long)info->epoch);
	cr_expect_eq(info->epoch_oldest, oldest, "oldest %llu",
		     (unsigned long long)info->epoch_oldest);
	r = r3ring_load_map_in_force(load_feed.load, R3RING_LOAD_MERGED, info->epoch, &map);
	cr_assert_eq(r, map ? 0 : -ENOENT);
	return map;
}

/* What both GPUs have in the layers from @first to @end; the map is freed. */
static void expect_gpus(const struct r3ring_eplb_map *map, uint32_t first, uint32_t end,
			double gpu0, double gpu1)
{
	double gpus[2 * FEED_LAYERS * 2];

	cr_assert(map);
	cr_assert_leq(map->layers, 2 * FEED_LAYERS);
	r3ring_eplb_project(map, read_load(R3RING_LOAD_MERGED)->counts, NULL, gpus);
	for (uint32_t layer = first; layer < end; layer++) {
		cr_expect_float_eq(gpus[layer * 2], gpu0, 1e-9, "layer %u, GPU 0: %g", layer,
				   gpus[layer * 2]);
		cr_expect_float_eq(gpus[layer * 2 + 1], gpu1, 1e-9, "layer %u, GPU 1: %g", layer,
				   gpus[layer * 2 + 1]);
	}
}

/* By parity 3 + 5 each; in order it would be 16 and 0, each rank by its own map 13 and 3. */
Test(load_in_force, ranks_at_different_maps_lie_by_the_newest_of_them)
{
	struct r3ring_eplb_map *map;

	feed_schema(&other);
	map_of(&load_feed, 1, in_order);
	map_of(&load_feed, 2, by_parity);
	map_of(&other, 1, in_order);
	run(&load_feed, 2, STEPS_ROWS);
	run(&other, 1, OTHER_ROWS);
	map = in_force(2, 1);
	expect_gpus(map, 0, FEED_LAYERS, STEPS_ROWS + OTHER_ROWS, STEPS_ROWS + OTHER_ROWS);
	cr_expect_eq(map->epoch, 2);
	r3ring_eplb_map_free(map);
}

Test(load_in_force, it_is_so_too_where_the_newest_is_of_the_last_rank)
{
	struct r3ring_eplb_map *map;

	feed_schema(&other);
	map_of(&load_feed, 1, in_order);
	map_of(&other, 2, by_parity);
	run(&load_feed, 1, STEPS_ROWS);
	run(&other, 2, OTHER_ROWS);
	map = in_force(2, 1);
	expect_gpus(map, 0, FEED_LAYERS, STEPS_ROWS + OTHER_ROWS, STEPS_ROWS + OTHER_ROWS);
	r3ring_eplb_map_free(map);
}

Test(load_in_force, a_rank_that_ran_without_any_map_is_the_oldest)
{
	struct r3ring_eplb_map *map;

	feed_schema(&other);
	map_of(&load_feed, 2, turned);
	run(&load_feed, 2, STEPS_ROWS);
	run(&other, 0, OTHER_ROWS);
	map = in_force(2, 0);
	expect_gpus(map, 0, FEED_LAYERS, 0, 2 * (STEPS_ROWS + OTHER_ROWS));
	r3ring_eplb_map_free(map);
}

Test(load_in_force, a_map_that_is_not_known_is_stood_in_for_by_the_one_before_it)
{
	struct r3ring_eplb_map *map;

	map_of(&load_feed, 1, in_order);
	map_of(&load_feed, 2, turned);
	run(&load_feed, 3, STEPS_ROWS);
	map = in_force(3, 3);
	expect_gpus(map, 0, FEED_LAYERS, 0, 2 * STEPS_ROWS);
	cr_expect_eq(map->epoch, 2);
	r3ring_eplb_map_free(map);
}

Test(load_in_force, a_map_that_no_step_ran_with_is_not_in_force)
{
	struct r3ring_eplb_map *map;

	map_of(&load_feed, 1, turned);
	map_of(&load_feed, 2, in_order);
	run(&load_feed, 1, STEPS_ROWS);
	map = in_force(1, 1);
	expect_gpus(map, 0, FEED_LAYERS, 0, 2 * STEPS_ROWS);
	cr_expect_eq(map->epoch, 1);
	r3ring_eplb_map_free(map);
}

Test(load_in_force, a_rank_that_has_ended_brings_no_map)
{
	struct r3ring_eplb_map *map;

	feed_schema(&other);
	map_of(&load_feed, 5, in_order);
	map_of(&other, 4, turned);
	run(&load_feed, 5, STEPS_ROWS);
	run(&other, 4, OTHER_ROWS);
	cr_assert_eq(r3ring_load_end(load_feed.load, 0), 0);
	map = in_force(4, 4);
	expect_gpus(map, 0, FEED_LAYERS, 0, 2 * OTHER_ROWS);
	r3ring_eplb_map_free(map);
}

/* ---- stages ---------------------------------------------------------------------- */

static void second_stage(void)
{
	other.first_layer = FEED_LAYERS;
	feed_schema(&other);
}

Test(load_in_force, layers_of_a_stage_that_is_behind_lie_by_its_own_map)
{
	struct r3ring_eplb_map *map;

	second_stage();
	map_of(&load_feed, 2, in_order);
	map_of(&load_feed, 3, by_parity);
	map_of(&other, 2, turned);
	run(&load_feed, 3, STEPS_ROWS);
	run(&other, 2, OTHER_ROWS);
	map = in_force(3, 2);
	expect_gpus(map, 0, FEED_LAYERS, STEPS_ROWS, STEPS_ROWS);
	expect_gpus(map, FEED_LAYERS, 2 * FEED_LAYERS, 0, 2 * OTHER_ROWS);
	cr_expect_eq(map->epoch, 3);
	r3ring_eplb_map_free(map);
}

Test(load_in_force, stages_whose_newest_maps_are_of_other_sizes_lie_by_one_that_both_have)
{
	struct r3ring_eplb_map *map;

	second_stage();
	map_of(&load_feed, 2, in_order);
	feed_map(&load_feed, 3, 1, LOAD_EXPERTS, 4, by_parity);
	map_of(&other, 2, turned);
	run(&load_feed, 3, STEPS_ROWS);
	run(&other, 2, OTHER_ROWS);
	map = in_force(3, 2);
	expect_gpus(map, 0, FEED_LAYERS, 2 * STEPS_ROWS, 0);
	expect_gpus(map, FEED_LAYERS, 2 * FEED_LAYERS, 0, 2 * OTHER_ROWS);
	cr_expect_eq(map->epoch, 2);
	r3ring_eplb_map_free(map);
}

Test(load_in_force, without_a_map_of_all_layers_there_is_none)
{
	second_stage();
	map_of(&load_feed, 2, in_order);
	run(&load_feed, 2, STEPS_ROWS);
	run(&other, 2, OTHER_ROWS);
	cr_expect_null(in_force(2, 2));
}

Test(load_in_force, of_one_rank_it_is_its_own)
{
	struct r3ring_eplb_map *map = NULL;

	feed_schema(&other);
	map_of(&load_feed, 2, by_parity);
	map_of(&other, 1, in_order);
	run(&load_feed, 2, STEPS_ROWS);
	run(&other, 1, OTHER_ROWS);
	cr_expect_eq(read_load(1)->epoch, 1);
	cr_expect_eq(read_load(1)->epoch_oldest, 1);
	cr_assert_eq(r3ring_load_map_in_force(load_feed.load, 1, 1, &map), 0);
	cr_expect_eq(map->epoch, 1);
	r3ring_eplb_map_free(map);
	cr_expect_eq(r3ring_load_map_in_force(load_feed.load, 2, 1, &map), -EINVAL);
	cr_expect_eq(r3ring_load_map_in_force(load_feed.load, 0, 0, &map), -ENOENT);
}
