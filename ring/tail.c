/* SPDX-License-Identifier: Apache-2.0 */
/* The newest record: as the writer's word says, or, where that cannot be, as the slots show. */
#include <r3ring/atomic.h>

#include "ring/internal.h"

bool tail_is_shown(const struct r3ring_segment *segment, uint64_t tail)
{
	/* Pairs with the release of `seq` in the writer's publish. */
	return tail < RING_NUMBER_LIMIT &&
	       r3ring_load_acquire_u64(&ring_desc(segment, tail)->seq) >= tail;
}

/* Where none is, in front of the first. */
static uint64_t newest_shown(const struct r3ring_segment *segment)
{
	uint64_t newest = segment->header.first_seq - 1;
	struct r3ring_desc desc;

	for (uint64_t slot = 0; slot < segment->depth; slot++) {
		uint64_t seq = r3ring_load_relaxed_u64(&ring_desc(segment, slot)->seq);

		if (seq > newest && seq < RING_NUMBER_LIMIT &&
		    (seq & (segment->depth - 1)) == slot &&
		    desc_copy(segment, seq, &desc) == DESC_INTACT)
			newest = seq;
	}
	return newest;
}

uint64_t tail_newest(const struct r3ring_segment *segment)
{
	/* Pairs with the release of tail_seq in the writer's publish. */
	uint64_t tail = r3ring_load_acquire_u64(&segment->lines->tail_seq);
	uint64_t newest;

	if (tail >= segment->header.first_seq && tail_is_shown(segment, tail))
		return tail;
	/* Nothing yet, unless the first slot shows more. */
	if (tail == segment->header.first_seq - 1 && !tail_is_shown(segment, tail + 1))
		return tail;
	newest = newest_shown(segment);
	/* Of the newest its slot alone may be spoiled, and some in front of it. */
	return tail > newest && tail - newest <= segment->depth ? tail : newest;
}

bool tail_lies(const struct r3ring_segment *segment)
{
	/* First: what a writer stores from then on is no less. Pairs with the release of tail_seq
	 * in its publish. */
	const uint64_t said = r3ring_load_acquire_u64(&segment->lines->tail_seq);

	return said > tail_newest(segment);
}
