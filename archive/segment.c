/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <zstd.h>

#include "archive/block.h"
#include "archive/entry.h"
#include "archive/listing.h"
#include "archive/segment.h"
#include "archive/zeros.h"

#define HEAD_MAX 65536u /* bytes in front of the first block */
/* What zstd makes of a byte at most: 4 bytes stand for a block of 128 KiB.
 * Source: RFC 8878, 3.1.1.2, "Blocks", RLE_Block and Block_Maximum_Size. */
#define ZSTD_RATIO_MAX 32768u

int archive_refuse(struct r3ring_error *err, int code, uint64_t number, uint64_t offset,
		   const char *format, ...)
{
	char name[ARCHIVE_NAME_MAX];
	char what[R3RING_ERROR_TEXT];
	va_list args;

	va_start(args, format);
	vsnprintf(what, sizeof(what), format, args);
	va_end(args);
	return r3ring_error_set(err, code, "segment %s, byte %" PRIu64 ": %.400s",
				archive_segment_name(name, number), offset, what);
}

/* ---- bytes ------------------------------------------------------------- */

/* Fails with -ENODATA where the file ends before. */
static int read_at(const struct archive_segment *segment, void *to, size_t bytes, uint64_t offset,
		   struct r3ring_error *err)
{
	size_t done = 0;

	while (done < bytes) {
		ssize_t n = pread(segment->fd, (uint8_t *)to + done, bytes - done,
				  (off_t)(offset + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return archive_refuse(err, -errno, segment->number, offset,
					      "cannot be read: %s", strerror(errno));
		if (n == 0)
			return archive_refuse(err, -ENODATA, segment->number, offset + done,
					      "the file ends here, in the middle");
		done += (size_t)n;
	}
	return 0;
}

static int make_room(struct archive_room *room, size_t bytes)
{
	size_t capacity = (bytes + ARCHIVE_ALIGN) / ARCHIVE_ALIGN * ARCHIVE_ALIGN; /* never 0 */
	void *grown;

	if (capacity <= room->capacity)
		return 0;
	grown = aligned_alloc(ARCHIVE_ALIGN, capacity);
	if (!grown)
		return -ENOMEM;
	free(room->bytes);
	*room = (struct archive_room){grown, capacity};
	return 0;
}

/* ---- the head ---------------------------------------------------------- */

static int check_head(const struct archive_segment *segment, struct r3ring_error *err)
{
	const struct archive_segment_head *head = &segment->head;

	if (memcmp(head->magic, ARCHIVE_MAGIC, sizeof(head->magic)) != 0)
		return archive_refuse(err, -EBADMSG, segment->number, 0,
				      "does not begin as a segment does: another file, or damaged");
	if (head->version > ARCHIVE_VERSION)
		return archive_refuse(
			err, -EPROTO, segment->number, 0,
			"is of format %u, this r3ring reads up to %u: use a later one",
			head->version, ARCHIVE_VERSION);
	if (!archive_segment_intact(head))
		return archive_refuse(err, -EBADMSG, segment->number, 0,
				      "its head does not have its hash: damaged");
	if (head->version < 1 || head->bytes < sizeof(*head) || head->bytes > HEAD_MAX ||
	    head->bytes % ARCHIVE_ALIGN || head->flags & ~(uint32_t)ARCHIVE_SEGMENT_ROTATES ||
	    head->reserved1 || (head->layer_end && head->layer_first >= head->layer_end) ||
	    !memchr(head->writer, '\0', sizeof(head->writer)))
		return archive_refuse(err, -EBADMSG, segment->number, 0,
				      "its head says what no r3ring writes");
	return 0;
}

/* What is between the head and the first block is nothing yet. */
static int check_margin(struct archive_segment *segment, struct r3ring_error *err)
{
	size_t margin = segment->head.bytes - sizeof(segment->head);
	int code = make_room(&segment->stored, margin);

	if (code)
		return code;
	code = read_at(segment, segment->stored.bytes, margin, sizeof(segment->head), err);
	if (code || archive_all_zero(segment->stored.bytes, margin))
		return code;
	return archive_refuse(err, -EBADMSG, segment->number, sizeof(segment->head),
			      "there is something between its head and its first block: damaged");
}

static int look_at_file(struct archive_segment *segment, struct r3ring_error *err)
{
	struct stat file;

	if (fstat(segment->fd, &file))
		return archive_refuse(err, -errno, segment->number, 0, "cannot be read: %s",
				      strerror(errno));
	if (!S_ISREG(file.st_mode))
		return archive_refuse(err, -EBADMSG, segment->number, 0, "is no regular file");
	segment->bytes = (uint64_t)file.st_size;
	return 0;
}

static int open_file(struct archive_segment *segment, int dir_fd, struct r3ring_error *err)
{
	char name[ARCHIVE_NAME_MAX];

	segment->fd = openat(dir_fd, archive_segment_name(name, segment->number),
			     O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (segment->fd >= 0)
		return 0;
	return archive_refuse(err, -errno, segment->number, 0, "cannot be opened: %s",
			      strerror(errno));
}

int archive_segment_open(struct archive_segment *segment, int dir_fd, uint64_t number,
			 struct r3ring_error *err)
{
	int code;

	archive_segment_close(segment);
	segment->number = number;
	code = open_file(segment, dir_fd, err);
	if (!code)
		code = look_at_file(segment, err);
	if (!code)
		code = read_at(segment, &segment->head, sizeof(segment->head), 0, err);
	if (!code)
		code = check_head(segment, err);
	if (!code)
		code = check_margin(segment, err);
	if (code) {
		archive_segment_close(segment);
		return code;
	}
	segment->offset = segment->head.bytes;
	segment->start = 0;
	segment->closed = segment->more = false;
	segment->chain = (struct archive_chain){.number = segment->head.first_block,
						.hash = segment->head.previous_hash};
	return 0;
}

void archive_segment_close(struct archive_segment *segment)
{
	if (segment->fd >= 0 && segment->ahead)
		archive_ahead_forget(segment->ahead);
	if (segment->fd >= 0)
		close(segment->fd);
	segment->fd = -1;
}

void archive_segment_free(struct archive_segment *segment)
{
	archive_segment_close(segment);
	free(segment->stored.bytes);
	free(segment->raw.bytes);
	ZSTD_freeDCtx(segment->decompressor);
	archive_ahead_destroy(segment->ahead);
	*segment = (struct archive_segment){.fd = -1};
}

/* ---- blocks ------------------------------------------------------------ */

static int refuse_block(const struct archive_segment *segment, struct r3ring_error *err,
			const char *what)
{
	return archive_refuse(err, -EBADMSG, segment->number, segment->offset,
			      "block %" PRIu64 " %s", segment->chain.number, what);
}

/* Behind its hash: whether a recorder may have written it. */
bool archive_segment_block_possible(const struct archive_segment *segment,
				    const struct archive_block_head *block)
{
	static const uint32_t known = ARCHIVE_BLOCK_ZSTD | ARCHIVE_BLOCK_LAST | ARCHIVE_BLOCK_MORE;
	static const uint32_t end = ARCHIVE_BLOCK_LAST | ARCHIVE_BLOCK_MORE;
	bool compressed = block->flags & ARCHIVE_BLOCK_ZSTD;

	if ((block->flags & ~known) || (block->flags & end) == ARCHIVE_BLOCK_MORE ||
	    block->raw > ARCHIVE_RAW_MAX || block->raw % 8 ||
	    block->entries > block->raw / sizeof(struct archive_entry) ||
	    block->own > block->entries || block->own > block->records ||
	    (compressed ? block->raw / ZSTD_RATIO_MAX > block->stored
			: block->raw != block->stored) ||
	    !archive_all_zero(block->reserved1, sizeof(block->reserved1)))
		return false;
	if (segment->head.version < 2)
		return !block->own && !block->state;
	return !block->state ||
	       (block->state >= segment->head.first_block && block->state < block->number);
}

static int check_block_head(const struct archive_segment *segment,
			    const struct archive_block_head *block, struct r3ring_error *err)
{
	if (!archive_block_intact(block))
		return refuse_block(segment, err,
				    "has a head that does not have its hash: damaged");
	if (block->number != segment->chain.number || block->previous_hash != segment->chain.hash)
		return refuse_block(
			segment, err,
			"is not there: another one is in its place, so blocks were left "
			"out or exchanged");
	if (!archive_segment_block_possible(segment, block))
		return refuse_block(segment, err, "has a head that says what no r3ring writes");
	if (segment->head.version >= 2 && block->state != segment->chain.state)
		return archive_refuse(err, -EBADMSG, segment->number, segment->offset,
				      "block %" PRIu64 " says that block %" PRIu64
				      " is the newest with state, but it is %" PRIu64,
				      block->number, block->state, segment->chain.state);
	return 0;
}

/* Where the file ends is looked at again only when it ends too soon. */
static int check_extent(struct archive_segment *segment, uint64_t bytes, struct r3ring_error *err)
{
	int code = 0;

	if (bytes > segment->bytes - segment->offset)
		code = look_at_file(segment, err);
	if (!code && segment->offset > segment->bytes)
		code = archive_refuse(err, -EBADMSG, segment->number, segment->bytes,
				      "the file became shorter while it was read");
	if (code || bytes <= segment->bytes - segment->offset)
		return code;
	return archive_refuse(err, -ENODATA, segment->number, segment->offset,
			      "block %" PRIu64 " has %" PRIu64 " bytes, the file has only %" PRIu64
			      " of them",
			      segment->chain.number, bytes, segment->bytes - segment->offset);
}

static int read_head(struct archive_segment *segment, struct archive_block_head *block,
		     struct r3ring_error *err)
{
	int code = check_extent(segment, sizeof(*block), err);

	if (code == -ENODATA && segment->bytes == segment->offset)
		return 0;
	if (!code)
		code = read_at(segment, block, sizeof(*block), segment->offset, err);
	if (code)
		return code;
	if (archive_all_zero(block, sizeof(*block)))
		return archive_refuse(err, -ENODATA, segment->number, segment->offset,
				      "block %" PRIu64 " was not written: zeros are in its place",
				      segment->chain.number);
	code = check_block_head(segment, block, err);
	return code ? code : 1;
}

static int read_stored(struct archive_segment *segment, const struct archive_block_head *block,
		       struct r3ring_error *err)
{
	uint64_t bytes = archive_align(block->stored, ARCHIVE_ALIGN);
	int code = check_extent(segment, sizeof(*block) + bytes, err);

	if (!code)
		code = make_room(&segment->stored, bytes);
	if (!code)
		code = read_at(segment, segment->stored.bytes, bytes,
			       segment->offset + sizeof(*block), err);
	if (code)
		return code;
	if (archive_hash(segment->stored.bytes, block->stored) != block->stored_hash ||
	    !archive_all_zero((uint8_t *)segment->stored.bytes + block->stored,
			      bytes - block->stored))
		return refuse_block(segment, err, "does not have its hash: damaged");
	return 0;
}

static int decompress(struct archive_segment *segment, const struct archive_block_head *block,
		      struct r3ring_error *err)
{
	size_t bytes;
	int code = make_room(&segment->raw, block->raw);

	if (code)
		return code;
	if (!segment->decompressor)
		segment->decompressor = ZSTD_createDCtx();
	if (!segment->decompressor)
		return -ENOMEM;
	bytes = ZSTD_decompressDCtx(segment->decompressor, segment->raw.bytes, block->raw,
				    segment->stored.bytes, block->stored);
	if (ZSTD_isError(bytes) || bytes != block->raw)
		return refuse_block(segment, err, "cannot be decompressed to what its head says");
	segment->entries = segment->raw.bytes;
	return 0;
}

static int check_records(const struct archive_segment *segment,
			 const struct archive_block_head *block, uint32_t records,
			 struct r3ring_error *err)
{
	uint64_t before = segment->chain.records;

	if (segment->head.version >= 2 && block->own != records)
		return archive_refuse(err, -EBADMSG, segment->number, segment->offset,
				      "block %" PRIu64
				      " says that it has %u records, but it has %u",
				      block->number, block->own, records);
	if (!segment->chain.records_known && block->records >= records)
		before = block->records - records;
	if (block->records == before + records)
		return 0;
	return archive_refuse(err, -EBADMSG, segment->number, segment->offset,
			      "block %" PRIu64 " says that there are %" PRIu64
			      " records with it, but it is %" PRIu64,
			      block->number, block->records, before + records);
}

static int read_entries(struct archive_segment *segment, const struct archive_block_head *block,
			struct archive_content *content, struct r3ring_error *err)
{
	const uint8_t *entries = NULL;
	const char *what;
	int code;

	if (segment->ahead)
		entries = archive_ahead_take(segment->ahead, segment->fd, segment->bytes,
					     segment->offset, block, content);
	if (entries) {
		segment->entries = entries;
		return check_records(segment, block, content->records, err);
	}
	code = read_stored(segment, block, err);
	if (code)
		return code;
	if (block->flags & ARCHIVE_BLOCK_ZSTD)
		code = decompress(segment, block, err);
	else
		segment->entries = segment->stored.bytes;
	if (code)
		return code;
	what = archive_entries_check(segment->entries, block->raw, block->entries, content);
	return what ? refuse_block(segment, err, what)
		    : check_records(segment, block, content->records, err);
}

static int read_end(struct archive_segment *segment, struct r3ring_error *err)
{
	int code = look_at_file(segment, err);

	if (code || segment->bytes == segment->offset)
		return code;
	return archive_refuse(err, -EBADMSG, segment->number, segment->offset,
			      "the segment was closed here, and yet the file has %" PRIu64 " bytes",
			      segment->bytes);
}

int archive_segment_next(struct archive_segment *segment, struct r3ring_error *err)
{
	struct archive_block_head block = {0};
	struct archive_content content;
	int code;

	if (segment->closed)
		return read_end(segment, err);
	code = read_head(segment, &block, err);
	if (code <= 0)
		return code;
	code = read_entries(segment, &block, &content, err);
	if (code == -ENOMEM)
		return r3ring_error_set(err, code, "no memory for a block of %u bytes", block.raw);
	if (code)
		return code;
	segment->start = segment->offset;
	segment->offset += archive_block_span(&block);
	segment->block = block;
	segment->closed = block.flags & ARCHIVE_BLOCK_LAST;
	segment->more = block.flags & ARCHIVE_BLOCK_MORE;
	segment->chain =
		(struct archive_chain){.number = block.number + 1,
				       .hash = block.head_hash,
				       .records = block.records,
				       .records_known = true,
				       .state = content.state ? block.number : block.state};
	return 1;
}
