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

/* Leaves @live of a channel's @generation. Returns 0 or an errno. */
int carried_store(struct runtime_dir *dir, const struct r3ring_channel_name *channel,
		  uint64_t generation, const struct live *live);

/*
 * Takes what was left of a channel, if it is of @generation, into @live (empty), and
 * removes it in any case. Returns 0, also when nothing was left; or an errno, and then
 * @live is empty still.
 */
int carried_take(struct runtime_dir *dir, const struct r3ring_channel_name *channel,
		 uint64_t generation, struct live *live);

#endif
