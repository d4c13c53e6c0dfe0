/* SPDX-License-Identifier: Apache-2.0 */
/* A cursor from inside. */
#ifndef RING_CURSOR_H
#define RING_CURSOR_H

#include <stdbool.h>
#include <stdint.h>

#include "ring/internal.h"

/* How often a search is begun again when the writer overtakes it; after that
 * the oldest record of the last search is taken, however close. */
#define RESUME_TRIES 8

struct r3ring_cursor {
	const struct r3ring_segment *segment;
	enum r3ring_cursor_mode mode;
	bool view_open;
	bool total_known; /* whether `total` is */
	uint64_t total;   /* running total of units in front of the cursor */
	unsigned int empty_looks;
	uint64_t told_tail;  /* that cannot be, and was told of */
	unsigned int streak; /* records that were there without waiting for them */
	struct r3ring_cursor_stats stats;
	struct r3ring_desc desc; /* of the open view; holds its inline payload */
};

/* The next look at an empty slot asks whether that tells the truth, however few there were: for
 * who sleeps then, or does not look again. */
void cursor_doubt(struct r3ring_cursor *cursor);

#endif
