/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The channels that a reader met: a number for each name, the same in all segments, and
 * which of them the present segment calls by which index.
 */
#ifndef ARCHIVE_CHANNELS_H
#define ARCHIVE_CHANNELS_H

#include <stdbool.h>
#include <stdint.h>

#include "archive/format.h"

struct archive_channels;

/* Whether what comes of a channel is of the generation that was said last. */
enum archive_certainty {
	ARCHIVE_CERTAIN = 0,
	ARCHIVE_UNLESS_NEW, /* if it goes on where that was left: no other one begins so */
	ARCHIVE_UNCERTAIN,  /* nobody can tell: nothing is read until a generation is said */
};

struct archive_channel {
	const char *name; /* until archive_channels_destroy() */
	uint16_t number;  /* the reader's */
	uint64_t said_in; /* number of the segment that told its generation last; 0: none did */
	uint64_t generation;
	uint8_t uuid[16];
	uint64_t seq; /* of its last record or the end of its last gap, as far as it was read */
	bool closed;  /* that was CLOSED */
	bool doubt;   /* what may have been behind that cannot be read */
	enum archive_certainty certainty;
};

struct archive_channels *archive_channels_create(void); /* NULL: no memory */
void archive_channels_destroy(struct archive_channels *channels);

/* A segment begins: nothing is declared. */
void archive_channels_forget(struct archive_channels *channels);

/*
 * Declares channel @index of the segment by its name, @bytes long.
 * Returns 0, -EBADMSG (it has another name, or there are more than 65536), -ENOMEM.
 */
int archive_channels_declare(struct archive_channels *channels, uint16_t index, const char *name,
			     uint32_t bytes);

/* Something could not be read, that may have been of any of them; or they begin anew. */
void archive_channels_doubt(struct archive_channels *channels, bool doubt);

/*
 * Blocks behind which the segment is gone on with could not be read.
 *
 * @state: they had state, so each channel may have begun another generation there.
 * @alone: one block it was, of state and nothing else.
 */
void archive_channels_unsettle(struct archive_channels *channels, bool state, bool alone);

/* The first one in doubt; NULL: none is. */
struct archive_channel *archive_channels_doubtful(struct archive_channels *channels);

/* Channel @index of the segment; NULL: it was not declared. Valid until destroy. */
struct archive_channel *archive_channels_get(const struct archive_channels *channels,
					     uint16_t index);

#endif
