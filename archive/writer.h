/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Appends to an archive: entries are gathered into blocks, which other threads compress
 * and write, through io_uring with several writes in flight, or with pwrite where io_uring
 * is refused.
 *
 *	open -> { channel, generation, record, gap, poll } ... -> close
 *
 * An archive that a recorder left by a crash is cut behind its last whole block, and goes
 * on. One thread a writer.
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
	ARCHIVE_SYNC_NEVER = 0,  /* the kernel writes when it likes; synced is what is closed */
	ARCHIVE_SYNC_PERIOD = 1, /* every sync_ms */
	ARCHIVE_SYNC_BLOCK = 2,  /* each block */
};

struct archive_writer_options {
	const char *dir; /* made where it is not there (0700) */
	int level;       /* zstd's, 1 to 19; 0: do not compress */
	enum archive_sync sync;
	uint32_t sync_ms;       /* also how long an entry waits for its block to be full; 0: 1000 */
	uint64_t segment_bytes; /* a new segment beyond it; 0: 256 MiB */
	uint64_t max_bytes;     /* of all segments; 0: no limit */
	bool rotate;            /* beyond max_bytes the oldest segments go; else -EDQUOT */
	bool no_uring;          /* pwrite though there is io_uring */
	uint32_t workers;       /* threads that compress; 0: by the processors */
	/* As in struct archive_segment_head. */
	uint32_t layer_first, layer_end;
};

/* Where a channel's recording ended when the archive was opened. */
struct archive_cursor {
	const char *name; /* until close */
	uint64_t generation;
	uint8_t uuid[16];
	uint64_t seq; /* of its last record that is in the archive, or in one of its gaps */
	bool closed;  /* and that was CLOSED: the generation is there to its end */
};

/* Whether the options, but for the directory, can work. Returns 0 or -EINVAL, and which and
 * why in @err. */
int archive_writer_check(const struct archive_writer_options *options, struct r3ring_error *err);

/*
 * Opens an archive to append to it.
 *
 * @writer:  receives the handle; untouched on failure.
 * @options: copied.
 * @err:     receives the reason in words; may be NULL.
 *
 * Returns 0, -EINVAL (an option, named), -EBUSY (another recorder writes it), -EBADMSG
 * (what is there is damaged where it had been synced, or its last segments are missing;
 * nothing is changed), -EPROTO (a later format, or other layers), -EDQUOT (it is as large as
 * max_bytes allows), -ENOSPC, -EACCES, -ENOMEM, -EIO, or what else the file system says. Pairs with archive_writer_close().
 */
int archive_writer_open(struct archive_writer **writer,
			const struct archive_writer_options *options, struct r3ring_error *err);

/* Writes all, marks the segment as closed and syncs. Only the accounts may be asked for
 * afterwards. Returns 0 or the first error of any write, in words in @err (may be NULL). */
int archive_writer_finish(struct archive_writer *writer, struct r3ring_error *err);

/* The same where it was not done, and frees @writer, whatever it returns. NULL is fine. */
int archive_writer_close(struct archive_writer *writer, struct r3ring_error *err);

/* What the archive held when it was opened. */
struct archive_resumption {
	bool resumed;                  /* false: it was made */
	bool closed;                   /* in good order */
	uint64_t missing;              /* a segment in front of the last; 0: none */
	struct archive_resumed record; /* as the archive has it */
	const struct archive_cursor *cursors;
	uint32_t count;
};

/* Valid until close. */
const struct archive_resumption *archive_writer_resumption(const struct archive_writer *writer);

/* Declares a channel. Returns its index, the same again for a known name; or as below,
 * -ENOSPC also where there are 65536. */
int archive_writer_channel(struct archive_writer *writer, const char *name);

/*
 * All of these return 0, or the first error of any write, and then always: -ENOSPC (the
 * disk is full), -EDQUOT (max_bytes), -EMSGSIZE (not even one block, or segment, of what comes
 * has room in max_bytes), -ESTALE (the archive was removed), -EIO; or -EMSGSIZE
 * (ARCHIVE_RECORD_MAX), -ENOMEM. Unless it is gone, the archive is whole nonetheless, up to
 * what stats.stored_records say; from there the next recorder resumes.
 */
int archive_writer_generation(struct archive_writer *writer, uint16_t channel, uint64_t generation,
			      const uint8_t uuid[16]);
/* A LAYER record that the layers leave out becomes a SKIPPED entry. */
int archive_writer_record(struct archive_writer *writer, uint16_t channel,
			  const struct r3ring_view *view);
int archive_writer_gap(struct archive_writer *writer, uint16_t channel,
		       const struct archive_gap *gap);
/* What the engine ran behind the channel's last record is not known; @step: the newest that was
 * announced, 0: none. */
int archive_writer_unfollowed(struct archive_writer *writer, uint16_t channel, uint64_t step);

/*
 * Where the next record's payload would go: who reads it there spares a copy.
 *
 * @bytes:    at least so many, a payload's length.
 * @capacity: receives how many there are.
 *
 * Returns the place, 8-byte aligned, for the next archive_writer_record() of a view whose
 * data it is; any other call on @writer forgets it. NULL: as an error above, of the next call.
 */
void *archive_writer_room(struct archive_writer *writer, uint32_t bytes, size_t *capacity);

/* To be called now and then: hands on a block that is not full but old. Returns as above. */
int archive_writer_poll(struct archive_writer *writer);

/* The first error in words, "" when none. */
const char *archive_writer_error(const struct archive_writer *writer);

struct archive_writer_stats {
	uint64_t records;        /* given, those of before an opening not counted */
	uint64_t left_out;       /* of these, LAYER records that the layers leave out */
	uint64_t stored_records; /* of these, in the archive's files by now */
	uint64_t synced_records; /* of these, there after a power loss now */
	uint64_t entry_bytes;    /* of blocks in the files, before compression */
	uint64_t stored_bytes;   /* of what was written since the opening */
	uint64_t archive_bytes;  /* of all segments */
	uint64_t segment;        /* number of the newest */
	uint64_t removed_segments, removed_records; /* those with these, whoever wrote them */
	/* Once it is finished: */
	uint64_t archive_segments; /* that are there */
	uint64_t archive_records;  /* in them, those that the layers leave out too, */
	bool archive_counted;      /* else that is not known: some are missing or damaged */
	bool uring;                /* how it writes */
};

void archive_writer_get_stats(const struct archive_writer *writer,
			      struct archive_writer_stats *stats);

#endif
