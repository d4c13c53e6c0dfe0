/* SPDX-License-Identifier: Apache-2.0 */
/*
 * r3ring record: keeps the archive's index up to date, in a thread of its own, since that
 * takes as long as reading a segment.
 */
#ifndef TOOLS_RECORD_INDEX_H
#define TOOLS_RECORD_INDEX_H

#include <stdint.h>

struct record_index;

/* NULL: no thread or no memory; then it is made at the end only. Pairs with record_index_end().
 * @dir: must outlive it, as must @dir_fd, which says where that is by now. */
struct record_index *record_index_start(const char *dir, int dir_fd);

/* So many segments were made by now; a new one means that there is another to be indexed. */
void record_index_segments(struct record_index *index, uint64_t segments);

/* Ends the thread. NULL is fine. */
void record_index_end(struct record_index *index);

#endif
