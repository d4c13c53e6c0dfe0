/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "monitor/ends.h"

#define NS_PER_S 1000000000ull

/* Not one that was started just now, or asked before the channel was there. */
static bool must_know(const struct ends_channel *channel, const struct daemon_picture *picture)
{
	return picture->uptime_s >= ENDS_PATIENCE_NS / NS_PER_S &&
	       picture->taken_ns >= channel->since_ns + ENDS_PATIENCE_NS;
}

bool ends_judge(const struct ends_channel *channel, const struct daemon_picture *picture)
{
	const struct picture_channel *told = daemon_picture_find(picture, channel->name);

	if (!picture || picture->state != PICTURE_LIVE)
		return channel->ended || channel->died;
	if (!told)
		return channel->ended || channel->died || must_know(channel, picture);
	if (told->generation != channel->generation)
		return channel->ended || channel->died;
	if (strcmp(told->state, "orphan") == 0)
		return channel->died;
	return strcmp(told->state, "ended") == 0 && channel->next > told->records;
}
