/* SPDX-License-Identifier: Apache-2.0 */
/* Where reading begins. */
#include <errno.h>
#include <stdlib.h>

#include <r3ring/atomic.h>

#include "ring/cursor.h"
#include "ring/descriptor.h"

static int begin_at(struct r3ring_cursor *cursor, uint64_t seq)
{
	cursor->stats.start = seq;
	cursor->stats.cursor = seq;
	cursor->total_known = window_units_before(cursor->segment, seq, &cursor->total);
	return 0;
}

static int begin_at_seq(struct r3ring_cursor *cursor, uint64_t seq)
{
	uint64_t first = cursor->segment->header.first_seq;
	struct r3ring_desc before;

	if (seq < first)
		seq = first;
	/* The tail may lag behind a record that this caller has read already. */
	if (seq - 1 > tail_newest(cursor->segment) &&
	    desc_copy(cursor->segment, seq - 1, &before) != DESC_INTACT)
		return -ERANGE;
	return begin_at(cursor, seq);
}

static int begin_at_window(struct r3ring_cursor *cursor, bool keyframe)
{
	const struct r3ring_segment *segment = cursor->segment;
	uint64_t seq, total;
	struct window window;
	int rc = -EAGAIN;

	for (int tries = 0; rc == -EAGAIN && tries < RESUME_TRIES; tries++)
		rc = window_find(segment, segment->header.first_seq, &window);
	if (rc)
		return begin_at(cursor, segment->header.first_seq);
	seq = window_begin(segment, &window);
	if (!keyframe && seq < window.oldest)
		return begin_at(cursor, seq);
	seq = window.oldest;
	total = window.units_before;
	if (keyframe) {
		uint64_t newest = r3ring_load_relaxed_u64(&segment->lines->keyframe_seq);
		uint64_t before;

		if (window_flagged_record(segment, newest, R3RING_DESC_KEYFRAME, &window,
					  &before)) {
			seq = newest;
			total = before;
		}
	}
	cursor->stats.start = seq;
	cursor->stats.cursor = seq;
	cursor->total = total;
	cursor->total_known = true;
	return 0;
}

static int begin(struct r3ring_cursor *cursor, enum r3ring_cursor_start from, uint64_t seq)
{
	switch (from) {
	case R3RING_FROM_OLDEST:
		return begin_at_window(cursor, false);
	case R3RING_FROM_KEYFRAME:
		return begin_at_window(cursor, true);
	case R3RING_FROM_LATEST:
		return begin_at(cursor, tail_newest(cursor->segment) + 1);
	case R3RING_FROM_SEQ:
		return begin_at_seq(cursor, seq);
	case R3RING_FROM_FIRST:
		return begin_at_seq(cursor, 0);
	}
	return -EINVAL;
}

int r3ring_cursor_open(struct r3ring_cursor **cursor, const struct r3ring_segment *segment,
		       enum r3ring_cursor_mode mode, enum r3ring_cursor_start from, uint64_t seq)
{
	struct r3ring_cursor *opened;
	int rc;

	if (mode != R3RING_LOSSY && mode != R3RING_LATEST)
		return -EINVAL;
	opened = calloc(1, sizeof(*opened));
	if (!opened)
		return -ENOMEM;
	opened->segment = segment;
	opened->mode = mode;
	rc = begin(opened, from, seq);
	if (rc) {
		free(opened);
		return rc;
	}
	*cursor = opened;
	return 0;
}

void r3ring_cursor_close(struct r3ring_cursor *cursor)
{
	free(cursor);
}
