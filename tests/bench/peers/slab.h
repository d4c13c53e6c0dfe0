/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Payloads for rings of pointers. One process forks the others, so that all see them
 * at the same addresses.
 *
 * There are two slots more than the ring holds pointers, used in turn: when the
 * writer fills a slot again, the reader has taken a later pointer than that slot's,
 * and so has copied it out. No pointer has to travel back.
 */
#ifndef TESTS_BENCH_PEERS_SLAB_H
#define TESTS_BENCH_PEERS_SLAB_H

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "tests/bench/bench.h"
#include "tests/bench/peers/peer.h"

#define SLAB_LINE 128u

/* At the start of a channel's shared memory. */
struct slab {
	size_t bytes; /* of all */
	size_t slots;
	size_t next;   /* the writer's: where the next message goes */
	uint8_t *data; /* the first slot, on a page of its own */
};

static inline size_t slab_round(size_t bytes, size_t to)
{
	return (bytes + to - 1) / to * to;
}

/* Shared memory with a slab, and @ring_bytes for the ring. Returns 0 or -ENOMEM. */
static inline int slab_make(struct peer_channel *channel, size_t ring_bytes)
{
	size_t before = slab_round(SLAB_LINE + ring_bytes, 4096);
	size_t slots = channel->slots + 2;
	size_t bytes = before + slots * channel->size;
	struct slab *slab = (struct slab *)bench_shared(bytes);

	if (!slab)
		return -ENOMEM;
	slab->bytes = bytes;
	slab->slots = slots;
	slab->data = (uint8_t *)slab + before;
	channel->shared = slab;
	return 0;
}

static inline void slab_free(struct peer_channel *channel)
{
	struct slab *slab = (struct slab *)channel->shared;

	if (slab)
		bench_unshare(slab, slab->bytes);
}

/* The room for the ring, aligned to SLAB_LINE. */
static inline void *slab_ring(const struct peer_channel *channel)
{
	return (uint8_t *)channel->shared + SLAB_LINE;
}

/* Copies @message into the next slot, which is the same until slab_advance(). */
static inline void *slab_fill(const struct peer_channel *channel, const void *message)
{
	const struct slab *slab = (const struct slab *)channel->shared;

	return memcpy(slab->data + slab->next * channel->size, message, channel->size);
}

static inline void slab_advance(const struct peer_channel *channel)
{
	struct slab *slab = (struct slab *)channel->shared;

	slab->next = slab->next + 1 == slab->slots ? 0 : slab->next + 1;
}

#endif
