/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections that take too long. The HTTP library closes those on which nothing moves; a
 * client that sends a byte now and then would keep one of the few there are for ever. So each
 * exchange, from its first byte to the last of its answer, has a time at which its connection
 * is shut down.
 */
#ifndef SERVE_PATIENCE_H
#define SERVE_PATIENCE_H

#include <stdint.h>

#include <r3ring/error.h>

struct patience;
struct waited; /* a connection */

/* Returns 0, or the errno of a thread that was not to be had, with a message. Pairs with
 * patience_stop(), when no connection is left. */
int patience_start(struct patience **patience, uint32_t limit_ms, struct r3ring_error *err);
void patience_stop(struct patience *patience);

/* A connection was opened; the time of its first exchange begins. NULL without memory: then it
 * is waited for without end. The others take NULL for such a one. */
struct waited *patience_opened(struct patience *patience, int fd);

/* Before its descriptor is closed. */
void patience_closed(struct waited *waited);

/* Its exchange is over: the time of the next one begins. */
void patience_renew(struct waited *waited);

/* What it is answered comes over time, and as long as it likes. */
void patience_forgo(struct waited *waited);

#endif
