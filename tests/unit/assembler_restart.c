/* SPDX-License-Identifier: Apache-2.0 */
/* A daemon ends, and the next one goes on with the engine in another generation. */
#include "tests/unit/record_feed.h"

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

TestSuite(assembler_restart, .init = open_channel, .fini = close_channel);

static void run(struct feed *on, uint64_t step, uint64_t handle, uint32_t position)
{
	const struct r3ring_span span = {
		.request = handle, .position = position, .rows = 1, .accepted = R3RING_UNKNOWN_U32};

	feed_whole(on, step, 1, &span, 1);
}

static void begin_generation(struct feed *on, uint64_t number, uint16_t continues)
{
	on->generation = number;
	on->seq = 0;
	on->continues = continues;
	feed_schema(on);
}

static void generation(struct feed *on, uint64_t number, uint16_t continues)
{
	feed_closed(on);
	begin_generation(on, number, continues);
}

static void next_generation(struct feed *on, uint16_t continues)
{
	generation(on, on->generation + 1, continues);
}

static void begin_and_run(void)
{
	feed_begin(&channel, 1, "a", 3, 0);
	run(&channel, 1, 1, 0);
}

/* The next one is of this id and has an end, or has none. */
static struct r3ring_assembled *take_ended(bool ended)
{
	struct r3ring_assembled *got = take(&channel, "a");
	const uint32_t flags = r3ring_assembled_get_info(got)->flags;

	cr_assert_eq(!(flags & R3RING_ASSEMBLED_UNFINISHED), ended);
	cr_assert_not(ended && flags & R3RING_ASSEMBLED_LENGTH_GUESSED);
	return got;
}

static void expect_whole(void)
{
	struct r3ring_assembled *got = take_ended(true);

	for (uint32_t i = 0; i < 3; i++)
		assert_row(got, i, i + 1, 0);
	r3ring_assembled_free(got);
	r3ring_assembler_flush(channel.assembler);
	cr_assert_null(r3ring_assembler_take(channel.assembler));
}

Test(assembler_restart, what_lives_on_is_one_request)
{
	begin_and_run();
	for (uint64_t step = 2; step <= 3; step++) {
		next_generation(&channel, 1);
		feed_begin(&channel, 1, "a", 3, 0);
		run(&channel, step, 1, (uint32_t)step - 1);
	}
	feed_end(&channel, 1, R3RING_END_FINISHED, 0, 4);
	expect_whole();
}

/* Behind maps, and others that live. */
Test(assembler_restart, so_it_is_wherever_the_next_generation_names_it)
{
	const uint16_t map[FEED_LAYERS * 2] = {0, 1, 0, 1, 0, 1};

	feed_destroy(&channel);
	feed_create(&channel, NULL);
	channel.experts = 2;
	feed_schema(&channel);
	feed_begin(&channel, 2, "b", 1, 0);
	begin_and_run();
	next_generation(&channel, 1);
	feed_map(&channel, 1, 1, 2, 1, map);
	feed_begin(&channel, 2, "b", 1, 0);
	feed_begin(&channel, 1, "a", 3, 0);
	run(&channel, 2, 1, 1);
	feed_end(&channel, 1, R3RING_END_FINISHED, 0, 3);
	r3ring_assembled_free(take_ended(true));
}

/* One that its engine never heard of, whose daemon died at its beginning. */
Test(assembler_restart, a_generation_in_between_is_of_the_same_engine)
{
	begin_and_run();
	next_generation(&channel, 1);
	feed_begin(&channel, 1, "a", 3, 0);
	next_generation(&channel, 2);
	feed_begin(&channel, 1, "a", 3, 0);
	run(&channel, 2, 1, 1);
	run(&channel, 3, 1, 2);
	feed_end(&channel, 1, R3RING_END_FINISHED, 0, 4);
	expect_whole();
}

Test(assembler_restart, what_ended_while_there_was_no_daemon_has_that_end)
{
	begin_and_run();
	run(&channel, 2, 1, 1);
	run(&channel, 3, 1, 2);
	next_generation(&channel, 1);
	feed_begin(&channel, 1, "a", 3, 0);
	feed_end(&channel, 1, R3RING_END_FINISHED, 0, 4);
	expect_whole();
}

Test(assembler_restart, steps_without_a_daemon_are_missing_by_that_cause)
{
	struct r3ring_assembled *got;

	begin_and_run();
	next_generation(&channel, 1);
	feed_begin(&channel, 1, "a", 3, 0);
	feed_lost(&channel, 2, 2, R3RING_CAUSE_DAEMON_RESTART, 1);
	run(&channel, 3, 1, 2);
	feed_end(&channel, 1, R3RING_END_FINISHED, 0, 4);
	got = take_ended(true);
	assert_row(got, 0, 1, 0);
	assert_missing(got, 1, R3RING_CAUSE_DAEMON_RESTART);
	assert_row(got, 2, 3, 0);
	r3ring_assembled_free(got);
}

/* The former is given out without an end, the latter by itself. */
static void expect_two(uint64_t handle)
{
	struct r3ring_assembled *got = take_ended(false);

	assert_row(got, 0, 1, 0);
	r3ring_assembled_free(got);
	run(&channel, 2, handle, 0);
	feed_end(&channel, handle, R3RING_END_FINISHED, 0, 4);
	got = take_ended(true);
	assert_row(got, 0, 2, 0);
	r3ring_assembled_free(got);
}

Test(assembler_restart, another_engine_s_request_of_the_same_handle_and_id_is_another)
{
	begin_and_run();
	next_generation(&channel, 0);
	feed_begin(&channel, 1, "a", 3, 0);
	expect_two(1);
}

/* It goes on from the generation before, which this reader did not see. */
Test(assembler_restart, so_is_that_of_an_engine_whose_generation_was_not_seen)
{
	begin_and_run();
	generation(&channel, 3, 1);
	feed_begin(&channel, 1, "a", 3, 0);
	expect_two(1);
}

Test(assembler_restart, the_same_engine_s_next_request_of_the_id_is_another)
{
	begin_and_run();
	next_generation(&channel, 1);
	feed_begin(&channel, 2, "a", 3, 0);
	expect_two(2);
}

Test(assembler_restart, so_it_is_where_a_keyframe_names_it)
{
	begin_and_run();
	next_generation(&channel, 1);
	feed_keyframe(&channel, 1);
	feed_repeated_begin(&channel, 2, "a", 3);
	r3ring_assembled_free(take_ended(false));
}

/* Its beginning was lost. */
Test(assembler_restart, so_it_is_where_a_keyframe_of_another_engine_names_the_same_handle)
{
	begin_and_run();
	next_generation(&channel, 0);
	feed_keyframe(&channel, 1);
	feed_repeated_begin(&channel, 1, "a", 3);
	r3ring_assembled_free(take_ended(false));
}

/* Layers may be bound anew, as an engine does that wakes. */
Test(assembler_restart, a_keyframe_of_an_engine_that_bound_anew_names_the_same_request)
{
	channel.bound_since_ns = 100;
	feed_schema(&channel);
	begin_and_run();
	channel.bound_since_ns = 200;
	feed_schema(&channel);
	run(&channel, 2, 1, 1);
	next_generation(&channel, 1);
	feed_keyframe(&channel, 1);
	feed_repeated_begin(&channel, 1, "a", 3);
	run(&channel, 3, 1, 2);
	feed_end(&channel, 1, R3RING_END_FINISHED, 0, 4);
	expect_whole();
}

/* Its schema was lost, which would have told that it goes on, and so was the keyframe before the request that
 * it names: the next keyframe tells. */
Test(assembler_restart, of_a_generation_without_its_schema_nothing_is_known)
{
	struct r3ring_assembled *got;

	begin_and_run();
	channel.generation = 2;
	channel.seq = 3;
	channel.continues = 1;
	r3ring_assembler_gap(channel.assembler, channel.channel);
	feed_repeated_begin(&channel, 1, "a", 3);
	feed_keyframe(&channel, 1);
	feed_repeated_begin(&channel, 1, "a", 3);
	run(&channel, 3, 1, 2);
	feed_end(&channel, 1, R3RING_END_FINISHED, 0, 4);
	got = take_ended(true);
	cr_assert_not(r3ring_assembled_get_info(got)->flags & R3RING_ASSEMBLED_MIXED);
	assert_row(got, 0, 1, 0);
	assert_missing(got, 1, R3RING_MISSING_GAP);
	assert_row(got, 2, 3, 0);
	r3ring_assembled_free(got);
}

/* A reader that comes in the second generation has not seen what was run in the first. */
Test(assembler_restart, what_a_late_reader_did_not_see_is_a_gap)
{
	struct r3ring_assembled *got;

	next_generation(&channel, 1);
	feed_begin(&channel, 1, "a", 3, 0);
	run(&channel, 3, 1, 2);
	feed_end(&channel, 1, R3RING_END_FINISHED, 0, 4);
	got = take_ended(true);
	assert_missing(got, 0, R3RING_MISSING_GAP);
	assert_missing(got, 1, R3RING_MISSING_GAP);
	assert_row(got, 2, 3, 0);
	r3ring_assembled_free(got);
}

/* Behind a step it is no other generation's. */
Test(assembler_restart, what_begins_later_was_seen_whole)
{
	struct r3ring_assembled *got;

	next_generation(&channel, 1);
	run(&channel, 1, 7, 0);
	feed_begin(&channel, 1, "a", 3, 0);
	run(&channel, 2, 1, 2);
	feed_end(&channel, 1, R3RING_END_FINISHED, 0, 4);
	got = take_ended(true);
	assert_missing(got, 0, R3RING_MISSING_NOT_RUN);
	assert_row(got, 2, 2, 0);
	r3ring_assembled_free(got);
}

/* Its ring was gone before all of it was read. */
Test(assembler_restart, what_a_generation_had_that_was_not_read_to_its_end_is_a_gap)
{
	struct r3ring_assembled *got;

	begin_and_run();
	begin_generation(&channel, 2, 1);
	feed_begin(&channel, 1, "a", 3, 0);
	run(&channel, 3, 1, 2);
	feed_end(&channel, 1, R3RING_END_FINISHED, 0, 4);
	got = take_ended(true);
	assert_row(got, 0, 1, 0);
	assert_missing(got, 1, R3RING_MISSING_GAP);
	assert_row(got, 2, 3, 0);
	r3ring_assembled_free(got);
}

/* ---- a step that is open when a daemon ends --------------------------------- */

/* Step 2, of which one layer came. */
static void cut_step(void)
{
	const struct r3ring_span span = {
		.request = 1, .position = 1, .rows = 1, .accepted = R3RING_UNKNOWN_U32};

	feed_step(&channel, 2, 1, &span, 1, NULL, 0);
	feed_layers(&channel, 2, 1, 0, FEED_LAYERS - 1);
	feed_step_end(&channel, 2, FEED_LAYERS - 1, R3RING_CAUSE_DAEMON_RESTART);
}

Test(assembler_restart, is_as_the_generation_tells_it_that_goes_on)
{
	begin_and_run();
	cut_step();
	next_generation(&channel, 1);
	feed_begin(&channel, 1, "a", 3, 0);
	run(&channel, 2, 1, 1);
	run(&channel, 3, 1, 2);
	feed_end(&channel, 1, R3RING_END_FINISHED, 0, 4);
	expect_whole();
}

/* Another one is another pass: it does not stand in for what was lost of the first. */
Test(assembler_restart, another_step_over_its_token_is_another_pass)
{
	struct r3ring_assembled *got;

	begin_and_run();
	cut_step();
	next_generation(&channel, 1);
	feed_begin(&channel, 1, "a", 3, 0);
	run(&channel, 3, 1, 1);
	feed_end(&channel, 1, R3RING_END_FINISHED, 0, 3);
	got = take_ended(true);
	cr_expect_eq(cell_of(got, 1, FEED_LAYERS - 1, 0, 3, 0), R3RING_CAUSE_DAEMON_RESTART);
	r3ring_assembled_free(got);
}

/* ---- nobody follows -------------------------------------------------------- */

Test(assembler_restart, what_lives_where_nobody_tells_any_more_ends_in_a_way_that_is_not_known)
{
	struct r3ring_assembled *got;
	uint32_t flags;

	begin_and_run();
	r3ring_assembler_unfollowed(channel.assembler, channel.channel);
	cr_assert_null(r3ring_assembler_take(channel.assembler));
	r3ring_assembler_flush(channel.assembler);
	got = take(&channel, "a");
	flags = r3ring_assembled_get_info(got)->flags;
	cr_expect_eq(flags, R3RING_ASSEMBLED_LENGTH_GUESSED, "%x", flags);
	assert_row(got, 0, 1, 0);
	r3ring_assembled_free(got);
}

Test(assembler_restart, what_lives_on_where_somebody_tells_again_has_its_own_end)
{
	begin_and_run();
	r3ring_assembler_unfollowed(channel.assembler, channel.channel);
	run(&channel, 2, 1, 1);
	run(&channel, 3, 1, 2);
	feed_end(&channel, 1, R3RING_END_FINISHED, 0, 4);
	expect_whole();
}

Test(assembler_restart, nor_does_one_end_so_that_is_live_when_all_was_fed)
{
	struct r3ring_assembled *got;

	begin_and_run();
	r3ring_assembler_unfollowed(channel.assembler, channel.channel);
	run(&channel, 2, 1, 1);
	r3ring_assembler_flush(channel.assembler);
	got = take(&channel, "a");
	cr_expect(r3ring_assembled_get_info(got)->flags & R3RING_ASSEMBLED_UNFINISHED);
	r3ring_assembled_free(got);
}
