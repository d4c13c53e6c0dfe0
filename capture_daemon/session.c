/* SPDX-License-Identifier: Apache-2.0 */
/* Connections: accepting, messages, hanging up. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <utlist.h>

#include "capture_daemon/daemon.h"
#include "capture_daemon/limits.h"
#include "capture_daemon/listing.h"
#include "capture_daemon/log.h"
#include "capture_daemon/opening.h"
#include "capture_daemon/peers.h"
#include "capture_daemon/status.h"
#include "channel/namespaces.h"

#define OUTBOX_BYTES_MAX (4u << 20)

struct outgoing {
	struct outgoing *prev, *next;
	size_t bytes;
	uint8_t message[]; /* begins with struct r3ring_message */
};

/* ---- sending ------------------------------------------------------------ */

static int outbox_add(struct session *session, const struct r3ring_message *message, size_t bytes,
		      const void *extra, size_t extra_bytes)
{
	size_t total = bytes + extra_bytes;
	struct outgoing *made;

	if (session->outbox_bytes + total > OUTBOX_BYTES_MAX)
		return -ENOBUFS;
	made = malloc(sizeof(*made) + total);
	if (!made)
		return -ENOMEM;
	made->bytes = total;
	memcpy(made->message, message, bytes);
	if (extra_bytes)
		memcpy(made->message + bytes, extra, extra_bytes);
	DL_APPEND(session->outbox, made);
	session->outbox_bytes += total;
	return loop_modify(session->daemon->loop, &session->source, POLLOUT);
}

int session_send(struct session *session, struct r3ring_message *message, size_t bytes,
		 const void *extra, size_t extra_bytes, const int *fds, unsigned int fd_count)
{
	int r = -EAGAIN;

	if (!session->outbox)
		r = socket_send(session->source.fd, message, bytes, extra, extra_bytes, fds,
				fd_count);
	if (r == -EAGAIN && !fd_count)
		r = outbox_add(session, message, bytes, extra, extra_bytes);
	return r;
}

static void outbox_drop(struct session *session, struct outgoing *first)
{
	DL_DELETE(session->outbox, first);
	session->outbox_bytes -= first->bytes;
	free(first);
}

/* Sends what the peer takes now. Until it has taken all, it is not listened to. */
static void outbox_flush(struct session *session)
{
	while (session->outbox) {
		struct outgoing *first = session->outbox;
		int r = socket_send(session->source.fd, (void *)first->message, first->bytes, NULL,
				    0, NULL, 0);

		if (r == -EAGAIN)
			return;
		if (r < 0) {
			session_close(session);
			return;
		}
		outbox_drop(session, first);
	}
	if (loop_modify(session->daemon->loop, &session->source, POLLIN) < 0)
		session_close(session);
}

/* ---- listening ---------------------------------------------------------- */

int session_listen(struct session *session, bool listens)
{
	return loop_modify(session->daemon->loop, &session->source, listens ? POLLIN : 0);
}

bool session_has_hung_up(const struct session *session)
{
	struct pollfd polled = {.fd = session->source.fd};

	return poll(&polled, 1, 0) == 1;
}

/* ---- the end ------------------------------------------------------------ */

void session_close(struct session *session)
{
	struct channel *channel = session->channel;

	if (channel) {
		session->channel = NULL;
		channel->producer = NULL;
		channel_producer_lost(channel);
	}
	if (session->opening)
		opening_abandon(session->opening);
	registration_close(session);
	loop_remove(session->daemon->loop, &session->source);
	close(session->source.fd);
	while (session->outbox)
		outbox_drop(session, session->outbox);
	DL_DELETE(session->daemon->sessions, session);
	free(session);
}

static void send_refusal(int fd, const struct r3ring_error *why)
{
	struct r3ring_refused_message message = {
		.head.type = R3RING_MSG_REFUSED,
		.code = why->code,
	};

	memcpy(message.text, why->text, sizeof(message.text));
	/* A peer that does not take it learns of the refusal by the hang-up. */
	if (socket_send(fd, &message.head, sizeof(message), NULL, 0, NULL, 0) < 0)
		log_debug("a peer hung up before it was refused");
}

void session_refuse(struct session *session, const struct r3ring_error *why)
{
	refusals_log(&session->daemon->refusals, session->peer.pid, session->peer.uid, why->text);
	send_refusal(session->source.fd, why);
	session_close(session);
}

/* ---- messages ----------------------------------------------------------- */

static struct channel *find_generation(struct session *session,
				       const struct r3ring_hello_reader_message *hello,
				       struct r3ring_error *err)
{
	char text[CHANNEL_NAME_TEXT];
	struct channel *channel = channel_find(session->daemon, &hello->channel), *found;

	if (!channel) {
		r3ring_error_set(err, -ENOENT,
				 "there is no channel %s: it is there once a producer has opened "
				 "it (r3ring status lists them)",
				 channel_name_format(&hello->channel, text));
		return NULL;
	}
	if (hello->generation == 0)
		return channel;
	found = channel_find_generation(session->daemon, &hello->channel, hello->generation);
	if (!found)
		r3ring_error_set(err, -ENOENT,
				 "channel %s has generation %" PRIu64 ", not %" PRIu64
				 ": ask for 0, the newest",
				 channel->text,
				 r3ring_segment_get_header(channel->segment)->generation,
				 hello->generation);
	return found;
}

static int send_segment(struct session *session, const struct channel *channel,
			struct r3ring_error *err)
{
	const struct r3ring_segment_header *header = r3ring_segment_get_header(channel->segment);
	struct r3ring_segment_message message = {
		.head.type = R3RING_MSG_SEGMENT,
		.generation = header->generation,
	};
	int fd = r3ring_segment_reader_fd(channel->segment);
	int fds[2] = {fd, session->registration.page_fd};
	int r;

	if (fd < 0)
		return r3ring_error_set(err, fd, "segment %s cannot be opened for reading: %s",
					r3ring_segment_name(channel->segment), strerror(-fd));
	memcpy(message.uuid, header->uuid, sizeof(message.uuid));
	strncpy(message.segment, r3ring_segment_name(channel->segment),
		sizeof(message.segment) - 1);
	r = session_send(session, &message.head, sizeof(message), NULL, 0, fds,
			 session->registration.channel ? 2 : 1);
	close(fd);
	return r < 0 ? r3ring_error_set(err, r, "the reader does not take its answer") : 0;
}

/* The hello of any minor version, as one of this. Returns whether it is one. */
static bool read_hello(const struct socket_inbox *inbox, struct r3ring_hello_reader_message *hello)
{
	*hello = (struct r3ring_hello_reader_message){0};
	if (inbox->len != R3RING_HELLO_READER_MINOR0 && inbox->len != sizeof(*hello))
		return false;
	memcpy(hello, inbox->u.bytes, inbox->len);
	return inbox->fd_count == (hello->has_pidfd == 1);
}

/* Where no place is left only a reader that insists is refused. */
static int register_reader(struct session *session, struct channel *channel,
			   const struct r3ring_hello_reader_message *hello,
			   struct r3ring_error *err)
{
	struct socket_inbox *inbox = &session->daemon->inbox;
	int none = -1, r = 0;

	if (inbox->len == R3RING_HELLO_READER_MINOR0) {
		registration_close(session);
		return 0;
	}
	if (inbox->fd_count)
		r = peers_check_pidfd(inbox->fds[0], err);
	if (r < 0)
		return r;
	r = registration_open(session, channel, hello, inbox->fd_count ? &inbox->fds[0] : &none,
			      err);
	return r == -ENOSPC && hello->lossless != 1 ? 0 : r;
}

static int hello_reader(struct session *session, struct r3ring_error *err)
{
	const struct socket_inbox *inbox = &session->daemon->inbox;
	struct r3ring_hello_reader_message hello;
	struct channel *channel;
	int r;

	if (!read_hello(inbox, &hello))
		return r3ring_error_set(err, -EBADMSG,
					"reader's hello of %zu bytes and %u descriptors",
					inbox->len, inbox->fd_count);
	r = channel_name_check(&hello.channel, err);
	if (r == 0 && !session->is_reader)
		r = limits_check_reader(session->daemon, session->peer.uid, err);
	if (r < 0)
		return r;
	channel = find_generation(session, &hello, err);
	if (!channel)
		return err->code;
	session->is_reader = true;
	session->reads = hello.channel;
	r = register_reader(session, channel, &hello, err);
	if (r < 0)
		return r;
	return send_segment(session, channel, err);
}

static int bye(struct session *session, struct r3ring_error *err)
{
	struct channel *channel = session->channel;

	if (!channel)
		return r3ring_error_set(err, -EBADMSG, "BYE from a peer that is no producer");
	log_info("channel %s: producer %d closed it", channel->text, channel->producer_pid);
	channel_producer_gone(channel, DRAIN_PRODUCER_CLOSED);
	return 0;
}

static int identity_send(struct session *session, struct r3ring_error *err)
{
	const struct namespaces own = namespaces_of_this_process();
	struct r3ring_identity_message message = {
		.head.type = R3RING_MSG_IDENTITY,
		.pid_namespace = own.pid,
		.ipc_namespace = own.ipc,
	};
	int r = session_send(session, &message.head, sizeof(message), NULL, 0, NULL, 0);

	return r < 0 ? r3ring_error_set(err, r, "the peer does not take its answer") : 0;
}

/* May close the session. */
static int handle_message(struct session *session, struct r3ring_error *err)
{
	uint16_t type = session->daemon->inbox.u.head.type;

	switch (type) {
	case R3RING_MSG_HELLO_PRODUCER:
		return opening_begin(session, err);
	case R3RING_MSG_BYE:
		return bye(session, err);
	case R3RING_MSG_HELLO_READER:
		return hello_reader(session, err);
	case R3RING_MSG_WHOIS:
		return identity_send(session, err);
	case R3RING_MSG_LIST:
		return listing_send(session, err);
	case R3RING_MSG_GET_STATUS:
		return status_send(session, err);
	default:
		return r3ring_error_set(err, -EBADMSG, "a message of type %u is none for a daemon",
					type);
	}
}

/* Whether the connection goes on after a refusal: a reader may ask again for a
 * channel that is not there yet. */
static bool refusal_is_final(const struct r3ring_error *why)
{
	return why->code != -ENOENT;
}

/* Whatever needed one more descriptor, the remedy is the same. */
static void name_remedy(struct r3ring_error *why)
{
	char text[R3RING_ERROR_TEXT];

	if (why->code != -EMFILE)
		return;
	memcpy(text, why->text, sizeof(text));
	r3ring_error_set(why, -EMFILE,
			 "r3ringd is out of file descriptors, raise its limit (LimitNOFILE, "
			 "ulimit -n): %s",
			 text);
}

void session_fail(struct session *session, struct r3ring_error *why)
{
	name_remedy(why);
	/* Nobody is there to be refused: a client that was killed, or did not wait. */
	if (why->code == -EPIPE && session_has_hung_up(session)) {
		log_debug("peer %d hung up: %s", session->peer.pid, why->text);
		session_close(session);
		return;
	}
	if (refusal_is_final(why)) {
		session_refuse(session, why);
		return;
	}
	log_debug("peer %d: %s", session->peer.pid, why->text);
	send_refusal(session->source.fd, why);
}

static void receive(struct session *session)
{
	struct daemon *daemon = session->daemon;
	struct r3ring_error err = {0};
	int r = socket_receive(session->source.fd, &daemon->inbox, 0);

	if (r == -ETIMEDOUT)
		return;
	if (r == -EBADMSG)
		r3ring_error_set(&err, r, "malformed message");
	else if (r == -EMFILE)
		r3ring_error_set(&err, r, "its message was cut: %s", strerror(EMFILE));
	else if (r == -EPROTO)
		r3ring_error_set(&err, r,
				 "protocol version differs from %d.%d: use libraries and daemon "
				 "of one release",
				 R3RING_PROTO_MAJOR, R3RING_PROTO_MINOR);
	else if (r < 0) {
		session_close(session);
		return;
	} else
		r = handle_message(session, &err);
	socket_inbox_close_fds(&daemon->inbox);
	if (r < 0)
		session_fail(session, &err);
}

static void session_ready(struct loop_source *source, uint32_t events)
{
	struct session *session = source->owner;

	if (session->outbox && !(events & (POLLHUP | POLLERR)))
		outbox_flush(session);
	else if (events & POLLIN)
		receive(session);
	else
		session_close(session);
}

/* ---- accepting ---------------------------------------------------------- */

static int session_open(struct daemon *daemon, int fd, const struct ucred *peer)
{
	struct session *session = calloc(1, sizeof(*session));
	int r;

	if (!session)
		return -ENOMEM;
	session->daemon = daemon;
	session->peer = *peer;
	session->source = (struct loop_source){
		.fd = fd, .events = POLLIN, .ready = session_ready, .owner = session};
	r = loop_add(daemon->loop, &session->source);
	if (r < 0) {
		free(session);
		return r;
	}
	DL_APPEND(daemon->sessions, session);
	return 0;
}

static void admit(struct daemon *daemon, int fd)
{
	struct r3ring_error err = {0};
	struct ucred peer = {0};
	int r = peers_check(fd, daemon->gid, &peer, &err);

	if (r == 0)
		r = limits_check_connection(daemon, peer.uid, &err);
	if (r == 0) {
		r = session_open(daemon, fd, &peer);
		if (r == 0)
			return;
		r3ring_error_set(&err, r, "the daemon cannot take one more connection: %s",
				 strerror(-r));
	}
	refusals_log(&daemon->refusals, peer.pid, peer.uid, err.text);
	send_refusal(fd, &err);
	close(fd);
}

/* Without descriptors left the connection must still go, or the loop would find
 * the listener ready for ever. */
static void shed_connection(struct daemon *daemon)
{
	int fd;

	log_error("out of file descriptors: connection refused (raise LimitNOFILE)");
	close(daemon->spare_fd);
	fd = accept4(daemon->listener.fd, NULL, NULL, SOCK_CLOEXEC);
	if (fd >= 0)
		close(fd);
	daemon->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

void session_accept(struct loop_source *listener, uint32_t events)
{
	struct daemon *daemon = listener->owner;
	int fd = accept4(listener->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

	(void)events;
	if (fd >= 0)
		admit(daemon, fd);
	else if (errno == EMFILE || errno == ENFILE)
		shed_connection(daemon);
	else if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
		log_error("accept: %s", strerror(errno));
}
