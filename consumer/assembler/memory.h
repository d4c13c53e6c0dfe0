/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The account of what an assembler holds of what engines sent: rows, requests with their
 * names, attempts, positions and tables, keys, steps that wait.
 */
#ifndef CONSUMER_ASSEMBLER_MEMORY_H
#define CONSUMER_ASSEMBLER_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <uthash.h>

struct memory {
	uint64_t held;
	uint64_t given; /* of it what was given out: it is the user's to free */
	uint64_t most;  /* of the others */
};

static inline bool memory_has_room(const struct memory *memory)
{
	return memory->held <= memory->most + memory->given;
}

/* Whether so much more is no more than a step may take until it is settled, and room made:
 * a quarter beyond the limit. */
static inline bool memory_may_take(const struct memory *memory, uint64_t more)
{
	return more <= memory->most &&
	       memory->held + more <= memory->most + memory->most / 4 + memory->given;
}

/* Whether a step may take so much. For a larger one all else would have to go, and then itself. */
static inline bool memory_may_take_step(const struct memory *memory, uint64_t bytes)
{
	return bytes <= memory->most;
}

/* What an allocator takes for @bytes: a word of its own, and in steps of two. */
static inline uint64_t heap_bytes(size_t bytes)
{
	const uint64_t chunk = ((uint64_t)bytes + 8 + 15) & ~UINT64_C(15);

	if (!bytes)
		return 0;
	return chunk < 32 ? 32 : chunk;
}

/* A hash table beside its entries; NULL: none. */
static inline uint64_t table_bytes(const UT_hash_table *table)
{
	return table ? heap_bytes(sizeof(*table)) +
			       heap_bytes(table->num_buckets * sizeof(*table->buckets))
		     : 0;
}

#endif
