/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "serve/owners.h"

struct owner {
	pid_t pid;
	int pidfd;
	uint64_t number;
	UT_hash_handle hh; /* by pid */
};

struct owners {
	owner_gone_fn gone;
	void *context;
	pthread_t thread;
	int epoll_fd;
	int stop_fd;
	pthread_mutex_t lock; /* of what follows */
	struct owner *by_pid;
	uint64_t numbers;
};

static bool is_dead(const struct owner *owner)
{
	struct pollfd poll_fd = {.fd = owner->pidfd, .events = POLLIN};

	return poll(&poll_fd, 1, 0) > 0;
}

static void owner_free(struct owner *owner)
{
	close(owner->pidfd);
	free(owner);
}

/* ---- finding -------------------------------------------------------------- */

static int watch(struct owners *owners, struct owner *owner)
{
	struct epoll_event event = {.events = EPOLLIN, .data.u64 = owner->number};
	unsigned int known = HASH_COUNT(owners->by_pid);

	HASH_ADD_INT(owners->by_pid, pid, owner);
	if (HASH_COUNT(owners->by_pid) == known)
		return -ENOMEM;
	if (epoll_ctl(owners->epoll_fd, EPOLL_CTL_ADD, owner->pidfd, &event) == 0)
		return 0;
	HASH_DEL(owners->by_pid, owner);
	return -errno;
}

static int add_owner(struct owners *owners, pid_t pid, struct owner **found)
{
	struct owner *owner = calloc(1, sizeof(*owner));
	int r;

	if (!owner)
		return -ENOMEM;
	owner->pid = pid;
	owner->number = ++owners->numbers;
	owner->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (owner->pidfd < 0) {
		r = -errno;
		free(owner);
		return r;
	}
	r = watch(owners, owner);
	if (r < 0) {
		owner_free(owner);
		return r;
	}
	*found = owner;
	return 0;
}

int owners_find(struct owners *owners, pid_t pid, uint64_t *owner)
{
	struct owner *found;
	int r = 0;

	pthread_mutex_lock(&owners->lock);
	HASH_FIND_INT(owners->by_pid, &pid, found);
	if (!found)
		r = add_owner(owners, pid, &found);
	/* Its number may be another process's by now, or it is one that nobody has waited for
	 * yet; the thread takes it out soon. */
	if (r == 0 && is_dead(found))
		r = -ESRCH;
	if (r == 0)
		*owner = found->number;
	pthread_mutex_unlock(&owners->lock);
	return r;
}

/* ---- waiting for deaths --------------------------------------------------- */

static bool take_out(struct owners *owners, uint64_t number)
{
	struct owner *owner, *next, *found = NULL;

	pthread_mutex_lock(&owners->lock);
	HASH_ITER (hh, owners->by_pid, owner, next) {
		if (owner->number == number)
			found = owner;
	}
	if (found) {
		HASH_DEL(owners->by_pid, found);
		epoll_ctl(owners->epoll_fd, EPOLL_CTL_DEL, found->pidfd, NULL);
		owner_free(found);
	}
	pthread_mutex_unlock(&owners->lock);
	return found != NULL;
}

static void *wait_for_deaths(void *arg)
{
	struct owners *owners = arg;
	struct epoll_event event;

	for (;;) {
		int r = epoll_wait(owners->epoll_fd, &event, 1, -1);

		if (r < 0 && errno != EINTR)
			return NULL;
		if (r <= 0)
			continue;
		if (event.data.u64 == 0)
			return NULL;
		if (take_out(owners, event.data.u64))
			owners->gone(owners->context, event.data.u64);
	}
}

/* ---- starting and stopping ------------------------------------------------ */

static void free_owners(struct owners *owners)
{
	struct owner *owner, *next;

	HASH_ITER (hh, owners->by_pid, owner, next) {
		HASH_DEL(owners->by_pid, owner);
		owner_free(owner);
	}
	if (owners->epoll_fd >= 0)
		close(owners->epoll_fd);
	if (owners->stop_fd >= 0)
		close(owners->stop_fd);
	pthread_mutex_destroy(&owners->lock);
	free(owners);
}

static int open_fds(struct owners *owners)
{
	struct epoll_event event = {.events = EPOLLIN};

	owners->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	owners->stop_fd = eventfd(0, EFD_CLOEXEC);
	if (owners->epoll_fd < 0 || owners->stop_fd < 0 ||
	    epoll_ctl(owners->epoll_fd, EPOLL_CTL_ADD, owners->stop_fd, &event))
		return -errno;
	return 0;
}

int owners_start(struct owners **owners, owner_gone_fn gone, void *context,
		 struct r3ring_error *err)
{
	struct owners *made = calloc(1, sizeof(*made));
	int r;

	if (!made)
		return r3ring_error_set(err, -ENOMEM, "no memory to watch clients");
	made->gone = gone;
	made->context = context;
	pthread_mutex_init(&made->lock, NULL);
	r = open_fds(made);
	if (r == 0)
		r = -pthread_create(&made->thread, NULL, wait_for_deaths, made);
	if (r < 0) {
		free_owners(made);
		return r3ring_error_set(err, r, "clients cannot be watched: %s", strerror(-r));
	}
	*owners = made;
	return 0;
}

void owners_stop(struct owners *owners)
{
	const uint64_t one = 1;

	if (!owners)
		return;
	/* It has room for this: nobody else writes. */
	if (write(owners->stop_fd, &one, sizeof(one)) == sizeof(one))
		pthread_join(owners->thread, NULL);
	free_owners(owners);
}
