/* SPDX-License-Identifier: Apache-2.0 */
/* What is not read of a segment for damage: as far as its heads say. */
#ifndef ARCHIVE_UNREAD_H
#define ARCHIVE_UNREAD_H

#include <stdbool.h>
#include <stdint.h>

#include <r3ring/error.h>

#include "archive/segment.h"

struct archive_unread {
	uint64_t bytes;
	uint64_t blocks;  /* whose heads are whole and in their place, from the damage on */
	uint64_t records; /* that they say they have, without those repeated; at least */
	uint64_t unsized; /* places with bytes behind them of which not even that is known */
	uint64_t goes_on; /* offset in the segment at which reading does; 0: it does not */
	bool state;       /* what others are read by was in it, and reading goes on */
};

/* From where the segment was read to up to its end. */
struct archive_unread archive_unread_of(const struct archive_segment *segment);
void archive_unread_add(struct archive_unread *to, const struct archive_unread *from);

/* Says so behind what @err says; nothing where there is nothing. */
void archive_unread_tell(const struct archive_unread *unread, struct r3ring_error *err);

#endif
