/* SPDX-License-Identifier: Apache-2.0 */
/* How large a channel's ring is, and how many rows one of its records holds. */
#ifndef DAEMON_SIZING_H
#define DAEMON_SIZING_H

#include <stdint.h>

#include <r3ring/error.h>
#include <r3ring/record.h>

struct ring_sizes {
	uint64_t arena_bytes;
	uint64_t segment_bytes; /* all of the shared memory */
	uint32_t depth;         /* descriptors */
	uint32_t rows_per_record;
};

/*
 * Chooses the sizes.
 *
 * @schema:    the producer's; its rows_per_record is kept unless 0 (a producer
 *             that comes back has laid out its buffer with it).
 * @ring_size: bytes of the whole segment as the user said, honoured exactly: the
 *             largest arena that fits is taken. 0: 32 MiB, more where four of the
 *             schema's largest steps need more.
 *
 * Returns 0, or -EMSGSIZE when the ring is too small for the schema (the message
 * names the size it needs).
 */
int sizing_choose(struct ring_sizes *sizes, const struct r3ring_schema_record *schema,
		  uint64_t ring_size, struct r3ring_error *err);

/* Bytes of the segment that most channels get with that @ring_size; with 0 a channel of large
 * steps gets more. */
uint64_t sizing_usual_bytes(uint64_t ring_size);

#endif
