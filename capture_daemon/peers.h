/* SPDX-License-Identifier: Apache-2.0 */
/* Who may talk to the daemon. */
#ifndef DAEMON_PEERS_H
#define DAEMON_PEERS_H

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/types.h>

#include <r3ring/error.h>

#define PEERS_NO_GROUP ((gid_t)-1)

/* Looks a group's number up. Returns 0 or -ENOENT with a message. */
int peers_find_group(const char *name, gid_t *gid, struct r3ring_error *err);

/*
 * Checks the other end of a connected Unix socket: the daemon's user, root, or
 * a member of @gid (unless PEERS_NO_GROUP).
 *
 * @peer: receives who it is, also when it is refused.
 *
 * Returns 0, -EACCES with a message for the peer, or an errno.
 * Source: unix(7), SO_PEERCRED and SO_PEERGROUPS.
 */
int peers_check(int fd, gid_t gid, struct ucred *peer, struct r3ring_error *err);

/* Checks that @fd is a pidfd, which the peer says it is. Returns 0, -EBADMSG when it
 * is none, or an errno, with a message. */
int peers_check_pidfd(int fd, struct r3ring_error *err);

#endif
