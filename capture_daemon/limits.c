/* SPDX-License-Identifier: Apache-2.0 */
/* Limits per user on channels, memory, readers and connections. */
#include <errno.h>
#include <inttypes.h>

#include "capture_daemon/daemon.h"
#include "capture_daemon/limits.h"

/* Connections that are no producer's and no reader's: tools that ask. */
#define OTHER_CONNECTIONS 64

int limits_check_channel(const struct daemon *daemon, uid_t user, uint64_t bytes,
			 struct r3ring_error *err)
{
	const struct options *options = &daemon->options;
	uint64_t channels = 0, memory = 0;

	for (const struct channel *c = daemon->channels; c; c = c->next) {
		if (c->user != user)
			continue;
		channels += !c->retiring;
		memory += c->memory;
	}
	if (channels >= options->max_channels)
		return r3ring_error_set(err, -EDQUOT,
					"user %u has %" PRIu64 " channels, as many as r3ringd "
					"--max-channels allows",
					user, channels);
	if (memory > options->max_memory || bytes > options->max_memory - memory)
		return r3ring_error_set(err, -EDQUOT,
					"the channel needs %" PRIu64
					" bytes and user %u has %" PRIu64 " of the %" PRIu64
					" that r3ringd --max-memory allows",
					bytes, user, memory, options->max_memory);
	return 0;
}

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
				"(--max-channels and --max-readers)",
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
				"allows",
				user, count);
}
