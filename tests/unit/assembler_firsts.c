/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of one id, whose later attempts tell which first one they go on with. */
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

TestSuite(assembler_firsts, .init = open_channel, .fini = close_channel);

/* An attempt runs two tokens, in the step of its handle's number. */
static void run(uint64_t handle, uint16_t attempt, uint32_t since_first)
{
	struct r3ring_span span = keyed_span(handle, R3RING_SPAN_COMPUTED, 0, 0, 2, 0);

	span.attempt = attempt;
	channel.since_first = since_first;
	feed_begin(&channel, handle, "a", 2, attempt);
	feed_whole(&channel, handle, 2, &span, 1);
}

static void preempt(uint64_t handle, uint16_t attempt)
{
	feed_end(&channel, handle, R3RING_END_PREEMPTED, attempt, 2);
}

static void finish(uint64_t handle, uint16_t attempt)
{
	feed_end(&channel, handle, R3RING_END_FINISHED, attempt, 3);
}

/* The next that comes out has the row of that step, or none. */
static void expect(uint64_t step, uint32_t flags)
{
	struct r3ring_assembled *got = take(&channel, "a");

	cr_expect_eq(r3ring_assembled_get_info(got)->flags, flags);
	if (step)
		assert_row(got, 0, step, 0);
	else
		assert_missing(got, 0, R3RING_MISSING_GAP);
	r3ring_assembled_free(got);
}

/* The end of the first was lost, and the beginning of the second. */
Test(assembler_firsts, a_later_attempt_is_put_behind_no_other_request_of_its_id)
{
	run(1, 0, 0);
	r3ring_assembler_gap(channel.assembler, channel.channel);
	run(3, 1, 1);
	expect(1, R3RING_ASSEMBLED_UNFINISHED | R3RING_ASSEMBLED_LENGTH_GUESSED);
	finish(3, 1);
	expect(0, 0);
}

Test(assembler_firsts, two_of_which_the_first_attempt_was_lost_are_one)
{
	r3ring_assembler_gap(channel.assembler, channel.channel);
	run(3, 1, 1);
	preempt(3, 1);
	run(5, 2, 3);
	finish(5, 2);
	expect(0, 0);
	cr_expect_null(r3ring_assembler_take(channel.assembler));
}
