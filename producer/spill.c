/* SPDX-License-Identifier: Apache-2.0 */
/* Announcements that found the side lane full. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "producer/spill.h"

int spill_append(struct spill *spill, uint16_t record_type, uint64_t after, const void *payload,
		 uint32_t bytes)
{
	uint64_t size = sizeof(struct spill_item) + bytes;
	struct spill_item *item;

	if (spill->bytes + size > SPILL_BYTES_MAX)
		return -ENOBUFS;
	item = malloc(size);
	if (!item)
		return -ENOBUFS;

	*item = (struct spill_item){.after = after, .bytes = bytes, .record_type = record_type};
	memcpy(item->payload, payload, bytes);
	if (spill->last)
		spill->last->next = item;
	else
		spill->first = item;
	spill->last = item;
	spill->bytes += size;
	return 0;
}

void spill_remove(struct spill *spill)
{
	struct spill_item *item = spill->first;

	spill->first = item->next;
	if (!spill->first)
		spill->last = NULL;
	spill->bytes -= sizeof(*item) + item->bytes;
	free(item);
}

void spill_clear(struct spill *spill)
{
	while (spill->first)
		spill_remove(spill);
}
