/* SPDX-License-Identifier: Apache-2.0 */
/* The segments in an archive's directory, by their names. */
#ifndef ARCHIVE_LISTING_H
#define ARCHIVE_LISTING_H

#include <stdbool.h>
#include <stdint.h>

#define ARCHIVE_NAME_MAX 40 /* "00000001.r3seg", with more digits where needed */

/* Name of a segment's file; returns @name. */
const char *archive_segment_name(char name[ARCHIVE_NAME_MAX], uint64_t number);

/* The number that a file's name says; 0: it is no segment's name. */
uint64_t archive_segment_number(const char *name);

struct archive_listed {
	uint64_t number;
	uint64_t bytes; /* of the file */
};

struct archive_listing {
	struct archive_listed *segments; /* [count], numbers rising */
	uint32_t count;
};

/*
 * Lists the segments in @dir_fd. Files that have other names are passed over.
 * Returns 0, -ENOMEM, or the errno of reading the directory; @listing is untouched on
 * failure. Pairs with archive_listing_free().
 */
int archive_listing_read(struct archive_listing *listing, int dir_fd);
void archive_listing_free(struct archive_listing *listing);

/* Index of the first segment whose number is @number or above; count: none. */
uint32_t archive_listing_from(const struct archive_listing *listing, uint64_t number);

/* Whether somebody holds the archive's lock: a recorder writes it now. */
bool archive_is_being_written(int dir_fd);

#endif
