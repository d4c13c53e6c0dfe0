/* SPDX-License-Identifier: Apache-2.0 */
/* Going on behind damage in a segment, where what is behind it can be read without it. */
#ifndef ARCHIVE_SKIP_H
#define ARCHIVE_SKIP_H

#include <stdbool.h>

#include "archive/unread.h"

/*
 * The next block of @segment is damaged: goes to the first one behind it that is known to be the
 * segment's. Its own entries are not looked at.
 *
 * @state: whether to go on though those in between had state, which the caller then sees to.
 *
 * Which one that is: the next, where the damaged one's head is whole, since that says where it is
 * and what its hash must be; else the first from which on heads follow each other up to the
 * segment's last, for what one head names no other bytes can be.
 *
 * @skipped: receives what is passed over.
 *
 * Returns false where reading cannot go on in this segment: nothing is changed then.
 */
bool archive_segment_skip(struct archive_segment *segment, bool state,
			  struct archive_unread *skipped);

#endif
