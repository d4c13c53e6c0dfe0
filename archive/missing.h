/* SPDX-License-Identifier: Apache-2.0 */
/* Segments that an archive had, and that are not there any more. */
#ifndef ARCHIVE_MISSING_H
#define ARCHIVE_MISSING_H

#include <stdbool.h>
#include <stdint.h>

#include "archive/listing.h"

/* Whether segments are missing in front of the first one: it is not number 1, and none of
 * those that are there was written by a recorder that removes the oldest. */
bool archive_lacks_beginning(const struct archive_listing *listing, int dir_fd);

/* The first segment in front of the newest that should be there and is not; 0: none. */
uint64_t archive_missing_segment(const struct archive_listing *listing, int dir_fd);

/*
 * A segment behind the newest one that is there: the index of this archive (@uuid) in @dir
 * has all of it. 0: it knows of none, or there is no such index.
 */
uint64_t archive_missing_newest(const struct archive_listing *listing, const char *dir,
				const uint8_t uuid[16]);

#endif
