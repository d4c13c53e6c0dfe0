/* SPDX-License-Identifier: Apache-2.0 */
/* Positions that a signature lacks are told, each once: by hand, from what each test lost. */
#include <stdlib.h>
#include <string.h>

#include "consumer/signature/marks.h"
#include "tests/unit/signature_fixture.h"

static void open_signatures(void)
{
	signature_open(NULL);
}

TestSuite(signature_missing, .init = open_signatures, .fini = signature_close);

static void expect_missing(uint64_t missing, uint64_t part)
{
	const struct r3ring_signature_info *info = signature_get("a");

	cr_expect_eq(info->rows_missing, missing, "%lu missing, not %lu", info->rows_missing,
		     missing);
	cr_expect_eq(info->rows_in_part, part, "%lu in part, not %lu", info->rows_in_part, part);
	cr_expect_eq(signature_stats().rows_missing, missing);
}

/* A prompt of four, by step 1. */
static void begin_four(void)
{
	feed_begin(&signature_feed, 1, "a", 4, 0);
	feed_computed(&signature_feed, 1, 1, 0, 4, NULL, 0);
}

static void end(enum r3ring_end_reason reason, uint16_t attempt, uint32_t accepted)
{
	feed_end(&signature_feed, 1 + attempt, reason, attempt, accepted);
}

/* A row, and a draft of two rows of which it is never said how many were accepted: all positions
 * of the step are told later, which is not. */
static void run_untold_draft(void)
{
	struct r3ring_span spans[] = {keyed_span(1, R3RING_SPAN_COMPUTED, 4, 0, 1, 0),
				      keyed_span(1, R3RING_SPAN_COMPUTED, 5, 1, 2, 0)};

	spans[1].flags = R3RING_SPAN_DRAFT;
	signature_feed.flags = R3RING_STEP_SPANS_FOLLOW;
	feed_whole(&signature_feed, 2, 3, spans, 2);
	signature_feed.flags = 0;
}

/* A step of so many rows whose layers but for the first @came are told as missing. */
static void run_without_layers(uint64_t step, uint32_t position, uint32_t rows, uint32_t came)
{
	const struct r3ring_span span = keyed_span(1, R3RING_SPAN_COMPUTED, position, 0, rows, 0);

	feed_step(&signature_feed, step, rows, &span, 1, NULL, 0);
	feed_layers(&signature_feed, step, rows, 0, came);
	feed_step_end(&signature_feed, step, (int32_t)came, R3RING_CAUSE_NOT_CAPTURED);
}

static void run_again(uint64_t step, uint16_t attempt, uint32_t position, uint32_t rows)
{
	struct r3ring_span again =
		keyed_span(1 + attempt, R3RING_SPAN_COMPUTED, position, 0, rows, 0);

	again.attempt = attempt;
	feed_whole(&signature_feed, step, rows, &again, 1);
}

/* ---- of one attempt ------------------------------------------------------------- */

Test(signature_missing, positions_whose_spans_never_came_are)
{
	struct signature_expected expected = {0};

	begin_four();
	run_untold_draft();
	feed_computed(&signature_feed, 3, 1, 6, 1, NULL, 0);
	end(R3RING_END_FINISHED, 0, 8);
	signature_count(&expected, R3RING_SIGNATURE_PREFILL, 1, 0, 4);
	signature_count(&expected, R3RING_SIGNATURE_DECODE, 3, 0, 1);
	signature_expect("a", &expected);
	expect_missing(2, 0);
}

Test(signature_missing, a_row_that_no_layer_came_of_is_and_counts_in_no_phase)
{
	struct signature_expected expected = {0};

	begin_four();
	run_without_layers(2, 4, 1, 0);
	signature_count(&expected, R3RING_SIGNATURE_PREFILL, 1, 0, 4);
	signature_expect("a", &expected);
	expect_missing(1, 0);
	end(R3RING_END_FINISHED, 0, 6);
	expect_missing(1, 0);
}

Test(signature_missing, one_that_lacks_a_layer_is_and_its_other_layers_are_in_the_counts)
{
	struct signature_expected expected = {0};

	begin_four();
	run_without_layers(2, 4, 1, FEED_LAYERS - 1);
	signature_count(&expected, R3RING_SIGNATURE_PREFILL, 1, 0, 4);
	signature_count(&expected, R3RING_SIGNATURE_DECODE, 2, 0, 1);
	memset(&expected.counts[R3RING_SIGNATURE_DECODE][(FEED_LAYERS - 1) * SIGNATURE_EXPERTS], 0,
	       SIGNATURE_EXPERTS * sizeof(uint16_t));
	expected.rows[R3RING_SIGNATURE_DECODE] = 0;
	signature_expect("a", &expected);
	expect_missing(1, 1);
}

static uint16_t one_stranger(const struct feed *feed, uint64_t step, uint32_t row, uint32_t layer,
			     uint32_t k)
{
	(void)feed;
	if (step == 1 && row == 2 && layer == 1 && k == 1)
		return SIGNATURE_EXPERTS + 3;
	return (uint16_t)k;
}

Test(signature_missing, one_with_an_id_that_is_no_expert_is)
{
	signature_feed.id = one_stranger;
	begin_four();
	expect_missing(1, 1);
	cr_expect_eq(signature_get("a")->rows[R3RING_SIGNATURE_PREFILL], 3);
	cr_expect_eq(signature_get("a")->counts[R3RING_SIGNATURE_PREFILL][SIGNATURE_EXPERTS], 3);
}

/* Routes call them a conflict; here no ids are kept to see it by. */
Test(signature_missing, tokens_that_one_attempt_ran_twice_are_not_and_the_first_pass_counts)
{
	struct signature_expected expected = {0};

	begin_four();
	feed_computed(&signature_feed, 2, 1, 0, 4, NULL, 0);
	end(R3RING_END_FINISHED, 0, 5);
	signature_count(&expected, R3RING_SIGNATURE_PREFILL, 1, 0, 4);
	signature_expect("a", &expected);
	expect_missing(0, 0);
}

Test(signature_missing, the_last_token_that_was_sampled_and_not_fed_back_is_not)
{
	begin_four();
	feed_computed(&signature_feed, 2, 1, 4, 1, NULL, 0);
	end(R3RING_END_FINISHED, 0, 6);
	expect_missing(0, 0);
}

Test(signature_missing, what_was_lost_at_the_end_is_told_by_it)
{
	begin_four();
	feed_lost(&signature_feed, 2, 4, R3RING_CAUSE_RING_FULL, 1);
	expect_missing(0, 0);
	end(R3RING_END_FINISHED, 0, 8);
	expect_missing(3, 0);
}

Test(signature_missing, a_request_of_which_nothing_came_has_a_signature_that_lacks_it_all)
{
	feed_begin(&signature_feed, 1, "a", 4, 0);
	feed_lost(&signature_feed, 1, 2, R3RING_CAUSE_RING_FULL, 1);
	signature_expect_gone("a");
	end(R3RING_END_FINISHED, 0, 6);
	expect_missing(5, 0);
	cr_expect_eq(signature_get("a")->flags, R3RING_SIGNATURE_ENDED);
}

Test(signature_missing, one_that_never_ran_lacks_nothing_and_has_none)
{
	feed_begin(&signature_feed, 1, "a", 4, 0);
	end(R3RING_END_ABORTED, 0, 0);
	signature_expect_gone("a");
	cr_expect_eq(signature_stats().rows_missing, 0);
}

Test(signature_missing, a_row_that_was_run_past_the_stop_hides_none_that_is)
{
	begin_four();
	feed_computed(&signature_feed, 2, 1, 5, 3, NULL, 0);
	expect_missing(1, 0);
	/* The token at 5 ended it. */
	end(R3RING_END_FINISHED, 0, 6);
	expect_missing(1, 0);
}

/* ---- of several ----------------------------------------------------------------- */

Test(signature_missing, what_a_later_attempt_ran_where_an_earlier_one_lost_its_rows_is)
{
	struct signature_expected expected = {0};

	begin_four();
	run_untold_draft();
	feed_computed(&signature_feed, 3, 1, 6, 1, NULL, 0);
	end(R3RING_END_PREEMPTED, 0, 8);
	feed_begin(&signature_feed, 2, "a", 8, 1);
	run_again(4, 1, 0, 7);
	run_again(5, 1, 7, 2);
	signature_count(&expected, R3RING_SIGNATURE_PREFILL, 1, 0, 4);
	signature_count(&expected, R3RING_SIGNATURE_DECODE, 3, 0, 1);
	signature_count(&expected, R3RING_SIGNATURE_DECODE, 5, 0, 2);
	signature_expect("a", &expected);
	expect_missing(2, 0);
	end(R3RING_END_FINISHED, 1, 10);
	signature_expect("a", &expected);
	expect_missing(2, 0);
	cr_expect_eq(signature_stats().rows_recomputed, 5);
}

Test(signature_missing, all_that_an_attempt_ran_behind_one_that_nobody_saw_is)
{
	feed_begin(&signature_feed, 2, "a", 4, 1);
	run_again(1, 1, 0, 4);
	expect_missing(4, 0);
	cr_expect_eq(signature_stats().rows, 0);
}

Test(signature_missing, a_token_that_was_not_kept_is_the_next_attempts)
{
	begin_four();
	feed_computed(&signature_feed, 2, 1, 4, 3, NULL, 0);
	/* That at 6 was not kept; the next attempt's row there lacks a layer. */
	end(R3RING_END_PREEMPTED, 0, 6);
	feed_begin(&signature_feed, 2, "a", 6, 1);
	run_again(3, 1, 0, 6);
	expect_missing(0, 0);
	{
		struct r3ring_span next = keyed_span(2, R3RING_SPAN_COMPUTED, 6, 0, 1, 0);

		next.attempt = 1;
		feed_step(&signature_feed, 4, 1, &next, 1, NULL, 0);
		feed_layers(&signature_feed, 4, 1, 0, 1);
		feed_step_end(&signature_feed, 4, 1, R3RING_CAUSE_NOT_CAPTURED);
	}
	expect_missing(1, 1);
	end(R3RING_END_FINISHED, 1, 8);
	expect_missing(1, 1);
}

Test(signature_missing, what_came_from_elsewhere_first_is_though_it_is_run_again)
{
	const struct r3ring_span spans[] = {keyed_span(1, R3RING_SPAN_EXTERNAL, 0, 0, 3, 0),
					    keyed_span(1, R3RING_SPAN_COMPUTED, 3, 0, 1, 0)};
	struct signature_expected expected = {0};

	feed_begin(&signature_feed, 1, "a", 4, 0);
	feed_whole(&signature_feed, 1, 1, spans, 2);
	end(R3RING_END_PREEMPTED, 0, 5);
	feed_begin(&signature_feed, 2, "a", 5, 1);
	run_again(2, 1, 0, 6);
	signature_count(&expected, R3RING_SIGNATURE_PREFILL, 1, 0, 1);
	signature_count(&expected, R3RING_SIGNATURE_DECODE, 2, 4, 6);
	signature_expect("a", &expected);
	expect_missing(3, 0);
}

/* ---- of stages ------------------------------------------------------------------- */

Test(signature_missing, what_one_stage_lost_of_a_row_that_another_has_is_once)
{
	struct feed stage = feed_signatures_channel(&signature_feed, "test/1");

	stage.first_layer = FEED_LAYERS;
	signature_feed.rank.pp.size = 2;
	stage.rank.pp = (struct r3ring_coordinate){1, 2};
	feed_schema(&signature_feed);
	feed_schema(&stage);
	begin_four();
	feed_begin(&stage, 1, "a", 4, 0);
	feed_lost(&stage, 1, 1, R3RING_CAUSE_RING_FULL, 1);
	feed_computed(&signature_feed, 2, 1, 4, 1, NULL, 0);
	expect_missing(0, 0);
	feed_computed(&stage, 2, 1, 4, 1, NULL, 0);
	expect_missing(4, 0);
	end(R3RING_END_FINISHED, 0, 6);
	feed_end(&stage, 1, R3RING_END_FINISHED, 0, 6);
	expect_missing(4, 0);
	cr_expect_eq(signature_get("a")->rows[R3RING_SIGNATURE_PREFILL], 4);
	cr_expect_eq(signature_get("a")->rows[R3RING_SIGNATURE_DECODE], 2);
}

/* A machine that only prefills, and one that decodes, with some of its layers and others. */
Test(signature_missing, of_engines_that_cut_the_model_in_their_own_ways_each_has_its_own_positions)
{
	const struct r3ring_signatures_options options = {.size = sizeof(options), .min_ends = 2};
	const struct r3ring_span span = keyed_span(1, R3RING_SPAN_COMPUTED, 4, 0, 2, 0);
	struct feed decode;

	signature_close();
	signature_open(&options);
	decode = feed_signatures_channel(&signature_feed, "decode/0");
	begin_four();
	decode.first_layer = 1;
	feed_schema(&decode);
	feed_begin(&decode, 1, "a", 4, 0);
	feed_whole(&decode, 2, 2, &span, 1);
	end(R3RING_END_FINISHED, 0, 5);
	feed_end(&decode, 1, R3RING_END_FINISHED, 0, 7);
	/* Those that the other ran, of its own layers; and none behind the first one's. */
	expect_missing(4, 0);
}

/* ---- marks ----------------------------------------------------------------------- */

Test(signature_missing, marks_are_counted_as_they_change_and_those_that_are_cut_are_gone)
{
	struct marks marks = {.end = 200};

	cr_assert_eq(marks_reach(&marks, 199), 0);
	for (uint32_t position = 60; position < 70; position++)
		marks_set(&marks, position, MARK_WHOLE);
	marks_set(&marks, 64, MARK_PART);
	marks_set(&marks, 65, MARK_NONE);
	cr_expect_eq(marks.whole, 8);
	cr_expect_eq(marks.part, 1);
	cr_expect_eq(marks_missing(&marks), 192);
	cr_expect_eq(marks_get(&marks, 63), MARK_WHOLE);
	cr_expect_eq(marks_get(&marks, 64), MARK_PART);
	cr_expect_eq(marks_get(&marks, 100000), MARK_NONE);
	marks_cut(&marks, 64);
	cr_expect_eq(marks.whole, 4);
	cr_expect_eq(marks.part, 0);
	cr_expect_eq(marks_missing(&marks), 60);
	free(marks.bits);
}
