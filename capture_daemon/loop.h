/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Readiness of many descriptors in one thread: the control plane's loop. It
 * runs on io_uring, or on epoll where io_uring is refused (Docker's default
 * seccomp profile).
 */
#ifndef DAEMON_LOOP_H
#define DAEMON_LOOP_H

#include <stdint.h>

#include <r3ring/error.h>

struct loop;

/* One watched descriptor. The owner keeps it alive while it is in the loop. */
struct loop_source {
	int fd;
	uint32_t events; /* POLLIN, POLLOUT */
	void (*ready)(struct loop_source *source, uint32_t events);
	void *owner;
	uint64_t id; /* the loop's; 0 while not in it */
};

/*
 * Makes a loop. Returns 0 or a negative errno. Where io_uring is refused the
 * reason is logged once, at info.
 */
int loop_create(struct loop **loop);
void loop_destroy(struct loop *loop);

/* "io_uring" or "epoll". */
const char *loop_name(const struct loop *loop);

/*
 * Watches a source; level-triggered: `ready` is called in each turn as long as
 * there is something to do. Hang-ups and errors are always reported.
 */
int loop_add(struct loop *loop, struct loop_source *source);

/* After this `ready` is not called any more; call it before closing the
 * descriptor. A source that is not in the loop is fine. */
void loop_remove(struct loop *loop, struct loop_source *source);

/* Watches for other events than before. */
int loop_modify(struct loop *loop, struct loop_source *source, uint32_t events);

/*
 * One turn: waits for at most @timeout_ms (-1: without end) and calls what is
 * ready. Sources may be added and removed from within. Returns 0 or a negative
 * errno.
 */
int loop_turn(struct loop *loop, int timeout_ms);

#endif
