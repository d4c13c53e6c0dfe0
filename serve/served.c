/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <r3ring/atomic.h>
#include <r3ring/instance.h>

#include "serve/served.h"

#define WAIT_MS 100
#define RETRY_MS 500
#define EXPIRE_NS 50000000ull

struct served {
	struct served_options options;
	char *name;
	pthread_t thread;
	uint32_t stopping; /* set by whoever closes; the joining orders the rest */
	struct r3ring_load *load;
	struct r3ring_signatures *signatures;

	/* The follower's own. */
	struct r3ring_instance *reader;
	struct r3ring_requests **requests; /* [named] what its handles mean, by channel */
	uint32_t named;
	void *buffer;
	size_t capacity;
	uint64_t expired_ns; /* when it last looked for reservations that outlived their time */

	pthread_mutex_t lock; /* of what follows */
	struct served_status status;
	char (*channel)[128];  /* [status.channels] */
	uint32_t expert_ranks; /* size of the expert parallelism, as a schema said */
	struct r3ring_book *book;
};

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* ---- the book ------------------------------------------------------------- */

/* The map that the newest step ran with; NULL without one. */
static struct r3ring_eplb_map *newest_map(const struct served *served, uint64_t epoch)
{
	struct r3ring_eplb_map *map = NULL;

	if (epoch)
		r3ring_load_map(served->load, R3RING_LOAD_MERGED, epoch, &map);
	return map;
}

static int check_known(const struct served *served, uint32_t gpus, struct r3ring_error *err)
{
	if (!gpus)
		return r3ring_error_set(
			err, -EINVAL,
			"%s: how many GPUs it has is not known: its ranks tell of no "
			"expert parallelism and no EPLB map; say so with --gpus",
			served->name);
	if (!served->options.capacity)
		return r3ring_error_set(err, -EINVAL,
					"%s: what its GPUs have room for is not known; say so with "
					"--capacity",
					served->name);
	return 0;
}

static int make_book(struct served *served, const struct r3ring_load_info *info,
		     struct r3ring_error *err)
{
	struct r3ring_eplb_map *map = newest_map(served, info->epoch);
	struct r3ring_book_options options = {
		.size = sizeof(options),
		.shape = {.layers = info->layers, .experts = info->experts, .top_k = info->top_k},
		.gpus = map ? map->gpus : served->options.gpus,
		.capacity = served->options.capacity,
	};
	int r;

	if (!options.gpus)
		options.gpus = served->expert_ranks;
	r = check_known(served, options.gpus, err);
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
			r = r3ring_load_read(served->load, R3RING_LOAD_MERGED, R3RING_LOAD_STEPS,
					     R3RING_LOAD_ANY_EPOCH, snapshot);
			if (r == 0)
				r = make_book(served, r3ring_load_snapshot_info(snapshot), err);
			else
				r3ring_error_set(err, r, "%s: no step was seen yet", served->name);
			r3ring_load_snapshot_free(snapshot);
		}
	}
	*book = served->book;
	pthread_mutex_unlock(&served->lock);
	return r;
}

/* The book if there is one; it stays until the follower has ended. */
static struct r3ring_book *book_of(struct served *served)
{
	struct r3ring_book *book;

	pthread_mutex_lock(&served->lock);
	book = served->book;
	pthread_mutex_unlock(&served->lock);
	return book;
}

static bool stopping(const struct served *served)
{
	return r3ring_load_relaxed_u32(&served->stopping);
}

/* ---- following ------------------------------------------------------------ */

static void set_state(struct served *served, enum served_state state, const char *error)
{
	pthread_mutex_lock(&served->lock);
	served->status.state = state;
	snprintf(served->status.error, sizeof(served->status.error), "%s", error);
	pthread_mutex_unlock(&served->lock);
}

static void note_channel(struct served *served, uint32_t channel, const char *name)
{
	char(*names)[128];

	pthread_mutex_lock(&served->lock);
	names = realloc(served->channel, (channel + 1) * sizeof(*names));
	if (names) {
		served->channel = names;
		snprintf(names[channel], sizeof(*names), "%s", name);
		served->status.channels = channel + 1;
	}
	pthread_mutex_unlock(&served->lock);
}

/* The names of the handles of a channel; NULL without memory. */
static struct r3ring_requests *names_of(struct served *served, uint32_t channel)
{
	struct r3ring_requests **requests;

	if (channel < served->named)
		return served->requests[channel];
	requests = realloc(served->requests, (channel + 1) * sizeof(*requests));
	if (!requests)
		return NULL;
	served->requests = requests;
	for (; served->named <= channel; served->named++) {
		requests[served->named] = r3ring_requests_create();
		note_channel(served, served->named,
			     r3ring_instance_channel(served->reader, served->named));
	}
	return requests[channel];
}

/* What the book has to know of a record, once its names are known. */
static void tell_book(struct served *served, const struct r3ring_requests *names,
		      const struct r3ring_record *record)
{
	struct r3ring_book *book = book_of(served);
	const char *id;

	if (!book || record->type != R3RING_REQUEST ||
	    record->u.request.head.event != R3RING_REQUEST_END ||
	    record->u.request.head.reason == R3RING_END_PREEMPTED)
		return;
	id = r3ring_requests_id(names, record->u.request.head.handle);
	if (id)
		r3ring_book_ended(book, id);
}

/* A map may be told in several records, and comes into force with a step. */
static void take_map(struct served *served, uint64_t epoch)
{
	struct r3ring_book *book = book_of(served);
	struct r3ring_eplb_map *map;
	struct r3ring_book_stats stats;

	if (!book)
		return;
	r3ring_book_get_stats(book, &stats);
	if (epoch <= stats.epoch)
		return;
	map = newest_map(served, epoch);
	if (map)
		r3ring_book_map(book, map, NULL);
	r3ring_eplb_map_free(map);
}

static void note_ranks(struct served *served, const struct r3ring_schema_record *schema)
{
	pthread_mutex_lock(&served->lock);
	if (schema->rank.ep.size > served->expert_ranks)
		served->expert_ranks = schema->rank.ep.size;
	pthread_mutex_unlock(&served->lock);
}

static void take(struct served *served, const struct r3ring_view *view)
{
	uint32_t channel = r3ring_instance_current(served->reader);
	struct r3ring_requests *names = names_of(served, channel);
	struct r3ring_record record;
	const char *name;
	int index;

	if (!names || r3ring_record_decode(&record, view->type, view->data, view->len, NULL) < 0)
		return;
	/* What is out of memory is lost to those that are fed, which say so. */
	name = r3ring_instance_channel(served->reader, channel);
	index = r3ring_load_channel(served->load, name);
	if (index >= 0)
		r3ring_load_feed(served->load, (uint32_t)index, view, &record);
	index = r3ring_signatures_channel(served->signatures, name);
	if (index >= 0)
		r3ring_signatures_feed(served->signatures, (uint32_t)index, view, &record);
	tell_book(served, names, &record);
	r3ring_requests_feed(names, view, &record);
	if (record.type == R3RING_SCHEMA)
		note_ranks(served, &record.u.schema.head);
	else if (record.type == R3RING_STEP)
		take_map(served, record.u.step.head.eplb_epoch);
}

/* Room for the largest record of any channel. */
static bool make_room(struct served *served)
{
	size_t most = r3ring_instance_max_record(served->reader);
	void *buffer;

	if (most <= served->capacity)
		return true;
	most = (most + 63) / 64 * 64;
	buffer = aligned_alloc(64, most);
	if (!buffer)
		return false;
	free(served->buffer);
	served->buffer = buffer;
	served->capacity = most;
	return true;
}

/* Takes what there is. Returns 0, or what the reader said last. */
static int take_all(struct served *served)
{
	struct r3ring_view view;
	uint64_t got = 0, gaps = 0;
	int r = 1;

	while (!stopping(served) && (r == 1 || r == -EOVERFLOW || r == -EBADMSG)) {
		if (!make_room(served))
			return -ENOMEM;
		r = r3ring_instance_read(served->reader, &view, served->buffer, served->capacity);
		if (r == 1) {
			take(served, &view);
			got++;
		} else if (r == -EOVERFLOW || r == -EBADMSG) {
			struct r3ring_requests *names =
				names_of(served, r3ring_instance_current(served->reader));

			if (names)
				r3ring_requests_gap(names);
			gaps++;
		} else if (r == -EMSGSIZE) {
			r = 1;
		}
	}
	pthread_mutex_lock(&served->lock);
	served->status.records += got;
	served->status.gaps += gaps;
	pthread_mutex_unlock(&served->lock);
	return r;
}

static void expire(struct served *served)
{
	struct r3ring_book *book = book_of(served);
	uint64_t now = now_ns();

	if (!book || now - served->expired_ns < EXPIRE_NS)
		return;
	served->expired_ns = now;
	r3ring_book_expire(book, now);
}

static void nap(uint32_t ms)
{
	const struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};

	clock_nanosleep(CLOCK_MONOTONIC, 0, &time, NULL);
}

static int attach(struct served *served)
{
	const struct r3ring_instance_options options = {
		.size = sizeof(options),
		.runtime_dir = served->options.runtime_dir,
		.instance = served->name,
		.models = R3RING_TARGET_CHANNELS,
		.mode = R3RING_LATEST,
		.from = R3RING_FROM_KEYFRAME,
	};
	struct r3ring_error err = {0};
	int r = r3ring_instance_open(&served->reader, &options, &err);

	set_state(served, r ? SERVED_WAITING : SERVED_LIVE, r ? err.text : "");
	return r;
}

static void *follow(void *arg)
{
	struct served *served = arg;

	while (!stopping(served)) {
		int r;

		expire(served);
		if (!served->reader && attach(served)) {
			nap(RETRY_MS);
			continue;
		}
		take_all(served);
		r = r3ring_instance_wait(served->reader, WAIT_MS);
		if (r == -EOWNERDEAD)
			set_state(served, SERVED_SILENT, "");
		else if (r == 1)
			set_state(served, SERVED_LIVE, "");
	}
	return NULL;
}

/* ---- opening and closing -------------------------------------------------- */

static void free_served(struct served *served)
{
	r3ring_instance_close(served->reader);
	for (uint32_t i = 0; i < served->named; i++)
		r3ring_requests_destroy(served->requests[i]);
	free(served->requests);
	free(served->channel);
	free(served->buffer);
	r3ring_book_destroy(served->book);
	r3ring_signatures_destroy(served->signatures);
	r3ring_load_destroy(served->load);
	pthread_mutex_destroy(&served->lock);
	free(served->name);
	free(served);
}

int served_open(struct served **served, const struct served_options *options,
		struct r3ring_error *err)
{
	struct served *made = calloc(1, sizeof(*made));
	int r = -ENOMEM;

	if (!made)
		return r3ring_error_set(err, -ENOMEM, "no memory to follow %s", options->instance);
	pthread_mutex_init(&made->lock, NULL);
	made->options = *options;
	made->name = strdup(options->instance);
	if (made->name)
		r = r3ring_load_create(&made->load, &options->load, err);
	if (r == 0)
		r = r3ring_signatures_create(&made->signatures, NULL, err);
	if (r == 0)
		r = -pthread_create(&made->thread, NULL, follow, made);
	if (r) {
		free_served(made);
		return r3ring_error_set(err, r, "%s cannot be followed: %s", options->instance,
					strerror(-r));
	}
	*served = made;
	return 0;
}

void served_close(struct served *served)
{
	if (!served)
		return;
	r3ring_store_relaxed_u32(&served->stopping, 1);
	pthread_join(served->thread, NULL);
	free_served(served);
}

/* ---- looking -------------------------------------------------------------- */

const char *served_name(const struct served *served)
{
	return served->name;
}

const struct r3ring_load *served_load(const struct served *served)
{
	return served->load;
}

const struct r3ring_signatures *served_signatures(const struct served *served)
{
	return served->signatures;
}

void served_get_status(struct served *served, struct served_status *status)
{
	pthread_mutex_lock(&served->lock);
	*status = served->status;
	pthread_mutex_unlock(&served->lock);
}

void served_channel_name(struct served *served, uint32_t channel, char name[128])
{
	pthread_mutex_lock(&served->lock);
	snprintf(name, 128, "%s",
		 channel < served->status.channels ? served->channel[channel] : "");
	pthread_mutex_unlock(&served->lock);
}
