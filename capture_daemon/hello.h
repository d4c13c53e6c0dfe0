/* SPDX-License-Identifier: Apache-2.0 */
/* A producer's hello, out of its message: what it says by itself is checked here. */
#ifndef DAEMON_HELLO_H
#define DAEMON_HELLO_H

#include <stdbool.h>
#include <stdint.h>

#include <r3ring/error.h>
#include <r3ring/proto.h>
#include <r3ring/record.h>

#include "channel/socket.h"

struct hello {
	struct r3ring_hello_producer_message *message; /* owned; its schema lies behind it */
	struct r3ring_record schema;                   /* points into that */
	int pages_fd, buffer_fd, pidfd; /* owned; -1: none, or somebody else's by now */
};

/*
 * Takes the message and its descriptors out of @inbox.
 *
 * Returns 0, -EBADMSG (malformed), -EINVAL (a schema or name that nobody can use), or
 * -ENOMEM, with a message for the producer; then there is nothing to release.
 */
int hello_take(struct hello *hello, struct socket_inbox *inbox, struct r3ring_error *err);
void hello_release(struct hello *hello);

/* Whether it is of a producer that comes back after a daemon's end. */
bool hello_comes_back(const struct hello *hello);

/* Host memory that the producer brings along, in bytes. */
uint64_t hello_memory(const struct hello *hello);

#endif
