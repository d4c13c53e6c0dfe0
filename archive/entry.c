/* SPDX-License-Identifier: Apache-2.0 */
#include <stdbool.h>
#include <string.h>

#include <r3ring/record.h>
#include <r3ring/ring.h>

#include "archive/entry.h"
#include "archive/zeros.h"

#define PADDING 8u
#define NAME_MAX_BYTES (R3RING_INSTANCE_MAX + 17u) /* "/4294967295.draft" */

uint64_t archive_entry_bytes(const struct archive_entry *entry)
{
	return sizeof(*entry) + (entry->bytes + (uint64_t)PADDING - 1) / PADDING * PADDING;
}

bool archive_entry_is_state(const struct archive_entry *entry)
{
	return (entry->flags & ARCHIVE_ENTRY_REPEATED) ||
	       (entry->kind != ARCHIVE_RECORD && entry->kind != ARCHIVE_SKIPPED &&
		entry->kind != ARCHIVE_GAP && entry->kind != ARCHIVE_UNFOLLOWED);
}

static bool gap_possible(const struct archive_entry *entry, const uint8_t *payload)
{
	struct archive_gap gap;

	if (entry->bytes != sizeof(gap))
		return false;
	memcpy(&gap, payload, sizeof(gap));
	if (gap.cause < ARCHIVE_GAP_LATE || gap.cause > ARCHIVE_GAP_UNSYNCED || gap.reserved)
		return false;
	if (!gap.lost)
		return !gap.to_seq;
	return gap.from_seq && gap.to_seq >= gap.from_seq &&
	       gap.to_seq - gap.from_seq == gap.lost - 1;
}

static bool name_possible(const struct archive_entry *entry, const uint8_t *payload)
{
	return entry->bytes && entry->bytes <= NAME_MAX_BYTES &&
	       !memchr(payload, '\0', entry->bytes);
}

static bool is_repeated(const struct archive_entry *entry)
{
	return entry->flags & ARCHIVE_ENTRY_REPEATED;
}

static bool is_record(const struct archive_entry *entry)
{
	return entry->kind == ARCHIVE_RECORD || entry->kind == ARCHIVE_SKIPPED;
}

static bool record_possible(const struct archive_entry *entry)
{
	return entry->type && (entry->seq || is_repeated(entry)) &&
	       (entry->kind == ARCHIVE_RECORD || (!entry->bytes && !is_repeated(entry)));
}

static bool possible(const struct archive_entry *entry, const uint8_t *payload)
{
	if (entry->reserved)
		return false;
	if (is_record(entry))
		return record_possible(entry);
	if (entry->type || (entry->flags & ~ARCHIVE_ENTRY_REPEATED))
		return false;
	switch (entry->kind) {
	case ARCHIVE_CHANNEL:
		return name_possible(entry, payload);
	case ARCHIVE_GENERATION:
		return entry->bytes == sizeof(struct archive_generation);
	case ARCHIVE_GAP:
		return !is_repeated(entry) && gap_possible(entry, payload);
	case ARCHIVE_RESUMED:
		return !is_repeated(entry) && entry->bytes == sizeof(struct archive_resumed);
	case ARCHIVE_READY:
		return !entry->bytes;
	case ARCHIVE_UNFOLLOWED:
		return !is_repeated(entry) && !entry->bytes && entry->seq;
	default:
		return false;
	}
}

const char *archive_entries_check(const uint8_t *bytes, uint32_t size, uint32_t count,
				  struct archive_content *content)
{
	uint32_t at = 0;

	*content = (struct archive_content){0};
	for (uint32_t i = 0; i < count; i++) {
		struct archive_entry entry;
		const uint8_t *payload;
		uint64_t whole;

		if (size - at < sizeof(entry))
			return "has fewer entries than its head says";
		memcpy(&entry, bytes + at, sizeof(entry));
		whole = archive_entry_bytes(&entry);
		if (whole > size - at)
			return "has an entry that reaches beyond it";
		payload = bytes + at + sizeof(entry);
		if (!possible(&entry, payload) ||
		    !archive_all_zero(payload + entry.bytes, whole - sizeof(entry) - entry.bytes))
			return "has an entry that no r3ring of this format writes";
		content->records += is_record(&entry) && !is_repeated(&entry);
		content->state |= archive_entry_is_state(&entry);
		at += (uint32_t)whole;
	}
	return at == size ? NULL : "has more bytes than its entries";
}
