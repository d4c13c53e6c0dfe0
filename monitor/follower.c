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

#include "monitor/follower.h"

#define WAIT_MS 100
#define RETRY_MS 500

struct follower {
	char *name;
	char *runtime_dir; /* NULL: as readers find it */
	uint32_t look_ms;
	struct follower_hooks hooks;
	pthread_t thread;
	uint32_t stopping; /* set by whoever closes; the joining orders the rest */
	struct r3ring_load *load;
	struct r3ring_signatures *signatures;

	/* The thread's own. */
	struct r3ring_instance *reader;
	struct heard *heard; /* [named] of each channel */
	uint32_t named;
	void *buffer;
	size_t capacity;

	pthread_mutex_t lock; /* of what follows */
	struct follower_status status;
	struct followed *channel; /* [status.channels] */
};

struct heard {
	struct r3ring_requests *names; /* what its handles mean */
	uint64_t generation;           /* of its newest record; 0: none yet */
};

struct followed {
	char name[128];
	int load; /* its index there, or why it has none */
};

static bool stopping(const struct follower *follower)
{
	return r3ring_load_relaxed_u32(&follower->stopping);
}

/* ---- following ------------------------------------------------------------ */

static void set_state(struct follower *follower, enum follower_state state, const char *error)
{
	pthread_mutex_lock(&follower->lock);
	follower->status.state = state;
	snprintf(follower->status.error, sizeof(follower->status.error), "%s", error);
	pthread_mutex_unlock(&follower->lock);
}

static void note_channel(struct follower *follower, uint32_t channel, const char *name)
{
	int load = r3ring_load_channel(follower->load, name);
	struct followed *channels;

	pthread_mutex_lock(&follower->lock);
	channels = realloc(follower->channel, (channel + 1) * sizeof(*channels));
	if (channels) {
		follower->channel = channels;
		channels[channel].load = load;
		snprintf(channels[channel].name, sizeof(channels->name), "%s", name);
		follower->status.channels = channel + 1;
	}
	pthread_mutex_unlock(&follower->lock);
}

/* What is known of a channel; NULL without memory. */
static struct heard *heard_of(struct follower *follower, uint32_t channel)
{
	struct heard *heard;

	if (channel < follower->named)
		return &follower->heard[channel];
	heard = realloc(follower->heard, (channel + 1) * sizeof(*heard));
	if (!heard)
		return NULL;
	follower->heard = heard;
	for (; follower->named <= channel; follower->named++) {
		const char *name = r3ring_instance_channel(follower->reader, follower->named);

		heard[follower->named] = (struct heard){.names = r3ring_requests_create()};
		/* The load numbers channels as they are announced: as the reader does. */
		r3ring_load_channel(follower->load, name);
		note_channel(follower, follower->named, name);
	}
	return &heard[channel];
}

/* By whatever record: who was lapped may not have the generation's first one. */
static void note_generation(struct follower *follower, struct heard *heard, uint64_t generation)
{
	if (heard->generation == generation)
		return;
	heard->generation = generation;
	if (follower->hooks.generation)
		follower->hooks.generation(follower->hooks.context);
}

static void note_ranks(struct follower *follower, const struct r3ring_schema_record *schema)
{
	pthread_mutex_lock(&follower->lock);
	if (schema->rank.ep.size > follower->status.expert_ranks)
		follower->status.expert_ranks = schema->rank.ep.size;
	pthread_mutex_unlock(&follower->lock);
}

static void note_other_model(struct follower *follower)
{
	pthread_mutex_lock(&follower->lock);
	follower->status.other_model = true;
	pthread_mutex_unlock(&follower->lock);
}

static void take(struct follower *follower, const struct r3ring_view *view)
{
	uint32_t channel = r3ring_instance_current(follower->reader);
	struct heard *heard = heard_of(follower, channel);
	struct r3ring_record record;
	const char *name;
	int index;

	if (!heard || !heard->names)
		return;
	note_generation(follower, heard, view->generation);
	if (r3ring_record_decode(&record, view->type, view->data, view->len, NULL) < 0)
		return;
	/* What is out of memory is lost to those that are fed, which say so. */
	name = r3ring_instance_channel(follower->reader, channel);
	index = r3ring_load_channel(follower->load, name);
	if (index >= 0 &&
	    r3ring_load_feed(follower->load, (uint32_t)index, view, &record) == -EPROTO)
		note_other_model(follower);
	if (follower->signatures)
		index = r3ring_signatures_channel(follower->signatures, name);
	if (follower->signatures && index >= 0)
		r3ring_signatures_feed(follower->signatures, (uint32_t)index, view, &record);
	if (record.type == R3RING_SCHEMA)
		note_ranks(follower, &record.u.schema.head);
	if (follower->hooks.record)
		follower->hooks.record(follower->hooks.context, heard->names, view, &record);
	r3ring_requests_feed(heard->names, view, &record);
}

/* Room for the largest record of any channel. */
static bool make_room(struct follower *follower)
{
	size_t most = r3ring_instance_max_record(follower->reader);
	void *buffer;

	if (most <= follower->capacity)
		return true;
	most = (most + 63) / 64 * 64;
	buffer = aligned_alloc(64, most);
	if (!buffer)
		return false;
	free(follower->buffer);
	follower->buffer = buffer;
	follower->capacity = most;
	return true;
}

static void note_read(struct follower *follower, uint64_t records, uint64_t gaps)
{
	struct r3ring_signatures_stats signatures = {0};

	if (follower->signatures)
		r3ring_signatures_get_stats(follower->signatures, &signatures);
	pthread_mutex_lock(&follower->lock);
	follower->status.records += records;
	follower->status.gaps += gaps;
	follower->status.signatures = signatures;
	pthread_mutex_unlock(&follower->lock);
}

/* Takes what there is. Returns 0, or what the reader said last. */
static int take_all(struct follower *follower)
{
	struct r3ring_view view;
	uint64_t got = 0, gaps = 0;
	int r = 1;

	while (!stopping(follower) && (r == 1 || r == -EOVERFLOW || r == -EBADMSG)) {
		if (!make_room(follower))
			return -ENOMEM;
		r = r3ring_instance_read(follower->reader, &view, follower->buffer,
					 follower->capacity);
		if (r == 1) {
			take(follower, &view);
			got++;
		} else if (r == -EOVERFLOW || r == -EBADMSG) {
			struct heard *heard =
				heard_of(follower, r3ring_instance_current(follower->reader));

			if (heard && heard->names)
				r3ring_requests_gap(heard->names);
			gaps++;
		} else if (r == -EMSGSIZE) {
			r = 1;
		}
	}
	note_read(follower, got, gaps);
	return r;
}

static void nap(uint32_t ms)
{
	const struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};

	clock_nanosleep(CLOCK_MONOTONIC, 0, &time, NULL);
}

static int attach(struct follower *follower)
{
	const struct r3ring_instance_options options = {
		.size = sizeof(options),
		.runtime_dir = follower->runtime_dir,
		.instance = follower->name,
		.models = R3RING_TARGET_CHANNELS,
		.mode = R3RING_LATEST,
		.from = R3RING_FROM_KEYFRAME,
	};
	struct r3ring_error err = {0};
	int r = r3ring_instance_open(&follower->reader, &options, &err);

	set_state(follower, r ? FOLLOWER_WAITING : FOLLOWER_LIVE, r ? err.text : "");
	return r;
}

/* As r3ring_instance_wait(). */
static int await_records(struct follower *follower)
{
	if (!follower->look_ms)
		return r3ring_instance_wait(follower->reader, WAIT_MS);
	nap(follower->look_ms);
	return r3ring_instance_wait(follower->reader, 0);
}

static void *follow(void *arg)
{
	struct follower *follower = arg;

	while (!stopping(follower)) {
		int r;

		if (follower->hooks.turn)
			follower->hooks.turn(follower->hooks.context);
		if (!follower->reader && attach(follower)) {
			nap(RETRY_MS);
			continue;
		}
		take_all(follower);
		r = await_records(follower);
		if (r == -EOWNERDEAD)
			set_state(follower, FOLLOWER_SILENT, "");
		else if (r == 1)
			set_state(follower, FOLLOWER_LIVE, "");
	}
	return NULL;
}

/* ---- opening and closing -------------------------------------------------- */

static void free_follower(struct follower *follower)
{
	r3ring_instance_close(follower->reader);
	for (uint32_t i = 0; i < follower->named; i++)
		r3ring_requests_destroy(follower->heard[i].names);
	free(follower->heard);
	free(follower->channel);
	free(follower->buffer);
	r3ring_signatures_destroy(follower->signatures);
	r3ring_load_destroy(follower->load);
	pthread_mutex_destroy(&follower->lock);
	free(follower->runtime_dir);
	free(follower->name);
	free(follower);
}

static int make_parts(struct follower *follower, const struct follower_options *options,
		      struct r3ring_error *err)
{
	int r;

	follower->name = strdup(options->instance);
	if (!follower->name)
		return -ENOMEM;
	if (options->runtime_dir) {
		follower->runtime_dir = strdup(options->runtime_dir);
		if (!follower->runtime_dir)
			return -ENOMEM;
	}
	r = r3ring_load_create(&follower->load, &options->load, err);
	if (r == 0 && !options->load_only)
		r = r3ring_signatures_create(&follower->signatures, NULL, err);
	if (r == 0 && follower->signatures && options->history)
		r = r3ring_signatures_keep(follower->signatures, options->history);
	return r;
}

int follower_open(struct follower **follower, const struct follower_options *options,
		  struct r3ring_error *err)
{
	struct follower *made = calloc(1, sizeof(*made));
	int r;

	if (!made)
		return r3ring_error_set(err, -ENOMEM, "no memory to follow %s", options->instance);
	pthread_mutex_init(&made->lock, NULL);
	made->look_ms = options->look_ms;
	made->hooks = options->hooks;
	r = make_parts(made, options, err);
	if (r == 0)
		r = -pthread_create(&made->thread, NULL, follow, made);
	if (r) {
		free_follower(made);
		return r3ring_error_set(err, r, "%s cannot be followed: %s", options->instance,
					strerror(-r));
	}
	*follower = made;
	return 0;
}

void follower_close(struct follower *follower)
{
	if (!follower)
		return;
	r3ring_store_relaxed_u32(&follower->stopping, 1);
	pthread_join(follower->thread, NULL);
	free_follower(follower);
}

/* ---- looking -------------------------------------------------------------- */

const char *follower_name(const struct follower *follower)
{
	return follower->name;
}

const struct r3ring_load *follower_load(const struct follower *follower)
{
	return follower->load;
}

const struct r3ring_signatures *follower_signatures(const struct follower *follower)
{
	return follower->signatures;
}

void follower_get_status(struct follower *follower, struct follower_status *status)
{
	pthread_mutex_lock(&follower->lock);
	*status = follower->status;
	pthread_mutex_unlock(&follower->lock);
}

void follower_channel_name(struct follower *follower, uint32_t channel, char name[128])
{
	pthread_mutex_lock(&follower->lock);
	snprintf(name, 128, "%s",
		 channel < follower->status.channels ? follower->channel[channel].name : "");
	pthread_mutex_unlock(&follower->lock);
}

int follower_load_channel(struct follower *follower, const char *name)
{
	int found = -ENOENT;

	pthread_mutex_lock(&follower->lock);
	for (uint32_t i = 0; found == -ENOENT && i < follower->status.channels; i++) {
		if (strcmp(follower->channel[i].name, name) == 0)
			found = follower->channel[i].load;
	}
	pthread_mutex_unlock(&follower->lock);
	return found;
}
