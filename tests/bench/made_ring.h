/* SPDX-License-Identifier: Apache-2.0 */
/* A ring for a benchmark's row, and waiting for its records. */
#ifndef TESTS_BENCH_MADE_RING_H
#define TESTS_BENCH_MADE_RING_H

#include <stddef.h>
#include <stdint.h>

#include <r3ring/ring.h>

struct made_ring {
	struct r3ring_segment *segment;
	struct r3ring_writer *writer;
	int reader_fd;
};

/* Makes a ring without a name; what it made on failure is freed by ring_free(). */
int ring_make(struct made_ring *ring, uint64_t arena_bytes, uint32_t depth);
void ring_free(struct made_ring *ring);

/* A reader of its own mapping, as another process has it. The caller closes what is
 * not NULL afterwards, also on failure. */
int cursor_make(int fd, struct r3ring_segment **segment, struct r3ring_cursor **cursor);

/* Spins; where both processes share a core, lets the other one run at times. */
void wait_turn(unsigned int *looks);

/* Spins until a record is there and copies it out. Returns 0, or as
 * r3ring_cursor_read(). */
int await_record(struct r3ring_cursor *cursor, void *buffer, size_t capacity);

#endif
