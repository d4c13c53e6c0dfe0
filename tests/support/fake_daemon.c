/* SPDX-License-Identifier: Apache-2.0 */
/* A daemon that only answers readers. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "channel/socket.h"
#include "tests/support/fake_daemon.h"

#define CHANNELS_MAX 4
#define HELD_MAX 64

struct fake_daemon {
	char dir[64];
	int listener;
	int stop;
	pthread_t thread;
	pthread_mutex_t lock; /* what follows */
	const struct fake_channel *channels[CHANNELS_MAX];
	unsigned int count;
	enum fake_daemon_fault fault;
	/* the thread's own: questions without an answer */
	int held[HELD_MAX];
	unsigned int held_count;
};

static void must(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "fake daemon: %s: %s\n", what, strerror(errno));
	abort();
}

static void refuse(int fd, int code, const char *text)
{
	struct r3ring_refused_message refused = {.head.type = R3RING_MSG_REFUSED, .code = code};

	snprintf(refused.text, sizeof(refused.text), "%s", text);
	socket_send(fd, &refused.head, sizeof(refused), NULL, 0, NULL, 0);
}

static void spoil(struct r3ring_segment_message *answer, enum fake_daemon_fault fault)
{
	if (fault == FAKE_DAEMON_OTHER_UUID)
		answer->uuid[0] ^= 1;
	if (fault == FAKE_DAEMON_OTHER_GENERATION)
		answer->generation++;
	if (fault == FAKE_DAEMON_ENDLESS_NAME)
		memset(answer->segment, 'x', sizeof(answer->segment));
}

static void give(const struct fake_daemon *daemon, int fd, const struct fake_channel *channel)
{
	const struct r3ring_segment_header *header = r3ring_segment_get_header(channel->segment);
	struct r3ring_segment_message answer = {
		.head.type = R3RING_MSG_SEGMENT,
		.generation = header->generation,
	};
	int segment = daemon->fault == FAKE_DAEMON_OTHER_FILE
			      ? open("/dev/null", O_RDONLY | O_CLOEXEC)
			      : r3ring_segment_reader_fd(channel->segment);

	must(segment >= 0, "descriptor");
	memcpy(answer.uuid, header->uuid, sizeof(answer.uuid));
	snprintf(answer.segment, sizeof(answer.segment), "%s", channel->name);
	spoil(&answer, daemon->fault);
	socket_send(fd, &answer.head, sizeof(answer), NULL, 0, &segment,
		    daemon->fault == FAKE_DAEMON_NO_DESCRIPTOR ? 0 : 1);
	close(segment);
}

static const struct fake_channel *find(const struct fake_daemon *daemon, uint64_t generation)
{
	for (unsigned int i = daemon->count; i > 0; i--)
		if (!generation || daemon->channels[i - 1]->generation == generation)
			return daemon->channels[i - 1];
	return NULL;
}

static void answer(struct fake_daemon *daemon, int fd, const struct socket_inbox *inbox)
{
	struct r3ring_hello_reader_message hello;
	const struct fake_channel *channel;

	memcpy(&hello, inbox->u.bytes, sizeof(hello));
	pthread_mutex_lock(&daemon->lock);
	channel = find(daemon, hello.generation);
	if (channel)
		give(daemon, fd, channel);
	else
		refuse(fd, -ENOENT, "no such channel or generation here");
	pthread_mutex_unlock(&daemon->lock);
}

static enum fake_daemon_fault fault_of(struct fake_daemon *daemon)
{
	enum fake_daemon_fault fault;

	pthread_mutex_lock(&daemon->lock);
	fault = daemon->fault;
	pthread_mutex_unlock(&daemon->lock);
	return fault;
}

static void serve_one(struct fake_daemon *daemon)
{
	struct socket_inbox inbox;
	int fd = accept4(daemon->listener, NULL, NULL, SOCK_CLOEXEC);

	must(fd >= 0, "accept");
	if (socket_receive(fd, &inbox, 5000) == 0) {
		enum fake_daemon_fault fault = fault_of(daemon);

		if (fault == FAKE_DAEMON_MUTE && daemon->held_count < HELD_MAX) {
			daemon->held[daemon->held_count++] = fd;
			return;
		}
		if (fault != FAKE_DAEMON_HANGS_UP)
			answer(daemon, fd, &inbox);
		socket_inbox_close_fds(&inbox);
	}
	close(fd);
}

static void *run(void *ctx)
{
	struct fake_daemon *daemon = ctx;
	struct pollfd polled[] = {
		{.fd = daemon->listener, .events = POLLIN},
		{.fd = daemon->stop, .events = POLLIN},
	};

	while (poll(polled, 2, -1) > 0 && !polled[1].revents)
		if (polled[0].revents)
			serve_one(daemon);
	return NULL;
}

static void make_dir(struct fake_daemon *daemon, const char *dir)
{
	if (dir) {
		snprintf(daemon->dir, sizeof(daemon->dir), "%s", dir);
		return;
	}
	snprintf(daemon->dir, sizeof(daemon->dir), "/tmp/r3ring-test.%d.XXXXXX", (int)getpid());
	must(mkdtemp(daemon->dir), "mkdtemp");
}

static void listen_there(struct fake_daemon *daemon)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	snprintf(address.sun_path, sizeof(address.sun_path), "%s/%s", daemon->dir,
		 R3RING_SOCKET_NAME);
	unlink(address.sun_path);
	daemon->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	must(daemon->listener >= 0, "socket");
	must(!bind(daemon->listener, (struct sockaddr *)&address, sizeof(address)), "bind");
	must(!listen(daemon->listener, 16), "listen");
}

struct fake_daemon *fake_daemon_start(const char *dir)
{
	struct fake_daemon *daemon = calloc(1, sizeof(*daemon));

	must(daemon, "calloc");
	make_dir(daemon, dir);
	listen_there(daemon);
	daemon->stop = eventfd(0, EFD_CLOEXEC);
	must(daemon->stop >= 0, "eventfd");
	pthread_mutex_init(&daemon->lock, NULL);
	must(!pthread_create(&daemon->thread, NULL, run, daemon), "pthread_create");
	return daemon;
}

void fake_daemon_stop(struct fake_daemon *daemon)
{
	uint64_t one = 1;

	must(write(daemon->stop, &one, sizeof(one)) == sizeof(one), "write");
	pthread_join(daemon->thread, NULL);
	for (unsigned int i = 0; i < daemon->held_count; i++)
		close(daemon->held[i]);
	close(daemon->listener);
	close(daemon->stop);
	pthread_mutex_destroy(&daemon->lock);
	free(daemon);
}

void fake_daemon_remove_dir(const char *dir)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", dir, R3RING_SOCKET_NAME);
	unlink(path);
	rmdir(dir);
}

const char *fake_daemon_dir(const struct fake_daemon *daemon)
{
	return daemon->dir;
}

void fake_daemon_serve(struct fake_daemon *daemon, const struct fake_channel *channel)
{
	pthread_mutex_lock(&daemon->lock);
	if (!channel)
		daemon->count = 0;
	else if (daemon->count < CHANNELS_MAX)
		daemon->channels[daemon->count++] = channel;
	pthread_mutex_unlock(&daemon->lock);
}

void fake_daemon_break(struct fake_daemon *daemon, enum fake_daemon_fault fault)
{
	pthread_mutex_lock(&daemon->lock);
	daemon->fault = fault;
	pthread_mutex_unlock(&daemon->lock);
}
