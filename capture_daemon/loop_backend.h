/* SPDX-License-Identifier: Apache-2.0 */
/* What an implementation of the loop has to bring along. */
#ifndef DAEMON_LOOP_BACKEND_H
#define DAEMON_LOOP_BACKEND_H

#include "capture_daemon/loop.h"

struct loop_backend {
	const char *name;
	int (*create)(void **state);
	void (*destroy)(void *state);
	/* Reports `source->id` once (`one_shot`) or as long as it is ready. */
	int (*arm)(void *state, const struct loop_source *source);
	void (*disarm)(void *state, const struct loop_source *source);
	/* Waits, then calls loop_dispatch() for each event. */
	int (*wait)(void *state, struct loop *loop, int timeout_ms);
	int one_shot; /* 1: to be armed again after each event */
};

extern const struct loop_backend loop_backend_uring;
extern const struct loop_backend loop_backend_epoll;

/* Calls the source that has this id, if it is still in the loop. */
void loop_dispatch(struct loop *loop, uint64_t id, uint32_t events);

#endif
