/* SPDX-License-Identifier: Apache-2.0 */
/* An archive of one segment, of which blocks are damaged one by one. */
#ifndef TESTS_UNIT_ARCHIVE_SKIP_H
#define TESTS_UNIT_ARCHIVE_SKIP_H

#include <criterion/criterion.h>

#include "tests/support/archive_story.h"
#include "tests/support/archive_tally.h"

#define HEAD 128u                   /* bytes of a block's */
#define OF_STEP (2u + STORY_LAYERS) /* records */

struct skip_trial {
	struct archive_builder builder;
	struct story story, other;
	struct builder_bytes whole; /* the segment's file, and where its blocks are: */
	struct {
		size_t at, len;
	} places[48];
	unsigned int count;
};

extern struct skip_trial skip;

/* Fills in the last three, once the segment is written. */
void skip_read_whole(void);

/* For .fini: removes it. */
void skip_finish(void);

/* The archive with a byte of a block changed: of its head, or of what is behind. */
struct archive_tally skip_with_changed(unsigned int block, size_t byte);

/* The first damage was told with these words. */
void skip_expect_text(const struct archive_tally *tally, const char *what);

/* A hook of archive_verify(). */
void skip_ignore(void *ctx, const char *text);

#endif
