/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a plain container is like: a small /dev/shm, and a seccomp filter that
 * refuses io_uring. Made by this process for itself or others; root is not
 * needed where the kernel lets users have user namespaces.
 */
#ifndef TESTS_SUPPORT_CONTAINER_H
#define TESTS_SUPPORT_CONTAINER_H

#include <stdbool.h>
#include <stddef.h>

#define CONTAINER_SHM "64m" /* what container runtimes give when not asked */

struct container {
	const char *shm_size; /* as mount takes it; NULL: /dev/shm stays as it is */
	int io_uring_error;   /* what io_uring's calls end with; 0: they are allowed */
	/* Where it is, for container_join(). */
	int user_fd, mount_fd; /* its namespaces; user_fd -1 when it has none of its own */
	int root_fd, cwd_fd;
};

/*
 * This process, which has one thread, and its children are in a container from
 * here on. Returns 0, or a negative errno where the kernel refuses, with what it
 * refused in @why.
 */
int container_enter(const struct container *container, char *why, size_t capacity);

/* The same as a `prepare` of daemons, for what cannot be refused: io_uring_error. */
bool container_prepare(void *container);

/*
 * Makes one for other processes to join; it ends with them and this one. The
 * first two members say what it is like. Returns as container_enter() does.
 */
int container_make(struct container *container, char *why, size_t capacity);

/* The calling process, which has one thread, joins one that was made: for
 * `prepare` of daemons and commands. False where that fails. */
bool container_join(void *container);

#endif
