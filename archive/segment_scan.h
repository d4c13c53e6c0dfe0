/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a segment up to where it is whole. */
#ifndef ARCHIVE_SEGMENT_SCAN_H
#define ARCHIVE_SEGMENT_SCAN_H

#include <stdbool.h>
#include <stdint.h>

#include <r3ring/error.h>

#include "archive/channel_state.h"
#include "archive/format.h"

struct segment_scan {
	uint64_t number; /* that its name says */

	uint64_t bytes; /* of the file */
	struct archive_segment_head head;
	bool has_head;                  /* it is intact and this segment's */
	uint64_t whole;                 /* bytes up to the end of the last whole block */
	struct archive_block_head last; /* that block; number 0: none */
	bool ready;                     /* READY was met */
	bool damaged;                   /* what is not whole had been synced */
	uint64_t cut_before;            /* RESUMED in it: what was cut then */
};

/*
 * Scans segment @scan->number in a directory, and tells @states of each entry of a whole
 * block.
 * Returns 0, -EPROTO (a later format), -ENOMEM, or an errno of reading.
 */
int segment_scan(struct segment_scan *scan, int dir_fd, struct channel_states *states,
		 struct r3ring_error *err);

#endif
