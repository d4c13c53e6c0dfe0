/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The index: DIR/index.sqlite says which requests an archive has, and where. It is made
 * from the segments and can be made again at any time; nothing that decides on what is true
 * reads it. docs/ARCHIVE.md has its tables.
 */
#ifndef ARCHIVE_INDEX_H
#define ARCHIVE_INDEX_H

#include <r3ring/error.h>

#define ARCHIVE_INDEX "index.sqlite"

/*
 * Brings the index up to date: reads what is new, which is whole segments and the newest
 * one from its beginning, and forgets segments that are gone. One that is missing, is of
 * another archive or another version, or cannot be read is made anew. May run beside a
 * recorder and readers; takes as long as reading what is new, so not in a thread that
 * somebody waits for.
 *
 * Returns 0, -ENOENT (no archive there), -EBADMSG (segments are damaged; what is whole of
 * them is in the index), -EBUSY (somebody else is at it for longer than ten seconds),
 * -EACCES, -EROFS, -ENOSPC, -ENOMEM, -EIO.
 */
int archive_index_update(const char *dir, struct r3ring_error *err);

/* Makes it anew from the segments. Returns likewise. */
int archive_index_rebuild(const char *dir, struct r3ring_error *err);

#endif
