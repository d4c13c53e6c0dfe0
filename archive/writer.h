/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Appends to an archive: entries are gathered into blocks, compressed, and written through
 * io_uring with several writes in flight.
 *
 *	open -> { channel, generation, record, gap } ... sync ... -> close
 *
 * An archive that a recorder left by a crash is cut behind its last whole block, and goes on.
 */
#ifndef ARCHIVE_WRITER_H
#define ARCHIVE_WRITER_H

#include <stdbool.h>
#include <stdint.h>

#include <r3ring/error.h>
#include <r3ring/ring.h>

#include "archive/format.h"

struct archive_writer;

enum archive_sync {
	ARCHIVE_SYNC_NEVER = 0,  /* the kernel writes when it likes */
	ARCHIVE_SYNC_PERIOD = 1, /* every sync_ms */
	ARCHIVE_SYNC_BLOCK = 2,  /* each block */
};

struct archive_writer_options {
	const char *dir; /* made where it is not there (0700) */
	int level;       /* zstd's, 1 to 19; 0: do not compress */
	enum archive_sync sync;
	uint32_t sync_ms;
	uint64_t segment_bytes;          /* a new segment beyond it */
	uint64_t max_bytes;              /* of all segments; 0: no limit */
	bool rotate;                     /* beyond max_bytes the oldest segments go; else -EDQUOT */
	uint32_t layer_first, layer_end; /* as in struct archive_segment_head */
};

/* Where a channel's recording ended when the archive was opened. */
struct archive_cursor {
	const char *name; /* until close */
	uint64_t generation;
	uint8_t uuid[16];
	uint64_t seq; /* of its last record that is in the archive */
};

/*
 * Returns 0, -EBUSY (another recorder writes it), -EBADMSG (what is there is damaged before
 * its end; nothing is changed), -EPROTO (a later format, or other layers), -ENOSPC, -EACCES,
 * -ENOMEM, -EIO.
 */
int archive_writer_open(struct archive_writer **writer,
			const struct archive_writer_options *options, struct r3ring_error *err);

/* Writes all, marks the segment as closed and syncs. Frees @writer whatever it returns: 0 or
 * the first error of any write. NULL is fine. */
int archive_writer_close(struct archive_writer *writer, struct r3ring_error *err);

/* The cursors, [count], until close. */
const struct archive_cursor *archive_writer_cursors(const struct archive_writer *writer,
						    uint32_t *count);

/* Declares a channel. Returns its index, the same again for a known name; -ENOSPC (65536). */
int archive_writer_channel(struct archive_writer *writer, const char *name);

/* All of these return 0, -ENOSPC or -EDQUOT (full: nothing of the entry is there, and after
 * archive_writer_close() the archive is whole), -EIO, -ENOMEM. */
int archive_writer_generation(struct archive_writer *writer, uint16_t channel, uint64_t generation,
			      const uint8_t uuid[16]);
int archive_writer_record(struct archive_writer *writer, uint16_t channel,
			  const struct r3ring_view *view);
int archive_writer_gap(struct archive_writer *writer, uint16_t channel,
		       const struct archive_gap *gap);

/* Starts what is due: blocks that are full or a sync whose time has come; collects what is
 * done. Never waits unless all buffers are in flight. */
int archive_writer_poll(struct archive_writer *writer, struct r3ring_error *err);

struct archive_writer_stats {
	uint64_t records, raw_bytes, stored_bytes;
	uint64_t segments, removed_segments;
	uint64_t synced_records; /* would be there after a power loss now */
};

void archive_writer_get_stats(const struct archive_writer *writer,
			      struct archive_writer_stats *stats);

#endif
