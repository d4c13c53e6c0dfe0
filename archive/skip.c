/* SPDX-License-Identifier: Apache-2.0 */
#include "archive/skip.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "archive/block.h"

#define SEARCH_BYTES (256u << 10) /* a multiple of ARCHIVE_ALIGN */

/* A place where a block may be, and its head. */
struct found {
	uint64_t offset;
	struct archive_block_head head;
};

static bool has_head(const struct archive_segment *segment, struct found *found)
{
	return found->offset < segment->bytes &&
	       pread(segment->fd, &found->head, sizeof(found->head), (off_t)found->offset) ==
		       (ssize_t)sizeof(found->head) &&
	       archive_block_intact(&found->head) &&
	       archive_segment_block_possible(segment, &found->head) &&
	       archive_block_span(&found->head) <= segment->bytes - found->offset;
}

/* The block behind @found, if it is there and follows it. */
static bool has_next(const struct archive_segment *segment, const struct found *found,
		     struct found *next)
{
	next->offset = found->offset + archive_block_span(&found->head);
	return next->offset < segment->bytes && has_head(segment, next) &&
	       next->head.number == found->head.number + 1 &&
	       next->head.previous_hash == found->head.head_hash;
}

/* The head of the damaged block itself is whole: so the next one's must name it. */
static bool find_next(const struct archive_segment *segment, struct found *found)
{
	struct found damaged = {.offset = segment->offset};

	return has_head(segment, &damaged) && damaged.head.number == segment->chain.number &&
	       damaged.head.previous_hash == segment->chain.hash &&
	       has_next(segment, &damaged, found);
}

/* ---- searching ---------------------------------------------------------- */

/* Offset of the first whole head at @from or behind it, found->offset; false: none. */
static bool find_head(const struct archive_segment *segment, uint64_t from, uint8_t *bytes,
		      struct found *found)
{
	for (; from < segment->bytes; from += SEARCH_BYTES) {
		ssize_t got = pread(segment->fd, bytes, SEARCH_BYTES, (off_t)from);

		for (ssize_t at = 0; at + (ssize_t)ARCHIVE_ALIGN <= got; at += ARCHIVE_ALIGN) {
			const uint32_t magic = ARCHIVE_BLOCK_MAGIC;

			found->offset = from + (uint64_t)at;
			if (!memcmp(bytes + at, &magic, sizeof(magic)) && has_head(segment, found))
				return true;
		}
		if (got < (ssize_t)SEARCH_BYTES)
			return false;
	}
	return false;
}

/* Whether heads follow each other from @found to the segment's last; else @broken is where
 * they do not any more. */
static bool reaches_end(const struct archive_segment *segment, const struct found *found,
			uint64_t *broken)
{
	struct found at = *found, next;

	while (!(at.head.flags & ARCHIVE_BLOCK_LAST)) {
		if (!has_next(segment, &at, &next)) {
			*broken = next.offset;
			return false;
		}
		at = next;
	}
	*broken = at.offset + archive_block_span(&at.head);
	return *broken == segment->bytes;
}

static bool search(const struct archive_segment *segment, struct found *found)
{
	uint64_t from = segment->offset + ARCHIVE_ALIGN;
	uint8_t *bytes = malloc(SEARCH_BYTES);
	bool good = false;

	while (bytes && !good && find_head(segment, from, bytes, found))
		good = reaches_end(segment, found, &from);
	free(bytes);
	return good;
}

/* ---- interface ---------------------------------------------------------- */

static uint64_t records_before(const struct archive_block_head *head)
{
	return head->records - head->own;
}

bool archive_segment_skip(struct archive_segment *segment, bool state,
			  struct archive_unread *skipped)
{
	const struct archive_chain chain = segment->chain;
	const struct archive_block_head *head;
	struct found found;

	if (segment->head.version < 2 || segment->closed || segment->offset >= segment->bytes ||
	    (!find_next(segment, &found) && !search(segment, &found)))
		return false;
	head = &found.head;
	if (head->number <= chain.number || head->state < chain.state ||
	    (head->state > chain.state && (head->state < chain.number || !state)) ||
	    (chain.records_known && records_before(head) < chain.records))
		return false;
	*skipped = (struct archive_unread){
		.bytes = found.offset - segment->offset,
		.blocks = head->number - chain.number,
		.records = chain.records_known ? records_before(head) - chain.records : 0,
		.unsized = !chain.records_known,
		.goes_on = found.offset,
		.state = head->state != chain.state,
	};
	segment->offset = found.offset;
	segment->chain = (struct archive_chain){
		.number = head->number,
		.hash = head->previous_hash,
		.records = records_before(head),
		.records_known = true,
		.state = head->state,
	};
	return true;
}
