/* SPDX-License-Identifier: Apache-2.0 */
/* One generation of a channel, written by the test itself. */
#ifndef TESTS_FAKE_CHANNEL_H
#define TESTS_FAKE_CHANNEL_H

#include <stdbool.h>
#include <stdint.h>

#include <r3ring/record.h>
#include <r3ring/ring.h>

struct fake_channel {
	char name[64]; /* carries the pid; unlinked at once */
	struct r3ring_segment *segment;
	struct r3ring_writer *writer;
	uint64_t generation;
};

/* Makes an empty segment with a heartbeat of now; aborts when it cannot. */
void fake_channel_open(struct fake_channel *channel, uint64_t generation, uint32_t depth,
		       uint64_t arena_bytes);

/* The same, of a channel that @untaken numbers right in front of it were none of. */
void fake_channel_open_behind(struct fake_channel *channel, uint64_t generation, uint32_t untaken);
void fake_channel_close(struct fake_channel *channel);

/* Encodes and publishes a record and wakes readers; returns its sequence. */
uint64_t fake_channel_put(struct fake_channel *channel, const struct r3ring_record *record,
			  uint16_t flags);

/* SCHEMA as a generation's first record. */
uint64_t fake_channel_put_schema(struct fake_channel *channel);

/* An empty STEP_END of @step. */
uint64_t fake_channel_put_step(struct fake_channel *channel, uint64_t step);
void fake_channel_put_steps(struct fake_channel *channel, uint64_t first, uint64_t count);

/* CLOSED, and the end. @next: 0 for none. */
void fake_channel_end(struct fake_channel *channel, uint32_t reason, uint64_t next);

/* Writes over the word that says which sequence is the newest. */
void fake_channel_spoil_tail(struct fake_channel *channel, uint64_t seq);

/* Empties the slot of a published record. */
void fake_channel_empty(struct fake_channel *channel, uint64_t seq);

/* Spoils the descriptor of a published record. */
void fake_channel_corrupt(struct fake_channel *channel, uint64_t seq);

#endif
