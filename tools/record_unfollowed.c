/* SPDX-License-Identifier: Apache-2.0 */
/*
 * r3ring record: what it leaves untold where it ends while nobody tells what engines run: their
 * daemon was killed and none has come after it, or one has and waits for the engine.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "channel/leftover.h"
#include "monitor/daemon_status.h"
#include "tools/record.h"

#define ANSWER_MS 1000 /* a daemon that takes longer lives, and tells whoever comes next */

/* What the daemon says of the channel's present ring; NULL: nothing. */
static const char *state_of(const json_t *status, const char *name,
			    const struct record_channel *channel)
{
	const json_t *told;
	size_t i;

	json_array_foreach (json_object_get(status, "channels"), i, told) {
		const char *its = json_string_value(json_object_get(told, "channel"));
		json_int_t generation = json_integer_value(json_object_get(told, "generation"));

		if (its && strcmp(its, name) == 0 && (uint64_t)generation == channel->generation)
			return json_string_value(json_object_get(told, "state"));
	}
	return NULL;
}

static bool is_unfollowed(const struct record_channels *channels, uint32_t i, const json_t *status)
{
	const struct record_channel *channel = &channels->channels[i];
	struct r3ring_reader_stats stats;
	const char *state;

	if (!channel->begun || channel->closed ||
	    r3ring_instance_get_stats(channels->instance, i, &stats) ||
	    memcmp(stats.uuid, channel->uuid, sizeof(channel->uuid)) != 0)
		return false;
	if (!status)
		return !leftover_has_ended(channels->runtime_dir,
					   r3ring_instance_segment(channels->instance, i));
	state = state_of(status, r3ring_instance_channel(channels->instance, i), channel);
	return state && strcmp(state, "orphan") == 0;
}

static int say(struct record_channels *channels, uint32_t i, const json_t *status)
{
	struct record_channel *channel = &channels->channels[i];
	const bool stepped = channel->step > 0;

	record_progress_clear(channels->progress);
	fprintf(stderr,
		"r3ring record: %s: %s: what the engine ran after %s %" PRIu64
		" of generation %" PRIu64 " is not known\n",
		r3ring_instance_channel(channels->instance, i),
		status ? "the engine has not come back to its daemon yet"
		       : "the daemon is gone, and none came after it",
		stepped ? "step" : "record", stepped ? channel->step : channel->seq,
		channel->generation);
	channel_losses_unfollowed(&channel->losses, true);
	return archive_writer_unfollowed(channels->writer, (uint16_t)channel->index, channel->step);
}

int record_unfollowed_tell(struct record_channels *channels)
{
	json_t *status = NULL;
	struct r3ring_error err;
	int r = daemon_status_ask(NULL, ANSWER_MS, &status, &err);

	/* Of any other answer there is a daemon, that will tell of them. */
	if (r < 0 && r != -ECONNREFUSED)
		return 0;
	r = 0;
	for (uint32_t i = 0; r == 0 && i < channels->count; i++)
		if (is_unfollowed(channels, i, status))
			r = say(channels, i, status);
	json_decref(status);
	record_channels_sum_losses(channels);
	return r;
}
