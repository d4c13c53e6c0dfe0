/* SPDX-License-Identifier: Apache-2.0 */
/* A slow reader of archives. */
#define XXH_INLINE_ALL
#include "tests/support/archive_walk.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>
#include <zstd.h>

#define CHANNELS 64u

struct walk_channel {
	char name[128];
	bool said; /* in this segment */
	uint64_t generation;
	uint8_t uuid[16];
	uint64_t seq;      /* of the last that was accounted for */
	uint64_t repeated; /* number of the next repeated record */
	bool lost_track;   /* behind a gap of unknown size */
};

struct walk_channels {
	struct walk_channel channel[CHANNELS];
	uint64_t records;
	bool ready; /* in this segment */
	struct archive_block_head last;
	uint32_t last_flags;
	uint64_t state; /* number of the newest block of this segment that has some */
};

static void __attribute__((format(printf, 2, 3)))
wrong(struct archive_walk *walk, const char *format, ...)
{
	va_list args;

	if (walk->problem[0])
		return;
	va_start(args, format);
	vsnprintf(walk->problem, sizeof(walk->problem), format, args);
	va_end(args);
}

static void *grown(void *array, size_t count, size_t size)
{
	void *more = array;

	/* At each power of two. */
	if ((count & (count - 1)) == 0)
		more = realloc(array, (count ? 2 * count : 1) * size);
	if (!more)
		abort();
	return more;
}

static bool is_zero(const uint8_t *bytes, size_t count)
{
	while (count && !bytes[count - 1])
		count--;
	return count == 0;
}

/* ---- entries ------------------------------------------------------------ */

static void walk_generation(struct archive_walk *walk, struct walk_channel *channel,
			    const struct walked_entry *entry)
{
	struct archive_generation generation;
	bool repeated = entry->head.flags & ARCHIVE_ENTRY_REPEATED;

	memcpy(&generation, entry->payload, sizeof(generation));
	if (!repeated && generation.seq)
		wrong(walk, "%s: a generation begins at %llu", channel->name,
		      (unsigned long long)generation.seq);
	if (repeated && walk->segment_count > 1 &&
	    (generation.seq != channel->seq || generation.generation != channel->generation ||
	     memcmp(generation.uuid, channel->uuid, sizeof(generation.uuid)) != 0))
		wrong(walk, "%s: segment %zu says %llu, it was %llu", channel->name,
		      walk->segment_count, (unsigned long long)generation.seq,
		      (unsigned long long)channel->seq);
	channel->generation = generation.generation;
	memcpy(channel->uuid, generation.uuid, sizeof(channel->uuid));
	channel->seq = generation.seq;
	channel->repeated = 0;
	channel->lost_track = false;
}

static void walk_gap(struct archive_walk *walk, struct walk_channel *channel,
		     const struct walked_entry *entry)
{
	struct archive_gap gap;

	memcpy(&gap, entry->payload, sizeof(gap));
	if (gap.from_seq != channel->seq + 1)
		wrong(walk, "%s: a gap from %llu behind %llu", channel->name,
		      (unsigned long long)gap.from_seq, (unsigned long long)channel->seq);
	if (gap.lost && gap.to_seq - gap.from_seq + 1 != gap.lost)
		wrong(walk, "%s: a gap of %llu", channel->name, (unsigned long long)gap.lost);
	channel->lost_track = !gap.lost;
	channel->seq = gap.to_seq;
}

static void walk_record(struct archive_walk *walk, struct walk_channel *channel,
			const struct walked_entry *entry)
{
	if (entry->head.flags & ARCHIVE_ENTRY_REPEATED) {
		if (entry->head.seq != channel->repeated++)
			wrong(walk, "%s: repeated record %llu", channel->name,
			      (unsigned long long)entry->head.seq);
		return;
	}
	walk->channels->records++;
	if (channel->lost_track || entry->head.seq != channel->seq + 1)
		wrong(walk, "%s: record %llu behind %llu", channel->name,
		      (unsigned long long)entry->head.seq, (unsigned long long)channel->seq);
	channel->seq = entry->head.seq;
}

static void walk_channel(struct archive_walk *walk, struct walk_channel *channel,
			 const struct walked_entry *entry)
{
	if (channel->said)
		wrong(walk, "channel %u is said twice in a segment", entry->head.channel);
	channel->said = true;
	snprintf(channel->name, sizeof(channel->name), "%.*s", (int)entry->head.bytes,
		 (const char *)entry->payload);
}

static void walk_entry(struct archive_walk *walk, struct walked_entry *entry)
{
	struct walk_channels *channels = walk->channels;
	struct walk_channel *channel = &channels->channel[entry->head.channel % CHANNELS];
	bool repeated = entry->head.flags & ARCHIVE_ENTRY_REPEATED;

	if (entry->head.kind == ARCHIVE_READY)
		channels->ready = true;
	else if (repeated == channels->ready)
		if (entry->head.kind != ARCHIVE_RESUMED)
			wrong(walk, "entry %zu is %s READY", walk->entry_count,
			      repeated ? "repeated behind" : "new before");
	if (entry->head.kind == ARCHIVE_READY || entry->head.kind == ARCHIVE_RESUMED)
		return;
	entry->channel = channel->name;
	switch (entry->head.kind) {
	case ARCHIVE_CHANNEL:
		walk_channel(walk, channel, entry);
		break;
	case ARCHIVE_GENERATION:
		walk_generation(walk, channel, entry);
		break;
	case ARCHIVE_GAP:
		walk_gap(walk, channel, entry);
		break;
	case ARCHIVE_RECORD:
	case ARCHIVE_SKIPPED:
		walk_record(walk, channel, entry);
		break;
	case ARCHIVE_UNFOLLOWED:
		if (entry->head.seq != channel->seq + 1 || entry->head.bytes)
			wrong(walk, "%s: nothing known from record %llu on, behind %llu",
			      channel->name, (unsigned long long)entry->head.seq,
			      (unsigned long long)channel->seq);
		break;
	default:
		wrong(walk, "entry of kind %u", entry->head.kind);
	}
	if (!channel->said)
		wrong(walk, "channel %u was not said", entry->head.channel);
	entry->generation = channel->generation;
}

/* ---- blocks ------------------------------------------------------------- */

static void check_state(struct archive_walk *walk, const struct archive_block_head *head,
			uint32_t records, bool state)
{
	if (head->own != records || head->state != walk->channels->state)
		wrong(walk, "block %llu: %u records behind state in %llu, and it says %u and %llu",
		      (unsigned long long)head->number, records,
		      (unsigned long long)walk->channels->state, head->own,
		      (unsigned long long)head->state);
	if (state)
		walk->channels->state = head->number;
}

static void walk_entries(struct archive_walk *walk, const struct walked_block *block)
{
	size_t at = 0;
	uint32_t records = 0;
	bool state = false;

	for (uint32_t i = 0; i < block->head.entries && !walk->problem[0]; i++) {
		struct walked_entry entry = {
			.segment = (uint32_t)walk->segment_count - 1,
			.block = (uint32_t)walk->block_count - 1,
		};
		size_t end, padded;

		memcpy(&entry.head, block->raw + at, sizeof(entry.head));
		entry.payload = block->raw + at + sizeof(entry.head);
		end = at + sizeof(entry.head) + entry.head.bytes;
		padded = (end + 7) / 8 * 8;
		if (padded > block->head.raw || !is_zero(block->raw + end, padded - end))
			wrong(walk, "entry %u of block %llu does not fit", i,
			      (unsigned long long)block->head.number);
		at = padded;
		if (entry.head.flags & ARCHIVE_ENTRY_REPEATED ||
		    (entry.head.kind != ARCHIVE_RECORD && entry.head.kind != ARCHIVE_SKIPPED))
			state |= entry.head.kind != ARCHIVE_GAP &&
				 entry.head.kind != ARCHIVE_UNFOLLOWED;
		else
			records++;
		if (!walk->problem[0])
			walk_entry(walk, &entry);
		walk->entries = grown(walk->entries, walk->entry_count, sizeof(*walk->entries));
		walk->entries[walk->entry_count++] = entry;
	}
	if (at != block->head.raw)
		wrong(walk, "block %llu has more than its entries",
		      (unsigned long long)block->head.number);
	check_state(walk, &block->head, records, state);
}

static void unpack(struct archive_walk *walk, struct walked_block *block, const uint8_t *stored)
{
	const struct archive_block_head *head = &block->head;

	block->raw = calloc(1, head->raw + 1);
	if (!(head->flags & ARCHIVE_BLOCK_ZSTD))
		memcpy(block->raw, stored, head->raw);
	else if (ZSTD_decompress(block->raw, head->raw, stored, head->stored) != head->raw)
		wrong(walk, "block %llu cannot be unpacked", (unsigned long long)head->number);
	if (head->stored_hash != XXH3_64bits(stored, head->stored))
		wrong(walk, "block %llu: stored hash", (unsigned long long)head->number);
}

static void check_chain(struct archive_walk *walk, const struct archive_block_head *head)
{
	const struct archive_block_head *last = &walk->channels->last;

	if (head->magic != ARCHIVE_BLOCK_MAGIC ||
	    head->head_hash != XXH3_64bits(head, offsetof(struct archive_block_head, head_hash)))
		wrong(walk, "block behind %llu: head", (unsigned long long)last->number);
	else if (last->number &&
		 (head->number != last->number + 1 || head->previous_hash != last->head_hash))
		wrong(walk, "block %llu does not follow %llu", (unsigned long long)head->number,
		      (unsigned long long)last->number);
	else if (head->synced >= head->number)
		wrong(walk, "block %llu says %llu is synced", (unsigned long long)head->number,
		      (unsigned long long)head->synced);
}

/* Returns the offset behind it. */
static size_t walk_block(struct archive_walk *walk, const uint8_t *file, size_t bytes, size_t at)
{
	struct walked_block block = {.segment = (uint32_t)walk->segment_count - 1, .offset = at};
	size_t end;

	if (at + sizeof(block.head) > bytes) {
		wrong(walk, "a block's head is cut at %zu", at);
		return bytes;
	}
	memcpy(&block.head, file + at, sizeof(block.head));
	check_chain(walk, &block.head);
	at += sizeof(block.head);
	end = (at + block.head.stored + 63) / 64 * 64;
	if (end > bytes)
		wrong(walk, "block %llu is cut", (unsigned long long)block.head.number);
	if (walk->problem[0])
		return bytes;
	if (!is_zero(file + at + block.head.stored, end - at - block.head.stored))
		wrong(walk, "padding of block %llu", (unsigned long long)block.head.number);
	unpack(walk, &block, file + at);
	walk->blocks = grown(walk->blocks, walk->block_count, sizeof(block));
	walk->blocks[walk->block_count++] = block;
	walk_entries(walk, &block);
	walk->channels->last = block.head;
	if (walk->segment_count == 1 && walk->block_count == 1)
		walk->channels->records = block.head.records;
	if (walk->channels->records != block.head.records)
		wrong(walk, "block %llu counts %llu records, there are %llu",
		      (unsigned long long)block.head.number, (unsigned long long)block.head.records,
		      (unsigned long long)walk->channels->records);
	return end;
}

/* ---- segments ----------------------------------------------------------- */

static void walk_segment(struct archive_walk *walk, const uint8_t *file, size_t bytes,
			 unsigned int number)
{
	struct walked_segment segment = {.bytes = bytes};
	const struct archive_segment_head *head = &segment.head;
	size_t at;

	if (bytes < sizeof(segment.head)) {
		wrong(walk, "segment %u: its head is cut", number);
		return;
	}
	memcpy(&segment.head, file, sizeof(segment.head));
	walk->segments = grown(walk->segments, walk->segment_count, sizeof(segment));
	walk->segments[walk->segment_count++] = segment;
	if (memcmp(head->magic, ARCHIVE_MAGIC, 8) != 0 || head->number != number ||
	    head->hash != XXH3_64bits(head, offsetof(struct archive_segment_head, hash)))
		wrong(walk, "segment %u: head", number);
	if (walk->channels->last.number && (head->first_block != walk->channels->last.number + 1 ||
					    head->previous_hash != walk->channels->last.head_hash))
		wrong(walk, "segment %u does not follow", number);
	walk->channels->ready = false;
	walk->channels->state = 0;
	for (unsigned int i = 0; i < CHANNELS; i++)
		walk->channels->channel[i].said = false;
	for (at = head->bytes; at < bytes && !walk->problem[0];)
		at = walk_block(walk, file, bytes, at);
	if (!walk->channels->ready)
		wrong(walk, "segment %u has no READY", number);
}

static void walk_file(struct archive_walk *walk, const char *dir, unsigned int number)
{
	char path[512];
	struct stat status;
	uint8_t *file;
	int fd;

	snprintf(path, sizeof(path), "%s/%08u.r3seg", dir, number);
	fd = open(path, O_RDONLY);
	if (fd < 0 || fstat(fd, &status) < 0) {
		wrong(walk, "%s is not there", path);
		return;
	}
	file = malloc((size_t)status.st_size + 1);
	if (!file || read(fd, file, (size_t)status.st_size) != status.st_size)
		abort();
	walk_segment(walk, file, (size_t)status.st_size, number);
	free(file);
	close(fd);
}

static void find_range(const char *dir, unsigned int *first, unsigned int *last)
{
	DIR *stream = opendir(dir);
	const struct dirent *entry;

	*first = 0;
	*last = 0;
	while (stream && (entry = readdir(stream))) {
		unsigned int number;

		if (!strstr(entry->d_name, ".r3seg") || sscanf(entry->d_name, "%8u", &number) != 1)
			continue;
		if (!*first || number < *first)
			*first = number;
		if (number > *last)
			*last = number;
	}
	if (stream)
		closedir(stream);
}

void archive_walk(struct archive_walk *walk, const char *dir)
{
	unsigned int first, last;

	*walk = (struct archive_walk){.channels = calloc(1, sizeof(struct walk_channels))};
	find_range(dir, &first, &last);
	if (!first)
		wrong(walk, "%s has no segment", dir);
	for (unsigned int number = first; first && number <= last && !walk->problem[0]; number++)
		walk_file(walk, dir, number);
}

void archive_walk_free(struct archive_walk *walk)
{
	for (size_t i = 0; i < walk->block_count; i++)
		free(walk->blocks[i].raw);
	free(walk->segments);
	free(walk->blocks);
	free(walk->entries);
	free(walk->channels);
	*walk = (struct archive_walk){0};
}

/* ---- sums --------------------------------------------------------------- */

uint64_t archive_walk_records(const struct archive_walk *walk, const char *channel)
{
	uint64_t count = 0;

	for (size_t i = 0; i < walk->entry_count; i++) {
		const struct walked_entry *entry = &walk->entries[i];

		if (entry->head.kind != ARCHIVE_RECORD && entry->head.kind != ARCHIVE_SKIPPED)
			continue;
		count += !(entry->head.flags & ARCHIVE_ENTRY_REPEATED) &&
			 strcmp(entry->channel, channel) == 0;
	}
	return count;
}

uint64_t archive_walk_kind(const struct archive_walk *walk, uint16_t kind)
{
	uint64_t count = 0;

	for (size_t i = 0; i < walk->entry_count; i++)
		count += walk->entries[i].head.kind == kind;
	return count;
}

uint64_t archive_walk_lost(const struct archive_walk *walk)
{
	struct archive_gap gap;
	uint64_t lost = 0;

	for (size_t i = 0; i < walk->entry_count; i++) {
		if (walk->entries[i].head.kind != ARCHIVE_GAP)
			continue;
		memcpy(&gap, walk->entries[i].payload, sizeof(gap));
		lost += gap.lost;
	}
	return lost;
}
