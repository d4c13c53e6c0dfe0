/* SPDX-License-Identifier: Apache-2.0 */
/* Tells the service manager about the daemon's state. */
#ifndef DAEMON_NOTIFY_H
#define DAEMON_NOTIFY_H

/*
 * Sends @state ("READY=1", "STOPPING=1") to $NOTIFY_SOCKET; does nothing where
 * there is none. Returns 0 or a negative errno.
 * Source: sd_notify(3), "Notes" on the protocol.
 */
int notify_send(const char *state);

#endif
