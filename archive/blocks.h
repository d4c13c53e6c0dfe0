/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The way of a block: one thread fills it, some compress, one writes, each in its turn.
 *
 *	take, fill, give  ->  claim, compress, packed  ->  next, write, written
 *
 * Blocks are claimed and written in the order in which they were given; memory is bounded,
 * for there are only so many.
 */
#ifndef ARCHIVE_BLOCKS_H
#define ARCHIVE_BLOCKS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "archive/format.h"

#define BLOCKS 16u

struct block {
	/* The head's place, then the entries: `capacity` bytes. */
	uint8_t *raw;
	uint8_t *packed; /* likewise; NULL while there is no compression */
	size_t capacity;
	uint8_t *large;       /* memory of its own for one large record, else NULL */
	const uint8_t *ready; /* once packed: raw or packed */

	struct archive_block_head head; /* raw, entries, flags, records: by who fills */
	bool begins_segment;
	bool has_state;   /* as in format.h */
	uint64_t segment; /* counts segments, for blocks_segment_bytes() */

	/* Under the lock. */
	bool is_packed, is_written;

	/* The writing thread's. */
	uint64_t offset;
	uint32_t left; /* bytes still to be written */
	bool stored;   /* all of it is in the file */
};

struct blocks {
	pthread_mutex_t lock;
	pthread_cond_t freed, given;
	struct block blocks[BLOCKS];
	uint64_t n_given, n_claimed, n_taken, n_freed; /* n_taken: by the writing thread */
	bool closed;                                   /* nothing will be given any more */
	/* Of the newest segment: bytes packed, and of blocks that are not yet. */
	uint64_t segment, segment_bytes, segment_unpacked;
	uint64_t raw_bytes, packed_bytes; /* of all that was packed */

	void *memory;
	size_t memory_bytes;
	size_t capacity; /* of a block's entries; a larger record has one of its own */
	int level;       /* zstd's; 0: no compression */
	int wake_fd;     /* eventfd of the writing thread */
};

/* @capacity: bytes of entries of a block, at most ARCHIVE_BLOCK_BYTES. Returns 0 or -errno. */
int blocks_init(struct blocks *blocks, size_t capacity, int level);
void blocks_release(struct blocks *blocks);

/* ---- filling ------------------------------------------------------------ */

/* The next one, empty; waits until there is one. */
struct block *blocks_take(struct blocks *blocks);

/* Gives it memory for @bytes of entries where it has less. Returns 0 or -ENOMEM. */
int block_enlarge(struct block *block, size_t bytes);

void blocks_give(struct blocks *blocks, struct block *block);
void blocks_close(struct blocks *blocks);

/* Bytes of the newest segment, as far as is known: what is not packed yet is taken to
 * shrink like what is. */
uint64_t blocks_segment_bytes(struct blocks *blocks);

/* ---- compressing -------------------------------------------------------- */

/* The oldest one given and not yet claimed; waits for it. NULL: there will be none. */
struct block *blocks_claim(struct blocks *blocks);
void blocks_packed(struct blocks *blocks, struct block *block);

/* ---- writing ------------------------------------------------------------ */

/* The oldest one not yet taken, once it is packed; else NULL. @peek: does not take it. */
struct block *blocks_next(struct blocks *blocks, bool peek);

/* Frees what was written, in order. @note is called with each, before others can fill it. */
void blocks_written(struct blocks *blocks, struct block *block,
		    void (*note)(void *ctx, const struct block *block), void *ctx);

/* Whether all there will ever be was written. */
bool blocks_done(struct blocks *blocks);

/* Wakes the writing thread. */
void blocks_wake(const struct blocks *blocks);

#endif
