/* SPDX-License-Identifier: Apache-2.0 */
/* When a request is over, over attempts, ranks and instances; and what it then is. */
#include "tests/unit/record_feed.h"

static struct feed first, second;

static void open_channels(void)
{
	feed_create(&first, NULL);
	second = feed_channel(&first, "test/1");
}

static void close_channels(void)
{
	feed_destroy(&first);
}

TestSuite(assembler_lives, .init = open_channels, .fini = close_channels);

static void run(struct feed *on, uint64_t handle, uint16_t attempt, uint64_t step,
		uint32_t position, uint32_t rows)
{
	const struct r3ring_span one = {.request = handle,
					.position = position,
					.rows = rows,
					.attempt = attempt,
					.accepted = R3RING_UNKNOWN_U32};

	feed_whole(on, step, rows, &one, 1);
}

static void two_stages(void)
{
	first.rank.pp = (struct r3ring_coordinate){0, 2};
	second.rank.pp = (struct r3ring_coordinate){1, 2};
	second.first_layer = FEED_LAYERS;
	feed_schema(&first);
	feed_schema(&second);
}

/* Of a cell of the second stage. */
static uint8_t cause_at(const struct r3ring_assembled *got, uint32_t position, uint32_t layer)
{
	uint8_t cause;
	const struct r3ring_assembled_rows rows = {.cause = &cause};

	cr_assert_eq(r3ring_assembled_read(got, position, 1, layer, 1, &rows), 0);
	return cause;
}

/* One stage has read to the end before the other has read of the second attempt. */
Test(assembler_lives, a_stage_that_is_an_attempt_behind_is_waited_for)
{
	struct r3ring_assembled *got;

	two_stages();
	feed_begin(&first, 1, "a", 1, 0);
	feed_begin(&second, 1, "a", 1, 0);
	run(&first, 1, 0, 1, 0, 1);
	run(&second, 1, 0, 1, 0, 1);
	feed_end(&first, 1, R3RING_END_PREEMPTED, 0, 2);
	feed_end(&second, 1, R3RING_END_PREEMPTED, 0, 2);
	feed_begin(&first, 2, "a", 2, 1);
	run(&first, 2, 1, 2, 0, 2);
	feed_end(&first, 2, R3RING_END_FINISHED, 1, 3);
	cr_assert_null(r3ring_assembler_take(first.assembler));
	feed_begin(&second, 2, "a", 2, 1);
	run(&second, 2, 1, 2, 0, 2);
	cr_assert_null(r3ring_assembler_take(first.assembler));
	feed_end(&second, 2, R3RING_END_FINISHED, 1, 3);
	got = take(&first, "a");
	cr_assert_eq(r3ring_assembled_get_info(got)->flags, 0);
	cr_assert_eq(r3ring_assembled_get_info(got)->cells_valid, 2 * 2 * FEED_LAYERS);
	r3ring_assembled_free(got);
	cr_assert_null(r3ring_assembler_take(first.assembler));
}

/* Two tokens are prefilled. */
static void open_instances(struct feed *prefill, struct feed *decode)
{
	const struct r3ring_assembler_options options = {.size = sizeof(options), .min_ends = 2};

	feed_create(prefill, &options);
	*decode = feed_channel(prefill, "decode/0");
	feed_schema(prefill);
	feed_schema(decode);
	feed_begin(prefill, 1, "a", 2, 0);
	run(prefill, 1, 0, 1, 0, 2);
}

/* The second stage was not told what was accepted; the first was, and that nothing was of token
 * 3, which the next attempt runs. */
Test(assembler_lives, a_stage_that_was_told_knows_what_another_was_not)
{
	struct r3ring_span draft = {.request = 1,
				    .position = 2,
				    .rows = 2,
				    .accepted = R3RING_UNKNOWN_U32,
				    .flags = R3RING_SPAN_DRAFT};
	struct r3ring_assembled *got;

	two_stages();
	for (struct feed *on = &first; on; on = on == &first ? &second : NULL) {
		feed_begin(on, 1, "a", 2, 0);
		run(on, 1, 0, 1, 0, 2);
		draft.accepted = on == &first ? 1 : R3RING_UNKNOWN_U32;
		feed_whole(on, 2, 2, &draft, 1);
		feed_end(on, 1, R3RING_END_PREEMPTED, 0, 4);
		feed_begin(on, 2, "a", 4, 1);
		run(on, 2, 1, 3, 0, 5);
		feed_end(on, 2, R3RING_END_FINISHED, 1, 6);
	}
	got = take(&first, "a");
	cr_assert_eq(cell_of(got, 2, 0, 0, 2, 0), 0);
	cr_assert_eq(cause_at(got, 2, FEED_LAYERS), R3RING_MISSING_SPANS);
	cr_assert_eq(cell_of(got, 3, 0, 0, 3, 3), 0);
	cr_assert_eq(cause_at(got, 3, FEED_LAYERS), 0);
	r3ring_assembled_free(got);
}

/* The second stage was not told what was accepted of a draft that the first one kept, and new
 * weights ran all again. */
Test(assembler_lives, of_a_pass_that_one_stage_was_told_another_s_map_is_missing)
{
	struct r3ring_span draft = {.request = 1,
				    .position = 2,
				    .rows = 1,
				    .accepted = R3RING_UNKNOWN_U32,
				    .flags = R3RING_SPAN_DRAFT};
	struct r3ring_assembled *got;

	two_stages();
	for (struct feed *on = &first; on; on = on == &first ? &second : NULL) {
		feed_begin(on, 1, "a", 2, 0);
		run(on, 1, 0, 1, 0, 2);
		draft.accepted = on == &first ? 1 : R3RING_UNKNOWN_U32;
		feed_whole(on, 2, 1, &draft, 1);
		on->weight_version = 1;
		run(on, 1, 0, 3, 0, 3);
		feed_end(on, 1, R3RING_END_FINISHED, 0, 4);
	}
	got = take(&first, "a");
	cr_assert_eq(cell_of(got, 2, 0, 0, 2, 0), 0);
	cr_assert_eq(cause_at(got, 1, FEED_LAYERS), 0);
	cr_assert_eq(cause_at(got, 2, FEED_LAYERS), R3RING_MISSING_SPANS);
	r3ring_assembled_free(got);
}

Test(assembler_lives, of_a_stage_that_never_heard_of_an_attempt_the_gap_is_told)
{
	struct r3ring_assembled *got;

	two_stages();
	feed_begin(&second, 1, "a", 2, 0);
	run(&second, 1, 0, 1, 0, 2);
	feed_end(&second, 1, R3RING_END_PREEMPTED, 0, 3);
	feed_begin(&second, 2, "a", 3, 1);
	feed_end(&second, 2, R3RING_END_FINISHED, 1, 4);
	feed_begin(&first, 2, "a", 3, 1);
	feed_end(&first, 2, R3RING_END_FINISHED, 1, 4);
	got = take(&first, "a");
	cr_assert_eq(cause_at(got, 0, 0), R3RING_MISSING_GAP);
	cr_assert_eq(cause_at(got, 0, FEED_LAYERS), 0);
	r3ring_assembled_free(got);
}

static void two_replicas(void)
{
	first.rank.dp = (struct r3ring_coordinate){0, 2};
	second.rank.dp = (struct r3ring_coordinate){1, 2};
	feed_schema(&first);
	feed_schema(&second);
}

/* The replica that began it is read later than the one that went on with it. */
Test(assembler_lives, an_attempt_before_may_be_heard_of_later)
{
	struct r3ring_assembled *got;

	two_replicas();
	feed_begin(&second, 1, "a", 2, 1);
	run(&second, 1, 1, 7, 0, 2);
	feed_begin(&first, 1, "a", 1, 0);
	run(&first, 1, 0, 1, 0, 1);
	feed_end(&first, 1, R3RING_END_PREEMPTED, 0, 2);
	feed_end(&second, 1, R3RING_END_FINISHED, 1, 3);
	got = take(&first, "a");
	assert_row(got, 0, 1, 0);
	assert_row(got, 1, 7, 1);
	r3ring_assembled_free(got);
	cr_assert_null(r3ring_assembler_take(first.assembler));
}

static void two_instances(struct feed *prefill, struct feed *decode)
{
	open_instances(prefill, decode);
	feed_end(prefill, 1, R3RING_END_FINISHED, 0, 2);
}

Test(assembler_lives, failure_18_what_was_preempted_where_it_decodes_is_not_over)
{
	struct feed prefill, decode;
	struct r3ring_assembled *got;

	two_instances(&prefill, &decode);
	feed_begin(&decode, 1, "a", 2, 0);
	run(&decode, 1, 0, 1, 2, 1);
	feed_end(&decode, 1, R3RING_END_PREEMPTED, 0, 4);
	cr_assert_null(r3ring_assembler_take(prefill.assembler));
	feed_begin(&decode, 2, "a", 4, 1);
	run(&decode, 2, 1, 2, 0, 5);
	feed_end(&decode, 2, R3RING_END_FINISHED, 1, 6);
	got = take(&prefill, "a");
	assert_row(got, 1, 1, 1);
	assert_row(got, 2, 1, 0);
	assert_row(got, 4, 2, 4);
	cr_assert_eq(r3ring_assembled_get_info(got)->tokens, 6);
	r3ring_assembled_free(got);
	feed_destroy(&prefill);
}

Test(assembler_lives, failure_18_where_only_the_prefill_told_its_end_that_is_said)
{
	struct feed prefill, decode;
	struct r3ring_assembled *got;

	two_instances(&prefill, &decode);
	r3ring_assembler_flush(prefill.assembler);
	got = take(&prefill, "a");
	cr_assert_eq(r3ring_assembled_get_info(got)->flags, R3RING_ASSEMBLED_UNFINISHED);
	r3ring_assembled_free(got);
	feed_destroy(&prefill);
}

Test(assembler_lives, failure_18_the_prefill_s_end_is_not_the_length_of_the_whole)
{
	struct feed prefill, decode;
	struct r3ring_assembled *got;

	two_instances(&prefill, &decode);
	feed_begin(&decode, 1, "a", 2, 0);
	run(&decode, 1, 0, 1, 2, 3);
	feed_end(&decode, 1, R3RING_END_ABORTED, 0, R3RING_UNKNOWN_U32);
	got = take(&prefill, "a");
	cr_assert(r3ring_assembled_get_info(got)->flags & R3RING_ASSEMBLED_LENGTH_GUESSED);
	cr_assert_eq(r3ring_assembled_get_info(got)->tokens, 5);
	r3ring_assembled_free(got);
	feed_destroy(&prefill);
}

Test(assembler_lives, a_request_that_its_daemon_lost_sight_of_is_not_called_aborted)
{
	struct feed prefill, decode;
	struct r3ring_assembled *got;
	uint32_t flags;

	two_instances(&prefill, &decode);
	feed_begin(&decode, 1, "a", 2, 0);
	run(&decode, 1, 0, 1, 2, 3);
	feed_end(&decode, 1, R3RING_END_UNKNOWN, 0, R3RING_UNKNOWN_U32);
	got = take(&prefill, "a");
	flags = r3ring_assembled_get_info(got)->flags;
	cr_expect(flags & R3RING_ASSEMBLED_LENGTH_GUESSED, "%x", flags);
	cr_expect_not(flags & R3RING_ASSEMBLED_ABORTED, "%x", flags);
	r3ring_assembled_free(got);
	feed_destroy(&prefill);
}

/* One token of three is told of by the first stage, whose daemon then loses sight of the engine. */
static void lose_sight_of_the_first_stage(void)
{
	two_stages();
	feed_begin(&first, 1, "a", 1, 0);
	feed_begin(&second, 1, "a", 1, 0);
	run(&first, 1, 0, 1, 0, 1);
	run(&second, 1, 0, 1, 0, 1);
	run(&second, 1, 0, 2, 1, 1);
	feed_end(&first, 1, R3RING_END_UNKNOWN, 0, R3RING_UNKNOWN_U32);
}

Test(assembler_lives,
     what_ran_when_a_daemon_had_lost_sight_of_its_engine_is_not_said_not_to_have_run)
{
	struct r3ring_assembled *got;

	lose_sight_of_the_first_stage();
	feed_end(&second, 1, R3RING_END_FINISHED, 0, 3);
	got = take(&first, "a");
	assert_row(got, 0, 1, 0);
	assert_missing(got, 1, R3RING_CAUSE_DAEMON_RESTART);
	r3ring_assembled_free(got);
}

/* The engine preempted it, and may have gone on with it while there was no daemon. */
Test(assembler_lives,
     what_one_stage_told_to_be_preempted_has_no_end_where_the_other_was_lost_sight_of)
{
	struct r3ring_assembled *got;

	two_stages();
	feed_begin(&first, 1, "a", 1, 0);
	feed_begin(&second, 1, "a", 1, 0);
	run(&first, 1, 0, 1, 0, 1);
	run(&second, 1, 0, 1, 0, 1);
	feed_end(&first, 1, R3RING_END_PREEMPTED, 0, 2);
	feed_end(&second, 1, R3RING_END_UNKNOWN, 0, R3RING_UNKNOWN_U32);
	r3ring_assembler_flush(first.assembler);
	got = take(&first, "a");
	cr_assert(r3ring_assembled_get_info(got)->flags & R3RING_ASSEMBLED_UNFINISHED);
	r3ring_assembled_free(got);
}

/* The attempt sampled where it decodes; its row was lost where it was prefilled. */
Test(assembler_lives, a_later_attempt_does_not_stand_in_for_what_another_engine_lost)
{
	struct feed prefill, decode;
	struct r3ring_assembled *got;

	two_instances(&prefill, &decode);
	feed_begin(&decode, 9, "a", 5, 1);
	run(&decode, 9, 1, 2, 0, 6);
	feed_end(&decode, 9, R3RING_END_FINISHED, 1, 7);
	got = take(&prefill, "a");
	assert_row(got, 1, 1, 1);
	/* Attempt 0 came to five tokens, by what attempt 1 was fed. */
	cr_assert_neq(cause_at(got, 2, 0), 0);
	cr_assert_neq(cause_at(got, 3, 0), 0);
	assert_row(got, 5, 2, 5);
	r3ring_assembled_free(got);
	feed_destroy(&prefill);
}

/* Where it prefills token 2 was run before it stopped; where it decodes that was chosen and run
 * again, and lost. */
Test(assembler_lives, failure_18_what_the_prefill_ran_past_its_end_does_not_stand_in)
{
	const struct r3ring_span past = {.request = 1,
					 .position = 2,
					 .rows = 2,
					 .accepted = R3RING_UNKNOWN_U32,
					 .flags = R3RING_SPAN_DRAFT};
	const struct r3ring_span one = {
		.request = 7, .position = 2, .rows = 1, .accepted = R3RING_UNKNOWN_U32};
	struct feed prefill, decode;
	struct r3ring_assembled *got;

	open_instances(&prefill, &decode);
	run(&prefill, 1, 0, 2, 2, 1);
	feed_whole(&prefill, 3, 2, &past, 1); /* nobody says what was accepted of it */
	feed_end(&prefill, 1, R3RING_END_FINISHED, 0, 2);
	feed_begin(&decode, 7, "a", 2, 0);
	decode.flags = R3RING_STEP_DROPPED;
	feed_step(&decode, 1, 1, &one, 1, NULL, 0);
	decode.flags = 0;
	feed_lost(&decode, 1, 1, R3RING_CAUSE_BUFFER_FULL, 0);
	feed_end(&decode, 7, R3RING_END_PREEMPTED, 0, 4);
	feed_begin(&decode, 9, "a", 4, 1);
	run(&decode, 9, 1, 2, 0, 5);
	feed_end(&decode, 9, R3RING_END_FINISHED, 1, 6);
	got = take(&prefill, "a");
	assert_row(got, 1, 1, 1);
	assert_missing(got, 2, R3RING_CAUSE_BUFFER_FULL);
	assert_row(got, 3, 2, 3);
	r3ring_assembled_free(got);
	feed_destroy(&prefill);
}

/* Where its end was lost: where it decodes, the request began with two tokens and sampled more. */
Test(assembler_lives, failure_18_nor_where_the_prefill_s_end_was_lost)
{
	struct feed prefill, decode;
	struct r3ring_assembled *got;

	open_instances(&prefill, &decode);
	run(&prefill, 1, 0, 2, 2, 1);
	feed_begin(&decode, 7, "a", 2, 0);
	feed_end(&decode, 7, R3RING_END_PREEMPTED, 0, 3);
	feed_begin(&decode, 9, "a", 3, 1);
	run(&decode, 9, 1, 2, 0, 4);
	feed_end(&decode, 9, R3RING_END_FINISHED, 1, 5);
	r3ring_assembler_flush(prefill.assembler);
	got = take(&prefill, "a");
	assert_row(got, 1, 1, 1);
	assert_row(got, 2, 2, 2);
	assert_row(got, 3, 2, 3);
	r3ring_assembled_free(got);
	feed_destroy(&prefill);
}

/* Where the prefill's end was lost, token 2 was run before that; where it decodes it was chosen
 * anew, and how much was kept is told as the length of the next attempt's prompt. */
static struct r3ring_assembled *lose_the_prefill_s_end(struct feed *prefill, struct feed *decode,
						       uint64_t handle)
{
	open_instances(prefill, decode);
	run(prefill, 1, 0, 2, 2, 1);
	r3ring_assembler_gap(prefill->assembler, prefill->channel);
	if (handle)
		feed_begin(decode, handle, "a", 2, 0);
	else
		r3ring_assembler_gap(decode->assembler, decode->channel);
	if (handle)
		feed_end(decode, handle, R3RING_END_PREEMPTED, 0, R3RING_UNKNOWN_U32);
	feed_begin(decode, 9, "a", 3, 1);
	run(decode, 9, 1, 2, 0, 3);
	feed_end(decode, 9, R3RING_END_FINISHED, 1, 3);
	r3ring_assembler_flush(prefill->assembler);
	return take(prefill, "a");
}

Test(assembler_lives, failure_18_nor_where_nobody_told_what_was_kept_where_it_decodes)
{
	for (uint64_t handle = 0; handle < 8; handle += 7) {
		struct feed prefill, decode;
		struct r3ring_assembled *got = lose_the_prefill_s_end(&prefill, &decode, handle);

		assert_row(got, 1, 1, 1);
		assert_missing(got, 2, R3RING_MISSING_GAP);
		cr_expect_eq(r3ring_assembled_get_info(got)->flags, R3RING_ASSEMBLED_UNFINISHED);
		r3ring_assembled_free(got);
		feed_destroy(&prefill);
	}
}

/* The prefill ended with nothing run behind its prompt, as it told, but not with how much it kept. */
Test(assembler_lives, what_ran_behind_the_prompt_of_a_prefill_that_ended_is_the_decoding_one_s)
{
	struct feed prefill, decode;
	struct r3ring_assembled *got;

	open_instances(&prefill, &decode);
	feed_end(&prefill, 1, R3RING_END_FINISHED, 0, R3RING_UNKNOWN_U32);
	feed_begin(&decode, 7, "a", 2, 0);
	run(&decode, 7, 0, 1, 2, 1);
	r3ring_assembler_gap(decode.assembler, decode.channel);
	feed_begin(&decode, 9, "a", 4, 1);
	run(&decode, 9, 1, 2, 0, 4);
	feed_end(&decode, 9, R3RING_END_FINISHED, 1, 5);
	got = take(&prefill, "a");
	assert_row(got, 2, 1, 0);
	assert_missing(got, 3, R3RING_MISSING_GAP);
	r3ring_assembled_free(got);
	feed_destroy(&prefill);
}

/* The prefill's end was lost, and token 2 was run where it decodes. */
static void decode_behind_a_lost_end(struct feed *prefill, struct feed *decode)
{
	open_instances(prefill, decode);
	r3ring_assembler_gap(prefill->assembler, prefill->channel);
	feed_begin(decode, 7, "a", 2, 0);
	run(decode, 7, 0, 1, 2, 1);
}

Test(assembler_lives, what_an_engine_ran_of_an_attempt_whose_end_was_heard_is_not_in_doubt)
{
	struct feed prefill, decode;
	struct r3ring_assembled *got;

	decode_behind_a_lost_end(&prefill, &decode);
	feed_end(&decode, 7, R3RING_END_PREEMPTED, 0, R3RING_UNKNOWN_U32);
	feed_begin(&decode, 9, "a", 3, 1);
	run(&decode, 9, 1, 2, 0, 3);
	feed_end(&decode, 9, R3RING_END_FINISHED, 1, 3);
	r3ring_assembler_flush(prefill.assembler);
	got = take(&prefill, "a");
	assert_row(got, 2, 1, 0);
	r3ring_assembled_free(got);
	feed_destroy(&prefill);
}

Test(assembler_lives, nor_is_what_was_run_of_a_last_attempt_whose_length_is_a_guess)
{
	struct feed prefill, decode;
	struct r3ring_assembled *got;

	decode_behind_a_lost_end(&prefill, &decode);
	r3ring_assembler_flush(prefill.assembler);
	got = take(&prefill, "a");
	assert_row(got, 2, 1, 0);
	cr_expect(r3ring_assembled_get_info(got)->flags & R3RING_ASSEMBLED_LENGTH_GUESSED);
	r3ring_assembled_free(got);
	feed_destroy(&prefill);
}

/* The prefill's end was lost, and so was something before that of the attempt that decoded, which did not
 * tell how much it kept: but that it was preempted, and so ran nothing past an end. */
Test(assembler_lives, what_decoded_until_it_was_preempted_ran_nothing_past_an_end)
{
	struct feed prefill, decode;
	struct r3ring_assembled *got;

	open_instances(&prefill, &decode);
	r3ring_assembler_gap(prefill.assembler, prefill.channel);
	feed_begin(&decode, 7, "a", 2, 0);
	run(&decode, 7, 0, 1, 2, 1);
	r3ring_assembler_gap(decode.assembler, decode.channel);
	feed_end(&decode, 7, R3RING_END_PREEMPTED, 0, R3RING_UNKNOWN_U32);
	feed_begin(&decode, 9, "a", 4, 1);
	run(&decode, 9, 1, 3, 0, 4);
	feed_end(&decode, 9, R3RING_END_FINISHED, 1, 5);
	r3ring_assembler_flush(prefill.assembler);
	got = take(&prefill, "a");
	assert_row(got, 2, 1, 0);
	assert_missing(got, 3, R3RING_MISSING_GAP);
	r3ring_assembled_free(got);
	feed_destroy(&prefill);
}

/* Where the prefill's end was lost: it ran the last token that the other kept, since it went on. */
Test(assembler_lives,
     the_last_token_of_an_attempt_that_decoded_is_its_own_where_the_prefill_s_end_was_lost)
{
	struct feed prefill, decode;
	struct r3ring_assembled *got;

	open_instances(&prefill, &decode);
	r3ring_assembler_gap(prefill.assembler, prefill.channel);
	feed_begin(&decode, 7, "a", 2, 0);
	run(&decode, 7, 0, 1, 2, 3);
	feed_end(&decode, 7, R3RING_END_PREEMPTED, 0, 5);
	feed_begin(&decode, 9, "a", 2, 1);
	run(&decode, 9, 1, 2, 0, 6);
	feed_end(&decode, 9, R3RING_END_FINISHED, 1, 7);
	r3ring_assembler_flush(prefill.assembler);
	got = take(&prefill, "a");
	assert_row(got, 4, 1, 2);
	assert_row(got, 5, 2, 5);
	r3ring_assembled_free(got);
	feed_destroy(&prefill);
}

/* Nor where the attempt that decoded was never heard of. */
Test(assembler_lives, failure_18_nor_before_a_later_attempt)
{
	struct feed prefill, decode;
	struct r3ring_assembled *got;

	open_instances(&prefill, &decode);
	run(&prefill, 1, 0, 2, 2, 1);
	feed_end(&prefill, 1, R3RING_END_FINISHED, 0, 2);
	feed_begin(&decode, 9, "a", 3, 1);
	run(&decode, 9, 1, 2, 0, 4);
	feed_end(&decode, 9, R3RING_END_FINISHED, 1, 5);
	got = take(&prefill, "a");
	assert_row(got, 1, 1, 1);
	assert_row(got, 2, 2, 2);
	assert_row(got, 3, 2, 3);
	r3ring_assembled_free(got);
	feed_destroy(&prefill);
}

Test(assembler_lives, a_later_attempt_does_not_stand_in_for_one_nobody_saw)
{
	struct r3ring_assembled *got;

	feed_schema(&first);
	feed_begin(&first, 4, "a", 3, 1);
	run(&first, 4, 1, 1, 0, 4);
	feed_end(&first, 4, R3RING_END_FINISHED, 1, 5);
	got = take(&first, "a");
	/* Its prompt may be that of the first attempt, which went on from there. */
	for (uint32_t position = 0; position < 4; position++)
		assert_missing(got, position, R3RING_MISSING_GAP);
	r3ring_assembled_free(got);
}

Test(assembler_lives, what_a_keyframe_names_no_more_may_go_on_with_another_attempt)
{
	struct r3ring_assembled *got;

	two_stages();
	feed_begin(&first, 1, "a", 1, 0);
	feed_begin(&second, 1, "a", 1, 0);
	run(&first, 1, 0, 1, 0, 1);
	run(&second, 1, 0, 1, 0, 1);
	r3ring_assembler_gap(first.assembler, second.channel);
	feed_keyframe(&second, 0);
	feed_end(&first, 1, R3RING_END_PREEMPTED, 0, 2);
	feed_begin(&second, 2, "a", 2, 1);
	feed_begin(&first, 2, "a", 2, 1);
	run(&first, 2, 1, 2, 0, 2);
	run(&second, 2, 1, 2, 0, 2);
	feed_end(&first, 2, R3RING_END_FINISHED, 1, 3);
	feed_end(&second, 2, R3RING_END_FINISHED, 1, 3);
	got = take(&first, "a");
	cr_assert_eq(r3ring_assembled_get_info(got)->flags, 0);
	cr_assert_eq(r3ring_assembled_get_info(got)->attempts, 2);
	assert_row(got, 0, 1, 0);
	r3ring_assembled_free(got);
}

/* Its end was taken from a keyframe that did not name it, and then it went on. */
Test(assembler_lives, what_went_on_behind_a_keyframe_and_was_preempted_then_is_not_over)
{
	struct r3ring_assembled *got;

	two_stages();
	feed_begin(&first, 1, "a", 1, 0);
	feed_begin(&second, 1, "a", 1, 0);
	r3ring_assembler_gap(first.assembler, second.channel);
	feed_keyframe(&second, 0);
	feed_end(&first, 1, R3RING_END_PREEMPTED, 0, 2);
	feed_begin(&second, 2, "a", 2, 1);
	feed_begin(&first, 2, "a", 2, 1);
	feed_end(&first, 2, R3RING_END_PREEMPTED, 1, 3);
	feed_end(&second, 2, R3RING_END_PREEMPTED, 1, 3);
	r3ring_assembler_flush(first.assembler);
	got = take(&first, "a");
	cr_assert_eq(r3ring_assembled_get_info(got)->flags, R3RING_ASSEMBLED_UNFINISHED);
	r3ring_assembled_free(got);
}

/* The keyframe's first record was lost, what it repeats was not. */
Test(assembler_lives, a_begin_that_is_repeated_begins_nothing_anew)
{
	struct r3ring_assembled *got;

	feed_schema(&first);
	feed_begin(&first, 1, "a", 1, 0);
	run(&first, 1, 0, 1, 0, 1);
	r3ring_assembler_gap(first.assembler, first.channel);
	feed_repeated_begin(&first, 1, "a", 1);
	cr_assert_null(r3ring_assembler_take(first.assembler));
	feed_end(&first, 1, R3RING_END_FINISHED, 0, 2);
	got = take(&first, "a");
	cr_assert_eq(r3ring_assembled_get_info(got)->flags, 0);
	assert_row(got, 0, 1, 0);
	r3ring_assembled_free(got);
}

Test(assembler_lives, failure_49_a_late_reader_s_first_keyframe_is_one)
{
	struct r3ring_assembled *got;

	first.seq = 500;
	feed_keyframe(&first, 1);
	feed_repeated_begin(&first, 1, "a", 1);
	run(&first, 1, 0, 7, 1, 1);
	feed_end(&first, 1, R3RING_END_FINISHED, 0, 3);
	got = take(&first, "a");
	assert_missing(got, 0, R3RING_MISSING_GAP);
	assert_row(got, 1, 7, 0);
	r3ring_assembled_free(got);
}

Test(assembler_lives, of_a_stage_that_lost_its_rows_the_gap_is_told)
{
	struct r3ring_assembled *got;

	two_stages();
	feed_begin(&first, 1, "a", 1, 0);
	feed_begin(&second, 1, "a", 1, 0);
	run(&first, 1, 0, 1, 0, 1);
	r3ring_assembler_gap(first.assembler, second.channel);
	feed_end(&first, 1, R3RING_END_FINISHED, 0, 2);
	feed_end(&second, 1, R3RING_END_FINISHED, 0, 2);
	got = take(&first, "a");
	assert_row(got, 0, 1, 0);
	cr_assert_eq(cause_at(got, 0, FEED_LAYERS), R3RING_MISSING_GAP);
	r3ring_assembled_free(got);
}

Test(assembler_lives, an_attempt_that_only_a_keyframe_told_of_has_a_gap)
{
	struct r3ring_assembled *got;

	feed_schema(&first);
	feed_begin(&first, 1, "a", 1, 0);
	run(&first, 1, 0, 1, 0, 1);
	feed_end(&first, 1, R3RING_END_PREEMPTED, 0, 2);
	r3ring_assembler_gap(first.assembler, first.channel);
	feed_keyframe(&first, 1);
	feed_repeated_attempt(&first, 2, "a", 2, 1);
	run(&first, 2, 1, 5, 2, 1);
	feed_end(&first, 2, R3RING_END_FINISHED, 1, 4);
	got = take(&first, "a");
	assert_row(got, 0, 1, 0);
	assert_missing(got, 1, R3RING_MISSING_GAP);
	assert_row(got, 2, 5, 0);
	r3ring_assembled_free(got);
}
