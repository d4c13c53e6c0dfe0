/* SPDX-License-Identifier: Apache-2.0 */
/* The loop on io_uring: one-shot polls, armed again after each event. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>

#include <liburing.h>

#include "capture_daemon/loop_backend.h"

#define QUEUE_ENTRIES 256
#define EVENTS_PER_TURN 64

static int uring_create(void **state)
{
	struct io_uring *ring = calloc(1, sizeof(*ring));
	int r;

	if (!ring)
		return -ENOMEM;
	r = io_uring_queue_init(QUEUE_ENTRIES, ring, IORING_SETUP_CLAMP);
	if (r == 0 && !(ring->features & IORING_FEAT_EXT_ARG)) {
		io_uring_queue_exit(ring);
		r = -ENOSYS;
	}
	if (r < 0) {
		free(ring);
		return r;
	}
	*state = ring;
	return 0;
}

static void uring_destroy(void *state)
{
	io_uring_queue_exit(state);
	free(state);
}

static struct io_uring_sqe *uring_sqe(struct io_uring *ring)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(ring);

	if (!sqe && io_uring_submit(ring) >= 0)
		sqe = io_uring_get_sqe(ring);
	return sqe;
}

static int uring_arm(void *state, const struct loop_source *source)
{
	struct io_uring_sqe *sqe = uring_sqe(state);

	if (!sqe)
		return -EBUSY;
	io_uring_prep_poll_add(sqe, source->fd, source->events);
	sqe->user_data = source->id;
	return 0;
}

/* Submitted at once: a poll holds its file open, also after close(). */
static void uring_disarm(void *state, const struct loop_source *source)
{
	struct io_uring_sqe *sqe = uring_sqe(state);

	if (!sqe)
		return;
	io_uring_prep_rw(IORING_OP_POLL_REMOVE, sqe, -1, NULL, 0, 0);
	sqe->addr = source->id;
	sqe->user_data = 0;
	io_uring_submit(state);
}

static int uring_wait(void *state, struct loop *loop, int timeout_ms)
{
	struct __kernel_timespec timeout = {timeout_ms / 1000, (timeout_ms % 1000) * 1000000ll};
	struct io_uring_cqe *cqes[EVENTS_PER_TURN];
	struct {
		uint64_t id;
		int result;
	} events[EVENTS_PER_TURN];
	struct io_uring_cqe *first;
	unsigned int count;
	int r;

	r = io_uring_submit(state);
	if (r >= 0)
		r = io_uring_wait_cqe_timeout(state, &first, timeout_ms < 0 ? NULL : &timeout);
	if (r == -ETIME || r == -EINTR || r == -EAGAIN)
		return 0;
	if (r < 0)
		return r;
	count = io_uring_peek_batch_cqe(state, cqes, EVENTS_PER_TURN);
	for (unsigned int i = 0; i < count; i++) {
		events[i].id = cqes[i]->user_data;
		events[i].result = cqes[i]->res;
	}
	io_uring_cq_advance(state, count);
	for (unsigned int i = 0; i < count; i++) {
		if (events[i].result != -ECANCELED)
			loop_dispatch(loop, events[i].id,
				      events[i].result < 0 ? POLLERR : (uint32_t)events[i].result);
	}
	return 0;
}

const struct loop_backend loop_backend_uring = {
	.name = "io_uring",
	.create = uring_create,
	.destroy = uring_destroy,
	.arm = uring_arm,
	.disarm = uring_disarm,
	.wait = uring_wait,
	.one_shot = 1,
};
