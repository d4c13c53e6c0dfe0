/* SPDX-License-Identifier: Apache-2.0 */
/* Announcements that found the side lane full, in order, until it has room. */
#ifndef PRODUCER_SPILL_H
#define PRODUCER_SPILL_H

#include <stdint.h>

#define SPILL_BYTES_MAX (64u << 20)

struct spill_item {
	struct spill_item *next;
	uint64_t after; /* newest step when it was announced */
	uint32_t bytes;
	uint16_t record_type;
	uint16_t reserved;
	uint64_t payload[]; /* aligned as records are */
};

struct spill {
	struct spill_item *first;
	struct spill_item *last;
	uint64_t bytes; /* memory taken by all items */
};

/*
 * Appends a copy. @after: number of the newest step, for the entry that the item
 * becomes. Returns 0, or -ENOBUFS when SPILL_BYTES_MAX or memory is full.
 */
int spill_append(struct spill *spill, uint16_t record_type, uint64_t after, const void *payload,
		 uint32_t bytes);

/* Removes the first item; there must be one. */
void spill_remove(struct spill *spill);

void spill_clear(struct spill *spill);

#endif
