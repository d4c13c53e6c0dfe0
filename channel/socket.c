/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon's socket: where it is, connecting, messages with descriptors. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "channel/clock.h"
#include "channel/socket.h"

#define FALLBACK_DIR "/run/r3ring"
#define SEND_TIMEOUT_S 10
#define PLACES_MAX 2

/* ---- where it is ------------------------------------------------------ */

struct places {
	char dirs[PLACES_MAX][512];
	unsigned int count;
};

static int places_add(struct places *places, const char *dir, const char *below)
{
	int len =
		snprintf(places->dirs[places->count], sizeof(places->dirs[0]), "%s%s", dir, below);

	if (len < 0 || (size_t)len >= sizeof(places->dirs[0]))
		return -ENAMETOOLONG;
	places->count++;
	return 0;
}

/* The directories to be tried, in order. Returns 0 or -ENAMETOOLONG. */
static int places_find(struct places *places, const char *runtime_dir)
{
	const bool named = runtime_dir && *runtime_dir;
	const char *own = named ? runtime_dir : getenv("R3RING_RUNTIME_DIR");
	const char *xdg = getenv("XDG_RUNTIME_DIR");

	places->count = 0;
	if (own && *own)
		return places_add(places, own, "");
	if (xdg && *xdg && places_add(places, xdg, "/r3ring"))
		return -ENAMETOOLONG;
	return places_add(places, FALLBACK_DIR, "");
}

int socket_default_dir(char *dir, size_t capacity)
{
	struct places places;
	size_t len;

	if (places_find(&places, NULL))
		return -ENAMETOOLONG;
	len = strlen(places.dirs[0]);
	if (len >= capacity)
		return -ENAMETOOLONG;
	memcpy(dir, places.dirs[0], len + 1);
	return 0;
}

static int socket_address(struct sockaddr_un *address, const char *dir)
{
	int len;

	memset(address, 0, sizeof(*address));
	address->sun_family = AF_UNIX;
	len = snprintf(address->sun_path, sizeof(address->sun_path), "%s/%s", dir,
		       R3RING_SOCKET_NAME);
	return len < 0 || (size_t)len >= sizeof(address->sun_path) ? -ENAMETOOLONG : 0;
}

/* A daemon that no longer accepts must hold nobody up: a full backlog is an error
 * at once, and a send that cannot go on ends after a while. */
static int connect_to(const struct sockaddr_un *address)
{
	struct timeval timeout = {.tv_sec = SEND_TIMEOUT_S};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int ret = 0;

	if (fd < 0)
		return -errno;
	if (connect(fd, (const struct sockaddr *)address, sizeof(*address)))
		ret = errno == EAGAIN ? -ETIMEDOUT : -errno;
	else if (setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout)) ||
		 fcntl(fd, F_SETFL, 0))
		ret = -errno;
	if (!ret)
		return fd;
	close(fd);
	return ret;
}

static int connect_place(const char *dir)
{
	struct sockaddr_un address;
	int ret = socket_address(&address, dir);

	return ret ? ret : connect_to(&address);
}

/* In words that say what to do; NULL: as the system says it. */
static const char *why_not(int code)
{
	switch (code) {
	case -ENOENT:
		return "no socket there";
	case -ECONNREFUSED:
		return "a socket, but no daemon behind it";
	case -EACCES:
		return "not allowed; join the daemon's group";
	case -ENAMETOOLONG:
		return "path too long for a socket";
	case -ETIMEDOUT:
		return "the daemon does not accept";
	default:
		return NULL;
	}
}

static void append(char *text, size_t capacity, const char *dir, int code)
{
	const char *why = why_not(code);
	size_t len = strlen(text);

	snprintf(text + len, capacity - len, "%s%.150s/%s (", len ? ", " : "", dir,
		 R3RING_SOCKET_NAME);
	len = strlen(text);
	errno = -code;
	if (why)
		snprintf(text + len, capacity - len, "%s)", why);
	else
		snprintf(text + len, capacity - len, "%m)");
}

int socket_connect(const char *runtime_dir, struct r3ring_error *err)
{
	struct places places;
	char tried[R3RING_ERROR_TEXT] = "";
	int verdict = -ECONNREFUSED;
	bool hangs = false;
	int fd = places_find(&places, runtime_dir);

	for (unsigned int i = 0; !fd && i < places.count; i++) {
		int ret = connect_place(places.dirs[i]);

		if (ret >= 0)
			return ret;
		append(tried, sizeof(tried), places.dirs[i], ret);
		if (ret == -EACCES)
			verdict = ret;
		hangs |= ret == -ETIMEDOUT;
		if (ret == -ENAMETOOLONG && places.count == 1)
			fd = ret;
	}
	if (fd == -ENAMETOOLONG)
		return r3ring_error_set(
			err, fd,
			"runtime directory \"%.200s\" is too long: with \"/%s\" a socket's path "
			"takes at most %zu bytes; choose a shorter one",
			places.dirs[0], R3RING_SOCKET_NAME,
			sizeof(((struct sockaddr_un *)NULL)->sun_path) - 1);
	return r3ring_error_set(
		err, verdict,
		hangs ? "the daemon does not answer: tried %s; it was stopped (kill -CONT lets it "
			"go on) or hangs, see its log"
		      : "no daemon: tried %s; start r3ringd or set R3RING_RUNTIME_DIR",
		tried);
}

int socket_find_dir(char *dir, size_t capacity)
{
	struct places places;
	int fd = -1;

	if (places_find(&places, NULL))
		return -ENOENT;
	for (unsigned int i = 0; fd < 0 && i < places.count; i++) {
		fd = connect_place(places.dirs[i]);
		snprintf(dir, capacity, "%s", places.dirs[i]);
	}
	if (fd < 0)
		return -ENOENT;
	close(fd);
	return 0;
}

/* ---- messages --------------------------------------------------------- */

union control {
	struct cmsghdr head;
	uint8_t bytes[CMSG_SPACE(R3RING_MESSAGE_FDS_MAX * sizeof(int))];
};

static void attach_fds(struct msghdr *msg, union control *control, const int *fds,
		       unsigned int fd_count)
{
	size_t bytes = fd_count * sizeof(int);

	memset(control, 0, sizeof(*control));
	msg->msg_control = control->bytes;
	msg->msg_controllen = CMSG_SPACE(bytes);
	control->head.cmsg_level = SOL_SOCKET;
	control->head.cmsg_type = SCM_RIGHTS;
	control->head.cmsg_len = CMSG_LEN(bytes);
	memcpy(CMSG_DATA(&control->head), fds, bytes);
}

int socket_send(int fd, struct r3ring_message *message, size_t bytes, const void *extra,
		size_t extra_bytes, const int *fds, unsigned int fd_count)
{
	struct iovec parts[2] = {
		{.iov_base = message, .iov_len = bytes},
		{.iov_base = (void *)(uintptr_t)extra, .iov_len = extra_bytes},
	};
	struct msghdr msg = {.msg_iov = parts, .msg_iovlen = extra_bytes ? 2 : 1};
	union control control;
	ssize_t sent;

	if (bytes + extra_bytes > R3RING_MESSAGE_MAX || fd_count > R3RING_MESSAGE_FDS_MAX)
		return -EMSGSIZE;

	message->magic = R3RING_PROTO_MAGIC;
	message->major = R3RING_PROTO_MAJOR;
	message->minor = R3RING_PROTO_MINOR;
	message->fds = (uint16_t)fd_count;
	message->len = (uint32_t)(bytes + extra_bytes);
	if (fds && fd_count)
		attach_fds(&msg, &control, fds, fd_count);

	do {
		sent = sendmsg(fd, &msg, MSG_NOSIGNAL);
	} while (sent < 0 && errno == EINTR);
	if (sent < 0)
		return errno == ECONNRESET ? -EPIPE : -errno;
	return 0;
}

static int64_t now_ms(void)
{
	return (int64_t)(clock_now_ns() / 1000000u);
}

/* Waits until there is something to receive. Returns 0, -ETIMEDOUT or errno. */
static int await(int fd, int timeout_ms)
{
	struct pollfd poller = {.fd = fd, .events = POLLIN};
	int64_t deadline = now_ms() + timeout_ms;
	int left = timeout_ms;

	for (;;) {
		int ready = poll(&poller, 1, left);

		if (ready > 0)
			return 0;
		if (!ready)
			return -ETIMEDOUT;
		if (errno != EINTR)
			return -errno;
		if (timeout_ms > 0) {
			int64_t rest = deadline - now_ms();

			left = rest > 0 ? (int)rest : 0;
		}
	}
}

void socket_inbox_close_fds(struct socket_inbox *inbox)
{
	for (unsigned int i = 0; i < inbox->fd_count; i++)
		close(inbox->fds[i]);
	inbox->fd_count = 0;
}

/* Takes all descriptors out, so that none leaks whatever the message says. */
static void take_fds(struct socket_inbox *inbox, struct msghdr *msg)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		size_t count;

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < count; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
			if (inbox->fd_count < R3RING_MESSAGE_FDS_MAX)
				inbox->fds[inbox->fd_count++] = fd;
			else
				close(fd);
		}
	}
}

static int check_message(const struct socket_inbox *inbox, int msg_flags)
{
	const struct r3ring_message *head = &inbox->u.head;

	/* Fewer came than there is room for: this process cannot have more of them. */
	if ((msg_flags & MSG_CTRUNC) && inbox->fd_count < R3RING_MESSAGE_FDS_MAX)
		return -EMFILE;
	if ((msg_flags & (MSG_TRUNC | MSG_CTRUNC)) || inbox->len < sizeof(*head))
		return -EBADMSG;
	if (head->magic != R3RING_PROTO_MAGIC)
		return -EBADMSG;
	if (head->major != R3RING_PROTO_MAJOR)
		return -EPROTO;
	if (head->len != inbox->len || head->fds != inbox->fd_count)
		return -EBADMSG;
	return 0;
}

/* Returns its bytes or a negative errno. */
static ssize_t receive_once(int fd, struct msghdr *msg)
{
	ssize_t got;

	do {
		got = recvmsg(fd, msg, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	} while (got < 0 && errno == EINTR);
	return got < 0 ? -errno : got;
}

int socket_receive(int fd, struct socket_inbox *inbox, int timeout_ms)
{
	struct iovec part = {.iov_base = inbox->u.bytes, .iov_len = sizeof(inbox->u.bytes)};
	union control control;
	struct msghdr msg = {
		.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes),
	};
	ssize_t got;
	int ret = await(fd, timeout_ms);

	inbox->fd_count = 0;
	inbox->len = 0;
	if (ret)
		return ret;

	got = receive_once(fd, &msg);
	/* The peer closed without reading all of ours, which is said first; what it had
	 * sent before, such as a refusal, is still there. */
	if (got == -ECONNRESET)
		got = receive_once(fd, &msg);
	if (got == -ECONNRESET)
		return -EPIPE;
	if (got < 0)
		return got == -EAGAIN ? -ETIMEDOUT : (int)got;

	inbox->len = (size_t)got;
	take_fds(inbox, &msg);
	/* A message of no bytes looks like the end, and may bring descriptors. */
	ret = got ? check_message(inbox, msg.msg_flags) : -EPIPE;
	if (ret)
		socket_inbox_close_fds(inbox);
	return ret;
}

/* A refusal's code comes from the other side: only an errno is passed on. */
static int refused(struct socket_inbox *inbox, struct r3ring_error *err)
{
	struct r3ring_refused_message *message = (void *)inbox->u.bytes;
	int code = message->code;

	if (inbox->len < sizeof(*message))
		return r3ring_error_set(err, -EBADMSG, "the daemon's refusal is malformed");
	message->text[sizeof(message->text) - 1] = '\0';
	if (code > -1 || code < -4095)
		code = -EPROTO;
	return r3ring_error_set(err, code, "%s", message->text);
}

static int receive_failed(int code, struct r3ring_error *err)
{
	switch (code) {
	case -ETIMEDOUT:
		return r3ring_error_set(
			err, code,
			"the daemon did not answer in time: it was stopped (kill -CONT lets it "
			"go on) or hangs; see its log");
	case -EPIPE:
		return r3ring_error_set(err, code,
					"the daemon hung up instead of answering; see its log");
	case -EPROTO:
		return r3ring_error_set(
			err, code,
			"the daemon speaks another protocol version than %d; use r3ringd and "
			"libr3ring of one release",
			R3RING_PROTO_MAJOR);
	case -EBADMSG:
		return r3ring_error_set(err, code, "the daemon's answer is malformed");
	default:
		errno = -code;
		return r3ring_error_set(err, code, "receiving the daemon's answer: %m");
	}
}

int socket_hear(int fd, struct socket_inbox *inbox, int timeout_ms, struct r3ring_error *err)
{
	int ret = socket_receive(fd, inbox, timeout_ms);

	if (ret)
		return receive_failed(ret, err);
	if (inbox->u.head.type != R3RING_MSG_REFUSED)
		return 0;
	ret = refused(inbox, err);
	socket_inbox_close_fds(inbox);
	return ret;
}

int socket_expect(struct socket_inbox *inbox, uint16_t type, size_t least, struct r3ring_error *err)
{
	uint16_t got = inbox->u.head.type;

	if (got == type && inbox->len >= least)
		return 0;
	socket_inbox_close_fds(inbox);
	return r3ring_error_set(err, -EBADMSG,
				"the daemon answered with message type %u of %zu bytes; "
				"expected type %u of at least %zu",
				got, inbox->len, type, least);
}

int socket_answer(int fd, struct socket_inbox *inbox, uint16_t type, size_t least, int timeout_ms,
		  struct r3ring_error *err)
{
	int ret = socket_hear(fd, inbox, timeout_ms, err);

	return ret ? ret : socket_expect(inbox, type, least, err);
}

int socket_question(int fd, struct r3ring_message *message, size_t bytes, const void *extra,
		    size_t extra_bytes, const int *fds, unsigned int fd_count,
		    struct r3ring_error *err)
{
	int ret = socket_send(fd, message, bytes, extra, extra_bytes, fds, fd_count);

	/* A daemon that refuses at once and hangs up leaves its reason to be read. */
	if (!ret || ret == -EPIPE)
		return 0;
	errno = -ret;
	return r3ring_error_set(err, ret, "sending to the daemon: %m");
}

int socket_ask(int fd, struct r3ring_message *message, size_t bytes, const void *extra,
	       size_t extra_bytes, const int *fds, unsigned int fd_count,
	       struct socket_inbox *inbox, uint16_t type, size_t least, int timeout_ms,
	       struct r3ring_error *err)
{
	int ret = socket_question(fd, message, bytes, extra, extra_bytes, fds, fd_count, err);

	return ret ? ret : socket_answer(fd, inbox, type, least, timeout_ms, err);
}
