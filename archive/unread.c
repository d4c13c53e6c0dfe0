/* SPDX-License-Identifier: Apache-2.0 */
#include "archive/unread.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "archive/block.h"

/* Whether the head at @offset is whole, and follows. */
static bool read_head(const struct archive_segment *segment, const struct archive_chain *chain,
		      uint64_t offset, struct archive_block_head *head)
{
	if (pread(segment->fd, head, sizeof(*head), (off_t)offset) != (ssize_t)sizeof(*head))
		return false;
	return archive_block_intact(head) && head->number == chain->number &&
	       head->previous_hash == chain->hash;
}

/* The first block's records are a difference to what came before, if that is known. */
static uint64_t records_of(const struct archive_chain *chain, const struct archive_block_head *head)
{
	return chain->records_known && head->records > chain->records
		       ? head->records - chain->records
		       : 0;
}

struct archive_unread archive_unread_of(const struct archive_segment *segment)
{
	struct archive_unread unread = {0};
	struct archive_chain chain = segment->chain;
	struct archive_block_head head;
	uint64_t offset = segment->offset;
	bool sized = chain.records_known;

	if (segment->closed || offset >= segment->bytes)
		return unread;
	unread.bytes = segment->bytes - offset;
	while (offset < segment->bytes && read_head(segment, &chain, offset, &head)) {
		unread.blocks++;
		unread.records += records_of(&chain, &head);
		chain = (struct archive_chain){.number = head.number + 1,
					       .hash = head.head_hash,
					       .records = head.records,
					       .records_known = true};
		offset += archive_block_span(&head);
	}
	unread.unsized = !sized || offset < segment->bytes;
	return unread;
}

void archive_unread_add(struct archive_unread *to, const struct archive_unread *from)
{
	to->bytes += from->bytes;
	to->blocks += from->blocks;
	to->records += from->records;
	to->unsized += from->unsized;
}

static const char *where_to(const struct archive_unread *unread, char place[static 32])
{
	if (!unread->goes_on)
		return "the segment's end";
	snprintf(place, 32, "byte %" PRIu64, unread->goes_on);
	return place;
}

void archive_unread_tell(const struct archive_unread *unread, struct r3ring_error *err)
{
	size_t used = err ? strlen(err->text) : 0;
	char place[32];

	if (!err || !unread->bytes)
		return;
	used += (size_t)snprintf(err->text + used, sizeof(err->text) - used,
				 "; nothing is read from there to %s, %" PRIu64 " bytes",
				 where_to(unread, place), unread->bytes);
	if (used >= sizeof(err->text))
		return;
	if (unread->records)
		snprintf(err->text + used, sizeof(err->text) - used, " with %s%" PRIu64 " records",
			 unread->unsized ? "at least " : "", unread->records);
	else if (unread->unsized)
		snprintf(err->text + used, sizeof(err->text) - used,
			 " with a number of records that is not known");
	used = strlen(err->text);
	if (unread->state)
		snprintf(err->text + used, sizeof(err->text) - used,
			 "; nor is what follows of a channel that may have begun, or begun anew, "
			 "in there, up to its next generation");
}
