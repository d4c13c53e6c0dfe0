/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that have the same text id: each has a name of its own in the output. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "archive/export/ids.h"
#include "tests/unit/export_fixture.h"
#include "tests/unit/key_feed.h"

TestSuite(export_ids, .init = trial_open, .fini = trial_close);

static const char *ids(void)
{
	return safetensors_metadata(&trial.file, "request_ids");
}

Test(export_ids, a_second_request_of_an_id_is_written_under_a_name_of_its_own)
{
	trial_begin("safetensors");
	trial_request(1, "a", 1);
	trial_request(2, "b", 3);
	trial_request(3, "a", 5);
	trial_finish();
	trial_read();
	cr_assert_str_eq(ids(), "[\"a\",\"b\",\"a#2\"]");
	cr_assert(trial_is("routes", 0, 0, 1, 0, 0));
	cr_assert(trial_is("routes", 8, 0, 5, 0, 0));
	cr_assert_eq(trial.summary.repeated_ids, 1);
	cr_assert_str_eq(trial.summary.repeated.request[0].id, "a#2");
	cr_assert_eq(trial.summary.repeated.request[0].time_ns, trial.now_ns);
	cr_assert_str_eq(safetensors_metadata(&trial.file, "repeated_ids"), "1");
}

Test(export_ids, a_generation_s_requests_are_not_those_of_the_one_before)
{
	trial_begin("safetensors");
	trial_request(1, "a", 1);
	cr_assert_eq(trial_take(), 0);
	trial.feed.generation = 2;
	trial.feed.seq = 0;
	feed_schema(&trial.feed);
	trial_request(1, "a", 1);
	trial_finish();
	trial_read();
	cr_assert_str_eq(ids(), "[\"a\",\"a#2\"]");
}

static struct feed begin_twin(const char *name)
{
	struct feed other = feed_channel(&trial.feed, name);

	other.salt = 9;
	feed_schema(&other);
	return other;
}

/* Each a prompt of 3 in its step 1, at the same time. */
static void run_both(struct feed *other)
{
	const struct r3ring_span all = trial_span(1, 0, 3);

	feed_begin(&trial.feed, 1, "a", 3, 0);
	feed_begin(other, 1, "a", 3, 0);
	feed_whole(&trial.feed, 1, 3, &all, 1);
	feed_whole(other, 1, 3, &all, 1);
	feed_end(&trial.feed, 1, R3RING_END_FINISHED, 0, 4);
	feed_end(other, 1, R3RING_END_FINISHED, 0, 4);
}

/* Whose second engine's ids are salted. */
static void expect_both(void)
{
	trial_finish();
	trial_read();
	cr_assert_str_eq(ids(), "[\"a\",\"a#2\"]");
	cr_assert_eq(trial.summary.repeated_ids, 1);
	cr_assert(trial_is("routes", 2, 1, 1, 2, 1));
	trial.feed.salt = 9;
	cr_assert(trial_is("routes", 5, 1, 1, 2, 1));
}

Test(export_ids, two_engines_that_use_one_id_have_two_requests)
{
	struct feed other;

	trial_begin("safetensors");
	other = begin_twin("other/0");
	run_both(&other);
	expect_both();
}

/* As two engines that were given one instance's name, and ranks. */
Test(export_ids, so_have_two_ranks_that_say_to_be_the_same)
{
	struct feed other;

	trial_begin("safetensors");
	other = begin_twin("test/1");
	run_both(&other);
	expect_both();
}

Test(export_ids, what_ends_joined_of_two_runs_is_left_out_and_told_with_both_channels)
{
	struct feed other;

	trial.options.min_ends = 2;
	trial_begin("safetensors");
	other = begin_twin("test/1");
	run_both(&other);
	feed_begin(&trial.feed, 2, "b", 2, 0);
	feed_begin(&other, 2, "b", 2, 0);
	feed_computed(&trial.feed, 2, 2, 0, 2, NULL, 0);
	feed_end(&trial.feed, 2, R3RING_END_FINISHED, 0, 2);
	feed_end(&other, 2, R3RING_END_FINISHED, 0, 3);
	trial_finish();
	trial_read();
	cr_assert_str_eq(ids(), "[\"b\"]");
	cr_assert_eq(trial.summary.mixed, 1);
	cr_assert_eq(trial.summary.mixed_told.told, 1);
	cr_assert_str_eq(trial.summary.mixed_told.request[0].id, "a");
	cr_assert_neq(strcmp(trial.summary.mixed_told.request[0].by[0],
			     trial.summary.mixed_told.request[0].by[1]),
		      0);
}

Test(export_ids, one_that_is_longer_than_any_that_is_put_together_is_left_out_and_named)
{
	const struct r3ring_span one = trial_span(1, 0, 2);

	trial_begin("safetensors");
	feed_begin(&trial.feed, 1, "a", 2, 0);
	feed_whole(&trial.feed, 1, 2, &one, 1);
	feed_end(&trial.feed, 1, R3RING_END_FINISHED, 0, (1u << 20) + 1);
	trial_request(2, "b", 3);
	trial_finish();
	trial_read();
	cr_assert_str_eq(ids(), "[\"b\"]");
	cr_assert_eq(trial.summary.cut, 1);
	cr_assert_str_eq(trial.summary.too_long.request[0].id, "a");
}

Test(export_ids, one_that_was_left_out_takes_no_name)
{
	const struct r3ring_span one = trial_span(1, 0, 2);

	trial_begin("safetensors");
	feed_begin(&trial.feed, 1, "a", 2, 0);
	feed_whole(&trial.feed, 1, 2, &one, 1);
	feed_end(&trial.feed, 1, R3RING_END_ABORTED, 0, 3);
	trial_request(2, "a", 3);
	trial_finish();
	trial_read();
	cr_assert_str_eq(ids(), "[\"a\"]");
	cr_assert_eq(trial.summary.aborted, 1);
	cr_assert_eq(trial.summary.repeated_ids, 0);
}

Test(export_ids, an_id_asks_for_all_that_have_it)
{
	trial.options.request = (const char *[]){"a"};
	trial.options.requests = 1;
	trial_begin("safetensors");
	trial_request(1, "a", 1);
	trial_request(2, "b", 3);
	trial_request(3, "a", 5);
	trial_finish();
	trial_read();
	cr_assert_str_eq(ids(), "[\"a\",\"a#2\"]");
}

Test(export_ids, a_name_asks_for_the_one_that_has_it)
{
	trial.options.request = (const char *[]){"a#2"};
	trial.options.requests = 1;
	trial_begin("npy");
	trial_request(1, "a", 1);
	trial_request(3, "a", 5);
	trial_finish();
	cr_assert_eq(trial.summary.requests, 1);
}

Test(export_ids, the_first_of_several_is_asked_for_by_number_one)
{
	trial.options.request = (const char *[]){"a#1"};
	trial.options.requests = 1;
	trial_begin("safetensors");
	trial_request(1, "a", 1);
	trial_request(3, "a", 5);
	trial_finish();
	trial_read();
	cr_assert_str_eq(ids(), "[\"a\"]");
}

Test(export_ids, a_name_that_somebody_has_already_is_passed_over)
{
	struct export_ids *names = export_ids_create();
	char name[EXPORT_ID_BYTES];

	cr_assert_eq(export_ids_name(names, "a#2", name), 0);
	cr_assert_eq(export_ids_name(names, "a", name), 0);
	cr_assert_eq(export_ids_name(names, "a", name), 1);
	cr_assert_str_eq(name, "a#3");
	cr_assert_eq(export_ids_name(names, "a#2", name), 1);
	cr_assert_str_eq(name, "a#2#2");
	export_ids_destroy(names);
}

Test(export_ids, in_a_message_a_long_name_lacks_its_middle_and_keeps_its_number)
{
	char name[EXPORT_ID_BYTES] = "", words[EXPORT_ID_WORDS];

	memset(name, 'x', EXPORT_ID_WORDS - 1);
	cr_assert_str_eq(export_id_words(words, name), name);
	memset(name, 'x', R3RING_TEXT_ID_MAX);
	memcpy(name + R3RING_TEXT_ID_MAX, "#2", 3);
	export_id_words(words, name);
	cr_assert_eq(strlen(words), 64 + 3 + 24);
	cr_assert_eq(strncmp(words + 60, "xxxx...xxxx", 11), 0, "%s", words);
	cr_assert_str_eq(words + strlen(words) - 4, "xx#2");
}

/* Of two, three and four bytes, wherever the cuts fall. */
Test(export_ids, in_a_message_no_character_is_cut)
{
	static const char *const characters[] = {"\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x98\x80"};
	char name[EXPORT_ID_BYTES], words[EXPORT_ID_WORDS];

	for (size_t shift = 0; shift < 4; shift++) {
		for (size_t i = 0; i < 3; i++) {
			const size_t bytes = strlen(characters[i]);
			const char *dots;

			memset(name, 'x', shift);
			for (size_t at = shift; at + bytes <= 200; at += bytes)
				memcpy(name + at, characters[i], bytes + 1);
			export_id_words(words, name);
			dots = strstr(words, "...");
			cr_assert_not_null(dots);
			cr_assert_eq((size_t)(dots - words - (ptrdiff_t)shift) % bytes, 0);
			cr_assert_eq(strlen(dots + 3) % bytes, 0);
		}
	}
}

Test(export_ids, a_refusal_has_room_for_its_remedy_whatever_the_id)
{
	char id[R3RING_TEXT_ID_MAX + 1] = "";

	memset(id, 'x', R3RING_TEXT_ID_MAX);
	trial_begin("safetensors");
	trial_gapped_request(1, id, 3);
	trial_refused(-ENODATA, "xxx...xxx");
	cr_assert_not_null(strstr(trial.err.text, "--positions leaves them out"), "%s",
			   trial.err.text);
}

Test(export_ids, many_ids_are_all_told_apart)
{
	struct export_ids *names = export_ids_create();
	char id[16], name[EXPORT_ID_BYTES];

	for (int round = 0; round < 2; round++)
		for (int i = 0; i < 5000; i++) {
			snprintf(id, sizeof(id), "r%d", i);
			cr_assert_eq(export_ids_name(names, id, name), round);
		}
	cr_assert_str_eq(name, "r4999#2");
	export_ids_destroy(names);
}
