/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pages that a producer shares with the daemon: one sealed memfd with the
 * submission queue (two lanes), the bells and a few words of state.
 *
 *	0        struct pages_header            (read once, checked, copied)
 *	4096     struct pages_words             (each side stores its own lines)
 *	...      step lane    2^n bytes
 *	...      side lane    2^m bytes
 *	...      bells        slots x extent_slot_bytes(layers)
 *
 * Each side treats what the other stores as hostile. Offsets are multiples of
 * 64 KiB from the lanes on.
 */
#ifndef CHANNEL_PAGES_H
#define CHANNEL_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <r3ring/abi.h>
#include <r3ring/error.h>

#include "channel/extent.h"
#include "channel/lane.h"

#define PAGES_MAGIC 0x5345474150523352ull
#define PAGES_VERSION 2
#define PAGES_CAUSES 16u /* places for causes of loss: enum r3ring_cause, and room */
#define PAGES_SLOTS 256u /* extents that may be in flight */

struct pages_header {
	uint64_t magic;
	uint32_t version;
	uint32_t slots;
	uint32_t layers;
	uint32_t reserved;
	uint64_t bytes;
	uint64_t step_lane_offset, step_lane_bytes;
	uint64_t side_lane_offset, side_lane_bytes;
	uint64_t bells_offset, bells_bytes;
};

/* Steps begun so far; two copies used in turn, so that a kill between the two
 * stores leaves one copy whole (the one with the larger step). */
struct pages_begun {
	uint64_t step;
	uint64_t rows; /* valid rows of this rank in all steps up to it */
};

/* Steps that were taken and are lost, and not yet told to readers: they come behind
 * taken_step. */
struct pages_untold {
	uint64_t from_step, to_step; /* all of these */
	uint64_t rows;               /* valid rows of this rank in all steps up to to_step */
	uint64_t reserved;
	uint64_t steps[PAGES_CAUSES], lost_rows[PAGES_CAUSES]; /* by enum r3ring_cause */
};

struct pages_words {
	/* producer's, changed by each entry */
	struct lane_head step_head;
	uint8_t pad0[R3RING_LINE - 16];
	struct lane_head side_head;
	uint8_t pad1[R3RING_LINE - 16];
	struct pages_begun begun[2]; /* begun[step & 1]: rows first, then step with release */
	uint32_t closing;            /* 1: the producer will add nothing any more */
	uint32_t reserved0;
	struct lane_gap closing_gap; /* behind the last entry; stored before closing */
	uint8_t pad2[R3RING_LINE - 64];

	/* daemon's */
	uint64_t step_tail;
	uint64_t side_tail;
	uint64_t taken_step; /* newest step that was taken, stored before step_tail; */
	uint64_t taken_rows; /* valid rows up to it: where the next daemon goes on */
	uint64_t said_seq;   /* where in the ring the records of a side entry begin; stored */
	uint64_t said_entry; /* before its number, and that before they are published */
	uint8_t pad3[R3RING_LINE - 48];
	uint64_t extents_released; /* how many extents the daemon has given back, ever */
	uint64_t heartbeat_ns;
	uint8_t pad4[R3RING_LINE - 16];

	/* sleeping and waking the daemon's drain thread */
	uint32_t sleeping; /* the daemon sets it, who wakes it clears it */
	uint32_t wake;     /* futex word: raised by the producer */
	uint8_t pad5[R3RING_LINE - 8];

	/* daemon's */
	uint64_t untold_count;         /* how often it was noted, stored last: in */
	uint8_t pad6[R3RING_LINE - 8]; /* untold[untold_count & 1] */
	struct pages_untold untold[2];
	uint8_t pad7[64];
};

R3RING_STATIC_ASSERT(sizeof(struct pages_header) == 80, "pages header layout");
R3RING_STATIC_ASSERT(sizeof(struct pages_untold) == 288, "pages untold layout");
R3RING_STATIC_ASSERT(sizeof(struct pages_words) == 12 * R3RING_LINE, "pages words layout");

/* Checked and mapped pages. Sizes and offsets are private copies. */
struct pages {
	int fd;
	uint8_t *base;
	size_t bytes;
	uint32_t slots;
	uint32_t layers;
	struct pages_words *words;
	uint8_t *step_lane;
	uint64_t step_lane_bytes;
	uint8_t *side_lane;
	uint64_t side_lane_bytes;
	uint8_t *bells;
};

/*
 * Makes the pages as a memfd sealed against shrinking, growing and further
 * seals. Lane sizes are powers of two, at least 64 KiB.
 * Returns 0, -EINVAL, or the errno of memfd_create, ftruncate, fallocate, mmap.
 */
int pages_create(struct pages *pages, uint32_t layers, uint64_t step_lane_bytes,
		 uint64_t side_lane_bytes, struct r3ring_error *err);

/*
 * Maps pages that another process made. @fd is taken over only on success.
 * Checks the seals, the size (at most @max_bytes), the header and every
 * offset. Returns 0, -EBADMSG (says what is wrong), -EPROTO (version), or the
 * errno of fcntl, fstat, mmap.
 */
int pages_attach(struct pages *pages, int fd, uint64_t max_bytes, struct r3ring_error *err);

/* Unmaps and closes; a zeroed struct is fine. */
void pages_release(struct pages *pages);

/* The bells of a slot. @slot < slots. */
static inline struct extent_slot *pages_slot(const struct pages *pages, uint32_t slot)
{
	return (struct extent_slot *)(void *)(pages->bells +
					      slot * extent_slot_bytes(pages->layers));
}

static inline struct extent_bell *pages_bell(struct extent_slot *slot, uint32_t layer)
{
	return (struct extent_bell *)(void *)(slot + 1) + layer;
}

/* The producer notes a step that it has begun (dropped or not). */
void pages_note_begun(struct pages *pages, uint64_t step, uint64_t rows);

/* The daemon notes what it has yet to tell; whole even when it is killed meanwhile. */
void pages_note_untold(struct pages *pages, const struct pages_untold *untold);
struct pages_untold pages_read_untold(const struct pages *pages);

/* What was begun; exact even when the producer was killed while noting it. */
struct pages_begun pages_read_begun(const struct pages *pages);

/*
 * Sleep and wake of the drain thread. The producer calls pages_wake() after
 * publishing an entry: a full fence and one load while the daemon is awake, a
 * futex wake otherwise. The daemon calls pages_sleep() when it found nothing; it
 * announces itself, looks again with @idle (returns false if there is work) and
 * sleeps for at most @timeout_ns. No wake-up is lost: the producer's publish,
 * fence, load of `sleeping` pairs with the daemon's store, fence, look.
 */
void pages_wake(struct pages *pages);
void pages_sleep(struct pages *pages, bool (*idle)(void *ctx), void *ctx, uint64_t timeout_ns);

#endif
