/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a daemon that ends in good order leaves to the next one: the live requests
 * and the EPLB maps of channels whose producer lives on. Its rings are gone then,
 * so a file of the runtime directory says them.
 */
#ifndef DAEMON_CARRIED_H
#define DAEMON_CARRIED_H

#include "capture_daemon/live.h"
#include "capture_daemon/runtime_dir.h"

/* Leaves @live of a channel's @generation; a death meanwhile leaves what was there before.
 * Returns 0 or an errno. */
int carried_store(struct runtime_dir *dir, const struct r3ring_channel_name *channel,
		  uint64_t generation, const struct live *live);

/*
 * Adds what was left of a channel, if it is of @generation, to @live. Returns 0, also
 * when nothing was left; or an errno, and then @live may have a part of it.
 */
int carried_read(struct runtime_dir *dir, const struct r3ring_channel_name *channel,
		 uint64_t generation, struct live *live);

/* What was left is in the ring now, or is of no use to anybody. */
void carried_remove(struct runtime_dir *dir, const struct r3ring_channel_name *channel);

#endif
