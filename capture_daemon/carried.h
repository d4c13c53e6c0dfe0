/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a daemon leaves of a ring that it closes though its producer may live on: the
 * live requests, whether any lack, the EPLB maps, and up to which step readers were told
 * all, and what of the gap behind it. The ring is gone then, so a file of the runtime
 * directory says it.
 */
#ifndef DAEMON_CARRIED_H
#define DAEMON_CARRIED_H

#include "capture_daemon/runtime_dir.h"
#include "record/live.h"

struct carried_told {
	uint64_t step;        /* where that is more than the producer's pages say; else 0 */
	uint64_t gap_records; /* LOST of the steps behind it, not yet all */
	uint64_t former;      /* generation that the producer may have known last in place of
			       * this one, of which it need never have heard; 0: none */
};

/*
 * Leaves @live of a channel's @generation; a death meanwhile leaves what was there before.
 * Returns 0 or an errno.
 */
int carried_store(struct runtime_dir *dir, const struct r3ring_channel_name *channel,
		  uint64_t generation, const struct live *live, const struct carried_told *told);

/*
 * Adds what was left of a channel, if it is of @generation, or of one that the producer may
 * not have heard of behind that, to @live, and sets @told.
 * Returns 0, also when nothing was left; or an errno, and then a part may be missing.
 */
int carried_read(struct runtime_dir *dir, const struct r3ring_channel_name *channel,
		 uint64_t generation, struct live *live, struct carried_told *told);

/* What was left is in the ring now, or is of no use to anybody. */
void carried_remove(struct runtime_dir *dir, const struct r3ring_channel_name *channel);

#endif
