/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Verifying an archive: every byte, every number and every account of it, each channel's
 * and the index's. What is wrong is told as it is found; it goes on to the end.
 */
#ifndef ARCHIVE_VERIFY_H
#define ARCHIVE_VERIFY_H

#include <stdbool.h>
#include <stdint.h>

#include <r3ring/error.h>
#include <r3ring/record.h>

#include "archive/again.h"
#include "archive/ranks.h"
#include "archive/reader.h"
#include "archive/unread.h"
#include "consumer/channel_losses.h"

struct archive_verified {
	uint64_t problems; /* told */
	uint8_t uuid[16];
	uint64_t first_segment, last_segment, segments, blocks;
	bool lacks_beginning;         /* as of struct archive_extent */
	uint64_t bytes;               /* of all segments */
	struct archive_unread unread; /* for damage; in no figure here but gaps */
	uint64_t ring_bytes;          /* payloads of its records, as they were in the rings */
	uint64_t channels, generations;
	uint64_t records[R3RING_RECORD_TYPES]; /* by type; 0: of types not known */
	uint64_t skipped;                      /* LAYER records left out on purpose, */
	struct archive_kept kept;              /* since these were to be kept; end 0: all */
	uint64_t steps, steps_complete, steps_partial, steps_dropped;
	uint64_t rows;       /* tokens of the steps announced */
	uint64_t layer_rows; /* tokens x layers that are there */
	uint64_t requests_begun, requests_ended;
	struct archive_told_again again;          /* of all these */
	struct lost_account lost;                 /* by the channels themselves */
	uint64_t gaps[ARCHIVE_GAP_CAUSES];        /* by cause */
	uint64_t gap_records[ARCHIVE_GAP_CAUSES]; /* of known number */
	uint64_t gaps_unsized;
	struct archive_absent_ranks absent; /* of the engines whose channels there are */
	uint64_t resumed;                   /* how often a recorder went on */
	uint64_t cut_bytes;                 /* that were not whole then */
	bool being_written; /* a recorder is at work: what it has written by now was looked at */
	uint64_t first_ns, last_ns; /* CLOCK_REALTIME of the first and the last block */
};

struct archive_verify_hooks {
	void (*problem)(void *ctx, const char *text);
	void (*progress)(void *ctx, uint64_t passed, uint64_t bytes); /* may be NULL */
	void *ctx;
};

/* "late", "overrun", ...; "?" for an unknown value. */
const char *archive_gap_cause_name(uint32_t cause);

/*
 * Verifies the archive in @dir.
 *
 * @verified: receives what is there.
 *
 * Returns 0 (all of it was looked at: verified->problems says whether it is true), or as
 * archive_reader_open() and archive_reader_next().
 */
int archive_verify(const char *dir, const struct archive_verify_hooks *hooks,
		   struct archive_verified *verified, struct r3ring_error *err);

/* What the archive is, of a reader that has come to its end: segments, bytes, blocks, what was
 * not read, the time of the last block, and whether it is being written. */
void archive_verified_describe(struct archive_verified *verified,
			       const struct archive_reader *reader);

#endif
