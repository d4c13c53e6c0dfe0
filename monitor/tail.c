/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <r3ring/atomic.h>
#include <r3ring/instance.h>

#include "monitor/tail.h"

#define WAIT_MS 100
#define RETRY_MS 500

struct tail {
	char *name;
	char *runtime_dir; /* NULL: as readers find it */
	uint32_t look_ms;
	struct tail_hooks hooks;
	pthread_t thread;
	uint32_t stopping; /* set by whoever closes; the joining orders the rest */

	/* The thread's own. */
	struct r3ring_instance *reader;
	uint32_t channels; /* that were told */
	void *buffer;
	size_t capacity;

	pthread_mutex_t lock; /* of what follows */
	struct tail_status status;
};

static bool stopping(const struct tail *tail)
{
	return r3ring_load_relaxed_u32(&tail->stopping);
}

static void set_state(struct tail *tail, enum tail_state state, const char *error)
{
	pthread_mutex_lock(&tail->lock);
	tail->status.state = state;
	snprintf(tail->status.error, sizeof(tail->status.error), "%s", error);
	pthread_mutex_unlock(&tail->lock);
}

/* ---- records ---------------------------------------------------------------- */

/* Whether the channel was told, and those before it. */
static bool announce(struct tail *tail, uint32_t channel)
{
	for (; tail->channels <= channel; tail->channels++) {
		const char *name = r3ring_instance_channel(tail->reader, tail->channels);

		if (tail->hooks.channel(tail->hooks.context, tail->channels, name))
			return false;
	}
	return true;
}

static void take_gap(struct tail *tail, uint32_t channel)
{
	if (announce(tail, channel))
		tail->hooks.gap(tail->hooks.context, channel);
}

/* A record that is none is as one that was never read. */
static bool take(struct tail *tail, uint32_t channel, const struct r3ring_view *view)
{
	struct r3ring_record record;

	if (r3ring_record_decode(&record, view->type, view->data, view->len, NULL) < 0) {
		take_gap(tail, channel);
		return false;
	}
	if (announce(tail, channel))
		tail->hooks.record(tail->hooks.context, channel,
				   r3ring_instance_channel(tail->reader, channel), view, &record);
	return true;
}

/* Room for the largest record of any channel. */
static bool make_room(struct tail *tail)
{
	size_t most = r3ring_instance_max_record(tail->reader);
	void *buffer;

	if (most <= tail->capacity)
		return true;
	most = (most + 63) / 64 * 64;
	buffer = aligned_alloc(64, most);
	if (!buffer)
		return false;
	free(tail->buffer);
	tail->buffer = buffer;
	tail->capacity = most;
	return true;
}

/* Takes what there is. Returns 0, or what the reader said last. */
static int take_all(struct tail *tail)
{
	struct r3ring_view view;
	uint64_t got = 0, gaps = 0;
	int r = 1;

	while (!stopping(tail) && (r == 1 || r == -EOVERFLOW || r == -EBADMSG)) {
		if (!make_room(tail))
			return -ENOMEM;
		r = r3ring_instance_read(tail->reader, &view, tail->buffer, tail->capacity);
		if (r == 1) {
			gaps += !take(tail, r3ring_instance_current(tail->reader), &view);
			got++;
		} else if (r == -EOVERFLOW || r == -EBADMSG) {
			take_gap(tail, r3ring_instance_current(tail->reader));
			gaps++;
		} else if (r == -EMSGSIZE) {
			r = 1;
		}
	}
	if (tail->hooks.read)
		tail->hooks.read(tail->hooks.context);
	pthread_mutex_lock(&tail->lock);
	tail->status.records += got;
	tail->status.gaps += gaps;
	pthread_mutex_unlock(&tail->lock);
	return r;
}

/* ---- the thread ------------------------------------------------------------- */

static void nap(uint32_t ms)
{
	const struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};

	clock_nanosleep(CLOCK_MONOTONIC, 0, &time, NULL);
}

static int attach(struct tail *tail)
{
	const struct r3ring_instance_options options = {
		.size = sizeof(options),
		.runtime_dir = tail->runtime_dir,
		.instance = tail->name,
		.models = R3RING_TARGET_CHANNELS,
		.mode = R3RING_LATEST,
		.from = R3RING_FROM_KEYFRAME,
	};
	struct r3ring_error err = {0};
	int r = r3ring_instance_open(&tail->reader, &options, &err);

	set_state(tail, r ? TAIL_WAITING : TAIL_LIVE, r ? err.text : "");
	return r;
}

/* As r3ring_instance_wait(). */
static int await_records(struct tail *tail)
{
	if (!tail->look_ms)
		return r3ring_instance_wait(tail->reader, WAIT_MS);
	nap(tail->look_ms);
	return r3ring_instance_wait(tail->reader, 0);
}

static void *follow(void *arg)
{
	struct tail *tail = arg;

	while (!stopping(tail)) {
		int r;

		if (tail->hooks.turn)
			tail->hooks.turn(tail->hooks.context);
		if (!tail->reader && attach(tail)) {
			nap(RETRY_MS);
			continue;
		}
		take_all(tail);
		r = await_records(tail);
		if (r == -EOWNERDEAD)
			set_state(tail, TAIL_SILENT, "");
		else if (r == 1)
			set_state(tail, TAIL_LIVE, "");
	}
	return NULL;
}

/* ---- opening, closing, looking ----------------------------------------------- */

static void free_tail(struct tail *tail)
{
	r3ring_instance_close(tail->reader);
	free(tail->buffer);
	pthread_mutex_destroy(&tail->lock);
	free(tail->runtime_dir);
	free(tail->name);
	free(tail);
}

static int copy_names(struct tail *tail, const struct tail_options *options)
{
	tail->name = strdup(options->instance);
	if (options->runtime_dir)
		tail->runtime_dir = strdup(options->runtime_dir);
	return tail->name && (tail->runtime_dir || !options->runtime_dir) ? 0 : -ENOMEM;
}

int tail_open(struct tail **tail, const struct tail_options *options, struct r3ring_error *err)
{
	struct tail *made = calloc(1, sizeof(*made));
	int r;

	if (!made)
		return r3ring_error_set(err, -ENOMEM, "no memory to follow %s", options->instance);
	pthread_mutex_init(&made->lock, NULL);
	made->look_ms = options->look_ms;
	made->hooks = options->hooks;
	r = copy_names(made, options);
	if (r == 0)
		r = -pthread_create(&made->thread, NULL, follow, made);
	if (r) {
		free_tail(made);
		return r3ring_error_set(err, r, "%s cannot be followed: %s", options->instance,
					strerror(-r));
	}
	*tail = made;
	return 0;
}

void tail_close(struct tail *tail)
{
	if (!tail)
		return;
	r3ring_store_relaxed_u32(&tail->stopping, 1);
	pthread_join(tail->thread, NULL);
	free_tail(tail);
}

const char *tail_name(const struct tail *tail)
{
	return tail->name;
}

void tail_get_status(struct tail *tail, struct tail_status *status)
{
	pthread_mutex_lock(&tail->lock);
	*status = tail->status;
	pthread_mutex_unlock(&tail->lock);
}
