/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asking the daemon for its state.
 */
#ifndef MONITOR_DAEMON_STATUS_H
#define MONITOR_DAEMON_STATUS_H

#include <stdbool.h>

#include <jansson.h>

#include <r3ring/error.h>

/*
 * Asks the daemon of @runtime_dir, which is found as socket_connect() finds it.
 *
 * @timeout_ms: how long the whole answer may take.
 * @status:     receives {"daemon": {...}, "channels": [{...}, ...]}, what the daemon
 *              tells unchanged; a new reference. Untouched on failure.
 *
 * Returns 0, what socket_connect() returns (-ECONNREFUSED: no daemon), -ETIMEDOUT,
 * -EBADMSG (the answer is no JSON), or the errno of a broken conversation.
 */
int daemon_status_ask(const char *runtime_dir, int timeout_ms, json_t **status,
		      struct r3ring_error *err);

/* The same of the daemon that is found without being told where, within five seconds. */
int daemon_status_get(json_t **status, struct r3ring_error *err);

/* Whether @code says that there is no daemon to connect to, or none that this user may. */
bool daemon_is_missing(int code);

#endif
