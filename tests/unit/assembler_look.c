/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that live, seen before they are given out; and who goes first for want of room. */
#include <errno.h>
#include <string.h>

#include "tests/unit/record_feed.h"

static struct feed feed;

static void open_assembler(void)
{
	feed_create(&feed, NULL);
	feed_schema(&feed);
}

static void close_assembler(void)
{
	feed_destroy(&feed);
}

TestSuite(assembler_look, .init = open_assembler, .fini = close_assembler);

static void run(uint64_t handle, uint64_t step, uint32_t position, uint32_t rows)
{
	const struct r3ring_span one = {.request = handle,
					.position = position,
					.rows = rows,
					.accepted = R3RING_UNKNOWN_U32};

	feed_whole(&feed, step, rows, &one, 1);
}

static struct r3ring_assembled *look(const char *id)
{
	struct r3ring_assembled *seen = NULL;

	cr_assert_eq(r3ring_assembler_look(feed.assembler, id, &seen), 0);
	cr_assert_str_eq(r3ring_assembled_get_info(seen)->id, id);
	return seen;
}

Test(assembler_look, a_request_that_lives_is_seen_as_it_stands_and_goes_on)
{
	struct r3ring_assembled *got;

	feed_begin(&feed, 1, "a", 2, 0);
	run(1, 1, 0, 2);
	got = look("a");
	cr_expect_eq(r3ring_assembled_get_info(got)->tokens, 2);
	cr_expect_eq(r3ring_assembled_get_info(got)->flags,
		     R3RING_ASSEMBLED_UNFINISHED | R3RING_ASSEMBLED_LENGTH_GUESSED);
	assert_row(got, 0, 1, 0);
	assert_row(got, 1, 1, 1);
	r3ring_assembled_free(got);
	cr_expect_null(r3ring_assembler_take(feed.assembler));
	run(1, 2, 2, 1);
	got = look("a");
	cr_expect_eq(r3ring_assembled_get_info(got)->tokens, 3);
	assert_row(got, 2, 2, 0);
	r3ring_assembled_free(got);
	feed_end(&feed, 1, R3RING_END_FINISHED, 0, 4);
	cr_expect_eq(r3ring_assembler_look(feed.assembler, "a", &got), -ENOENT);
	got = take(&feed, "a");
	cr_expect_eq(r3ring_assembled_get_info(got)->flags, 0);
	assert_row(got, 0, 1, 0);
	assert_row(got, 2, 2, 0);
	assert_missing(got, 3, R3RING_MISSING_NOT_FED);
	r3ring_assembled_free(got);
}

Test(assembler_look, what_has_not_come_of_it_says_why)
{
	const struct r3ring_span one = {.request = 1, .rows = 1, .accepted = R3RING_UNKNOWN_U32};
	struct r3ring_assembled *got;

	feed_begin(&feed, 1, "a", 2, 0);
	feed_step(&feed, 1, 1, &one, 1, NULL, 0);
	feed_layers(&feed, 1, 1, 0, 2);
	feed_step_end(&feed, 1, 2, R3RING_CAUSE_RING_FULL);
	got = look("a");
	cr_expect_eq(cell_of(got, 0, 0, 0, 1, 0), 0);
	cr_expect_eq(cell_of(got, 0, 2, 0, 1, 0), R3RING_CAUSE_RING_FULL);
	cr_expect_eq(r3ring_assembled_get_info(got)->cells_missing[R3RING_CAUSE_RING_FULL], 1);
	r3ring_assembled_free(got);
}

Test(assembler_look, those_that_live_are_listed_the_newest_spoken_of_first)
{
	const char *ids[2];

	cr_expect_eq(r3ring_assembler_live(feed.assembler, ids, 2), 0);
	feed_begin(&feed, 1, "a", 1, 0);
	feed_begin(&feed, 2, "b", 1, 0);
	feed_begin(&feed, 3, "c", 1, 0);
	run(1, 1, 0, 1);
	cr_assert_eq(r3ring_assembler_live(feed.assembler, ids, 2), 2);
	cr_expect_str_eq(ids[0], "a");
	cr_expect_str_eq(ids[1], "c");
	feed_end(&feed, 1, R3RING_END_FINISHED, 0, 1);
	cr_assert_eq(r3ring_assembler_live(feed.assembler, ids, 1), 1);
	cr_expect_str_eq(ids[0], "c");
}

Test(assembler_look, of_two_of_one_id_the_one_that_was_spoken_of_last_is_seen)
{
	struct feed other = feed_channel(&feed, "other/0");
	struct r3ring_assembled *got;

	feed_schema(&other);
	feed_begin(&feed, 1, "a", 1, 0);
	feed_begin(&other, 1, "a", 7, 0);
	got = look("a");
	cr_expect_eq(r3ring_assembled_get_info(got)->prompt_tokens, 7);
	r3ring_assembled_free(got);
	run(1, 1, 0, 1);
	got = look("a");
	cr_expect_eq(r3ring_assembled_get_info(got)->prompt_tokens, 1);
	r3ring_assembled_free(got);
}

/* ---- room --------------------------------------------------------------------------- */

#define BLOCK 16u

/* One request after the other fills blocks of the prefix cache, while one stays. */
static uint64_t evicted_beside_keys(uint32_t keys_go_first)
{
	const struct r3ring_assembler_options options = {
		.size = sizeof(options), .max_bytes = 12000, .keys_go_first = keys_go_first};
	struct r3ring_span blocks = {
		.request = 9, .rows = BLOCK, .accepted = R3RING_UNKNOWN_U32, .keys = 1};
	struct r3ring_assembler_stats stats;

	feed_destroy(&feed);
	feed_create(&feed, &options);
	feed.key_kind = R3RING_KEYS_BLOCK_HASH;
	feed.tokens_per_key = BLOCK;
	feed_schema(&feed);
	feed_begin(&feed, 1, "stays", 1, 0);
	run(1, 1, 0, 1);
	for (uint64_t step = 2; step < 100; step++) {
		uint64_t key = step;
		struct r3ring_assembled *got;

		blocks.request = step;
		feed_begin(&feed, step, "passes", BLOCK, 0);
		feed_whole_keys(&feed, step, BLOCK, &blocks, 1, &key, 1);
		feed_end(&feed, step, R3RING_END_FINISHED, 0, BLOCK + 1);
		while ((got = r3ring_assembler_take(feed.assembler)))
			r3ring_assembled_free(got);
	}
	r3ring_assembler_get_stats(feed.assembler, &stats);
	cr_expect_leq(stats.bytes, options.max_bytes);
	return stats.requests_evicted;
}

Test(assembler_look, keys_of_a_prefix_cache_go_before_requests_where_that_is_asked_for)
{
	struct r3ring_assembled *got;

	cr_expect_gt(evicted_beside_keys(0), 0);
	cr_expect_eq(evicted_beside_keys(1), 0);
	got = look("stays");
	assert_row(got, 0, 1, 0);
	r3ring_assembled_free(got);
}
