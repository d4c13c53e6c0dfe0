/* SPDX-License-Identifier: Apache-2.0 */
/* Reads an archive of stories to its end and compares every id with what was told. */
#ifndef TESTS_SUPPORT_ARCHIVE_TALLY_H
#define TESTS_SUPPORT_ARCHIVE_TALLY_H

#include "archive/reader.h"

struct archive_tally {
	int opened;          /* what archive_reader_open() returned */
	uint64_t items;      /* all that was given, but what is repeated */
	uint64_t repeated;   /* and this */
	uint64_t records;    /* RECORD, not repeated */
	uint64_t layers;     /* of these */
	uint64_t layer_rows; /* their rows */
	uint64_t wrong;      /* rows with another id than the story's, records out of order */
	uint64_t gaps, lost; /* GAP, and what they say was lost */
	uint64_t gaps_unsized;
	uint64_t damaged;             /* -EBADMSG */
	int code;                     /* of the last call: 0, or what ended the reading */
	char text[R3RING_ERROR_TEXT]; /* of the first failure */
};

/* Reads on with @reader. */
void archive_tally_read(struct archive_tally *tally, struct archive_reader *reader);

/* Opens the archive, reads it, closes it. */
struct archive_tally archive_tally(const char *dir);

#endif
