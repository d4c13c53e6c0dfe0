/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thread that puts packed blocks into segment files, in their order: it chains their
 * heads, keeps several writes in flight, syncs, begins segments and removes the oldest.
 */
#ifndef ARCHIVE_STORE_H
#define ARCHIVE_STORE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "archive/blocks.h"
#include "archive/disk.h"
#include "archive/segments.h"
#include "archive/writer.h"

/* Where the chain of blocks stands. */
struct store_chain {
	uint64_t block; /* number of the newest */
	uint64_t hash;  /* its head_hash */
	uint64_t records;
	uint32_t flags; /* its own */
	uint64_t state; /* number of the newest one of its segment that has some, 0: none */
};

/* The newest mark of a segment's end. */
struct store_end {
	uint64_t segment, offset;
	struct archive_block_head head;
};

struct store {
	pthread_t thread;
	struct blocks *blocks;
	struct disk disk;
	struct archive_writer_options options; /* all filled in */
	uint8_t uuid[16];

	int dir_fd;
	struct segment_files files; /* the newest is the one written; its bytes: when complete */
	int fd;                     /* its file, -1: none yet */
	uint64_t offset;            /* where its next block goes */
	struct store_chain given;   /* up to what is in flight */
	struct store_chain written; /* up to what is in the file without a hole */
	uint64_t written_to;        /* offset behind that */
	bool hole;                  /* a write failed: nothing behind it counts */
	/* Of blocks that are not in the file for that. */
	uint64_t unwritten_bytes, unwritten_records;
	struct store_end end; /* of the segment that was closed last */

	bool pushing;
	uint64_t pushed_to; /* offset: what is before it was pushed, or synced */
	bool syncing;
	uint64_t sync_block, sync_records; /* what the sync in flight covers */
	uint64_t synced_block;
	uint64_t sync_at_ns; /* not before */

	/* Records of the archive in front of the first file, and of the present one. */
	uint64_t before, segment_before;
	bool countable; /* that is known, and no file between is missing */

	/* For others: under the lock. */
	pthread_mutex_t lock;
	struct archive_writer_stats stats;
	struct r3ring_error err;
	uint32_t failed; /* atomic: `err` is there */
};

/* Where an archive that is gone on with stands. */
struct store_start {
	uint8_t uuid[16];
	struct segment_files files; /* taken over */
	struct store_chain chain;
};

/*
 * Starts the thread. @dir_fd and @blocks stay the caller's. Returns 0 or -errno, and then
 * @start->files is still the caller's.
 */
int store_start(struct store *store, struct blocks *blocks, int dir_fd,
		const struct archive_writer_options *options, const struct store_start *start);

/*
 * Once blocks_close() was called: waits until all is written and synced.
 *
 * @repeated: bytes that the next segment would say again.
 *
 * Returns 0 or the first error, with its words in @err.
 */
int store_join(struct store *store, uint64_t repeated, struct r3ring_error *err);
void store_release(struct store *store);

/* The first error, 0: none. Any thread. */
int store_failed(const struct store *store);

void store_get_stats(struct store *store, struct archive_writer_stats *stats);

/* Inside. */
void store_fail(struct store *store, int code, const char *what);
/* The thread has ended, and what does not count is cut: says of a full disk what it has by now,
 * and what it lacks. */
void store_say_full(struct store *store, uint64_t repeated);
/* Fails (-ESTALE) where the directory or the present segment is no longer there to be found. */
void store_notice_removal(struct store *store);
/* Ends the present segment, if there is one, and makes the next. Nothing is in flight.
 * False: it failed. */
bool store_begin_segment(struct store *store);
/* Whether a block of @span bytes may be written; removes segments where it then may. */
bool store_has_room(struct store *store, uint64_t span);
/* store_count.c: at the start; once the oldest is gone, the records that it had; at the end. */
void store_count_begin(struct store *store);
uint64_t store_count_removed(struct store *store);
void store_count_tell(const struct store *store, struct archive_writer_stats *stats);
/* All is written: marks the end, syncs, closes. After a failure it cuts what does not count. */
void store_finish(struct store *store);

#endif
