/* SPDX-License-Identifier: Apache-2.0 */
/* What is load, and what is left out. */
#include <errno.h>

#include "tests/unit/load_fixture.h"

static void open_load(void)
{
	load_open(NULL);
}

TestSuite(load_counts, .init = open_load, .fini = load_close);

Test(load_counts, a_step_counts_as_a_whole_and_only_once_it_has_ended)
{
	struct expected expected = {0};
	const struct r3ring_load_info *info;

	feed_step(&load_feed, 1, 5, NULL, 0, NULL, 0);
	feed_layers(&load_feed, 1, 5, 0, FEED_LAYERS);
	cr_assert_eq(r3ring_load_read(load_feed.load, 0, R3RING_LOAD_STEPS, R3RING_LOAD_ANY_EPOCH,
				      snapshot),
		     -ENODATA);
	feed_step_end(&load_feed, 1, 0, R3RING_CAUSE_NONE);
	expect_rows(&expected, 1, 0, 5);
	expect_load(&expected, 0);
	feed_step(&load_feed, 2, 7, NULL, 0, NULL, 0);
	feed_layers(&load_feed, 2, 7, 0, 2);
	expect_load(&expected, 0);
	feed_layers(&load_feed, 2, 7, 2, 3);
	feed_step_end(&load_feed, 2, 0, R3RING_CAUSE_NONE);
	expect_rows(&expected, 2, 0, 7);
	info = read_load(0);
	expect_info(info, &expected);
	cr_assert_eq(info->steps, 2);
	cr_assert_eq(info->from_step, 1);
	cr_assert_eq(info->to_step, 2);
	cr_assert_eq(info->accounts.counted, 12 * FEED_LAYERS);
}

Test(load_counts, a_step_ends_with_the_next_one_where_its_end_was_not_seen)
{
	struct expected expected = {0};

	feed_step(&load_feed, 1, 5, NULL, 0, NULL, 0);
	feed_layers(&load_feed, 1, 5, 0, FEED_LAYERS);
	feed_step(&load_feed, 2, 5, NULL, 0, NULL, 0);
	expect_rows(&expected, 1, 0, 5);
	expect_load(&expected, 0);
}

Test(load_counts, failure_28_warm_up_and_padding_are_not_load)
{
	struct expected expected = {0};
	const struct r3ring_load_info *info;

	feed_whole(&load_feed, 1, 4, NULL, 0);
	load_feed.flags = R3RING_STEP_WARMUP;
	feed_whole(&load_feed, 2, 6, NULL, 0);
	load_feed.flags = 0;
	load_feed.padding = 3;
	feed_whole(&load_feed, 3, 6, NULL, 0);
	expect_rows(&expected, 1, 0, 4);
	expect_rows(&expected, 3, 0, 6);
	info = read_load(0);
	expect_info(info, &expected);
	cr_assert_eq(info->steps, 2);
	cr_assert_eq(info->accounts.left_out[R3RING_LOAD_WARMUP], 6 * FEED_LAYERS);
	cr_assert_eq(info->accounts.left_out[R3RING_LOAD_PADDING], 3 * FEED_LAYERS);
}

/* ---- ids that are none -------------------------------------------------------- */

static uint16_t stranger(const struct feed *feed, uint64_t step, uint32_t row, uint32_t layer,
			 uint32_t k)
{
	(void)feed;
	(void)step;
	(void)layer;
	if (!k)
		return 3;
	return row ? (uint16_t)R3RING_MISSING : LOAD_EXPERTS;
}

Test(load_counts, failure_5_an_id_that_is_no_expert_is_counted_apart)
{
	const struct r3ring_load_info *info;

	load_feed.id = stranger;
	feed_whole(&load_feed, 1, 4, NULL, 0);
	info = read_load(0);
	for (uint32_t layer = 0; layer < FEED_LAYERS; layer++) {
		for (uint32_t e = 0; e < LOAD_EXPERTS; e++)
			cr_assert_float_eq(info->counts[layer * LOAD_EXPERTS + e], e == 3 ? 4 : 0,
					   1e-9);
		cr_assert_float_eq(info->no_expert[layer], 4, 1e-9);
		cr_assert_float_eq(info->rows[layer], 4, 1e-9);
	}
}

Test(load_counts, the_average_has_them_apart_too)
{
	const struct r3ring_load_info *info;

	load_feed.id = stranger;
	feed_whole(&load_feed, 1, 4, NULL, 0);
	cr_assert_eq(r3ring_load_read(load_feed.load, 0, R3RING_LOAD_AVERAGE, R3RING_LOAD_ANY_EPOCH,
				      snapshot),
		     0);
	info = r3ring_load_snapshot_info(snapshot);
	for (uint32_t layer = 0; layer < FEED_LAYERS; layer++)
		cr_expect_float_eq(info->no_expert[layer], 4, 1e-6);
}

Test(load_counts, a_row_that_several_spans_claim_is_load_once)
{
	const struct r3ring_span plain[] = {load_span(1, 0, 0, 4), load_span(2, 0, 2, 4)};
	const struct r3ring_span drafts[] = {load_span(3, 0, 0, 4),
					     load_draft(4, 0, 0, 4, R3RING_UNKNOWN_U32),
					     load_draft(5, 0, 2, 2, R3RING_UNKNOWN_U32)};
	const struct r3ring_span told[] = {load_draft(4, 0, 0, 4, 4), load_draft(5, 0, 2, 2, 2)};
	struct expected expected = {0};

	feed_whole(&load_feed, 1, 6, plain, 2);
	expect_rows(&expected, 1, 0, 6);
	feed_whole(&load_feed, 2, 4, drafts, 3);
	feed_spans(&load_feed, 2, told, 2);
	expect_rows(&expected, 2, 0, 4);
	expect_load(&expected, 0);
}
