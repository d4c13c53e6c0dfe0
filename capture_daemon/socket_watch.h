/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether the socket's file is still where clients look for it: a daemon whose socket was
 * removed, by somebody who tidies up, would be there and found by nobody.
 */
#ifndef DAEMON_SOCKET_WATCH_H
#define DAEMON_SOCKET_WATCH_H

struct daemon;

/* Makes the socket again whenever it is gone, and says so. Where the kernel tells of no such
 * changes nothing is watched. Pairs with socket_watch_close(). */
void socket_watch_open(struct daemon *daemon);
void socket_watch_close(struct daemon *daemon);

#endif
