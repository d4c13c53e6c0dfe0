/* SPDX-License-Identifier: Apache-2.0 */
/*
 * r3ring record: keeps the archive's index up to date, in a thread of its own, since that
 * takes as long as reading a segment.
 */
#ifndef TOOLS_RECORD_INDEX_H
#define TOOLS_RECORD_INDEX_H

#include <stdint.h>

#include <r3ring/error.h>

struct record_index;

/* NULL: no thread or no memory; then it is made at the end only. Pairs with
 * record_index_finish(). @dir: must outlive it. */
struct record_index *record_index_start(const char *dir);

/* So many segments were made by now; a new one means that there is another to be indexed. */
void record_index_segments(struct record_index *index, uint64_t segments);

/* The archive was closed: ends the thread, indexes what is left. @index may be NULL.
 * Returns as archive_index_update(). */
int record_index_finish(struct record_index *index, const char *dir, struct r3ring_error *err);

#endif
