/* SPDX-License-Identifier: Apache-2.0 */
/* Sums over a daemon's pictures never go back. */
#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "monitor/daemon_totals.h"

static struct daemon_totals *totals;
static struct picture_channel channels[TOTALS_CHANNELS_MAX + 2];
static struct daemon_picture picture = {.channels = channels, .channel_count = 1};

static void start(void)
{
	totals = calloc(1, sizeof(*totals));
	cr_assert(totals);
	channels[0] = (struct picture_channel){.name = "a/0", .uuid = "first", .generation = 1};
}

static void finish(void)
{
	free(totals);
}

TestSuite(daemon_totals, .init = start, .fini = finish);

static const struct totals_channel *see(uint64_t steps, uint64_t lost)
{
	channels[0].steps = steps;
	channels[0].lost.steps[R3RING_CAUSE_RING_FULL] = lost;
	daemon_totals_take(totals, &picture);
	return &totals->channel[0];
}

static void expect(uint64_t steps, uint64_t lost)
{
	cr_expect_eq(totals->channel[0].sum[TOTAL_STEPS], steps);
	cr_expect_eq(totals->channel[0].sum[TOTAL_LOST_STEPS + R3RING_CAUSE_RING_FULL], lost);
}

Test(daemon_totals, the_first_picture_counts_whole_and_later_ones_by_what_is_more)
{
	see(10, 2);
	expect(10, 2);
	see(10, 2);
	see(15, 3);
	expect(15, 3);
	cr_expect_eq(totals->channels, 1);
}

Test(daemon_totals, another_generation_is_added)
{
	see(10, 2);
	channels[0].generation = 2;
	snprintf(channels[0].uuid, sizeof(channels[0].uuid), "second");
	/* More than before, and all of it new. */
	see(30, 5);
	expect(40, 7);
	see(31, 5);
	expect(41, 7);
}

Test(daemon_totals, the_same_generation_under_another_daemon_goes_on)
{
	see(10, 2);
	channels[0].waits_for_readers = 7;
	see(12, 2);
	/* What the daemon itself counts begins anew. */
	channels[0].waits_for_readers = 3;
	see(14, 4);
	expect(14, 4);
	cr_expect_eq(totals->channel[0].sum[TOTAL_READER_WAITS], 10);
}

Test(daemon_totals, a_daemon_that_is_gone_changes_nothing)
{
	see(10, 2);
	picture.state = PICTURE_NO_DAEMON;
	picture.channel_count = 0;
	see(0, 0);
	expect(10, 2);
	picture.state = PICTURE_LIVE;
	picture.channel_count = 1;
	see(11, 2);
	expect(11, 2);
}

Test(daemon_totals, channels_beyond_the_room_are_left_out_and_counted)
{
	for (uint32_t i = 0; i < TOTALS_CHANNELS_MAX + 2; i++)
		snprintf(channels[i].name, sizeof(channels[i].name), "many/%u", i);
	picture.channel_count = TOTALS_CHANNELS_MAX + 2;
	daemon_totals_take(totals, &picture);
	cr_expect_eq(totals->channels, TOTALS_CHANNELS_MAX);
	cr_expect_eq(totals->left_out, 2);
	/* One goes, another takes its place. */
	snprintf(channels[0].name, sizeof(channels[0].name), "new/0");
	channels[0].steps = 5;
	daemon_totals_take(totals, &picture);
	cr_expect_eq(totals->left_out, 2);
	cr_expect_str_eq(totals->channel[0].name, "new/0");
	cr_expect_eq(totals->channel[0].sum[TOTAL_STEPS], 5);
}
