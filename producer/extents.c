/* SPDX-License-Identifier: Apache-2.0 */
/* Room in the capture buffer. */
#include <r3ring/atomic.h>

#include "producer/extents.h"

void extents_init(struct extents *extents, uint64_t bytes, const uint64_t *released)
{
	*extents = (struct extents){
		.bytes = bytes & ~(uint64_t)(EXTENT_ALIGN - 1),
		.released = released,
	};
}

/* Takes note of what the daemon gave back; a counter that goes back or says more
 * than was taken is not believed. */
static void take_back(struct extents *extents)
{
	/* Pairs with the daemon's release of extents_released, which comes after its
	 * copy out of the extent is done. */
	uint64_t released = r3ring_load_acquire_u64(extents->released);

	if (released == extents->returned ||
	    released - extents->returned > extents->taken - extents->returned)
		return;
	extents->returned = released;
	extents->tail = extents->end[(released - 1) % PAGES_SLOTS];
}

/* An extent is never split at the buffer's end. */
static bool fits(const struct extents *extents, uint64_t bytes, uint64_t *position)
{
	uint64_t rest = extents->bytes - extents->head % extents->bytes;
	uint64_t skip = rest < bytes ? rest : 0;
	uint64_t in_use = extents->taken - extents->returned;

	*position = extents->head + skip;
	if (!in_use)
		return bytes <= extents->bytes;
	return in_use < PAGES_SLOTS && *position + bytes - extents->tail <= extents->bytes;
}

bool extents_take(struct extents *extents, uint64_t bytes, struct extent *extent)
{
	uint64_t position;

	take_back(extents);
	if (!fits(extents, bytes, &position))
		return false;

	extent->offset = position % extents->bytes;
	extent->end = position + bytes;
	extent->slot = (uint32_t)(extents->taken % PAGES_SLOTS);
	extents->end[extent->slot] = extent->end;
	extents->taken++;
	extents->head = extent->end;
	return true;
}
