/* SPDX-License-Identifier: Apache-2.0 */
/* Concurrency Kit's ring, for one producer and one consumer. */
#include <errno.h>

#include <ck_ring.h>

#include <r3ring/atomic.h>

#include "tests/bench/peers/peer.h"
#include "tests/bench/peers/slab.h"

struct pointers {
	ck_ring_t ring;
	ck_ring_buffer_t buffer[];
};

static const char *ck_version(void)
{
	return CK_VERSION;
}

static int ck_prepare(struct peer_channel *channel)
{
	struct pointers *pointers;
	int rc = slab_make(channel, sizeof(*pointers) + channel->slots * sizeof(ck_ring_buffer_t));

	if (rc)
		return rc;
	pointers = slab_ring(channel);
	ck_ring_init(&pointers->ring, (unsigned int)channel->slots);
	return 0;
}

static int ck_open(struct peer_channel *channel, int reader)
{
	(void)reader;
	channel->end = slab_ring(channel);
	return 0;
}

static int ck_send(struct peer_channel *channel, const void *message, bool more)
{
	struct pointers *pointers = channel->end;

	(void)more;
	if (ck_ring_size(&pointers->ring) == channel->slots - 1)
		return -EAGAIN;
	if (!ck_ring_enqueue_spsc(&pointers->ring, pointers->buffer, slab_fill(channel, message)))
		return -EAGAIN;
	slab_advance(channel);
	return 0;
}

static int ck_receive(struct peer_channel *channel, void *message)
{
	struct pointers *pointers = channel->end;
	void *slot;

	/* Pairs with the writer's look at the ring's size: the former message was copied
	 * out before this takes a pointer. The ring itself orders only its own stores. */
	r3ring_fence_release();
	if (!ck_ring_dequeue_spsc(&pointers->ring, pointers->buffer, &slot))
		return 0;
	memcpy(message, slot, channel->size);
	return 1;
}

static void ck_dispose(struct peer_channel *channel)
{
	slab_free(channel);
}

const struct peer peer_ck = {
	.name = "Concurrency Kit ring",
	.how = "SPSC, pointers into a slab",
	.sources = "libck-dev",
	.readers_max = 1,
	.version = ck_version,
	.prepare = ck_prepare,
	.open = ck_open,
	.send = ck_send,
	.receive = ck_receive,
	.dispose = ck_dispose,
};
