/* SPDX-License-Identifier: Apache-2.0 */
/* Which of several passes over one token counts: attempts, weights, contradictions. */
#include "tests/unit/record_feed.h"

static struct feed channel;

static void open_with(enum r3ring_row_policy policy)
{
	const struct r3ring_assembler_options options = {.size = sizeof(options), .policy = policy};

	feed_create(&channel, &options);
	feed_schema(&channel);
}

static void open_first(void)
{
	open_with(R3RING_ROWS_FIRST);
}

static void close_channel(void)
{
	feed_destroy(&channel);
}

TestSuite(assembler_attempts, .init = open_first, .fini = close_channel);

static void run(uint64_t step, uint64_t request, uint16_t attempt, uint32_t position, uint32_t rows)
{
	const struct r3ring_span one = {.request = request,
					.position = position,
					.rows = rows,
					.accepted = R3RING_UNKNOWN_U32,
					.attempt = attempt};

	feed_whole(&channel, step, rows, &one, 1);
}

/* Prompt of 2; two tokens sampled; preempted; run again, and one token further. */
static struct r3ring_assembled *preempted(uint32_t accepted_then, uint32_t prompt_again)
{
	feed_begin(&channel, 1, "a", 2, 0);
	run(1, 1, 0, 0, 2);
	run(2, 1, 0, 2, 1);
	feed_end(&channel, 1, R3RING_END_PREEMPTED, 0, accepted_then);
	feed_begin(&channel, 2, "a", prompt_again, 1);
	run(3, 2, 1, 0, 4);
	run(4, 2, 1, 4, 1);
	feed_end(&channel, 2, R3RING_END_FINISHED, 1, 6);
	return take(&channel, "a");
}

Test(assembler_attempts, the_first_pass_whose_token_was_kept_is_final)
{
	struct r3ring_assembled *got = preempted(4, 4);

	assert_row(got, 0, 1, 0);
	assert_row(got, 1, 1, 1);
	assert_row(got, 2, 2, 0);
	assert_row(got, 3, 3, 3);
	assert_row(got, 4, 4, 0);
	cr_assert_eq(r3ring_assembled_get_info(got)->attempts, 2);
	r3ring_assembled_free(got);
}

Test(assembler_attempts, a_pass_whose_token_was_thrown_away_does_not_count)
{
	struct r3ring_assembled *got = preempted(2, 2);

	assert_row(got, 1, 1, 1);
	assert_row(got, 2, 3, 2);
	assert_row(got, 3, 3, 3);
	r3ring_assembled_free(got);
}

Test(assembler_attempts, what_was_kept_is_seen_by_what_the_next_attempt_is_fed)
{
	struct r3ring_assembled *got = preempted(R3RING_UNKNOWN_U32, 3);

	assert_row(got, 2, 2, 0);
	assert_row(got, 3, 3, 3);
	r3ring_assembled_free(got);
}

/* Nothing was lost, but an engine that tells its first prompt again leaves it open. */
Test(assembler_attempts, where_nobody_says_what_was_kept_the_tokens_of_two_attempts_are_missing)
{
	struct r3ring_assembled *got = preempted(R3RING_UNKNOWN_U32, 2);

	assert_row(got, 1, 1, 1);
	assert_missing(got, 2, R3RING_MISSING_SPANS);
	assert_row(got, 3, 3, 3); /* the first attempt had not come so far */
	assert_row(got, 4, 4, 0);
	r3ring_assembled_free(got);
}

Test(assembler_attempts, nor_is_it_known_then_which_is_the_latest)
{
	struct r3ring_assembled *got;

	close_channel();
	open_with(R3RING_ROWS_LATEST);
	feed_begin(&channel, 1, "a", 2, 0);
	run(1, 1, 0, 0, 2);
	run(2, 1, 0, 2, 1);
	feed_end(&channel, 1, R3RING_END_PREEMPTED, 0, R3RING_UNKNOWN_U32);
	feed_begin(&channel, 2, "a", 2, 1);
	run(3, 2, 1, 3, 1);
	feed_end(&channel, 2, R3RING_END_FINISHED, 1, 5);
	got = take(&channel, "a");
	assert_row(got, 1, 1, 1);
	assert_missing(got, 2, R3RING_MISSING_SPANS);
	assert_row(got, 3, 3, 0);
	r3ring_assembled_free(got);
}

/* Two tokens are sampled and kept; a second attempt runs them again, and is preempted. */
static struct r3ring_assembled *thrown_away(uint32_t accepted_then, uint32_t prompt_again)
{
	feed_begin(&channel, 1, "a", 2, 0);
	run(1, 1, 0, 0, 2);
	run(2, 1, 0, 2, 1);
	feed_end(&channel, 1, R3RING_END_PREEMPTED, 0, 4);
	feed_begin(&channel, 2, "a", 4, 1);
	run(3, 2, 1, 0, 4);
	feed_end(&channel, 2, R3RING_END_PREEMPTED, 1, accepted_then);
	feed_begin(&channel, 3, "a", prompt_again, 2);
	run(4, 3, 2, 0, 4);
	feed_end(&channel, 3, R3RING_END_FINISHED, 2, 5);
	return take(&channel, "a");
}

static void assert_thrown_away(uint32_t accepted_then)
{
	struct r3ring_assembled *got = thrown_away(accepted_then, 2);

	assert_row(got, 0, 1, 0);
	assert_row(got, 1, 1, 1);
	assert_row(got, 2, 4, 2);
	assert_row(got, 3, 4, 3);
	r3ring_assembled_free(got);
}

Test(assembler_attempts, tokens_that_an_attempt_throws_away_count_for_none_before_it)
{
	assert_thrown_away(2);
}

Test(assembler_attempts, nor_do_those_that_a_later_prompt_lacks)
{
	assert_thrown_away(R3RING_UNKNOWN_U32);
}

/* Its handle has the turn that it had, and its row the place behind the first one's. */
Test(assembler_attempts, a_row_of_the_next_attempt_is_not_appended_to_the_one_before)
{
	struct r3ring_assembled *got;

	feed_begin(&channel, 1, "a", 2, 0);
	run(1, 1, 0, 0, 2);
	feed_begin(&channel, 1, "a", 2, 1);
	run(2, 1, 1, 2, 1);
	feed_end(&channel, 1, R3RING_END_FINISHED, 1, 4);
	got = take(&channel, "a");
	assert_row(got, 1, 1, 1);
	assert_row(got, 2, 2, 0);
	r3ring_assembled_free(got);
}

Test(assembler_attempts, the_latest_pass_counts_where_that_is_asked_for)
{
	struct r3ring_assembled *got;

	close_channel();
	open_with(R3RING_ROWS_LATEST);
	got = preempted(4, 4);
	for (uint32_t position = 0; position < 4; position++)
		assert_row(got, position, 3, position);
	assert_row(got, 4, 4, 0);
	r3ring_assembled_free(got);
}

Test(assembler_attempts, a_later_pass_does_not_stand_in_for_a_first_one_that_was_lost)
{
	struct r3ring_assembled *got;

	feed_begin(&channel, 1, "a", 2, 0);
	run(1, 1, 0, 0, 2);
	feed_lost(&channel, 2, 2, R3RING_CAUSE_QUEUE_FULL, 1);
	feed_end(&channel, 1, R3RING_END_PREEMPTED, 0, 4);
	feed_begin(&channel, 2, "a", 4, 1);
	run(3, 2, 1, 0, 4);
	feed_end(&channel, 2, R3RING_END_FINISHED, 1, 5);
	got = take(&channel, "a");
	assert_row(got, 1, 1, 1);
	assert_missing(got, 2, R3RING_CAUSE_QUEUE_FULL);
	assert_missing(got, 3, R3RING_CAUSE_QUEUE_FULL); /* it may have been run ahead */
	r3ring_assembled_free(got);
}

Test(assembler_attempts, a_row_keeps_the_weights_it_ran_with)
{
	uint64_t weights[3];
	uint16_t attempts[3];
	const struct r3ring_assembled_rows rows = {.weight_version = weights, .attempt = attempts};
	struct r3ring_assembled *got;

	channel.weight_version = 10;
	feed_begin(&channel, 1, "a", 2, 0);
	run(1, 1, 0, 0, 2);
	channel.weight_version = 11;
	run(2, 1, 0, 2, 1);
	feed_end(&channel, 1, R3RING_END_FINISHED, 0, 3);
	got = take(&channel, "a");
	cr_assert_eq(r3ring_assembled_read(got, 0, 3, 0, 0, &rows), 0);
	cr_assert_eq(weights[0], 10);
	cr_assert_eq(weights[1], 10);
	cr_assert_eq(weights[2], 11);
	cr_assert_eq(attempts[2], 0);
	r3ring_assembled_free(got);
}

Test(assembler_attempts, new_weights_do_not_replace_what_sampled)
{
	struct r3ring_assembled *got;

	feed_begin(&channel, 1, "a", 2, 0);
	run(1, 1, 0, 0, 2);
	channel.weight_version = 1;
	run(2, 1, 0, 0, 2);
	feed_end(&channel, 1, R3RING_END_FINISHED, 0, 3);
	got = take(&channel, "a");
	assert_row(got, 0, 1, 0);
	r3ring_assembled_free(got);
}

Test(assembler_attempts, two_passes_that_contradict_each_other_are_missing_and_both_named)
{
	const struct r3ring_assembled_info *info;
	struct r3ring_assembled *got;

	feed_begin(&channel, 1, "a", 2, 0);
	run(1, 1, 0, 0, 2);
	run(2, 1, 0, 1, 1);
	feed_end(&channel, 1, R3RING_END_FINISHED, 0, 3);
	got = take(&channel, "a");
	assert_row(got, 0, 1, 0);
	assert_missing(got, 1, R3RING_CAUSE_CONFLICT);
	info = r3ring_assembled_get_info(got);
	cr_assert_eq(info->conflicts, FEED_LAYERS);
	cr_assert_eq(info->conflicts_told, FEED_LAYERS);
	cr_assert_eq(info->conflict[0].position, 1);
	cr_assert_eq(info->conflict[0].step[0], 1);
	cr_assert_eq(info->conflict[0].step[1], 2);
	cr_assert_eq(info->cells_missing[R3RING_CAUSE_CONFLICT], FEED_LAYERS);
	r3ring_assembled_free(got);
}

Test(assembler_attempts, a_pass_that_contradicts_does_not_fill_what_the_first_one_lost)
{
	const struct r3ring_span one = {.request = 1, .rows = 2, .accepted = R3RING_UNKNOWN_U32};
	struct r3ring_assembled *got;

	feed_begin(&channel, 1, "a", 2, 0);
	feed_step(&channel, 1, 2, &one, 1, NULL, 0);
	feed_layers(&channel, 1, 2, 0, 1);
	feed_layers(&channel, 1, 2, 2, 3);
	feed_step_end(&channel, 1, 1, R3RING_CAUSE_TOO_FEW_ROWS);
	run(2, 1, 0, 1, 1);
	feed_end(&channel, 1, R3RING_END_FINISHED, 0, 3);
	got = take(&channel, "a");
	cr_assert_eq(cell_of(got, 1, 0, 0, 1, 1), R3RING_CAUSE_CONFLICT);
	cr_assert_eq(cell_of(got, 1, 1, 0, 2, 0), R3RING_CAUSE_TOO_FEW_ROWS);
	cr_assert_eq(cell_of(got, 1, 2, 0, 1, 1), R3RING_CAUSE_CONFLICT);
	r3ring_assembled_free(got);
}

Test(assembler_attempts, a_text_id_that_comes_again_is_another_request)
{
	struct r3ring_assembled *got;

	feed_begin(&channel, 1, "a", 1, 0);
	run(1, 1, 0, 0, 1);
	feed_end(&channel, 1, R3RING_END_FINISHED, 0, 2);
	got = take(&channel, "a");
	assert_row(got, 0, 1, 0);
	r3ring_assembled_free(got);
	feed_begin(&channel, 2, "a", 1, 0);
	run(2, 2, 0, 0, 1);
	feed_end(&channel, 2, R3RING_END_FINISHED, 0, 2);
	got = take(&channel, "a");
	assert_row(got, 0, 2, 0);
	r3ring_assembled_free(got);
}

Test(assembler_attempts, the_prompt_is_what_the_first_attempt_began_with)
{
	struct r3ring_assembled *got = preempted(4, 4);

	cr_assert_eq(r3ring_assembled_get_info(got)->prompt_tokens, 2);
	r3ring_assembled_free(got);
}

Test(assembler_attempts, of_a_request_whose_first_attempt_nobody_saw_the_prompt_is_unknown)
{
	struct r3ring_assembled *got;

	feed_begin(&channel, 2, "a", 4, 1);
	run(3, 2, 1, 0, 4);
	feed_end(&channel, 2, R3RING_END_FINISHED, 1, 5);
	got = take(&channel, "a");
	cr_assert_eq(r3ring_assembled_get_info(got)->prompt_tokens, R3RING_UNKNOWN_U32);
	r3ring_assembled_free(got);
}

/* Its begin was lost, but not its end. */
Test(assembler_attempts, an_end_does_not_tell_the_prompt)
{
	struct r3ring_assembled *got;

	feed_begin(&channel, 2, "a", 4, 1);
	feed_end(&channel, 2, R3RING_END_FINISHED, 0, 5);
	got = take(&channel, "a");
	cr_assert_eq(r3ring_assembled_get_info(got)->prompt_tokens, R3RING_UNKNOWN_U32);
	r3ring_assembled_free(got);
}
