/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include <poll.h>
#include <stdio.h>

#include "tests/system/reservation_stage.h"

size_t reservations(void)
{
	struct http_reply reply = ask("GET", "/v1/reservations", NULL);
	size_t count = json_array_size(at(reply.json, "reservations", NULL));

	cr_assert_eq(reply.status, 200);
	json_decref(reply.json);
	return count;
}

bool reservations_become(size_t count)
{
	for (int tries = 0; tries < 6000; tries++) {
		if (reservations() == count)
			return true;
		poll(NULL, 0, 10);
	}
	return false;
}

double margin_left(void)
{
	struct http_reply reply =
		ask("POST", "/v1/score", "{\"tokens\": 1, \"predictor\": \"uniform\"}");
	const json_t *first = json_array_get(at(reply.json, "ranked", NULL), 0);
	double margin = json_number_value(at(first, "tightest", "margin"));

	cr_assert_eq(reply.status, 200);
	json_decref(reply.json);
	return margin;
}

struct http_reply reserve(const char *key, int tokens, int ttl_ms)
{
	char body[256];

	snprintf(body, sizeof(body), "{\"key\": \"%s\", \"tokens\": %d, \"ttl_ms\": %d}", key,
		 tokens, ttl_ms);
	return ask("POST", "/v1/reservations", body);
}

void expect_reserved(const char *key, int tokens, int ttl_ms, int status)
{
	struct http_reply reply = reserve(key, tokens, ttl_ms);

	cr_expect_eq(reply.status, status, "%s: %d", key, reply.status);
	json_decref(reply.json);
}

void reserve_at(char where[256], const char *key)
{
	struct http_reply reply = reserve(key, 1, 3600000);

	cr_assert_eq(reply.status, 201, "%s: %d", key, reply.status);
	snprintf(where, 256, "/v1/reservations/%s",
		 json_string_value(at(reply.json, "reservation", NULL)));
	json_decref(reply.json);
}

double time_left(const char *method, const char *what, const char *body, int status)
{
	struct http_reply reply = ask(method, what, body);
	const json_t *left = at(reply.json, "expires_in_ms", NULL);
	double ms = json_is_null(left) ? -1 : json_number_value(left);

	cr_expect_eq(reply.status, status, "%s %s: %d", method, what, reply.status);
	cr_expect_not_null(left, "%s %s does not tell", method, what);
	json_decref(reply.json);
	return ms;
}
