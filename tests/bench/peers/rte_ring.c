/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DPDK's ring, for one producer and one consumer, in shared memory of this program:
 * rte_ring_init() needs neither huge pages nor DPDK's own environment.
 *
 * Once with pointers into a slab, as DPDK's programs pass packets, and once with
 * the messages as elements that are filled and read in place.
 */
#include <errno.h>

#include <rte_ring.h>
#include <rte_ring_peek_zc.h>
#include <rte_version.h>

#include "tests/bench/peers/peer.h"
#include "tests/bench/peers/slab.h"

static const char *dpdk_version(void)
{
	return rte_version() + sizeof("DPDK");
}

static void ring_dispose(struct peer_channel *channel)
{
	slab_free(channel);
}

static int ring_open(struct peer_channel *channel, int reader)
{
	(void)reader;
	channel->end = slab_ring(channel);
	return 0;
}

/* ---- pointers into a slab ------------------------------------------------ */

static int pointers_prepare(struct peer_channel *channel)
{
	unsigned int slots = (unsigned int)channel->slots;
	int rc = slab_make(channel, (size_t)rte_ring_get_memsize(slots));

	return rc ? rc
		  : rte_ring_init(slab_ring(channel), "peer", slots, RING_F_SP_ENQ | RING_F_SC_DEQ);
}

static int pointers_send(struct peer_channel *channel, const void *message, bool more)
{
	(void)more;
	if (rte_ring_full(channel->end))
		return -EAGAIN;
	if (rte_ring_sp_enqueue(channel->end, slab_fill(channel, message)))
		return -EAGAIN;
	slab_advance(channel);
	return 0;
}

static int pointers_receive(struct peer_channel *channel, void *message)
{
	void *slot;

	if (rte_ring_sc_dequeue(channel->end, &slot))
		return 0;
	memcpy(message, slot, channel->size);
	return 1;
}

const struct peer peer_rte_ring = {
	.name = "DPDK rte_ring",
	.how = "SP/SC, pointers into a slab",
	.sources = "libdpdk-dev",
	.readers_max = 1,
	.version = dpdk_version,
	.prepare = pointers_prepare,
	.open = ring_open,
	.send = pointers_send,
	.receive = pointers_receive,
	.dispose = ring_dispose,
};

/* ---- messages in the ring ------------------------------------------------- */

static int in_place_prepare(struct peer_channel *channel)
{
	unsigned int slots = (unsigned int)channel->slots, size = (unsigned int)channel->size;
	int rc = slab_make(channel, (size_t)rte_ring_get_memsize_elem(size, slots));

	return rc ? rc
		  : rte_ring_init(slab_ring(channel), "peer", slots, RING_F_SP_ENQ | RING_F_SC_DEQ);
}

static int in_place_send(struct peer_channel *channel, const void *message, bool more)
{
	struct rte_ring_zc_data room;

	(void)more;
	if (!rte_ring_enqueue_zc_bulk_elem_start(channel->end, (unsigned int)channel->size, 1,
						 &room, NULL))
		return -EAGAIN;
	memcpy(room.ptr1, message, channel->size);
	rte_ring_enqueue_zc_elem_finish(channel->end, 1);
	return 0;
}

static int in_place_receive(struct peer_channel *channel, void *message)
{
	struct rte_ring_zc_data data;

	if (!rte_ring_dequeue_zc_bulk_elem_start(channel->end, (unsigned int)channel->size, 1,
						 &data, NULL))
		return 0;
	memcpy(message, data.ptr1, channel->size);
	rte_ring_dequeue_zc_elem_finish(channel->end, 1);
	return 1;
}

const struct peer peer_rte_ring_in_place = {
	.name = "DPDK rte_ring, in place",
	.how = "SP/SC, messages as elements, zero-copy calls",
	.sources = "libdpdk-dev",
	.readers_max = 1,
	.version = dpdk_version,
	.prepare = in_place_prepare,
	.open = ring_open,
	.send = in_place_send,
	.receive = in_place_receive,
	.dispose = ring_dispose,
};
