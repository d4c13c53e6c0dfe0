/* SPDX-License-Identifier: Apache-2.0 */
/* What a reader tells of records that it missed, where their numbers do not. */
#include <errno.h>

#include "tests/unit/load_fixture.h"

static void open_load(void)
{
	load_open(NULL);
	feed_whole(&load_feed, 1, 3, NULL, 0);
}

TestSuite(load_missed, .init = open_load, .fini = load_close);

static void tell_gap(void)
{
	cr_assert_eq(r3ring_load_gap(load_feed.load, load_feed.channel), 0);
}

static void next_generation(void)
{
	load_feed.generation++;
	load_feed.seq = 0;
	load_feed.units = 0;
	feed_schema(&load_feed);
}

static void expect_gaps(uint64_t gaps)
{
	const struct r3ring_load_info *info = read_load(R3RING_LOAD_MERGED);

	cr_expect_eq(info->accounts.gaps, gaps, "%lu", info->accounts.gaps);
}

Test(load_missed, a_generation_that_was_passed_over_is_a_gap_of_unknown_size)
{
	tell_gap();
	next_generation();
	feed_whole(&load_feed, 9, 3, NULL, 0);
	expect_gaps(1);
	cr_expect_eq(read_load(R3RING_LOAD_MERGED)->accounts.lost[R3RING_MISSING_GAP], 0);
}

Test(load_missed, a_generation_behind_one_that_was_read_is_none)
{
	next_generation();
	feed_whole(&load_feed, 2, 3, NULL, 0);
	expect_gaps(0);
}

Test(load_missed, what_the_numbers_tell_too_is_one_gap)
{
	tell_gap();
	load_feed.seq += 5;
	feed_whole(&load_feed, 2, 3, NULL, 0);
	expect_gaps(1);
	feed_whole(&load_feed, 3, 3, NULL, 0);
	expect_gaps(1);
}

Test(load_missed, of_no_channel_nothing_is_told)
{
	cr_expect_eq(r3ring_load_gap(load_feed.load, 7), -EINVAL);
}
