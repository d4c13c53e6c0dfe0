/* SPDX-License-Identifier: Apache-2.0 */
/* An instance of several ranks, a recorder of it as a process, and what it left. */
#ifndef TESTS_SYSTEM_RECORD_STAGE_H
#define TESTS_SYSTEM_RECORD_STAGE_H

#include <stdint.h>

#include "tests/support/archive_walk.h"
#include "tests/support/command.h"
#include "tests/support/container.h"
#include "tests/support/ranks.h"

struct record_stage {
	struct ranks ranks;
	struct command tool;
	struct archive_walk walk;
	char base[64];    /* a directory of the test's own */
	char archive[96]; /* in it */
};

/* The daemon is started with these options. */
void record_stage_start(struct record_stage *stage, const char *const *daemon_args);
void record_stage_stop(struct record_stage *stage);

/* Removes the archive's directory with all that is in it. */
void record_stage_remove(const struct record_stage *stage);

/* Starts "r3ring record --instance NAME -o ARCHIVE" with more options behind; NULL: none. */
void record_stage_record(struct record_stage *stage, const char *const *args);
/* The same in a container (or NULL), into a directory there. */
void record_stage_record_in(struct record_stage *stage, const struct container *container,
			    const char *archive, const char *const *args);

/* The same up to its end; its code. */
int record_stage_run(struct record_stage *stage, const char *const *args);

/* Name of a rank's channel; a static text. */
const char *record_stage_channel(const struct record_stage *stage, uint32_t rank);

/* Runs steps of a rank's generation, and waits until that has told @told of them in all: a
 * recorder with an idle limit would not wait for a slow daemon. */
void record_stage_run_told(struct record_stage *stage, uint32_t rank, uint32_t steps, long told);

/* Until that many steps of a rank's present generation have ended or are lost, and the
 * recorder has read what tells of it; false after 20 seconds. */
bool record_stage_reads(const struct record_stage *stage, uint32_t rank, uint64_t steps);

/* Of the archive's files now. */
uint64_t record_stage_bytes(const struct record_stage *stage);

/* Until the archive's files have @bytes; false after 20 seconds. */
bool record_stage_has_bytes(const struct record_stage *stage, uint64_t bytes);

/* Walks the archive: all holds, and each id is as the rule says. */
void record_stage_check(struct record_stage *stage);
void record_stage_check_at(struct record_stage *stage, const char *archive);

/* Steps of a rank whose end the archive tells, those that the engine lost too, over all
 * generations. */
uint64_t record_stage_steps(const struct record_stage *stage, uint32_t rank);

/* Walks it: so many steps of each rank are in it, and no gap. */
void record_stage_expect_steps(struct record_stage *stage, uint64_t first, uint64_t second,
			       uint64_t third);

#endif
