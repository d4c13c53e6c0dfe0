/* SPDX-License-Identifier: Apache-2.0 */
/* Verifying the index beside the segments: what it says of each is made anew and compared. */
#ifndef ARCHIVE_VERIFY_INDEX_H
#define ARCHIVE_VERIFY_INDEX_H

#include "archive/reader.h"
#include "archive/verify.h"

struct verify_index;

/* @verified, @hooks: where problems go; must outlive it. NULL: no memory. */
struct verify_index *verify_index_open(const char *dir, const struct archive_reader *reader,
				       const struct archive_verify_hooks *hooks,
				       struct archive_verified *verified);
void verify_index_close(struct verify_index *index);

/* Takes the next entry. Returns 0 or -ENOMEM. */
/* Something of the segment that is read cannot be: it is not compared. */
void verify_index_damage(struct verify_index *index);

int verify_index_take(struct verify_index *index, const struct archive_item *item);

/* No more come: compares the last segment, and looks for segments that are missing, in the
 * index or in the archive. Returns likewise. */
int verify_index_finish(struct verify_index *index);

#endif
