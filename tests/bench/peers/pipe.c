/* SPDX-License-Identifier: Apache-2.0 */
/* A pipe, read and written without sleeping. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/bench/peers/kernel.h"
#include "tests/bench/peers/peer.h"

/* What of the message under way has been moved; one process's. */
struct pipe_end {
	size_t moved;
};

static int pipe_prepare(struct peer_channel *channel)
{
	size_t capacity = channel->size * channel->slots;
	int *pair = kernel_pair_make(channel);

	if (!pair)
		return -ENOMEM;
	if (pipe2(pair, O_NONBLOCK | O_CLOEXEC))
		return -errno;
	return fcntl(pair[1], F_SETPIPE_SZ, (int)capacity) < 0 ? -errno : 0;
}

static int pipe_open(struct peer_channel *channel, int reader)
{
	channel->end = calloc(1, sizeof(struct pipe_end));
	kernel_pair_keep(channel, reader == PEER_WRITER ? 1 : 0);
	return channel->end ? 0 : -ENOMEM;
}

/* Notes @moved bytes more, or an error. Returns 1 when the message is through. */
static int note(const struct peer_channel *channel, ssize_t moved)
{
	struct pipe_end *end = channel->end;

	if (moved < 0)
		return errno == EAGAIN ? 0 : -errno;
	end->moved += (size_t)moved;
	if (end->moved < channel->size)
		return 0;
	end->moved = 0;
	return 1;
}

static int pipe_send(struct peer_channel *channel, const void *message, bool more)
{
	const struct pipe_end *end = channel->end;
	const int *pair = channel->shared;
	int rc = note(channel, write(pair[1], (const uint8_t *)message + end->moved,
				     channel->size - end->moved));

	(void)more;
	return rc == 1 ? 0 : rc ? rc : -EAGAIN;
}

static int pipe_receive(struct peer_channel *channel, void *message)
{
	const struct pipe_end *end = channel->end;
	const int *pair = channel->shared;
	ssize_t got = read(pair[0], (uint8_t *)message + end->moved, channel->size - end->moved);

	return got ? note(channel, got) : -EPIPE;
}

static void pipe_close(struct peer_channel *channel)
{
	free(channel->end);
}

const struct peer peer_pipe = {
	.name = "pipe",
	.how = "read and written without sleeping",
	.sources = "",
	.readers_max = 1,
	.version = kernel_version,
	.prepare = pipe_prepare,
	.open = pipe_open,
	.send = pipe_send,
	.receive = pipe_receive,
	.close = pipe_close,
	.dispose = kernel_pair_dispose,
};
