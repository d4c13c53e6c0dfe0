/* SPDX-License-Identifier: Apache-2.0 */
/* Signatures against counts that the tests make themselves, row by row. */
#include "tests/unit/signature_fixture.h"

static void open_signatures(void)
{
	signature_open(NULL);
}

TestSuite(signature, .init = open_signatures, .fini = signature_close);

/* ---- what is counted ---------------------------------------------------------- */

Test(signature, prefill_and_decode_are_counted_apart)
{
	struct signature_expected expected = {0};

	feed_begin(&signature_feed, 1, "a", 6, 0);
	feed_computed(&signature_feed, 1, 1, 0, 4, NULL, 0);
	feed_computed(&signature_feed, 2, 1, 4, 2, NULL, 0);
	signature_feed.ns = 12345;
	feed_computed(&signature_feed, 3, 1, 6, 1, NULL, 0);
	signature_count(&expected, R3RING_SIGNATURE_PREFILL, 1, 0, 4);
	signature_count(&expected, R3RING_SIGNATURE_PREFILL, 2, 0, 2);
	signature_count(&expected, R3RING_SIGNATURE_DECODE, 3, 0, 1);
	signature_expect("a", &expected);
	cr_assert_eq(signature_get("a")->flags, 0);
	cr_assert_eq(signature_get("a")->prompt_tokens, 6);
	cr_assert_eq(signature_get("a")->updated_ns, 12345);
	feed_end(&signature_feed, 1, R3RING_END_FINISHED, 0, 8);
	signature_expect("a", &expected);
	cr_assert_eq(signature_get("a")->flags, R3RING_SIGNATURE_ENDED);
}

Test(signature, a_layer_that_the_steps_end_takes_back_is_in_none)
{
	const struct r3ring_span span = keyed_span(1, R3RING_SPAN_COMPUTED, 0, 0, 2, 0);
	struct signature_expected expected = {0};

	feed_begin(&signature_feed, 1, "a", 6, 0);
	feed_step(&signature_feed, 1, 2, &span, 1, NULL, 0);
	feed_layers(&signature_feed, 1, 2, 0, FEED_LAYERS);
	feed_step_end(&signature_feed, 1, 1, R3RING_CAUSE_OVERLAP);
	signature_count(&expected, R3RING_SIGNATURE_PREFILL, 1, 0, 2);
	memset(&expected.counts[R3RING_SIGNATURE_PREFILL][1 * SIGNATURE_EXPERTS], 0,
	       SIGNATURE_EXPERTS * sizeof(uint16_t));
	expected.rows[R3RING_SIGNATURE_PREFILL] = 0;
	signature_expect("a", &expected);
	cr_expect_eq(signature_get("a")->rows_missing, 2);
	cr_expect_eq(signature_get("a")->rows_in_part, 2);
}

/* The reader's gap takes the last layer and STEP_END. */
Test(signature, of_a_step_whose_end_was_lost_the_layers_that_came_count)
{
	const struct r3ring_span first = keyed_span(1, R3RING_SPAN_COMPUTED, 0, 0, 2, 0);
	const struct r3ring_span second = keyed_span(1, R3RING_SPAN_COMPUTED, 2, 0, 2, 0);
	struct signature_expected expected = {0};

	feed_begin(&signature_feed, 1, "a", 6, 0);
	feed_step(&signature_feed, 1, 2, &first, 1, NULL, 0);
	feed_layers(&signature_feed, 1, 2, 0, FEED_LAYERS - 1);
	signature_feed.seq += 2;
	signature_count(&expected, R3RING_SIGNATURE_PREFILL, 1, 0, 2);
	memset(&expected.counts[R3RING_SIGNATURE_PREFILL][(FEED_LAYERS - 1) * SIGNATURE_EXPERTS], 0,
	       SIGNATURE_EXPERTS * sizeof(uint16_t));
	feed_whole(&signature_feed, 2, 2, &second, 1);
	expected.rows[R3RING_SIGNATURE_PREFILL] = 0;
	signature_count(&expected, R3RING_SIGNATURE_PREFILL, 2, 0, 2);
	signature_expect("a", &expected);
	cr_expect_eq(signature_get("a")->rows_missing, 2);
	cr_expect_eq(signature_get("a")->rows_in_part, 2);
}

Test(signature, failure_10_rows_are_those_of_their_request_however_a_step_mixes_them)
{
	const struct r3ring_span spans[] = {keyed_span(2, R3RING_SPAN_COMPUTED, 0, 3, 2, 0),
					    keyed_span(1, R3RING_SPAN_COMPUTED, 0, 0, 3, 0)};
	struct signature_expected a = {0}, b = {0};

	feed_begin(&signature_feed, 1, "a", 3, 0);
	feed_begin(&signature_feed, 2, "b", 9, 0);
	feed_whole(&signature_feed, 1, 5, spans, 2);
	signature_count(&a, R3RING_SIGNATURE_PREFILL, 1, 0, 3);
	signature_count(&b, R3RING_SIGNATURE_PREFILL, 1, 3, 5);
	signature_expect("a", &a);
	signature_expect("b", &b);
	signature_expect_gone("c");
}

Test(signature, failure_13_rejected_draft_rows_and_a_draft_models_are_in_no_signature)
{
	struct feed draft = feed_signatures_channel(&signature_feed, "test/0.draft");
	struct r3ring_span one = keyed_span(1, R3RING_SPAN_COMPUTED, 4, 0, 4, 0);
	struct signature_expected expected = {0};

	feed_schema(&draft);
	feed_begin(&draft, 1, "a", 4, 0);
	feed_begin(&signature_feed, 1, "a", 4, 0);
	feed_computed(&signature_feed, 1, 1, 0, 4, NULL, 0);
	one.flags = R3RING_SPAN_DRAFT;
	feed_whole(&signature_feed, 2, 4, &one, 1);
	feed_whole(&draft, 2, 4, &one, 1);
	one.accepted = 2;
	feed_spans(&signature_feed, 2, &one, 1);
	signature_count(&expected, R3RING_SIGNATURE_PREFILL, 1, 0, 4);
	signature_count(&expected, R3RING_SIGNATURE_DECODE, 2, 0, 2);
	signature_expect("a", &expected);
}

Test(signature, a_preempted_request_goes_on_in_its_signature_and_counts_nothing_twice)
{
	struct signature_expected expected = {0};

	feed_begin(&signature_feed, 1, "a", 4, 0);
	feed_computed(&signature_feed, 1, 1, 0, 4, NULL, 0);
	feed_computed(&signature_feed, 2, 1, 4, 3, NULL, 0);
	/* Of 7 tokens 6 were kept. */
	feed_end(&signature_feed, 1, R3RING_END_PREEMPTED, 0, 6);
	feed_begin(&signature_feed, 2, "a", 6, 1);
	{
		struct r3ring_span one = keyed_span(2, R3RING_SPAN_COMPUTED, 0, 0, 8, 0);

		one.attempt = 1;
		feed_whole(&signature_feed, 3, 8, &one, 1);
	}
	signature_count(&expected, R3RING_SIGNATURE_PREFILL, 1, 0, 4);
	signature_count(&expected, R3RING_SIGNATURE_DECODE, 2, 0, 3);
	signature_count(&expected, R3RING_SIGNATURE_DECODE, 3, 6, 8);
	signature_expect("a", &expected);
	cr_assert_eq(signature_stats().rows_recomputed, 6);
}

/* How many of 8 rows of a next attempt, whose prompt is told so, were run before. */
static uint64_t recomputed_after(uint32_t kept, uint32_t prompt)
{
	struct r3ring_span again = keyed_span(2, R3RING_SPAN_COMPUTED, 0, 0, 8, 0);

	again.attempt = 1;
	feed_begin(&signature_feed, 1, "a", 4, 0);
	feed_computed(&signature_feed, 1, 1, 0, 7, NULL, 0);
	feed_end(&signature_feed, 1, R3RING_END_PREEMPTED, 0, kept);
	feed_begin(&signature_feed, 2, "a", prompt, 1);
	feed_whole(&signature_feed, 2, 8, &again, 1);
	return signature_stats().rows_recomputed;
}

Test(signature, what_is_said_to_be_kept_goes_before_the_next_attempts_prompt)
{
	cr_expect_eq(recomputed_after(6, 4), 6);
}

Test(signature, where_nobody_says_what_was_kept_it_is_the_next_attempts_prompt)
{
	cr_expect_eq(recomputed_after(R3RING_UNKNOWN_U32, 5), 5);
}

/* Steps of an attempt of request "a", each of which runs tokens that it was not kept. */
static void attempt(struct feed *on, uint16_t number, uint32_t prompt, uint64_t step,
		    uint32_t position, uint32_t rows, uint32_t kept)
{
	struct r3ring_span one = keyed_span(1, R3RING_SPAN_COMPUTED, position, 0, rows, 0);

	one.attempt = number;
	feed_begin(on, 1, "a", prompt, number);
	feed_whole(on, step, rows, &one, 1);
	feed_end(on, 1, R3RING_END_PREEMPTED, number, kept);
}

Test(signature, what_any_attempt_before_ran_is_run_again)
{
	struct signature_expected expected = {0};

	attempt(&signature_feed, 0, 4, 1, 0, 4, 4);
	attempt(&signature_feed, 1, 4, 2, 4, 2, 6);
	attempt(&signature_feed, 2, 6, 3, 0, 8, 8);
	signature_count(&expected, R3RING_SIGNATURE_PREFILL, 1, 0, 4);
	signature_count(&expected, R3RING_SIGNATURE_DECODE, 2, 0, 2);
	signature_count(&expected, R3RING_SIGNATURE_DECODE, 3, 6, 8);
	signature_expect("a", &expected);
	cr_expect_eq(signature_stats().rows_recomputed, 6);
	cr_expect_eq(signature_stats().rows, 8);
}

/* Of the same layers: what both ran is in one sum. */
Test(signature, a_request_that_another_data_parallel_rank_goes_on_with_keeps_what_it_had)
{
	struct feed other = feed_signatures_channel(&signature_feed, "test/1");
	struct signature_expected expected = {0};

	other.rank.dp = (struct r3ring_coordinate){1, 2};
	feed_schema(&other);
	attempt(&signature_feed, 0, 4, 1, 0, 5, 5);
	attempt(&other, 1, 5, 2, 0, 7, 7);
	signature_count(&expected, R3RING_SIGNATURE_PREFILL, 1, 0, 4);
	signature_count(&expected, R3RING_SIGNATURE_DECODE, 1, 4, 5);
	signature_count(&expected, R3RING_SIGNATURE_DECODE, 2, 5, 7);
	signature_expect("a", &expected);
	cr_expect_eq(signature_stats().rows_recomputed, 5);
}

Test(signature, where_nobody_says_what_was_kept_another_rank_runs_all_of_it_again)
{
	struct feed other = feed_signatures_channel(&signature_feed, "test/1");

	other.rank.dp = (struct r3ring_coordinate){1, 2};
	feed_schema(&other);
	attempt(&signature_feed, 0, 4, 1, 0, 5, R3RING_UNKNOWN_U32);
	attempt(&other, 1, 5, 2, 0, 7, 7);
	cr_expect_eq(signature_stats().rows_recomputed, 5);
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

	signature_feed.id = three_and_four;
	feed_begin(&signature_feed, 1, "a", 100000, 0);
	for (uint32_t step = 0; step < 1030; step++)
		feed_computed(&signature_feed, step + 1, 1, step * 64, 64, NULL, 0);
	info = signature_get("a");
	cr_assert_eq(info->rows[R3RING_SIGNATURE_PREFILL], 1030 * 64);
	for (uint32_t layer = 0; layer < FEED_LAYERS; layer++) {
		cr_assert_eq(info->counts[R3RING_SIGNATURE_PREFILL][layer * SIGNATURE_EXPERTS + 3],
			     UINT16_MAX);
		cr_assert_eq(info->counts[R3RING_SIGNATURE_PREFILL][layer * SIGNATURE_EXPERTS + 5],
			     0);
	}
}

/* ---- prefix caches ------------------------------------------------------------- */

Test(signature, positions_from_a_prefix_cache_inherit_the_rows_of_their_keys)
{
	const uint64_t keys[] = {100, 101}, others[] = {100, 999};
	struct signature_expected b = {0}, c = {0};

	signature_feed.key_kind = R3RING_KEYS_BLOCK_HASH;
	signature_feed.tokens_per_key = 2;
	feed_begin(&signature_feed, 1, "a", 4, 0);
	feed_computed(&signature_feed, 1, 1, 0, 4, keys, 2);
	feed_end(&signature_feed, 1, R3RING_END_FINISHED, 0, 5);
	feed_begin(&signature_feed, 2, "b", 5, 0);
	feed_cached(&signature_feed, 2, 2, 4, keys, 2);
	signature_count(&b, R3RING_SIGNATURE_PREFILL, 1, 0, 4);
	signature_count(&b, R3RING_SIGNATURE_PREFILL, 2, 0, 1);
	signature_expect("b", &b);
	cr_assert_eq(signature_get("b")->rows_inherited, 4);
	/* Of an unknown key nothing is known. */
	feed_begin(&signature_feed, 3, "c", 5, 0);
	feed_cached(&signature_feed, 3, 3, 4, others, 2);
	signature_count(&c, R3RING_SIGNATURE_PREFILL, 1, 0, 2);
	signature_count(&c, R3RING_SIGNATURE_PREFILL, 3, 0, 1);
	signature_expect("c", &c);
	cr_assert_eq(signature_get("c")->rows_missing, 2);
	cr_assert_eq(signature_stats().rows_inherited, 6);
	cr_assert_eq(signature_stats().rows_missing, 2);
}

Test(signature, a_key_that_is_told_when_its_block_is_full_has_the_rows_of_earlier_steps)
{
	const uint64_t keys[] = {100};
	struct signature_expected expected = {0};

	signature_feed.key_kind = R3RING_KEYS_BLOCK_HASH;
	signature_feed.tokens_per_key = 4;
	feed_begin(&signature_feed, 1, "a", 2, 0);
	feed_computed(&signature_feed, 1, 1, 0, 2, NULL, 0);
	feed_computed(&signature_feed, 2, 1, 2, 1, NULL, 0);
	feed_computed(&signature_feed, 3, 1, 3, 1, keys, 1);
	feed_begin(&signature_feed, 2, "b", 5, 0);
	feed_cached(&signature_feed, 4, 2, 4, keys, 1);
	signature_count(&expected, R3RING_SIGNATURE_PREFILL, 1, 0, 2);
	signature_count(&expected, R3RING_SIGNATURE_PREFILL, 2, 0, 1);
	signature_count(&expected, R3RING_SIGNATURE_PREFILL, 3, 0, 1);
	signature_count(&expected, R3RING_SIGNATURE_PREFILL, 4, 0, 1);
	signature_expect("b", &expected);
}

Test(signature, failure_32_a_gap_makes_slots_unknown_and_not_anothers)
{
	const uint64_t keys[] = {100, 101};
	struct signature_expected expected = {0};

	signature_feed.key_kind = R3RING_KEYS_SLOT;
	signature_feed.tokens_per_key = 2;
	feed_begin(&signature_feed, 1, "a", 4, 0);
	feed_computed(&signature_feed, 1, 1, 0, 4, keys, 2);
	signature_feed.seq += 3;
	feed_begin(&signature_feed, 2, "b", 5, 0);
	feed_cached(&signature_feed, 3, 2, 4, keys, 2);
	signature_count(&expected, R3RING_SIGNATURE_PREFILL, 3, 0, 1);
	signature_expect("b", &expected);
	cr_assert_eq(signature_get("b")->rows_missing, 4);
}

/* ---- several channels ------------------------------------------------------------ */

Test(signature, pipeline_stages_have_their_layers_beside_one_another)
{
	struct feed stage = feed_signatures_channel(&signature_feed, "test/1");
	const struct r3ring_span one = keyed_span(1, R3RING_SPAN_COMPUTED, 0, 0, 3, 0);
	const struct r3ring_signature_info *info;

	stage.first_layer = FEED_LAYERS;
	signature_feed.rank.pp.size = 2;
	stage.rank.pp = (struct r3ring_coordinate){1, 2};
	feed_schema(&signature_feed);
	feed_schema(&stage);
	feed_begin(&signature_feed, 1, "a", 3, 0);
	feed_begin(&stage, 1, "a", 3, 0);
	feed_whole(&stage, 1, 3, &one, 1);
	feed_whole(&signature_feed, 1, 3, &one, 1);
	info = signature_get("a");
	cr_assert_eq(info->layers, 2 * FEED_LAYERS);
	for (uint32_t i = 0; i < FEED_LAYERS * SIGNATURE_EXPERTS; i++)
		cr_assert_eq(info->counts[0][i],
			     info->counts[0][FEED_LAYERS * SIGNATURE_EXPERTS + i]);
	for (uint32_t i = 0; i < 2 * FEED_LAYERS; i++)
		cr_assert_eq(info->layer[i].layer_id, (int32_t)i);
}

Test(signature, a_new_request_of_a_text_id_has_a_signature_of_its_own)
{
	struct signature_expected expected = {0};

	signature_live(1, "a", 1);
	feed_end(&signature_feed, 1, R3RING_END_FINISHED, 0, 4);
	signature_live(2, "a", 2);
	signature_count(&expected, R3RING_SIGNATURE_PREFILL, 2, 0, 3);
	signature_expect("a", &expected);
	cr_assert_eq(signature_get("a")->same_id, 1);
	cr_assert_eq(signature_stats().live, 1);
	cr_assert_eq(signature_stats().ended, 1);
}

Test(signature, a_row_that_two_requests_claim_is_counted_for_neither)
{
	const struct r3ring_span spans[] = {
		keyed_span(1, R3RING_SPAN_COMPUTED, 0, 0, 3, 0),
		keyed_span(2, R3RING_SPAN_COMPUTED, 0, 2, 2, 0),
	};
	struct signature_expected first = {0}, second = {0};

	feed_begin(&signature_feed, 1, "a", 4, 0);
	feed_begin(&signature_feed, 2, "b", 4, 0);
	feed_whole(&signature_feed, 1, 4, spans, 2);
	signature_count(&first, R3RING_SIGNATURE_PREFILL, 1, 0, 2);
	signature_count(&second, R3RING_SIGNATURE_PREFILL, 1, 3, 4);
	signature_expect("a", &first);
	signature_expect("b", &second);
	cr_assert_eq(signature_get("a")->rows_missing, 1);
	cr_assert_eq(signature_get("b")->rows_missing, 1);
}

Test(signature, of_a_request_that_was_aborted_that_is_told)
{
	signature_live(1, "a", 1);
	feed_end(&signature_feed, 1, R3RING_END_ABORTED, 0, 4);
	cr_expect_eq(signature_get("a")->flags, R3RING_SIGNATURE_ENDED | R3RING_SIGNATURE_ABORTED);
}

/* ---- what is missing, and comes after all ------------------------------------------ */

/* Two positions of "a" that another machine ran. */
static void begin_elsewhere(void)
{
	struct r3ring_span spans[] = {keyed_span(1, R3RING_SPAN_EXTERNAL, 0, 0, 2, 0),
				      keyed_span(1, R3RING_SPAN_COMPUTED, 2, 0, 1, 0)};

	feed_begin(&signature_feed, 1, "a", 4, 0);
	feed_whole(&signature_feed, 1, 1, spans, 2);
	cr_assert_eq(signature_get("a")->rows_missing, 2);
	cr_assert_eq(signature_stats().rows_missing, 2);
}

Test(signature, a_position_that_is_run_after_all_is_missing_no_more)
{
	struct signature_expected expected = {0};

	begin_elsewhere();
	feed_computed(&signature_feed, 2, 1, 0, 2, NULL, 0);
	signature_count(&expected, R3RING_SIGNATURE_PREFILL, 1, 0, 1);
	signature_count(&expected, R3RING_SIGNATURE_PREFILL, 2, 0, 2);
	signature_expect("a", &expected);
	cr_expect_eq(signature_get("a")->rows_missing, 0);
	cr_expect_eq(signature_stats().rows_missing, 0);
	cr_expect_eq(signature_stats().rows, 3);
}

Test(signature, one_whose_pass_was_lost_too_is_missing_once)
{
	const struct r3ring_span again = keyed_span(1, R3RING_SPAN_COMPUTED, 0, 0, 2, 0);

	begin_elsewhere();
	signature_feed.flags = R3RING_STEP_DROPPED;
	feed_step(&signature_feed, 2, 2, &again, 1, NULL, 0);
	feed_lost(&signature_feed, 2, 2, R3RING_CAUSE_BUFFER_FULL, 0);
	cr_expect_eq(signature_get("a")->rows_missing, 2);
	cr_expect_eq(signature_stats().rows_missing, 2);
}

Test(signature, one_that_is_filled_again_has_nothing_of_other_layers)
{
	struct feed other = {0};

	signature_live(1, "a", 1);
	signature_get("a");
	feed_create_signatures(&other, NULL);
	other.experts = SIGNATURE_EXPERTS;
	other.first_layer = 10;
	feed_schema(&other);
	feed_begin(&other, 1, "a", 3, 0);
	feed_computed(&other, 1, 1, 0, 3, NULL, 0);
	cr_assert_eq(r3ring_signatures_get(other.signatures, "a", signature), 0);
	cr_expect_eq(r3ring_signature_get_info(signature)->layers, FEED_LAYERS);
	feed_destroy(&other);
}
