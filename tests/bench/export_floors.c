/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <zstd.h>

#include "archive/block.h"
#include "tests/bench/bench.h"
#include "tests/bench/export_floors.h"

#define ROOM (4u << 20)           /* larger than any block of the benchmark's */
#define PIECE ((size_t)512 << 10) /* as an export writes */

struct walk {
	int in, out; /* -1: nothing is written */
	uint64_t offset, written, routes, raw;
	uint8_t *stored, *entries;
	ZSTD_DCtx *zstd;
	bool decompress_only;
	uint64_t ns;
};

static int walk_open(struct walk *walk, const char *archive)
{
	struct archive_segment_head head;
	char path[128];

	snprintf(path, sizeof(path), "%s/00000001" ARCHIVE_SUFFIX, archive);
	walk->in = open(path, O_RDONLY | O_CLOEXEC);
	walk->stored = aligned_alloc(ARCHIVE_ALIGN, ROOM);
	walk->entries = aligned_alloc(ARCHIVE_ALIGN, ROOM);
	walk->zstd = ZSTD_createDCtx();
	if (walk->in < 0 || !walk->stored || !walk->entries || !walk->zstd)
		return walk->in < 0 ? -errno : -ENOMEM;
	if (pread(walk->in, &head, sizeof(head), 0) != (ssize_t)sizeof(head))
		return -EBADMSG;
	walk->offset = head.bytes;
	return 0;
}

static void walk_close(struct walk *walk)
{
	if (walk->in >= 0)
		close(walk->in);
	if (walk->out >= 0)
		close(walk->out);
	free(walk->stored);
	free(walk->entries);
	ZSTD_freeDCtx(walk->zstd);
}

static int write_some(struct walk *walk, const uint8_t *entries, uint64_t bytes)
{
	const uint64_t left = walk->routes - walk->written;

	if (walk->out < 0)
		return 0;
	bytes = bytes < left ? bytes : left;
	if (pwrite(walk->out, entries, bytes, (off_t)walk->written) != (ssize_t)bytes)
		return -EIO;
	walk->written += bytes;
	return 0;
}

/* One block; 1: it was the last. */
static int step(struct walk *walk)
{
	struct archive_block_head head;
	const uint8_t *entries = walk->stored;
	uint64_t start = bench_now_ns();
	int rc = 0;

	if (pread(walk->in, &head, sizeof(head), (off_t)walk->offset) != (ssize_t)sizeof(head) ||
	    head.stored > ROOM || head.raw > ROOM ||
	    pread(walk->in, walk->stored, head.stored, (off_t)(walk->offset + sizeof(head))) !=
		    (ssize_t)head.stored ||
	    archive_hash(walk->stored, head.stored) != head.stored_hash)
		return -EBADMSG;
	start = walk->decompress_only ? bench_now_ns() : start;
	if (head.flags & ARCHIVE_BLOCK_ZSTD) {
		entries = walk->entries;
		if (ZSTD_decompressDCtx(walk->zstd, walk->entries, head.raw, walk->stored,
					head.stored) != head.raw)
			return -EBADMSG;
	}
	rc = write_some(walk, entries, head.raw);
	walk->ns += bench_now_ns() - start;
	walk->raw += head.raw;
	walk->offset += archive_block_span(&head);
	return rc ? rc : (head.flags & ARCHIVE_BLOCK_LAST) != 0;
}

static int walk_all(struct walk *walk, const char *archive)
{
	int rc = walk_open(walk, archive);

	while (!rc)
		rc = step(walk);
	walk_close(walk);
	return rc < 0 ? rc : 0;
}

int export_floor_pass(const char *archive, const char *out, uint64_t routes, uint64_t *ns)
{
	struct walk walk = {.routes = routes};
	int rc;

	walk.out = open(out, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (walk.out < 0)
		return -errno;
	rc = walk_all(&walk, archive);
	*ns = walk.ns;
	return rc || walk.written == routes ? rc : -EBADMSG;
}

int export_floor_decompress(const char *archive, uint64_t *raw, uint64_t *ns)
{
	struct walk walk = {.out = -1, .decompress_only = true};
	int rc = walk_all(&walk, archive);

	*raw = walk.raw;
	*ns = walk.ns;
	return rc;
}

int export_floor_write(const char *out, uint64_t bytes, uint64_t *ns)
{
	uint8_t *piece = malloc(PIECE);
	int fd = open(out, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	int rc = fd < 0 ? -errno : piece ? 0 : -ENOMEM;
	uint64_t start;

	if (piece)
		memset(piece, 1, PIECE);
	start = bench_now_ns();
	for (uint64_t at = 0; !rc && at < bytes; at += PIECE) {
		const size_t count = bytes - at < PIECE ? (size_t)(bytes - at) : PIECE;

		if (pwrite(fd, piece, count, (off_t)at) != (ssize_t)count)
			rc = -EIO;
	}
	*ns = bench_now_ns() - start;
	if (fd >= 0)
		close(fd);
	free(piece);
	return rc;
}
