/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads an archive's entries in their order, in bounded memory, and believes nothing that
 * its hashes and accounts do not bear out.
 *
 *	open -> { next ... } -> close
 */
#ifndef ARCHIVE_READER_H
#define ARCHIVE_READER_H

#include <stdbool.h>
#include <stdint.h>

#include <r3ring/error.h>
#include <r3ring/ring.h>

#include "archive/format.h"

struct archive_reader;

/* Where something is. */
struct archive_place {
	uint64_t segment; /* number */
	uint64_t offset;  /* of its block in the segment */
	uint32_t entry;   /* within the block */
};

/* Of the model's layers a recorder was told to keep [first, end) only; end 0: all. */
struct archive_kept {
	uint32_t layer_first, layer_end;
};

struct archive_item {
	uint16_t kind;     /* enum archive_entry_kind */
	uint16_t channel;  /* a number for each name, the same in all segments */
	uint32_t repeated; /* 1: a segment says it again, see archive_reader_next() */
	uint64_t time_ns;  /* of its block, CLOCK_REALTIME */
	const char *name;  /* of the channel, until close; NULL: RESUMED has none */
	struct archive_place place;
	/* RECORD, SKIPPED; of UNFOLLOWED sequence and step too, of others the generation alone.
	 * Data is aligned to 8, as r3ring_record_decode() needs it, and there until the next next. */
	struct r3ring_view view;
	union {
		struct archive_generation generation;
		struct archive_gap gap;
		struct archive_resumed resumed;
		struct archive_kept kept; /* SKIPPED: why */
	} u;
};

/*
 * Opens the archive in @dir at its first segment.
 * Returns 0, -ENOENT (no archive there), -EBADMSG (no segment can be read), -EPROTO (a later
 * format), -EACCES, -ENOMEM, -EIO. A recorder may be at work: what it has written by now is read.
 */
int archive_reader_open(struct archive_reader **reader, const char *dir, struct r3ring_error *err);
void archive_reader_close(struct archive_reader *reader);

/* Threads read and decompress what comes next, where there are processors for them: for whoever
 * has much to do with each entry. Costs a few MiB; what is given is the same. */
void archive_reader_read_ahead(struct archive_reader *reader);

/*
 * The next entry, checked. What a segment says again of those before (its channels, their
 * generation, and a keyframe) is given, flagged `repeated`, only where
 * the one before was not read to its end: at the beginning, after a seek, behind damage.
 * Payloads are what the ring gave, which need not be what r3ring_record_decode() takes.
 *
 * Returns 1, 0 (the end; while a recorder is at work there may be more later), -EBADMSG
 * (damage, @err says where and what, and how much is not read; the next call goes on behind it,
 * with a later block of the segment or the next segment), -ENOMEM, -EIO.
 *
 * Each channel that lost records by that, or of which it is not known, then has a GAP of cause
 * ARCHIVE_GAP_DAMAGED: in front of its next entry, behind its GENERATION where that begins a
 * segment or is the first that was read of it, or at the end. What came of a channel that nobody
 * can tell the generation of, for state was damaged, is not given, but counted as unread.
 *
 * That the newest segment has no end is damage, too, unless a recorder is at work; and so is
 * that segments are missing, at the beginning (unless its recorder removed the oldest), in the
 * middle, or at the end, as far as the last one that is there or the index says so.
 */
int archive_reader_next(struct archive_reader *reader, struct archive_item *item,
			struct r3ring_error *err);

/* Goes to the beginning of segment @number. Returns 0, -ENOENT, -EBADMSG, -ENOMEM, -EIO;
 * then it stays where it was. */
int archive_reader_seek(struct archive_reader *reader, uint64_t number, struct r3ring_error *err);

struct archive_extent {
	uint8_t uuid[16];
	uint64_t first_segment, last_segment;
	uint64_t bytes;       /* of all segments */
	bool lacks_beginning; /* what was before first_segment is lost, no recorder removed it */
};

void archive_reader_get_extent(const struct archive_reader *reader, struct archive_extent *extent);

/* What damage kept from being read up to now (archive/unread.h); until close. */
struct archive_unread;
const struct archive_unread *archive_reader_unread(const struct archive_reader *reader);

/* Bytes of segments passed so far, for progress; at the end those of all. */
uint64_t archive_reader_passed(const struct archive_reader *reader);

#endif
