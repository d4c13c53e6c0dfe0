/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One descriptor as eight words. They stay in registers on the way from shared memory
 * through the checksum to a private copy: a load of bytes from two words just stored, as
 * XXH3 makes them, waits until both have left the store buffer. For the same reason
 * nothing here loops over them, since loops are made into vectors, which go through
 * memory.
 */
#ifndef RING_DESCRIPTOR_H
#define RING_DESCRIPTOR_H

#include <r3ring/atomic.h>

#include "ring/internal.h"

enum desc_word {
	DESC_SEQ,
	DESC_POS,
	DESC_STEP,
	DESC_UNITS,
	DESC_SHAPE, /* len, type, flags */
	DESC_INLINE0,
	DESC_INLINE1,
	DESC_LAST, /* end of the inline data; checksum in the upper half */
	DESC_WORDS,
};

static inline uint64_t desc_shape(uint32_t len, uint16_t type, uint64_t flags)
{
	return len | (uint64_t)type << 32 | flags << 48;
}

static inline uint32_t desc_shape_len(uint64_t shape)
{
	return (uint32_t)shape;
}

static inline uint16_t desc_shape_type(uint64_t shape)
{
	return (uint16_t)(shape >> 32);
}

static inline uint16_t desc_shape_flags(uint64_t shape)
{
	return (uint16_t)(shape >> 48);
}

/* ---- checksum ----------------------------------------------------------- */

/* Of XXH3: the first words of its default secret by their offset, and two primes.
 * Source: xxHash, doc/xxhash_spec.md, "XXH3 Algorithm Description (for short inputs)". */
#define XXH3_SECRET_0 0xbe4ba423396cfeb8ull
#define XXH3_SECRET_8 0x1cad21f72c81017cull
#define XXH3_SECRET_16 0xdb979083e96dd4deull
#define XXH3_SECRET_24 0x1f67b3b7a4a44072ull
#define XXH3_SECRET_32 0x78e5c0cc4ee679cbull
#define XXH3_SECRET_40 0x2172ffcc7dd05a82ull
#define XXH3_SECRET_48 0x8e2443f7744608b8ull
#define XXH3_SECRET_56 0x4c263a81e69035e0ull
#define XXH3_PRIME64_1 0x9e3779b185ebca87ull
#define XXH3_PRIME_MX1 0x165667919e3779f9ull

static inline uint64_t xxh3_fold(uint64_t a, uint64_t b)
{
	__extension__ unsigned __int128 product = (unsigned __int128)a * b;

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* The eight bytes that begin in the upper half of @low. */
static inline uint64_t desc_straddle(uint64_t low, uint64_t high)
{
	return low >> 32 | high << 32;
}

/* What desc_checksum() says: XXH3 of 60 bytes, pieces of 16 at 16, 28, 0 and 44. */
static RING_HOT uint32_t desc_words_checksum(const uint64_t words[DESC_WORDS])
{
	uint64_t hash = offsetof(struct r3ring_desc, check) * XXH3_PRIME64_1;

	hash += xxh3_fold(words[DESC_STEP] ^ XXH3_SECRET_32, words[DESC_UNITS] ^ XXH3_SECRET_40);
	hash += xxh3_fold(desc_straddle(words[DESC_UNITS], words[DESC_SHAPE]) ^ XXH3_SECRET_48,
			  desc_straddle(words[DESC_SHAPE], words[DESC_INLINE0]) ^ XXH3_SECRET_56);
	hash += xxh3_fold(words[DESC_SEQ] ^ XXH3_SECRET_0, words[DESC_POS] ^ XXH3_SECRET_8);
	hash += xxh3_fold(desc_straddle(words[DESC_INLINE0], words[DESC_INLINE1]) ^ XXH3_SECRET_16,
			  desc_straddle(words[DESC_INLINE1], words[DESC_LAST]) ^ XXH3_SECRET_24);
	hash ^= hash >> 37;
	hash *= XXH3_PRIME_MX1;
	return (uint32_t)(hash ^ hash >> 32);
}

/* ---- reading ------------------------------------------------------------ */

static RING_HOT uint64_t desc_words_end(const uint64_t words[DESC_WORDS])
{
	return desc_end_of(words[DESC_POS], desc_shape_len(words[DESC_SHAPE]),
			   desc_shape_flags(words[DESC_SHAPE]));
}

static RING_HOT bool desc_words_in_bounds(const struct r3ring_segment *segment,
					  const uint64_t words[DESC_WORDS])
{
	uint64_t pos = words[DESC_POS], offset = pos & (segment->arena_bytes - 1);
	uint32_t len = desc_shape_len(words[DESC_SHAPE]);

	if (desc_shape_flags(words[DESC_SHAPE]) & R3RING_DESC_INLINE)
		return len <= R3RING_INLINE_MAX && pos < RING_NUMBER_LIMIT;
	return pos < RING_NUMBER_LIMIT && pos % R3RING_RECORD_ALIGN == 0 &&
	       len <= ring_max_record(segment) && len <= segment->arena_bytes - offset;
}

/* Of @found, ahead of @seq in its slot: a writer stores there the sequences of that slot, and as a
 * marker those right in front of them. */
static inline enum desc_state desc_ahead(const struct r3ring_segment *segment, uint64_t seq,
					 uint64_t found)
{
	uint64_t of_lap = (found - seq) & (segment->depth - 1);

	return of_lap == 0 || of_lap == segment->depth - 1 ? DESC_OVERRUN : DESC_CORRUPT;
}

/* desc_copy() on the path of every record. @words are touched on failure, too. */
static RING_HOT enum desc_state desc_load(const struct r3ring_segment *segment, uint64_t seq,
					  uint64_t words[DESC_WORDS])
{
	const uint64_t *from = (const uint64_t *)(const void *)ring_desc(segment, seq);
	/* Pairs with the release of `seq` in the writer's publish. */
	uint64_t found = r3ring_load_acquire_u64(&from[DESC_SEQ]);

	if (found != seq)
		return found < seq ? DESC_NOT_YET : desc_ahead(segment, seq, found);
	words[DESC_SEQ] = seq;
	words[DESC_POS] = r3ring_load_relaxed_u64(&from[DESC_POS]);
	words[DESC_STEP] = r3ring_load_relaxed_u64(&from[DESC_STEP]);
	words[DESC_UNITS] = r3ring_load_relaxed_u64(&from[DESC_UNITS]);
	words[DESC_SHAPE] = r3ring_load_relaxed_u64(&from[DESC_SHAPE]);
	words[DESC_INLINE0] = r3ring_load_relaxed_u64(&from[DESC_INLINE0]);
	words[DESC_INLINE1] = r3ring_load_relaxed_u64(&from[DESC_INLINE1]);
	words[DESC_LAST] = r3ring_load_relaxed_u64(&from[DESC_LAST]);
	/* Pairs with the writer's fence behind the marker: who copied bytes of a
	 * newer record finds its marker here. */
	r3ring_fence_acquire();
	found = r3ring_load_relaxed_u64(&from[DESC_SEQ]);
	if (found != seq)
		return found > seq ? DESC_OVERRUN : DESC_CORRUPT;
	if (words[DESC_LAST] >> 32 != desc_words_checksum(words) ||
	    !desc_words_in_bounds(segment, words))
		return DESC_CORRUPT;
	return DESC_INTACT;
}

/* ---- storing ------------------------------------------------------------ */

/* Everything but `seq`, into a private copy or the ring. */
static RING_HOT void desc_store_fields(struct r3ring_desc *desc, const uint64_t words[DESC_WORDS])
{
	uint64_t *to = (uint64_t *)(void *)desc;

	r3ring_store_relaxed_u64(&to[DESC_POS], words[DESC_POS]);
	r3ring_store_relaxed_u64(&to[DESC_STEP], words[DESC_STEP]);
	r3ring_store_relaxed_u64(&to[DESC_UNITS], words[DESC_UNITS]);
	r3ring_store_relaxed_u64(&to[DESC_SHAPE], words[DESC_SHAPE]);
	r3ring_store_relaxed_u64(&to[DESC_INLINE0], words[DESC_INLINE0]);
	r3ring_store_relaxed_u64(&to[DESC_INLINE1], words[DESC_INLINE1]);
	r3ring_store_relaxed_u64(&to[DESC_LAST], words[DESC_LAST]);
}

#endif
