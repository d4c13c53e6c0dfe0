/* SPDX-License-Identifier: Apache-2.0 */
/* The limit is of all that grows with what an engine sends, however strange that is. */
#include <malloc.h>
#include <stdio.h>

#include "tests/unit/record_feed.h"

#define LIMIT (UINT64_C(256) << 10)
#define STEP_ROW_BYTES 28u /* about, that a row of a step takes */

static struct feed feed;
static uint64_t evicted; /* given out as such, and freed */

static void open_with(uint64_t limit)
{
	const struct r3ring_assembler_options options = {.size = sizeof(options),
							 .max_bytes = limit};

	feed_create(&feed, &options);
	feed_schema(&feed);
}

static void open_channel(void)
{
	open_with(LIMIT);
}

static void close_channel(void)
{
	feed_destroy(&feed);
}

TestSuite(assembler_memory, .init = open_channel, .fini = close_channel);

static struct r3ring_assembler_stats stats_of(void)
{
	struct r3ring_assembler_stats stats;

	r3ring_assembler_get_stats(feed.assembler, &stats);
	return stats;
}

static void free_ready(void)
{
	struct r3ring_assembled *got;

	while ((got = r3ring_assembler_take(feed.assembler))) {
		evicted += !!(r3ring_assembled_get_info(got)->flags & R3RING_ASSEMBLED_EVICTED);
		r3ring_assembled_free(got);
	}
}

static void begin(uint64_t handle)
{
	char id[32];

	snprintf(id, sizeof(id), "tiny-%llu", (unsigned long long)handle);
	feed_begin(&feed, handle, id, 1, 0);
}

static struct r3ring_span one_row(uint64_t handle, uint32_t position)
{
	return (struct r3ring_span){
		.request = handle, .position = position, .rows = 1, .accepted = R3RING_UNKNOWN_U32};
}

static void run(uint64_t step, uint64_t handle, uint32_t position)
{
	const struct r3ring_span span = one_row(handle, position);

	feed_whole(&feed, step, 1, &span, 1);
}

Test(assembler_memory, masses_of_tiny_requests_are_evicted_at_the_limit_and_counted)
{
	for (uint64_t i = 1; i <= 5000; i++) {
		begin(i);
		free_ready();
		cr_assert_leq(stats_of().bytes, LIMIT);
	}
	cr_expect_gt(stats_of().requests_live, 100);
	cr_expect_eq(stats_of().requests_live + stats_of().requests_evicted, 5000);
	cr_expect_eq(evicted, stats_of().requests_evicted);
	cr_expect_gt(evicted, 4000);
}

/* Within 1.25 of the account: what the allocator has free in between is not in it. */
Test(assembler_memory, the_account_is_what_the_allocator_gives)
{
	const size_t before = mallinfo2().uordblks;
	const uint64_t held = stats_of().bytes;
	uint64_t real, said;

#ifdef __SANITIZE_ADDRESS__
	cr_skip_test("the sanitizer's allocator tells nothing");
#endif
	for (uint64_t i = 1; i <= 200; i++)
		begin(i);
	said = stats_of().bytes - held;
	real = mallinfo2().uordblks - before;
	cr_expect_eq(stats_of().requests_evicted, 0);
	cr_expect_leq(real, said + said / 4, "%lu, said %lu", real, said);
	cr_expect_leq(said, real + real / 4, "%lu, said %lu", real, said);
}

Test(assembler_memory, the_one_that_was_quiet_longest_goes_first_however_many_there_are)
{
	struct r3ring_assembled *got;
	uint64_t busy, next;
	char id[32];

	for (uint64_t i = 1; !stats_of().requests_evicted; i++)
		begin(i);
	free_ready();
	busy = evicted + 50;
	for (uint64_t i = 0; i < 300; i++) {
		run(1 + i, busy, (uint32_t)i % 30);
		begin(100000 + i);
		while ((got = r3ring_assembler_take(feed.assembler))) {
			next = ++evicted < busy ? evicted : evicted + 1;
			snprintf(id, sizeof(id), "tiny-%llu", (unsigned long long)next);
			if (next < 100)
				cr_assert_str_eq(r3ring_assembled_get_info(got)->id, id);
			r3ring_assembled_free(got);
		}
	}
	cr_expect_gt(evicted, 100);
	snprintf(id, sizeof(id), "tiny-%llu", (unsigned long long)busy);
	feed_end(&feed, busy, R3RING_END_FINISHED, 0, 40);
	r3ring_assembled_free(take(&feed, id));
}

Test(assembler_memory, positions_far_apart_are_missing_where_memory_for_those_between_is_too_much)
{
	struct r3ring_assembled *got;

	begin(1);
	run(1, 1, 0);
	run(2, 1, 900000);
	cr_expect_leq(stats_of().bytes, LIMIT);
	run(3, 1, UINT32_C(1) << 30);
	cr_expect_leq(stats_of().bytes, LIMIT);
	run(4, 1, 2);
	feed_end(&feed, 1, R3RING_END_FINISHED, 0, 900002);
	got = take(&feed, "tiny-1");
	assert_row(got, 0, 1, 0);
	assert_missing(got, 1, R3RING_MISSING_EVICTED);
	assert_row(got, 2, 4, 0);
	assert_missing(got, 900000, R3RING_MISSING_EVICTED);
	r3ring_assembled_free(got);
}

/* The highest position of a request whose positions take so much. */
static uint32_t reach(uint64_t bytes)
{
	return (uint32_t)(bytes / sizeof(void *)) - 1;
}

/* Half of it twice and what the requests are is no more than a quarter beyond the limit: it is
 * there for a while, and who was quiet longest makes room. */
Test(assembler_memory, a_quarter_beyond_the_limit_is_taken_until_there_is_room)
{
	struct r3ring_assembled *got;

	begin(1);
	run(1, 1, reach(LIMIT / 2));
	cr_expect_gt(stats_of().bytes, LIMIT / 2);
	begin(2);
	run(2, 2, reach(LIMIT / 2));
	cr_expect_eq(stats_of().requests_evicted, 1);
	free_ready();
	cr_expect_leq(stats_of().bytes, LIMIT);
	feed_end(&feed, 2, R3RING_END_FINISHED, 0, reach(LIMIT / 2) + 2);
	got = take(&feed, "tiny-2");
	assert_row(got, reach(LIMIT / 2), 2, 0);
	r3ring_assembled_free(got);
}

/* It is the user's, and takes nothing of the limit. */
Test(assembler_memory, nor_does_what_was_given_out_count)
{
	struct r3ring_assembled *first, *third;

	for (uint64_t i = 1; i <= 2; i++) {
		begin(i);
		run(i, i, reach(LIMIT / 2));
	}
	first = take(&feed, "tiny-1");
	begin(3);
	run(3, 3, reach(LIMIT / 2));
	cr_expect_eq(stats_of().requests_evicted, 2);
	free_ready();
	feed_end(&feed, 3, R3RING_END_FINISHED, 0, reach(LIMIT / 2) + 2);
	third = take(&feed, "tiny-3");
	assert_row(third, reach(LIMIT / 2), 3, 0);
	r3ring_assembled_free(third);
	r3ring_assembled_free(first);
}

/* A quarter and two halves. */
Test(assembler_memory, more_than_a_quarter_beyond_the_limit_is_not_taken)
{
	struct r3ring_assembled *got;

	for (uint64_t i = 1; i <= 2; i++) {
		begin(i);
		run(i, i, reach(i == 1 ? LIMIT / 2 : LIMIT / 4));
	}
	begin(3);
	run(3, 3, reach(LIMIT / 2));
	cr_expect_eq(stats_of().requests_evicted, 0);
	feed_end(&feed, 3, R3RING_END_FINISHED, 0, reach(LIMIT / 2) + 2);
	got = take(&feed, "tiny-3");
	assert_missing(got, reach(LIMIT / 2), R3RING_MISSING_EVICTED);
	r3ring_assembled_free(got);
}

/* They would be the last to go for themselves. */
Test(assembler_memory, positions_that_take_more_than_the_limit_are_not_taken_for_a_while)
{
	struct r3ring_assembled *got;

	close_channel();
	open_with(LIMIT - LIMIT / 16);
	begin(1);
	run(1, 1, 0);
	run(2, 1, reach(LIMIT));
	cr_expect_eq(stats_of().requests_evicted, 0);
	feed_end(&feed, 1, R3RING_END_FINISHED, 0, reach(LIMIT) + 2);
	got = take(&feed, "tiny-1");
	assert_row(got, 0, 1, 0);
	assert_missing(got, reach(LIMIT), R3RING_MISSING_EVICTED);
	r3ring_assembled_free(got);
}

Test(assembler_memory, positions_far_apart_of_many_requests_are_counted)
{
	for (uint64_t i = 1; i <= 300; i++) {
		begin(i);
		run(i, i, 6000);
		free_ready();
		cr_assert_leq(stats_of().bytes, LIMIT);
	}
	cr_expect_gt(stats_of().requests_evicted, 290);
}

Test(assembler_memory, one_request_larger_than_the_limit_is_evicted_and_nothing_is_left)
{
	begin(1);
	for (uint32_t step = 1; step <= 20000 && !stats_of().requests_evicted; step++)
		run(step, 1, step - 1);
	cr_assert_eq(stats_of().requests_evicted, 1);
	free_ready();
	cr_expect_eq(evicted, 1);
	cr_expect_eq(stats_of().bytes, 0);
}

Test(assembler_memory, a_step_larger_than_any_memory_is_lost_with_a_cause)
{
	struct r3ring_assembled *got;
	struct r3ring_span span = one_row(1, 0);

	begin(1);
	feed_step(&feed, 1, R3RING_ROWS_MAX, &span, 1, NULL, 0);
	cr_expect_leq(stats_of().bytes, LIMIT);
	run(2, 1, 1);
	feed_end(&feed, 1, R3RING_END_FINISHED, 0, 3);
	got = take(&feed, "tiny-1");
	assert_missing(got, 0, R3RING_MISSING_EVICTED);
	assert_row(got, 1, 2, 0);
	r3ring_assembled_free(got);
	cr_expect_eq(stats_of().bytes, 0);
}

/* It would leave room for nothing, and go with all else before it has ended. */
Test(assembler_memory, a_step_larger_than_the_limit_is_lost_and_no_request)
{
	const struct r3ring_span span = one_row(1, 1);
	struct r3ring_assembled *got;

	begin(1);
	run(1, 1, 0);
	feed_whole(&feed, 2, LIMIT * 5 / 4 / STEP_ROW_BYTES, &span, 1);
	cr_expect_eq(stats_of().requests_evicted, 0);
	cr_expect_leq(stats_of().bytes, LIMIT);
	feed_end(&feed, 1, R3RING_END_FINISHED, 0, 3);
	got = take(&feed, "tiny-1");
	assert_row(got, 0, 1, 0);
	assert_missing(got, 1, R3RING_MISSING_EVICTED);
	r3ring_assembled_free(got);
}

/* Half of the limit. */
Test(assembler_memory, one_that_is_not_is_there_whole)
{
	const uint32_t rows = LIMIT / 2 / STEP_ROW_BYTES;
	const struct r3ring_span span = one_row(1, 1);
	struct r3ring_assembled *got;

	begin(1);
	run(1, 1, 0);
	feed_whole(&feed, 2, rows, &span, 1);
	cr_expect_eq(stats_of().requests_evicted, 0);
	feed_end(&feed, 1, R3RING_END_FINISHED, 0, 3);
	got = take(&feed, "tiny-1");
	assert_row(got, 0, 1, 0);
	assert_row(got, 1, 2, 0);
	r3ring_assembled_free(got);
}

/* A step of which spans never come holds up all that is behind it. */
Test(assembler_memory, what_waits_behind_a_step_is_counted_and_settled_at_the_limit)
{
	feed.flags = R3RING_STEP_SPANS_FOLLOW;
	feed_step(&feed, 1, 1, NULL, 0, NULL, 0);
	for (uint64_t i = 1; i <= 5000; i++) {
		begin(i);
		free_ready();
		cr_assert_leq(stats_of().bytes, LIMIT);
	}
	cr_expect_eq(stats_of().spans_late, 1);
}

/* Whose request its map would have named later nobody knows. */
Test(assembler_memory, what_a_step_had_yet_to_say_when_it_was_given_up_is_evicted)
{
	const struct r3ring_span span = one_row(1, 0);
	struct r3ring_assembled *got;

	feed.flags = R3RING_STEP_SPANS_FOLLOW;
	feed_step(&feed, 1, 1, NULL, 0, NULL, 0);
	for (uint64_t i = 1; i <= 300; i++)
		begin(i);
	cr_assert_eq(stats_of().requests_live, 0, "they wait behind it");
	feed.flags = 0;
	feed_step(&feed, 2, LIMIT * 3 / 4 / STEP_ROW_BYTES, NULL, 0, NULL, 0);
	cr_assert_leq(stats_of().bytes, LIMIT);
	cr_assert_eq(stats_of().requests_live, 300);
	feed_spans(&feed, 2, &span, 1);
	run(3, 1, 1);
	feed_end(&feed, 1, R3RING_END_FINISHED, 0, 3);
	got = take(&feed, "tiny-1");
	assert_missing(got, 0, R3RING_MISSING_EVICTED);
	assert_row(got, 1, 3, 0);
	r3ring_assembled_free(got);
}

Test(assembler_memory, a_key_of_more_tokens_than_there_is_memory_for_is_not_known)
{
	struct r3ring_span span = one_row(1, 0);
	uint64_t key = 7;

	feed.key_kind = R3RING_KEYS_SLOT;
	feed.tokens_per_key = UINT32_C(1) << 30;
	begin(1);
	span.keys = 1;
	feed_whole_keys(&feed, 1, 1, &span, 1, &key, 1);
	cr_expect_eq(stats_of().keys, 0);
	cr_expect_leq(stats_of().bytes, LIMIT);
	cr_expect_eq(stats_of().requests_evicted, 0);
}

/* A key has at least a pointer for each token that it may stand for. */
Test(assembler_memory, masses_of_keys_are_counted_and_forgotten)
{
	struct r3ring_span span;

	feed.key_kind = R3RING_KEYS_SLOT;
	feed.tokens_per_key = 64;
	for (uint64_t i = 1; i <= 3000; i++) {
		begin(i);
		span = one_row(i, 0);
		span.keys = 1;
		feed_whole_keys(&feed, i, 1, &span, 1, &i, 1);
		feed_end(&feed, i, R3RING_END_FINISHED, 0, 2);
		free_ready();
		cr_assert_leq(stats_of().bytes, LIMIT);
	}
	cr_expect_gt(stats_of().keys, 100);
	cr_expect_eq(stats_of().keys + stats_of().keys_forgotten, 3000);
	cr_expect_geq(stats_of().bytes, stats_of().keys * 64 * sizeof(void *));
}

Test(assembler_memory, when_all_is_over_the_account_is_nought)
{
	struct r3ring_span span = one_row(1, 0);
	uint64_t key = 7;

	feed.key_kind = R3RING_KEYS_BLOCK_HASH;
	feed.tokens_per_key = 1;
	span.keys = 1;
	for (uint64_t i = 1; i <= 2000; i++) {
		begin(i);
		span.request = i;
		key = i;
		feed.flags = i % 3 ? 0 : R3RING_STEP_SPANS_FOLLOW;
		feed_whole_keys(&feed, i, 1, &span, 1, &key, 1);
		if (i % 3 == 0)
			feed_spans_as(&feed, R3RING_SPANS_REPLACE, i, &span, 1, &key, 1);
		if (i % 2)
			feed_end(&feed, i, R3RING_END_FINISHED, 0, 2);
		free_ready();
		cr_assert_leq(stats_of().bytes, LIMIT);
	}
	cr_expect_gt(stats_of().requests_evicted, 0);
	feed.flags = 0;
	feed.generation++;
	feed.seq = 0;
	feed_schema(&feed); /* forgets the keys */
	r3ring_assembler_flush(feed.assembler);
	free_ready();
	cr_expect_eq(stats_of().keys, 0);
	cr_expect_eq(stats_of().bytes, 0);
}
