/* SPDX-License-Identifier: Apache-2.0 */
/* What an earlier attempt may have run in records that were lost a later one does not stand in for. */
#include "tests/unit/record_feed.h"

static struct feed first, second;

static void open_with(enum r3ring_row_policy policy)
{
	const struct r3ring_assembler_options options = {.size = sizeof(options), .policy = policy};

	feed_create(&first, &options);
	second = feed_channel(&first, "test/1");
}

static void open_channels(void)
{
	open_with(R3RING_ROWS_FIRST);
}

static void close_channels(void)
{
	feed_destroy(&first);
}

TestSuite(assembler_unseen, .init = open_channels, .fini = close_channels);

static void run(struct feed *on, uint64_t step, uint16_t attempt, uint32_t position, uint32_t rows)
{
	const struct r3ring_span one = {.request = attempt + 1u,
					.position = position,
					.rows = rows,
					.attempt = attempt,
					.accepted = R3RING_UNKNOWN_U32};

	feed_whole(on, step, rows, &one, 1);
}

static void begin(struct feed *on, uint16_t attempt, uint32_t prompt)
{
	feed_begin(on, attempt + 1u, "a", prompt, attempt);
}

static void preempt(struct feed *on, uint16_t attempt, uint32_t kept)
{
	feed_end(on, attempt + 1u, R3RING_END_PREEMPTED, attempt, kept);
}

static struct r3ring_assembled *finish(struct feed *on, uint16_t attempt, uint32_t kept)
{
	feed_end(on, attempt + 1u, R3RING_END_FINISHED, attempt, kept);
	return take(on, "a");
}

static void gap(struct feed *on)
{
	r3ring_assembler_gap(on->assembler, on->channel);
}

static void assert_all_missing(const struct r3ring_assembled *got, uint32_t from, uint32_t end)
{
	for (uint32_t position = from; position < end; position++)
		assert_missing(got, position, R3RING_MISSING_GAP);
}

/* Attempt 0 of the first channel. */
static void begin_and_run(uint32_t prompt, uint32_t rows)
{
	feed_schema(&first);
	begin(&first, 0, prompt);
	run(&first, 1, 0, 0, rows);
}

/* Of which the prompt of 4 was seen, then records were lost. */
static void prompt_then_gap(void)
{
	begin_and_run(4, 4);
	gap(&first);
}

/* A later attempt of it runs all tokens but the last in step 9, */
static struct r3ring_assembled *run_all(uint16_t attempt, uint32_t prompt, uint32_t rows)
{
	begin(&first, attempt, prompt);
	run(&first, 9, attempt, 0, rows);
	return finish(&first, attempt, rows + 1);
}

/* or, one that has begun, one more in step 10. */
static struct r3ring_assembled *run_and_decode(uint32_t rows)
{
	run(&first, 9, 1, 0, rows);
	run(&first, 10, 1, rows, 1);
	return finish(&first, 1, rows + 2);
}

Test(assembler_unseen,
     behind_a_gap_that_hides_an_attempt_s_end_nothing_of_the_next_is_the_first_pass)
{
	struct r3ring_assembled *got;

	prompt_then_gap();
	begin(&first, 1, 4);
	got = run_and_decode(9);
	assert_row(got, 3, 1, 3);
	assert_all_missing(got, 4, 10);
	r3ring_assembled_free(got);
}

Test(assembler_unseen, what_lies_behind_the_tokens_that_an_end_says_were_kept_is_the_next_attempt_s)
{
	struct r3ring_assembled *got;

	prompt_then_gap();
	preempt(&first, 0, 9);
	begin(&first, 1, 4);
	got = run_and_decode(9);
	assert_row(got, 3, 1, 3);
	assert_all_missing(got, 4, 9);
	assert_row(got, 9, 10, 0);
	r3ring_assembled_free(got);
}

Test(assembler_unseen, a_prompt_that_grew_says_what_was_kept)
{
	struct r3ring_assembled *got;

	prompt_then_gap();
	begin(&first, 1, 9);
	got = run_and_decode(9);
	assert_all_missing(got, 4, 9);
	assert_row(got, 9, 10, 0);
	r3ring_assembled_free(got);
}

Test(assembler_unseen, what_an_attempt_ran_behind_the_loss_tells_how_far_it_came)
{
	struct r3ring_assembled *got;

	prompt_then_gap();
	run(&first, 3, 0, 5, 1);
	preempt(&first, 0, 7);
	begin(&first, 1, 4);
	got = run_and_decode(7);
	assert_all_missing(got, 4, 5);
	assert_row(got, 5, 3, 0);
	assert_row(got, 6, 9, 6);
	assert_row(got, 7, 10, 0);
	r3ring_assembled_free(got);
}

Test(assembler_unseen, a_prompt_that_may_have_been_run_in_a_gap_is_missing)
{
	struct r3ring_assembled *got;

	feed_schema(&first);
	begin(&first, 0, 4);
	gap(&first);
	preempt(&first, 0, 4);
	got = run_all(1, 4, 5);
	assert_all_missing(got, 0, 4);
	assert_row(got, 4, 9, 4);
	r3ring_assembled_free(got);
}

Test(assembler_unseen, a_gap_behind_the_end_of_an_attempt_takes_nothing_of_the_next)
{
	struct r3ring_assembled *got;

	begin_and_run(4, 2);
	preempt(&first, 0, 4);
	begin(&first, 1, 4);
	gap(&first);
	run(&first, 3, 1, 2, 3);
	got = finish(&first, 1, 6);
	assert_row(got, 1, 1, 1);
	assert_row(got, 3, 3, 1);
	r3ring_assembled_free(got);
}

Test(assembler_unseen, nor_one_before_a_keyframe_that_names_the_next)
{
	struct r3ring_assembled *got;

	begin_and_run(4, 2);
	preempt(&first, 0, 4);
	gap(&first);
	feed_keyframe(&first, 1);
	feed_repeated_attempt(&first, 2, "a", 4, 1);
	run(&first, 3, 1, 2, 3);
	got = finish(&first, 1, 6);
	assert_row(got, 1, 1, 1);
	assert_row(got, 3, 3, 1);
	r3ring_assembled_free(got);
}

/* The first channel only prefills; by both a request's end must be told. */
static struct feed open_with_decode(void)
{
	const struct r3ring_assembler_options options = {.size = sizeof(options), .min_ends = 2};

	close_channels();
	feed_create(&first, &options);
	return feed_channel(&first, "decode/0");
}

/* Its first records came without a schema. */
Test(assembler_unseen, an_engine_whose_beginning_was_not_seen_lost_some)
{
	struct feed decode = open_with_decode();
	struct r3ring_assembled *got;

	begin(&decode, 0, 2);
	decode.generation = 2;
	decode.seq = 0;
	feed_schema(&decode);
	begin_and_run(2, 2);
	feed_end(&first, 1, R3RING_END_FINISHED, 0, 2);
	begin(&decode, 1, 2);
	run(&decode, 9, 1, 0, 4);
	got = finish(&decode, 1, 5);
	assert_row(got, 1, 1, 1);
	assert_all_missing(got, 2, 4);
	r3ring_assembled_free(got);
}

/* And have thrown away what that one did, behind the prompt. */
Test(assembler_unseen,
     an_attempt_between_two_that_were_seen_may_have_run_all_that_the_first_did_not)
{
	struct r3ring_assembled *got;

	begin_and_run(2, 2);
	run(&first, 2, 0, 2, 1);
	preempt(&first, 0, 4);
	gap(&first);
	got = run_all(2, 2, 6);
	assert_row(got, 1, 1, 1);
	assert_all_missing(got, 2, 6);
	r3ring_assembled_free(got);
}

Test(assembler_unseen,
     where_prompts_are_seen_to_count_what_was_kept_an_attempt_s_own_tokens_are_its)
{
	struct r3ring_assembled *got;

	feed_schema(&first);
	begin(&first, 1, 4);
	run(&first, 9, 1, 0, 5);
	preempt(&first, 1, 6);
	begin(&first, 2, 6);
	run(&first, 10, 2, 0, 6);
	got = finish(&first, 2, 7);
	assert_all_missing(got, 0, 4);
	assert_row(got, 4, 9, 4);
	assert_row(got, 5, 10, 5);
	r3ring_assembled_free(got);
}

/* Attempt 0 kept 5 tokens, of which it ran 3; attempt 1 ran all 5, and then something was lost. */
static void run_one_and_a_half(void)
{
	begin_and_run(2, 2);
	run(&first, 2, 0, 2, 1);
	preempt(&first, 0, 5);
	begin(&first, 1, 2);
	run(&first, 3, 1, 0, 5);
	gap(&first);
}

Test(assembler_unseen, tokens_that_were_kept_before_are_kept_by_an_attempt_that_ends_with_them)
{
	struct r3ring_assembled *got;

	run_one_and_a_half();
	preempt(&first, 1, 5);
	got = run_all(2, 2, 6);
	assert_row(got, 2, 2, 0);
	assert_row(got, 4, 3, 4);
	assert_row(got, 5, 9, 5);
	r3ring_assembled_free(got);
}

/* Its end would have told that. */
Test(assembler_unseen, by_one_that_nobody_ended_they_may_have_been_thrown_away)
{
	struct r3ring_assembled *got;

	run_one_and_a_half();
	got = run_all(2, 2, 6);
	assert_row(got, 1, 1, 1);
	assert_all_missing(got, 2, 6);
	r3ring_assembled_free(got);
}

/* ---- new weights in place --------------------------------------------------- */

/* Attempt 0, of a prompt of 6, runs its first two tokens; attempt 1 runs all. */
static struct r3ring_assembled *run_two_then_all_again(void)
{
	run(&first, 6, 0, 0, 2);
	preempt(&first, 0, 6);
	begin(&first, 1, 6);
	run(&first, 10, 1, 0, 6);
	return finish(&first, 1, 7);
}

Test(assembler_unseen, what_is_run_anew_under_new_weights_does_not_tell_how_far_a_lost_run_came)
{
	struct r3ring_assembled *got;

	feed_schema(&first);
	first.weight_version = 1;
	begin(&first, 0, 6);
	run(&first, 1, 0, 0, 1);
	gap(&first);
	first.weight_version = 2;
	got = run_two_then_all_again();
	assert_row(got, 0, 1, 0);
	assert_all_missing(got, 2, 6);
	r3ring_assembled_free(got);
}

Test(assembler_unseen, new_weights_behind_what_was_run_since_a_loss_take_nothing)
{
	struct r3ring_assembled *got;

	feed_schema(&first);
	first.weight_version = 1;
	begin(&first, 0, 6);
	run(&first, 1, 0, 0, 1);
	gap(&first);
	run(&first, 3, 0, 1, 1);
	first.weight_version = 2;
	got = run_two_then_all_again();
	assert_row(got, 1, 3, 0);
	assert_row(got, 2, 10, 2);
	assert_row(got, 5, 10, 5);
	r3ring_assembled_free(got);
}

/* A step of nobody that is known, under these weights. */
static void run_of_another(uint64_t step, uint64_t weights)
{
	first.weight_version = weights;
	run(&first, step, 8, 0, 1);
}

static void keyframe_names_attempt_0(void)
{
	feed_keyframe(&first, 1);
	feed_repeated_attempt(&first, 1, "a", 6, 0);
}

Test(assembler_unseen, an_attempt_that_began_unseen_may_have_run_further_before_new_weights_came)
{
	struct r3ring_assembled *got;

	feed_schema(&first);
	run_of_another(1, 1);
	gap(&first);
	run_of_another(5, 2);
	keyframe_names_attempt_0();
	got = run_two_then_all_again();
	assert_row(got, 1, 6, 1);
	assert_all_missing(got, 2, 6);
	r3ring_assembled_free(got);
}

Test(assembler_unseen, so_may_one_before_which_not_even_the_first_step_was_seen)
{
	struct r3ring_assembled *got;

	feed_schema(&first);
	gap(&first);
	run_of_another(5, 0);
	keyframe_names_attempt_0();
	got = run_two_then_all_again();
	assert_all_missing(got, 2, 6);
	r3ring_assembled_free(got);
}

Test(assembler_unseen, not_so_one_that_began_behind_a_keyframe_that_came_after_the_new_weights)
{
	struct r3ring_assembled *got;

	feed_schema(&first);
	run_of_another(1, 1);
	run_of_another(2, 2);
	feed_keyframe(&first, 0);
	gap(&first);
	keyframe_names_attempt_0();
	got = run_two_then_all_again();
	assert_row(got, 1, 6, 1);
	assert_row(got, 2, 10, 2);
	assert_row(got, 5, 10, 5);
	r3ring_assembled_free(got);
}

/* A new engine, whose first record says so, began before anybody told the end of what ran. */
Test(assembler_unseen, an_attempt_that_a_generation_cut_off_may_have_run_on)
{
	struct r3ring_assembled *got;

	begin_and_run(2, 2);
	first.generation = 2;
	first.seq = 0;
	feed_schema(&first);
	begin(&first, 1, 2);
	run(&first, 1, 1, 0, 4);
	got = finish(&first, 1, 5);
	assert_all_missing(got, 2, 4);
	r3ring_assembled_free(got);
}

/* ---- several ranks ---------------------------------------------------------- */

static void two_ranks(struct r3ring_coordinate *of_first, struct r3ring_coordinate *of_second)
{
	*of_first = (struct r3ring_coordinate){0, 2};
	*of_second = (struct r3ring_coordinate){1, 2};
	feed_schema(&first);
	feed_schema(&second);
	begin(&first, 0, 2);
	begin(&second, 0, 2);
}

/* Attempt 1, of which all but the last token is run. */
static struct r3ring_assembled *both_run_all(void)
{
	for (int i = 0; i < 2; i++) {
		begin(i ? &second : &first, 1, 2);
		run(i ? &second : &first, 9, 1, 0, 4);
	}
	feed_end(&first, 2, R3RING_END_FINISHED, 1, 5);
	return finish(&second, 1, 5);
}

Test(assembler_unseen, a_stage_that_saw_it_all_tells_what_an_attempt_did_not_run)
{
	struct r3ring_assembled *got;

	second.first_layer = FEED_LAYERS;
	two_ranks(&first.rank.pp, &second.rank.pp);
	run(&first, 1, 0, 0, 2);
	run(&second, 1, 0, 0, 2);
	gap(&first);
	preempt(&second, 0, 3);
	got = both_run_all();
	assert_row(got, 1, 1, 1);
	assert_row(got, 2, 9, 2);
	assert_row(got, 3, 9, 3);
	r3ring_assembled_free(got);
}

Test(assembler_unseen, an_attempt_that_a_keyframe_names_no_more_may_have_run_on)
{
	struct r3ring_assembled *got;

	second.first_layer = FEED_LAYERS;
	two_ranks(&first.rank.pp, &second.rank.pp);
	run(&first, 1, 0, 0, 2);
	run(&second, 1, 0, 0, 2);
	feed_keyframe(&first, 0);
	gap(&second);
	got = both_run_all();
	assert_row(got, 1, 1, 1);
	assert_all_missing(got, 2, 4);
	r3ring_assembled_free(got);
}

/* A step of two rows, the first of which is the first shard's. */
static void run_half(struct feed *on, uint64_t step, uint16_t attempt, uint32_t position)
{
	on->row_begin = on->rank.sp.index;
	on->row_end = on->row_begin + 1;
	run(on, step, attempt, position, 2);
	on->row_begin = on->row_end = 0;
}

Test(assembler_unseen, a_shard_does_not_know_by_later_rows_of_the_other_s_that_it_ran_none)
{
	struct r3ring_assembled *got;

	two_ranks(&first.rank.sp, &second.rank.sp);
	run_half(&first, 1, 0, 0);
	gap(&second); /* step 1 of it */
	second.row_begin = second.row_end = 1;
	run(&second, 2, 0, 2, 1);
	second.row_begin = second.row_end = 0;
	preempt(&first, 0, 2);
	preempt(&second, 0, 2);
	for (int i = 0; i < 2; i++) {
		begin(i ? &second : &first, 1, 2);
		run_half(i ? &second : &first, 9, 1, 0);
	}
	feed_end(&first, 2, R3RING_END_FINISHED, 1, 3);
	got = finish(&second, 1, 3);
	assert_row(got, 0, 1, 0);
	assert_missing(got, 1, R3RING_MISSING_GAP);
	r3ring_assembled_free(got);
}

static void begin_anew(struct feed *on)
{
	on->generation = 2;
	on->seq = 0;
	feed_schema(on);
	begin(on, 1, 2);
	run_half(on, 9, 1, 0);
	feed_end(on, 2, R3RING_END_FINISHED, 1, 3);
}

/* Their engine died, and what it told last was not read: it may have run them in that. */
Test(assembler_unseen, nor_do_shards_know_what_they_ran_behind_what_was_read_of_a_generation)
{
	struct r3ring_assembled *got;

	two_ranks(&first.rank.sp, &second.rank.sp);
	begin_anew(&first);
	begin_anew(&second);
	got = take(&first, "a");
	assert_all_missing(got, 0, 2);
	r3ring_assembled_free(got);
}

/* Channels are fed apart: the second has not come to the first attempt's end. */
Test(assembler_unseen, a_shard_that_is_behind_does_not_know_yet_what_it_ran)
{
	struct r3ring_assembled *got;

	two_ranks(&first.rank.sp, &second.rank.sp);
	run_half(&first, 1, 0, 0);
	preempt(&first, 0, 2);
	begin(&first, 1, 2);
	run(&first, 2, 1, 0, 3);
	r3ring_assembler_flush(first.assembler);
	got = take(&first, "a");
	assert_row(got, 0, 1, 0);
	assert_missing(got, 1, R3RING_MISSING_GAP);
	r3ring_assembled_free(got);
}

Test(assembler_unseen, a_rank_that_is_behind_may_yet_tell_what_it_ran_of_an_attempt_before)
{
	struct r3ring_assembled *got;

	first.rank.dp = (struct r3ring_coordinate){0, 2};
	second.rank.dp = (struct r3ring_coordinate){1, 2};
	feed_schema(&first);
	feed_schema(&second);
	begin(&first, 0, 2);
	run(&first, 1, 0, 0, 2);
	begin(&second, 1, 2);
	run(&second, 1, 1, 0, 4);
	feed_end(&second, 2, R3RING_END_FINISHED, 1, 5);
	r3ring_assembler_flush(first.assembler);
	got = take(&first, "a");
	assert_row(got, 1, 1, 1);
	assert_all_missing(got, 2, 4);
	r3ring_assembled_free(got);
}

/* An engine that only prefills, and one that decodes, of which attempt 0 was not seen. */
Test(assembler_unseen, an_engine_that_came_late_may_have_run_an_attempt_that_another_did)
{
	struct feed decode = open_with_decode();
	struct r3ring_assembled *got;

	begin_and_run(2, 2);
	feed_end(&first, 1, R3RING_END_FINISHED, 0, 2);
	feed_schema(&decode);
	gap(&decode);
	begin(&decode, 1, 2);
	run(&decode, 9, 1, 0, 4);
	got = finish(&decode, 1, 5);
	assert_row(got, 1, 1, 1);
	assert_all_missing(got, 2, 4);
	r3ring_assembled_free(got);
}

Test(assembler_unseen,
     an_engine_that_never_told_of_a_request_may_have_run_its_part_where_it_lost_some)
{
	struct feed decode = open_with_decode();
	struct r3ring_assembled *got;

	feed_schema(&decode);
	gap(&decode);
	begin_and_run(4, 2);
	preempt(&first, 0, 4);
	begin(&first, 1, 4);
	run(&first, 2, 1, 0, 4);
	feed_end(&first, 2, R3RING_END_FINISHED, 1, 4);
	r3ring_assembler_flush(first.assembler);
	got = take(&first, "a");
	assert_row(got, 1, 1, 1);
	assert_missing(got, 2, R3RING_MISSING_GAP);
	r3ring_assembled_free(got);
}

/* ---- the latest pass -------------------------------------------------------- */

Test(assembler_unseen, an_earlier_attempt_does_not_stand_in_for_a_latest_pass_that_was_lost)
{
	struct r3ring_assembled *got;

	close_channels();
	open_with(R3RING_ROWS_LATEST);
	begin_and_run(4, 4);
	preempt(&first, 0, 5);
	begin(&first, 1, 4);
	gap(&first);
	run(&first, 3, 1, 2, 3);
	got = finish(&first, 1, 6);
	assert_all_missing(got, 0, 2);
	assert_row(got, 2, 3, 0);
	r3ring_assembled_free(got);
}

Test(assembler_unseen, what_an_earlier_attempt_lost_takes_nothing_of_the_latest)
{
	struct r3ring_assembled *got;

	close_channels();
	open_with(R3RING_ROWS_LATEST);
	prompt_then_gap();
	got = run_all(1, 4, 9);
	for (uint32_t position = 0; position < 9; position++)
		assert_row(got, position, 9, position);
	r3ring_assembled_free(got);
}

Test(assembler_unseen, an_attempt_that_nobody_saw_may_have_run_the_latest_pass)
{
	struct r3ring_assembled *got;

	close_channels();
	open_with(R3RING_ROWS_LATEST);
	begin_and_run(4, 4);
	preempt(&first, 0, 5);
	gap(&first);
	begin(&first, 2, 4);
	run(&first, 9, 2, 3, 2);
	got = finish(&first, 2, 6);
	assert_all_missing(got, 0, 3);
	assert_row(got, 3, 9, 0);
	r3ring_assembled_free(got);
}

/*
 * Stages that are read one after the other: what the first ran of attempt 0 came out in another
 * request, since its daemon had given that up. How much of it was kept nobody told.
 */
Test(assembler_unseen, a_later_attempt_does_not_stand_in_for_one_that_was_given_up)
{
	struct r3ring_assembled *got;

	first.rank.pp = (struct r3ring_coordinate){0, 2};
	second.rank.pp = (struct r3ring_coordinate){1, 2};
	second.first_layer = FEED_LAYERS;
	feed_schema(&first);
	feed_schema(&second);
	begin(&first, 1, 4);
	run(&first, 1, 1, 0, 6);
	feed_end(&first, 2, R3RING_END_FINISHED, 1, 7);
	begin(&second, 0, 4);
	run(&second, 1, 0, 0, 5);
	feed_end(&second, 1, R3RING_END_ABORTED, 0, R3RING_UNKNOWN_U32);
	got = take(&first, "a");
	assert_all_missing(got, 4, 6);
	r3ring_assembled_free(got);
}

/* Each rank of its engine, here one, told of all that it ran. */
Test(assembler_unseen, what_a_given_up_attempt_is_known_not_to_have_run_a_later_one_ran_first)
{
	struct r3ring_assembled *got;

	first.rank.dp = (struct r3ring_coordinate){0, 2};
	second.rank.dp = (struct r3ring_coordinate){1, 2};
	feed_schema(&first);
	feed_schema(&second);
	begin(&first, 1, 4);
	run(&first, 1, 1, 0, 6);
	begin(&second, 0, 4);
	run(&second, 1, 0, 0, 4);
	feed_end(&second, 1, R3RING_END_ABORTED, 0, R3RING_UNKNOWN_U32);
	feed_end(&first, 2, R3RING_END_FINISHED, 1, 7);
	got = take(&first, "a");
	assert_row(got, 5, 1, 5);
	r3ring_assembled_free(got);
}
