/* SPDX-License-Identifier: Apache-2.0 */
/* What was lost since somebody began to look, over all channels of a daemon. */
#ifndef TOOLS_TOP_LOSSES_H
#define TOOLS_TOP_LOSSES_H

#include "monitor/daemon_picture.h"

#define LOSSES_RECENT_S 10u /* a loss is of now for so long */

/* What was lost lately, and of how much. */
struct losses_recent {
	uint64_t steps; /* announced, lost ones too */
	uint64_t lost, partial, out_of_range;
	uint64_t steps_of[R3RING_CAUSE_COUNT];
};

/* The pictures of one second. */
struct losses_second {
	uint64_t second; /* CLOCK_MONOTONIC */
	struct losses_recent sum;
};

struct top_losses {
	struct picture_lost steps; /* since the channels began, or since the reset */
	uint64_t partial;          /* steps in which layers are missing */
	uint64_t out_of_range;     /* ids beyond the number of experts */
	uint64_t readers_lost;     /* records, by registered readers that are there */
	uint32_t readers_demoted;  /* that are there */
	uint32_t crashed;          /* channels of which more may be lost */
	uint64_t unfollowed; /* ends, likewise, of the engine that is followed; not at the reset */
	uint64_t unfollowed_then; /* at the reset */
	uint32_t unbound;         /* channels of which layers are not captured */
	uint64_t newest_ns;       /* when the newest loss was seen to come; 0: none was */
	struct losses_second seconds[LOSSES_RECENT_S + 1];
	bool seen; /* a picture of a daemon that is there */
};

/*
 * Takes the next picture in.
 *
 * @before: the live picture before it, NULL for the first one: what was lost already counts,
 *          but nobody knows when that was.
 */
void top_losses_add(struct top_losses *losses, const struct daemon_picture *before,
		    const struct daemon_picture *now);

/* Takes in how many ends nobody follows by now, of the engine that is followed. */
void top_losses_ends(struct top_losses *losses, uint64_t unfollowed);

/* Sums up the last LOSSES_RECENT_S seconds. */
void top_losses_recent(const struct top_losses *losses, uint64_t now_ns,
		       struct losses_recent *recent);

/* Begins anew, with what is lost from here on. */
void top_losses_reset(struct top_losses *losses);

/* Whether anything was lost. Layers that nobody bound, and what readers lost that did not
 * ask to lose nothing, are none of the capture's losses. */
bool top_losses_any(const struct top_losses *losses);

/* Whether more may be lost than anybody counted. */
bool top_losses_doubt(const struct top_losses *losses);

#endif
