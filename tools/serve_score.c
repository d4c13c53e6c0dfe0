/* SPDX-License-Identifier: Apache-2.0 */
/* POST /v1/score: which instance a request fits best. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <microhttpd.h>

#include "tools/serve_wish.h"

struct place {
	struct served *served;
	json_t *tightest; /* NULL where it cannot be asked */
	enum tail_state state;
	double age_ms; /* of its newest step; below 0: it was not asked */
	struct r3ring_reserve_answer answer;
	enum r3ring_predictor predictor;
	bool known;                  /* false: it cannot be asked now, */
	char why[R3RING_ERROR_TEXT]; /* since */
};

/* The one with the most room at its tightest place first; behind them those of which nobody knows
 * whether they live, and last those that cannot be asked. */
static int by_margin(const void *a, const void *b)
{
	const struct place *left = a, *right = b;

	if (left->known != right->known)
		return right->known - left->known;
	if ((left->state == TAIL_SILENT) != (right->state == TAIL_SILENT))
		return left->state == TAIL_SILENT ? 1 : -1;
	return (left->answer.margin < right->answer.margin) -
	       (left->answer.margin > right->answer.margin);
}

/* What it would have been refused with. */
static void say_why(struct place *place, const json_t *refusal, int r)
{
	const json_t *error = json_object_get(refusal, "error");
	const char *message = json_string_value(json_object_get(error, "message"));

	snprintf(place->why, sizeof(place->why), "%s", message ? message : strerror(-r));
}

static void ask(struct wish wish, struct place *place)
{
	struct http_answer unsaid = {0};
	struct r3ring_demand *demand = NULL;
	struct follower_status status;
	int r = -ENODATA;

	follower_get_status(served_follower(place->served), &status);
	place->state = status.tail.state;
	wish.served = place->served;
	wish.age_ms = -1;
	if (api_engine_runs(wish.served, &unsaid) && wish_find_book(&wish, &unsaid) &&
	    wish_may_promise(&wish, &unsaid))
		demand = wish_demand(&wish, &unsaid);
	if (demand)
		r = r3ring_book_ask(wish.book, demand, &place->answer);
	r3ring_demand_destroy(demand);
	place->known = r == 0 || r == -EBUSY;
	if (place->known)
		place->tightest = wish_tightest(&wish, &place->answer);
	else
		say_why(place, unsaid.json, r);
	json_decref(unsaid.json);
	wish_end(&wish);
	place->predictor = wish.predictor;
	place->age_ms = wish.age_ms;
}

static json_t *describe(const struct place *place)
{
	const char *name = served_name(place->served), *state = tail_state_name(place->state);
	json_t *age = place->age_ms < 0 ? json_null() : json_real(place->age_ms);

	if (!place->known)
		return json_pack("{s:s, s:n, s:s, s:o, s:s}", "instance", name, "fits", "state",
				 state, "age_ms", age, "error", place->why);
	return json_pack("{s:s, s:b, s:s, s:o, s:s, s:o}", "instance", name, "fits",
			 place->answer.margin >= 0, "state", state, "age_ms", age, "predictor",
			 r3ring_predictor_name(place->predictor), "tightest", place->tightest);
}

void api_score(void *context, const struct http_request *request, struct http_answer *answer)
{
	static const char *const known[] = {WISH_FIELDS, NULL};
	const struct api *api = context;
	struct wish wish = {.api = api, .tokens = 1};
	struct place *places;
	json_t *list;

	if (!api_only_fields(request->body, known, answer) ||
	    !wish_read(&wish, request->body, answer))
		return;
	places = calloc(api->count, sizeof(*places));
	if (!places) {
		http_refuse(answer, MHD_HTTP_SERVICE_UNAVAILABLE, "no memory");
		return;
	}
	for (uint32_t i = 0; i < api->count; i++) {
		places[i].served = api->served[i];
		ask(wish, &places[i]);
	}
	qsort(places, api->count, sizeof(*places), by_margin);
	list = json_array();
	for (uint32_t i = 0; i < api->count; i++)
		json_array_append_new(list, describe(&places[i]));
	answer->json = json_pack("{s:o}", "ranked", list);
	free(places);
}
