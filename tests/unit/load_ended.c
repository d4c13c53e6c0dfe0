/* SPDX-License-Identifier: Apache-2.0 */
/* Channels that have ended: out of the sum, and what all that ever was says of now. */
#include <errno.h>

#include "tests/unit/load_fixture.h"

static void open_load(void)
{
	load_open(NULL);
}

TestSuite(load_ended, .init = open_load, .fini = load_close);

Test(load_ended, a_channel_that_has_ended_is_in_the_sum_no_more)
{
	struct feed other = feed_load_channel(&load_feed, "test/1");
	struct expected expected = {0};

	feed_schema(&other);
	feed_whole(&load_feed, 1, 3, NULL, 0);
	feed_whole(&other, 1, 5, NULL, 0);
	feed_closed(&load_feed);
	expect_rows(&expected, 1, 0, 5);
	expect_load(&expected, R3RING_LOAD_MERGED);
}

Test(load_ended, a_channel_that_is_told_to_have_ended_counts_again_when_it_begins_anew)
{
	struct feed other = feed_load_channel(&load_feed, "test/1");
	struct expected expected = {0};

	feed_schema(&other);
	feed_whole(&other, 1, 5, NULL, 0);
	feed_whole(&load_feed, 1, 3, NULL, 0);
	expect_rows(&expected, 1, 0, 3);
	cr_assert_eq(r3ring_load_end(load_feed.load, 1), 0);
	cr_assert_eq(r3ring_load_end(load_feed.load, 1), 0, "told again");
	cr_assert_eq(r3ring_load_end(load_feed.load, 2), -EINVAL);
	expect_load(&expected, R3RING_LOAD_MERGED);
	cr_assert_eq(read_load(1)->steps, 1, "by itself it can be looked at");

	other.generation++;
	other.seq = 0;
	other.units = 0;
	feed_schema(&other);
	cr_assert_eq(read_load(R3RING_LOAD_MERGED)->channels, 2);
}

Test(load_ended, the_end_that_is_told_ends_an_open_step_too)
{
	feed_step(&load_feed, 1, 3, NULL, 0, NULL, 0);
	feed_layers(&load_feed, 1, 3, 0, FEED_LAYERS);
	cr_assert_eq(r3ring_load_read(load_feed.load, 0, R3RING_LOAD_STEPS, R3RING_LOAD_ANY_EPOCH,
				      snapshot),
		     -ENODATA);
	cr_assert_eq(r3ring_load_end(load_feed.load, 0), 0);
	cr_assert_eq(read_load(0)->steps, 1);
}

/* Feeds a channel the schema of its next generation, which has another number of experts. */
static int feed_other_model(const struct feed *feed)
{
	const struct r3ring_layer_entry layer = {0};
	const struct r3ring_view view = {
		.seq = 1, .generation = feed->generation + 1, .type = R3RING_SCHEMA};
	struct r3ring_record record = {.type = R3RING_SCHEMA};

	record.u.schema.head = (struct r3ring_schema_record){
		.layers = 1, .experts = LOAD_EXPERTS + 1, .top_k = FEED_TOP_K, .model = "small"};
	record.u.schema.layers = &layer;
	return r3ring_load_feed(feed->load, feed->channel, &view, &record);
}

Test(load_ended, a_channel_that_begins_anew_with_another_model_is_in_the_sum_no_more)
{
	struct feed other = feed_load_channel(&load_feed, "test/1");
	struct expected expected = {0};

	feed_schema(&other);
	feed_whole(&other, 1, 5, NULL, 0);
	feed_whole(&load_feed, 1, 3, NULL, 0);
	expect_rows(&expected, 1, 0, 3);
	cr_assert_eq(feed_other_model(&other), -EPROTO);
	expect_load(&expected, R3RING_LOAD_MERGED);
}

/* ---- all that ever was ------------------------------------------------------------- */

static const struct r3ring_load_info *read_ever(void)
{
	cr_assert_eq(r3ring_load_read(load_feed.load, R3RING_LOAD_MERGED, R3RING_LOAD_EVER,
				      R3RING_LOAD_ANY_EPOCH, snapshot),
		     0);
	return r3ring_load_snapshot_info(snapshot);
}

/* One step each, of one time and map each; the one that is older has ended. */
static void expect_ever_is_as_new_as_what_runs(struct feed *ended, struct feed *runs)
{
	const struct r3ring_load_info *info;

	ended->epoch = 4;
	ended->ns = 100;
	feed_whole(ended, 1, 5, NULL, 0);
	runs->epoch = 7;
	runs->ns = 900;
	feed_whole(runs, 1, 3, NULL, 0);
	cr_assert_eq(r3ring_load_end(ended->load, ended->channel), 0);
	info = read_ever();
	cr_expect_eq(info->channels, 2);
	cr_expect_eq(info->accounts.counted, (5 + 3) * FEED_LAYERS);
	cr_expect_eq(info->epoch, 7);
	cr_expect_eq(info->to_ns, 900);
	cr_expect_eq(info->from_ns, 100);
}

Test(load_ended, all_steps_ever_are_as_new_as_those_of_channels_that_run)
{
	struct feed other = feed_load_channel(&load_feed, "test/1");

	feed_schema(&other);
	expect_ever_is_as_new_as_what_runs(&load_feed, &other);
}

Test(load_ended, all_steps_ever_are_so_too_where_the_one_that_ended_is_the_last)
{
	struct feed other = feed_load_channel(&load_feed, "test/1");

	feed_schema(&other);
	expect_ever_is_as_new_as_what_runs(&other, &load_feed);
}

Test(load_ended, all_steps_ever_of_channels_that_have_all_ended_are_as_old_as_the_oldest)
{
	struct feed other = feed_load_channel(&load_feed, "test/1");

	feed_schema(&other);
	expect_ever_is_as_new_as_what_runs(&other, &load_feed);
	cr_assert_eq(r3ring_load_end(load_feed.load, 0), 0);
	cr_expect_eq(read_ever()->to_ns, 100);
}
