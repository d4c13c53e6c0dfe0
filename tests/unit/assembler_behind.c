/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two data-parallel engines of two stages each. A request that was preempted by the one ends on the
 * other, while a rank of the first is fed later than its mate: what it is yet to tell of is waited for.
 */
#include "tests/unit/record_feed.h"

#define ENGINES 2u
#define STAGES 2u

static struct feed rank[ENGINES][STAGES];

static void open_ranks(void)
{
	static const char names[ENGINES * STAGES][8] = {"test/0", "test/1", "test/2", "test/3"};

	feed_create(&rank[0][0], NULL);
	for (uint16_t i = 0; i < ENGINES * STAGES; i++) {
		struct feed *feed = &rank[i / STAGES][i % STAGES];

		if (i)
			*feed = feed_channel(&rank[0][0], names[i]);
		feed->rank.dp = (struct r3ring_coordinate){(uint16_t)(i / STAGES), ENGINES};
		feed->rank.pp = (struct r3ring_coordinate){(uint16_t)(i % STAGES), STAGES};
		feed->first_layer = (int32_t)(i % STAGES * FEED_LAYERS);
		feed_schema(feed);
	}
}

static void close_ranks(void)
{
	feed_destroy(&rank[0][0]);
}

TestSuite(assembler_behind, .init = open_ranks, .fini = close_ranks);

static void begin(struct feed *on, uint64_t step, uint16_t attempt)
{
	const struct r3ring_span one = {
		.request = step, .rows = 1, .attempt = attempt, .accepted = R3RING_UNKNOWN_U32};

	feed_begin(on, step, "a", 1, attempt);
	feed_whole(on, step, 1, &one, 1);
}

static void run(struct feed *on, uint64_t step, uint16_t attempt, enum r3ring_end_reason reason)
{
	begin(on, step, attempt);
	feed_end(on, step, reason, attempt, 2);
}

/* The first stage of the first engine tells of two attempts, the second of one; another engine
 * ends the request. */
static void leave_one_behind(void)
{
	run(&rank[0][0], 1, 0, R3RING_END_PREEMPTED);
	run(&rank[0][0], 2, 1, R3RING_END_PREEMPTED);
	run(&rank[1][0], 1, 2, R3RING_END_FINISHED);
	run(&rank[1][1], 1, 2, R3RING_END_FINISHED);
	run(&rank[0][1], 1, 0, R3RING_END_PREEMPTED);
}

static void expect_given_once(void)
{
	struct r3ring_assembled *got = take(&rank[0][0], "a");

	cr_expect_eq(r3ring_assembled_get_info(got)->layers, STAGES * FEED_LAYERS);
	cr_expect_eq(r3ring_assembled_get_info(got)->flags, 0);
	r3ring_assembled_free(got);
	cr_expect_null(r3ring_assembler_take(rank[0][0].assembler));
}

Test(assembler_behind, an_attempt_that_a_rank_is_yet_to_tell_of_is_waited_for)
{
	leave_one_behind();
	cr_assert_null(r3ring_assembler_take(rank[0][0].assembler));
	run(&rank[0][1], 2, 1, R3RING_END_PREEMPTED);
	expect_given_once();
}

Test(assembler_behind, so_is_a_rank_that_has_told_of_no_attempt)
{
	run(&rank[0][0], 1, 0, R3RING_END_PREEMPTED);
	run(&rank[1][0], 1, 1, R3RING_END_FINISHED);
	run(&rank[1][1], 1, 1, R3RING_END_FINISHED);
	cr_assert_null(r3ring_assembler_take(rank[0][0].assembler));
	run(&rank[0][1], 1, 0, R3RING_END_PREEMPTED);
	expect_given_once();
}

/* It may have lost what would be waited for. */
Test(assembler_behind, a_rank_that_lost_records_is_waited_for_no_longer)
{
	leave_one_behind();
	cr_assert_null(r3ring_assembler_take(rank[0][0].assembler));
	r3ring_assembler_gap(rank[0][1].assembler, rank[0][1].channel);
	expect_given_once();
}

/* The first engine is gone: what its slower rank did not tell of before will not come. */
Test(assembler_behind, no_rank_is_waited_for_behind_the_end_of_its_engine)
{
	leave_one_behind();
	cr_assert_null(r3ring_assembler_take(rank[0][0].assembler));
	feed_closed(&rank[0][0]);
	rank[0][0].generation++;
	rank[0][0].seq = 0;
	feed_schema(&rank[0][0]);
	expect_given_once();
}
