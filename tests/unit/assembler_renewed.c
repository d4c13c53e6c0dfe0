/* SPDX-License-Identifier: Apache-2.0 */
/*
 * New weights in place run tokens again within one attempt: what may have been run in records that were
 * lost, under the weights before, is not the first pass; what cannot have been is.
 */
#include "tests/unit/record_feed.h"

static struct feed first, stage;

static void open_channels(void)
{
	const struct r3ring_assembler_options options = {.size = sizeof(options)};

	feed_create(&first, &options);
	first.weight_version = 1;
}

static void close_channels(void)
{
	feed_destroy(&first);
}

TestSuite(assembler_renewed, .init = open_channels, .fini = close_channels);

static void run(struct feed *on, uint64_t step, uint32_t position, uint32_t rows)
{
	const struct r3ring_span one = {
		.request = 1, .position = position, .rows = rows, .accepted = R3RING_UNKNOWN_U32};

	feed_whole(on, step, rows, &one, 1);
}

static void gap(struct feed *on)
{
	r3ring_assembler_gap(on->assembler, on->channel);
}

static void begin(struct feed *on)
{
	feed_schema(on);
	feed_begin(on, 1, "a", 4, 0);
}

static struct r3ring_assembled *finish(uint32_t kept)
{
	feed_end(&first, 1, R3RING_END_FINISHED, 0, kept);
	return take(&first, "a");
}

static void assert_all_missing(const struct r3ring_assembled *got, uint32_t from, uint32_t end)
{
	for (uint32_t position = from; position < end; position++)
		assert_missing(got, position, R3RING_MISSING_GAP);
}

/* The prompt of 4 and a token; what two steps did is lost, and then there are new weights. */
static void run_and_lose_two_steps(struct feed *on)
{
	run(on, 1, 0, 4);
	run(on, 2, 4, 1);
	gap(on);
	on->weight_version = 2;
}

Test(assembler_renewed, what_may_have_been_run_in_a_gap_is_missing_where_new_weights_run_it_again)
{
	struct r3ring_assembled *got;

	begin(&first);
	run_and_lose_two_steps(&first);
	run(&first, 5, 0, 8);
	got = finish(9);
	assert_row(got, 0, 1, 0);
	assert_row(got, 4, 2, 0);
	assert_all_missing(got, 5, 7);
	assert_row(got, 7, 5, 7);
	r3ring_assembled_free(got);
}

Test(assembler_renewed, a_request_that_goes_on_as_far_as_it_can_have_come_lost_no_more_than_the_gap)
{
	struct r3ring_assembled *got;

	begin(&first);
	run_and_lose_two_steps(&first);
	run(&first, 5, 7, 1);
	run(&first, 6, 8, 1);
	got = finish(10);
	assert_all_missing(got, 5, 7);
	assert_row(got, 7, 5, 0);
	assert_row(got, 8, 6, 0);
	r3ring_assembled_free(got);
}

Test(assembler_renewed, a_step_that_verified_drafts_may_have_come_as_far_as_a_step_has_rows)
{
	const struct r3ring_span drafts = {
		.request = 1, .position = 4, .rows = 2, .accepted = 1, .flags = R3RING_SPAN_DRAFT};
	struct r3ring_assembled *got;

	begin(&first);
	run(&first, 1, 0, 4);
	feed_whole(&first, 2, 2, &drafts, 1);
	gap(&first);
	first.weight_version = 2;
	run(&first, 4, 0, 8);
	got = finish(9);
	assert_all_missing(got, 5, 8);
	r3ring_assembled_free(got);
}

Test(assembler_renewed, a_prompt_may_have_been_run_whole_by_one_step_and_no_further)
{
	struct r3ring_assembled *got;

	begin(&first);
	run(&first, 1, 0, 1);
	gap(&first);
	first.weight_version = 2;
	run(&first, 3, 0, 5);
	got = finish(6);
	assert_row(got, 0, 1, 0);
	assert_all_missing(got, 1, 4);
	assert_row(got, 4, 3, 4);
	r3ring_assembled_free(got);
}

/* The loss was before: what was seen since tells how far it had come. */
Test(assembler_renewed, a_hole_in_what_was_run_is_not_filled_by_what_new_weights_run)
{
	struct r3ring_assembled *got;

	begin(&first);
	run(&first, 1, 0, 4);
	gap(&first);
	run(&first, 3, 5, 1);
	first.weight_version = 2;
	run(&first, 4, 0, 7);
	got = finish(8);
	assert_all_missing(got, 4, 5);
	assert_row(got, 5, 3, 0);
	assert_row(got, 6, 4, 6);
	r3ring_assembled_free(got);
}

Test(assembler_renewed, nothing_is_missing_without_a_gap)
{
	struct r3ring_assembled *got;

	begin(&first);
	run(&first, 1, 0, 2);
	first.weight_version = 2;
	run(&first, 2, 0, 4);
	first.weight_version = 3;
	run(&first, 3, 4, 1);
	got = finish(6);
	assert_row(got, 1, 1, 1);
	assert_row(got, 2, 2, 2);
	assert_row(got, 4, 3, 0);
	r3ring_assembled_free(got);
}

Test(assembler_renewed, nor_behind_one_under_the_same_weights)
{
	struct r3ring_assembled *got;

	begin(&first);
	run(&first, 1, 0, 2);
	gap(&first);
	run(&first, 9, 2, 2);
	first.weight_version = 2;
	run(&first, 10, 4, 1);
	got = finish(6);
	assert_row(got, 2, 9, 0);
	assert_row(got, 4, 10, 0);
	r3ring_assembled_free(got);
}

Test(assembler_renewed, what_began_in_a_gap_may_have_been_run_there_before_new_weights)
{
	struct r3ring_assembled *got;

	feed_schema(&first);
	run(&first, 1, 0, 1);
	gap(&first);
	first.weight_version = 2;
	run(&first, 4, 0, 1);
	feed_keyframe(&first, 1);
	feed_repeated_begin(&first, 1, "a", 4);
	run(&first, 5, 0, 8);
	got = finish(9);
	assert_all_missing(got, 0, 6);
	assert_row(got, 6, 5, 6);
	r3ring_assembled_free(got);
}

Test(assembler_renewed, another_stage_that_lost_nothing_knows_which_pass_is_the_first)
{
	struct r3ring_assembled *got;

	stage = feed_channel(&first, "test/1");
	stage.weight_version = 1;
	stage.first_layer = FEED_LAYERS;
	first.rank.pp = (struct r3ring_coordinate){.index = 0, .size = 2};
	stage.rank.pp = (struct r3ring_coordinate){.index = 1, .size = 2};
	begin(&first);
	begin(&stage);
	run_and_lose_two_steps(&first);
	run(&stage, 1, 0, 4);
	run(&stage, 2, 4, 1);
	run(&stage, 3, 5, 1);
	stage.weight_version = 2;
	run(&first, 5, 0, 8);
	run(&stage, 5, 0, 8);
	feed_end(&stage, 1, R3RING_END_FINISHED, 0, 9);
	got = finish(9);
	cr_assert_eq(cell_of(got, 5, 0, 0, 0, 0), R3RING_MISSING_GAP);
	cr_assert_eq(cell_of(got, 6, 0, 0, 5, 6), 0);
	cr_assert_eq(cell_of(got, 6, FEED_LAYERS - 1, 0, 5, 6), 0);
	r3ring_assembled_free(got);
}
