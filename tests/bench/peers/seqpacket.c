/* SPDX-License-Identifier: Apache-2.0 */
/* A pair of unix sockets that keep messages whole, used without sleeping. */
#include <errno.h>
#include <sys/socket.h>

#include "tests/bench/peers/kernel.h"
#include "tests/bench/peers/peer.h"

static int seqpacket_prepare(struct peer_channel *channel)
{
	int capacity = (int)(channel->size * channel->slots);
	int *pair = kernel_pair_make(channel);

	if (!pair)
		return -ENOMEM;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair))
		return -errno;
	/* Cut to what the system grants; a message of any size here still fits. */
	return setsockopt(pair[1], SOL_SOCKET, SO_SNDBUF, &capacity, sizeof(capacity)) ? -errno : 0;
}

static int seqpacket_open(struct peer_channel *channel, int reader)
{
	kernel_pair_keep(channel, reader == PEER_WRITER ? 1 : 0);
	return 0;
}

static int seqpacket_send(struct peer_channel *channel, const void *message, bool more)
{
	const int *pair = channel->shared;

	(void)more;
	return send(pair[1], message, channel->size, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

static int seqpacket_receive(struct peer_channel *channel, void *message)
{
	const int *pair = channel->shared;
	ssize_t got = recv(pair[0], message, channel->size, 0);

	if (got < 0)
		return errno == EAGAIN ? 0 : -errno;
	return got == (ssize_t)channel->size ? 1 : got ? -EBADMSG : -EPIPE;
}

const struct peer peer_seqpacket = {
	.name = "unix seqpacket",
	.how = "sent and received without sleeping",
	.sources = "",
	.readers_max = 1,
	.version = kernel_version,
	.prepare = seqpacket_prepare,
	.open = seqpacket_open,
	.send = seqpacket_send,
	.receive = seqpacket_receive,
	.dispose = kernel_pair_dispose,
};
