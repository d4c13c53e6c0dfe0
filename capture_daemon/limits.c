/* SPDX-License-Identifier: Apache-2.0 */
/* Limits per user on channels, memory, readers and connections. */
#include <errno.h>
#include <inttypes.h>

#include <utlist.h>

#include "capture_daemon/daemon.h"
#include "capture_daemon/limits.h"
#include "capture_daemon/log.h"
#include "capture_daemon/opening.h"

/* Connections that are no producer's and no reader's: tools that ask. */
#define OTHER_CONNECTIONS 64

/* ---- channels ----------------------------------------------------------- */

struct usage {
	uint64_t channels;
	uint64_t memory;
};

/* Nobody writes it any more: it is kept only for those who have not read it yet. */
static bool is_left(const struct channel *channel)
{
	return channel->state == CHANNEL_ENDED && !channel->retiring && !channel->producer;
}

/* Nor does another opening wait for its place. */
static bool may_go(const struct channel *channel)
{
	return is_left(channel) && !opening_has(channel->daemon, &channel->name);
}

/* One that has a generation before it takes that one's place. */
static void add_openings(struct usage *usage, const struct daemon *daemon, uid_t user)
{
	const struct opening *opening;

	DL_FOREACH(daemon->openings, opening)
	{
		const struct channel *channel = opening->channel;

		if (!channel || channel->user != user)
			continue;
		usage->channels += !channel_find(opening->daemon, &channel->name);
		usage->memory += channel->memory;
	}
}

static struct usage usage_of(const struct daemon *daemon, const struct limits_demand *demand,
			     bool without_ended)
{
	struct usage usage = {0};

	for (const struct channel *c = daemon->channels; c; c = c->next) {
		if (c->user != demand->user || c == demand->former || (without_ended && may_go(c)))
			continue;
		usage.channels += !c->retiring;
		usage.memory += c->memory;
	}
	add_openings(&usage, daemon, demand->user);
	return usage;
}

static bool fits(const struct options *options, struct usage usage, uint64_t bytes)
{
	return usage.channels < options->max_channels && usage.memory <= options->max_memory &&
	       bytes <= options->max_memory - usage.memory;
}

static bool is_read(const struct channel *channel)
{
	for (const struct session *s = channel->daemon->sessions; s; s = s->next) {
		if (s->is_reader && channel_find(channel->daemon, &s->reads) == channel)
			return true;
	}
	return false;
}

/* How readily a channel is given up for a new one. */
enum readiness {
	NEVER,
	LAST, /* the former generation, whose place the new one takes in any case */
	READ,
	UNREAD,
};

static enum readiness readiness(const struct channel *channel, const struct limits_demand *demand)
{
	if (channel->user != demand->user)
		return NEVER;
	if (channel == demand->former)
		return is_left(channel) ? LAST : NEVER;
	if (!may_go(channel))
		return NEVER;
	return is_read(channel) ? READ : UNREAD;
}

/* The first opened of those that are given up most readily; NULL when there is none. */
static struct channel *least_wanted(struct daemon *daemon, const struct limits_demand *demand)
{
	struct channel *found = NULL;
	enum readiness most = NEVER;

	for (struct channel *c = daemon->channels; c; c = c->next) {
		enum readiness ready = readiness(c, demand);

		if (ready > most) {
			found = c;
			most = ready;
		}
	}
	return found;
}

void limits_make_room(struct daemon *daemon, const struct limits_demand *demand)
{
	const struct options *options = &daemon->options;

	if (!fits(options, usage_of(daemon, demand, true), demand->bytes))
		return;
	while (!fits(options, usage_of(daemon, demand, false), demand->bytes)) {
		struct channel *channel = least_wanted(daemon, demand);

		log_info("channel %s: has ended, removed: a new channel needs its place "
			 "(--max-channels, --max-memory)",
			 channel->text);
		channel_retire(channel, R3RING_CLOSED_SHUTDOWN);
	}
}

bool limits_make_shm_room(struct daemon *daemon, const struct limits_demand *demand)
{
	struct channel *channel = least_wanted(daemon, demand);

	if (!channel)
		return false;
	log_info("channel %s: has ended, removed: /dev/shm has no room for a new ring of %" PRIu64
		 " bytes",
		 channel->text, demand->bytes);
	channel_retire(channel, R3RING_CLOSED_SHUTDOWN);
	return true;
}

void limits_explain_shm_room(const struct daemon *daemon, const struct limits_demand *demand,
			     struct r3ring_error *err)
{
	const struct r3ring_error said = *err;
	uint64_t live = 0, ended = 0;
	const struct opening *opening;

	for (const struct channel *c = daemon->channels; c; c = c->next) {
		uint64_t bytes = r3ring_segment_get_header(c->segment)->segment_size;

		*(c->state == CHANNEL_ENDED && !c->producer ? &ended : &live) += bytes;
	}
	DL_FOREACH(daemon->openings, opening)
	live += opening->channel ? opening->sizes.segment_bytes : 0;
	live -= demand->bytes; /* what finds no room is one of these */
	r3ring_error_set(err, said.code,
			 "%s; live channels of this r3ringd hold %" PRIu64
			 " bytes of it, ended ones that are not this user's to remove %" PRIu64,
			 said.text, live, ended);
}

int limits_check_channel(const struct daemon *daemon, const struct limits_demand *demand,
			 struct r3ring_error *err)
{
	const struct options *options = &daemon->options;
	const struct usage usage = usage_of(daemon, demand, false);
	uint64_t channels = usage.channels, memory = usage.memory;

	if (channels >= options->max_channels)
		return r3ring_error_set(err, -EDQUOT,
					"user %u has %" PRIu64 " channels, as many as r3ringd "
					"--max-channels allows: raise it, or close one",
					demand->user, channels);
	if (memory > options->max_memory || demand->bytes > options->max_memory - memory)
		return r3ring_error_set(err, -EDQUOT,
					"the channel needs %" PRIu64
					" bytes and user %u has %" PRIu64 " of the %" PRIu64
					" that r3ringd --max-memory allows: raise it, close a "
					"channel, or choose a smaller --ring-size",
					demand->bytes, demand->user, memory, options->max_memory);
	return 0;
}

/* ---- connections -------------------------------------------------------- */

int limits_check_connection(const struct daemon *daemon, uid_t user, struct r3ring_error *err)
{
	const struct options *options = &daemon->options;
	uint64_t allowed = options->max_channels + options->max_readers + OTHER_CONNECTIONS;
	uint64_t count = 0;

	for (const struct session *s = daemon->sessions; s; s = s->next)
		count += s->peer.uid == user;
	if (count < allowed)
		return 0;
	return r3ring_error_set(err, -EDQUOT,
				"user %u has %" PRIu64 " connections, as many as r3ringd allows "
				"(--max-channels and --max-readers): raise one, or close some",
				user, count);
}

int limits_check_reader(const struct daemon *daemon, uid_t user, struct r3ring_error *err)
{
	uint64_t count = 0;

	for (const struct session *s = daemon->sessions; s; s = s->next)
		count += s->is_reader && s->peer.uid == user;
	if (count < daemon->options.max_readers)
		return 0;
	return r3ring_error_set(err, -EDQUOT,
				"user %u has %" PRIu64 " readers, as many as r3ringd --max-readers "
				"allows: raise it, or close one",
				user, count);
}
