/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/archive_builder.h"
#include "tests/support/remove_dir.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>
#include <zstd.h>

#define SEGMENT_HEAD 128u
#define BLOCK_HEAD 128u
#define HASHED 120u /* of both heads: all but the hash at their end */

static struct archive_builder *builders;

static void must(bool good, const char *what)
{
	if (good)
		return;
	perror(what);
	exit(1);
}

/* ---- bytes ------------------------------------------------------------- */

static void put(struct builder_bytes *to, const void *bytes, size_t len)
{
	if (to->len + len > to->room) {
		to->room = 2 * (to->len + len);
		to->at = realloc(to->at, to->room);
		must(to->at, "realloc");
	}
	if (len)
		memcpy(to->at + to->len, bytes, len);
	to->len += len;
}

static void put_zeros(struct builder_bytes *to, size_t align)
{
	while (to->len % align)
		put(to, "", 1);
}

static uint64_t hash(const void *bytes, size_t len)
{
	return XXH3_64bits(bytes, len);
}

/* ---- the directory ----------------------------------------------------- */

static void clean_up(void)
{
	for (struct archive_builder *b = builders; b; b = b->next)
		remove_dir(b->dir);
}

void builder_open(struct archive_builder *builder, int level)
{
	*builder = (struct archive_builder){
		.level = level, .version = 2, .time_ns = 1764460800000000000u};
	snprintf(builder->dir, sizeof(builder->dir), "/tmp/r3ring-archive-%d-XXXXXX", getpid());
	must(mkdtemp(builder->dir), "mkdtemp");
	memcpy(builder->uuid, "0123456789abcdef", 16);
	builder->block = 1;
	if (!builders)
		atexit(clean_up);
	builder->next = builders;
	builders = builder;
}

void builder_close(struct archive_builder *builder)
{
	struct archive_builder **link = &builders;

	while (*link != builder)
		link = &(*link)->next;
	*link = builder->next;
	remove_dir(builder->dir);
	free(builder->file.at);
	free(builder->block_entries.at);
}

/* ---- writing ----------------------------------------------------------- */

void builder_segment(struct archive_builder *builder)
{
	struct archive_segment_head head = {
		.magic = "R3RINGAR",
		.version = builder->version,
		.bytes = SEGMENT_HEAD,
		.number = ++builder->segment,
		.created_ns = builder->time_ns,
		.first_block = builder->block,
		.previous_hash = builder->previous_hash,
		.level = (uint32_t)builder->level,
		.layer_end = builder->layer_end,
		.flags = builder->segment_flags,
		.writer = "by hand",
	};

	memcpy(head.uuid, builder->uuid, sizeof(head.uuid));
	head.hash = hash(&head, HASHED);
	builder->file.len = 0;
	builder->state_block = 0;
	put(&builder->file, &head, sizeof(head));
}

static bool is_counted(const struct archive_entry *entry)
{
	return (entry->kind == ARCHIVE_RECORD || entry->kind == ARCHIVE_SKIPPED) &&
	       !(entry->flags & ARCHIVE_ENTRY_REPEATED);
}

void builder_entry(struct archive_builder *builder, struct archive_entry entry, const void *payload,
		   size_t bytes)
{
	const bool state = !is_counted(&entry) && entry.kind != ARCHIVE_GAP &&
			   entry.kind != ARCHIVE_UNFOLLOWED;

	if (builder->apart && builder->entries && builder->state != state)
		builder_block(builder, 0);
	entry.bytes = (uint32_t)bytes;
	put(&builder->block_entries, &entry, sizeof(entry));
	put(&builder->block_entries, payload, bytes);
	put_zeros(&builder->block_entries, 8);
	builder->entries++;
	builder->records += is_counted(&entry);
	builder->own += is_counted(&entry);
	builder->state |= state;
}

/* The entries as they are stored; whether compressed. */
static bool store(const struct archive_builder *builder, struct builder_bytes *stored)
{
	const struct builder_bytes *raw = &builder->block_entries;
	size_t room = ZSTD_compressBound(raw->len);
	size_t len;

	stored->at = malloc(room);
	must(stored->at, "malloc");
	len = ZSTD_compress(stored->at, room, raw->at, raw->len, builder->level);
	must(!ZSTD_isError(len), "ZSTD_compress");
	stored->len = len;
	if (builder->level && len < raw->len)
		return true;
	stored->len = raw->len;
	if (raw->len)
		memcpy(stored->at, raw->at, raw->len);
	return false;
}

void builder_block(struct archive_builder *builder, uint32_t flags)
{
	struct builder_bytes stored = {0};
	bool compressed = store(builder, &stored);
	struct archive_block_head head = {
		.magic = 0x4B423352,
		.flags = flags | (compressed ? ARCHIVE_BLOCK_ZSTD : 0),
		.number = builder->block++,
		.stored = (uint32_t)stored.len,
		.raw = (uint32_t)builder->block_entries.len,
		.entries = builder->entries,
		.records = builder->records,
		.time_ns = builder->time_ns += 1000000,
		.previous_hash = builder->previous_hash,
		.stored_hash = hash(stored.at, stored.len),
	};

	if (builder->version > 1) {
		head.own = builder->own;
		head.state = builder->state_block;
	}
	if (builder->state)
		builder->state_block = head.number;
	builder->state = false;
	builder->own = 0;
	head.head_hash = builder->previous_hash = hash(&head, HASHED);
	put(&builder->file, &head, sizeof(head));
	put(&builder->file, stored.at, stored.len);
	put_zeros(&builder->file, 64);
	builder->block_entries.len = 0;
	builder->entries = 0;
	free(stored.at);
}

static void write_segment(const struct archive_builder *builder)
{
	char name[32];

	snprintf(name, sizeof(name), "%08" PRIu64 ".r3seg", builder->segment);
	builder_write(builder_path(builder, name), builder->file.at, builder->file.len);
}

void builder_segment_end(struct archive_builder *builder, bool closed)
{
	if (closed || builder->entries)
		builder_block(builder, closed ? ARCHIVE_BLOCK_LAST : 0);
	write_segment(builder);
}

void builder_segment_full(struct archive_builder *builder)
{
	builder_block(builder, ARCHIVE_BLOCK_LAST | ARCHIVE_BLOCK_MORE);
	write_segment(builder);
}

void builder_channel(struct archive_builder *builder, uint16_t channel, const char *name,
		     bool repeated)
{
	const struct archive_entry entry = {
		.kind = ARCHIVE_CHANNEL,
		.channel = channel,
		.flags = repeated ? ARCHIVE_ENTRY_REPEATED : 0,
	};

	builder_entry(builder, entry, name, strlen(name));
}

void builder_generation(struct archive_builder *builder, uint16_t channel, uint64_t generation,
			const uint8_t uuid[16], uint64_t seq, bool repeated)
{
	const struct archive_entry entry = {
		.kind = ARCHIVE_GENERATION,
		.channel = channel,
		.flags = repeated ? ARCHIVE_ENTRY_REPEATED : 0,
	};
	struct archive_generation payload = {.generation = generation, .seq = seq};

	memcpy(payload.uuid, uuid, sizeof(payload.uuid));
	builder_entry(builder, entry, &payload, sizeof(payload));
}

void builder_ready(struct archive_builder *builder)
{
	const struct archive_entry entry = {.kind = ARCHIVE_READY};

	builder_entry(builder, entry, NULL, 0);
}

void builder_gap(struct archive_builder *builder, uint16_t channel, uint64_t from, uint64_t to,
		 enum archive_gap_cause cause)
{
	const struct archive_entry entry = {.kind = ARCHIVE_GAP, .channel = channel};
	const struct archive_gap payload = {
		.lost = to ? to - from + 1 : 0,
		.from_seq = from,
		.to_seq = to,
		.cause = cause,
	};

	builder_entry(builder, entry, &payload, sizeof(payload));
}

/* ---- files ------------------------------------------------------------- */

const char *builder_path(const struct archive_builder *builder, const char *name)
{
	static char path[128];

	snprintf(path, sizeof(path), "%s/%s", builder->dir, name);
	return path;
}

struct builder_bytes builder_read(const char *path)
{
	struct builder_bytes bytes = {0};
	char part[4096];
	FILE *file = fopen(path, "rb");
	size_t n;

	must(file, path);
	while ((n = fread(part, 1, sizeof(part), file)))
		put(&bytes, part, n);
	must(!ferror(file), path);
	fclose(file);
	return bytes;
}

void builder_write(const char *path, const void *bytes, size_t len)
{
	FILE *file = fopen(path, "wb");

	must(file && fwrite(bytes, 1, len, file) == len && !fclose(file), path);
}

struct archive_block_head builder_reseal(uint8_t *bytes, size_t len)
{
	struct archive_block_head last = {0};
	uint64_t previous, sealed;
	size_t at = SEGMENT_HEAD;

	if (len < SEGMENT_HEAD)
		return last;
	sealed = hash(bytes, HASHED);
	memcpy(bytes + HASHED, &sealed, sizeof(sealed));
	memcpy(&previous, bytes + offsetof(struct archive_segment_head, previous_hash),
	       sizeof(previous));
	while (at <= len && len - at >= BLOCK_HEAD) {
		struct archive_block_head head;

		memcpy(&head, bytes + at, sizeof(head));
		if (head.stored > len - at - BLOCK_HEAD)
			break;
		head.previous_hash = previous;
		head.stored_hash = hash(bytes + at + BLOCK_HEAD, head.stored);
		head.head_hash = previous = hash(&head, HASHED);
		memcpy(bytes + at, &head, sizeof(head));
		at += BLOCK_HEAD + (head.stored + 63ull) / 64 * 64;
		last = head;
	}
	return last;
}
