/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pictures of a daemon, one after the other, taken by a thread, so that nobody who looks
 * waits for the daemon.
 */
#ifndef MONITOR_DAEMON_WATCH_H
#define MONITOR_DAEMON_WATCH_H

#include "monitor/daemon_picture.h"

struct daemon_watch;

/*
 * Takes the first picture, then one every @interval_ms.
 *
 * @runtime_dir: copied; NULL: as readers find it.
 *
 * Returns 0 or -ENOMEM. Pairs with daemon_watch_stop(), which waits for a picture that is
 * being taken: two seconds at most.
 */
int daemon_watch_start(struct daemon_watch **watch, const char *runtime_dir, uint32_t interval_ms,
		       struct r3ring_error *err);
void daemon_watch_stop(struct daemon_watch *watch);

/*
 * The newest picture, and the live one before it, which rates are from. Each may be NULL,
 * and is put by the caller. Any thread; never waits for the daemon.
 */
void daemon_watch_look(struct daemon_watch *watch, struct daemon_picture **before,
		       struct daemon_picture **now);

/*
 * Has each picture from now on told to @tell by the thread that takes them, while nobody
 * else is told; the newest one at once. One listener; @tell must not call the watch.
 */
void daemon_watch_tell(struct daemon_watch *watch,
		       void (*tell)(void *context, const struct daemon_picture *picture),
		       void *context);

#endif
