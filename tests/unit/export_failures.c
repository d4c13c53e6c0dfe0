/* SPDX-License-Identifier: Apache-2.0 */
/* Faults of the field that lie before the output: what is written is right, or said to be
 * missing. */
#include <errno.h>
#include <string.h>

#include "tests/unit/export_fixture.h"

TestSuite(export_failures, .init = trial_open, .fini = trial_close);

static const char *ids(void)
{
	return safetensors_metadata(&trial.file, "request_ids");
}

Test(export_failures, failure_10_rows_go_by_request_and_position_whatever_their_place_in_a_step)
{
	struct r3ring_span spans[2] = {trial_span(2, 0, 2), trial_span(1, 0, 2)};

	trial_begin("safetensors");
	feed_begin(&trial.feed, 1, "a", 2, 0);
	feed_begin(&trial.feed, 2, "b", 2, 0);
	spans[1].row = 2;
	feed_whole(&trial.feed, 1, 4, spans, 2);
	feed_end(&trial.feed, 1, R3RING_END_FINISHED, 0, 3);
	feed_end(&trial.feed, 2, R3RING_END_FINISHED, 0, 3);
	trial_finish();
	trial_read();
	cr_assert_str_eq(ids(), "[\"a\",\"b\"]");
	for (uint32_t row = 0; row < 2; row++) {
		cr_assert(trial_is("routes", row, 1, 1, row + 2, 1));
		cr_assert(trial_is("routes", row + 2, 1, 1, row, 1));
	}
}

Test(export_failures, failure_13_a_draft_models_routes_are_not_its_targets)
{
	const struct r3ring_span prompt = trial_span(1, 0, 3);
	struct feed draft;

	trial_begin("safetensors");
	draft = feed_channel(&trial.feed, "test/0.draft");
	draft.salt = 99;
	feed_schema(&draft);
	feed_begin(&draft, 1, "a", 3, 0);
	feed_whole(&draft, 1, 3, &prompt, 1);
	trial_request(1, "a", 1);
	feed_whole(&draft, 2, 3, &prompt, 1);
	feed_end(&draft, 1, R3RING_END_FINISHED, 0, 5);
	trial_finish();
	trial_read();
	cr_assert_str_eq(ids(), "[\"a\"]");
	for (uint32_t row = 0; row < 3; row++)
		cr_assert(trial_is("routes", row, 2, 1, row, 2));
}

Test(export_failures, failure_18_the_prompts_routes_come_from_the_machine_that_ran_it)
{
	const struct r3ring_span prompt = trial_span(1, 0, 3);
	struct r3ring_span spans[2] = {trial_span(9, 0, 3), trial_span(9, 3, 1)};
	struct feed decode;

	trial.options.min_ends = 2;
	trial_begin("safetensors");
	decode = feed_channel(&trial.feed, "decode/0");
	decode.salt = 4;
	feed_schema(&decode);
	feed_begin(&trial.feed, 1, "a", 3, 0);
	feed_whole(&trial.feed, 1, 3, &prompt, 1);
	feed_end(&trial.feed, 1, R3RING_END_FINISHED, 0, 4);
	cr_assert_eq(trial_take(), 0);
	spans[0].kind = R3RING_SPAN_EXTERNAL;
	feed_begin(&decode, 9, "a", 3, 0);
	feed_whole(&decode, 7, 1, spans, 2);
	feed_end(&decode, 9, R3RING_END_FINISHED, 0, 5);
	trial_finish();
	trial_read();
	cr_assert_eq(safetensors_tensor(&trial.file, "routes").shape[0], 4);
	for (uint32_t row = 0; row < 3; row++)
		cr_assert(trial_is("routes", row, 0, 1, row, 0));
	trial.feed.salt = 4;
	cr_assert(trial_is("routes", 3, 0, 7, 0, 0));
}

Test(export_failures, requests_of_one_id_that_engines_ran_on_their_own_are_not_written_as_one)
{
	const struct r3ring_span prompt = trial_span(1, 0, 3);
	struct feed other;

	trial.options.min_ends = 2;
	trial_begin("safetensors");
	other = feed_channel(&trial.feed, "other/0");
	other.salt = 4;
	feed_schema(&other);
	for (uint32_t i = 0; i < 2; i++) {
		struct feed *on = i ? &other : &trial.feed;

		feed_begin(on, 1, "a", 3, 0);
		feed_whole(on, 1, 3, &prompt, 1);
		feed_end(on, 1, R3RING_END_FINISHED, 0, 4 + i);
	}
	trial.options.missing = EXPORT_FILL_MINUS_ONE;
	trial_refused(-ENOENT, "1 joined of requests of one id that engines ran on their own");
}

Test(export_failures, that_fewer_channels_told_of_an_end_than_were_asked_for_is_said)
{
	trial.options.min_ends = 2;
	trial_begin("safetensors");
	trial_request(1, "a", 1);
	trial_refused(-ENOENT, "1 whose end fewer channels told than --ends asks for");
}

/* Retracted after a token, and gone on with later: the second attempt's prompt has it. */
Test(export_failures, failure_22_a_request_that_went_on_later_is_written_whole)
{
	const struct r3ring_span first[2] = {trial_span(1, 0, 2), trial_span(1, 2, 1)};
	struct r3ring_span again = trial_span(1, 0, 4);
	struct r3ring_span more = trial_span(1, 4, 1);

	trial_begin("safetensors");
	feed_begin(&trial.feed, 1, "a", 2, 0);
	feed_whole(&trial.feed, 1, 2, &first[0], 1);
	feed_whole(&trial.feed, 2, 1, &first[1], 1);
	feed_end(&trial.feed, 1, R3RING_END_PREEMPTED, 0, 4);
	again.attempt = more.attempt = 1;
	feed_begin(&trial.feed, 1, "a", 4, 1);
	feed_whole(&trial.feed, 3, 4, &again, 1);
	feed_whole(&trial.feed, 4, 1, &more, 1);
	feed_end(&trial.feed, 1, R3RING_END_FINISHED, 1, 6);
	trial_finish();
	trial_read();
	cr_assert_eq(safetensors_tensor(&trial.file, "routes").shape[0], 5);
	/* The passes that sampled; the token that ended the first attempt was fed by the second. */
	cr_assert(trial_is("routes", 0, 0, 1, 0, 0));
	cr_assert(trial_is("routes", 2, 0, 2, 0, 0));
	cr_assert(trial_is("routes", 3, 0, 3, 3, 0));
	cr_assert(trial_is("routes", 4, 0, 4, 0, 0));
}

static void feed_endless(void)
{
	const struct r3ring_span all = trial_span(1, 0, 60);

	feed_begin(&trial.feed, 1, "endless", 60, 0);
	for (uint32_t i = 0; i < 40; i++) {
		struct r3ring_span next = all;

		next.position = i * 60;
		feed_whole(&trial.feed, i + 1, 60, &next, 1);
	}
	feed_end(&trial.feed, 1, R3RING_END_FINISHED, 0, 2401);
	trial_request(2, "b", 100);
}

Test(export_failures, failure_27_what_does_not_fit_into_memory_is_named_and_nothing_written)
{
	trial.options.max_bytes = 1 << 14;
	trial_begin("safetensors");
	feed_endless();
	trial_refused(-ENOBUFS, "1 requests did not fit into the memory for requests at work: "
				"'endless'");
}

/* It may have ended there, had it not been given up before. */
Test(export_failures, failure_27_what_did_not_fit_is_named_though_it_was_given_up_before_since)
{
	trial.options.max_bytes = 1 << 14;
	trial.options.since_ns = trial.now_ns + 1;
	trial_begin("safetensors");
	feed_endless();
	trial_refused(-ENOBUFS, "'endless'");
}

/* Its later rows would be of no request, or of a second one of that id. */
Test(export_failures, failure_27_what_did_not_fit_is_refused_though_unfinished_ones_are_taken)
{
	trial.options.max_bytes = 1 << 14;
	trial.options.include = EXPORT_INCLUDE_UNFINISHED;
	trial.options.missing = EXPORT_FILL_MINUS_ONE;
	trial_begin("safetensors");
	feed_endless();
	trial_refused(-ENOBUFS, "'endless'; nothing is written. Raise --max-memory");
}

Test(export_failures, failure_46_rows_of_rejected_draft_tokens_are_not_written)
{
	struct r3ring_span draft = trial_span(1, 2, 3);
	const struct r3ring_span prompt = trial_span(1, 0, 2), next = trial_span(1, 4, 1);

	trial_begin("safetensors");
	feed_begin(&trial.feed, 1, "a", 2, 0);
	feed_whole(&trial.feed, 1, 2, &prompt, 1);
	draft.flags = R3RING_SPAN_DRAFT;
	draft.accepted = 2;
	feed_whole(&trial.feed, 2, 3, &draft, 1);
	feed_whole(&trial.feed, 3, 1, &next, 1);
	feed_end(&trial.feed, 1, R3RING_END_FINISHED, 0, 6);
	trial_finish();
	trial_read();
	cr_assert(trial_is("routes", 3, 0, 2, 1, 0));
	cr_assert(trial_is("routes", 4, 0, 3, 0, 0), "the rejected third row stands there");
}

Test(export_failures, failure_47_copies_of_tensor_parallel_ranks_are_not_counted_twice)
{
	struct feed copy;

	trial_begin("safetensors");
	copy = feed_channel(&trial.feed, "test/1");
	copy.replica = 1;
	copy.salt = 8;
	feed_schema(&copy);
	feed_begin(&copy, 1, "a", 3, 0);
	trial_request(1, "a", 1);
	feed_end(&copy, 1, R3RING_END_FINISHED, 0, 5);
	trial_finish();
	trial_read();
	cr_assert_str_eq(ids(), "[\"a\"]");
	cr_assert_eq(safetensors_tensor(&trial.file, "routes").shape[1], FEED_LAYERS);
	cr_assert(trial_is("routes", 0, 0, 1, 0, 0));
}

Test(export_failures, failure_50_a_restarted_engine_uses_steps_and_handles_again)
{
	trial_begin("safetensors");
	trial_request(1, "before", 1);
	cr_assert_eq(trial_take(), 0);
	trial.feed.generation = 2;
	trial.feed.seq = 0;
	trial.feed.salt = 3;
	feed_schema(&trial.feed);
	trial_request(1, "after", 1);
	trial_finish();
	trial_read();
	cr_assert_str_eq(ids(), "[\"before\",\"after\"]");
	cr_assert(trial_is("routes", 5, 1, 1, 1, 1));
	trial.feed.salt = 0;
	cr_assert(trial_is("routes", 1, 1, 1, 1, 1));
}
