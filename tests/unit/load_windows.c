/* SPDX-License-Identifier: Apache-2.0 */
/* Windows of steps and of time, the average, and merging. */
#include <errno.h>
#include <time.h>

#include "tests/unit/load_fixture.h"

#define MS 1000000ull

static const struct r3ring_load_info *read_over(uint32_t channel, enum r3ring_load_over over,
						uint64_t epoch)
{
	cr_assert_eq(r3ring_load_read(load_feed.load, channel, over, epoch, snapshot), 0);
	return r3ring_load_snapshot_info(snapshot);
}

static void open_windows(void)
{
	const struct r3ring_load_options options = {
		.size = sizeof(options),
		.window_steps = 16,
		.window_ns = 80 * MS,
		.half_life = 1,
	};

	load_open(&options);
}

TestSuite(load_windows, .init = open_windows, .fini = load_close);

static void expect_steps(const struct r3ring_load_info *info, uint64_t from, uint64_t to)
{
	struct expected expected = {0};

	for (uint64_t step = from; step <= to; step++)
		expect_rows(&expected, step, 0, 3);
	expect_info(info, &expected);
	cr_assert_eq(info->steps, to - from + 1);
	cr_assert_eq(info->from_step, from);
	cr_assert_eq(info->to_step, to);
	cr_assert_eq(info->window_cut, 0);
}

Test(load_windows, a_window_of_steps_moves_on_by_an_eighth)
{
	for (uint64_t step = 1; step <= 50; step++) {
		/* Buckets of 2: the oldest leaves when a ninth begins. */
		uint64_t from;

		feed_whole(&load_feed, step, 3, NULL, 0);
		from = step <= 16 ? 1 : step - (step % 2 ? 14 : 15);
		expect_steps(read_over(0, R3RING_LOAD_STEPS, R3RING_LOAD_ANY_EPOCH), from, step);
	}
}

Test(load_windows, a_small_window_of_steps_is_exact)
{
	const struct r3ring_load_options options = {.size = sizeof(options), .window_steps = 3};

	load_close();
	load_open(&options);
	for (uint64_t step = 1; step <= 9; step++) {
		feed_whole(&load_feed, step, 3, NULL, 0);
		expect_steps(read_load(0), step < 3 ? 1 : step - 2, step);
	}
}

/* Of ids there are 2^21 a step; each of 7 buckets of 2^29 steps may have fewer than 2^29. */
Test(load_windows, a_window_with_more_ids_than_32_bits_count_says_that_it_is_cut)
{
	const struct r3ring_load_options all = {.size = sizeof(all), .window_steps = UINT32_MAX};
	const uint64_t bucket = 255, most = 7 * bucket;

	load_close();
	load_open(&all);
	for (uint64_t step = 1; step <= most + 1; step++) {
		cr_assert(step == 1 || !read_load(0)->window_cut);
		feed_step(&load_feed, step, R3RING_ROWS_MAX, NULL, 0, NULL, 0);
		feed_step_end(&load_feed, step, -1, 0);
	}
	cr_assert_eq(read_load(0)->window_cut, 1);
	cr_assert_eq(read_load(0)->steps, most + 1 - bucket);
	cr_assert_eq(read_over(R3RING_LOAD_MERGED, R3RING_LOAD_STEPS, 0)->window_cut, 1);
}

/* Of ids there are 2^21 a step: the last of a window's ninth bucket of them is the first of 2055. */
Test(load_windows, a_window_of_time_is_cut_until_what_left_it_early_would_have_left_it)
{
	const struct r3ring_load_info *info;

	for (uint64_t step = 1; step <= 8 * 255 + 1; step++) {
		load_feed.ns = 100 * MS;
		feed_step(&load_feed, step, R3RING_ROWS_MAX, NULL, 0, NULL, 0);
		feed_step_end(&load_feed, step, -1, 0);
	}
	info = read_over(0, R3RING_LOAD_TIME, R3RING_LOAD_ANY_EPOCH);
	cr_expect_eq(info->window_cut, 1);
	/* Buckets are of 10 ms; the one that left was of 100 ms. */
	load_feed.ns = 170 * MS;
	feed_whole(&load_feed, 3000, 3, NULL, 0);
	info = read_over(0, R3RING_LOAD_TIME, R3RING_LOAD_ANY_EPOCH);
	cr_expect_eq(info->window_cut, 1);
	load_feed.ns = 180 * MS;
	feed_whole(&load_feed, 3001, 3, NULL, 0);
	info = read_over(0, R3RING_LOAD_TIME, R3RING_LOAD_ANY_EPOCH);
	cr_expect_eq(info->window_cut, 0);
}

Test(load_windows, a_window_of_time_forgets_what_is_older)
{
	const struct r3ring_load_info *info;

	/* A step each 5 ms; buckets are of 10 ms, the window of 8 of them. */
	for (uint64_t step = 1; step <= 40; step++) {
		load_feed.ns = step * 5 * MS;
		feed_whole(&load_feed, step, 3, NULL, 0);
	}
	/* 200 ms is in bucket 20: it is of 130 ms to 200 ms. */
	info = read_over(0, R3RING_LOAD_TIME, R3RING_LOAD_ANY_EPOCH);
	expect_steps(info, 26, 40);
	cr_assert_eq(info->from_ns, 130 * MS);
	cr_assert_eq(info->to_ns, 200 * MS);
	/* After a pause only what came behind it. */
	load_feed.ns = 1000 * MS;
	feed_whole(&load_feed, 41, 3, NULL, 0);
	expect_steps(read_over(0, R3RING_LOAD_TIME, R3RING_LOAD_ANY_EPOCH), 41, 41);
}

Test(load_windows, the_average_weighs_a_step_half_of_the_next)
{
	struct expected expected = {0}, step[3];
	/* Weights 1/4, 1/2, 1 of 7/4. */
	const double weight[] = {1 / 7.0, 2 / 7.0, 4 / 7.0};

	memset(step, 0, sizeof(step));
	for (uint64_t i = 0; i < 3; i++) {
		feed_whole(&load_feed, i + 1, 3, NULL, 0);
		expect_rows(&step[i], i + 1, 0, 3);
		for (uint32_t layer = 0; layer < FEED_LAYERS; layer++) {
			expected.rows[layer] += weight[i] * step[i].rows[layer];
			for (uint32_t e = 0; e < LOAD_EXPERTS; e++)
				expected.counts[layer][e] += weight[i] * step[i].counts[layer][e];
		}
	}
	expect_info(read_over(0, R3RING_LOAD_AVERAGE, R3RING_LOAD_ANY_EPOCH), &expected);
	cr_assert_eq(r3ring_load_read(load_feed.load, 0, R3RING_LOAD_AVERAGE, 0, snapshot),
		     -EINVAL);
	cr_assert_eq(r3ring_load_snapshot_info(snapshot)->channels, 0);
}

Test(load_windows, a_snapshot_has_its_age)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	load_feed.ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec - 700 * MS;
	feed_whole(&load_feed, 1, 3, NULL, 0);
	cr_assert_geq(read_load(0)->age_ns, 700 * MS);
	cr_assert_lt(read_load(0)->age_ns, 60000 * MS);
}

/* ---- EPLB epochs ------------------------------------------------------------- */

/* Expert 0 has a second replica: GPU 0 holds 0 1 2 3 4, GPU 1 holds 5 6 7 0 and nothing. */
static const uint16_t first_map[LOAD_EXPERTS * 2] = {0, 8,      1, 0xFFFF, 2, 0xFFFF, 3, 0xFFFF,
						     4, 0xFFFF, 5, 0xFFFF, 6, 0xFFFF, 7, 0xFFFF};

Test(load_windows, a_step_counts_under_the_epoch_that_it_ran_with)
{
	load_feed.epoch = 1;
	for (uint64_t step = 1; step <= 5; step++)
		feed_whole(&load_feed, step, 3, NULL, 0);
	load_feed.epoch = 2;
	feed_whole(&load_feed, 6, 3, NULL, 0);
	feed_whole(&load_feed, 7, 3, NULL, 0);
	expect_steps(read_over(0, R3RING_LOAD_STEPS, R3RING_LOAD_ANY_EPOCH), 1, 7);
	expect_steps(read_over(0, R3RING_LOAD_STEPS, 2), 6, 7);
	expect_steps(read_over(0, R3RING_LOAD_TIME, 2), 6, 7);
	cr_assert_eq(read_over(0, R3RING_LOAD_STEPS, 2)->epoch, 2);
	cr_assert_eq(r3ring_load_read(load_feed.load, 0, R3RING_LOAD_STEPS, 1, snapshot), -ENODATA);
	/* And when all of the former epoch have left. */
	for (uint64_t step = 8; step <= 40; step++)
		feed_whole(&load_feed, step, 3, NULL, 0);
	expect_steps(read_over(0, R3RING_LOAD_STEPS, 2), 25, 40);
	expect_steps(read_over(0, R3RING_LOAD_STEPS, R3RING_LOAD_ANY_EPOCH), 25, 40);
}

Test(load_windows, changes_of_the_map_take_no_steps_out_of_a_window)
{
	for (uint64_t step = 1; step <= 50; step++) {
		/* Another map with each third step; step 48 is the newest one's first. */
		load_feed.epoch = step / 3;
		load_feed.ns = step * 5 * MS;
		feed_whole(&load_feed, step, 3, NULL, 0);
		expect_steps(read_over(0, R3RING_LOAD_STEPS, R3RING_LOAD_ANY_EPOCH),
			     step <= 16 ? 1 : step - (step % 2 ? 14 : 15), step);
		expect_steps(read_over(0, R3RING_LOAD_STEPS, step / 3), step / 3 ? step / 3 * 3 : 1,
			     step);
	}
	/* 250 ms is in bucket 25 of 10 ms: eight begin at 180 ms. */
	expect_steps(read_over(0, R3RING_LOAD_TIME, R3RING_LOAD_ANY_EPOCH), 36, 50);
	expect_steps(read_over(0, R3RING_LOAD_TIME, 16), 48, 50);
	cr_assert_eq(read_over(0, R3RING_LOAD_TIME, 16)->window_cut, 0);
}

Test(load_windows, an_epoch_that_comes_again_begins_anew)
{
	load_feed.epoch = 1;
	feed_whole(&load_feed, 1, 3, NULL, 0);
	load_feed.epoch = 2;
	feed_whole(&load_feed, 2, 3, NULL, 0);
	load_feed.epoch = 1;
	feed_whole(&load_feed, 3, 3, NULL, 0);
	expect_steps(read_over(0, R3RING_LOAD_STEPS, 1), 3, 3);
	expect_steps(read_over(0, R3RING_LOAD_STEPS, R3RING_LOAD_ANY_EPOCH), 1, 3);
}

Test(load_windows, with_its_map_load_is_that_of_physical_experts_and_gpus)
{
	struct r3ring_eplb_map *map = NULL;
	const struct r3ring_load_info *info;
	double physical[FEED_LAYERS * 10], gpu[FEED_LAYERS * 2];

	feed_map(&load_feed, 1, 2, 10, 2, first_map);
	load_feed.epoch = 1;
	feed_whole(&load_feed, 1, 3, NULL, 0);
	cr_assert_eq(r3ring_load_map(load_feed.load, 0, 1, &map), 0);
	cr_assert_eq(map->epoch, 1);
	info = read_over(0, R3RING_LOAD_STEPS, 1);
	r3ring_eplb_project(map, info->counts, physical, gpu);
	for (uint32_t layer = 0; layer < FEED_LAYERS; layer++) {
		const double *counts = info->counts + layer * LOAD_EXPERTS;

		cr_assert_float_eq(physical[layer * 10 + 8], counts[0] / 2, 1e-9);
		cr_assert_float_eq(gpu[layer * 2],
				   counts[0] / 2 + counts[1] + counts[2] + counts[3] + counts[4],
				   1e-9);
		cr_assert_float_eq(gpu[layer * 2] + gpu[layer * 2 + 1], 3 * FEED_TOP_K, 1e-9);
	}
	r3ring_eplb_map_free(map);
	cr_assert_eq(r3ring_load_map(load_feed.load, 0, 2, &map), -ENOENT);
}

/* GPU 0 holds what GPU 1 did, and the other way round. */
static const uint16_t turned_map[LOAD_EXPERTS * 2] = {5, 8,      6, 0xFFFF, 7, 0xFFFF, 0, 0xFFFF,
						      1, 0xFFFF, 2, 0xFFFF, 3, 0xFFFF, 4, 0xFFFF};

/* As who reads the newest only and was lapped: its SCHEMA, the first record, is not there. */
Test(load_windows, a_generation_whose_beginning_was_not_read_has_epochs_of_its_own)
{
	struct r3ring_eplb_map *map = NULL;

	load_feed.epoch = 1;
	feed_map(&load_feed, 1, 2, 10, 2, first_map);
	feed_whole(&load_feed, 1, 3, NULL, 0);
	cr_assert_eq(read_over(0, R3RING_LOAD_STEPS, 1)->steps, 1);
	load_feed.generation = 2;
	load_feed.seq = 500;
	feed_whole(&load_feed, 40, 3, NULL, 0);
	cr_assert_eq(r3ring_load_read(load_feed.load, 0, R3RING_LOAD_STEPS, 1, snapshot), -ENODATA);
	cr_assert_eq(read_load(0)->epoch, 0);
	cr_assert_eq(r3ring_load_map(load_feed.load, 0, 1, &map), -ENOENT);
	feed_keyframe(&load_feed, 0);
	feed_map(&load_feed, 1, 2, 10, 2, turned_map);
	feed_whole(&load_feed, 41, 5, NULL, 0);
	cr_assert_eq(r3ring_load_map(load_feed.load, 0, 1, &map), 0);
	cr_assert_eq(memcmp(map->map, turned_map, sizeof(turned_map)), 0);
	r3ring_eplb_map_free(map);
	cr_assert_eq(read_over(0, R3RING_LOAD_STEPS, 1)->from_step, 41);
	cr_assert_float_eq(r3ring_load_snapshot_info(snapshot)->rows[0], 5, 1e-9);
	cr_assert_eq(read_load(0)->steps, 2);
}

Test(load_windows, maps_of_a_former_generation_make_room_before_any_of_this_one)
{
	struct r3ring_eplb_map *map = NULL;

	for (uint64_t epoch = 11; epoch <= 14; epoch++)
		feed_map(&load_feed, epoch, 2, 10, 2, first_map);
	load_feed.generation = 2;
	load_feed.seq = 0;
	feed_schema(&load_feed);
	for (uint64_t epoch = 1; epoch <= 2; epoch++)
		feed_map(&load_feed, epoch, 2, 10, 2, first_map);
	for (uint64_t epoch = 1; epoch <= 2; epoch++) {
		cr_assert_eq(r3ring_load_map(load_feed.load, 0, epoch, &map), 0);
		r3ring_eplb_map_free(map);
	}
	cr_assert_eq(r3ring_load_map(load_feed.load, 0, 14, &map), -ENOENT);
}

Test(load_windows, steps_without_a_map_are_those_of_their_generation_alone)
{
	feed_whole(&load_feed, 1, 3, NULL, 0);
	feed_whole(&load_feed, 2, 3, NULL, 0);
	load_feed.generation = 2;
	load_feed.seq = 0;
	load_feed.units = 0;
	feed_schema(&load_feed);
	feed_whole(&load_feed, 1, 3, NULL, 0);
	cr_expect_eq(read_over(0, R3RING_LOAD_STEPS, 0)->steps, 1);
	cr_expect_eq(read_over(0, R3RING_LOAD_STEPS, R3RING_LOAD_ANY_EPOCH)->steps, 3);
}

/* As a record that nobody has checked. */
static void feed_map_head(uint32_t experts, uint32_t gpus)
{
	const struct r3ring_view view = {
		.seq = ++load_feed.seq, .units = load_feed.units, .generation = 1};
	struct r3ring_record record = {.type = R3RING_EPLB};

	record.u.eplb.head = (struct r3ring_eplb_record){.epoch = 1,
							 .layers = 1,
							 .experts = experts,
							 .replicas = 2,
							 .physical = 10,
							 .gpus = gpus};
	record.u.eplb.map = first_map;
	cr_assert_eq(r3ring_load_feed(load_feed.load, 0, &view, &record), 0);
}

Test(load_windows, a_map_whose_sizes_do_not_fit_is_refused)
{
	struct r3ring_load_stats stats;

	feed_map_head(LOAD_EXPERTS, 3);
	feed_map_head(LOAD_EXPERTS / 2, 2);
	r3ring_load_get_stats(load_feed.load, &stats);
	cr_expect_eq(stats.maps_refused, 2);
}

Test(load_windows, the_newest_four_maps_are_kept_and_a_map_with_contradictions_is_not)
{
	uint16_t wrong[LOAD_EXPERTS * 2];
	struct r3ring_eplb_map *map = NULL;
	struct r3ring_load_stats stats;

	for (uint64_t epoch = 1; epoch <= 5; epoch++)
		feed_map(&load_feed, epoch, 2, 10, 2, first_map);
	memcpy(wrong, first_map, sizeof(wrong));
	wrong[2] = 8;
	feed_map(&load_feed, 6, 2, 10, 2, wrong);
	cr_assert_eq(r3ring_load_map(load_feed.load, 0, 1, &map), -ENOENT);
	cr_assert_eq(r3ring_load_map(load_feed.load, 0, 6, &map), -ENOENT);
	for (uint64_t epoch = 2; epoch <= 5; epoch++) {
		cr_assert_eq(r3ring_load_map(load_feed.load, 0, epoch, &map), 0);
		r3ring_eplb_map_free(map);
	}
	r3ring_load_get_stats(load_feed.load, &stats);
	cr_assert_eq(stats.maps, 5);
	cr_assert_eq(stats.maps_refused, 1);
}

/* ---- several channels ----------------------------------------------------------- */

Test(load_windows, ranks_of_the_same_layers_are_added)
{
	struct feed other = feed_load_channel(&load_feed, "test/1");
	struct expected expected = {0};
	const struct r3ring_load_info *info;

	feed_schema(&other);
	load_feed.ns = 50 * MS;
	other.ns = 40 * MS;
	feed_whole(&load_feed, 1, 3, NULL, 0);
	feed_whole(&other, 2, 5, NULL, 0);
	expect_rows(&expected, 1, 0, 3);
	expect_rows(&expected, 2, 0, 5);
	info = read_load(R3RING_LOAD_MERGED);
	expect_info(info, &expected);
	cr_assert_eq(info->channels, 2);
	cr_assert_eq(info->accounts.counted, 8 * FEED_LAYERS);
	cr_assert_eq(info->to_ns, 40 * MS, "it is as old as its oldest part");
}

Test(load_windows, shards_of_a_step_are_added_row_by_row)
{
	struct feed other = feed_load_channel(&load_feed, "test/1");
	const struct r3ring_span span = load_span(1, 0, 0, 8);
	struct expected expected = {0};

	feed_schema(&other);
	feed_begin(&load_feed, 1, "a", 8, 0);
	feed_begin(&other, 1, "a", 8, 0);
	load_feed.row_end = 4;
	other.row_begin = 4;
	other.row_end = 8;
	feed_whole(&other, 1, 8, &span, 1);
	feed_whole(&load_feed, 1, 8, &span, 1);
	expect_rows(&expected, 1, 0, 8);
	expect_load(&expected, R3RING_LOAD_MERGED);
}

Test(load_windows, pipeline_stages_stand_beside_one_another_in_the_models_order)
{
	struct feed last = feed_load_channel(&load_feed, "test/1");
	struct feed middle = feed_load_channel(&load_feed, "test/2");
	const struct r3ring_load_info *info;

	last.first_layer = 2 * FEED_LAYERS;
	middle.first_layer = FEED_LAYERS;
	feed_schema(&last);
	feed_schema(&middle);
	feed_whole(&load_feed, 1, 3, NULL, 0);
	feed_whole(&last, 1, 5, NULL, 0);
	feed_whole(&middle, 1, 4, NULL, 0);
	info = read_load(R3RING_LOAD_MERGED);
	cr_assert_eq(info->layers, 3 * FEED_LAYERS);
	for (uint32_t layer = 0; layer < info->layers; layer++) {
		uint32_t rows = 3 + layer / FEED_LAYERS;
		double ids = 0;

		cr_assert_eq(info->layer[layer].layer_id, (int32_t)layer);
		cr_assert_float_eq(info->rows[layer], rows, 1e-9);
		for (uint32_t e = 0; e < LOAD_EXPERTS; e++)
			ids += info->counts[layer * LOAD_EXPERTS + e];
		cr_assert_float_eq(ids, rows * FEED_TOP_K, 1e-9);
	}
}

Test(load_windows, failure_47_copies_of_a_primarys_rows_are_not_counted_again)
{
	struct feed copy = feed_load_channel(&load_feed, "test/1");
	struct expected expected = {0};

	copy.replica = 1;
	feed_schema(&copy);
	feed_whole(&load_feed, 1, 3, NULL, 0);
	feed_whole(&copy, 1, 3, NULL, 0);
	expect_rows(&expected, 1, 0, 3);
	expect_load(&expected, R3RING_LOAD_MERGED);
}

/* ---- all that ever was ------------------------------------------------------------- */

Test(load_windows, all_steps_ever_are_counted_whatever_left_the_windows)
{
	struct expected expected = {0};
	const struct r3ring_load_info *info;

	load_feed.lost_cells = 7;
	for (uint64_t step = 1; step <= 60; step++) {
		/* More epochs than a window has buckets. */
		load_feed.epoch = step / 3 + 1;
		feed_whole(&load_feed, step, 3, NULL, 0);
		expect_rows(&expected, step, 0, 3);
		if (step % 20 == 0)
			feed_lost(&load_feed, step + 1, step + 1, R3RING_CAUSE_RING_FULL, 0);
	}
	info = read_over(R3RING_LOAD_MERGED, R3RING_LOAD_EVER, R3RING_LOAD_ANY_EPOCH);
	expect_info(info, &expected);
	cr_assert_eq(info->steps, 60);
	cr_assert_eq(info->accounts.counted, 60 * 3 * FEED_LAYERS);
	cr_assert_eq(info->accounts.lost[R3RING_CAUSE_RING_FULL], 3 * 7);
	cr_assert_eq(r3ring_load_read(load_feed.load, 0, R3RING_LOAD_EVER, 1, snapshot), -EINVAL);
}

Test(load_windows, all_steps_ever_are_those_of_ended_channels_and_of_former_layers_too)
{
	struct feed other = feed_load_channel(&load_feed, "test/1");
	const struct r3ring_load_info *info;

	feed_schema(&other);
	feed_whole(&load_feed, 1, 3, NULL, 0);
	feed_whole(&other, 1, 5, NULL, 0);
	feed_closed(&other);
	/* Again, with other layers. */
	other.generation++;
	other.seq = 0;
	other.units = 0;
	other.first_layer = FEED_LAYERS;
	feed_schema(&other);
	feed_whole(&other, 1, 4, NULL, 0);
	info = read_over(R3RING_LOAD_MERGED, R3RING_LOAD_EVER, R3RING_LOAD_ANY_EPOCH);
	cr_assert_eq(info->layers, 2 * FEED_LAYERS);
	for (uint32_t layer = 0; layer < info->layers; layer++)
		cr_assert_float_eq(info->rows[layer], layer < FEED_LAYERS ? 8 : 4, 1e-9);
	cr_assert_eq(info->channels, 2);
	cr_assert_eq(info->steps, 2, "of one channel at most");
	cr_assert_eq(info->accounts.counted, 12 * FEED_LAYERS);
}
