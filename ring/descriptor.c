/* SPDX-License-Identifier: Apache-2.0 */
/* Reading one descriptor from shared memory: copied once, then checked. */
#define XXH_INLINE_ALL
#include <string.h>
#include <xxhash.h>

#include <r3ring/atomic.h>

#include "ring/internal.h"

uint32_t desc_checksum(const struct r3ring_desc *desc)
{
	return (uint32_t)XXH3_64bits(desc, offsetof(struct r3ring_desc, check));
}

static bool payload_in_bounds(const struct r3ring_segment *segment, const struct r3ring_desc *desc)
{
	uint64_t offset = desc->pos & (segment->arena_bytes - 1);

	if (desc->flags & R3RING_DESC_INLINE)
		return desc->len <= R3RING_INLINE_MAX && desc->pos < RING_NUMBER_LIMIT;
	return desc->pos < RING_NUMBER_LIMIT && desc->pos % R3RING_RECORD_ALIGN == 0 &&
	       desc->len <= segment->arena_bytes / 8 && desc->len <= segment->arena_bytes - offset;
}

enum desc_state desc_copy(const struct r3ring_segment *segment, uint64_t seq,
			  struct r3ring_desc *copy)
{
	const struct r3ring_desc *slot = ring_desc(segment, seq);
	/* Pairs with the release of `seq` in the writer's publish. */
	uint64_t found = r3ring_load_acquire_u64(&slot->seq);

	if (found < seq)
		return DESC_NOT_YET;
	if (found > seq)
		return DESC_OVERRUN;
	memcpy(copy, slot, sizeof(*copy));
	copy->seq = seq;
	/* Pairs with the writer's fence behind the marker: who copied bytes of a
	 * newer record finds its marker here. */
	r3ring_fence_acquire();
	found = r3ring_load_relaxed_u64(&slot->seq);
	if (found != seq)
		return found > seq ? DESC_OVERRUN : DESC_CORRUPT;
	if (copy->check != desc_checksum(copy) || !payload_in_bounds(segment, copy))
		return DESC_CORRUPT;
	return DESC_INTACT;
}

bool desc_payload_kept(const struct r3ring_segment *segment, const struct r3ring_desc *desc)
{
	uint64_t intent = r3ring_load_relaxed_u64(&segment->lines->intent_pos);

	return intent <= desc->pos + segment->arena_bytes;
}
