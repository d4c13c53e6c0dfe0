/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "channel/clock.h"
#include "serve/served.h"

#define EXPIRE_NS 50000000ull

struct ending {
	struct ending *next;
	char id[R3RING_TEXT_ID_MAX + 1];
};

struct served {
	struct follower *follower;
	struct routes *routes;   /* NULL: they are not kept */
	uint32_t gpus, capacity; /* as served_options */
	uint64_t start;          /* drawn anew each time it is opened */
	/* The follower's thread's own: */
	uint64_t expired_ns; /* when it last looked for reservations that outlived their time */
	uint64_t epoch;      /* of the newest map that it gave the book */
	uint64_t opened_ns;
	struct ending *endings; /* requests of which an end was told while others of the id ran */
	struct latency latency; /* read by others */
	pthread_mutex_t lock;   /* of what follows */
	struct r3ring_book *book;
	int32_t *layer; /* [layers of the book] the model's numbers; made with it, and stay */
};

enum served_state served_state(const struct served *served)
{
	struct follower_status status;

	follower_get_status(served->follower, &status);
	if (status.tail.state == TAIL_WAITING)
		return SERVED_STARTING;
	if (status.tail.state == TAIL_ENDED)
		return SERVED_ENDED;
	return status.other_model ? SERVED_OTHER_MODEL : SERVED_RUNS;
}

/* ---- the book ------------------------------------------------------------- */

/* The map that the newest step ran with; NULL without one. */
static struct r3ring_eplb_map *newest_map(const struct served *served, uint64_t epoch)
{
	struct r3ring_eplb_map *map = NULL;

	if (epoch)
		r3ring_load_map(follower_load(served->follower), R3RING_LOAD_MERGED, epoch, &map);
	return map;
}

static int check_known(const struct served *served, uint32_t gpus, struct r3ring_error *err)
{
	if (!gpus)
		return r3ring_error_set(
			err, -EINVAL,
			"%s: how many GPUs it has is not known: its ranks tell of no "
			"expert parallelism and no EPLB map; say so with --gpus",
			served_name(served));
	if (!served->capacity)
		return r3ring_error_set(err, -EINVAL,
					"%s: what its GPUs have room for is not known; say so with "
					"--capacity",
					served_name(served));
	return 0;
}

uint32_t served_gpus(const struct served *served)
{
	struct follower_status status;

	if (served->gpus)
		return served->gpus;
	follower_get_status(served->follower, &status);
	return status.expert_ranks;
}

/* Without memory there is no book. */
static int note_layers(struct served *served, const struct r3ring_load_info *info)
{
	int32_t *layer = calloc(info->layers, sizeof(*layer));

	if (!layer)
		return -ENOMEM;
	for (uint32_t i = 0; i < info->layers; i++)
		layer[i] = info->layer[i].layer_id;
	free(served->layer);
	served->layer = layer;
	return 0;
}

static int make_book(struct served *served, const struct r3ring_load_info *info,
		     struct r3ring_error *err)
{
	struct r3ring_eplb_map *map = newest_map(served, info->epoch);
	struct r3ring_book_options options = {
		.size = sizeof(options),
		.shape = {.layers = info->layers, .experts = info->experts, .top_k = info->top_k},
		.gpus = map ? map->gpus : served_gpus(served),
		.capacity = served->capacity,
	};
	int r = check_known(served, options.gpus, err);

	if (r == 0)
		r = note_layers(served, info);
	if (r == 0)
		r = r3ring_book_create(&served->book, &options, err);
	if (r == 0 && map)
		r3ring_book_map(served->book, map, NULL);
	r3ring_eplb_map_free(map);
	return r;
}

int served_book(struct served *served, struct r3ring_book **book, struct r3ring_error *err)
{
	struct r3ring_load_snapshot *snapshot;
	int r = 0;

	pthread_mutex_lock(&served->lock);
	if (!served->book) {
		r = r3ring_load_snapshot_create(&snapshot);
		if (r == 0) {
			r = r3ring_load_read(follower_load(served->follower), R3RING_LOAD_MERGED,
					     R3RING_LOAD_STEPS, R3RING_LOAD_ANY_EPOCH, snapshot);
			if (r == 0)
				r = make_book(served, r3ring_load_snapshot_info(snapshot), err);
			else
				r3ring_error_set(err, r, "%s: no step was seen yet",
						 served_name(served));
			r3ring_load_snapshot_free(snapshot);
		}
	}
	*book = served->book;
	pthread_mutex_unlock(&served->lock);
	return r;
}

int32_t served_layer(const struct served *served, uint32_t layer)
{
	return served->layer[layer];
}

struct r3ring_book *served_made_book(struct served *served)
{
	struct r3ring_book *book;

	pthread_mutex_lock(&served->lock);
	book = served->book;
	pthread_mutex_unlock(&served->lock);
	return book;
}

/* ---- what the follower tells ------------------------------------------------ */

static struct ending **ending_of(struct served *served, const char *id)
{
	struct ending **at = &served->endings;

	while (*at && strcmp((*at)->id, id) != 0)
		at = &(*at)->next;
	return at;
}

static void drop_ending(struct ending **at)
{
	struct ending *dropped = *at;

	if (!dropped)
		return;
	*at = dropped->next;
	free(dropped);
}

/* Without memory it is the end of the last one that frees, or time. */
static void keep_ending(struct served *served, const char *id)
{
	struct ending **at = ending_of(served, id);

	if (!*at && (*at = calloc(1, sizeof(**at))))
		snprintf((*at)->id, sizeof((*at)->id), "%s", id);
}

/* Ranks that use the same ids, and the stages of one request, each tell of an end: what was
 * reserved under an id is freed when none of them runs it. */
static void end_request(struct served *served, struct r3ring_book *book, const char *id)
{
	if (follower_runs(served->follower, id)) {
		keep_ending(served, id);
		return;
	}
	drop_ending(ending_of(served, id));
	r3ring_book_ended(book, id);
}

/* Those that ran may have gone without an end: their channel closed, or lost it. */
static void end_requests(struct served *served, struct r3ring_book *book)
{
	struct ending **at = &served->endings;

	while (*at) {
		if (follower_runs(served->follower, (*at)->id)) {
			at = &(*at)->next;
			continue;
		}
		r3ring_book_ended(book, (*at)->id);
		drop_ending(at);
	}
}

/* What the book has to know of a record that its names know. */
static void tell_book(struct served *served, const struct r3ring_requests *names,
		      const struct r3ring_record *record)
{
	struct r3ring_book *book = served_made_book(served);
	const char *id;

	if (!book || record->type != R3RING_REQUEST ||
	    record->u.request.head.event != R3RING_REQUEST_END ||
	    record->u.request.head.reason == R3RING_END_PREEMPTED)
		return;
	id = r3ring_requests_id(names, record->u.request.head.handle);
	if (id)
		end_request(served, book, id);
}

/* A map may be told in several records, and comes into force with a step. */
static void take_map(struct served *served, uint64_t epoch)
{
	struct r3ring_book *book;
	struct r3ring_eplb_map *map;

	if (epoch <= served->epoch)
		return;
	book = served_made_book(served);
	map = book ? newest_map(served, epoch) : NULL;
	if (!map)
		return;
	r3ring_book_map(book, map, NULL);
	r3ring_eplb_map_free(map);
	served->epoch = epoch;
}

/* What was published before somebody followed waited for nobody. */
static void note_latency(struct served *served, uint64_t published_ns)
{
	uint64_t now = clock_now_ns();

	if (published_ns >= served->opened_ns && published_ns <= now)
		latency_note(&served->latency, now - published_ns);
}

/* An engine that began anew counts its epochs from the beginning. */
static void begin_anew(void *context)
{
	struct served *served = context;
	struct r3ring_book *book = served_made_book(served);

	if (book)
		r3ring_book_forget_epoch(book);
	served->epoch = 0;
}

static void take_record(void *context, const struct r3ring_requests *names,
			const struct r3ring_view *view, const struct r3ring_record *record)
{
	struct served *served = context;

	(void)view;
	tell_book(served, names, record);
	if (record->type == R3RING_STEP_END)
		note_latency(served, record->u.step_end.head.publish_ns);
	if (record->type == R3RING_STEP)
		take_map(served, record->u.step.head.eplb_epoch);
}

/* Whoever reserved there has to go elsewhere, and what runs there next has promised nothing. */
static void free_all(struct r3ring_book *book)
{
	struct r3ring_reservation_info info;

	while (r3ring_book_list(book, 0, &info, 1))
		r3ring_book_free(book, info.reservation);
}

static void expire(void *context)
{
	struct served *served = context;
	struct r3ring_book *book = served_made_book(served);
	uint64_t now = clock_now_ns();

	if (!book || now - served->expired_ns < EXPIRE_NS)
		return;
	served->expired_ns = now;
	if (served_state(served) != SERVED_RUNS)
		free_all(book);
	end_requests(served, book);
	r3ring_book_expire(book, now);
}

/* ---- opening and closing -------------------------------------------------- */

static void free_served(struct served *served)
{
	routes_close(served->routes);
	follower_close(served->follower);
	while (served->endings)
		drop_ending(&served->endings);
	r3ring_book_destroy(served->book);
	free(served->layer);
	pthread_mutex_destroy(&served->lock);
	free(served);
}

/* So few bytes are given whole. */
static int draw_start(struct served *served, struct r3ring_error *err)
{
	if (getrandom(&served->start, sizeof(served->start), 0) == sizeof(served->start))
		return 0;
	return r3ring_error_set(err, -errno, "no random number to name reservations by: %s",
				strerror(errno));
}

int served_open(struct served **served, const struct served_options *options,
		struct r3ring_error *err)
{
	struct served *made = calloc(1, sizeof(*made));
	struct follower_options follow = {
		.instance = options->instance,
		.runtime_dir = options->runtime_dir,
		.watch = options->watch,
		.label = "serve:load",
		.load = options->load,
		.history = options->history,
		.hooks = {.context = made,
			  .record = take_record,
			  .generation = begin_anew,
			  .turn = expire},
	};
	const struct routes_options routes = {
		.instance = options->instance,
		.runtime_dir = options->runtime_dir,
		.max_bytes = options->routes_bytes,
	};
	int r;

	if (!made)
		return r3ring_error_set(err, -ENOMEM, "no memory to follow %s", options->instance);
	pthread_mutex_init(&made->lock, NULL);
	made->gpus = options->gpus;
	made->opened_ns = clock_now_ns();
	made->capacity = options->capacity;
	r = draw_start(made, err);
	if (r == 0)
		r = follower_open(&made->follower, &follow, err);
	if (r == 0 && routes.max_bytes)
		r = routes_open(&made->routes, &routes, err);
	if (r)
		free_served(made);
	else
		*served = made;
	return r;
}

void served_close(struct served *served)
{
	if (served)
		free_served(served);
}

struct follower *served_follower(const struct served *served)
{
	return served->follower;
}

const char *served_name(const struct served *served)
{
	return follower_name(served->follower);
}

uint64_t served_start(const struct served *served)
{
	return served->start;
}

struct routes *served_routes(const struct served *served)
{
	return served->routes;
}

const struct latency *served_latency(const struct served *served)
{
	return &served->latency;
}
