/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A lane: single-producer single-consumer byte ring of entries in the shared
 * pages. A channel has two, so that two threads of the producer need no lock:
 * steps go through one, requests and other announcements through the other. Each
 * entry says how many entries of the other lane came before it, which gives the
 * daemon back the one order in which they were submitted.
 */
#ifndef CHANNEL_LANE_H
#define CHANNEL_LANE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <r3ring/abi.h>

/* The producer's end of a lane as the daemon sees it. */
struct lane_head {
	uint64_t number;   /* of the newest entry submitted; stored last, with release */
	uint64_t position; /* bytes submitted ever; stored before it, with release */
};

enum lane_entry_type {
	LANE_PAD = 1,  /* unused room before the wrap */
	LANE_STEP = 2, /* struct lane_step, then a STEP payload */
	/*
	 * A payload of type record_type: REQUEST, SPANS, EPLB, KEY_COPY; or SCHEMA,
	 * which says again what is bound and since when. Of that the daemon takes
	 * each layer's `bound` and bound_since_ns, nothing else.
	 */
	LANE_RECORD = 3,
};

struct lane_entry {
	uint32_t bytes; /* whole entry, a multiple of 64, this head included */
	uint16_t type;  /* enum lane_entry_type */
	uint16_t record_type;
	uint32_t payload_bytes;
	uint32_t reserved0;
	uint64_t number;       /* 1, 2, ... within its lane; PAD: the next entry's */
	uint64_t after;        /* number of the other lane's newest entry before this one */
	uint64_t reserved1[4]; /* the payload begins on a line of its own */
};

/*
 * Steps that found no entry, so that only the gap in the numbers tells of them:
 * how many of them for these causes. The others found the queue full.
 */
struct lane_gap {
	uint32_t restart_steps; /* there was no daemon */
	uint32_t too_big_steps;
	uint64_t restart_rows; /* valid rows of this rank in them */
	uint64_t too_big_rows;
};

/* In the `cause` of a dropped step: it had spans, which nobody knows. */
#define LANE_CAUSE_MAP_UNKNOWN (1u << 31)

/* What the daemon needs to know of a step besides its STEP record. */
struct lane_step {
	uint64_t rows_before;   /* valid rows of this rank begun before this step */
	uint64_t extent_offset; /* EXTENT_NONE: dropped */
	uint32_t slot;
	uint32_t cause;      /* enum r3ring_cause of the drop, and the flag above; 0 otherwise */
	uint64_t extent_end; /* buffer position behind the extent, for accounts */
	uint64_t extents;    /* taken so far, this one included: extents_released, once it is */
	struct lane_gap gap; /* since the entry before */
};

R3RING_STATIC_ASSERT(sizeof(struct lane_gap) == 24, "lane gap layout");
R3RING_STATIC_ASSERT(sizeof(struct lane_entry) == 64, "lane entry layout");
R3RING_STATIC_ASSERT(sizeof(struct lane_step) == 64, "lane step layout");

/* The producer's end. Private to one thread at a time. */
struct lane_writer {
	uint8_t *base;
	uint64_t bytes;
	struct lane_head *head; /* shared: stored here */
	const uint64_t *tail;   /* shared: the daemon's, hostile */
	uint64_t position;      /* private copies of the head */
	uint64_t number;
	uint64_t seen_tail; /* newest believable tail */
	uint64_t reserved;  /* bytes of the newest reservation, padding included */
};

/* The daemon's end. Private to one thread. */
struct lane_reader {
	const uint8_t *base;
	uint64_t bytes;
	const struct lane_head *head; /* shared: the producer's, hostile */
	uint64_t *tail;               /* shared: stored with release here */
	uint64_t position;
	uint64_t taken; /* number of the newest entry taken */
	bool unsettled; /* `taken` is what the head says: no entry was seen yet */
};

void lane_writer_init(struct lane_writer *lane, uint8_t *base, uint64_t bytes,
		      struct lane_head *head, const uint64_t *tail);

/*
 * Takes room for an entry with a payload of @payload_bytes. Head fields are
 * filled in for LANE_RECORD but for `record_type` and `after`; for a step the
 * caller also sets `type`.
 * Returns the entry (its payload follows it), or NULL: no room now, or, when
 * @payload_bytes is more than lane_largest(), never.
 * lane_submit() publishes it; a second lane_reserve() without it starts over.
 */
struct lane_entry *lane_reserve(struct lane_writer *lane, uint32_t payload_bytes);
void lane_submit(struct lane_writer *lane);

/*
 * A reader of what was submitted and not consumed, for the producer itself: it
 * consumes nothing of the daemon's.
 *
 * @tail: receives where it is; lives as long as @reader.
 *
 * Returns 0, or -EBADMSG when the daemon's tail is not believable.
 */
int lane_review(const struct lane_writer *lane, struct lane_reader *reader, uint64_t *tail);

/* Asks for the lines of the next @bytes, which the daemon's core has read last, so
 * that they are here when the next entry is written. Only a hint. */
void lane_prefetch(const struct lane_writer *lane, uint64_t bytes);

/* Number of the newest entry submitted, for the `after` of the other lane's next
 * entry. Any thread. */
uint64_t lane_number(const struct lane_writer *lane);

/* Largest payload a lane takes: half of it, less the head. */
uint64_t lane_largest(uint64_t lane_bytes);

/*
 * Begins to take entries where @tail says that a former daemon stopped (0 for a
 * new lane). `taken` comes from the next entry's number, or, as long as the lane is
 * empty, from the head. Returns 0, or -EBADMSG when tail and head contradict
 * each other.
 */
int lane_reader_init(struct lane_reader *lane, const uint8_t *base, uint64_t bytes,
		     const struct lane_head *head, uint64_t *tail);

/*
 * The next entry, in place; its head is copied to @entry and checked against
 * the lane. The payload may still be changed by a hostile producer: copy, then
 * check.
 * Returns the payload, NULL when there is none; -EBADMSG through @error when the
 * lane is corrupt (the producer must be cut off).
 */
const uint8_t *lane_peek(struct lane_reader *lane, struct lane_entry *entry, int *error);

/* Gives the entry of the last lane_peek() back. */
void lane_consume(struct lane_reader *lane, const struct lane_entry *entry);

/*
 * The next entry of both lanes in the order of their submission, as lane_peek().
 *
 * @complete: nothing will be submitted any more: a step is then given also when
 *            what was announced before it never came.
 * @from:     receives the lane it is in, for lane_consume(). Where NULL is
 *            returned: the step lane when its next entry waits for an
 *            announcement that the producer still keeps (the side lane was
 *            full), else NULL.
 *
 * Returns its payload, NULL when there is none; -EBADMSG through @error when a
 * lane is corrupt or their order is impossible.
 */
const uint8_t *lane_next(struct lane_reader *step, struct lane_reader *side, bool complete,
			 struct lane_reader **from, struct lane_entry *entry, int *error);

#endif
