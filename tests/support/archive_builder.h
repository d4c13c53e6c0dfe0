/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes archives for tests, by hand: straight from what archive/format.h says, and by
 * nothing of what writes or reads archives otherwise. Whatever goes wrong here ends the
 * process.
 */
#ifndef TESTS_SUPPORT_ARCHIVE_BUILDER_H
#define TESTS_SUPPORT_ARCHIVE_BUILDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "archive/format.h"

struct builder_bytes {
	uint8_t *at;
	size_t len, room;
};

struct archive_builder {
	char dir[64]; /* removed, with what is in it, by builder_close() and at the end */
	uint8_t uuid[16];
	int level;        /* zstd's for blocks; 0: none */
	uint32_t version; /* of the format: 2, or what is set behind builder_open() */
	uint32_t segment_flags;
	uint32_t layer_end; /* layers from it on are left out; 0: none */
	bool apart;         /* state is in blocks of its own, as recorders have it */
	uint64_t time_ns;

	uint64_t segment, block, previous_hash, records;
	uint64_t state_block;      /* the newest of the segment with entries that others need */
	uint32_t own;              /* records of the block */
	bool state;                /* it has such entries */
	struct builder_bytes file; /* the segment so far */
	struct builder_bytes block_entries;
	uint32_t entries;
	struct archive_builder *next;
};

/* Makes the directory. */
void builder_open(struct archive_builder *builder, int level);
void builder_close(struct archive_builder *builder);

/* Begins the next segment: its head. */
void builder_segment(struct archive_builder *builder);

/* Adds an entry to the block; `bytes` is filled in. */
void builder_entry(struct archive_builder *builder, struct archive_entry entry, const void *payload,
		   size_t bytes);

/* Ends the block. */
void builder_block(struct archive_builder *builder, uint32_t flags);

/* Ends the block and writes the segment's file: closed, or as a recorder leaves it that
 * was killed. */
void builder_segment_end(struct archive_builder *builder, bool closed);

/* The same, closed, and another one follows. */
void builder_segment_full(struct archive_builder *builder);

/* Entries of kinds. */
void builder_channel(struct archive_builder *builder, uint16_t channel, const char *name,
		     bool repeated);
void builder_generation(struct archive_builder *builder, uint16_t channel, uint64_t generation,
			const uint8_t uuid[16], uint64_t seq, bool repeated);
void builder_ready(struct archive_builder *builder);
void builder_gap(struct archive_builder *builder, uint16_t channel, uint64_t from, uint64_t to,
		 enum archive_gap_cause cause);

/* ---- files ------------------------------------------------------------- */

/* Path of a file of it; a static text. */
const char *builder_path(const struct archive_builder *builder, const char *name);

/* A whole file; to be freed. */
struct builder_bytes builder_read(const char *path);
void builder_write(const char *path, const void *bytes, size_t len);

/* Makes every hash right again in a segment's bytes, as far as its blocks can be found, so
 * that what is behind the hashes is looked at. Returns the head of the last block, zeroed
 * where there is none. */
struct archive_block_head builder_reseal(uint8_t *bytes, size_t len);

#endif
