/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two channels of an instance run a request of one id each: what their coordinates say of whose
 * they are, and what is said where they do not.
 */
#include "tests/unit/key_feed.h"

#define CHANNELS 4u

static struct feed on[CHANNELS];

static void open_channels(void)
{
	static const char *const names[CHANNELS] = {"test/0", "test/1", "test/2", "test/3"};

	feed_create(&on[0], NULL);
	for (uint32_t i = 1; i < CHANNELS; i++)
		on[i] = feed_channel(&on[0], names[i]);
}

static void close_channels(void)
{
	feed_destroy(&on[0]);
}

TestSuite(assembler_twins, .init = open_channels, .fini = close_channels);

/* A prompt of two, run by the channel's step @step. */
static void begin_and_run(struct feed *to, uint64_t step)
{
	feed_begin(to, 1, "a", 2, 0);
	feed_computed(to, step, 1, 0, 2, NULL, 0);
}

static void end(struct feed *to, uint32_t kept)
{
	feed_end(to, 1, R3RING_END_FINISHED, 0, kept);
}

static void expect_own(uint64_t step, uint32_t tokens)
{
	struct r3ring_assembled *got = take(&on[0], "a");

	assert_row(got, 0, step, 0);
	assert_row(got, 1, step, 1);
	cr_expect_eq(r3ring_assembled_get_info(got)->flags, 0);
	cr_expect_eq(r3ring_assembled_get_info(got)->tokens, tokens);
	r3ring_assembled_free(got);
}

/* Neither has any coordinates, as of engines that were given ranks only. */
Test(assembler_twins, ranks_that_say_to_be_the_same_have_a_request_each)
{
	feed_schema(&on[0]);
	feed_schema(&on[1]);
	begin_and_run(&on[0], 1);
	begin_and_run(&on[1], 2);
	end(&on[1], 3);
	expect_own(2, 3);
	cr_assert_null(r3ring_assembler_take(on[0].assembler));
	end(&on[0], 4);
	expect_own(1, 4);
}

/* Equal ids are no sign of one run: of one text each samples what it samples. */
Test(assembler_twins, so_have_those_that_ran_the_very_same_ids)
{
	feed_schema(&on[0]);
	feed_schema(&on[1]);
	begin_and_run(&on[0], 1);
	begin_and_run(&on[1], 1);
	end(&on[0], 3);
	expect_own(1, 3);
	end(&on[1], 7);
	expect_own(1, 7);
}

Test(assembler_twins, an_attempt_is_not_taken_for_the_next_of_another_engine_s)
{
	const struct r3ring_span again = {
		.request = 8, .rows = 3, .attempt = 1, .accepted = R3RING_UNKNOWN_U32};
	struct r3ring_assembled *got;

	feed_schema(&on[0]);
	feed_schema(&on[1]);
	begin_and_run(&on[0], 1);
	feed_begin(&on[1], 8, "a", 3, 1);
	feed_whole(&on[1], 4, 3, &again, 1);
	feed_end(&on[1], 8, R3RING_END_FINISHED, 1, 4);
	got = take(&on[0], "a");
	assert_missing(got, 0, R3RING_MISSING_GAP);
	r3ring_assembled_free(got);
	end(&on[0], 3);
	expect_own(1, 3);
}

static void pipelines(void)
{
	for (uint16_t i = 0; i < CHANNELS; i++) {
		on[i].rank.pp = (struct r3ring_coordinate){i % 2, 2};
		on[i].first_layer = i % 2 ? FEED_LAYERS : 0;
	}
}

/* Which stage is of which engine nobody says. */
Test(assembler_twins, stages_of_two_engines_that_say_to_be_one_are_mixed)
{
	pipelines();
	for (uint32_t i = 0; i < CHANNELS; i++)
		feed_schema(&on[i]);
	begin_and_run(&on[0], 1);
	begin_and_run(&on[3], 2);
	begin_and_run(&on[1], 3);
	begin_and_run(&on[2], 4);
	end(&on[0], 3);
	end(&on[3], 3);
	feed_expect_mixed(&on[0], "a", "test/1", "test/3");
	end(&on[1], 3);
	end(&on[2], 3);
	feed_expect_mixed(&on[0], "a", "test/1", "test/3");
}

Test(assembler_twins, stages_that_say_of_which_engine_they_are_are_told_apart)
{
	pipelines();
	for (uint16_t i = 0; i < CHANNELS; i++) {
		on[i].rank.dp = (struct r3ring_coordinate){i / 2, 2};
		feed_schema(&on[i]);
	}
	begin_and_run(&on[0], 1);
	begin_and_run(&on[3], 2);
	begin_and_run(&on[1], 3);
	begin_and_run(&on[2], 4);
	end(&on[0], 3);
	end(&on[1], 3);
	expect_own(1, 3);
	end(&on[2], 3);
	end(&on[3], 3);
	expect_own(4, 3);
}

Test(assembler_twins, tensor_parallel_ranks_that_both_tell_their_rows_are_joined)
{
	for (uint16_t i = 0; i < 2; i++) {
		on[i].rank.tp = (struct r3ring_coordinate){i, 2};
		feed_schema(&on[i]);
		begin_and_run(&on[i], 1);
	}
	end(&on[0], 3);
	cr_assert_null(r3ring_assembler_take(on[0].assembler));
	end(&on[1], 3);
	expect_own(1, 3);
	r3ring_assembler_flush(on[0].assembler);
	cr_expect_null(r3ring_assembler_take(on[0].assembler));
}

static void two_replicas(void)
{
	for (uint16_t i = 0; i < 2; i++) {
		on[i].rank.dp = (struct r3ring_coordinate){i, 2};
		feed_schema(&on[i]);
	}
}

/* An attempt that ended for good has none behind it. */
Test(assembler_twins, a_later_attempt_of_a_request_that_had_ended_is_another_s)
{
	two_replicas();
	begin_and_run(&on[0], 1);
	feed_begin(&on[1], 1, "a", 3, 1);
	end(&on[0], 3);
	feed_end(&on[1], 1, R3RING_END_FINISHED, 1, 4);
	feed_expect_mixed(&on[0], "a", "test/0", "test/1");
}

/* A daemon says so of what an engine ran that went away. Another rank may go on with that, or run
 * one of its own that began unseen: the records are the same. */
Test(assembler_twins, so_it_is_where_nobody_said_more_than_that_it_was_given_up)
{
	struct r3ring_assembled *got;

	two_replicas();
	begin_and_run(&on[0], 1);
	feed_begin(&on[1], 1, "a", 3, 1);
	feed_end(&on[0], 1, R3RING_END_ABORTED, 0, R3RING_UNKNOWN_U32);
	feed_end(&on[1], 1, R3RING_END_FINISHED, 1, 4);
	got = take(&on[0], "a");
	cr_expect_eq(r3ring_assembled_get_info(got)->flags,
		     R3RING_ASSEMBLED_ABORTED | R3RING_ASSEMBLED_MIXED);
	r3ring_assembled_free(got);
}

/* Between the two keyframes one ended, and another began: both first attempts. */
Test(assembler_twins, a_keyframe_that_gives_an_attempt_another_handle_tells_of_another_request)
{
	struct r3ring_assembled *got;

	feed_schema(&on[0]);
	begin_and_run(&on[0], 1);
	r3ring_assembler_gap(on[0].assembler, on[0].channel);
	feed_keyframe(&on[0], 1);
	feed_repeated_begin(&on[0], 2, "a", 2);
	got = take(&on[0], "a");
	cr_expect(r3ring_assembled_get_info(got)->flags & R3RING_ASSEMBLED_UNFINISHED);
	assert_row(got, 1, 1, 1);
	r3ring_assembled_free(got);
	feed_computed(&on[0], 3, 2, 1, 1, NULL, 0);
	feed_end(&on[0], 2, R3RING_END_FINISHED, 0, 3);
	got = take(&on[0], "a");
	assert_missing(got, 0, R3RING_MISSING_GAP);
	assert_row(got, 1, 3, 0);
	r3ring_assembled_free(got);
}

/* Of an engine that was started again, and numbers its handles anew. */
Test(assembler_twins, a_keyframe_of_an_engine_that_was_bound_anew_tells_of_another_request)
{
	struct r3ring_assembled *got;

	on[0].bound_since_ns = 100;
	feed_schema(&on[0]);
	begin_and_run(&on[0], 1);
	on[0].generation = 2;
	on[0].seq = 5;
	on[0].bound_since_ns = 200;
	feed_keyframe(&on[0], 1);
	feed_repeated_begin(&on[0], 1, "a", 2);
	got = take(&on[0], "a");
	cr_expect(r3ring_assembled_get_info(got)->flags & R3RING_ASSEMBLED_UNFINISHED);
	r3ring_assembled_free(got);
	feed_computed(&on[0], 3, 1, 1, 1, NULL, 0);
	end(&on[0], 3);
	got = take(&on[0], "a");
	assert_missing(got, 0, R3RING_MISSING_GAP);
	assert_row(got, 1, 3, 0);
	r3ring_assembled_free(got);
}
