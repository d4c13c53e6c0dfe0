/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an archive has said of a channel and must say again at the beginning of a segment,
 * so that the segment can be read alone.
 */
#ifndef ARCHIVE_CHANNEL_STATE_H
#define ARCHIVE_CHANNEL_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <r3ring/ring.h>

#include "archive/format.h"
#include "record/live.h"

struct channel_state {
	char *name;
	bool begun;                           /* a GENERATION was said */
	struct archive_generation generation; /* seq: of its last record, or the end of a gap */

	void *schema;
	uint32_t schema_bytes;
	struct live live;
	struct r3ring_keyframe_record keyframe; /* newest: its totals; step: newest announced */
	bool whole;                             /* it is known what is live */
	bool gap;                               /* and what is not since: until a keyframe */
	uint32_t left;                          /* records of a keyframe that are still to come */
	uint64_t next_seq;                      /* and the number of the next */
};

/* By index. Zeroed: none. */
struct channel_states {
	struct channel_state *channels;
	uint32_t count, capacity;
};

void channel_states_release(struct channel_states *states);

/* Index of a name that is there, or UINT32_MAX. */
uint32_t channel_states_find(const struct channel_states *states, const char *name, size_t length);

/* Adds one. Returns its index, -ENOSPC (as many as there can be) or -ENOMEM. */
int channel_states_add(struct channel_states *states, const char *name, size_t length);

void channel_state_generation(struct channel_state *state,
			      const struct archive_generation *generation);

/* @view: one that is in the archive, with its payload whole. Returns 0 or -ENOMEM. */
int channel_state_record(struct channel_state *state, const struct r3ring_view *view);

void channel_state_gap(struct channel_state *state, const struct archive_gap *gap);

/* A LAYER record that was left out. */
void channel_state_skipped(struct channel_state *state, uint64_t seq);

#endif
