/* SPDX-License-Identifier: Apache-2.0 */
/* What rings say of themselves beside their records: the one that is read, and the one before. */
#include <r3ring/atomic.h>

#include "consumer/instance_internal.h"
#include "consumer/internal.h"
#include "ring/internal.h"

bool reader_tail_lies(const struct r3ring_reader *reader)
{
	return tail_lies(reader->now.segment);
}

static bool is_alive(const struct r3ring_segment *segment)
{
	/* Pairs with the release of `closed` in r3ring_writer_finish(). */
	return !r3ring_load_acquire_u32(&segment->lines->closed) &&
	       r3ring_segment_writer_lives(segment);
}

void reader_leave(struct r3ring_reader *reader)
{
	struct r3ring_cursor_stats stats;

	r3ring_cursor_get_stats(reader->cursor, &stats);
	reader->left_alive = (reader->left_alive && !stats.got) || is_alive(reader->now.segment);
}

bool instance_left_alive(const struct r3ring_instance *instance, uint32_t index)
{
	const struct r3ring_reader *reader = instance->channels[index]->reader;

	return reader && reader->left_alive;
}
