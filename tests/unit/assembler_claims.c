/* SPDX-License-Identifier: Apache-2.0 */
/* Rows that more than one span of a step claims: nobody can say whose they are. */
#include <stdio.h>

#include "tests/unit/key_feed.h"

#define ROWS 12u
#define SPANS 6u

static struct feed channel;

static void open_channel(void)
{
	feed_create(&channel, NULL);
	feed_schema(&channel);
	feed_begin(&channel, 1, "a", 4, 0);
	feed_begin(&channel, 2, "b", 4, 0);
}

static void close_channel(void)
{
	feed_destroy(&channel);
}

TestSuite(assembler_claims, .init = open_channel, .fini = close_channel);

static struct r3ring_span computed(uint64_t request, uint32_t position, uint32_t row, uint32_t rows)
{
	return keyed_span(request, R3RING_SPAN_COMPUTED, position, row, rows, 0);
}

Test(assembler_claims, failure_51_a_row_that_two_requests_claim_is_missing_for_both_and_named)
{
	const struct r3ring_span spans[] = {computed(1, 0, 0, 3), computed(2, 0, 2, 3)};
	const struct r3ring_assembled_info *info;
	struct r3ring_assembled *got;

	feed_whole(&channel, 7, 5, spans, 2);
	got = feed_finish(&channel, 1, "a", 4);
	assert_row(got, 0, 7, 0);
	assert_row(got, 1, 7, 1);
	assert_missing(got, 2, R3RING_CAUSE_CONFLICT);
	r3ring_assembled_free(got);
	got = feed_finish(&channel, 2, "b", 4);
	assert_missing(got, 0, R3RING_CAUSE_CONFLICT);
	assert_row(got, 1, 7, 3);
	assert_row(got, 2, 7, 4);
	info = r3ring_assembled_get_info(got);
	cr_assert_eq(info->conflicts, FEED_LAYERS);
	cr_assert_eq(info->conflict[0].step[0], 7);
	cr_assert_eq(info->conflict[0].step[1], 7);
	cr_assert_eq(info->conflict[0].channel[0], channel.channel);
	r3ring_assembled_free(got);
}

Test(assembler_claims, one_request_that_claims_a_row_for_two_positions_has_it_for_neither)
{
	const struct r3ring_span spans[] = {computed(1, 0, 0, 2), computed(1, 2, 1, 1)};
	struct r3ring_assembled *got;

	feed_whole(&channel, 1, 2, spans, 2);
	got = feed_finish(&channel, 1, "a", 4);
	assert_row(got, 0, 1, 0);
	assert_missing(got, 1, R3RING_CAUSE_CONFLICT);
	assert_missing(got, 2, R3RING_CAUSE_CONFLICT);
	r3ring_assembled_free(got);
}

Test(assembler_claims, the_device_s_positions_do_not_say_whose_a_row_is)
{
	const struct r3ring_span spans[] = {computed(1, 0, 0, 2), computed(2, 0, 0, 2)};
	const int32_t seen[] = {0, 1};
	struct r3ring_assembled *got;

	feed_step(&channel, 1, 2, spans, 2, NULL, 0);
	feed_layers(&channel, 1, 2, 0, FEED_LAYERS);
	feed_rows(&channel, 1, seen, 2);
	feed_step_end(&channel, 1, 0, R3RING_CAUSE_NONE);
	got = feed_finish(&channel, 1, "a", 4);
	assert_missing(got, 0, R3RING_CAUSE_CONFLICT);
	r3ring_assembled_free(got);
}

Test(assembler_claims, spans_that_only_touch_and_those_without_rows_claim_nothing_twice)
{
	const struct r3ring_span spans[] = {computed(2, 2, 2, 2), computed(1, 0, 0, 2),
					    keyed_span(1, R3RING_SPAN_EXTERNAL, 2, 0, 1, 0),
					    computed(2, 0, 1, 0)};
	struct r3ring_assembled *got;

	feed_whole(&channel, 1, 4, spans, 4);
	got = feed_finish(&channel, 1, "a", 4);
	assert_row(got, 0, 1, 0);
	assert_row(got, 1, 1, 1);
	assert_missing(got, 2, R3RING_MISSING_EXTERNAL);
	r3ring_assembled_free(got);
	got = feed_finish(&channel, 2, "b", 5);
	assert_row(got, 2, 1, 2);
	assert_row(got, 3, 1, 3);
	r3ring_assembled_free(got);
}

Test(assembler_claims, claims_are_seen_over_all_records_of_a_map)
{
	const struct r3ring_span first = computed(1, 0, 0, 3), rest = computed(2, 0, 1, 1);
	struct r3ring_assembled *got;

	channel.flags = R3RING_STEP_MAP_CONTINUED;
	feed_step(&channel, 1, 3, &first, 1, NULL, 0);
	feed_spans_as(&channel, R3RING_SPANS_MORE, 1, &rest, 1, NULL, 0);
	feed_layers(&channel, 1, 3, 0, FEED_LAYERS);
	feed_step_end(&channel, 1, 0, R3RING_CAUSE_NONE);
	got = feed_finish(&channel, 1, "a", 4);
	assert_row(got, 0, 1, 0);
	assert_missing(got, 1, R3RING_CAUSE_CONFLICT);
	assert_row(got, 2, 1, 2);
	r3ring_assembled_free(got);
}

Test(assembler_claims, spans_that_follow_may_undo_a_claim_and_may_make_one)
{
	const struct r3ring_span guess[] = {computed(1, 0, 0, 3), computed(2, 0, 0, 3)};
	const struct r3ring_span apart = computed(2, 0, 3, 1), onto = computed(2, 1, 1, 1);
	struct r3ring_assembled *got;

	channel.flags = R3RING_STEP_SPANS_FOLLOW;
	feed_whole(&channel, 1, 4, guess, 2);
	feed_spans(&channel, 1, &apart, 1);
	feed_whole(&channel, 2, 4, &guess[0], 1);
	feed_spans(&channel, 2, &onto, 1);
	got = feed_finish(&channel, 2, "b", 4);
	assert_row(got, 0, 1, 3);
	assert_missing(got, 1, R3RING_CAUSE_CONFLICT);
	r3ring_assembled_free(got);
}

Test(assembler_claims, spans_after_their_step_was_settled_take_no_row_of_another_request)
{
	const struct r3ring_span said[] = {computed(1, 0, 0, 2), computed(2, 0, 2, 2)};
	const struct r3ring_span late = computed(1, 0, 1, 2);
	struct r3ring_assembled *got;

	feed_whole(&channel, 1, 4, said, 2);
	feed_spans(&channel, 1, &late, 1);
	got = feed_finish(&channel, 1, "a", 4);
	assert_row(got, 0, 1, 1);
	cr_assert_neq(cell_of(got, 1, 0, 0, 1, 2), 0);
	r3ring_assembled_free(got);
	got = feed_finish(&channel, 2, "b", 4);
	assert_missing(got, 0, R3RING_CAUSE_CONFLICT);
	assert_row(got, 1, 1, 3);
	r3ring_assembled_free(got);
}

/* Spans that come late say again what their request had, and claim a row that nobody had. */
Test(assembler_claims, nor_do_they_mar_what_a_cache_found_of_their_own_request)
{
	const struct r3ring_span said = keyed_span(1, R3RING_SPAN_COMPUTED, 0, 0, 4, 1);
	const struct r3ring_span late[] = {computed(1, 0, 0, 4), computed(1, 4, 4, 1)};
	const uint64_t key = 77;
	struct r3ring_assembled *got;

	channel.key_kind = R3RING_KEYS_SLOT;
	channel.tokens_per_key = 4;
	feed_whole_keys(&channel, 1, 5, &said, 1, &key, 1);
	feed_begin(&channel, 3, "c", 5, 0);
	feed_cached(&channel, 2, 3, 4, &key, 1);
	feed_spans(&channel, 1, late, 2);
	got = feed_finish(&channel, 3, "c", 6);
	assert_row(got, 3, 1, 3);
	assert_row(got, 4, 2, 0);
	r3ring_assembled_free(got);
	got = feed_finish(&channel, 1, "a", 6);
	assert_row(got, 3, 1, 3);
	r3ring_assembled_free(got);
}

Test(assembler_claims, nor_what_it_found_of_another_pass_of_that)
{
	const struct r3ring_span said = keyed_span(1, R3RING_SPAN_COMPUTED, 0, 0, 4, 1);
	const struct r3ring_span again = keyed_span(1, R3RING_SPAN_COMPUTED, 3, 0, 1, 1);
	const struct r3ring_span late[] = {computed(1, 3, 0, 1), computed(1, 4, 1, 1)};
	const uint64_t key = 77;
	struct r3ring_assembled *got;

	channel.key_kind = R3RING_KEYS_SLOT;
	channel.tokens_per_key = 4;
	feed_whole_keys(&channel, 1, 4, &said, 1, &key, 1);
	feed_whole_keys(&channel, 2, 2, &again, 1, &key, 1);
	feed_begin(&channel, 3, "c", 5, 0);
	feed_cached(&channel, 3, 3, 4, &key, 1);
	feed_spans(&channel, 2, late, 2);
	got = feed_finish(&channel, 3, "c", 6);
	assert_row(got, 2, 1, 2);
	assert_row(got, 3, 2, 0);
	r3ring_assembled_free(got);
}

Test(assembler_claims, a_key_that_was_set_by_a_row_of_two_requests_finds_none)
{
	const struct r3ring_span spans[] = {
		keyed_span(1, R3RING_SPAN_COMPUTED, 0, 0, 4, 1),
		keyed_span(2, R3RING_SPAN_COMPUTED, 0, 3, 1, 0),
	};
	const uint64_t key = 77;
	struct r3ring_assembled *got;

	channel.key_kind = R3RING_KEYS_BLOCK_HASH;
	channel.tokens_per_key = 4;
	feed_whole_keys(&channel, 1, 4, spans, 2, &key, 1);
	feed_begin(&channel, 3, "c", 5, 0);
	feed_cached(&channel, 2, 3, 4, &key, 1);
	got = feed_finish(&channel, 3, "c", 6);
	assert_row(got, 2, 1, 2);
	assert_missing(got, 3, R3RING_CAUSE_CONFLICT);
	assert_row(got, 4, 2, 0);
	r3ring_assembled_free(got);
}

Test(assembler_claims, only_rows_of_the_rank_are_the_rank_s_to_tell_of)
{
	const struct r3ring_span spans[] = {computed(1, 0, 0, 3), computed(2, 0, 0, 2),
					    computed(2, 2, 3, 1)};
	struct r3ring_assembled *got;

	channel.row_begin = 1;
	channel.row_end = 4;
	feed_whole(&channel, 1, 4, spans, 3);
	got = feed_finish(&channel, 1, "a", 4);
	assert_missing(got, 1, R3RING_CAUSE_CONFLICT);
	assert_row(got, 2, 1, 2);
	r3ring_assembled_free(got);
	got = feed_finish(&channel, 2, "b", 4);
	assert_missing(got, 1, R3RING_CAUSE_CONFLICT);
	assert_row(got, 2, 1, 3);
	r3ring_assembled_free(got);
}

/* ---- any spans, beside counting claims row by row --------------------------- */

static uint32_t seed;

static uint32_t random_below(uint32_t limit)
{
	seed = seed * 1664525u + 1013904223u;
	return (uint32_t)((uint64_t)seed * limit >> 32);
}

static void expect_claims(const struct r3ring_assembled *got, const struct r3ring_span *span,
			  uint64_t step, const uint32_t *claims)
{
	for (uint32_t i = 0; i < span->rows; i++) {
		const uint32_t row = span->row + i;

		if (claims[row] > 1)
			assert_missing(got, span->position + i, R3RING_CAUSE_CONFLICT);
		else
			assert_row(got, span->position + i, step, row);
	}
}

/* One request a span, each from position 0 on. */
static void try_map(uint64_t step)
{
	struct r3ring_span spans[SPANS];
	uint32_t claims[ROWS] = {0};
	char id[16];

	for (uint32_t i = 0; i < SPANS; i++) {
		uint32_t row = random_below(ROWS);

		spans[i] = computed(step * SPANS + i, 0, row, random_below(ROWS - row + 1) / 2);
		for (uint32_t j = 0; j < spans[i].rows; j++)
			claims[row + j]++;
		snprintf(id, sizeof(id), "r%u", i);
		feed_begin(&channel, spans[i].request, id, ROWS, 0);
	}
	feed_whole(&channel, step, ROWS, spans, SPANS);
	for (uint32_t i = 0; i < SPANS; i++) {
		struct r3ring_assembled *got;

		snprintf(id, sizeof(id), "r%u", i);
		got = feed_finish(&channel, spans[i].request, id, ROWS);
		expect_claims(got, &spans[i], step, claims);
		r3ring_assembled_free(got);
	}
}

Test(assembler_claims, in_any_map_exactly_the_rows_claimed_twice_are_missing)
{
	for (uint64_t step = 1; step <= 400; step++)
		try_map(step);
}
