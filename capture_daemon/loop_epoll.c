/* SPDX-License-Identifier: Apache-2.0 */
/* The loop on epoll, for where io_uring is refused. */
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "capture_daemon/loop_backend.h"

#define EVENTS_PER_TURN 64

struct epoll_state {
	int fd;
};

static int epoll_create_state(void **state)
{
	struct epoll_state *made = calloc(1, sizeof(*made));

	if (!made)
		return -ENOMEM;
	made->fd = epoll_create1(EPOLL_CLOEXEC);
	if (made->fd < 0) {
		free(made);
		return -errno;
	}
	*state = made;
	return 0;
}

static void epoll_destroy_state(void *state)
{
	struct epoll_state *epoll = state;

	close(epoll->fd);
	free(epoll);
}

/* The bits of POLLIN and POLLOUT are those of EPOLLIN and EPOLLOUT. */
static int epoll_arm(void *state, const struct loop_source *source)
{
	struct epoll_state *epoll = state;
	struct epoll_event event = {.events = source->events, .data.u64 = source->id};

	return epoll_ctl(epoll->fd, EPOLL_CTL_ADD, source->fd, &event) < 0 ? -errno : 0;
}

static void epoll_disarm(void *state, const struct loop_source *source)
{
	struct epoll_state *epoll = state;

	epoll_ctl(epoll->fd, EPOLL_CTL_DEL, source->fd, NULL);
}

static int epoll_wait_events(void *state, struct loop *loop, int timeout_ms)
{
	struct epoll_state *epoll = state;
	struct epoll_event events[EVENTS_PER_TURN];
	int count = epoll_wait(epoll->fd, events, EVENTS_PER_TURN, timeout_ms);

	if (count < 0)
		return errno == EINTR ? 0 : -errno;
	for (int i = 0; i < count; i++)
		loop_dispatch(loop, events[i].data.u64, events[i].events);
	return 0;
}

const struct loop_backend loop_backend_epoll = {
	.name = "epoll",
	.create = epoll_create_state,
	.destroy = epoll_destroy_state,
	.arm = epoll_arm,
	.disarm = epoll_disarm,
	.wait = epoll_wait_events,
	.one_shot = 0,
};
