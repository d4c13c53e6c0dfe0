/* SPDX-License-Identifier: Apache-2.0 */
/* Keyframes that do not name all that live, or were cut. */
#include "tests/unit/record_feed.h"

static struct feed first;

static void open_channel(void)
{
	feed_create(&first, NULL);
}

static void close_channel(void)
{
	feed_destroy(&first);
}

TestSuite(assembler_keyframes, .init = open_channel, .fini = close_channel);

static void run(uint64_t handle, uint64_t step, uint32_t position)
{
	const struct r3ring_span one = {
		.request = handle, .position = position, .rows = 1, .accepted = R3RING_UNKNOWN_U32};

	feed_whole(&first, step, 1, &one, 1);
}

static void begin_two(void)
{
	feed_schema(&first);
	feed_begin(&first, 1, "a", 1, 0);
	feed_begin(&first, 2, "b", 1, 0);
	run(1, 1, 0);
}

static void name_the_second_only(void)
{
	feed_abridged_keyframe(&first, 1);
	feed_repeated_begin(&first, 2, "b", 1);
}

Test(assembler_keyframes, one_that_leaves_requests_out_ends_none_of_them)
{
	struct r3ring_assembled *got;

	begin_two();
	name_the_second_only();
	run(1, 2, 1);
	feed_end(&first, 1, R3RING_END_FINISHED, 0, 3);
	got = take(&first, "a");
	cr_assert_eq(r3ring_assembled_get_info(got)->flags, 0);
	assert_row(got, 0, 1, 0);
	assert_row(got, 1, 2, 0);
	r3ring_assembled_free(got);
}

Test(assembler_keyframes, behind_a_gap_one_that_was_left_out_lives_until_none_is)
{
	struct r3ring_assembled *got;

	begin_two();
	r3ring_assembler_gap(first.assembler, first.channel);
	name_the_second_only();
	run(1, 3, 1);
	cr_assert_null(r3ring_assembler_take(first.assembler));
	feed_keyframe(&first, 1);
	feed_repeated_begin(&first, 2, "b", 1);
	got = take(&first, "a");
	cr_assert_eq(r3ring_assembled_get_info(got)->flags, R3RING_ASSEMBLED_LENGTH_GUESSED);
	assert_row(got, 0, 1, 0);
	assert_row(got, 1, 3, 0);
	r3ring_assembled_free(got);
}

Test(assembler_keyframes, what_is_left_of_one_that_its_daemon_s_death_cut_is_not_waited_for)
{
	struct r3ring_assembled *got;

	begin_two();
	feed_keyframe(&first, 2);
	feed_repeated_begin(&first, 2, "b", 1);
	feed_lost(&first, 0, 0, R3RING_CAUSE_DAEMON_RESTART, 0);
	run(1, 2, 1);
	feed_keyframe(&first, 2);
	feed_repeated_begin(&first, 1, "a", 1);
	feed_repeated_begin(&first, 2, "b", 1);
	feed_end(&first, 1, R3RING_END_FINISHED, 0, 3);
	got = take(&first, "a");
	cr_assert_eq(r3ring_assembled_get_info(got)->flags, 0);
	assert_row(got, 0, 1, 0);
	assert_row(got, 1, 2, 0);
	r3ring_assembled_free(got);
}
