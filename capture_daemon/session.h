/* SPDX-License-Identifier: Apache-2.0 */
/* One connection and its messages. */
#ifndef DAEMON_SESSION_H
#define DAEMON_SESSION_H

#include <stdbool.h>
#include <sys/socket.h>

#include <r3ring/error.h>
#include <r3ring/proto.h>

#include "capture_daemon/loop.h"
#include "capture_daemon/registration.h"

struct daemon;
struct channel;
struct opening;
struct outgoing; /* a message that the peer has not taken yet */

struct session {
	struct session *prev, *next;
	struct daemon *daemon;
	struct loop_source source;
	struct ucred peer;
	struct channel *channel; /* whose producer it is, or NULL */
	struct opening *opening; /* of the channel that is being opened for it, or NULL */
	bool is_reader;
	struct r3ring_channel_name reads; /* what a reader asked for last */
	struct registration registration; /* of a reader that asked for it */
	struct outgoing *outbox;          /* utlist */
	size_t outbox_bytes;
};

/* Accepts what waits at the listener; loop_source.ready of the listener. */
void session_accept(struct loop_source *listener, uint32_t events);

/*
 * Sends without ever waiting: what the peer does not take now is kept, up to a
 * bound; a message with descriptors is not kept. Returns 0, or a negative
 * errno: the caller closes the session.
 */
int session_send(struct session *session, struct r3ring_message *message, size_t bytes,
		 const void *extra, size_t extra_bytes, const int *fds, unsigned int fd_count);

/* Whether its messages are heard, or wait. A hang-up closes it in both cases. Returns 0 or
 * a negative errno: the caller closes the session. */
int session_listen(struct session *session, bool listens);

/* Whether the peer has hung up, though no event has said so yet. */
bool session_has_hung_up(const struct session *session);

/* Tells the peer why, and closes the session. */
void session_refuse(struct session *session, const struct r3ring_error *why);

/* The same of what it asked for; where it may ask again the session stays. */
void session_fail(struct session *session, struct r3ring_error *why);

/* Hangs up. A producer's channel is told. */
void session_close(struct session *session);

#endif
