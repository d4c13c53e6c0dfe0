/* SPDX-License-Identifier: Apache-2.0 */
/* Counting what entries say, without asking whether it is true. */
#ifndef ARCHIVE_COUNT_H
#define ARCHIVE_COUNT_H

#include "archive/reader.h"
#include "archive/verify.h"

/*
 * Adds an entry to @to: records, steps, rows, requests, gaps, resumptions; no losses of channels
 * (archive/losses.h).
 *
 * @decoded: what a RECORD was decoded to; NULL where that failed, or of other kinds.
 */
void archive_count(struct archive_verified *to, const struct archive_item *item,
		   const struct r3ring_record *decoded);

#endif
