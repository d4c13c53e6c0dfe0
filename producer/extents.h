/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room in the capture buffer: a ring of bytes from which each step takes one
 * contiguous extent. Extents are given back in the order in which they were
 * taken, by a counter of the daemon's that is not trusted.
 */
#ifndef PRODUCER_EXTENTS_H
#define PRODUCER_EXTENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "channel/pages.h"

/* One thread. */
struct extents {
	uint64_t bytes;            /* of the buffer, a multiple of EXTENT_ALIGN */
	const uint64_t *released;  /* shared: the daemon's counter, hostile */
	uint64_t head;             /* buffer position behind the newest extent, never wrapped */
	uint64_t tail;             /* buffer position up to which all is free */
	uint64_t taken;            /* how many extents were taken, ever */
	uint64_t returned;         /* how many the daemon is believed to have given back */
	uint64_t end[PAGES_SLOTS]; /* position behind the extent in each slot */
};

struct extent {
	uint64_t offset; /* in the buffer */
	uint64_t end;    /* position behind it, never wrapped */
	uint32_t slot;
};

void extents_init(struct extents *extents, uint64_t bytes, const uint64_t *released);

/*
 * Takes @bytes (a multiple of EXTENT_ALIGN) and the next slot. Returns false when
 * the buffer or the slots are full. Never waits.
 */
bool extents_take(struct extents *extents, uint64_t bytes, struct extent *extent);

#endif
