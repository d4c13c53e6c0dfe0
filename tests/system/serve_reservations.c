/* SPDX-License-Identifier: Apache-2.0 */
/* Reservations over a real socket: how they are made, kept and listed. */
#include <criterion/criterion.h>

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "tests/system/reservation_stage.h"

TestSuite(serve_reservations, .init = serve_stage_start, .fini = serve_stage_stop);

Test(serve_reservations, a_reservation_is_granted_once_committed_and_freed)
{
	struct http_reply reply;
	const json_t *only;
	char where[256];

	serve_stage_run(3);
	reply = reserve("req", 4, 60000);
	cr_assert_eq(reply.status, 201);
	cr_expect(json_is_true(at(reply.json, "granted", NULL)));
	cr_expect_lt(json_number_value(at(reply.json, "tightest", "margin")), 100);
	snprintf(where, sizeof(where), "/v1/reservations/%s",
		 json_string_value(at(reply.json, "reservation", NULL)));
	json_decref(reply.json);
	expect_reserved("req", 4, 60000, 200);
	cr_expect_eq(reservations(), 1);
	reply = ask("PATCH", where, "{\"commit\": true}");
	cr_expect_eq(reply.status, 200);
	json_decref(reply.json);
	reply = ask("PATCH", where, "{\"tokens\": 2}");
	cr_expect_eq(reply.status, 200);
	json_decref(reply.json);
	reply = ask("GET", "/v1/reservations", NULL);
	only = json_array_get(at(reply.json, "reservations", NULL), 0);
	cr_expect(json_is_true(at(only, "committed", NULL)));
	cr_expect_float_eq(json_number_value(at(only, "visits", NULL)),
			   2 * ENGINE_TOP_K * ENGINE_LAYERS, 1e-9);
	json_decref(reply.json);
	reply = ask("DELETE", where, NULL);
	cr_expect_eq(reply.status, 200);
	json_decref(reply.json);
	reply = ask("DELETE", where, NULL);
	cr_expect_eq(reply.status, 404);
	json_decref(reply.json);
	cr_expect_eq(reservations(), 0);
}

Test(serve_reservations, of_one_that_was_there_no_predictor_is_told_that_was_not_used)
{
	struct http_reply reply;

	serve_stage_run(3);
	reply = reserve("twice", 4, 60000);
	cr_expect(at(reply.json, "predictor", NULL));
	json_decref(reply.json);
	reply = reserve("twice", 4, 60000);
	cr_assert_eq(reply.status, 200);
	cr_expect(json_is_true(at(reply.json, "existed", NULL)));
	cr_expect_not(at(reply.json, "predictor", NULL));
	json_decref(reply.json);
}

Test(serve_reservations, what_does_not_fit_is_refused_with_the_place_and_what_is_wanting)
{
	struct http_reply reply;
	json_int_t layer;

	serve_stage_run(3);
	reply = reserve("large", 1000, 60000);
	cr_expect_eq(reply.status, 409);
	cr_expect(json_is_false(at(reply.json, "granted", NULL)));
	cr_expect_lt(json_number_value(at(reply.json, "tightest", "margin")), 0);
	/* As the model numbers them. */
	layer = json_integer_value(at(reply.json, "tightest", "layer"));
	cr_expect_geq(layer, ENGINE_FIRST_LAYER);
	cr_expect_lt(layer, ENGINE_FIRST_LAYER + (json_int_t)ENGINE_LAYERS);
	json_decref(reply.json);
	cr_expect_eq(reservations(), 0);
}

Test(serve_reservations, a_reservation_that_nobody_commits_expires)
{
	serve_stage_run(3);
	expect_reserved("kept", 1, 3600000, 201);
	expect_reserved("brief", 1, 1, 201);
	cr_expect(reservations_become(1));
}

Test(serve_reservations, one_that_is_committed_lasts_as_long_as_was_said_then)
{
	char where[256];

	serve_stage_run(1);
	reserve_at(where, "req");
	expect_status("PATCH", where, "{\"commit\": true, \"ttl_ms\": 1}", 200);
	cr_expect(reservations_become(0));
	expect_status("PATCH", where, "{\"commit\": true}", 404);
}

/* Expects of the only reservation whether it is committed, and how long it lasts: 0, for ever. */
static void expect_lasts(bool committed, double least_ms, double most_ms)
{
	struct http_reply reply = ask("GET", "/v1/reservations", NULL);
	const json_t *only = json_array_get(at(reply.json, "reservations", NULL), 0);
	const json_t *left = at(only, "expires_in_ms", NULL);

	cr_expect_eq(json_is_true(at(only, "committed", NULL)), committed);
	if (most_ms > 0)
		cr_expect(json_number_value(left) > least_ms && json_number_value(left) <= most_ms);
	else
		cr_expect(json_is_null(left));
	json_decref(reply.json);
}

Test(serve_reservations, no_time_ends_one_that_is_committed_unless_one_is_said)
{
	char where[256];

	serve_stage_run(1);
	reserve_at(where, "long");
	expect_status("PATCH", where, "{\"ttl_ms\": 1200000}", 200);
	expect_lasts(false, 600000, 1200000);
	expect_status("PATCH", where, "{\"commit\": true}", 200);
	expect_lasts(true, 0, 0);
	expect_status("PATCH", where, "{\"tokens\": 2}", 200);
	expect_lasts(true, 0, 0);
	expect_status("PATCH", where, "{\"ttl_ms\": 600000}", 200);
	expect_lasts(true, 300000, 600000);
	expect_status("PATCH", where, "{\"commit\": false}", 400);
}

Test(serve_reservations, another_number_of_tokens_under_a_key_is_refused_with_what_is_held)
{
	struct http_reply reply;
	char where[256];

	serve_stage_run(1);
	reserve_at(where, "dup");
	reply = reserve("dup", 100000, 3600000);
	cr_expect_eq(reply.status, 409);
	cr_expect_float_eq(json_number_value(at(reply.json, "held", "visits")),
			   ENGINE_TOP_K * ENGINE_LAYERS, 1e-9);
	cr_expect(strstr(json_string_value(at(reply.json, "error", "message")), where));
	json_decref(reply.json);
	expect_reserved("dup", 1, 3600000, 200);
	expect_status("PATCH", where, "{\"tokens\": 2}", 200);
	expect_reserved("dup", 1, 3600000, 409);
	expect_reserved("dup", 2, 3600000, 200);
}

/* The first reservation of either: the book of each numbers it the same. */
Test(serve_reservations, what_a_killed_server_gave_does_not_name_what_the_next_one_gives)
{
	char old[256], new[256];

	serve_stage_run(1);
	reserve_at(old, "before");
	cr_assert_eq(kill(stage.server.pid, SIGKILL), 0);
	command_wait(&stage.server);
	command_free(&stage.server);
	serve_stage_run(1);
	reserve_at(new, "after");
	cr_expect_str_neq(old, new);
	expect_status("PATCH", old, "{\"tokens\": 1}", 404);
	expect_status("PATCH", old, "{\"commit\": true}", 404);
	expect_status("DELETE", old, NULL, 404);
	cr_expect_eq(reservations(), 1);
	expect_status("DELETE", new, NULL, 200);
}

Test(serve_reservations, an_id_that_is_not_exactly_one_that_was_given_is_404)
{
	const char *const behind[] = {"0", " ", "x", "-1"};
	char where[256], wrong[264];

	serve_stage_run(1);
	reserve_at(where, "req");
	for (size_t i = 0; i < sizeof(behind) / sizeof(*behind); i++) {
		snprintf(wrong, sizeof(wrong), "%s%s", where,
			 *behind[i] == ' ' ? "%20" : behind[i]);
		expect_status("DELETE", wrong, NULL, 404);
	}
	snprintf(wrong, sizeof(wrong), "/v1/reservations/%s/1", serve_stage_instance());
	expect_status("DELETE", wrong, NULL, 404);
	cr_expect_eq(reservations(), 1);
}

Test(serve_reservations, who_asks_again_is_told_what_time_is_left)
{
	double left;

	serve_stage_run(1);
	expect_reserved("req", 1, 60000, 201);
	left = time_left("POST", "/v1/reservations", "{\"key\": \"req\", \"ttl_ms\": 3600000}",
			 200);
	cr_expect(left > 0 && left < 60000, "%f", left);
}

/* ---- page by page -------------------------------------------------------------- */

/* Expects the keys "k" @first to "k" @end - 1, and what the next page is after; 0: no next. */
static void expect_page(const char *what, int first, int end, json_int_t next)
{
	struct http_reply reply = ask("GET", what, NULL);
	const json_t *list = at(reply.json, "reservations", NULL);
	char key[16];

	cr_expect_eq(reply.status, 200);
	cr_expect_eq(json_array_size(list), (size_t)(end - first), "%s", what);
	for (int i = first; i < end; i++) {
		const char *told = json_string_value(
			at(json_array_get(list, (size_t)(i - first)), "key", NULL));

		snprintf(key, sizeof(key), "k%d", i);
		cr_expect(told && strcmp(told, key) == 0, "%s: %s, not %s", what, told, key);
	}
	if (next)
		cr_expect_eq(json_integer_value(at(reply.json, "next", NULL)), next, "%s", what);
	else
		cr_expect(json_is_null(at(reply.json, "next", NULL)), "%s", what);
	json_decref(reply.json);
}

Test(serve_reservations, pages_go_on_behind_one_that_was_freed_meanwhile)
{
	char what[16], fourth[256], where[256];

	serve_stage_run(1);
	for (int i = 1; i <= 10; i++) {
		snprintf(what, sizeof(what), "k%d", i);
		reserve_at(i == 4 ? fourth : where, what);
	}
	expect_page("/v1/reservations", 1, 11, 0);
	expect_page("/v1/reservations?limit=4", 1, 5, 4);
	expect_status("DELETE", fourth, NULL, 200);
	expect_page("/v1/reservations?limit=4&after=4", 5, 9, 8);
	expect_page("/v1/reservations?limit=2&after=8", 9, 11, 0);
	expect_page("/v1/reservations?after=10", 11, 11, 0);
	expect_page("/v1/reservations?after=18446744073709551615", 11, 11, 0);
}
