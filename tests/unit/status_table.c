/* SPDX-License-Identifier: Apache-2.0 */
/* r3ring status: what people are shown of what the daemon tells. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/status_table.h"

static char *print(const char *json)
{
	json_t *status = json_loads(json, 0, NULL);
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	cr_assert_not_null(status);
	status_table_print(out, status);
	fclose(out);
	json_decref(status);
	return text;
}

static void expect_layers(const char *json, const char *expected)
{
	json_t *layers = json_loads(json, 0, NULL);
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	status_table_layers(out, layers);
	fclose(out);
	cr_expect_str_eq(text, expected);
	free(text);
	json_decref(layers);
}

Test(status_table, layers_are_told_as_ranges)
{
	expect_layers("[]", "none");
	expect_layers("[7]", "7");
	expect_layers("[0,1,2,5,7,8]", "0-2,5,7-8");
	expect_layers("[60,61,1]", "60-61,1");
}

Test(status_table, registered_readers_are_shown_with_their_place)
{
	char *text = print("{\"daemon\":{},\"channels\":[{\"channel\":\"a/0\",\"readers\":["
			   "{\"pid\":7,\"mode\":\"lossless\",\"lag_records\":3,\"lag_bytes\":192,"
			   "\"got\":10,\"lost\":0,\"skipped\":0,\"demoted\":false},"
			   "{\"pid\":8,\"label\":\"a\\u001b\",\"mode\":\"lossy\",\"got\":5,"
			   "\"lost\":4,\"skipped\":1,"
			   "\"demoted\":true,\"demoted_from\":11,\"demoted_to\":14}]}]}");

	cr_expect(strstr(text, "reader 7: lossless, 3 records (192 bytes) behind, got 10, lost 0, "
			       "skipped 0\n"),
		  "%s", text);
	cr_expect(strstr(text, "reader 8 a\\x1b: lossy, 0 records (0 bytes) behind, got 5, lost 4, "
			       "skipped 1; DEMOTED with 11 to 14 unread\n"),
		  "%s", text);
	free(text);
}

Test(status_table, failure_23_bound_layers_and_their_time_are_shown_for_every_channel)
{
	char *text = print("{\"daemon\":{},\"channels\":["
			   "{\"channel\":\"a/0\",\"bound_layers\":[3,4,5],\"unbound_layers\":[],"
			   "\"bound_since\":\"2026-01-02T03:04:05Z\"},"
			   "{\"channel\":\"b/1\",\"bound_layers\":[],\"unbound_layers\":[0,1],"
			   "\"bound_since\":null},"
			   "{\"channel\":\"c/0\",\"bound_layers\":[0],\"unbound_layers\":[1,2],"
			   "\"bound_since\":\"2026-01-02T03:04:06Z\"},"
			   "{\"channel\":\"d/0\",\"bound_layers\":[],\"called_layers\":[0,1,2,3],"
			   "\"unbound_layers\":[],\"bound_since\":null}]}");

	cr_expect(strstr(text, "bound: no layer; captured by call: layers 0-3\n"), "%s", text);
	cr_expect(strstr(text, " 4/4 "), "%s", text);
	cr_expect(strstr(text, "bound: layers 3-5 since 2026-01-02T03:04:05Z\n"), "%s", text);
	cr_expect(strstr(text, "bound: NO LAYER: nothing is captured; NOT BOUND: layers 0-1\n"),
		  "%s", text);
	cr_expect(strstr(text, "bound: layers 0 since 2026-01-02T03:04:06Z; NOT BOUND: layers "
			       "1-2\n"),
		  "%s", text);
	cr_expect(strstr(text, " 3/3 "), "%s", text);
	cr_expect(strstr(text, " 0/2 "), "%s", text);
	free(text);
}

Test(status_table, steps_a_second_are_told_to_a_tenth_and_none_is_no_number)
{
	char *text = print("{\"daemon\":{},\"channels\":["
			   "{\"channel\":\"a/0\",\"state\":\"live\",\"generation\":1,\"steps\":9,"
			   "\"steps_per_s\":49.96},"
			   "{\"channel\":\"b/0\",\"state\":\"live\",\"generation\":1,\"steps\":9,"
			   "\"steps_per_s\":0}]}");
	const char *head = strstr(text, "STEPS/S");

	cr_assert_not_null(head, "%s", text);
	cr_expect(strstr(text, " live      1     50.0          9 "), "%s", text);
	cr_expect(strstr(text, " live      1        -          9 "), "%s", text);
	free(text);
}

Test(status_table, a_producer_that_is_not_known_is_no_process_0)
{
	char *text = print("{\"daemon\":{},\"channels\":["
			   "{\"channel\":\"a/0\",\"producer_pid\":4711},"
			   "{\"channel\":\"b/0\",\"producer_pid\":null}]}");

	cr_expect(strstr(text, " 0/0     4711  none yet\n"), "%s", text);
	cr_expect(strstr(text, " 0/0        -  none yet\n"), "%s", text);
	free(text);
}

Test(status_table, a_channel_that_its_engine_did_not_close_has_died)
{
	char *text = print("{\"daemon\":{},\"channels\":["
			   "{\"channel\":\"a/0\",\"state\":\"ended\",\"producer_died\":true},"
			   "{\"channel\":\"b/0\",\"state\":\"ended\",\"producer_died\":false},"
			   "{\"channel\":\"c/0\",\"state\":\"live\",\"producer_died\":false}]}");

	cr_expect(strstr(text, " died      0 "), "%s", text);
	cr_expect(strstr(text, " ended     0 "), "%s", text);
	cr_expect(strstr(text, " live      0 "), "%s", text);
	free(text);
}

Test(status_table, failure_20_losses_are_shown_by_cause)
{
	char *text = print("{\"daemon\":{},\"channels\":[{\"channel\":\"a/0\",\"lost\":{"
			   "\"buffer_full\":{\"steps\":3,\"rows\":96},"
			   "\"queue_full\":{\"steps\":1,\"rows\":2}},\"steps_partial\":4},"
			   "{\"channel\":\"b/0\",\"lost\":{}}]}");

	cr_expect(strstr(text, "lost: buffer_full 3 steps (96 rows), queue_full 1 steps (2 rows);"
			       " 4 steps with missing layers\n"),
		  "%s", text);
	cr_expect(strstr(text, "lost: nothing\n"), "%s", text);
	free(text);
}

Test(status_table, of_a_channel_whose_daemon_died_only_what_is_known_is_told)
{
	char *text = print("{\"daemon\":{},\"channels\":[{\"channel\":\"a/0\",\"state\":\"ended\","
			   "\"crashed\":true,\"lost\":{}}]}");

	cr_expect(strstr(text, "lost: nothing that is known; its engine ran on without a daemon, "
			       "more may be lost\n"),
		  "%s", text);
	free(text);
}

Test(status_table, what_is_known_to_be_lost_comes_before_what_may_be)
{
	char *text = print("{\"daemon\":{},\"channels\":[{\"channel\":\"a/0\",\"crashed\":true,"
			   "\"lost\":{\"buffer_full\":{\"steps\":344,\"rows\":22016},"
			   "\"daemon_restart\":{\"steps\":176,\"rows\":11264}}}]}");

	cr_expect(strstr(text, "lost: buffer_full 344 steps (22016 rows), daemon_restart 176 steps "
			       "(11264 rows); its engine ran on without a daemon, more may be "
			       "lost\n"),
		  "%s", text);
	free(text);
}

Test(status_table, failure_5_ids_out_of_range_are_shown)
{
	char *text = print("{\"daemon\":{},\"channels\":[{\"channel\":\"a/0\","
			   "\"ids_missing\":0,\"ids_out_of_range\":9}]}");

	cr_expect(strstr(text, "OUT OF RANGE 9"), "%s", text);
	free(text);
}

Test(status_table, a_daemon_without_channels_says_so)
{
	char *text = print("{\"daemon\":{\"version\":\"9.9.9\",\"pid\":12},\"channels\":[]}");

	cr_expect(strstr(text, "r3ringd 9.9.9, process 12"), "%s", text);
	cr_expect(strstr(text, "no channels\n"), "%s", text);
	free(text);
}

Test(status_table, ranks_of_which_there_is_no_channel_are_named_and_steer_no_terminal)
{
	char *text = print("{\"daemon\":{},\"channels\":[{\"channel\":\"a\\u001b/1\",\"state\":"
			   "\"live\",\"rank\":{\"pp\":[1,2]}}]}");

	cr_expect(strstr(text, "\nno channel here: pipeline stage 0 of 2, counted from 0, of "
			       "a\\x1b\n"),
		  "%s", text);
	free(text);
}
