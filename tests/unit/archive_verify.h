/* SPDX-License-Identifier: Apache-2.0 */
/* An archive that is told by hand and verified, and what was said of it. */
#ifndef TESTS_UNIT_ARCHIVE_VERIFY_H
#define TESTS_UNIT_ARCHIVE_VERIFY_H

#include <criterion/criterion.h>

#include "archive/verify.h"
#include "tests/support/archive_story.h"

struct verify_trial {
	struct archive_builder builder;
	struct story story, other;
	char problems[4096]; /* lines */
};

extern struct verify_trial verify_trial;
extern struct story *const verify_stories[]; /* both */

/* Begins a segment with both channels, and a request of the first. */
void verify_begin(void);
/* A gap of the first channel that swallows what a LOST says, of cause ring_full. */
void verify_lose_unheard(uint64_t steps, uint64_t rows);
/* Ends the segment, and makes the index. */
void verify_finish(void);

/* Everything that is said in an archive, over three segments and two generations. */
void verify_tell_all(void);

struct archive_verified verify_all(void);

/* Exactly one problem is told, and it says this; the archive is removed then. */
void verify_expect_problem(const char *what);

#endif
