/* SPDX-License-Identifier: Apache-2.0 */
/* LIST: which channels there are. */
#ifndef DAEMON_LISTING_H
#define DAEMON_LISTING_H

#include <r3ring/error.h>

struct session;

/* Answers the LIST in the daemon's inbox. Returns 0 or a negative errno with a
 * message for the peer. */
int listing_send(struct session *session, struct r3ring_error *err);

#endif
