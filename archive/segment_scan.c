/* SPDX-License-Identifier: Apache-2.0 */
/* How far a segment is whole, and what it says. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include <sys/stat.h>
#include <unistd.h>

#include "archive/block.h"
#include "archive/listing.h"
#include "archive/segment.h"
#include "archive/segment_scan.h"

#define SEARCH_BYTES (256u << 10) /* a multiple of ARCHIVE_ALIGN */

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
	case ARCHIVE_UNFOLLOWED:
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

/* What is not whole, whatever is wrong with it, is for what is behind it to say. */
static bool is_broken(int code)
{
	return code == -ENODATA || code == -EBADMSG;
}

static int scan_blocks(struct segment_scan *scan, struct archive_segment *segment,
		       struct channel_states *states, struct r3ring_error *err)
{
	int r;

	while ((r = archive_segment_next(segment, err)) == 1) {
		r = feed_entries(scan, states, segment->entries, &segment->block);
		/* Its writer never wrote that. */
		scan->damaged = r == -EBADMSG;
		if (r < 0)
			break;
		scan->last = segment->block;
		scan->whole = segment->offset;
	}
	return is_broken(r) ? 0 : r;
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
static int search_file(struct segment_scan *scan, int fd)
{
	size_t piece = SEARCH_BYTES + sizeof(struct archive_block_head);
	uint64_t offset = scan->whole;
	uint8_t *bytes = malloc(piece);
	ssize_t got = bytes ? 1 : -ENOMEM;

	while (got > 0 && !scan->damaged && offset < scan->bytes) {
		got = pread(fd, bytes, piece, (off_t)offset);
		if (got > 0)
			scan->damaged = search(scan, bytes, (size_t)got);
		else if (got < 0)
			got = -errno;
		offset += SEARCH_BYTES;
	}
	free(bytes);
	return got < 0 ? (int)got : 0;
}

static int search_rest(struct segment_scan *scan, int dir_fd, struct r3ring_error *err)
{
	char name[ARCHIVE_NAME_MAX];
	struct stat status;
	int fd = openat(dir_fd, archive_segment_name(name, scan->number),
			O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	bool there = fd >= 0 && fstat(fd, &status) == 0;
	int r = there ? 0 : -errno;

	if (there) {
		scan->bytes = (uint64_t)status.st_size;
		r = search_file(scan, fd);
	}
	if (fd >= 0)
		close(fd);
	return r < 0 ? r3ring_error_set(err, r, "segment %s: %s", name, strerror(-r)) : 0;
}

int segment_scan(struct segment_scan *scan, int dir_fd, struct channel_states *states,
		 struct r3ring_error *err)
{
	struct archive_segment segment = {.fd = -1};
	int r = archive_segment_open(&segment, dir_fd, scan->number, err);

	if (r == 0) {
		scan->head = segment.head;
		scan->has_head = true;
		scan->damaged = segment.head.number != scan->number; /* another's name */
		scan->whole = segment.offset;
		r = scan->damaged ? 0 : scan_blocks(scan, &segment, states, err);
	}
	archive_segment_free(&segment);
	if (r < 0 && !is_broken(r))
		return r;
	return search_rest(scan, dir_fd, err);
}
