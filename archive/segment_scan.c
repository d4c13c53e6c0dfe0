/* SPDX-License-Identifier: Apache-2.0 */
/* How far a segment is whole, and what it says. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <sys/stat.h>
#include <unistd.h>

#include "archive/block.h"
#include "archive/segment_scan.h"

#define RAW_MAX (1u << 30)        /* of a block: no record is larger */
#define SEARCH_BYTES (256u << 10) /* a multiple of ARCHIVE_ALIGN */

/* Returns 1 when all was there, 0 when not, or -errno. */
static int read_at(int fd, void *bytes, size_t count, uint64_t offset)
{
	uint8_t *at = bytes;

	while (count) {
		ssize_t got = pread(fd, at, count, (off_t)offset);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return got < 0 ? -errno : 0;
		at += got;
		offset += (uint64_t)got;
		count -= (size_t)got;
	}
	return 1;
}

/* ---- entries ------------------------------------------------------------ */

static int feed_generation(struct channel_state *state, const struct archive_entry *entry,
			   const void *payload)
{
	struct archive_generation generation;

	if (entry->bytes != sizeof(generation))
		return -EBADMSG;
	memcpy(&generation, payload, sizeof(generation));
	channel_state_generation(state, &generation);
	return 0;
}

static int feed_gap(struct channel_state *state, const struct archive_entry *entry,
		    const void *payload)
{
	struct archive_gap gap;

	if (entry->bytes != sizeof(gap))
		return -EBADMSG;
	memcpy(&gap, payload, sizeof(gap));
	channel_state_gap(state, &gap);
	return 0;
}

/* What is repeated has numbers of its own. */
static int feed_record(struct channel_state *state, const struct archive_entry *entry,
		       const void *payload)
{
	const struct r3ring_view view = {
		.seq = entry->seq,
		.step = entry->step,
		.units = entry->units,
		.generation = state->generation.generation,
		.data = payload,
		.len = entry->bytes,
		.type = entry->type,
		.flags = entry->flags & (uint16_t)~ARCHIVE_ENTRY_REPEATED,
	};
	struct archive_generation generation = state->generation;
	int r = channel_state_record(state, &view);

	if (entry->flags & ARCHIVE_ENTRY_REPEATED)
		state->generation = generation;
	return r;
}

static int feed_channel(struct channel_states *states, const struct archive_entry *entry,
			const void *payload)
{
	uint32_t known = channel_states_find(states, payload, entry->bytes);
	int index = known == UINT32_MAX ? channel_states_add(states, payload, entry->bytes)
					: (int)known;

	if (index < 0)
		return index;
	return index == entry->channel ? 0 : -EBADMSG;
}

static int feed_of_channel(struct channel_states *states, const struct archive_entry *entry,
			   const void *payload)
{
	struct channel_state *state;

	if (entry->kind == ARCHIVE_CHANNEL)
		return feed_channel(states, entry, payload);
	if (entry->channel >= states->count)
		return -EBADMSG;
	state = &states->channels[entry->channel];
	switch (entry->kind) {
	case ARCHIVE_GENERATION:
		return feed_generation(state, entry, payload);
	case ARCHIVE_RECORD:
		return feed_record(state, entry, payload);
	case ARCHIVE_GAP:
		return feed_gap(state, entry, payload);
	case ARCHIVE_SKIPPED:
		channel_state_skipped(state, entry->seq);
		return 0;
	default:
		return -EBADMSG;
	}
}

static int feed_entry(struct segment_scan *scan, struct channel_states *states,
		      const struct archive_entry *entry, const void *payload)
{
	struct archive_resumed resumed;

	if (entry->kind == ARCHIVE_READY) {
		scan->ready = true;
		return 0;
	}
	if (entry->kind != ARCHIVE_RESUMED)
		return feed_of_channel(states, entry, payload);
	if (entry->bytes != sizeof(resumed))
		return -EBADMSG;
	memcpy(&resumed, payload, sizeof(resumed));
	scan->cut_before = resumed.cut_bytes;
	return 0;
}

static int feed_entries(struct segment_scan *scan, struct channel_states *states, const void *raw,
			const struct archive_block_head *head)
{
	struct archive_entry entry;
	const void *payload;
	size_t offset = 0;
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < head->entries; i++) {
		offset = archive_entry_at(raw, head->raw, offset, &entry, &payload);
		r = offset ? feed_entry(scan, states, &entry, payload) : -EBADMSG;
	}
	return r;
}

/* ---- blocks ------------------------------------------------------------- */

/* Memory of one block. */
struct scan_buffer {
	uint8_t *stored, *raw;
	size_t stored_bytes, raw_bytes;
};

static int grow(uint8_t **bytes, size_t *have, size_t want)
{
	if (want <= *have)
		return 0;
	free(*bytes);
	*bytes = malloc(want);
	*have = *bytes ? want : 0;
	return *bytes ? 0 : -ENOMEM;
}

static bool follows(const struct segment_scan *scan, const struct archive_block_head *head)
{
	uint64_t number = scan->last.number ? scan->last.number + 1 : scan->head.first_block;
	uint64_t hash = scan->last.number ? scan->last.head_hash : scan->head.previous_hash;

	return archive_block_intact(head) && head->number == number &&
	       head->previous_hash == hash && head->raw <= RAW_MAX &&
	       archive_block_span(head) <= scan->bytes - scan->whole;
}

/* Returns 1 (a whole block, in @buffer), 0 (none), -errno. */
static int read_block(const struct segment_scan *scan, struct archive_block_head *head,
		      struct scan_buffer *buffer)
{
	int r = read_at(scan->fd, head, sizeof(*head), scan->whole);

	if (r <= 0 || !follows(scan, head))
		return r < 0 ? r : 0;
	r = grow(&buffer->stored, &buffer->stored_bytes, head->stored);
	if (r == 0)
		r = grow(&buffer->raw, &buffer->raw_bytes, head->raw);
	if (r < 0)
		return r;
	r = read_at(scan->fd, buffer->stored, head->stored, scan->whole + sizeof(*head));
	if (r <= 0)
		return r;
	return archive_block_unpack(head, buffer->stored, buffer->raw) == 0;
}

static int scan_blocks(struct segment_scan *scan, struct channel_states *states)
{
	struct scan_buffer buffer = {0};
	struct archive_block_head head;
	int r;

	while ((r = read_block(scan, &head, &buffer)) == 1) {
		r = feed_entries(scan, states, buffer.raw, &head);
		if (r < 0)
			break;
		scan->last = head;
		scan->whole += archive_block_span(&head);
	}
	free(buffer.stored);
	free(buffer.raw);
	if (r != -EBADMSG)
		return r;
	scan->damaged = true; /* its writer never wrote that */
	return 0;
}

/* ---- what is behind ----------------------------------------------------- */

/* A later block that was written when the first broken one had been synced; the
 * segment's head is synced before there are any. */
static bool claims_sync(const struct segment_scan *scan, const struct archive_block_head *head)
{
	uint64_t broken = scan->last.number ? scan->last.number + 1 : scan->head.first_block;

	if (!archive_block_intact(head))
		return false;
	return !scan->has_head || (head->number > broken && head->synced >= broken);
}

static bool search(const struct segment_scan *scan, const uint8_t *bytes, size_t count)
{
	struct archive_block_head head;

	for (size_t at = 0; at + sizeof(head) <= count; at += ARCHIVE_ALIGN) {
		memcpy(&head, bytes + at, sizeof(head));
		if (head.magic == ARCHIVE_BLOCK_MAGIC && claims_sync(scan, &head))
			return true;
	}
	return false;
}

/* A head may reach over two pieces. */
static int search_rest(struct segment_scan *scan)
{
	size_t piece = SEARCH_BYTES + sizeof(struct archive_block_head);
	uint64_t offset = scan->whole;
	uint8_t *bytes = malloc(piece);
	int r = bytes ? 1 : -ENOMEM;

	while (r > 0 && !scan->damaged && offset < scan->bytes) {
		uint64_t left = scan->bytes - offset;
		size_t count = left < piece ? (size_t)left : piece;

		r = read_at(scan->fd, bytes, count, offset);
		if (r > 0)
			scan->damaged = search(scan, bytes, count);
		offset += SEARCH_BYTES;
	}
	free(bytes);
	return r < 0 ? r : 0;
}

int segment_scan(struct segment_scan *scan, struct channel_states *states)
{
	struct stat status;
	int r;

	if (fstat(scan->fd, &status) < 0)
		return -errno;
	scan->bytes = (uint64_t)status.st_size;
	r = read_at(scan->fd, &scan->head, sizeof(scan->head), 0);
	if (r < 0)
		return r;
	scan->has_head = r == 1 && archive_segment_intact(&scan->head) &&
			 scan->head.number == scan->number;
	if (scan->has_head && scan->head.version != ARCHIVE_VERSION)
		return 0;
	if (scan->has_head) {
		scan->whole = scan->head.bytes;
		r = scan_blocks(scan, states);
		if (r < 0)
			return r;
	}
	return search_rest(scan);
}
