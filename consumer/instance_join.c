/* SPDX-License-Identifier: Apache-2.0 */
/* The channels of an instance: those that are there, and those that appear. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "consumer/instance_internal.h"
#include "consumer/internal.h"

#define ASK_NS 500000000ull     /* between two questions */
#define ANSWER_NS 1000000000ull /* a daemon that takes longer does not answer */

static bool is_one_of(const char *const *names, const struct r3ring_channel_name *name)
{
	char text[CHANNEL_NAME_TEXT];

	channel_name_format(name, text);
	while (*names && strcmp(*names, text) != 0)
		names++;
	return *names != NULL;
}

bool instance_wants(const struct r3ring_instance *instance, const struct r3ring_channel_name *name)
{
	if (instance->options.only)
		return is_one_of(instance->options.only, name);
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

static const struct r3ring_instance_start *find_start(const struct r3ring_instance *instance,
						      const struct instance_channel *channel)
{
	const struct r3ring_instance_options *options = &instance->options;

	for (uint32_t i = 0; i < options->start_count; i++) {
		if (strcmp(options->starts[i].channel, channel->text) == 0)
			return &options->starts[i];
	}
	return NULL;
}

/* Returns as r3ring_reader_open(); -ENOENT where that generation is not there, or ends
 * before. */
static int open_at_start(const struct r3ring_instance_start *start,
			 const struct r3ring_reader_options *as, struct r3ring_reader **reader,
			 struct r3ring_error *err)
{
	struct r3ring_reader_options options = *as;
	struct r3ring_reader_stats stats;
	int rc;

	options.generation = start->generation;
	options.from = R3RING_FROM_SEQ;
	options.seq = start->seq + 1;
	rc = r3ring_reader_open(reader, &options, err);
	if (rc)
		return rc == -ERANGE ? -ENOENT : rc;
	r3ring_reader_get_stats(*reader, &stats);
	if (memcmp(stats.uuid, start->uuid, sizeof(stats.uuid)) == 0)
		return 0;
	r3ring_reader_close(*reader);
	*reader = NULL;
	return -ENOENT;
}

static int open_reader(const struct r3ring_instance *instance, struct instance_channel *channel,
		       enum r3ring_cursor_start from, struct r3ring_error *err)
{
	const struct r3ring_instance_start *start = find_start(instance, channel);
	const struct r3ring_reader_options options = {
		.size = sizeof(options),
		.runtime_dir = instance->options.runtime_dir,
		.channel = channel->text,
		.mode = instance->options.mode,
		.from = start ? R3RING_FROM_FIRST : from,
		.stay = instance->options.stay,
		.limit_bytes = instance->options.limit_bytes,
		.stall_ms = instance->options.stall_ms,
		.label = instance->options.label,
	};
	int rc = start ? open_at_start(start, &options, &channel->reader, err) : -ENOENT;

	return rc == -ENOENT ? r3ring_reader_open(&channel->reader, &options, err) : rc;
}

/* A channel that is gone again, or never fully was, is no failure. */
static int attach(struct r3ring_instance *instance, uint32_t index, enum r3ring_cursor_start from,
		  struct r3ring_error *err)
{
	struct instance_channel *channel = instance->channels[index];
	struct r3ring_error why = {0};
	int rc = open_reader(instance, channel, from, &why);
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
	now = clock_coarse_ns();
	if (!listing->asked) {
		if (now >= instance->ask_at_ns)
			ask(instance, now);
		return 0;
	}
	rc = listing_take(listing, 0, &instance->err);
	if (rc == -ETIMEDOUT && now >= instance->give_up_ns)
		listing_hang_up(listing);
	/* What a channel that appeared has overwritten by now is told as lost. */
	return rc ? 0 : instance_join(instance, R3RING_FROM_FIRST, &instance->err);
}
