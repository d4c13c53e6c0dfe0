/* SPDX-License-Identifier: Apache-2.0 */
/* GET /v1/requests and GET /v1/requests/ID/routes: who there is, and where its tokens went. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <microhttpd.h>

#include "tools/json_values.h"
#include "tools/serve_api.h"
#include "tools/serve_routes.h"

#define LIMIT 100u
#define LIMIT_MOST 1000u

/* ---- who there is ---------------------------------------------------------------- */

static json_t *kept_of(struct served *served)
{
	struct routes_stats stats;

	routes_get_stats(served_routes(served), &stats);
	return json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "instance",
			 served_name(served), "running", json_u64(stats.live), "ended",
			 json_u64(stats.ended), "evicted", json_u64(stats.evicted), "forgotten",
			 json_u64(stats.forgotten), "bytes", json_u64(stats.bytes), "bytes_max",
			 json_u64(stats.max_bytes), "rows", json_u64(stats.rows),
			 "rows_unattributed", json_u64(stats.rows_unattributed), "gaps",
			 json_u64(stats.gaps));
}

static json_t *entry_of(const struct served *served, const struct routes_entry *entry)
{
	char path[ROUTES_PATH_MAX];

	routes_path(entry->id, path);
	return json_pack("{s:o, s:s, s:s, s:s}", "request", json_text(entry->id, strlen(entry->id)),
			 "instance", served_name(served), "state",
			 entry->state == ROUTES_RUNNING ? "running" : "ended", "routes", path);
}

static bool list_served(json_t *requests, json_t *kept, struct served *served,
			struct routes_entry *entries, uint32_t limit)
{
	int count;

	if (!served_routes(served))
		return true;
	count = routes_list(served_routes(served), entries, limit);
	for (int i = 0; i < count; i++)
		json_array_append_new(requests, entry_of(served, &entries[i]));
	json_array_append_new(kept, kept_of(served));
	return count >= 0;
}

void api_requests(void *context, const struct http_request *request, struct http_answer *answer)
{
	const struct api *api = context;
	uint64_t limit = LIMIT;
	uint32_t first, end;
	struct routes_entry *entries;
	json_t *requests, *kept;
	bool fine = true;

	if (!api_instances(api, request, &first, &end, answer) ||
	    !api_query_number(request, "limit", 1, LIMIT_MOST, &limit, answer))
		return;
	entries = calloc(limit, sizeof(*entries));
	requests = json_array();
	kept = json_array();
	for (; entries && fine && first < end; first++)
		fine = list_served(requests, kept, api->served[first], entries, (uint32_t)limit);
	answer->json = json_pack("{s:o, s:o}", "requests", requests, "kept", kept);
	if (!entries || !fine)
		http_refuse(answer, MHD_HTTP_SERVICE_UNAVAILABLE, "no memory");
	free(entries);
}

/* ---- one of them -------------------------------------------------------------------- */

static bool read_range(const struct http_request *request, struct routes_range *range,
		       struct http_answer *answer)
{
	const char *positions = http_query(request, "positions");
	const char *layers = http_query(request, "layers");
	uint32_t from = 0, to = INT32_MAX;

	*range = (struct routes_range){.to = UINT32_MAX};
	if (positions && !routes_parse_range(positions, &range->from, &range->to)) {
		http_refuse(answer, MHD_HTTP_BAD_REQUEST,
			    "positions=%.32s is no range: A:B, from A up to B, which is not in it",
			    positions);
		return false;
	}
	if (layers && (!routes_parse_range(layers, &from, &to) || to > INT32_MAX)) {
		http_refuse(answer, MHD_HTTP_BAD_REQUEST,
			    "layers=%.32s is no range: A:B, from the model's layer A up to B, "
			    "which is not in it",
			    layers);
		return false;
	}
	range->layer_from = (int32_t)from;
	range->layer_to = (int32_t)to;
	return true;
}

static void tell(struct served *served, const char *id, const struct routes_excerpt *excerpt,
		 struct http_answer *answer)
{
	switch (excerpt->state) {
	case ROUTES_EVICTED:
		http_refuse(answer, MHD_HTTP_GONE,
			    "its routes were evicted while it ran, since others needed the memory: "
			    "see --routes-memory");
		return;
	case ROUTES_FORGOTTEN:
		http_refuse(answer, MHD_HTTP_GONE,
			    "it ended, and its routes are not kept any more, since others needed "
			    "the memory: see --routes-memory");
		return;
	default:
		answer->json = routes_json(id, excerpt);
		if (answer->json)
			json_object_set_new(answer->json, "instance",
					    json_string(served_name(served)));
	}
}

/* What is there goes before what had to go, on whichever instance. */
static int find(const struct api *api, uint32_t first, uint32_t end, const char *id,
		const struct routes_range *range, struct http_answer *answer)
{
	struct served *gone = NULL;
	struct routes_excerpt excerpt, last = {0};
	int r = -ENOENT;

	for (; r == -ENOENT && first < end; first++) {
		struct routes *routes = served_routes(api->served[first]);

		r = routes ? routes_read(routes, id, range, &excerpt) : -ENOENT;
		if (r == 0 && excerpt.state >= ROUTES_EVICTED) {
			gone = api->served[first];
			last = excerpt;
			r = -ENOENT;
		} else if (r == 0) {
			tell(api->served[first], id, &excerpt, answer);
			routes_excerpt_free(&excerpt);
		}
	}
	if (r == -ENOENT && gone) {
		tell(gone, id, &last, answer);
		r = 0;
	}
	return r;
}

void api_routes_of(void *context, const struct http_request *request, struct http_answer *answer)
{
	const struct api *api = context;
	struct routes_range range;
	uint32_t first, end;
	int r;

	if (!api_instances(api, request, &first, &end, answer) ||
	    !read_range(request, &range, answer))
		return;
	if (!served_routes(api->served[0])) {
		http_refuse(answer, MHD_HTTP_NOT_FOUND, "no routes are kept: --routes-memory is 0");
		return;
	}
	r = find(api, first, end, request->argument, &range, answer);
	if (r == -ENOENT)
		http_refuse(answer, MHD_HTTP_NOT_FOUND,
			    "no request of that name is known: it did not run here since this "
			    "server began to look, or long ago");
	else if (!answer->json)
		http_refuse(answer, MHD_HTTP_SERVICE_UNAVAILABLE, "no memory");
}
