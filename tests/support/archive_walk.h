/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads a whole archive into memory by the layout in archive/format.h and nothing else of
 * the archive's code, checks its hashes, chain and accounts, and says what does not hold.
 */
#ifndef TESTS_SUPPORT_ARCHIVE_WALK_H
#define TESTS_SUPPORT_ARCHIVE_WALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "archive/format.h"

struct walked_entry {
	struct archive_entry head;
	const uint8_t *payload; /* head.bytes */
	uint32_t segment;       /* index below */
	uint32_t block;         /* likewise */
	char *channel;          /* NULL of RESUMED and READY */
	uint64_t generation;    /* of its channel by then */
};

struct walked_block {
	struct archive_block_head head;
	uint32_t segment;
	uint64_t offset;
	uint8_t *raw;
};

struct walked_segment {
	struct archive_segment_head head;
	uint64_t bytes;
};

struct archive_walk {
	struct walked_segment *segments;
	struct walked_block *blocks;
	struct walked_entry *entries;
	size_t segment_count, block_count, entry_count;
	char problem[256]; /* the first; "" when all holds */
	struct walk_channels *channels;
};

void archive_walk(struct archive_walk *walk, const char *dir);
void archive_walk_free(struct archive_walk *walk);

/* RECORD and SKIPPED of a channel that are not repeated. */
uint64_t archive_walk_records(const struct archive_walk *walk, const char *channel);
/* Entries of a kind, repeated or not. */
uint64_t archive_walk_kind(const struct archive_walk *walk, uint16_t kind);
/* Records that gaps say are lost, of known number. */
uint64_t archive_walk_lost(const struct archive_walk *walk);

#endif
