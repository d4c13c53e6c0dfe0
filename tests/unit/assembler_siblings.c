/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of one text id that live at a time on one channel: which of them goes on nobody can tell. */
#include "tests/unit/key_feed.h"

static struct feed channel;

static void open_channel(void)
{
	feed_create(&channel, NULL);
	feed_schema(&channel);
}

static void close_channel(void)
{
	feed_destroy(&channel);
}

TestSuite(assembler_siblings, .init = open_channel, .fini = close_channel);

/* Two tokens are run. */
static void begin_and_run(uint64_t handle, uint16_t attempt, uint64_t step)
{
	struct r3ring_span span = keyed_span(handle, R3RING_SPAN_COMPUTED, 0, 0, 2, 0);

	span.attempt = attempt;
	feed_begin(&channel, handle, "a", 2, attempt);
	feed_whole(&channel, step, 2, &span, 1);
}

static void preempt(uint64_t handle, uint16_t attempt)
{
	feed_end(&channel, handle, R3RING_END_PREEMPTED, attempt, 2);
}

/* The one that lived when the other began, of which no end was told. */
static void expect_unfinished(uint64_t step)
{
	struct r3ring_assembled *got = take(&channel, "a");

	assert_row(got, 0, step, 0);
	cr_expect(r3ring_assembled_get_info(got)->flags & R3RING_ASSEMBLED_UNFINISHED);
	r3ring_assembled_free(got);
}

Test(assembler_siblings, who_goes_on_of_two_that_were_preempted_is_mixed)
{
	begin_and_run(1, 0, 1);
	begin_and_run(2, 0, 2);
	expect_unfinished(1);
	preempt(1, 0);
	preempt(2, 0);
	begin_and_run(3, 1, 3);
	feed_end(&channel, 3, R3RING_END_FINISHED, 1, 3);
	feed_expect_mixed(&channel, "a", "test/0", "test/0");
}

Test(assembler_siblings, so_it_is_where_one_was_preempted_before_the_other_began)
{
	begin_and_run(1, 0, 1);
	preempt(1, 0);
	begin_and_run(2, 0, 2);
	expect_unfinished(1);
	begin_and_run(3, 1, 3);
	feed_end(&channel, 3, R3RING_END_FINISHED, 1, 3);
	feed_expect_mixed(&channel, "a", "test/0", "test/0");
}

Test(assembler_siblings, one_that_is_not_preempted_is_its_own)
{
	struct r3ring_assembled *got;

	begin_and_run(1, 0, 1);
	begin_and_run(2, 0, 2);
	expect_unfinished(1);
	feed_end(&channel, 2, R3RING_END_FINISHED, 0, 3);
	got = take(&channel, "a");
	assert_row(got, 0, 2, 0);
	cr_expect_eq(r3ring_assembled_get_info(got)->flags, 0);
	r3ring_assembled_free(got);
}

Test(assembler_siblings, one_that_begins_when_the_other_has_ended_goes_on_as_itself)
{
	struct r3ring_assembled *got;

	begin_and_run(1, 0, 1);
	feed_end(&channel, 1, R3RING_END_FINISHED, 0, 3);
	r3ring_assembled_free(take(&channel, "a"));
	begin_and_run(2, 0, 2);
	preempt(2, 0);
	begin_and_run(3, 1, 3);
	feed_end(&channel, 3, R3RING_END_FINISHED, 1, 3);
	got = take(&channel, "a");
	assert_row(got, 0, 2, 0);
	cr_expect_eq(r3ring_assembled_get_info(got)->flags, 0);
	r3ring_assembled_free(got);
}

static void run_and_end(struct feed *stage, uint64_t handle)
{
	feed_begin(stage, handle, "a", 2, 0);
	feed_computed(stage, handle, handle, 0, 2, NULL, 0);
	feed_end(stage, handle, R3RING_END_FINISHED, 0, 3);
}

/* Both stages heard of the two in one order. */
Test(assembler_siblings, another_stage_s_first_is_of_the_first_of_two)
{
	struct feed stage;

	close_channel();
	feed_create(&channel, NULL);
	channel.rank.pp = (struct r3ring_coordinate){0, 2};
	feed_schema(&channel);
	stage = feed_channel(&channel, "test/1");
	stage.rank.pp = (struct r3ring_coordinate){1, 2};
	stage.first_layer = FEED_LAYERS;
	feed_schema(&stage);
	begin_and_run(1, 0, 1);
	begin_and_run(2, 0, 2);
	for (uint64_t handle = 1; handle <= 2; handle++) {
		struct r3ring_assembled *got;

		run_and_end(&stage, handle);
		if (handle == 2)
			feed_end(&channel, 2, R3RING_END_FINISHED, 0, 3);
		got = take(&channel, "a");
		assert_row(got, 0, handle, 0);
		cr_expect_eq(r3ring_assembled_get_info(got)->flags, 0);
		cr_expect_eq(r3ring_assembled_get_info(got)->cells_valid, 4 * FEED_LAYERS);
		r3ring_assembled_free(got);
	}
}
