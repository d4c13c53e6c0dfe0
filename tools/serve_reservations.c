/* SPDX-License-Identifier: Apache-2.0 */
/* /v1/reservations: made, looked at, committed, changed, freed. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <microhttpd.h>

#include "channel/clock.h"
#include "tools/json_values.h"
#include "tools/serve_api.h"
#include "tools/serve_wish.h"

#define TTL_MS 10000u
#define TTL_MS_MAX 3600000u
#define LIST_MAX 1000u
#define NS_PER_MS 1000000ull

/* What a reservation is called behind its instance: the server's start, and the book's number. */
#define ID_FORMAT "%016" PRIx64 "-%" PRIu64
#define ID_SIZE sizeof("0123456789abcdef-18446744073709551615")

static json_t *name_of(const struct wish *wish, uint64_t reservation)
{
	return json_sprintf("%s/" ID_FORMAT, served_name(wish->served),
			    served_start(wish->served, wish->model), reservation);
}

/* ---- answers -------------------------------------------------------------- */

/* null: no time ends it. */
static json_t *time_left(const struct r3ring_reservation_info *info)
{
	uint64_t now = clock_now_ns();

	if (!info->expires_ns)
		return json_null();
	return json_real(info->expires_ns > now ? (double)(info->expires_ns - now) / NS_PER_MS
						: 0.0);
}

/* False: it has gone meanwhile. */
static bool find_info(const struct wish *wish, uint64_t id, struct r3ring_reservation_info *info)
{
	return r3ring_book_list(wish->book, id - 1, info, 1) == 1 && info->reservation == id;
}

/* What a client that was not the first to ask, or changed something, has to know. */
static void add_time_left(const struct wish *wish, uint64_t id, json_t *granted)
{
	struct r3ring_reservation_info info;

	if (find_info(wish, id, &info))
		json_object_set_new(granted, "expires_in_ms", time_left(&info));
}

/* Who asks for more under a key must not take it for granted because less of it is. */
static void refuse_other_demand(const struct wish *wish, uint64_t id, struct http_answer *answer)
{
	struct r3ring_reservation_info info;
	json_t *name = name_of(wish, id);

	if (!find_info(wish, id, &info)) {
		http_refuse(answer, MHD_HTTP_SERVICE_UNAVAILABLE,
			    "what the key held was freed just now: ask again");
		json_decref(name);
		return;
	}
	http_refuse(answer, MHD_HTTP_CONFLICT,
		    "the key holds %s already, of other \"tokens\": change it with PATCH "
		    "/v1/reservations/%s, or take another key",
		    json_string_value(name), json_string_value(name));
	json_object_set_new(answer->json, "held",
			    json_pack("{s:o, s:o}", "reservation", name, "visits",
				      wish_visits((int64_t)info.units)));
}

static void tell(const struct wish *wish, int r, const struct r3ring_reserve_answer *from,
		 struct http_answer *answer)
{
	switch (r) {
	case 0:
		answer->status = from->existed ? MHD_HTTP_OK : MHD_HTTP_CREATED;
		answer->json = json_pack("{s:b, s:s, s:o, s:b, s:o}", "granted", 1, "predictor",
					 r3ring_predictor_name(wish->predictor), "reservation",
					 name_of(wish, from->reservation), "existed", from->existed,
					 "tightest", wish_tightest(wish, from));
		return;
	case -EBUSY:
		answer->status = MHD_HTTP_CONFLICT;
		answer->json = json_pack("{s:b, s:s, s:o}", "granted", 0, "predictor",
					 r3ring_predictor_name(wish->predictor), "tightest",
					 wish_tightest(wish, from));
		return;
	case -EALREADY:
		refuse_other_demand(wish, from->reservation, answer);
		return;
	case -EEXIST:
		http_refuse(answer, MHD_HTTP_FORBIDDEN, "the key is another client's");
		return;
	case -ESRCH:
		http_refuse(answer, MHD_HTTP_BAD_REQUEST,
			    "the process that opened this connection is dead, and cannot be "
			    "watched: connect anew");
		return;
	case -ENOENT:
		http_refuse(answer, MHD_HTTP_NOT_FOUND, "there is no such reservation any more");
		return;
	case -ESTALE:
		http_refuse(answer, MHD_HTTP_SERVICE_UNAVAILABLE,
			    "%s came back with another model just now, and nothing is reserved: "
			    "ask again",
			    served_name(wish->served));
		return;
	case -EINVAL:
		http_refuse(answer, MHD_HTTP_SERVICE_UNAVAILABLE,
			    "%s has other layers or experts than it had",
			    served_name(wish->served));
		return;
	default:
		http_refuse(answer, MHD_HTTP_SERVICE_UNAVAILABLE, "%s", strerror(-r));
	}
}

/* ---- making --------------------------------------------------------------- */

static bool check_key(const char *key, struct http_answer *answer)
{
	if (key && key[0] && strlen(key) <= R3RING_TEXT_ID_MAX)
		return true;
	http_refuse(answer, MHD_HTTP_BAD_REQUEST,
		    "\"key\" is needed: 1 to %d bytes, the request's id", R3RING_TEXT_ID_MAX);
	return false;
}

/* Who is to be watched: 0 over TCP, where only time tells. -ESRCH: it is dead. */
static int find_owner(const struct api *api, const struct http_request *request, uint64_t *owner)
{
	pid_t peer = api->owners ? http_peer(request) : 0;

	*owner = 0;
	return peer > 0 && owners_find(api->owners, peer, owner) == -ESRCH ? -ESRCH : 0;
}

static int make_watched(const struct wish *wish, const struct http_request *request,
			struct r3ring_reserve_request *make, const struct r3ring_demand *demand,
			struct r3ring_reserve_answer *answer)
{
	uint64_t still;
	int r = find_owner(wish->api, request, &make->owner);

	if (r == 0)
		r = r3ring_book_make(wish->book, make, demand, answer);
	/* Its death may have been told before it had anything to be freed. */
	if (make->owner && (find_owner(wish->api, request, &still) || still != make->owner))
		r3ring_book_owner_gone(wish->book, make->owner);
	if (r == 0 && !follower_counts(served_follower(wish->served), wish->model))
		r = -ESTALE;
	return r;
}

static void reserve(struct wish *wish, const struct http_request *request,
		    struct r3ring_reserve_request *make, struct http_answer *answer)
{
	struct r3ring_reserve_answer from;
	struct r3ring_demand *demand = wish_demand(wish, answer);
	int r;

	if (!demand)
		return;
	r = make_watched(wish, request, make, demand, &from);
	r3ring_demand_destroy(demand);
	/* Without memory for it the request is of no class when it ends. */
	if (r == 0 && (wish->labels.class_name || wish->labels.prefix_key))
		r3ring_history_label(wish->api->history, make->key, &wish->labels);
	tell(wish, r, &from, answer);
	if (r || !from.existed)
		return;
	/* By what one that was there before was foretold, the book does not keep. */
	json_object_del(answer->json, "predictor");
	add_time_left(wish, from.reservation, answer->json);
}

void api_reserve(void *context, const struct http_request *request, struct http_answer *answer)
{
	static const char *const known[] = {"instance", "key", "ttl_ms", WISH_FIELDS, NULL};
	const struct api *api = context;
	struct r3ring_reserve_request make = {.now_ns = clock_now_ns()};
	const char *instance = NULL;
	struct wish wish = {.api = api, .tokens = 1};
	uint64_t ttl_ms = TTL_MS;

	if (!api_only_fields(request->body, known, answer) ||
	    !api_text(request->body, "instance", &instance, answer) ||
	    !api_text(request->body, "key", &make.key, answer) || !check_key(make.key, answer) ||
	    !api_number(request->body, "ttl_ms", 1, TTL_MS_MAX, &ttl_ms, answer) ||
	    !wish_read(&wish, request->body, answer))
		return;
	if (!wish.request)
		wish.request = make.key;
	make.ttl_ns = ttl_ms * NS_PER_MS;
	wish.served = api_instance(api, instance, answer);
	if (wish.served && api_engine_runs(wish.served, answer) && wish_find_book(&wish, answer) &&
	    wish_may_promise(&wish, answer))
		reserve(&wish, request, &make, answer);
	wish_end(&wish);
}

/* ---- one reservation: INSTANCE/ID ------------------------------------------ */

/* The book's number of it; 0, which none has: the id is not one that this server gave for the model
 * of now. @start: receives the server's start, as the id has it. */
static uint64_t number_of(const struct wish *wish, const char *id, uint64_t *start)
{
	const char *dash = strchr(id, '-');
	uint64_t number = dash ? strtoull(dash + 1, NULL, 10) : 0;
	char given[ID_SIZE];

	*start = strtoull(id, NULL, 16);
	snprintf(given, sizeof(given), ID_FORMAT, served_start(wish->served, wish->model), number);
	return strcmp(given, id) == 0 ? number : 0;
}

/* A model's ids begin one above those of the model before it. */
static void refuse_unknown(const struct wish *wish, uint64_t start, struct http_answer *answer)
{
	const struct engine_model *model = wish->model;

	if (served_start(wish->served, model) - start - 1 < model->number)
		http_refuse(answer, MHD_HTTP_NOT_FOUND,
			    "there is no such reservation any more: %s came back with another "
			    "model, %.64s, and what was reserved for the one before was freed; "
			    "reserve again",
			    served_name(wish->served), model->name);
	else
		http_refuse(answer, MHD_HTTP_NOT_FOUND,
			    "there is no such reservation: this server has not given that id, "
			    "and what one before it gave went with it; reserve again");
}

/* Whether it is one or not, wish_end() is due. */
static bool find_one(const struct api *api, const char *name, struct wish *wish, uint64_t *id,
		     struct http_answer *answer)
{
	char instance[HTTP_ARGUMENT_MAX + 1];
	const char *slash = strrchr(name, '/');
	uint64_t start;

	if (!slash) {
		http_refuse(answer, MHD_HTTP_NOT_FOUND, "a reservation is named INSTANCE/ID");
		return false;
	}
	snprintf(instance, sizeof(instance), "%.*s", (int)(slash - name), name);
	wish->served = api_instance(api, instance, answer);
	if (!wish->served)
		return false;
	wish_hold(wish);
	*id = number_of(wish, slash + 1, &start);
	if (!*id) {
		refuse_unknown(wish, start, answer);
		return false;
	}
	return wish_find_book(wish, answer);
}

static bool change_demand(struct wish *wish, uint64_t id, struct http_answer *answer)
{
	struct r3ring_demand *demand = wish_may_promise(wish, answer) ? wish_demand(wish, answer)
								      : NULL;
	struct r3ring_reserve_answer from;
	int r;

	if (!demand)
		return false;
	r = r3ring_book_update(wish->book, id, demand, &from);
	r3ring_demand_destroy(demand);
	tell(wish, r, &from, answer);
	return r == 0;
}

/* Whether a request is known to have ended: no end of it will free anything. */
static bool has_ended(const struct engine_model *model, const char *id)
{
	const uint32_t ends = R3RING_SIGNATURE_ENDED | R3RING_SIGNATURE_UNFINISHED;
	struct r3ring_signature *signature;
	bool ended = false;

	if (r3ring_signature_create(&signature))
		return false;
	if (r3ring_signatures_get(model->signatures, id, signature) == 0)
		ended = (r3ring_signature_get_info(signature)->flags & ends) ==
			R3RING_SIGNATURE_ENDED;
	r3ring_signature_free(signature);
	return ended;
}

/* How long one that is committed lasts where that was not said: as long as before when its request
 * has ended already. 0: no time ends it. */
static uint64_t time_kept(const struct wish *wish, uint64_t id, uint64_t now)
{
	struct r3ring_reservation_info info;

	if (!find_info(wish, id, &info) || !info.expires_ns || !has_ended(wish->model, info.key))
		return 0;
	return info.expires_ns > now ? info.expires_ns - now : 1;
}

/* @ttl_ms: 0 where it was not said. */
static int renew(const struct wish *wish, uint64_t id, bool commit, uint64_t ttl_ms)
{
	uint64_t now = clock_now_ns(), ttl_ns = ttl_ms * NS_PER_MS;

	if (commit)
		return r3ring_book_commit(wish->book, id,
					  ttl_ns ? ttl_ns : time_kept(wish, id, now), now);
	return ttl_ms ? r3ring_book_renew(wish->book, id, ttl_ns, now) : 0;
}

static void tell_state(const struct wish *wish, uint64_t id, struct http_answer *answer)
{
	struct r3ring_reservation_info info;

	if (find_info(wish, id, &info))
		answer->json = json_pack("{s:o, s:b, s:o}", "reservation", name_of(wish, id),
					 "committed", info.committed, "expires_in_ms",
					 time_left(&info));
	else
		tell(wish, -ENOENT, NULL, answer);
}

static void change(struct wish *wish, uint64_t id, bool commit, uint64_t ttl_ms,
		   struct http_answer *answer)
{
	if (!commit && !ttl_ms && !wish->tokens) {
		http_refuse(answer, MHD_HTTP_BAD_REQUEST,
			    "nothing to change: \"commit\", \"ttl_ms\" or \"tokens\"");
		return;
	}
	if (wish->tokens && !change_demand(wish, id, answer))
		return;
	if (renew(wish, id, commit, ttl_ms) == -ENOENT) {
		json_decref(answer->json);
		tell(wish, -ENOENT, NULL, answer);
	} else if (answer->json) {
		add_time_left(wish, id, answer->json);
	} else {
		tell_state(wish, id, answer);
	}
}

void api_reservation_change(void *context, const struct http_request *request,
			    struct http_answer *answer)
{
	static const char *const known[] = {"commit", "ttl_ms", WISH_FIELDS, NULL};
	struct wish wish = {.api = context};
	uint64_t id = 0, ttl_ms = 0;
	bool commit = false;

	if (api_only_fields(request->body, known, answer) &&
	    api_flag(request->body, "commit", &commit, answer) &&
	    api_number(request->body, "ttl_ms", 1, TTL_MS_MAX, &ttl_ms, answer) &&
	    wish_read(&wish, request->body, answer) &&
	    find_one(context, request->argument, &wish, &id, answer))
		change(&wish, id, commit, ttl_ms, answer);
	wish_end(&wish);
}

void api_reservation_free(void *context, const struct http_request *request,
			  struct http_answer *answer)
{
	struct wish wish = {0};
	uint64_t id = 0;

	if (find_one(context, request->argument, &wish, &id, answer)) {
		if (r3ring_book_free(wish.book, id) == -ENOENT)
			tell(&wish, -ENOENT, NULL, answer);
		else
			answer->json = json_pack("{s:o}", "freed", name_of(&wish, id));
	}
	wish_end(&wish);
}

/* ---- all of them ----------------------------------------------------------- */

static json_t *describe(const struct wish *wish, const struct r3ring_reservation_info *info)
{
	return json_pack("{s:o, s:s, s:b, s:b, s:o, s:o}", "reservation",
			 name_of(wish, info->reservation), "key", info->key, "committed",
			 info->committed, "watched", info->owner != 0, "visits",
			 wish_visits((int64_t)info->units), "expires_in_ms", time_left(info));
}

/* One more is asked for than is told: whether there is a next page. */
static void tell_page(const struct wish *wish, uint64_t after, uint32_t limit,
		      struct http_answer *answer)
{
	struct r3ring_reservation_info *info = calloc(limit + 1, sizeof(*info));
	json_t *list = json_array(), *next;
	uint32_t found, count;

	if (!info) {
		json_decref(list);
		http_refuse(answer, MHD_HTTP_SERVICE_UNAVAILABLE, "no memory");
		return;
	}
	found = r3ring_book_list(wish->book, after, info, limit + 1);
	count = found < limit ? found : limit;
	for (uint32_t i = 0; i < count; i++)
		json_array_append_new(list, describe(wish, &info[i]));
	next = found > limit ? json_u64(info[limit - 1].reservation) : json_null();
	answer->json = json_pack("{s:o, s:o}", "reservations", list, "next", next);
	free(info);
}

void api_reservations(void *context, const struct http_request *request, struct http_answer *answer)
{
	struct wish wish = {.served =
				    api_instance(context, http_query(request, "instance"), answer)};
	uint64_t after = 0, limit = 100;

	if (wish.served && api_query_number(request, "after", 0, UINT64_MAX, &after, answer) &&
	    api_query_number(request, "limit", 1, LIST_MAX, &limit, answer) &&
	    wish_find_book(&wish, answer))
		tell_page(&wish, after, (uint32_t)limit, answer);
	wish_end(&wish);
}
