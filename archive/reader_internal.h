/* SPDX-License-Identifier: Apache-2.0 */
/* The reader's insides. */
#ifndef ARCHIVE_READER_INTERNAL_H
#define ARCHIVE_READER_INTERNAL_H

#include <stdbool.h>

#include "archive/channels.h"
#include "archive/listing.h"
#include "archive/reader.h"
#include "archive/segment.h"
#include "archive/unread.h"

/* How a segment was left, or how far it was read. */
struct archive_progress {
	uint64_t number;            /* 0: none was begun */
	uint64_t bytes;             /* of the file */
	uint64_t first_ns, last_ns; /* when it was made, when its newest block was written */
	uint64_t blocks, records;   /* of the archive, up to here */
	bool closed;                /* in good order */
	bool whole;                 /* it was left at its end */
};

struct archive_reader {
	char *dir;
	int dir_fd;
	uint8_t uuid[16];
	struct archive_listing listing;
	struct archive_channels *channels;

	uint64_t after;                /* number of the newest segment that was begun; 0: none */
	bool anywhere;                 /* what comes next need not be the one behind it */
	bool whole;                    /* that one was read to its end, */
	struct archive_chain chain;    /* which is this */
	bool broken;                   /* it was not: damage was told */
	bool looked_again;             /* at an end that is none */
	bool lacks_beginning;          /* its first segments are missing, not rotated out */
	bool headless;                 /* likewise, which is not told yet */
	bool endless;                  /* its last ones are not asked for, or told */
	uint64_t last;                 /* the segment behind which it ends; 0: the newest */
	uint64_t passed;               /* bytes of segments in front of that which is open */
	struct archive_progress left;  /* the segment that was left last */
	struct archive_unread damaged; /* what is not read behind the newest damage, */
	struct archive_unread unread;  /* and behind all that was found */

	struct archive_segment segment; /* open while its blocks are read */
	bool ready;                     /* what it says again is over */
	bool unsettled;                 /* it lacks state: not all that follows can be read */
	bool continued;                 /* all that is before it was read */
	bool resuming;                  /* behind damage */
	bool keep_repeated;             /* gives what is said again also where nobody needs it */
	bool gap_owed;
	struct archive_item owed; /* the gap */
	uint32_t at;              /* offset of the next entry in the block */
	uint32_t entry;           /* its index */
	uint32_t entries_left;    /* of the block */
};

/* The next entry of the block: returns 1, 2 (it is not to be given), -EBADMSG or -ENOMEM. */
int archive_reader_take(struct archive_reader *reader, struct archive_item *item,
			struct r3ring_error *err);

/* At the end of all: a gap of a channel of which something may have been in what could not be
 * read. Returns 1, or 0: there is none more. */
int archive_reader_take_rest(struct archive_reader *reader, struct archive_item *item);

/* Of the segment that is open, else of the one that was left last. */
struct archive_progress archive_reader_progress(const struct archive_reader *reader);

#endif
