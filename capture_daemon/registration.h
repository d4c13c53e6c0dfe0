/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Registered readers: each has a page, made here, in the gate of the channel that
 * it reads. It ends with the connection, with the reader's process, or with the
 * channel.
 */
#ifndef DAEMON_REGISTRATION_H
#define DAEMON_REGISTRATION_H

#include <r3ring/error.h>
#include <r3ring/proto.h>
#include <r3ring/reader_page.h>

#include "capture_daemon/loop.h"

struct channel;
struct session;

/* Zeroed: none. */
struct registration {
	struct channel *channel; /* NULL: none */
	struct r3ring_reader_page *page;
	int page_fd;
	int number;               /* in the channel's gate */
	struct loop_source pidfd; /* of the reader; in no loop when it sent none */
};

/*
 * Registers a session's reader with a channel, by its hello; one before ends.
 * @pidfd: taken over; -1 when it sent none.
 *
 * Returns 0; -ENOSPC when the channel has no place left; an errno. With a message.
 */
int registration_open(struct session *session, struct channel *channel,
		      const struct r3ring_hello_reader_message *hello, int *pidfd,
		      struct r3ring_error *err);

/* Ends it; fine when there is none. */
void registration_close(struct session *session);

/* The channel @to takes over the ring of @from, and its readers. */
void registrations_move(const struct channel *from, struct channel *to);

/* Ends all of a channel. */
void registrations_forget(struct channel *channel);

#endif
