/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "channel/socket.h"
#include "monitor/follower.h"

struct follower {
	struct follower_hooks hooks;
	struct tail *tail;
	struct r3ring_load *load;
	struct r3ring_signatures *signatures;

	/* The tail's thread's own. */
	struct heard *heard; /* [named] of each channel */
	uint32_t named;

	pthread_mutex_t lock; /* of what follows */
	uint32_t expert_ranks;
	struct r3ring_signatures_stats signatures_stats;
	struct followed *channel; /* [channels] */
	uint32_t channels;
};

struct heard {
	struct r3ring_requests *names; /* what its handles mean */
	uint64_t generation;           /* of its newest record; 0: none yet */
	bool follows;                  /* of a draft model, or a copy */
};

struct followed {
	char name[128];
	int load; /* its index there, or why it has none */
	bool ended;
	bool other_model; /* as its newest schema says */
};

/* ---- following ------------------------------------------------------------ */

static void note_channel(struct follower *follower, uint32_t channel, const char *name)
{
	/* The load numbers channels as they are announced: as the reader does. */
	int load = r3ring_load_channel(follower->load, name);
	struct followed *channels;

	pthread_mutex_lock(&follower->lock);
	channels = realloc(follower->channel, (channel + 1) * sizeof(*channels));
	if (channels) {
		follower->channel = channels;
		channels[channel] = (struct followed){.load = load};
		snprintf(channels[channel].name, sizeof(channels->name), "%s", name);
		follower->channels = channel + 1;
	}
	pthread_mutex_unlock(&follower->lock);
}

static bool is_draft(const char *name)
{
	struct r3ring_channel_name parsed;

	return channel_name_parse(&parsed, name, NULL) == 0 && parsed.draft;
}

static int take_channel(void *context, uint32_t channel, const char *name)
{
	struct follower *follower = context;
	struct heard *heard = realloc(follower->heard, (channel + 1) * sizeof(*heard));

	if (!heard)
		return -ENOMEM;
	follower->heard = heard;
	heard[channel] =
		(struct heard){.names = r3ring_requests_create(), .follows = is_draft(name)};
	if (!heard[channel].names)
		return -ENOMEM;
	follower->named = channel + 1;
	note_channel(follower, channel, name);
	return 0;
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
	if (schema->rank.ep.size > follower->expert_ranks)
		follower->expert_ranks = schema->rank.ep.size;
	pthread_mutex_unlock(&follower->lock);
}

static void note_model(struct follower *follower, uint32_t channel, bool other)
{
	pthread_mutex_lock(&follower->lock);
	if (channel < follower->channels)
		follower->channel[channel].other_model = other;
	pthread_mutex_unlock(&follower->lock);
}

static void take_record(void *context, uint32_t channel, const char *name,
			const struct r3ring_view *view, const struct r3ring_record *record)
{
	struct follower *follower = context;
	struct heard *heard = &follower->heard[channel];
	int index = r3ring_load_channel(follower->load, name), r = 0;

	note_generation(follower, heard, view->generation);
	/* What is out of memory is lost to those that are fed, which say so. A ring's end is not
	 * its engine's, which may go on under the next daemon. */
	if (index >= 0 && record->type != R3RING_CLOSED)
		r = r3ring_load_feed(follower->load, (uint32_t)index, view, record);
	if (follower->signatures)
		index = r3ring_signatures_channel(follower->signatures, name);
	if (follower->signatures && index >= 0)
		r3ring_signatures_feed(follower->signatures, (uint32_t)index, view, record);
	if (record->type == R3RING_SCHEMA) {
		note_model(follower, channel, r == -EPROTO);
		note_ranks(follower, &record->u.schema.head);
		heard->follows |= record->u.schema.head.replica != 0;
	}
	r3ring_requests_feed(heard->names, view, record);
	if (follower->hooks.record)
		follower->hooks.record(follower->hooks.context, heard->names, view, record);
}

static void take_gap(void *context, uint32_t channel)
{
	struct follower *follower = context;

	r3ring_requests_gap(follower->heard[channel].names);
}

/* Nothing is left to be looked at where the load has none of those that ended last. */
static void end_loads(struct follower *follower)
{
	bool any_runs = false;

	for (uint32_t i = 0; i < follower->channels; i++)
		any_runs |= !follower->channel[i].ended;
	for (uint32_t i = 0; any_runs && i < follower->channels; i++) {
		if (follower->channel[i].ended && follower->channel[i].load >= 0)
			r3ring_load_end(follower->load, (uint32_t)follower->channel[i].load);
	}
}

static void take_ends(void *context, const bool *ended, uint32_t channels)
{
	struct follower *follower = context;

	pthread_mutex_lock(&follower->lock);
	for (uint32_t i = 0; i < channels && i < follower->channels; i++)
		follower->channel[i].ended = ended[i];
	end_loads(follower);
	pthread_mutex_unlock(&follower->lock);
}

/* They are the feeding thread's to read. */
static void note_signatures(void *context)
{
	struct follower *follower = context;
	struct r3ring_signatures_stats stats;

	r3ring_signatures_get_stats(follower->signatures, &stats);
	pthread_mutex_lock(&follower->lock);
	follower->signatures_stats = stats;
	pthread_mutex_unlock(&follower->lock);
}

static void take_turn(void *context)
{
	const struct follower *follower = context;

	follower->hooks.turn(follower->hooks.context);
}

/* ---- opening and closing -------------------------------------------------- */

static void free_follower(struct follower *follower)
{
	tail_close(follower->tail);
	for (uint32_t i = 0; i < follower->named; i++)
		r3ring_requests_destroy(follower->heard[i].names);
	free(follower->heard);
	free(follower->channel);
	r3ring_signatures_destroy(follower->signatures);
	r3ring_load_destroy(follower->load);
	pthread_mutex_destroy(&follower->lock);
	free(follower);
}

static int make_parts(struct follower *follower, const struct follower_options *options,
		      struct r3ring_error *err)
{
	int r = r3ring_load_create(&follower->load, &options->load, err);

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
	const struct tail_options tail = {
		.instance = options->instance,
		.runtime_dir = options->runtime_dir,
		.label = options->label,
		.look_ms = options->look_ms,
		.watch = options->watch,
		.hooks = {.context = made,
			  .channel = take_channel,
			  .record = take_record,
			  .gap = take_gap,
			  .ends = take_ends,
			  .read = options->load_only ? NULL : note_signatures,
			  .turn = options->hooks.turn ? take_turn : NULL},
	};
	int r;

	if (!made)
		return r3ring_error_set(err, -ENOMEM, "no memory to follow %s", options->instance);
	pthread_mutex_init(&made->lock, NULL);
	made->hooks = options->hooks;
	r = make_parts(made, options, err);
	if (r)
		r3ring_error_set(err, r, "%s cannot be followed: %s", options->instance,
				 strerror(-r));
	else
		r = tail_open(&made->tail, &tail, err);
	if (r) {
		free_follower(made);
		return r;
	}
	*follower = made;
	return 0;
}

void follower_close(struct follower *follower)
{
	if (follower)
		free_follower(follower);
}

/* ---- looking -------------------------------------------------------------- */

const char *follower_name(const struct follower *follower)
{
	return tail_name(follower->tail);
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
	*status = (struct follower_status){0};
	tail_get_status(follower->tail, &status->tail);
	pthread_mutex_lock(&follower->lock);
	status->channels = follower->channels;
	status->expert_ranks = follower->expert_ranks;
	for (uint32_t i = 0; i < follower->channels; i++)
		status->other_model |= follower->channel[i].other_model &&
				       !follower->channel[i].ended;
	status->signatures = follower->signatures_stats;
	pthread_mutex_unlock(&follower->lock);
}

void follower_channel_name(struct follower *follower, uint32_t channel, char name[128])
{
	pthread_mutex_lock(&follower->lock);
	snprintf(name, 128, "%s",
		 channel < follower->channels ? follower->channel[channel].name : "");
	pthread_mutex_unlock(&follower->lock);
}

bool follower_channel_ended(struct follower *follower, uint32_t channel)
{
	bool ended;

	pthread_mutex_lock(&follower->lock);
	ended = channel < follower->channels && follower->channel[channel].ended;
	pthread_mutex_unlock(&follower->lock);
	return ended;
}

bool follower_runs(struct follower *follower, const char *id)
{
	for (uint32_t i = 0; i < follower->named; i++)
		if (!follower->heard[i].follows && !follower_channel_ended(follower, i) &&
		    r3ring_requests_runs(follower->heard[i].names, id))
			return true;
	return false;
}

int follower_load_channel(struct follower *follower, const char *name)
{
	int found = -ENOENT;

	pthread_mutex_lock(&follower->lock);
	for (uint32_t i = 0; found == -ENOENT && i < follower->channels; i++) {
		if (strcmp(follower->channel[i].name, name) == 0)
			found = follower->channel[i].load;
	}
	pthread_mutex_unlock(&follower->lock);
	return found;
}
