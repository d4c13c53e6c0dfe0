/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon's socket: places tried, descriptors passed, malformed messages. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "channel/socket.h"
#include "tests/support/emulated.h"
#include "tests/support/raw_message.h"

/* ---- where it is ------------------------------------------------------ */

static char directory[64];

static void make_directory(void)
{
	snprintf(directory, sizeof(directory), "/tmp/r3ring-test-%d", getpid());
	cr_assert_eq(mkdir(directory, 0700), 0);
}

static void remove_directory(void)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", directory, R3RING_SOCKET_NAME);
	unlink(path);
	rmdir(directory);
}

static int listen_in(const char *dir)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s/%s", dir, R3RING_SOCKET_NAME);
	cr_assert_eq(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	cr_assert_eq(listen(fd, 4), 0);
	return fd;
}

static void assert_says(const struct r3ring_error *err, const char *what)
{
	cr_assert_not_null(strstr(err->text, what), "\"%s\" does not say \"%s\"", err->text, what);
}

Test(socket, a_daemon_is_found_where_it_is, .init = make_directory, .fini = remove_directory)
{
	int listener = listen_in(directory);
	int fd;

	fd = socket_connect(directory, NULL);
	cr_assert_geq(fd, 0);
	cr_assert(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	close(fd);

	setenv("R3RING_RUNTIME_DIR", directory, 1);
	fd = socket_connect(NULL, NULL);
	cr_assert_geq(fd, 0);
	close(fd);
	fd = socket_connect("", NULL);
	cr_assert_geq(fd, 0, "no directory that is named is as none");
	close(fd);
	close(listener);
}

Test(socket, all_places_tried_are_named_with_the_reason)
{
	struct r3ring_error err = {0};

	unsetenv("R3RING_RUNTIME_DIR");
	setenv("XDG_RUNTIME_DIR", "/tmp/r3ring-nowhere", 1);
	cr_assert_eq(socket_connect(NULL, &err), -ECONNREFUSED);
	assert_says(&err, "/tmp/r3ring-nowhere/r3ring/r3ringd.sock (no socket there)");
	assert_says(&err, "/run/r3ring/r3ringd.sock");
	assert_says(&err, "start r3ringd");
}

Test(socket, a_socket_that_nobody_listens_on_is_told_from_none, .init = make_directory,
     .fini = remove_directory)
{
	struct r3ring_error err = {0};

	close(listen_in(directory));
	cr_assert_eq(socket_connect(directory, &err), -ECONNREFUSED);
	assert_says(&err, "no daemon behind it");
}

/* As of one that was stopped: what waits to be accepted fills up. */
Test(socket, a_daemon_that_does_not_accept_is_said_to_not_answer, .init = make_directory,
     .fini = remove_directory)
{
	struct r3ring_error err = {0};
	int listener = listen_in(directory), waiting[16], count = 0, r = 0;

	while (r >= 0 && count < 16) {
		r = socket_connect(directory, &err);
		waiting[count] = r;
		count += r >= 0;
	}
	cr_assert_eq(r, -ECONNREFUSED, "after %d", count);
	assert_says(&err, "the daemon does not answer");
	assert_says(&err, "(the daemon does not accept)");
	assert_says(&err, "kill -CONT");
	cr_expect_null(strstr(err.text, "start r3ringd"), "%s", err.text);
	while (count)
		close(waiting[--count]);
	close(listener);
}

Test(socket, a_directory_given_hides_the_other_places)
{
	struct r3ring_error err = {0};

	cr_assert_eq(socket_connect("/tmp/r3ring-given", &err), -ECONNREFUSED);
	assert_says(&err, "/tmp/r3ring-given/r3ringd.sock");
	cr_assert_null(strstr(err.text, "/run/r3ring/"));
}

Test(socket, a_path_too_long_names_the_limit)
{
	struct r3ring_error err = {0};
	char path[200];

	memset(path, 'd', sizeof(path));
	path[0] = '/';
	path[sizeof(path) - 1] = '\0';
	cr_assert_eq(socket_connect(path, &err), -ENAMETOOLONG);
	assert_says(&err, "at most 107 bytes");
	/* 107 bytes with the socket's name is the longest that may be tried. */
	path[107 - strlen("/" R3RING_SOCKET_NAME)] = '\0';
	cr_assert_eq(socket_connect(path, &err), -ECONNREFUSED);
}

Test(socket, the_default_place_follows_the_environment)
{
	char dir[64];

	setenv("R3RING_RUNTIME_DIR", "/a/b", 1);
	cr_assert_eq(socket_default_dir(dir, sizeof(dir)), 0);
	cr_assert_str_eq(dir, "/a/b");
	unsetenv("R3RING_RUNTIME_DIR");
	setenv("XDG_RUNTIME_DIR", "/run/user/7", 1);
	cr_assert_eq(socket_default_dir(dir, sizeof(dir)), 0);
	cr_assert_str_eq(dir, "/run/user/7/r3ring");
	unsetenv("XDG_RUNTIME_DIR");
	cr_assert_eq(socket_default_dir(dir, sizeof(dir)), 0);
	cr_assert_str_eq(dir, "/run/r3ring");
	cr_assert_eq(socket_default_dir(dir, 5), -ENAMETOOLONG);
}

/* ---- messages --------------------------------------------------------- */

static int ends[2];
static struct socket_inbox inbox;

static void make_pair(void)
{
	cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
}

static void send_raw(const void *bytes, size_t len)
{
	cr_assert_eq(send(ends[0], bytes, len, 0), (ssize_t)len);
}

static struct r3ring_message good_head(void)
{
	return (struct r3ring_message){
		.magic = R3RING_PROTO_MAGIC,
		.major = R3RING_PROTO_MAJOR,
		.type = R3RING_MSG_BYE,
		.len = sizeof(struct r3ring_message),
	};
}

static int fds_open(void)
{
	int count = 0;

	for (int fd = 0; fd < 1024; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

Test(socket, a_message_arrives_whole_with_its_descriptors, .init = make_pair)
{
	struct r3ring_hello_reader_message hello = {.head.type = R3RING_MSG_HELLO_READER,
						    .generation = 7};
	const char extra[] = "and more";
	int pipes[2];
	char byte;

	cr_assert_eq(pipe(pipes), 0);
	cr_assert_eq(
		socket_send(ends[0], &hello.head, sizeof(hello), extra, sizeof(extra), pipes, 2),
		0);
	cr_assert_eq(socket_receive(ends[1], &inbox, 1000), 0);
	cr_assert_eq(inbox.len, sizeof(hello) + sizeof(extra));
	cr_assert_eq(inbox.u.head.type, R3RING_MSG_HELLO_READER);
	cr_assert_str_eq((char *)inbox.u.bytes + sizeof(hello), extra);
	cr_assert_eq(inbox.fd_count, 2);
	cr_assert(fcntl(inbox.fds[0], F_GETFD) & FD_CLOEXEC);
	cr_assert_eq(write(inbox.fds[1], "x", 1), 1);
	cr_assert_eq(read(pipes[0], &byte, 1), 1);
	cr_assert_eq(byte, 'x');
	socket_inbox_close_fds(&inbox);
}

Test(socket, nothing_within_the_time_is_a_timeout, .init = make_pair)
{
	cr_assert_eq(socket_receive(ends[1], &inbox, 0), -ETIMEDOUT);
	cr_assert_eq(socket_receive(ends[1], &inbox, 5), -ETIMEDOUT);
}

Test(socket, a_peer_that_is_gone_is_told_without_a_signal, .init = make_pair)
{
	struct r3ring_message head = {.type = R3RING_MSG_BYE};

	close(ends[0]);
	cr_assert_eq(socket_receive(ends[1], &inbox, 1000), -EPIPE);
	cr_assert_eq(socket_send(ends[1], &head, sizeof(head), NULL, 0, NULL, 0), -EPIPE);
}

Test(socket, a_message_longer_than_the_limit_is_not_sent, .init = make_pair)
{
	struct r3ring_message head = {.type = R3RING_MSG_BYE};
	static uint8_t extra[R3RING_MESSAGE_MAX];

	cr_assert_eq(socket_send(ends[0], &head, sizeof(head), extra, sizeof(extra), NULL, 0),
		     -EMSGSIZE);
}

Test(socket, another_version_is_refused, .init = make_pair)
{
	struct r3ring_message head = good_head();

	head.major++;
	send_raw(&head, sizeof(head));
	cr_assert_eq(socket_receive(ends[1], &inbox, 1000), -EPROTO);
}

Test(socket, malformed_heads_are_refused, .init = make_pair)
{
	struct r3ring_message head = good_head();

	send_raw(&head, sizeof(head) - 1);
	cr_assert_eq(socket_receive(ends[1], &inbox, 1000), -EBADMSG);
	head.magic = 1;
	send_raw(&head, sizeof(head));
	cr_assert_eq(socket_receive(ends[1], &inbox, 1000), -EBADMSG);
	head = good_head();
	head.len++;
	send_raw(&head, sizeof(head));
	cr_assert_eq(socket_receive(ends[1], &inbox, 1000), -EBADMSG);
	head = good_head();
	head.fds = 1;
	send_raw(&head, sizeof(head));
	cr_assert_eq(socket_receive(ends[1], &inbox, 1000), -EBADMSG);
}

Test(socket, a_message_longer_than_the_inbox_is_refused, .init = make_pair)
{
	static struct {
		struct r3ring_message head;
		uint8_t rest[R3RING_MESSAGE_MAX];
	} message;

	message.head = good_head();
	message.head.len = sizeof(message);
	send_raw(&message, sizeof(message));
	cr_assert_eq(socket_receive(ends[1], &inbox, 1000), -EBADMSG);
}

/* Sends @count copies of one descriptor with the first @bytes of a head that announces
 * @said. */
static void send_fds(uint16_t said, unsigned int count, size_t bytes)
{
	struct r3ring_message head = good_head();
	int fds[RAW_MESSAGE_FDS_MAX];

	head.fds = said;
	for (unsigned int i = 0; i < count; i++)
		fds[i] = ends[0];
	cr_assert_eq(raw_message_send(ends[0], &head, bytes, fds, count), (ssize_t)bytes);
}

Test(socket, descriptors_of_a_refused_message_do_not_leak, .init = make_pair)
{
	int before = fds_open();

	SKIP_WHERE_EMULATED("closing of descriptors that a message had no room for");
	send_fds(1, 2, sizeof(struct r3ring_message));
	cr_assert_eq(socket_receive(ends[1], &inbox, 1000), -EBADMSG);
	send_fds(16, 16, sizeof(struct r3ring_message));
	cr_assert_eq(socket_receive(ends[1], &inbox, 1000), -EBADMSG);
	cr_assert_eq(fds_open(), before);
	cr_assert_eq(inbox.fd_count, 0);
}

Test(socket, descriptors_of_a_message_without_bytes_do_not_leak, .init = make_pair)
{
	int before = fds_open();

	send_fds(2, 2, 0);
	cr_assert_eq(socket_receive(ends[1], &inbox, 1000), -EPIPE);
	cr_assert_eq(fds_open(), before);
	cr_assert_eq(inbox.fd_count, 0);
}

/* ---- asking ----------------------------------------------------------- */

static int ask(struct r3ring_error *err)
{
	struct r3ring_message head = {.type = R3RING_MSG_GET_STATUS};

	return socket_ask(ends[1], &head, sizeof(head), NULL, 0, NULL, 0, &inbox,
			  R3RING_MSG_SEGMENT, sizeof(struct r3ring_segment_message), 1000, err);
}

Test(socket, a_refusal_gives_its_code_and_text, .init = make_pair)
{
	struct r3ring_refused_message refusal = {
		.head.type = R3RING_MSG_REFUSED,
		.code = -EDQUOT,
		.text = "too many channels",
	};
	struct r3ring_error err = {0};

	socket_send(ends[0], &refusal.head, sizeof(refusal), NULL, 0, NULL, 0);
	cr_assert_eq(ask(&err), -EDQUOT);
	cr_assert_str_eq(err.text, "too many channels");
}

Test(socket, a_refusal_sent_before_the_hang_up_is_still_read, .init = make_pair)
{
	struct r3ring_refused_message refusal = {.head.type = R3RING_MSG_REFUSED, .code = -EACCES};

	socket_send(ends[0], &refusal.head, sizeof(refusal), NULL, 0, NULL, 0);
	close(ends[0]);
	cr_assert_eq(ask(NULL), -EACCES);
}

Test(socket, a_refusal_s_code_and_text_are_not_trusted, .init = make_pair)
{
	struct r3ring_refused_message refusal = {.head.type = R3RING_MSG_REFUSED, .code = 5};
	struct r3ring_error err = {0};

	memset(refusal.text, 'x', sizeof(refusal.text));
	socket_send(ends[0], &refusal.head, sizeof(refusal), NULL, 0, NULL, 0);
	cr_assert_eq(ask(&err), -EPROTO);
	cr_assert_eq(strlen(err.text), sizeof(refusal.text) - 1);
}

Test(socket, an_answer_of_another_type_or_too_short_is_refused, .init = make_pair)
{
	struct r3ring_segment_message answer = {.head.type = R3RING_MSG_BYE};
	struct r3ring_error err = {0};
	int before = fds_open();

	socket_send(ends[0], &answer.head, sizeof(answer), NULL, 0, ends, 1);
	cr_assert_eq(ask(&err), -EBADMSG);
	assert_says(&err, "message type 4");
	answer.head.type = R3RING_MSG_SEGMENT;
	socket_send(ends[0], &answer.head, sizeof(answer) - 1, NULL, 0, ends, 1);
	cr_assert_eq(ask(&err), -EBADMSG);
	cr_assert_eq(fds_open(), before);
}

Test(socket, a_daemon_that_hangs_up_is_named, .init = make_pair)
{
	struct r3ring_error err = {0};

	close(ends[0]);
	cr_assert_eq(ask(&err), -EPIPE);
	assert_says(&err, "hung up");
}

/* As when the daemon refuses a connection at once, and a hello comes meanwhile. */
Test(socket, a_refusal_is_heard_though_the_peer_closed_with_our_message_unread)
{
	struct r3ring_refused_message refused = {
		.head.type = R3RING_MSG_REFUSED, .code = -EACCES, .text = "not for you"};
	struct r3ring_message hello = {.type = R3RING_MSG_GET_STATUS};
	struct r3ring_error err = {0};

	cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	cr_assert_eq(socket_send(ends[0], &hello, sizeof(hello), NULL, 0, NULL, 0), 0);
	cr_assert_eq(socket_send(ends[1], &refused.head, sizeof(refused), NULL, 0, NULL, 0), 0);
	close(ends[1]);
	cr_expect_eq(socket_hear(ends[0], &inbox, 1000, &err), -EACCES);
	assert_says(&err, "not for you");
	close(ends[0]);
}
