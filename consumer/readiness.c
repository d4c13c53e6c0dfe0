/* SPDX-License-Identifier: Apache-2.0 */
/* What makes a reader's descriptor readable. */
#include <errno.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "consumer/readiness.h"

#define LEAST_NS 1000000ull /* a moment that is over makes no busy loop */

void readiness_init(struct readiness *readiness)
{
	*readiness =
		(struct readiness){.epoll_fd = -1, .timer_fd = -1, .connection = -1, .request = -1};
}

static int add(const struct readiness *readiness, int fd)
{
	struct epoll_event event = {.events = EPOLLIN};

	return epoll_ctl(readiness->epoll_fd, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

int readiness_open(struct readiness *readiness)
{
	int rc = 0;

	readiness->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (readiness->epoll_fd < 0)
		return -errno;
	readiness->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (readiness->timer_fd < 0)
		rc = -errno;
	if (!rc)
		rc = add(readiness, readiness->timer_fd);
	if (rc)
		readiness_close(readiness);
	return rc;
}

void readiness_close(struct readiness *readiness)
{
	if (readiness->timer_fd >= 0)
		close(readiness->timer_fd);
	if (readiness->epoll_fd >= 0)
		close(readiness->epoll_fd);
	readiness_init(readiness);
}

static void drop(const struct readiness *readiness, int *watched)
{
	if (*watched >= 0)
		epoll_ctl(readiness->epoll_fd, EPOLL_CTL_DEL, *watched, NULL);
	*watched = -1;
}

void readiness_drop_connection(struct readiness *readiness)
{
	drop(readiness, &readiness->connection);
}

void readiness_drop_request(struct readiness *readiness)
{
	drop(readiness, &readiness->request);
}

bool readiness_watch(struct readiness *readiness, int *watched, int fd)
{
	if (*watched < 0 && !add(readiness, fd))
		*watched = fd;
	return *watched >= 0;
}

void readiness_set_timer(struct readiness *readiness, uint64_t now, uint64_t due_ns)
{
	uint64_t after = due_ns > now + LEAST_NS ? due_ns - now : LEAST_NS;
	const struct itimerspec once = {
		.it_value.tv_sec = (time_t)(after / 1000000000u),
		.it_value.tv_nsec = (long)(after % 1000000000u),
	};

	if (readiness->timer_ns > now && readiness->timer_ns <= now + after)
		return;
	timerfd_settime(readiness->timer_fd, 0, &once, NULL);
	readiness->timer_ns = now + after;
}
