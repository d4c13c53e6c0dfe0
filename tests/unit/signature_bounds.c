/* SPDX-License-Identifier: Apache-2.0 */
/* How much is kept of signatures, and which of them go. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "consumer/signature/signature.h"
#include "tests/unit/signature_fixture.h"

/* Counts of a request's layers in one phase. */
#define BLOCK (FEED_LAYERS * SIGNATURE_EXPERTS * sizeof(uint16_t))

TestSuite(signature_bounds, .fini = signature_close);

Test(signature_bounds, ended_ones_are_kept_up_to_a_number_and_the_oldest_goes_first)
{
	const struct r3ring_signatures_options options = {.size = sizeof(options), .max_ended = 2};
	char id[8];

	signature_open(&options);
	for (uint32_t i = 1; i <= 5; i++) {
		snprintf(id, sizeof(id), "r%u", i);
		signature_live(i, id, i);
		feed_end(&signature_feed, i, R3RING_END_FINISHED, 0, 4);
	}
	signature_expect_gone("r3");
	signature_get("r4");
	signature_get("r5");
	cr_assert_eq(signature_stats().ended, 2);
	cr_assert_eq(signature_stats().forgotten, 3);
	cr_assert_eq(signature_stats().evicted, 0);
}

Test(signature_bounds, the_one_that_ended_longest_ago_goes_whichever_ran_last)
{
	const struct r3ring_signatures_options options = {.size = sizeof(options), .max_ended = 1};

	signature_open(&options);
	signature_live(1, "a", 1);
	signature_live(2, "b", 2);
	feed_end(&signature_feed, 2, R3RING_END_FINISHED, 0, 4);
	feed_end(&signature_feed, 1, R3RING_END_FINISHED, 0, 4);
	signature_expect_gone("b");
	signature_get("a");
}

Test(signature_bounds, a_live_one_goes_only_when_no_ended_one_can_and_that_is_counted)
{
	const struct r3ring_signatures_options options = {.size = sizeof(options),
							  .max_requests = 3};

	signature_open(&options);
	signature_live(1, "a", 1);
	signature_live(2, "b", 2);
	signature_live(3, "c", 3);
	feed_end(&signature_feed, 3, R3RING_END_FINISHED, 0, 4);
	signature_live(4, "d", 4);
	signature_expect_gone("c");
	cr_assert_eq(signature_stats().forgotten, 1);
	feed_computed(&signature_feed, 5, 1, 3, 1, NULL, 0);
	signature_live(5, "e", 6);
	signature_expect_gone("b");
	signature_get("a");
	cr_assert_eq(signature_stats().evicted, 1);
	/* What it still runs is counted as such, and no other's. */
	feed_computed(&signature_feed, 7, 2, 3, 1, NULL, 0);
	cr_assert_eq(signature_stats().rows_unkept, 1);
	cr_assert_eq(signature_get("a")->rows[R3RING_SIGNATURE_DECODE], 1);
}

Test(signature_bounds, memory_stays_below_its_bound)
{
	const struct r3ring_signatures_options options = {
		.size = sizeof(options),
		.max_bytes = 10 * BLOCK,
		.max_key_bytes = 20000,
	};
	uint64_t keys[] = {0, 0};
	char id[8];

	signature_open(&options);
	signature_feed.key_kind = R3RING_KEYS_BLOCK_HASH;
	signature_feed.tokens_per_key = 2;
	for (uint32_t i = 1; i <= 300; i++) {
		snprintf(id, sizeof(id), "r%u", i);
		keys[0] = 2 * i;
		keys[1] = 2 * i + 1;
		feed_begin(&signature_feed, i, id, 4, 0);
		feed_computed(&signature_feed, i, i, 0, 4, keys, 2);
		if (i % 2)
			feed_end(&signature_feed, i, R3RING_END_FINISHED, 0, 5);
		cr_assert_leq(signature_stats().bytes, options.max_bytes);
		cr_assert_leq(signature_stats().key_bytes, options.max_key_bytes + 4 * 1024);
	}
	cr_assert_eq(signature_stats().live + signature_stats().ended, 10);
	cr_assert_eq(signature_stats().evicted + signature_stats().forgotten, 290);
	cr_assert_gt(signature_stats().keys_forgotten, 0);
	cr_assert_eq(signature_stats().rows, 300 * 4);
	cr_assert_eq(signature_stats().rows_unkept, 0);
}

Test(signature_bounds, one_that_goes_gives_back_what_it_took_in_all_stages_and_phases)
{
	const struct r3ring_signatures_options options = {.size = sizeof(options),
							  .max_requests = 1};
	struct feed stage;

	signature_open(&options);
	stage = feed_signatures_channel(&signature_feed, "test/1");
	stage.first_layer = FEED_LAYERS;
	stage.rank.pp = (struct r3ring_coordinate){1, 2};
	feed_schema(&stage);
	signature_live(1, "a", 1);
	feed_begin(&stage, 1, "a", 3, 0);
	feed_computed(&stage, 1, 1, 0, 3, NULL, 0);
	feed_computed(&signature_feed, 2, 1, 3, 1, NULL, 0);
	feed_computed(&stage, 2, 1, 3, 1, NULL, 0);
	cr_expect_eq(signature_stats().bytes, 4 * BLOCK);
	signature_live(2, "b", 3);
	signature_expect_gone("a");
	cr_expect_eq(signature_stats().bytes, BLOCK);
}

/* ---- no room ----------------------------------------------------------------------- */

/* As a thread does that copies the first signature that was begun. */
static void enter_first(void)
{
	cr_assert(hold_enter(&signature_feed.signatures->slot[0].hold));
}

static void leave_first(void)
{
	hold_leave(&signature_feed.signatures->slot[0].hold);
}

Test(signature_bounds, one_that_is_being_read_makes_no_room_until_that_is_over)
{
	const struct r3ring_signatures_options options = {.size = sizeof(options),
							  .max_requests = 1};
	struct signature_expected first = {0}, second = {0};

	signature_open(&options);
	signature_live(1, "a", 1);
	enter_first();
	signature_live(2, "b", 2);
	cr_expect_eq(signature_stats().rows_unkept, 3);
	signature_count(&first, R3RING_SIGNATURE_PREFILL, 1, 0, 3);
	signature_expect("a", &first);
	leave_first();
	feed_computed(&signature_feed, 3, 2, 3, 1, NULL, 0);
	signature_count(&second, R3RING_SIGNATURE_DECODE, 3, 0, 1);
	signature_expect("b", &second);
	signature_expect_gone("a");
}

Test(signature_bounds, where_an_ended_one_is_being_read_a_live_one_goes)
{
	const struct r3ring_signatures_options options = {.size = sizeof(options),
							  .max_requests = 2};

	signature_open(&options);
	signature_live(1, "a", 1);
	signature_live(2, "b", 2);
	feed_end(&signature_feed, 1, R3RING_END_FINISHED, 0, 4);
	enter_first();
	signature_live(3, "c", 3);
	leave_first();
	signature_get("a");
	signature_expect_gone("b");
	cr_expect_eq(signature_stats().evicted, 1);
	cr_expect_eq(signature_stats().forgotten, 0);
}

Test(signature_bounds, rows_whose_counts_find_no_room_are_told)
{
	const struct r3ring_signatures_options options = {.size = sizeof(options),
							  .max_bytes = BLOCK};

	signature_open(&options);
	signature_live(1, "a", 1);
	enter_first();
	signature_live(2, "b", 2);
	leave_first();
	cr_expect_eq(signature_stats().rows_unkept, 3);
	cr_expect_eq(signature_stats().rows, 3);
	cr_expect_eq(signature_get("b")->rows[R3RING_SIGNATURE_PREFILL], 0);
}

/* A pipeline of one stage more than are kept. */
Test(signature_bounds, stages_with_layers_of_their_own_are_kept_up_to_a_number)
{
	struct feed stage[SIGNATURE_STAGES];
	char name[16];

	signature_open(NULL);
	signature_live(1, "a", 1);
	for (uint32_t i = 0; i < SIGNATURE_STAGES; i++) {
		snprintf(name, sizeof(name), "test/%u", i + 1);
		stage[i] = feed_signatures_channel(&signature_feed, name);
		stage[i].first_layer = (int32_t)((i + 1) * FEED_LAYERS);
		stage[i].rank.pp =
			(struct r3ring_coordinate){(uint16_t)(i + 1), SIGNATURE_STAGES + 1};
		feed_schema(&stage[i]);
		feed_begin(&stage[i], 1, "a", 3, 0);
		feed_computed(&stage[i], 1, 1, 0, 3, NULL, 0);
	}
	cr_expect_eq(signature_get("a")->layers, SIGNATURE_STAGES * FEED_LAYERS);
	cr_expect_eq(signature_get("a")->rows[R3RING_SIGNATURE_PREFILL], SIGNATURE_STAGES * 3);
	cr_expect_eq(signature_stats().rows_unkept, 3);
}

Test(signature_bounds, a_request_that_lives_long_does_not_keep_its_rows)
{
	uint64_t after_two;

	signature_open(NULL);
	signature_feed.key_kind = R3RING_KEYS_BLOCK_HASH;
	signature_feed.tokens_per_key = 2;
	feed_begin(&signature_feed, 1, "a", 1, 0);
	feed_computed(&signature_feed, 1, 1, 0, 1, NULL, 0);
	feed_computed(&signature_feed, 2, 1, 1, 1, NULL, 0);
	after_two = signature_stats().key_bytes;
	for (uint32_t step = 3; step < 200; step++)
		feed_computed(&signature_feed, step, 1, step - 1, 1, NULL, 0);
	/* One row without ids stands for all that were given back; a position is a word. */
	cr_assert_leq(signature_stats().key_bytes, after_two + (256 - 64) * sizeof(void *) + 100);
	cr_assert_eq(signature_get("a")->rows[R3RING_SIGNATURE_DECODE], 198);
}

/* ---- finding them ------------------------------------------------------------------ */

Test(signature_bounds, what_was_read_is_held_by_nobody)
{
	const struct r3ring_signatures_options options = {.size = sizeof(options),
							  .max_requests = 2};

	signature_open(&options);
	signature_live(1, "a", 1);
	feed_end(&signature_feed, 1, R3RING_END_FINISHED, 0, 4);
	signature_live(2, "a", 2);
	cr_assert_eq(signature_get("a")->same_id, 1);
	signature_live(3, "b", 3);
	signature_live(4, "c", 4);
	signature_expect_gone("a");
	signature_get("b");
	signature_get("c");
}

struct hashed {
	uint32_t hash, number;
};

static int by_hash(const void *a, const void *b)
{
	const struct hashed *left = a, *right = b;

	return (left->hash > right->hash) - (left->hash < right->hash);
}

/* Two ids of one hash, which a few hundred thousand have. */
static void find_alike(char ids[2][16])
{
	enum { IDS = 400000 };
	struct hashed *all = malloc(IDS * sizeof(*all));
	uint32_t i;

	for (i = 0; i < IDS; i++) {
		snprintf(ids[0], 16, "%u", i);
		all[i] = (struct hashed){signature_hash(ids[0]), i};
	}
	qsort(all, IDS, sizeof(*all), by_hash);
	for (i = 1; i < IDS && all[i].hash != all[i - 1].hash; i++)
		;
	cr_assert_lt(i, IDS);
	snprintf(ids[0], 16, "%u", all[i - 1].number);
	snprintf(ids[1], 16, "%u", all[i].number);
	free(all);
}

Test(signature_bounds, ids_of_one_hash_are_told_apart_and_none_is_held)
{
	const struct r3ring_signatures_options options = {.size = sizeof(options),
							  .max_requests = 2};
	char id[2][16];

	find_alike(id);
	signature_open(&options);
	signature_live(1, id[0], 1);
	signature_live(2, id[1], 2);
	cr_expect_str_eq(signature_get(id[0])->id, id[0]);
	cr_expect_str_eq(signature_get(id[1])->id, id[1]);
	cr_expect_eq(signature_get(id[1])->same_id, 0);
	signature_live(3, "c", 3);
	signature_get("c");
	signature_expect_gone(id[0]);
}

Test(signature_bounds, the_longest_id_is_told_whole_and_none_finds_nothing)
{
	char id[R3RING_TEXT_ID_MAX + 1];

	memset(id, 'x', R3RING_TEXT_ID_MAX);
	id[R3RING_TEXT_ID_MAX] = '\0';
	signature_open(NULL);
	signature_live(1, id, 1);
	cr_expect_str_eq(signature_get(id)->id, id);
	signature_expect_gone("");
	signature_expect_gone(NULL);
}

/* ---- options ----------------------------------------------------------------------- */

Test(signature_bounds, what_is_left_out_is_as_the_header_says)
{
	const struct r3ring_signatures_options *options;

	signature_open(NULL);
	options = &signature_feed.signatures->options;
	cr_expect_eq(options->max_requests, 4096);
	cr_expect_eq(options->max_ended, 1024);
	cr_expect_eq(options->max_bytes, UINT64_C(512) << 20);
	cr_expect_eq(options->max_key_bytes, UINT64_C(256) << 20);
}

Test(signature_bounds, options_of_another_size_are_refused)
{
	const struct r3ring_signatures_options options = {.size = 1};
	struct r3ring_signatures *none = NULL;
	struct r3ring_error err = {0};

	cr_expect_eq(r3ring_signatures_create(&none, &options, &err), -EINVAL);
	cr_expect_null(none);
	cr_expect(strstr(err.text, "size: 1"), "%s", err.text);
}
