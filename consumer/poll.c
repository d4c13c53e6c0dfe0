/* SPDX-License-Identifier: Apache-2.0 */
/* Readers in poll loops: nothing that a reader waits for goes without making its
 * descriptor readable. */
#include <errno.h>
#include <sys/socket.h>

#include <r3ring/atomic.h>

#include "consumer/internal.h"

#define UNWOKEN_NS 1000000ull /* between two looks of one whom nobody tells of records */
#define MESSAGES_MOST 64      /* taken off the socket at a time */

int r3ring_reader_fd(struct r3ring_reader *reader)
{
	int rc = 0;

	if (reader->readiness.epoll_fd < 0)
		rc = reader->now.page ? readiness_open(&reader->readiness) : -EOPNOTSUPP;
	return rc ? rc : reader->readiness.epoll_fd;
}

/* A connection that is over would be readable for ever. */
static void take_messages(struct r3ring_reader *reader)
{
	char message[64];

	for (int i = 0; !reader->readiness.hung_up && i < MESSAGES_MOST; i++) {
		ssize_t got = recv(reader->now.connection, message, sizeof(message), MSG_DONTWAIT);

		if (got > 0)
			continue;
		if (got < 0 && errno == EAGAIN)
			return;
		readiness_drop_connection(&reader->readiness);
		reader->readiness.hung_up = true;
	}
}

/* Asks for one message with the next records. */
static void ask_for_message(struct r3ring_reader *reader)
{
	struct r3ring_reader_page *page = reader->now.page;

	if (!page)
		return;
	take_messages(reader);
	r3ring_store_relaxed_u32(&page->armed, ++reader->armed);
	/* Pairs with the fence in gate_wake(), as for who sleeps. */
	r3ring_fence_full();
}

static void watch(struct r3ring_reader *reader)
{
	struct readiness *readiness = &reader->readiness;
	int request = reader->follower.request.fd;
	uint64_t now = clock_now_ns();
	uint64_t due = follower_due_ns(reader, now);
	bool told = reader->now.page != NULL;

	if (told && !readiness->hung_up)
		told = readiness_watch(readiness, &readiness->connection, reader->now.connection);
	if (told && request >= 0)
		told = readiness_watch(readiness, &readiness->request, request);
	if (!told && due > now + UNWOKEN_NS)
		due = now + UNWOKEN_NS;
	readiness_set_timer(readiness, now, due);
}

int r3ring_reader_arm(struct r3ring_reader *reader)
{
	if (reader->readiness.epoll_fd < 0)
		return -EOPNOTSUPP;
	if (reader->found || reader->view_open)
		return 1;
	do {
		ask_for_message(reader);
		if (reader_look(reader) || reader_look_twice(reader))
			return 1;
		/* Another page, of which nothing was asked yet. */
	} while (reader->now.page && !reader->armed);
	watch(reader);
	return 0;
}
