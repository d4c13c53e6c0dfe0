/* SPDX-License-Identifier: Apache-2.0 */
/* Heads of segments and blocks: sealing them. And walking over a block's entries. */
#ifndef ARCHIVE_BLOCK_H
#define ARCHIVE_BLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "archive/format.h"

static inline uint64_t archive_align(uint64_t bytes, uint64_t to)
{
	return (bytes + to - 1) / to * to;
}

/* Bytes that a block takes in its segment. */
static inline uint64_t archive_block_span(const struct archive_block_head *head)
{
	return sizeof(*head) + archive_align(head->stored, ARCHIVE_ALIGN);
}

uint64_t archive_hash(const void *bytes, size_t count);

/* Store the hash of a head that is filled in otherwise. */
void archive_segment_seal(struct archive_segment_head *head);
void archive_block_seal(struct archive_block_head *head);

/* Whether a head is what its writer sealed. */
bool archive_segment_intact(const struct archive_segment_head *head);
bool archive_block_intact(const struct archive_block_head *head);

/*
 * The entry at @offset of @raw: @entry is a copy, @payload points into @raw.
 * Returns the offset behind it and its padding; 0 when it does not fit (that is damage).
 */
size_t archive_entry_at(const void *raw, size_t bytes, size_t offset, struct archive_entry *entry,
			const void **payload);

#endif
