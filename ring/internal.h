/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the ring share: the mapped segment and the reading of one
 * descriptor. Everything a reader computes with comes from the private copy of
 * the header, never from shared memory.
 */
#ifndef RING_INTERNAL_H
#define RING_INTERNAL_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <r3ring/abi.h>
#include <r3ring/atomic.h>
#include <r3ring/ring.h>

#include "ring/identity.h"

#define RING_ARENA_LOG2_MIN 12u
#define RING_ARENA_LOG2_MAX 36u
#define RING_DEPTH_LOG2_MIN 4u
#define RING_DEPTH_LOG2_MAX 24u

/* No honest sequence or position comes near it; sums below it never wrap. */
#define RING_NUMBER_LIMIT (1ull << 62)

/* After so many empty looks the tail is asked whether the slot tells the truth;
 * rarely, since asking draws the writer's line to this core. */
#define RING_EMPTY_LOOKS 256u

/* On the path of every record: a call there, with what it passes through memory, costs
 * more than the work. */
#define RING_HOT inline __attribute__((always_inline))

struct r3ring_segment {
	int fd; /* of the writer's side, holds the lock; -1 for readers */
	uint8_t *base;
	size_t bytes;
	bool writable;
	bool adopted;
	struct r3ring_segment_header header; /* as checked */
	char name[NAME_MAX + 2];

	/* from the checked header */
	struct r3ring_writer_lines *lines;
	struct r3ring_desc *descs;
	uint8_t *arena;
	uint64_t depth;
	uint64_t arena_bytes;
};

static inline struct r3ring_desc *ring_desc(const struct r3ring_segment *segment, uint64_t seq)
{
	return &segment->descs[seq & (segment->depth - 1)];
}

static inline uint64_t ring_align(uint64_t bytes, uint64_t unit)
{
	return (bytes + unit - 1) & ~(unit - 1);
}

/* Bytes of the longest record. */
static inline uint64_t ring_max_record(const struct r3ring_segment *segment)
{
	return segment->arena_bytes / 8;
}

/* Sets the pointers and sizes above from segment->header and segment->base. */
void segment_locate_regions(struct r3ring_segment *segment);

/* ---- identity of the writing process (identity.c) --------------------- */

/* All zero where /proc does not say. */
void identity_boot_id(uint8_t boot_id[16]);

/* ---- one descriptor (descriptor.c) ------------------------------------ */

enum desc_state {
	DESC_INTACT,
	DESC_NOT_YET, /* the slot still holds an older record */
	DESC_OVERRUN, /* the slot holds, or is about to hold, a newer one */
	DESC_CORRUPT,
};

/* Arena position behind a record at @pos. */
static inline uint64_t desc_end_of(uint64_t pos, uint32_t len, uint64_t flags)
{
	return flags & R3RING_DESC_INLINE ? pos : pos + ring_align(len, R3RING_RECORD_ALIGN);
}

static inline uint64_t desc_end(const struct r3ring_desc *desc)
{
	return desc_end_of(desc->pos, desc->len, desc->flags);
}

/* Low half of XXH3 over all bytes of the descriptor before `check`. */
uint32_t desc_checksum(const struct r3ring_desc *desc);

/*
 * Copies the descriptor of @seq once and checks the copy: sequence, checksum,
 * and that the payload it names lies inside the arena.
 */
enum desc_state desc_copy(const struct r3ring_segment *segment, uint64_t seq,
			  struct r3ring_desc *copy);

/*
 * Whether the arena bytes of a record at @pos have not been given to a newer one up to
 * now. Comes after an acquire fence behind the reading of those bytes.
 */
static inline bool desc_payload_kept(const struct r3ring_segment *segment, uint64_t pos)
{
	uint64_t intent = r3ring_load_relaxed_u64(&segment->lines->intent_pos);

	return intent <= pos + segment->arena_bytes;
}

/* ---- how far can be read (tail.c) -------------------------------------- */

/* Whether the slot of @tail holds that record, or one behind it: once it is published, for good. */
bool tail_is_shown(const struct r3ring_segment *segment, uint64_t tail);

/* Newest record; first_seq - 1 when there is none. Where the writer's word cannot be, because
 * somebody wrote over it, what the slots show: then all of them are looked at. */
uint64_t tail_newest(const struct r3ring_segment *segment);

/* Whether the word says more than can be. */
bool tail_lies(const struct r3ring_segment *segment);

/* ---- how far back can be read (window.c) ------------------------------ */

struct window {
	uint64_t oldest;       /* oldest record that passes both checks; tail + 1 when none */
	uint64_t tail;         /* newest published record */
	uint64_t units_before; /* running total of units in front of oldest */
};

/*
 * Finds the oldest record in [@from, tail] whose descriptor and payload can be
 * read and whose predecessor's running total is still known.
 * Returns 0, -EAGAIN (the writer overtook the search: again), or -EBADMSG (the
 * intent cannot be true).
 */
int window_find(const struct r3ring_segment *segment, uint64_t from, struct window *window);

/* Where to begin to read all of it: at the oldest, or at damaged records right in front, which are
 * to be told. */
uint64_t window_begin(const struct r3ring_segment *segment, const struct window *window);

/*
 * Running total of units in front of @seq. Returns whether it can be known: the
 * record before is still there, or there never was one.
 */
bool window_units_before(const struct r3ring_segment *segment, uint64_t seq, uint64_t *units);

/* Whether @seq, as a word of the writer named it, is a record of the window that carries
 * @flag; leaves the total of units in front. */
bool window_flagged_record(const struct r3ring_segment *segment, uint64_t seq, uint16_t flag,
			   const struct window *window, uint64_t *total);

/* The newest boundary, or behind the newest record. */
bool window_newest_boundary(const struct r3ring_segment *segment, const struct window *window,
			    uint64_t *seq, uint64_t *total);

/* As old as is safe: a writer at full speed needs an eighth of the window's time to
 * overtake the reader again. */
bool window_safe_resume(const struct r3ring_segment *segment, const struct window *window,
			uint64_t *seq, uint64_t *total);

#endif
