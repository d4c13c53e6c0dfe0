/* SPDX-License-Identifier: Apache-2.0 */
/* An instance of several ranks, and a draft model's channel, with a daemon of its own. */
#ifndef TESTS_SUPPORT_RANKS_H
#define TESTS_SUPPORT_RANKS_H

#include <stdbool.h>
#include <stdint.h>

#include "tests/support/daemon.h"
#include "tests/support/engine.h"

#define RANKS 3u
#define RANKS_MAX_ROWS 64u

struct ranks {
	struct test_daemon daemon;
	char name[64]; /* of the instance */
	struct engine engines[RANKS], draft;
};

/* The daemon is started with these options; the ranks are opened one by one. */
void ranks_start(struct ranks *ranks, const char *const *args);
void ranks_stop(struct ranks *ranks);

void ranks_open(struct ranks *ranks, uint32_t rank);
void ranks_open_all(struct ranks *ranks);
void ranks_open_draft(struct ranks *ranks);

/* Steps of a rank have one row more than the rank's number. */
void ranks_run(struct ranks *ranks, uint32_t rank, uint32_t steps);

/* Whether that many steps of each rank can be read, at once or soon. */
bool ranks_published(const struct ranks *ranks, uint64_t steps);

/* "NAME/SUFFIX"; lives until the next call. */
const char *ranks_channel(const struct ranks *ranks, const char *suffix);

#endif
