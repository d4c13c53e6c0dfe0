/* SPDX-License-Identifier: Apache-2.0 */
/* Sums that windows and what is shown of them share: nobody writes what another still needs. */
#include "consumer/load/load.h"
#include "tests/unit/load_fixture.h"

#define MS 1000000ull
#define WINDOW 16u /* steps, in pieces of 2; of time likewise, in pieces of 10 ms */
#define STEP_MS 5u
#define PIECES 8u
#define EPOCH_STEPS 3u
#define ROWS 3u

static void open_windows(void)
{
	const struct r3ring_load_options options = {
		.size = sizeof(options), .window_steps = WINDOW, .window_ns = 80 * MS};

	load_open(&options);
}

TestSuite(load_pool, .init = open_windows, .fini = load_close);

static struct load_board *board(void)
{
	return load_board_now(load_feed.load->channel[0]);
}

static void next_step_is(uint64_t step)
{
	load_feed.epoch = step / EPOCH_STEPS;
	load_feed.ns = step * STEP_MS * MS;
}

static void feed_one(uint64_t step)
{
	next_step_is(step);
	feed_whole(&load_feed, step, ROWS, NULL, 0);
}

/* ---- what must be shown, step by step ------------------------------------------ */

static uint64_t piece_of(enum r3ring_load_over over, uint64_t step)
{
	return over == R3RING_LOAD_TIME ? step * STEP_MS / 10 : (step - 1) / 2;
}

static uint64_t first_of(enum r3ring_load_over over, uint64_t step, bool epoch_only)
{
	uint64_t first = step;

	while (first > 1 && piece_of(over, step) - piece_of(over, first - 1) < PIECES &&
	       (!epoch_only || (first - 1) / EPOCH_STEPS == step / EPOCH_STEPS))
		first--;
	return first;
}

static void expect_window(enum r3ring_load_over over, bool epoch_only)
{
	const struct r3ring_load_info *info;
	struct expected expected = {0};
	uint64_t epoch = R3RING_LOAD_ANY_EPOCH;

	cr_assert_eq(r3ring_load_read(load_feed.load, 0, over, epoch, snapshot), 0);
	info = r3ring_load_snapshot_info(snapshot);
	if (epoch_only)
		epoch = info->epoch;
	cr_assert_eq(r3ring_load_read(load_feed.load, 0, over, epoch, snapshot), 0);
	cr_assert_eq(info->from_step, first_of(over, info->to_step, epoch_only));
	for (uint64_t step = info->from_step; step <= info->to_step; step++)
		expect_rows(&expected, step, 0, ROWS);
	expect_info(info, &expected);
}

static void expect_windows(uint64_t step)
{
	cr_assert_eq(read_load(0)->to_step, step);
	expect_window(R3RING_LOAD_STEPS, false);
	expect_window(R3RING_LOAD_STEPS, true);
	expect_window(R3RING_LOAD_TIME, false);
	expect_window(R3RING_LOAD_TIME, true);
}

Test(load_pool, windows_begin_anew_though_all_places_are_being_read)
{
	feed_one(1);
	for (uint32_t i = 0; i < LOAD_IMAGES; i++)
		cr_assert(hold_enter(&board()->image[i].hold));
	for (uint64_t step = 2; step <= 41; step++) {
		feed_one(step);
		expect_windows(1);
	}
	for (uint32_t i = 0; i < LOAD_IMAGES; i++)
		hold_leave(&board()->image[i].hold);
	for (uint64_t step = 42; step <= 80; step++) {
		feed_one(step);
		expect_windows(step);
	}
}

Test(load_pool, windows_begin_anew_within_steps_that_are_counted_together)
{
	const struct r3ring_span open = load_draft(1, 0, 0, ROWS, R3RING_UNKNOWN_U32);
	const struct r3ring_span told = load_draft(1, 0, 0, ROWS, ROWS);

	for (uint64_t step = 1; step <= 60; step += 6) {
		next_step_is(step);
		feed_whole(&load_feed, step, ROWS, &open, 1);
		for (uint64_t behind = step + 1; behind < step + 6; behind++)
			feed_one(behind);
		feed_spans(&load_feed, step, &told, 1);
		expect_windows(step + 5);
	}
}

/* ---- what is being read ---------------------------------------------------------- */

struct reading {
	struct load_image *image; /* NULL: none is being read */
	uint32_t *copy[LOAD_WINDOWS + 2];
};

static const uint32_t *part_of(const struct load_image *image, uint32_t i)
{
	if (i < LOAD_WINDOWS)
		return image->all[i].counts;
	return i == LOAD_WINDOWS ? image->since.counts : image->sums.running;
}

static void begin_reading(struct reading *reading)
{
	size_t bytes = cells_sum_bytes(&board()->shape);
	struct load_image *image = &board()->image[board()->newest - 1];

	cr_assert(hold_enter(&image->hold));
	reading->image = image;
	for (uint32_t i = 0; i < LOAD_WINDOWS + 2; i++) {
		reading->copy[i] = cells_alloc(bytes);
		cr_assert_not_null(reading->copy[i]);
		memcpy(reading->copy[i], part_of(image, i), bytes);
	}
}

static void end_reading(struct reading *reading)
{
	for (uint32_t i = 0; i < LOAD_WINDOWS + 2; i++) {
		cr_assert_eq(memcmp(reading->copy[i], part_of(reading->image, i),
				    cells_sum_bytes(&board()->shape)),
			     0, "part %u changed while it was read", i);
		free(reading->copy[i]);
	}
	hold_leave(&reading->image->hold);
	reading->image = NULL;
}

Test(load_pool, what_is_being_read_stays_as_it_is_whatever_comes)
{
	struct reading reading[LOAD_IMAGES + 1] = {{NULL, {NULL}}};
	uint32_t seed = 7, many = sizeof(reading) / sizeof(*reading);
	uint64_t shown;

	for (uint64_t step = 1; step <= 3000; step++) {
		struct reading *one;

		feed_one(step);
		shown = read_load(0)->to_step;
		cr_assert_leq(shown, step);
		expect_windows(shown);
		seed = seed * 1664525 + 1013904223;
		one = &reading[(seed >> 16) % many];
		if ((seed >> 8) % 3)
			continue;
		if (one->image)
			end_reading(one);
		else
			begin_reading(one);
	}
	for (uint32_t i = 0; i < many; i++)
		if (reading[i].image)
			end_reading(&reading[i]);
	feed_one(3001);
	expect_windows(3001);
	cr_assert_leq(board()->pool.touched, board()->pool.blocks);
}

/* ---- blocks ----------------------------------------------------------------------- */

Test(load_pool, a_block_is_written_by_nobody_but_its_only_holder)
{
	struct load_pool pool = {0};
	uint32_t *first, *second;

	cr_assert_eq(load_pool_open(&pool, 16, 2), 0);
	first = load_pool_take(&pool);
	cr_assert_eq(load_pool_own(&pool, first), first);
	cr_assert_eq(load_pool_share(&pool, first), first);
	second = load_pool_own(&pool, first);
	cr_assert_neq(second, first);
	cr_assert_eq(load_pool_own(&pool, first), first, "the other one has it alone now");
	cr_assert_eq(load_pool_bytes(&pool), 2 * 16 * sizeof(*first));
	load_pool_leave(&pool, first);
	cr_assert_eq(load_pool_own(&pool, NULL), first, "it was free");
	load_pool_close(&pool);
}
