/* SPDX-License-Identifier: Apache-2.0 */
/* The index's file: SQLite tables of segments and of what each has of which request. */
#ifndef ARCHIVE_INDEX_STORE_H
#define ARCHIVE_INDEX_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include <r3ring/error.h>

#include "archive/index_tally.h"

struct index_store;

enum index_segment_state {
	INDEX_SEGMENT_OPEN = 0,    /* more may come */
	INDEX_SEGMENT_CLOSED = 1,  /* all of it is in the index */
	INDEX_SEGMENT_DAMAGED = 2, /* all in front of the damage */
};

struct index_segment {
	uint64_t number;
	uint64_t bytes;             /* of the file then */
	uint32_t state;             /* enum index_segment_state */
	uint64_t records;           /* up to its end */
	uint64_t first_ns, last_ns; /* of its blocks */
};

/*
 * Opens the index in @dir. @anew: makes it, whatever is there, which stays as it is until the
 * commit puts the new one in its place.
 * Returns 0, -ENOENT, -EBADMSG (no index, or one of another version), or as those below.
 * Pairs with index_store_close().
 */
int index_store_open(struct index_store **store, const char *dir, bool anew,
		     struct r3ring_error *err);
void index_store_close(struct index_store *store);

/* All below return 0, -EBADMSG (the file is damaged), -EBUSY, -EACCES, -EROFS, -ENOSPC,
 * -ENOMEM, -EIO. */

/* Everything between begin and commit is there or nothing of it; close undoes. */
int index_store_begin(struct index_store *store, struct r3ring_error *err);
int index_store_commit(struct index_store *store, struct r3ring_error *err);

int index_store_get_uuid(struct index_store *store, uint8_t uuid[16], struct r3ring_error *err);
int index_store_set_uuid(struct index_store *store, const uint8_t uuid[16],
			 struct r3ring_error *err);

/* A segment that is in the index: returns 1, 0 (it is not), or as above. */
int index_store_get_segment(struct index_store *store, uint64_t number,
			    struct index_segment *segment, struct r3ring_error *err);

/* The highest number of those that it has to their end, 0: none. */
int index_store_newest_closed(struct index_store *store, uint64_t *number,
			      struct r3ring_error *err);

/* How many segments from @first to @last are in it. */
int index_store_count(struct index_store *store, uint64_t first, uint64_t last, uint64_t *count,
		      struct r3ring_error *err);

/* What was open at a segment's end, [count], to be freed; none where it is not there. */
int index_store_get_open(struct index_store *store, uint64_t number, struct index_open **open,
			 uint32_t *count, struct r3ring_error *err);

/* Forgets all segments outside of [first, end). */
int index_store_keep(struct index_store *store, uint64_t first, uint64_t end,
		     struct r3ring_error *err);

/* Adds a segment with what the tally has of it. */
int index_store_put(struct index_store *store, const struct index_segment *segment,
		    const struct index_tally *tally, struct r3ring_error *err);

/*
 * Compares a segment in the index with the tally. @standalone: the tally did not see the
 * segment before, so that what was carried over is not compared.
 * Returns 0, 1 (they differ: @err says in what), or as above.
 */
int index_store_compare(struct index_store *store, uint64_t number, const struct index_tally *tally,
			bool standalone, struct r3ring_error *err);

#endif
