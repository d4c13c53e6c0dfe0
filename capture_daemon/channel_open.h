/* SPDX-License-Identifier: Apache-2.0 */
/* The steps in which a channel is opened; opening.h says who takes which. */
#ifndef DAEMON_CHANNEL_OPEN_H
#define DAEMON_CHANNEL_OPEN_H

#include <r3ring/error.h>

#include "capture_daemon/opening.h"

/* Each returns 0 or a negative errno with a message for the producer. */

/* Whether name, limits and sizes allow it; @opening->channel is then there to be made. */
int channel_open_check(struct opening *opening, struct r3ring_error *err);

/* Imports the producer's pages and buffer and makes the ring. By a thread: nothing else
 * of the daemon is touched. -ECANCELED when it was told to stop. */
int channel_open_make(struct opening *opening, struct r3ring_error *err);

/* Whether it was /dev/shm that had no room for the ring. Once the thread has ended. */
bool channel_open_lacked_room(const struct opening *opening);

/* Then: removes one channel of the user that has ended. False: there is none. */
bool channel_open_make_room(struct opening *opening);

/* Then, for the refusal: says in its message what holds the room. */
void channel_open_explain_room(struct opening *opening);

/* Begins the new generation, or goes on in a dead daemon's, and retires the one before. The
 * channel is the daemon's and @opening->session's then; it is not yet welcomed. */
int channel_open_finish(struct opening *opening, struct r3ring_error *err);

/* Answers its producer, or hangs up where that does not take it. */
void channel_welcome(struct channel *channel);

#endif
