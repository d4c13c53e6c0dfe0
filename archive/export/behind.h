/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread that writes full buffers while the next ones are filled. What fails is said later,
 * at the latest by export_behind_wait().
 */
#ifndef ARCHIVE_EXPORT_BEHIND_H
#define ARCHIVE_EXPORT_BEHIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EXPORT_BEHIND_BYTES (512u << 10) /* of a buffer; 64-byte aligned */

struct export_behind;

/* Writes to @fd: at offsets, or, where that is no file (@sink), one behind the other. NULL: there
 * is one processor only, or no memory. */
struct export_behind *export_behind_create(int fd, bool sink);
void export_behind_destroy(struct export_behind *behind); /* waits; NULL is fine */

/* The next buffer to be filled; waits until one is free. The caller's until it is given.
 * Returns 0, or the first -errno that a write gave. */
int export_behind_next(struct export_behind *behind, uint8_t **bytes);

/* The first @bytes of that buffer are to be at @offset. */
void export_behind_give(struct export_behind *behind, size_t bytes, uint64_t offset);

/* Waits until all is written. Returns 0, or the first -errno that a write gave. */
int export_behind_wait(struct export_behind *behind);

#endif
