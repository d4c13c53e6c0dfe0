/* SPDX-License-Identifier: Apache-2.0 */
/* Heads, blocks, entries. */
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "archive/block.h"

#define ENTRY_ALIGN 8u

uint64_t archive_hash(const void *bytes, size_t count)
{
	return XXH3_64bits(bytes, count);
}

static uint64_t segment_hash(const struct archive_segment_head *head)
{
	return archive_hash(head, offsetof(struct archive_segment_head, hash));
}

static uint64_t block_hash(const struct archive_block_head *head)
{
	return archive_hash(head, offsetof(struct archive_block_head, head_hash));
}

void archive_segment_seal(struct archive_segment_head *head)
{
	head->hash = segment_hash(head);
}

void archive_block_seal(struct archive_block_head *head)
{
	head->head_hash = block_hash(head);
}

bool archive_segment_intact(const struct archive_segment_head *head)
{
	return head->hash == segment_hash(head);
}

bool archive_block_intact(const struct archive_block_head *head)
{
	return head->magic == ARCHIVE_BLOCK_MAGIC && head->head_hash == block_hash(head);
}

size_t archive_entry_at(const void *raw, size_t bytes, size_t offset, struct archive_entry *entry,
			const void **payload)
{
	const uint8_t *at = (const uint8_t *)raw + offset;
	size_t left = bytes - offset;
	uint64_t whole;

	if (offset > bytes || left < sizeof(*entry))
		return 0;
	memcpy(entry, at, sizeof(*entry));
	whole = sizeof(*entry) + archive_align(entry->bytes, ENTRY_ALIGN);
	if (whole > left)
		return 0;
	*payload = at + sizeof(*entry);
	return offset + (size_t)whole;
}
