/* SPDX-License-Identifier: Apache-2.0 */
/* ZeroMQ's PUB and SUB over ipc; the publisher is told of a full queue instead of
 * dropping (ZMQ_XPUB_NODROP), and knows when its subscribers are there. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include <zmq.h>

#include "tests/bench/bench.h"
#include "tests/bench/peers/peer.h"

#define PATIENCE_MS 100
#define CONNECT_MS 10000

struct zeromq_end {
	void *context;
	void *socket;
	int receive_flags;
};

static const char *zeromq_version(void)
{
	static char version[32];
	int major, minor, patch;

	zmq_version(&major, &minor, &patch);
	snprintf(version, sizeof(version), "%d.%d.%d", major, minor, patch);
	return version;
}

static int zeromq_prepare(struct peer_channel *channel)
{
	(void)channel;
	return 0;
}

static int set(void *socket, int option, int value)
{
	return zmq_setsockopt(socket, option, &value, sizeof(value)) ? -errno : 0;
}

/* Each subscriber's subscription arrives as a message. */
static int await_readers(void *socket, unsigned int readers)
{
	char subscription[8];
	int rc = set(socket, ZMQ_RCVTIMEO, CONNECT_MS);

	while (!rc && readers--)
		rc = zmq_recv(socket, subscription, sizeof(subscription), 0) < 0 ? -errno : 0;
	return rc;
}

static int publisher_open(struct zeromq_end *end, const struct peer_channel *channel,
			  const char *address)
{
	int rc;

	end->socket = zmq_socket(end->context, ZMQ_XPUB);
	if (!end->socket)
		return -errno;
	rc = set(end->socket, ZMQ_SNDHWM, (int)channel->slots);
	rc = rc ? rc : set(end->socket, ZMQ_XPUB_NODROP, 1);
	rc = rc ? rc : set(end->socket, ZMQ_XPUB_VERBOSE, 1);
	rc = rc ? rc : zmq_bind(end->socket, address) ? -errno : 0;
	return rc ? rc : await_readers(end->socket, channel->readers);
}

static int subscriber_open(struct zeromq_end *end, const struct peer_channel *channel,
			   const char *address)
{
	int rc;

	/* Each process has a thread that carries its messages; who spins beside it needs
	 * a core more. */
	end->receive_flags = bench_cpus() < 2 * (channel->readers + 1) ? 0 : ZMQ_DONTWAIT;
	end->socket = zmq_socket(end->context, ZMQ_SUB);
	if (!end->socket)
		return -errno;
	rc = set(end->socket, ZMQ_RCVHWM, (int)channel->slots);
	rc = rc ? rc : set(end->socket, ZMQ_RCVTIMEO, PATIENCE_MS);
	rc = rc ? rc : set(end->socket, ZMQ_RECONNECT_IVL, 1);
	rc = rc ? rc : zmq_setsockopt(end->socket, ZMQ_SUBSCRIBE, "", 0) ? -errno : 0;
	return rc ? rc : zmq_connect(end->socket, address) ? -errno : 0;
}

static int zeromq_open(struct peer_channel *channel, int reader)
{
	struct zeromq_end *end = calloc(1, sizeof(*end));
	char address[256];

	if (!end)
		return -ENOMEM;
	channel->end = end;
	snprintf(address, sizeof(address), "ipc://%s/zeromq", channel->directory);
	end->context = zmq_ctx_new();
	if (!end->context)
		return -errno;
	return reader == PEER_WRITER ? publisher_open(end, channel, address)
				     : subscriber_open(end, channel, address);
}

static int zeromq_send(struct peer_channel *channel, const void *message, bool more)
{
	const struct zeromq_end *end = channel->end;

	(void)more;
	return zmq_send(end->socket, message, channel->size, ZMQ_DONTWAIT) < 0 ? -errno : 0;
}

static int zeromq_receive(struct peer_channel *channel, void *message)
{
	const struct zeromq_end *end = channel->end;
	int got = zmq_recv(end->socket, message, channel->size, end->receive_flags);

	if (got < 0)
		return errno == EAGAIN ? 0 : -errno;
	return got == (int)channel->size ? 1 : -EBADMSG;
}

/* What is on its way is sent before the context ends. */
static void zeromq_close(struct peer_channel *channel)
{
	struct zeromq_end *end = channel->end;

	if (!end)
		return;
	if (end->socket)
		zmq_close(end->socket);
	if (end->context)
		zmq_ctx_term(end->context);
	free(end);
}

static void zeromq_dispose(struct peer_channel *channel)
{
	(void)channel;
}

const struct peer peer_zeromq = {
	.name = "ZeroMQ",
	.how = "XPUB without drops and SUB over ipc; sleeps for messages where cores are few",
	.sources = "libzmq3-dev",
	.readers_max = PEER_READERS_MAX,
	.helped = true,
	.version = zeromq_version,
	.prepare = zeromq_prepare,
	.open = zeromq_open,
	.send = zeromq_send,
	.receive = zeromq_receive,
	.close = zeromq_close,
	.dispose = zeromq_dispose,
};
