/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon's socket, from both ends: where it is, connecting, messages with
 * descriptors, and channel names.
 */
#ifndef CHANNEL_SOCKET_H
#define CHANNEL_SOCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/types.h>

#include <r3ring/error.h>
#include <r3ring/proto.h>

/*
 * Connects to the daemon of @runtime_dir; NULL: $R3RING_RUNTIME_DIR if set,
 * else $XDG_RUNTIME_DIR/r3ring, then /run/r3ring.
 * Returns the socket (close-on-exec), -ECONNREFUSED (names all places tried and
 * why each failed), -ENAMETOOLONG (path longer than sockaddr_un takes; names
 * the limit), -EACCES.
 */
int socket_connect(const char *runtime_dir, struct r3ring_error *err);

/* Writes to @dir in which of these places a daemon accepts. Returns 0 or -ENOENT. */
int socket_find_dir(char *dir, size_t capacity);

/* Like connect, the place where a daemon would put its socket when told
 * nothing. Writes the directory to @dir. Returns 0 or -ENAMETOOLONG. */
int socket_default_dir(char *dir, size_t capacity);

/*
 * Sends one message with its descriptors. head fields magic, major, minor, fds
 * and len are filled in here.
 *
 * @message: begins with struct r3ring_message; @bytes in all, @extra behind it
 *           when @extra_bytes > 0.
 * Returns 0 or a negative errno (-EPIPE when the peer is gone). Never raises
 * SIGPIPE.
 */
int socket_send(int fd, struct r3ring_message *message, size_t bytes, const void *extra,
		size_t extra_bytes, const int *fds, unsigned int fd_count);

struct socket_inbox {
	union {
		struct r3ring_message head;
		uint8_t bytes[R3RING_MESSAGE_MAX];
	} u;
	size_t len;
	int fds[R3RING_MESSAGE_FDS_MAX];
	unsigned int fd_count;
};

/*
 * Receives one message: magic, version, length and descriptor count are
 * checked; descriptors are close-on-exec and belong to the caller
 * (socket_inbox_close_fds()).
 *
 * @timeout_ms: how long to wait; -1 without end, 0 not at all.
 * Returns 0, -ETIMEDOUT, -EPIPE (peer closed), -EPROTO (other version),
 * -EBADMSG (malformed), or the errno of recvmsg.
 */
int socket_receive(int fd, struct socket_inbox *inbox, int timeout_ms);
void socket_inbox_close_fds(struct socket_inbox *inbox);

/* As socket_receive(), of the daemon's messages: failures come in words, and a
 * REFUSED as its code and text. */
int socket_hear(int fd, struct socket_inbox *inbox, int timeout_ms, struct r3ring_error *err);

/*
 * Sends a request and receives its answer, which must be of @type and at least
 * @least bytes. A REFUSED answer gives its code and text.
 */
int socket_ask(int fd, struct r3ring_message *message, size_t bytes, const void *extra,
	       size_t extra_bytes, const int *fds, unsigned int fd_count,
	       struct socket_inbox *inbox, uint16_t type, size_t least, int timeout_ms,
	       struct r3ring_error *err);

/* The first half of socket_ask(): sends. */
int socket_question(int fd, struct r3ring_message *message, size_t bytes, const void *extra,
		    size_t extra_bytes, const int *fds, unsigned int fd_count,
		    struct r3ring_error *err);

/* Whether a message is an answer of @type and @least bytes; if not, lets its descriptors
 * go. Returns 0, or -EBADMSG. */
int socket_expect(struct socket_inbox *inbox, uint16_t type, size_t least,
		  struct r3ring_error *err);

/* The second half: receives the answer to what was sent. */
int socket_answer(int fd, struct socket_inbox *inbox, uint16_t type, size_t least, int timeout_ms,
		  struct r3ring_error *err);

/* ---- channel names ---------------------------------------------------- */

/*
 * "INSTANCE/RANK" or "INSTANCE/RANK.draft". Returns 0 or -EINVAL; @err names
 * the part that is wrong and what is allowed.
 */
int channel_name_parse(struct r3ring_channel_name *name, const char *text,
		       struct r3ring_error *err);

/* Checks a name that came over the socket (NUL-terminated, allowed letters). */
int channel_name_check(const struct r3ring_channel_name *name, struct r3ring_error *err);

/* Checks an instance name alone: letters, digits, '.', '_', '-', 1 to 48. */
int channel_instance_check(const char *instance, struct r3ring_error *err);

bool channel_names_equal(const struct r3ring_channel_name *a, const struct r3ring_channel_name *b);

#define CHANNEL_NAME_TEXT 80
/* Writes "INSTANCE/RANK[.draft]"; returns @text. */
const char *channel_name_format(const struct r3ring_channel_name *name,
				char text[CHANNEL_NAME_TEXT]);

/* Writes "/r3ring.UID.INSTANCE.RANK[.draft].GENERATION". */
void channel_segment_name(const struct r3ring_channel_name *name, uid_t uid, uint64_t generation,
			  char text[128]);

#endif
