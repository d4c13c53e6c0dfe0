/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GET /v1/events: a stream of what a monitor shows. Each stream has a snapshot of its own and
 * looks at the load when it is its time: nothing is queued for a client that reads slowly.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <microhttpd.h>

#include "monitor/gpus.h"
#include "monitor/since.h"
#include "tools/json_values.h"
#include "tools/left_out_json.h"
#include "tools/serve_api.h"
#include "tools/serve_daemon.h"
#include "tools/serve_frame.h"

#define NS_PER_MS 1000000ull
#define INTERVAL_MS 1000u
#define INTERVAL_LEAST_MS 50u
#define INTERVAL_MOST_MS 5000u /* less than what a quiet connection is closed after */
#define SLOW_MS 1000u          /* between what changes slowly: the daemon, the past */

struct events {
	const struct api *api;
	struct served *served;
	uint32_t channel; /* index in the load, or R3RING_LOAD_MERGED */
	enum r3ring_load_over over;
	struct engine_model *model; /* that is told, held */
	bool sum;                   /* all since the stream began */
	struct r3ring_load_snapshot *snapshot;
	struct since *since; /* what was counted since the stream began, if that is asked for */
	uint64_t told_ns;    /* of the newest step that was told */
	uint64_t sequence;
	uint64_t history;            /* newest frame of the past that was told */
	struct daemon_picture *told; /* of the daemon, newest; NULL: none yet */
	uint32_t interval_ms, slow_in_ms;
	bool begun;
};

static struct follower *follower_of(const struct events *events)
{
	return served_follower(events->served);
}

static void free_events(void *context)
{
	struct events *events = context;

	r3ring_load_snapshot_free(events->snapshot);
	since_destroy(events->since);
	daemon_picture_put(events->told);
	engine_model_put(events->model);
	free(events);
}

/* ---- one event ------------------------------------------------------------ */

/* Writes it, and takes @data. JSON has no line of its own that could end an event early. */
static void write_event(FILE *out, const char *name, json_t *data)
{
	if (!data)
		return;
	fprintf(out, "event: %s\ndata: ", name);
	json_dumpf(data, out, JSON_COMPACT);
	fputs("\n\n", out);
	json_decref(data);
}

/* A stream of one channel tells of its end. */
static enum tail_state state_of(const struct events *events, const struct follower_status *status)
{
	if (events->channel != R3RING_LOAD_MERGED &&
	    follower_channel_ended(follower_of(events), events->channel))
		return TAIL_ENDED;
	return status->tail.state;
}

static void add_state(const struct events *events, json_t *data)
{
	struct follower_status status;

	follower_get_status(follower_of(events), &status);
	json_object_set_new(data, "state", json_string(tail_state_name(state_of(events, &status))));
	json_object_set_new(data, "error", json_string(status.tail.error));
	json_object_set_new(data, "model", json_text(status.model, strlen(status.model)));
	json_object_set_new(data, "ends_unfollowed", json_u64(status.ends_unfollowed));
	json_object_set_new(data, "left_out", left_out_json_of(follower_of(events)));
}

/* ---- GPUs ----------------------------------------------------------------- */

static json_t *gpus_of(const struct events *events, const struct r3ring_load_info *info)
{
	struct r3ring_eplb_map *map = NULL;
	struct gpus *gpus;
	json_t *told;

	r3ring_load_map_in_force(events->model->load, events->channel, info->epoch, &map);
	gpus = gpus_measure(map, info);
	told = frame_of_gpus(gpus);
	free(gpus);
	r3ring_eplb_map_free(map);
	return told;
}

/* ---- the load ------------------------------------------------------------- */

/* Another model's sum begins with its first step: there is none with the former one. Without memory
 * that is told still. */
static void take_model(struct events *events)
{
	struct engine_model *model = follower_model(follower_of(events));
	struct since *since = NULL;

	if (model == events->model ||
	    (events->sum && since_create(&since, model->load, events->channel, SINCE_EVER))) {
		engine_model_put(model);
		return;
	}
	since_destroy(events->since);
	engine_model_put(events->model);
	events->model = model;
	events->since = since;
	events->told_ns = 0;
}

static int read_load(struct events *events, struct r3ring_load_info *info)
{
	const struct r3ring_load_info *summed;
	int r;

	take_model(events);
	r = r3ring_load_read(events->model->load, events->channel, events->over,
			     R3RING_LOAD_ANY_EPOCH, events->snapshot);
	*info = *r3ring_load_snapshot_info(events->snapshot);
	if (r == 0 && events->since)
		r = since_read(events->since, false, &summed);
	if (r || !events->since)
		return r;
	/* How old it is, and under which map it ran, the window of steps says. */
	info->layers = summed->layers;
	info->layer = summed->layer;
	info->counts = summed->counts;
	info->rows = summed->rows;
	info->accounts = summed->accounts;
	return 0;
}

/* A frame; or, where nothing was counted since the one before, that time passes. */
static void write_load(struct events *events, FILE *out)
{
	struct r3ring_load_info info;
	int r = read_load(events, &info);
	bool news = r == 0 && (!events->told_ns || info.to_ns != events->told_ns);
	json_t *data = news ? frame_of_load(&info) : json_object();

	if (!data)
		return;
	add_state(events, data);
	json_object_set_new(data, "sequence", json_u64(++events->sequence));
	if (news) {
		json_object_set_new(data, "gpus", gpus_of(events, &info));
		events->told_ns = info.to_ns;
	} else if (r == 0) {
		json_object_set_new(data, "age_ms", json_real((double)info.age_ns / NS_PER_MS));
	}
	write_event(out, news ? "frame" : "tick", data);
}

static void write_history(struct events *events, FILE *out)
{
	json_t *list = frame_list(past_of(events->api->past, events->served), &events->history);

	if (!list)
		return;
	json_object_set_new(list, "restart", json_boolean(!events->begun));
	write_event(out, "history", list);
}

/* What changes slowly is told with every so many of the others. */
static bool slow_is_due(struct events *events)
{
	bool due = events->slow_in_ms < events->interval_ms;

	events->slow_in_ms = due ? SLOW_MS : events->slow_in_ms - events->interval_ms;
	return due;
}

static char *tell(void *context)
{
	struct events *events = context;
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	if (slow_is_due(events)) {
		write_event(out, "daemon",
			    daemon_tell(events->api->daemon, served_name(events->served),
					&events->told));
		write_history(events, out);
		events->begun = true;
	}
	write_load(events, out);
	if (fclose(out)) {
		free(text);
		return NULL;
	}
	return text;
}

/* ---- its beginning --------------------------------------------------------- */

/* "sum" is a window of the stream's own. */
static bool read_over(struct events *events, const struct http_request *request,
		      struct http_answer *answer)
{
	const char *text = http_query(request, "over");

	events->sum = text && strcmp(text, "sum") == 0;
	return events->sum || api_window(request, ", sum", &events->over, answer);
}

static bool read_channel(struct events *events, const struct http_request *request,
			 struct http_answer *answer)
{
	const char *name = http_query(request, "channel");
	int index = name ? follower_load_channel(follower_of(events), name) : 0;

	if (index < 0) {
		http_refuse(answer, MHD_HTTP_NOT_FOUND, "%s has no channel %.128s",
			    served_name(events->served), name);
		return false;
	}
	events->channel = name ? (uint32_t)index : R3RING_LOAD_MERGED;
	return true;
}

/* What it needs for as long as it lives; false: no memory. */
static bool prepare(struct events *events)
{
	if (r3ring_load_snapshot_create(&events->snapshot))
		return false;
	events->model = follower_model(follower_of(events));
	return !events->sum ||
	       since_create(&events->since, events->model->load, events->channel, SINCE_NOW) == 0;
}

void api_events(void *context, const struct http_request *request, struct http_answer *answer)
{
	const struct api *api = context;
	struct events *events, wish = {.api = api};
	uint64_t interval_ms = INTERVAL_MS;

	wish.served = api_instance(api, http_query(request, "instance"), answer);
	if (!wish.served || !read_over(&wish, request, answer) ||
	    !read_channel(&wish, request, answer) ||
	    !api_query_number(request, "interval_ms", INTERVAL_LEAST_MS, INTERVAL_MOST_MS,
			      &interval_ms, answer))
		return;
	events = malloc(sizeof(*events));
	wish.interval_ms = (uint32_t)interval_ms;
	if (events)
		*events = wish;
	if (events && prepare(events))
		answer->response = streams_open(
			api->streams, request->connection,
			&(struct stream_teller){.tell = tell,
						.free = free_events,
						.context = events,
						.interval_ns = interval_ms * NS_PER_MS});
	else if (events)
		free_events(events);
	if (!answer->response)
		http_refuse(answer, MHD_HTTP_SERVICE_UNAVAILABLE,
			    "no room for another stream of events: there are %u at most",
			    STREAMS_MAX);
}
