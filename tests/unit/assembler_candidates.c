/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attempts that do not tell which request of their id they go on with: where it could be several, they are
 * nobody's, in whatever order the channels are read.
 */
#include "tests/unit/key_feed.h"

static struct feed first, second;

/* Two data-parallel ranks. */
static void open_channels(void)
{
	feed_create(&first, NULL);
	second = feed_channel(&first, "test/1");
	first.rank.dp = (struct r3ring_coordinate){0, 2};
	second.rank.dp = (struct r3ring_coordinate){1, 2};
	feed_schema(&first);
	feed_schema(&second);
}

static void close_channels(void)
{
	feed_destroy(&first);
}

TestSuite(assembler_candidates, .init = open_channels, .fini = close_channels);

/* An attempt runs two tokens, in the step of its handle's number. */
static void run(struct feed *feed, uint64_t handle, uint16_t attempt, uint32_t since_first)
{
	struct r3ring_span span = keyed_span(handle, R3RING_SPAN_COMPUTED, 0, 0, 2, 0);

	span.attempt = attempt;
	feed->since_first = since_first;
	feed_begin(feed, handle, "a", 2, attempt);
	feed_whole(feed, handle, 2, &span, 1);
}

static void preempt(struct feed *feed, uint64_t handle, uint16_t attempt)
{
	feed_end(feed, handle, R3RING_END_PREEMPTED, attempt, 2);
}

static void finish(struct feed *feed, uint64_t handle, uint16_t attempt)
{
	feed_end(feed, handle, R3RING_END_FINISHED, attempt, 3);
}

/* What comes out next has the row of that step. */
static void expect(uint64_t step, uint32_t flags)
{
	struct r3ring_assembled *got = take(&first, "a");

	cr_expect_eq(r3ring_assembled_get_info(got)->flags, flags, "%u",
		     r3ring_assembled_get_info(got)->flags);
	assert_row(got, 0, step, 0);
	r3ring_assembled_free(got);
}

/* Of the first nothing more was told when the second began, and both were preempted. */
Test(assembler_candidates, which_of_two_goes_on_at_another_rank_is_mixed)
{
	run(&first, 1, 0, 0);
	preempt(&first, 1, 0);
	run(&first, 2, 0, 0);
	expect(1, R3RING_ASSEMBLED_UNFINISHED);
	preempt(&first, 2, 0);
	run(&second, 1, 1, 0);
	finish(&second, 1, 1);
	feed_expect_mixed(&first, "a", "test/1", "test/0");
}

Test(assembler_candidates, so_it_is_where_the_second_is_told_of_later)
{
	run(&first, 1, 0, 0);
	preempt(&first, 1, 0);
	run(&second, 1, 1, 0);
	run(&first, 2, 0, 0);
	expect(1, R3RING_ASSEMBLED_MIXED | R3RING_ASSEMBLED_UNFINISHED |
			  R3RING_ASSEMBLED_LENGTH_GUESSED);
}

Test(assembler_candidates, so_it_is_where_each_rank_has_one_that_was_preempted)
{
	run(&first, 1, 0, 0);
	preempt(&first, 1, 0);
	run(&second, 1, 0, 0);
	preempt(&second, 1, 0);
	run(&first, 2, 1, 0);
	finish(&first, 2, 1);
	feed_expect_mixed(&first, "a", "test/0", "test/1");
}

Test(assembler_candidates, one_that_told_which_was_its_first_attempt_is_its_own)
{
	run(&first, 1, 0, 0);
	preempt(&first, 1, 0);
	run(&second, 1, 0, 0);
	preempt(&second, 1, 0);
	run(&first, 2, 1, 1);
	finish(&first, 2, 1);
	expect(1, 0);
}

Test(assembler_candidates, one_that_has_ended_goes_on_no_more)
{
	run(&first, 1, 0, 0);
	finish(&first, 1, 0);
	expect(1, 0);
	run(&first, 2, 0, 0);
	preempt(&first, 2, 0);
	run(&second, 1, 1, 0);
	finish(&second, 1, 1);
	expect(2, 0);
}

/* How much was kept nobody said: a daemon may have said it of what an engine left behind. */
Test(assembler_candidates, one_that_was_given_up_may_go_on_at_another_rank)
{
	run(&first, 1, 0, 0);
	feed_end(&first, 1, R3RING_END_ABORTED, 0, R3RING_UNKNOWN_U32);
	expect(1, R3RING_ASSEMBLED_ABORTED | R3RING_ASSEMBLED_LENGTH_GUESSED);
	run(&first, 2, 0, 0);
	preempt(&first, 2, 0);
	run(&second, 1, 1, 0);
	finish(&second, 1, 1);
	feed_expect_mixed(&first, "a", "test/1", "test/0");
}

/* A keyframe names it no more, so it is let go; then it goes on, and is the only one all the same. */
Test(assembler_candidates, the_only_one_of_its_id_is_never_mixed_though_it_was_let_go)
{
	struct r3ring_assembled *got;

	run(&first, 1, 0, 0);
	r3ring_assembler_gap(first.assembler, first.channel);
	feed_keyframe(&first, 0);
	expect(1, R3RING_ASSEMBLED_LENGTH_GUESSED);
	run(&second, 1, 1, 0);
	preempt(&second, 1, 1);
	run(&first, 9, 2, 0);
	finish(&first, 9, 2);
	got = take(&first, "a");
	cr_expect_eq(r3ring_assembled_get_info(got)->flags, 0);
	assert_missing(got, 0, R3RING_MISSING_GAP);
	r3ring_assembled_free(got);
}

/* An attempt begins when the one before is over; and the id was another's before. */
Test(assembler_candidates,
     an_attempt_that_begins_while_the_one_before_runs_is_mixed_where_the_id_was_used_before)
{
	run(&first, 1, 0, 0);
	finish(&first, 1, 0);
	expect(1, 0);
	run(&first, 2, 0, 0);
	run(&first, 3, 1, 0);
	finish(&first, 3, 1);
	feed_expect_mixed(&first, "a", "test/0", "test/0");
}

Test(assembler_candidates, it_is_the_request_s_where_nothing_tells_of_another)
{
	run(&first, 2, 0, 0);
	run(&first, 3, 1, 0);
	finish(&first, 3, 1);
	expect(2, 0);
}

Test(assembler_candidates, behind_a_loss_an_attempt_is_mixed_where_the_id_is_known_to_be_of_several)
{
	run(&second, 1, 0, 0);
	run(&first, 1, 0, 0);
	finish(&first, 1, 0);
	expect(1, 0);
	preempt(&second, 1, 0);
	r3ring_assembler_gap(first.assembler, first.channel);
	run(&second, 2, 1, 0);
	finish(&second, 2, 1);
	feed_expect_mixed(&first, "a", "test/1", "test/0");
}

Test(assembler_candidates, nothing_is_mixed_behind_a_loss_where_the_id_is_known_to_be_one_s_alone)
{
	run(&second, 1, 0, 0);
	preempt(&second, 1, 0);
	r3ring_assembler_gap(first.assembler, first.channel);
	run(&second, 2, 1, 0);
	finish(&second, 2, 1);
	expect(1, 0);
}
