/* SPDX-License-Identifier: Apache-2.0 */
/* Channels that are being opened: their threads, and who waits for whom. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <utlist.h>

#include <r3ring/atomic.h>

#include "capture_daemon/channel_open.h"
#include "capture_daemon/daemon.h"
#include "capture_daemon/log.h"

#define MINOR_OPENING 2u /* of the protocol: from it on producers are told how far it is */

static void start_next(struct daemon *daemon, const struct r3ring_channel_name *name);
static void made(struct loop_source *source, uint32_t events);

static struct opening *find(const struct daemon *daemon, const struct r3ring_channel_name *name)
{
	struct opening *opening;

	DL_FOREACH(daemon->openings, opening)
	{
		if (channel_names_equal(&opening->hello.message->channel, name))
			return opening;
	}
	return NULL;
}

bool opening_has(const struct daemon *daemon, const struct r3ring_channel_name *name)
{
	return find(daemon, name);
}

static void release(struct opening *opening)
{
	DL_DELETE(opening->daemon->openings, opening);
	if (opening->session)
		opening->session->opening = NULL;
	if (opening->channel)
		channel_abandon(opening->channel);
	hello_release(&opening->hello);
	free(opening);
}

/* ---- the thread --------------------------------------------------------- */

static void *make(void *arg)
{
	struct opening *opening = arg;
	const uint64_t one = 1;

	prctl(PR_SET_NAME, "r3ring-open");
	opening->result = channel_open_make(opening, &opening->err);
	if (write(opening->done.fd, &one, sizeof(one)) < 0)
		log_error("channel %s: eventfd: %s", opening->channel->text, strerror(errno));
	return NULL;
}

static int launch(struct opening *opening, struct r3ring_error *err)
{
	int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	int r;

	if (fd < 0)
		return r3ring_error_set(err, -errno, "eventfd: %s", strerror(errno));
	opening->done =
		(struct loop_source){.fd = fd, .events = POLLIN, .ready = made, .owner = opening};
	r = loop_add(opening->daemon->loop, &opening->done);
	if (r < 0)
		r3ring_error_set(err, r, "the control loop: %s", strerror(-r));
	if (r == 0) {
		r = -pthread_create(&opening->thread, NULL, make, opening);
		if (r < 0)
			r3ring_error_set(err, r, "a thread: %s", strerror(-r));
	}
	if (r == 0)
		return 0;
	loop_remove(opening->daemon->loop, &opening->done);
	close(fd);
	opening->done.fd = -1;
	return r;
}

static void cancel(struct opening *opening)
{
	r3ring_store_relaxed_u32(&opening->canceled, 1);
}

static void join(struct opening *opening)
{
	if (opening->done.fd < 0)
		return;
	pthread_join(opening->thread, NULL);
	loop_remove(opening->daemon->loop, &opening->done);
	close(opening->done.fd);
	opening->done.fd = -1;
}

/* ---- the end ------------------------------------------------------------ */

static int check_running(const struct daemon *daemon, struct r3ring_error *err)
{
	if (!daemon->stopping)
		return 0;
	return r3ring_error_set(err, -ESHUTDOWN,
				"this r3ringd is ending: open again once the next one runs");
}

/* All that was to be made is there, or @result says why not. */
static int conclude(struct opening *opening, int result, struct r3ring_error *err)
{
	struct daemon *daemon = opening->daemon;
	struct session *session = opening->session;

	if (result == 0 && session)
		result = channel_open_finish(opening, err);
	daemon->gpu_lost |= result == -ENOTRECOVERABLE;
	release(opening);
	if (!session)
		return 0;
	if (session_listen(session, true) < 0)
		session_close(session);
	else if (result == 0)
		channel_welcome(session->channel);
	else
		return result;
	return 0;
}

/* /dev/shm had no room: true once one that has ended gave way and the thread runs again. */
static bool made_anew(struct opening *opening)
{
	const uint32_t canceled = r3ring_load_relaxed_u32(&opening->canceled);

	if (opening->daemon->stopping || canceled || !channel_open_lacked_room(opening))
		return false;
	if (!channel_open_make_room(opening)) {
		channel_open_explain_room(opening);
		return false;
	}
	opening->result = launch(opening, &opening->err);
	return opening->result == 0;
}

static void made(struct loop_source *source, uint32_t events)
{
	struct opening *opening = source->owner;
	struct daemon *daemon = opening->daemon;
	const struct r3ring_channel_name name = opening->hello.message->channel;
	struct session *session = opening->session;
	struct r3ring_error err;
	int r;

	(void)events;
	join(opening);
	if (made_anew(opening))
		return;
	err = opening->err;
	r = check_running(daemon, &err);
	if (conclude(opening, r < 0 ? r : opening->result, &err) < 0)
		session_fail(session, &err);
	start_next(daemon, &name);
}

/* One that the socket does not take now is told the next time. */
static void tell(struct opening *opening, uint64_t made_bytes)
{
	struct r3ring_opening_message message = {
		.head.type = R3RING_MSG_OPENING,
		.done = made_bytes,
		.bytes = opening->sizes.segment_bytes,
	};

	if (socket_send(opening->session->source.fd, &message.head, sizeof(message), NULL, 0, NULL,
			0) < 0)
		log_debug("a producer does not take how far its ring is");
	else
		opening->told_bytes = made_bytes;
}

void openings_tell(const struct daemon *daemon)
{
	struct opening *opening;

	DL_FOREACH(daemon->openings, opening)
	{
		uint64_t made_bytes = r3ring_load_relaxed_u64(&opening->made_bytes);

		if (opening->session && made_bytes > opening->told_bytes &&
		    opening->hello.message->head.minor >= MINOR_OPENING)
			tell(opening, made_bytes);
	}
}

void opening_abandon(struct opening *opening)
{
	opening->session = NULL;
	if (opening->done.fd < 0)
		release(opening);
	else
		cancel(opening);
}

void openings_cancel(struct daemon *daemon)
{
	struct opening *opening;

	DL_FOREACH(daemon->openings, opening)
	cancel(opening);
}

void openings_close(struct daemon *daemon)
{
	openings_cancel(daemon);
	while (daemon->openings) {
		join(daemon->openings);
		release(daemon->openings);
	}
}

/* ---- the beginning ------------------------------------------------------ */

static int start(struct opening *opening, struct r3ring_error *err)
{
	int r = check_running(opening->daemon, err);

	if (r == 0)
		r = channel_open_check(opening, err);
	if (r == 0 && !opening->same_ring) {
		r = launch(opening, err);
		if (r == 0)
			return 0;
	}
	return conclude(opening, r, err);
}

/* The one that waited for another of its name. */
static void start_next(struct daemon *daemon, const struct r3ring_channel_name *name)
{
	struct opening *opening = find(daemon, name);
	struct r3ring_error err = {0};
	struct session *session;

	if (!opening)
		return;
	session = opening->session;
	if (start(opening, &err) < 0)
		session_fail(session, &err);
}

/* One that has hung up, though no event has said so yet, gives way. */
static int claim_name(struct daemon *daemon, const struct r3ring_channel_name *name,
		      struct r3ring_error *err)
{
	char text[CHANNEL_NAME_TEXT];
	struct opening *opening, *next;

	DL_FOREACH_SAFE(daemon->openings, opening, next)
	{
		if (!opening->session ||
		    !channel_names_equal(&opening->hello.message->channel, name))
			continue;
		if (!session_has_hung_up(opening->session))
			return r3ring_error_set(err, -EBUSY,
						"channel %s is being opened (by pid %d): close "
						"that one, or use another --instance or --rank",
						channel_name_format(name, text),
						opening->session->peer.pid);
		session_close(opening->session);
	}
	return 0;
}

static int listen_no_more(struct session *session, struct r3ring_error *err)
{
	int r = session_listen(session, false);

	return r < 0 ? r3ring_error_set(err, r, "the control loop: %s", strerror(-r)) : 0;
}

int opening_begin(struct session *session, struct r3ring_error *err)
{
	struct daemon *daemon = session->daemon;
	const struct r3ring_channel_name *name;
	struct opening *opening;
	bool waits;
	int r;

	if (session->channel)
		return r3ring_error_set(err, -EBADMSG, "this connection has a channel already");
	opening = calloc(1, sizeof(*opening));
	if (!opening)
		return r3ring_error_set(err, -ENOMEM, "no memory for a channel");
	*opening = (struct opening){.daemon = daemon, .done.fd = -1};
	r = hello_take(&opening->hello, &daemon->inbox, err);
	if (r < 0) {
		free(opening);
		return r;
	}
	name = &opening->hello.message->channel;
	r = claim_name(daemon, name, err);
	waits = opening_has(daemon, name);
	DL_APPEND(daemon->openings, opening);
	if (r == 0)
		r = listen_no_more(session, err);
	if (r < 0) {
		release(opening);
		return r;
	}
	opening->session = session;
	session->opening = opening;
	return waits ? 0 : start(opening, err);
}
