/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether an engine's process lives, also while no daemon is there to tell. Watched is the process
 * that a daemon said to be a live channel's, where this process is in the daemon's PID namespace:
 * elsewhere its number is another one's.
 */
#ifndef MONITOR_LIFE_H
#define MONITOR_LIFE_H

#include <stdbool.h>

#include "monitor/daemon_picture.h"

struct life {
	int pidfd; /* -1: no process is watched */
};

static inline struct life life_of_nobody(void)
{
	return (struct life){.pidfd = -1};
}

/*
 * Watches the process of the channel @told of @picture, unless one is watched already, or the
 * picture does not say which one here that is.
 *
 * @pid_namespace: of this process, 0: not known (channel/namespaces.h).
 *
 * Pairs with life_forget().
 */
void life_watch(struct life *life, const struct daemon_picture *picture,
		const struct picture_channel *told, uint64_t pid_namespace);
void life_forget(struct life *life);

/* Whether the process that is watched has died; false: it lives, or none is watched. */
bool life_is_over(const struct life *life);

#endif
