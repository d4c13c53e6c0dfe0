/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One segment's file: its head and its blocks, in their order. A block is given out only
 * when all of it is as its hashes, its chain and its numbers say.
 */
#ifndef ARCHIVE_SEGMENT_H
#define ARCHIVE_SEGMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <r3ring/error.h>

#include "archive/ahead.h"
#include "archive/format.h"

/* A block says more than this of itself: no record is so large. */
#define ARCHIVE_RAW_MAX (1u << 30)

/* What a block has to follow. */
struct archive_chain {
	uint64_t number;    /* of the next block */
	uint64_t hash;      /* of the block before it; 0: none */
	uint64_t records;   /* up to and including that */
	bool records_known; /* else the first block is believed */
	uint64_t state;     /* number of the newest block of the segment that has some; 0: none */
};

/* Room that is used again for every block. */
struct archive_room {
	void *bytes; /* aligned to ARCHIVE_ALIGN */
	size_t capacity;
};

struct archive_segment {
	int fd; /* -1: none is open */
	uint64_t number;
	uint64_t bytes;  /* of the file, when it was looked at last */
	uint64_t offset; /* behind the newest block */
	uint64_t start;  /* of the newest block */
	bool closed;     /* it was the last one, and says so */
	bool more;       /* and that another segment follows */
	struct archive_segment_head head;
	struct archive_block_head block; /* the newest */
	struct archive_chain chain;      /* for the next */
	const uint8_t *entries;          /* of the newest block, [block.raw] */
	struct archive_room stored, raw;
	void *decompressor;          /* ZSTD_DCtx */
	struct archive_ahead *ahead; /* NULL: blocks are read when they are asked for */
};

/*
 * Opens a segment's file and checks its head, but not whether it is the right one in its
 * archive.
 * @segment: the buffers of one that was closed are used again; zeroed at first, with
 *           fd -1. Without an open file on failure.
 * Returns 0, -ENOENT, -ENODATA (not whole: it ends before its head does), -EBADMSG,
 * -EPROTO (a later format), or the errno of opening or reading.
 */
int archive_segment_open(struct archive_segment *segment, int dir_fd, uint64_t number,
			 struct r3ring_error *err);
void archive_segment_close(struct archive_segment *segment);

/* Closes it and gives back its buffers. */
void archive_segment_free(struct archive_segment *segment);

/*
 * Reads the next block: sets start, block, entries, offset, chain and closed.
 * Returns 1, 0 (the file ends where a block ends), -ENODATA (what is behind the last block
 * is not a whole one: may be damage, or a write that was or is under way), -EBADMSG,
 * -ENOMEM, or the errno of reading; nothing is changed then.
 */
int archive_segment_next(struct archive_segment *segment, struct r3ring_error *err);

/* Whether a whole head of a block is one that a recorder of the segment's version writes. */
bool archive_segment_block_possible(const struct archive_segment *segment,
				    const struct archive_block_head *block);

/* "segment 00000002.r3seg, byte 4096: ..." with what is said by @format; returns @code. */
int archive_refuse(struct r3ring_error *err, int code, uint64_t number, uint64_t offset,
		   const char *format, ...) __attribute__((format(printf, 5, 6)));

#endif
