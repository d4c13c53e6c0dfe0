/* SPDX-License-Identifier: Apache-2.0 */
/* What the index says of a segment as a whole. */
#ifndef ARCHIVE_INDEX_SEGMENT_H
#define ARCHIVE_INDEX_SEGMENT_H

#include "archive/index_store.h"
#include "archive/reader_internal.h"

/* What it has to say of one that was read so far. */
struct index_segment index_segment_of(const struct archive_progress *progress, bool damaged);

/*
 * Compares it with what the index says.
 *
 * @tally: at the segment's end, for what is open there; NULL: that is not compared.
 *
 * Returns 0, 1 (they differ: @err says in what), or an errno of the index.
 */
int index_segment_compare(struct index_store *store, const struct index_segment *segment,
			  const struct index_tally *tally, struct r3ring_error *err);

/*
 * At the end of a segment whose predecessor is gone: what was open before it is known to the
 * index alone, and @tally takes it from there. Returns likewise, or -ENOMEM.
 */
int index_segment_adopt(struct index_store *store, uint64_t number, struct index_tally *tally,
			struct r3ring_error *err);

/*
 * Whether the index has rows that belong to nothing: of segments in front of @first, of
 * segments that it does not know, of requests that nothing is of. Returns likewise.
 */
int index_segment_compare_rest(struct index_store *store, uint64_t first, struct r3ring_error *err);

#endif
