/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks of a segment, read, hashed and decompressed by threads ahead of whoever reads it. What
 * cannot be had so, for whatever reason, is read as without: this only saves time.
 */
#ifndef ARCHIVE_AHEAD_H
#define ARCHIVE_AHEAD_H

#include <stdint.h>

#include "archive/entry.h"
#include "archive/format.h"

struct archive_ahead;

/* With as many threads as there are processors to spare; NULL: none, or no memory. */
struct archive_ahead *archive_ahead_create(void);
void archive_ahead_destroy(struct archive_ahead *ahead);

/*
 * The entries of the block whose head @head is at @offset of @fd, the file's @bytes long, and
 * what they are: they have their hashes and are what archive_entries_check()
 * takes. There until the next call. Goes on with the blocks behind it.
 * Returns NULL where they are to be read otherwise.
 */
const uint8_t *archive_ahead_take(struct archive_ahead *ahead, int fd, uint64_t bytes,
				  uint64_t offset, const struct archive_block_head *head,
				  struct archive_content *content);

/* Forgets what was read, before the file is closed. */
void archive_ahead_forget(struct archive_ahead *ahead);

#endif
