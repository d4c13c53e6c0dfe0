/* SPDX-License-Identifier: Apache-2.0 */
/* What the daemon says of itself and its channels, as JSON. */
#ifndef DAEMON_STATUS_H
#define DAEMON_STATUS_H

#include <r3ring/error.h>

struct session;

/* Answers GET_STATUS: a message a channel, then one of the daemon. Returns 0 or a
 * negative errno with a message. */
int status_send(struct session *session, struct r3ring_error *err);

#endif
