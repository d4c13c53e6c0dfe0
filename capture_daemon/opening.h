/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Channels that are being opened. What takes long, the memory of a ring and the import of
 * a GPU's buffer, is done by a thread of each one's own; what comes before and after by
 * the control loop, which serves everybody else meanwhile:
 *
 *	channel_open_check()    loop     may it be? how large?
 *	channel_open_make()     thread   buffer, ring
 *	channel_open_finish()   loop     the new generation begins
 *
 * The session waits and is not listened to. When it hangs up, or the daemon ends, the
 * thread is told to stop, and what it has made is undone once it has. One that comes back
 * under the same name meanwhile waits for that.
 */
#ifndef DAEMON_OPENING_H
#define DAEMON_OPENING_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <r3ring/error.h>
#include <r3ring/proto.h>

#include "capture_daemon/hello.h"
#include "capture_daemon/loop.h"
#include "capture_daemon/sizing.h"

struct channel;
struct daemon;
struct session;

struct opening {
	struct opening *prev, *next;
	struct daemon *daemon;
	struct session *session; /* NULL: it has hung up */
	struct hello hello;
	struct ring_sizes sizes;
	bool same_ring;          /* it goes on in that of a dead daemon: nothing takes long */
	struct channel *channel; /* being made; NULL: not yet, or it is the daemon's now */

	struct loop_source done; /* the thread is about to end; fd -1: there is none */
	pthread_t thread;
	bool attached;       /* the producer's pages and buffer are; by the thread */
	bool allocates;      /* it has begun to allocate the ring; by the thread */
	uint32_t canceled;   /* atomic; stored by the control loop */
	uint64_t made_bytes; /* atomic; of the ring, stored by the thread */
	uint64_t told_bytes; /* of these, to the producer */
	int result;          /* of the thread, as is the message */
	struct r3ring_error err;
};

/*
 * Begins to open a channel for the producer whose HELLO_PRODUCER is in the daemon's inbox.
 * It is answered now or later: by WELCOME, or refused. Returns 0, or a negative errno with
 * a message for the producer.
 */
int opening_begin(struct session *session, struct r3ring_error *err);

/* Tells producers that wait how far their rings are, where they have grown. */
void openings_tell(const struct daemon *daemon);

/* Its session has hung up. */
void opening_abandon(struct opening *opening);

/* Whether one is being opened under this name. */
bool opening_has(const struct daemon *daemon, const struct r3ring_channel_name *name);

/* The daemon ends: none of them will be. */
void openings_cancel(struct daemon *daemon);

/* Waits for their threads and undoes what they made. */
void openings_close(struct daemon *daemon);

#endif
