/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "archive/channels.h"

#define CHANNELS_MAX 65536u

struct known_channel {
	UT_hash_handle hh;
	struct archive_channel channel;
	char name[];
};

struct archive_channels {
	struct known_channel *known;    /* by name */
	struct archive_channel **table; /* [count] of the present segment, by index */
	uint32_t count;
};

struct archive_channels *archive_channels_create(void)
{
	return calloc(1, sizeof(struct archive_channels));
}

void archive_channels_destroy(struct archive_channels *channels)
{
	struct known_channel *known, *next;

	if (!channels)
		return;
	known = channels->known;
	HASH_CLEAR(hh, channels->known);
	for (; known; known = next) {
		next = known->hh.next;
		free(known);
	}
	free(channels->table);
	free(channels);
}

void archive_channels_forget(struct archive_channels *channels)
{
	for (uint32_t i = 0; i < channels->count; i++)
		channels->table[i] = NULL;
	for (struct known_channel *known = channels->known; known; known = known->hh.next)
		known->channel.certainty = ARCHIVE_CERTAIN;
}

static int know(struct archive_channels *channels, const char *name, uint32_t bytes,
		struct archive_channel **channel)
{
	struct known_channel *known;
	unsigned int before = HASH_COUNT(channels->known);

	HASH_FIND(hh, channels->known, name, bytes, known);
	if (!known && before == CHANNELS_MAX)
		return -EBADMSG;
	if (!known) {
		known = calloc(1, sizeof(*known) + bytes + 1);
		if (!known)
			return -ENOMEM;
		memcpy(known->name, name, bytes);
		known->channel.name = known->name;
		known->channel.number = (uint16_t)before;
		HASH_ADD_KEYPTR(hh, channels->known, known->name, bytes, known);
		if (HASH_COUNT(channels->known) == before) {
			free(known);
			return -ENOMEM;
		}
	}
	*channel = &known->channel;
	return 0;
}

static int grow(struct archive_channels *channels, uint32_t count)
{
	struct archive_channel **table;

	if (count <= channels->count)
		return 0;
	table = reallocarray(channels->table, count, sizeof(struct archive_channel *));
	if (!table)
		return -ENOMEM;
	for (uint32_t i = channels->count; i < count; i++)
		table[i] = NULL;
	channels->table = table;
	channels->count = count;
	return 0;
}

int archive_channels_declare(struct archive_channels *channels, uint16_t index, const char *name,
			     uint32_t bytes)
{
	struct archive_channel *channel;
	int code = know(channels, name, bytes, &channel);

	if (!code)
		code = grow(channels, index + 1u);
	if (code)
		return code;
	if (channels->table[index] && channels->table[index] != channel)
		return -EBADMSG;
	channels->table[index] = channel;
	return 0;
}

struct archive_channel *archive_channels_get(const struct archive_channels *channels,
					     uint16_t index)
{
	return index < channels->count ? channels->table[index] : NULL;
}

void archive_channels_doubt(struct archive_channels *channels, bool doubt)
{
	for (struct known_channel *known = channels->known; known; known = known->hh.next)
		known->channel.doubt = doubt && known->channel.said_in;
}

void archive_channels_unsettle(struct archive_channels *channels, bool state, bool alone)
{
	for (struct known_channel *known = channels->known; known; known = known->hh.next) {
		enum archive_certainty *certainty = &known->channel.certainty;

		if (*certainty == ARCHIVE_CERTAIN && state && alone)
			*certainty = ARCHIVE_UNLESS_NEW;
		else if (*certainty != ARCHIVE_CERTAIN || state)
			*certainty = ARCHIVE_UNCERTAIN;
	}
}

struct archive_channel *archive_channels_doubtful(struct archive_channels *channels)
{
	struct known_channel *known = channels->known;

	while (known && !known->channel.doubt)
		known = known->hh.next;
	return known ? &known->channel : NULL;
}
