/* SPDX-License-Identifier: Apache-2.0 */
/* The routes, and what is told of instances and their load. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <microhttpd.h>

#include "tools/json_values.h"
#include "tools/left_out_json.h"
#include "tools/load_json.h"
#include "tools/serve_api.h"

const struct http_route api_routes[] = {
	{"GET", "/", api_page, "instance"},
	{"GET", "/metrics", api_metrics, NULL},
	{"GET", "/v1", api_about, NULL},
	{"GET", "/v1/openapi.json", api_openapi, NULL},
	{"GET", "/v1/channels", api_channels, NULL},
	{"GET", "/v1/load", api_load, "instance over epoch counts"},
	{"GET", "/v1/events", api_events, "instance channel over interval_ms"},
	{"GET", "/v1/history", api_history, "instance after"},
	{"GET", "/v1/history/*", api_history_frame, "instance"},
	{"GET", "/v1/signature", api_signature, "request instance"},
	{"GET", "/v1/requests", api_requests, "instance limit"},
	{"GET", "/v1/requests/*/routes", api_routes_of, "instance positions layers"},
	{"GET", "/v1/plan", api_plan, "instance gpus replicas nodes groups"},
	{"POST", "/v1/plan", api_plan, NULL},
	{"POST", "/v1/score", api_score, NULL},
	{"POST", "/v1/reservations", api_reserve, NULL},
	{"GET", "/v1/reservations", api_reservations, "instance after limit"},
	{"PATCH", "/v1/reservations/*", api_reservation_change, NULL},
	{"DELETE", "/v1/reservations/*", api_reservation_free, NULL},
};
const size_t api_route_count = sizeof(api_routes) / sizeof(*api_routes);

struct served *api_instance(const struct api *api, const char *name, struct http_answer *answer)
{
	for (uint32_t i = 0; name && i < api->count; i++) {
		if (strcmp(served_name(api->served[i]), name) == 0)
			return api->served[i];
	}
	if (!name && api->count == 1)
		return api->served[0];
	if (name)
		http_refuse(answer, MHD_HTTP_NOT_FOUND, "no instance %.64s is served here", name);
	else
		http_refuse(answer, MHD_HTTP_BAD_REQUEST,
			    "which of the %u instances? \"instance\" names one", api->count);
	return NULL;
}

bool api_instances(const struct api *api, const struct http_request *request, uint32_t *first,
		   uint32_t *end, struct http_answer *answer)
{
	const char *name = http_query(request, "instance");
	const struct served *served;

	*first = 0;
	*end = api->count;
	if (!name)
		return true;
	served = api_instance(api, name, answer);
	while (served && api->served[*first] != served)
		++*first;
	*end = *first + 1;
	return served != NULL;
}

/* What predictors that go by finished requests can go by. */
static json_t *history_of(struct r3ring_history *history)
{
	struct r3ring_history_stats stats;

	r3ring_history_get_stats(history, &stats);
	return json_pack("{s:i, s:i, s:o, s:o, s:o, s:o}", "requests", (int)stats.requests,
			 "labels", (int)stats.labels, "bytes", json_u64(stats.bytes), "evicted",
			 json_u64(stats.evicted), "labels_evicted", json_u64(stats.labels_evicted),
			 "refused", json_u64(stats.refused));
}

void api_about(void *context, const struct http_request *request, struct http_answer *answer)
{
	const struct api *api = context;
	json_t *instances = json_array();

	(void)request;
	for (uint32_t i = 0; i < api->count; i++)
		json_array_append_new(instances, json_string(served_name(api->served[i])));
	answer->json = json_pack("{s:s, s:s, s:o, s:o}", "service", "r3ring", "version",
				 R3RING_VERSION, "instances", instances, "finished",
				 history_of(api->history));
}

/* ---- instances ------------------------------------------------------------ */

/* What is kept of requests' routing, and what had to go. */
static json_t *signatures_of(const struct r3ring_signatures_stats *stats)
{
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "live",
			 json_u64(stats->live), "ended", json_u64(stats->ended), "evicted",
			 json_u64(stats->evicted), "forgotten", json_u64(stats->forgotten),
			 "rows_unkept", json_u64(stats->rows_unkept), "rows_missing",
			 json_u64(stats->rows_missing), "keys", json_u64(stats->keys),
			 "keys_forgotten", json_u64(stats->keys_forgotten), "bytes",
			 json_u64(stats->bytes), "key_bytes", json_u64(stats->key_bytes));
}

/* null: it is the first one. */
static json_t *change_of(struct served *served)
{
	struct served_change change;

	served_get_change(served, &change);
	if (!change.number)
		return json_null();
	return json_pack("{s:o, s:s, s:i}", "models", json_u64(change.number + 1), "former",
			 change.former, "reservations_freed", (int)change.freed);
}

static json_t *describe(struct served *served)
{
	struct follower_status status;
	json_t *channels = json_array(), *ended = json_array();
	char name[128];

	follower_get_status(served_follower(served), &status);
	for (uint32_t i = 0; i < status.channels; i++) {
		follower_channel_name(served_follower(served), i, name);
		json_array_append_new(channels, json_string(name));
		if (follower_channel_ended(served_follower(served), i))
			json_array_append_new(ended, json_string(name));
	}
	return json_pack("{s:s, s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "instance",
			 served_name(served), "model", status.model, "state",
			 tail_state_name(status.tail.state), "error", status.tail.error, "replaced",
			 change_of(served), "channels", channels, "ended", ended, "left_out",
			 left_out_json_of(served_follower(served)), "records",
			 json_u64(status.tail.records), "gaps", json_u64(status.tail.gaps),
			 "ends_unfollowed", json_u64(status.ends_unfollowed), "signatures",
			 signatures_of(&status.signatures));
}

void api_channels(void *context, const struct http_request *request, struct http_answer *answer)
{
	const struct api *api = context;
	json_t *instances = json_array();

	(void)request;
	for (uint32_t i = 0; i < api->count; i++)
		json_array_append_new(instances, describe(api->served[i]));
	answer->json = json_pack("{s:o}", "instances", instances);
}

/* The first that is left out is named. */
static void refuse_two_models(const struct served *served, struct http_answer *answer)
{
	struct follower_left_out *list;
	struct follower_status status;
	int count = follower_left_out(served_follower(served), &list);

	follower_get_status(served_follower(served), &status);
	http_refuse(answer, MHD_HTTP_SERVICE_UNAVAILABLE,
		    "%s: another model runs there, beside ranks of the one before that have not "
		    "ended, as far as is known: %.128s is counted, and %s of %.128s left out (GET "
		    "/v1/channels has all of them): it is served once they have; ask again, or end "
		    "them",
		    served_name(served), status.model, count > 0 ? list->channel : "a rank",
		    count > 0 ? list->model : "another");
	free(list);
}

bool api_engine_runs(const struct served *served, struct http_answer *answer)
{
	enum served_state state = served_state(served);

	if (state == SERVED_STARTING)
		http_refuse(answer, MHD_HTTP_SERVICE_UNAVAILABLE,
			    "%s: starting: the engine is not there yet, or what it and the daemon "
			    "told was not read so far (GET /v1/channels says which); ask again",
			    served_name(served));
	else if (state == SERVED_ENDED)
		http_refuse(answer, MHD_HTTP_SERVICE_UNAVAILABLE,
			    "%s: the engine has ended: it closed its channels, or died (r3ring "
			    "status and its log say which); start it again, or ask for another "
			    "instance",
			    served_name(served));
	else if (state == SERVED_OTHER_MODEL)
		refuse_two_models(served, answer);
	return state == SERVED_RUNS;
}

/* ---- load ----------------------------------------------------------------- */

bool api_window(const struct http_request *request, const char *more, enum r3ring_load_over *over,
		struct http_answer *answer)
{
	static const char *const names[] = {"steps", "time", "average"};
	const char *text = http_query(request, "over");

	*over = R3RING_LOAD_STEPS;
	if (!text)
		return true;
	for (unsigned int i = 0; i < 3; i++) {
		if (strcmp(text, names[i]) == 0) {
			*over = (enum r3ring_load_over)i;
			return true;
		}
	}
	http_refuse(answer, MHD_HTTP_BAD_REQUEST, "over=%.32s is none of steps, time, average%s",
		    text, more);
	return false;
}

static bool api_epoch(const struct http_request *request, enum r3ring_load_over over,
		      uint64_t *epoch, struct http_answer *answer)
{
	*epoch = R3RING_LOAD_ANY_EPOCH;
	if (!api_query_number(request, "epoch", 0, UINT64_MAX - 1, epoch, answer))
		return false;
	if (over != R3RING_LOAD_AVERAGE || *epoch == R3RING_LOAD_ANY_EPOCH)
		return true;
	http_refuse(answer, MHD_HTTP_BAD_REQUEST,
		    "over=average is of steps under whatever EPLB map: leave epoch out, or ask for "
		    "over=steps or over=time");
	return false;
}

/* Of no rank it is that of the newest step: it is over, or still to come. */
static void refuse_epoch(const struct served *served, uint64_t epoch, uint64_t newest,
			 struct http_answer *answer)
{
	const bool over = epoch < newest;

	http_refuse(
		answer, over ? MHD_HTTP_NOT_FOUND : MHD_HTTP_SERVICE_UNAVAILABLE,
		"%s: no rank's newest step ran with the EPLB map of epoch %" PRIu64
		", theirs is %" PRIu64 ": %s",
		served_name(served), epoch, newest,
		over ? "what ran with an earlier one is not told apart any more; leave epoch out"
		     : "ask again once a step has");
}

static void refuse_load(const struct served *served, const struct r3ring_load *load, int r,
			uint64_t epoch, struct http_answer *answer)
{
	uint64_t newest;

	if (r == -ENODATA && epoch != R3RING_LOAD_ANY_EPOCH &&
	    r3ring_load_epoch(load, R3RING_LOAD_MERGED, &newest) == 0)
		refuse_epoch(served, epoch, newest, answer);
	else if (r == -ENODATA)
		http_refuse(answer, MHD_HTTP_SERVICE_UNAVAILABLE, "%s: no step was counted yet",
			    served_name(served));
	else
		http_refuse(answer, MHD_HTTP_SERVICE_UNAVAILABLE, "%s: %s", served_name(served),
			    strerror(-r));
}

void api_load(void *context, const struct http_request *request, struct http_answer *answer)
{
	struct served *served = api_instance(context, http_query(request, "instance"), answer);
	uint64_t epoch, counts = 0;
	struct r3ring_load_snapshot *snapshot = NULL;
	struct engine_model *model;
	enum r3ring_load_over over;
	int r;

	if (!served || !api_window(request, "", &over, answer) ||
	    !api_epoch(request, over, &epoch, answer) ||
	    !api_query_number(request, "counts", 0, 1, &counts, answer) ||
	    !api_engine_runs(served, answer))
		return;
	model = follower_model(served_follower(served));
	r = r3ring_load_snapshot_create(&snapshot);
	if (r == 0)
		r = r3ring_load_read(model->load, R3RING_LOAD_MERGED, over, epoch, snapshot);
	if (r == 0)
		answer->json = load_json(r3ring_load_snapshot_info(snapshot), counts != 0);
	else
		refuse_load(served, model->load, r, epoch, answer);
	r3ring_load_snapshot_free(snapshot);
	engine_model_put(model);
}
