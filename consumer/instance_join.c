/* SPDX-License-Identifier: Apache-2.0 */
/* The channels of an instance: those that are there, and those that appear. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "consumer/instance_internal.h"
#include "consumer/internal.h"

#define ASK_NS 500000000ull     /* between two questions */
#define ANSWER_NS 1000000000ull /* a daemon that takes longer does not answer */

bool instance_wants(const struct r3ring_instance *instance, const struct r3ring_channel_name *name)
{
	switch (instance->options.models) {
	case R3RING_TARGET_CHANNELS:
		return !name->draft;
	case R3RING_DRAFT_CHANNELS:
		return name->draft;
	default:
		return true;
	}
}

static bool same_channel(const struct r3ring_channel_name *a, const struct r3ring_channel_name *b)
{
	return a->rank == b->rank && !a->draft == !b->draft;
}

/* Returns the count where there is no such channel. */
static uint32_t find(const struct r3ring_instance *instance, const struct r3ring_channel_name *name)
{
	uint32_t i = 0;

	while (i < instance->count && !same_channel(&instance->channels[i]->name, name))
		i++;
	return i;
}

static int make_room(struct r3ring_instance *instance)
{
	uint32_t capacity = instance->capacity ? 2 * instance->capacity : 8;
	struct instance_channel **channels;
	struct pollfd *polled;

	if (instance->count < instance->capacity)
		return 0;
	channels = reallocarray(instance->channels, capacity, sizeof(*channels));
	if (!channels)
		return -ENOMEM;
	instance->channels = channels;
	polled = reallocarray(instance->polled, capacity + 1, sizeof(*polled));
	if (!polled)
		return -ENOMEM;
	instance->polled = polled;
	instance->capacity = capacity;
	return 0;
}

static int add(struct r3ring_instance *instance, const struct r3ring_channel_name *name)
{
	struct instance_channel *channel = calloc(1, sizeof(*channel));

	if (!channel || make_room(instance)) {
		free(channel);
		return -ENOMEM;
	}
	channel->name = *name;
	channel_name_format(name, channel->text);
	instance->channels[instance->count++] = channel;
	return 0;
}

/* A channel that is gone again, or never fully was, is no failure. */
static int attach(struct r3ring_instance *instance, uint32_t index, enum r3ring_cursor_start from,
		  struct r3ring_error *err)
{
	struct instance_channel *channel = instance->channels[index];
	const struct r3ring_reader_options options = {
		.size = sizeof(options),
		.runtime_dir = instance->options.runtime_dir,
		.channel = channel->text,
		.mode = instance->options.mode,
		.from = from,
		.stay = instance->options.stay,
	};
	struct r3ring_error why = {0};
	int rc = r3ring_reader_open(&channel->reader, &options, &why);
	bool told = rc == channel->refused;

	if (rc == -ENOENT)
		rc = 0;
	channel->refused = rc;
	if (!rc || told)
		return 0;
	instance->current = index;
	return instance_say(err, channel, rc, why.text);
}

static int join_one(struct r3ring_instance *instance, const struct r3ring_channel_name *name,
		    enum r3ring_cursor_start from, struct r3ring_error *err)
{
	uint32_t index = find(instance, name);

	if (index == instance->count && add(instance, name))
		return r3ring_error_set(err, -ENOMEM, "no memory for one more channel of %s",
					instance->options.instance);
	if (instance->channels[index]->reader)
		return 0;
	return attach(instance, index, from, err);
}

int instance_join(struct r3ring_instance *instance, enum r3ring_cursor_start from,
		  struct r3ring_error *err)
{
	const struct listing *listing = &instance->listing;
	int rc = 0;

	for (size_t i = 0; !rc && i < listing->count; i++) {
		if (instance_wants(instance, &listing->names[i]))
			rc = join_one(instance, &listing->names[i], from, err);
	}
	return rc;
}

/* A daemon that is not there, or does not answer, is asked again later. */
static void ask(struct r3ring_instance *instance, uint64_t now)
{
	instance->ask_at_ns = now + ASK_NS;
	instance->give_up_ns = now + ANSWER_NS;
	if (listing_ask(&instance->listing, &instance->err))
		listing_hang_up(&instance->listing);
}

int instance_look(struct r3ring_instance *instance)
{
	struct listing *listing = &instance->listing;
	uint64_t now;
	int rc;

	if (instance->options.stay)
		return 0;
	now = clock_ns(CLOCK_MONOTONIC_COARSE);
	if (!listing->asked) {
		if (now >= instance->ask_at_ns)
			ask(instance, now);
		return 0;
	}
	rc = listing_take(listing, 0, &instance->err);
	if (rc == -ETIMEDOUT && now >= instance->give_up_ns)
		listing_hang_up(listing);
	/* What a channel that appeared has overwritten by now is told as lost: sequence 0
	 * means its first record. */
	return rc ? 0 : instance_join(instance, R3RING_FROM_SEQ, &instance->err);
}
