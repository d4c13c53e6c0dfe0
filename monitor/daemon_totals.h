/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What channels carried and lost since somebody began to look: sums that never go back.
 * A channel's counts begin anew with each generation, some with each daemon; what was
 * counted before stays in the sum.
 *
 * What a generation did after its last picture and before the next one's first is not seen.
 */
#ifndef MONITOR_DAEMON_TOTALS_H
#define MONITOR_DAEMON_TOTALS_H

#include "monitor/daemon_picture.h"

#define TOTALS_CHANNELS_MAX 256u

enum total {
	TOTAL_STEPS,
	TOTAL_STEPS_PARTIAL,
	TOTAL_ROWS,
	TOTAL_RECORDS,
	TOTAL_BYTES,
	TOTAL_IDS_MISSING,
	TOTAL_IDS_OUT_OF_RANGE,
	TOTAL_READER_WAITS,
	TOTAL_READER_WAITS_MS,
	TOTAL_READERS_DEMOTED,
	TOTAL_LOST_STEPS, /* by cause: R3RING_CAUSE_COUNT of them */
	TOTAL_LOST_ROWS = TOTAL_LOST_STEPS + R3RING_CAUSE_COUNT,
	TOTALS = TOTAL_LOST_ROWS + R3RING_CAUSE_COUNT,
};

struct totals_channel {
	char name[CHANNEL_NAME_TEXT];
	char uuid[40];
	uint64_t generation;
	bool present; /* in the newest picture of a live daemon */
	uint64_t seen[TOTALS];
	uint64_t sum[TOTALS];
};

/* Zeroed: nothing was seen. */
struct daemon_totals {
	struct totals_channel channel[TOTALS_CHANNELS_MAX];
	uint32_t channels;
	uint64_t left_out; /* channels of the newest picture that there was no room for */
};

/* Takes a picture; one of a daemon that is gone changes nothing. A channel for which there
 * is no room takes that of one which is not in the picture, if there is such. */
void daemon_totals_take(struct daemon_totals *totals, const struct daemon_picture *picture);

#endif
