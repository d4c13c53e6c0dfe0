/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asking the daemon for its state.
 */
#ifndef TOOLS_DAEMON_STATUS_H
#define TOOLS_DAEMON_STATUS_H

#include <stdbool.h>

#include <jansson.h>

#include <r3ring/error.h>

/*
 * Asks the daemon that is found as socket_connect() finds it.
 *
 * @status: receives {"daemon": {...}, "channels": [{...}, ...]}, what the daemon
 *          tells unchanged; a new reference. Untouched on failure.
 *
 * Returns 0, what socket_connect() returns (-ECONNREFUSED: no daemon), -EBADMSG
 * (the answer is no JSON), or the errno of a broken conversation.
 */
int daemon_status_get(json_t **status, struct r3ring_error *err);

/* Whether @code says that there is no daemon to connect to, or none that this user may. */
bool daemon_is_missing(int code);

#endif
