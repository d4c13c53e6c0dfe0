/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/absent_channels.h"

#include <string.h>

static bool is_of(const struct picture_channel *channel, const char *instance, size_t len)
{
	return strcspn(channel->name, "/") == len && !strncmp(channel->name, instance, len);
}

static bool same_engine(const struct picture_channel *one, const struct picture_channel *other)
{
	return is_of(one, other->name, strcspn(other->name, "/")) &&
	       one->rank.dp.size == other->rank.dp.size &&
	       one->rank.pp.size == other->rank.pp.size &&
	       one->rank.sp.size == other->rank.sp.size && one->rank.cp.size == other->rank.cp.size;
}

static bool runs(const struct daemon_picture *picture, const struct picture_channel *part)
{
	for (size_t i = 0; i < picture->channel_count; i++) {
		const struct picture_channel *channel = &picture->channels[i];

		if (strcmp(channel->state, "ended") && same_engine(channel, part))
			return true;
	}
	return false;
}

int absent_channels_find(const struct daemon_picture *picture, const char *instance,
			 struct archive_absent_ranks *absent)
{
	struct archive_ranks ranks = {0};
	int r = 0;

	for (size_t i = 0; r == 0 && i < picture->channel_count; i++) {
		const struct picture_channel *channel = &picture->channels[i];
		const struct r3ring_schema_record schema = {.rank = channel->rank};

		if ((!instance || is_of(channel, instance, strlen(instance))) &&
		    runs(picture, channel))
			r = archive_ranks_note(&ranks, channel->name, &schema);
	}
	if (r == 0)
		archive_ranks_absent(&ranks, absent);
	archive_ranks_free(&ranks);
	return r;
}
