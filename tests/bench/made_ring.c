/* SPDX-License-Identifier: Apache-2.0 */
/* A ring for a benchmark's row, and waiting for its records. */
#include <sched.h>
#include <stdio.h>
#include <unistd.h>

#include <r3ring/atomic.h>

#include "tests/bench/made_ring.h"

#define LOOKS_BEFORE_YIELD 4096u

void wait_turn(unsigned int *looks)
{
	r3ring_cpu_relax();
	if (++*looks % LOOKS_BEFORE_YIELD == 0)
		sched_yield();
}

int ring_make(struct made_ring *ring, uint64_t arena_bytes, uint32_t depth)
{
	static unsigned int count;
	char name[64];
	struct r3ring_segment_options options = {
		.size = sizeof(options), .name = name, .arena_bytes = arena_bytes, .depth = depth};
	int rc;

	snprintf(name, sizeof(name), "/r3ring-bench.%d.%u", getpid(), count++);
	*ring = (struct made_ring){.reader_fd = -1};
	rc = r3ring_segment_create(&ring->segment, &options, NULL);
	if (rc)
		return rc;
	r3ring_segment_unlink(ring->segment);
	rc = r3ring_writer_open(&ring->writer, ring->segment);
	if (!rc)
		ring->reader_fd = r3ring_segment_reader_fd(ring->segment);
	return rc ? rc : ring->reader_fd < 0 ? ring->reader_fd : 0;
}

void ring_free(struct made_ring *ring)
{
	r3ring_writer_close(ring->writer);
	r3ring_segment_close(ring->segment);
	if (ring->reader_fd >= 0)
		close(ring->reader_fd);
}

int cursor_make(int fd, struct r3ring_segment **segment, struct r3ring_cursor **cursor)
{
	int rc = r3ring_segment_open_fd(segment, fd, NULL);

	return rc ? rc : r3ring_cursor_open(cursor, *segment, R3RING_LOSSY, R3RING_FROM_OLDEST, 0);
}

int await_record(struct r3ring_cursor *cursor, void *buffer, size_t capacity)
{
	unsigned int looks = 0;
	struct r3ring_view view;
	int rc;

	while (!(rc = r3ring_cursor_read(cursor, &view, buffer, capacity)))
		wait_turn(&looks);
	return rc == 1 ? 0 : rc;
}
