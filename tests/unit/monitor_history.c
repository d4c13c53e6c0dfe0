/* SPDX-License-Identifier: Apache-2.0 */
/* What is kept of the past: counts in a byte, differences of loads, frames. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "monitor/code8.h"
#include "monitor/history.h"
#include "monitor/since.h"
#include "tests/unit/load_fixture.h"

/* ---- a count in a byte ------------------------------------------------------ */

Test(monitor_code8, counts_have_the_codes_of_the_table)
{
	const struct {
		double value;
		uint8_t code;
		uint32_t told;
	} table[] = {
		{0, 0, 0},      {0.4, 0, 0},      {0.5, 1, 1},           {31, 31, 31},
		{32, 32, 32},   {33, 33, 34},     {34, 33, 34},          {62, 47, 62},
		{63, 48, 64},   {64, 48, 64},     {100, 57, 100},        {101, 57, 100},
		{102, 58, 104}, {1000, 111, 992}, {507904, 255, 507904}, {1e12, 255, 507904},
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
		cr_expect_eq(code8_of(table[i].value), table[i].code, "%g: %u", table[i].value,
			     code8_of(table[i].value));
		cr_expect_eq(code8_value(table[i].code), table[i].told, "%u: %u", table[i].code,
			     code8_value(table[i].code));
	}
}

Test(monitor_code8, what_a_code_says_is_within_a_32nd_of_the_count)
{
	for (uint32_t value = 1; value <= CODE8_MAX; value++) {
		double told = code8_value(code8_of(value));

		cr_assert_leq(fabs(told - value), value / 32.0, "%u: %g", value, told);
	}
}

Test(monitor_code8, counts_beyond_the_largest_code_are_told_in_larger_units)
{
	const double values[] = {4.0 * CODE8_MAX, 8, 3, 0};
	uint8_t codes[4];

	cr_assert_eq(code8_encode(values, 4, codes), 4);
	cr_expect_eq(code8_value(codes[0]), CODE8_MAX);
	cr_expect_eq(code8_value(codes[1]), 2);
	cr_expect_eq(code8_value(codes[2]), 1);
	cr_expect_eq(code8_value(codes[3]), 0);
	cr_assert_eq(code8_encode(values + 1, 3, codes), 1);
}

/* ---- what was counted since -------------------------------------------------- */

static struct since *since;

static void start_load(void)
{
	load_open(NULL);
}

static void end_load(void)
{
	since_destroy(since);
	load_close();
}

TestSuite(monitor_since, .init = start_load, .fini = end_load);

static const struct r3ring_load_info *read_since(bool again)
{
	const struct r3ring_load_info *info;

	cr_assert_eq(since_read(since, again, &info), 0);
	return info;
}

Test(monitor_since, what_was_counted_before_is_left_out_and_what_came_after_is_exact)
{
	struct expected expected = {0}, none = {0};
	const struct r3ring_load_info *info;

	feed_whole(&load_feed, 1, 5, NULL, 0);
	cr_assert_eq(since_create(&since, load_feed.load, R3RING_LOAD_MERGED, SINCE_NOW), 0);
	expect_info(read_since(false), &none);
	load_feed.lost_cells = 7;
	feed_whole(&load_feed, 2, 4, NULL, 0);
	expect_rows(&expected, 2, 0, 4);
	feed_lost(&load_feed, 3, 3, R3RING_CAUSE_RING_FULL, 0);
	feed_whole(&load_feed, 4, 6, NULL, 0);
	expect_rows(&expected, 4, 0, 6);
	info = read_since(false);
	expect_info(info, &expected);
	cr_expect_eq(info->accounts.counted, 10 * FEED_LAYERS);
	cr_expect_eq(info->accounts.lost[R3RING_CAUSE_RING_FULL], 7);
}

Test(monitor_since, it_begins_again_where_that_is_asked_for)
{
	struct expected first = {0}, second = {0};

	cr_assert_eq(since_create(&since, load_feed.load, 0, SINCE_NOW), 0);
	feed_whole(&load_feed, 1, 5, NULL, 0);
	expect_rows(&first, 1, 0, 5);
	expect_info(read_since(true), &first);
	feed_whole(&load_feed, 2, 3, NULL, 0);
	expect_rows(&second, 2, 0, 3);
	expect_info(read_since(true), &second);
}

Test(monitor_since, where_nothing_had_been_counted_everything_is_new)
{
	const struct r3ring_load_info *info;
	struct expected expected = {0};

	cr_assert_eq(since_create(&since, load_feed.load, R3RING_LOAD_MERGED, SINCE_NOW), 0);
	cr_assert_eq(since_read(since, false, &info), -ENODATA);
	feed_whole(&load_feed, 1, 5, NULL, 0);
	expect_rows(&expected, 1, 0, 5);
	expect_info(read_since(false), &expected);
}

Test(monitor_since, layers_that_join_begin_it_anew_with_nothing)
{
	struct feed stage = feed_load_channel(&load_feed, "test/1");
	const struct r3ring_load_info *info;

	feed_whole(&load_feed, 1, 5, NULL, 0);
	cr_assert_eq(since_create(&since, load_feed.load, R3RING_LOAD_MERGED, SINCE_NOW), 0);
	stage.first_layer = FEED_LAYERS;
	feed_schema(&stage);
	feed_whole(&stage, 1, 4, NULL, 0);
	info = read_since(false);
	cr_assert_eq(info->layers, 2 * FEED_LAYERS);
	for (uint32_t i = 0; i < info->layers; i++)
		cr_expect_eq(info->rows[i], 0);
	feed_whole(&stage, 2, 3, NULL, 0);
	info = read_since(false);
	cr_expect_eq(info->rows[0], 0);
	cr_expect_eq(info->rows[FEED_LAYERS], 3);
}

/* ---- frames ------------------------------------------------------------------ */

enum { LAYERS = 2, EXPERTS = 4, CELLS = LAYERS * EXPERTS };

static const struct r3ring_layer_entry layers[LAYERS] = {{.layer_id = 3}, {.layer_id = 7}};
static struct history *history;

static void end_history(void)
{
	history_destroy(history);
}

TestSuite(monitor_history, .fini = end_history);

/* A frame whose first layer has @hot tokens on expert 1 and as many rows. */
static void add(double hot, int64_t time_ms)
{
	const double counts[CELLS] = {0, hot, 0, 0, 1, 1, 1, 1}, rows[LAYERS] = {hot, 2};
	const struct r3ring_load_info info = {
		.layers = LAYERS,
		.experts = EXPERTS,
		.layer = layers,
		.counts = counts,
		.rows = rows,
		.accounts = {.counted = 5, .lost = {[R3RING_CAUSE_RING_FULL] = 2}},
	};

	cr_assert_eq(history_add(history, &info, NULL, time_ms), 0);
}

Test(monitor_history, a_frame_says_how_uneven_the_worst_layer_was_and_what_was_lost)
{
	struct history_entry entry;
	struct history_picture picture;

	cr_assert_eq(history_create(&history, 1 << 20), 0);
	add(40, 1234);
	cr_assert_eq(history_list(history, 0, &entry, 1), 1);
	cr_expect_eq(entry.id, 1);
	cr_expect_eq(entry.time_ms, 1234);
	cr_expect_eq(entry.balance, 4, "all on one of four");
	cr_expect_eq(entry.worst, 3, "the layer's number in the model");
	cr_expect_eq(entry.rows, 40);
	cr_expect_eq(entry.lost, 2);
	cr_expect_eq(entry.counted, 5);
	cr_assert_eq(history_get(history, 1, &picture), 0);
	cr_expect_eq(picture.layers, LAYERS);
	cr_expect_eq(picture.layer[1], 7);
	cr_expect_eq(picture.unit, 1);
	cr_expect_arr_eq(picture.codes, ((uint8_t[]){0, 36, 0, 0, 1, 1, 1, 1}), CELLS);
	history_picture_free(&picture);
}

Test(monitor_history, a_frame_keeps_what_an_eplb_map_made_of_its_load)
{
	const double counts[CELLS] = {6, 0, 0, 2, 1, 1, 1, 1}, rows[LAYERS] = {8, 4};
	const struct r3ring_load_info info = {.layers = LAYERS,
					      .experts = EXPERTS,
					      .layer = layers,
					      .counts = counts,
					      .rows = rows};
	struct r3ring_eplb_map *map;
	struct history_picture picture;
	struct gpus *gpus;

	cr_assert_eq(r3ring_eplb_map_plain(&map, LAYERS, EXPERTS, 2, NULL), 0);
	map->epoch = 9;
	gpus = gpus_measure(map, &info);
	cr_assert(gpus);
	cr_assert_eq(history_create(&history, 3 * CELLS), 0);
	cr_assert_eq(history_add(history, &info, gpus, 1), 0);
	free(gpus);
	add(1, 2);
	cr_assert_eq(history_get(history, 1, &picture), 0);
	cr_assert(picture.gpus);
	cr_expect_eq(picture.gpus->epoch, 9);
	cr_expect_eq(picture.gpus->count, 2);
	cr_expect_eq(picture.gpus->load[0], 6 + 2);
	cr_expect_eq(picture.gpus->load[1], 2 + 2);
	cr_expect_eq(picture.gpus->worst, 1.5, "six of eight, where four is even");
	cr_expect_eq(picture.gpus->worst_layer, 3);
	cr_expect_eq(picture.gpus->worst_gpu, 0);
	history_picture_free(&picture);
	cr_assert_eq(history_get(history, 2, &picture), 0);
	cr_expect_null(picture.gpus, "none was known then");
	history_picture_free(&picture);
	r3ring_eplb_map_free(map);
}

/* Of four experts the first two are the first GPU's. */
static bool is_uneven(double first, double second)
{
	const double counts[CELLS] = {first / 2, first / 2, second / 2, second / 2, 9, 9, 9, 9};
	const struct r3ring_load_info info = {
		.layers = LAYERS, .experts = EXPERTS, .layer = layers, .counts = counts};
	struct r3ring_eplb_map *map;
	struct gpus *gpus;
	bool uneven;

	cr_assert_eq(r3ring_eplb_map_plain(&map, LAYERS, EXPERTS, 2, NULL), 0);
	gpus = gpus_measure(map, &info);
	cr_assert(gpus);
	uneven = gpus_uneven(gpus);
	free(gpus);
	r3ring_eplb_map_free(map);
	return uneven;
}

Test(monitor_history, gpus_are_uneven_beyond_their_own_limit_and_beyond_chance)
{
	cr_expect_not(is_uneven(1500, 500), "at 1.5 they are even still");
	cr_expect(is_uneven(1501, 499));
	cr_expect_not(is_uneven(8, 2), "1.6 of ten tokens may be by chance");
}

Test(monitor_history, a_load_of_other_layers_than_the_map_s_is_not_measured)
{
	const double counts[CELLS] = {1};
	const struct r3ring_load_info info = {
		.layers = LAYERS, .experts = EXPERTS, .layer = layers, .counts = counts};
	struct r3ring_eplb_map *map;

	cr_assert_eq(r3ring_eplb_map_plain(&map, LAYERS - 1, EXPERTS, 2, NULL), 0);
	cr_expect_null(gpus_measure(map, &info));
	cr_expect_null(gpus_measure(NULL, &info));
	r3ring_eplb_map_free(map);
}

Test(monitor_history, the_oldest_frame_leaves_when_there_is_no_room_for_it)
{
	struct history_entry entries[8];
	struct history_picture picture;

	cr_assert_eq(history_create(&history, 3 * CELLS), 0);
	for (int i = 1; i <= 5; i++)
		add(i, i);
	cr_assert_eq(history_list(history, 0, entries, 8), 3);
	for (uint32_t i = 0; i < 3; i++) {
		cr_expect_eq(entries[i].id, i + 3);
		cr_assert_eq(history_get(history, i + 3, &picture), 0);
		cr_expect_eq(picture.codes[1], i + 3);
		history_picture_free(&picture);
	}
	cr_expect_eq(history_get(history, 2, &picture), -ENOENT);
	cr_expect_eq(history_get(history, 6, &picture), -ENOENT);
	cr_expect_eq(history_get(history, 0, &picture), -ENOENT);
	cr_expect_eq(history_list(history, 4, entries, 8), 1, "only what is behind");
	cr_expect_eq(history_list(history, 0, entries, 2), 2, "the oldest first");
	cr_expect_eq(entries[0].id, 3);
	cr_expect_eq(history_list(history, 99, entries, 8), 0);
}

Test(monitor_history, there_are_never_more_frames_than_the_most_whatever_the_room)
{
	static struct history_entry entries[HISTORY_FRAMES_MAX + 2];

	cr_assert_eq(history_create(&history, 1 << 20), 0);
	for (uint32_t i = 0; i < HISTORY_FRAMES_MAX + 2; i++)
		add(1, i);
	cr_expect_eq(history_list(history, 0, entries, HISTORY_FRAMES_MAX + 2), HISTORY_FRAMES_MAX);
}

Test(monitor_history, a_frame_of_another_model_takes_the_place_of_all_before)
{
	const struct r3ring_layer_entry other[LAYERS] = {{.layer_id = 3}, {.layer_id = 8}};
	const double counts[CELLS] = {0}, rows[LAYERS] = {0};
	const struct r3ring_load_info info = {.layers = LAYERS,
					      .experts = EXPERTS,
					      .layer = other,
					      .counts = counts,
					      .rows = rows};
	struct history_entry entries[4];

	cr_assert_eq(history_create(&history, 1 << 20), 0);
	add(1, 1);
	cr_assert_eq(history_add(history, &info, NULL, 2), 0);
	cr_assert_eq(history_list(history, 0, entries, 4), 1);
	cr_expect_eq(entries[0].id, 2, "numbers go on");
	cr_expect_eq(entries[0].balance, 0, "nothing ran");
}
