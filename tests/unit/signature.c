/* SPDX-License-Identifier: Apache-2.0 */
/* Signatures against counts that the tests make themselves, row by row. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/key_feed.h"

#define EXPERTS 16u

static struct feed from;
static struct r3ring_signature *signature;

struct expected {
	uint16_t counts[R3RING_SIGNATURE_PHASES][FEED_LAYERS * EXPERTS];
	uint64_t rows[R3RING_SIGNATURE_PHASES];
};

static uint16_t expert(const struct feed *feed, uint64_t step, uint32_t row, uint32_t layer,
		       uint32_t k)
{
	(void)feed;
	return (uint16_t)((step * 7 + row * 3 + layer * 5 + k * (1 + step % 3)) % EXPERTS);
}

static void open_with(const struct r3ring_signatures_options *options)
{
	feed_create_signatures(&from, options);
	from.experts = EXPERTS;
	from.id = expert;
	feed_schema(&from);
	cr_assert_eq(r3ring_signature_create(&signature), 0);
}

static void open_signatures(void)
{
	open_with(NULL);
}

static void close_signatures(void)
{
	r3ring_signature_free(signature);
	feed_destroy(&from);
}

TestSuite(signature, .init = open_signatures, .fini = close_signatures);

/* Rows [first, end) of a step are in it. */
static void add(struct expected *expected, enum r3ring_signature_phase phase, uint64_t step,
		uint32_t first, uint32_t end)
{
	for (uint32_t row = first; row < end; row++) {
		expected->rows[phase]++;
		for (uint32_t layer = 0; layer < FEED_LAYERS; layer++)
			for (uint32_t k = 0; k < FEED_TOP_K; k++)
				expected->counts[phase][layer * EXPERTS +
							expert(NULL, step, row, layer, k)]++;
	}
}

static const struct r3ring_signature_info *get(const char *id)
{
	cr_assert_eq(r3ring_signatures_get(from.signatures, id, signature), 0, "%s", id);
	return r3ring_signature_get_info(signature);
}

static void expect(const char *id, const struct expected *expected)
{
	const struct r3ring_signature_info *info = get(id);

	cr_assert_str_eq(info->id, id);
	cr_assert_eq(info->layers, FEED_LAYERS);
	cr_assert_eq(info->experts, EXPERTS);
	for (uint32_t phase = 0; phase < R3RING_SIGNATURE_PHASES; phase++) {
		cr_assert_eq(info->rows[phase], expected->rows[phase], "phase %u: %lu rows", phase,
			     info->rows[phase]);
		for (uint32_t i = 0; i < FEED_LAYERS * EXPERTS; i++)
			cr_assert_eq(info->counts[phase][i], expected->counts[phase][i],
				     "phase %u, layer %u, expert %u: %u, not %u", phase,
				     i / EXPERTS, i % EXPERTS, info->counts[phase][i],
				     expected->counts[phase][i]);
	}
}

static void expect_gone(const char *id)
{
	cr_assert_eq(r3ring_signatures_get(from.signatures, id, signature), -ENOENT, "%s", id);
	cr_assert_null(r3ring_signature_get_info(signature)->id);
}

static struct r3ring_signatures_stats stats_of(void)
{
	struct r3ring_signatures_stats stats;

	r3ring_signatures_get_stats(from.signatures, &stats);
	return stats;
}

/* ---- what is counted ---------------------------------------------------------- */

Test(signature, prefill_and_decode_are_counted_apart)
{
	struct expected expected = {0};

	feed_begin(&from, 1, "a", 6, 0);
	feed_computed(&from, 1, 1, 0, 4, NULL, 0);
	feed_computed(&from, 2, 1, 4, 2, NULL, 0);
	from.ns = 12345;
	feed_computed(&from, 3, 1, 6, 1, NULL, 0);
	add(&expected, R3RING_SIGNATURE_PREFILL, 1, 0, 4);
	add(&expected, R3RING_SIGNATURE_PREFILL, 2, 0, 2);
	add(&expected, R3RING_SIGNATURE_DECODE, 3, 0, 1);
	expect("a", &expected);
	cr_assert_eq(get("a")->flags, 0);
	cr_assert_eq(get("a")->prompt_tokens, 6);
	cr_assert_eq(get("a")->updated_ns, 12345);
	feed_end(&from, 1, R3RING_END_FINISHED, 0, 8);
	expect("a", &expected);
	cr_assert_eq(get("a")->flags, R3RING_SIGNATURE_ENDED);
}

Test(signature, a_layer_that_the_steps_end_takes_back_is_in_none)
{
	const struct r3ring_span span = keyed_span(1, R3RING_SPAN_COMPUTED, 0, 0, 2, 0);
	struct expected expected = {0};

	feed_begin(&from, 1, "a", 6, 0);
	feed_step(&from, 1, 2, &span, 1, NULL, 0);
	feed_layers(&from, 1, 2, 0, FEED_LAYERS);
	feed_step_end(&from, 1, 1, R3RING_CAUSE_OVERLAP);
	add(&expected, R3RING_SIGNATURE_PREFILL, 1, 0, 2);
	memset(&expected.counts[R3RING_SIGNATURE_PREFILL][1 * EXPERTS], 0,
	       EXPERTS * sizeof(uint16_t));
	expect("a", &expected);
}

Test(signature, failure_10_rows_are_those_of_their_request_however_a_step_mixes_them)
{
	const struct r3ring_span spans[] = {keyed_span(2, R3RING_SPAN_COMPUTED, 0, 3, 2, 0),
					    keyed_span(1, R3RING_SPAN_COMPUTED, 0, 0, 3, 0)};
	struct expected a = {0}, b = {0};

	feed_begin(&from, 1, "a", 3, 0);
	feed_begin(&from, 2, "b", 9, 0);
	feed_whole(&from, 1, 5, spans, 2);
	add(&a, R3RING_SIGNATURE_PREFILL, 1, 0, 3);
	add(&b, R3RING_SIGNATURE_PREFILL, 1, 3, 5);
	expect("a", &a);
	expect("b", &b);
	expect_gone("c");
}

Test(signature, failure_13_rejected_draft_rows_and_a_draft_models_are_in_no_signature)
{
	struct feed draft = feed_signatures_channel(&from, "test/0.draft");
	struct r3ring_span one = keyed_span(1, R3RING_SPAN_COMPUTED, 4, 0, 4, 0);
	struct expected expected = {0};

	feed_schema(&draft);
	feed_begin(&draft, 1, "a", 4, 0);
	feed_begin(&from, 1, "a", 4, 0);
	feed_computed(&from, 1, 1, 0, 4, NULL, 0);
	one.flags = R3RING_SPAN_DRAFT;
	feed_whole(&from, 2, 4, &one, 1);
	feed_whole(&draft, 2, 4, &one, 1);
	one.accepted = 2;
	feed_spans(&from, 2, &one, 1);
	add(&expected, R3RING_SIGNATURE_PREFILL, 1, 0, 4);
	add(&expected, R3RING_SIGNATURE_DECODE, 2, 0, 2);
	expect("a", &expected);
}

Test(signature, a_preempted_request_goes_on_in_its_signature_and_counts_nothing_twice)
{
	struct expected expected = {0};

	feed_begin(&from, 1, "a", 4, 0);
	feed_computed(&from, 1, 1, 0, 4, NULL, 0);
	feed_computed(&from, 2, 1, 4, 3, NULL, 0);
	/* Of 7 tokens 6 were kept. */
	feed_end(&from, 1, R3RING_END_PREEMPTED, 0, 6);
	feed_begin(&from, 2, "a", 6, 1);
	{
		struct r3ring_span one = keyed_span(2, R3RING_SPAN_COMPUTED, 0, 0, 8, 0);

		one.attempt = 1;
		feed_whole(&from, 3, 8, &one, 1);
	}
	add(&expected, R3RING_SIGNATURE_PREFILL, 1, 0, 4);
	add(&expected, R3RING_SIGNATURE_DECODE, 2, 0, 3);
	add(&expected, R3RING_SIGNATURE_DECODE, 3, 6, 8);
	expect("a", &expected);
	cr_assert_eq(stats_of().rows_recomputed, 6);
}

/* How many of 8 rows of a next attempt, whose prompt is told so, were run before. */
static uint64_t recomputed_after(uint32_t kept, uint32_t prompt)
{
	struct r3ring_span again = keyed_span(2, R3RING_SPAN_COMPUTED, 0, 0, 8, 0);

	again.attempt = 1;
	feed_begin(&from, 1, "a", 4, 0);
	feed_computed(&from, 1, 1, 0, 7, NULL, 0);
	feed_end(&from, 1, R3RING_END_PREEMPTED, 0, kept);
	feed_begin(&from, 2, "a", prompt, 1);
	feed_whole(&from, 2, 8, &again, 1);
	return stats_of().rows_recomputed;
}

Test(signature, what_is_said_to_be_kept_goes_before_the_next_attempts_prompt)
{
	cr_expect_eq(recomputed_after(6, 4), 6);
}

Test(signature, where_nobody_says_what_was_kept_it_is_the_next_attempts_prompt)
{
	cr_expect_eq(recomputed_after(R3RING_UNKNOWN_U32, 5), 5);
}

static uint16_t three_and_four(const struct feed *feed, uint64_t step, uint32_t row, uint32_t layer,
			       uint32_t k)
{
	(void)feed;
	(void)step;
	(void)row;
	(void)layer;
	return (uint16_t)(3 + k);
}

Test(signature, counts_stop_at_their_largest)
{
	const struct r3ring_signature_info *info;

	from.id = three_and_four;
	feed_begin(&from, 1, "a", 100000, 0);
	for (uint32_t step = 0; step < 1030; step++)
		feed_computed(&from, step + 1, 1, step * 64, 64, NULL, 0);
	info = get("a");
	cr_assert_eq(info->rows[R3RING_SIGNATURE_PREFILL], 1030 * 64);
	for (uint32_t layer = 0; layer < FEED_LAYERS; layer++) {
		cr_assert_eq(info->counts[R3RING_SIGNATURE_PREFILL][layer * EXPERTS + 3],
			     UINT16_MAX);
		cr_assert_eq(info->counts[R3RING_SIGNATURE_PREFILL][layer * EXPERTS + 5], 0);
	}
}

/* ---- prefix caches ------------------------------------------------------------- */

Test(signature, positions_from_a_prefix_cache_inherit_the_rows_of_their_keys)
{
	const uint64_t keys[] = {100, 101}, others[] = {100, 999};
	struct expected b = {0}, c = {0};

	from.key_kind = R3RING_KEYS_BLOCK_HASH;
	from.tokens_per_key = 2;
	feed_begin(&from, 1, "a", 4, 0);
	feed_computed(&from, 1, 1, 0, 4, keys, 2);
	feed_end(&from, 1, R3RING_END_FINISHED, 0, 5);
	feed_begin(&from, 2, "b", 5, 0);
	feed_cached(&from, 2, 2, 4, keys, 2);
	add(&b, R3RING_SIGNATURE_PREFILL, 1, 0, 4);
	add(&b, R3RING_SIGNATURE_PREFILL, 2, 0, 1);
	expect("b", &b);
	cr_assert_eq(get("b")->rows_inherited, 4);
	/* Of an unknown key nothing is known. */
	feed_begin(&from, 3, "c", 5, 0);
	feed_cached(&from, 3, 3, 4, others, 2);
	add(&c, R3RING_SIGNATURE_PREFILL, 1, 0, 2);
	add(&c, R3RING_SIGNATURE_PREFILL, 3, 0, 1);
	expect("c", &c);
	cr_assert_eq(get("c")->rows_missing, 2);
	cr_assert_eq(stats_of().rows_inherited, 6);
	cr_assert_eq(stats_of().rows_missing, 2);
}

Test(signature, a_key_that_is_told_when_its_block_is_full_has_the_rows_of_earlier_steps)
{
	const uint64_t keys[] = {100};
	struct expected expected = {0};

	from.key_kind = R3RING_KEYS_BLOCK_HASH;
	from.tokens_per_key = 4;
	feed_begin(&from, 1, "a", 2, 0);
	feed_computed(&from, 1, 1, 0, 2, NULL, 0);
	feed_computed(&from, 2, 1, 2, 1, NULL, 0);
	feed_computed(&from, 3, 1, 3, 1, keys, 1);
	feed_begin(&from, 2, "b", 5, 0);
	feed_cached(&from, 4, 2, 4, keys, 1);
	add(&expected, R3RING_SIGNATURE_PREFILL, 1, 0, 2);
	add(&expected, R3RING_SIGNATURE_PREFILL, 2, 0, 1);
	add(&expected, R3RING_SIGNATURE_PREFILL, 3, 0, 1);
	add(&expected, R3RING_SIGNATURE_PREFILL, 4, 0, 1);
	expect("b", &expected);
}

Test(signature, failure_32_a_gap_makes_slots_unknown_and_not_anothers)
{
	const uint64_t keys[] = {100, 101};
	struct expected expected = {0};

	from.key_kind = R3RING_KEYS_SLOT;
	from.tokens_per_key = 2;
	feed_begin(&from, 1, "a", 4, 0);
	feed_computed(&from, 1, 1, 0, 4, keys, 2);
	from.seq += 3;
	feed_begin(&from, 2, "b", 5, 0);
	feed_cached(&from, 3, 2, 4, keys, 2);
	add(&expected, R3RING_SIGNATURE_PREFILL, 3, 0, 1);
	expect("b", &expected);
	cr_assert_eq(get("b")->rows_missing, 4);
}

/* ---- several channels ------------------------------------------------------------ */

Test(signature, pipeline_stages_have_their_layers_beside_one_another)
{
	struct feed stage = feed_signatures_channel(&from, "test/1");
	const struct r3ring_span one = keyed_span(1, R3RING_SPAN_COMPUTED, 0, 0, 3, 0);
	const struct r3ring_signature_info *info;

	stage.first_layer = FEED_LAYERS;
	from.rank.pp.size = 2;
	stage.rank.pp = (struct r3ring_coordinate){1, 2};
	feed_schema(&from);
	feed_schema(&stage);
	feed_begin(&from, 1, "a", 3, 0);
	feed_begin(&stage, 1, "a", 3, 0);
	feed_whole(&stage, 1, 3, &one, 1);
	feed_whole(&from, 1, 3, &one, 1);
	info = get("a");
	cr_assert_eq(info->layers, 2 * FEED_LAYERS);
	for (uint32_t i = 0; i < FEED_LAYERS * EXPERTS; i++)
		cr_assert_eq(info->counts[0][i], info->counts[0][FEED_LAYERS * EXPERTS + i]);
	for (uint32_t i = 0; i < 2 * FEED_LAYERS; i++)
		cr_assert_eq(info->layer[i].layer_id, (int32_t)i);
}

/* ---- bounds ----------------------------------------------------------------------- */

static void live(uint64_t handle, const char *id, uint64_t step)
{
	feed_begin(&from, handle, id, 3, 0);
	feed_computed(&from, step, handle, 0, 3, NULL, 0);
}

Test(signature, ended_ones_are_kept_up_to_a_number_and_the_oldest_goes_first)
{
	const struct r3ring_signatures_options options = {.size = sizeof(options), .max_ended = 2};
	char id[8];

	close_signatures();
	open_with(&options);
	for (uint32_t i = 1; i <= 5; i++) {
		snprintf(id, sizeof(id), "r%u", i);
		live(i, id, i);
		feed_end(&from, i, R3RING_END_FINISHED, 0, 4);
	}
	expect_gone("r3");
	get("r4");
	get("r5");
	cr_assert_eq(stats_of().ended, 2);
	cr_assert_eq(stats_of().forgotten, 3);
	cr_assert_eq(stats_of().evicted, 0);
}

Test(signature, a_live_one_goes_only_when_no_ended_one_can_and_that_is_counted)
{
	const struct r3ring_signatures_options options = {.size = sizeof(options),
							  .max_requests = 3};

	close_signatures();
	open_with(&options);
	live(1, "a", 1);
	live(2, "b", 2);
	live(3, "c", 3);
	feed_end(&from, 3, R3RING_END_FINISHED, 0, 4);
	live(4, "d", 4);
	expect_gone("c");
	cr_assert_eq(stats_of().forgotten, 1);
	feed_computed(&from, 5, 1, 3, 1, NULL, 0);
	live(5, "e", 6);
	expect_gone("b");
	get("a");
	cr_assert_eq(stats_of().evicted, 1);
	/* What it still runs is counted as such, and no other's. */
	feed_computed(&from, 7, 2, 3, 1, NULL, 0);
	cr_assert_eq(stats_of().rows_unkept, 1);
	cr_assert_eq(get("a")->rows[R3RING_SIGNATURE_DECODE], 1);
}

Test(signature, memory_stays_below_its_bound)
{
	const struct r3ring_signatures_options options = {
		.size = sizeof(options),
		.max_bytes = 10 * FEED_LAYERS * EXPERTS * sizeof(uint16_t),
		.max_key_bytes = 20000,
	};
	uint64_t keys[] = {0, 0};
	char id[8];

	close_signatures();
	open_with(&options);
	from.key_kind = R3RING_KEYS_BLOCK_HASH;
	from.tokens_per_key = 2;
	for (uint32_t i = 1; i <= 300; i++) {
		snprintf(id, sizeof(id), "r%u", i);
		keys[0] = 2 * i;
		keys[1] = 2 * i + 1;
		feed_begin(&from, i, id, 4, 0);
		feed_computed(&from, i, i, 0, 4, keys, 2);
		if (i % 2)
			feed_end(&from, i, R3RING_END_FINISHED, 0, 5);
		cr_assert_leq(stats_of().bytes, options.max_bytes);
		cr_assert_leq(stats_of().key_bytes, options.max_key_bytes + 4 * 1024);
	}
	cr_assert_eq(stats_of().live + stats_of().ended, 10);
	cr_assert_eq(stats_of().evicted + stats_of().forgotten, 290);
	cr_assert_gt(stats_of().keys_forgotten, 0);
}

Test(signature, a_request_that_lives_long_does_not_keep_its_rows)
{
	uint64_t after_two;

	from.key_kind = R3RING_KEYS_BLOCK_HASH;
	from.tokens_per_key = 2;
	feed_begin(&from, 1, "a", 1, 0);
	feed_computed(&from, 1, 1, 0, 1, NULL, 0);
	feed_computed(&from, 2, 1, 1, 1, NULL, 0);
	after_two = stats_of().key_bytes;
	for (uint32_t step = 3; step < 200; step++)
		feed_computed(&from, step, 1, step - 1, 1, NULL, 0);
	/* One row without ids stands for all that were given back; a position is a word. */
	cr_assert_leq(stats_of().key_bytes, after_two + (256 - 64) * sizeof(void *) + 100);
	cr_assert_eq(get("a")->rows[R3RING_SIGNATURE_DECODE], 198);
}

Test(signature, a_new_request_of_a_text_id_has_a_signature_of_its_own)
{
	struct expected expected = {0};

	live(1, "a", 1);
	feed_end(&from, 1, R3RING_END_FINISHED, 0, 4);
	live(2, "a", 2);
	add(&expected, R3RING_SIGNATURE_PREFILL, 2, 0, 3);
	expect("a", &expected);
	cr_assert_eq(get("a")->same_id, 1);
	cr_assert_eq(stats_of().live, 1);
	cr_assert_eq(stats_of().ended, 1);
}

Test(signature, a_row_that_two_requests_claim_is_counted_for_neither)
{
	const struct r3ring_span spans[] = {
		keyed_span(1, R3RING_SPAN_COMPUTED, 0, 0, 3, 0),
		keyed_span(2, R3RING_SPAN_COMPUTED, 0, 2, 2, 0),
	};
	struct expected first = {0}, second = {0};

	feed_begin(&from, 1, "a", 4, 0);
	feed_begin(&from, 2, "b", 4, 0);
	feed_whole(&from, 1, 4, spans, 2);
	add(&first, R3RING_SIGNATURE_PREFILL, 1, 0, 2);
	add(&second, R3RING_SIGNATURE_PREFILL, 1, 3, 4);
	expect("a", &first);
	expect("b", &second);
	cr_assert_eq(get("a")->rows_missing, 1);
	cr_assert_eq(get("b")->rows_missing, 1);
}
