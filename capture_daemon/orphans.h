/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Segments of a daemon that died: kept readable until their producer comes back
 * and a next generation continues them, or for 10 seconds.
 */
#ifndef DAEMON_ORPHANS_H
#define DAEMON_ORPHANS_H

struct daemon;

/* Takes over the segments that are listed in the runtime directory and whose
 * writer is dead. Others of the list are taken off it, and said. */
void orphans_adopt(struct daemon *daemon);

/* Closes those whose time is over. */
void orphans_expire(struct daemon *daemon);

#endif
