/* SPDX-License-Identifier: Apache-2.0 */
/* The gate from inside: its members, and what is kept of each. */
#ifndef RING_GATE_MEMBERS_H
#define RING_GATE_MEMBERS_H

#include <pthread.h>

#include "ring/gate.h"

struct member {
	struct r3ring_reader_page *page; /* NULL: the place is free */
	struct gate_terms terms;
	enum r3ring_reader_state state;
	bool lossless;
	uint64_t limit_records;
	uint64_t cursor;                     /* believed */
	uint64_t position;                   /* of the record at the cursor */
	uint32_t poked;                      /* `armed` as last answered */
	uint64_t mark_cursor, mark_position; /* where its stall time began to count */
	uint64_t stalled_ns;
	uint64_t demoted_from, demoted_to;
};

struct gate {
	const struct r3ring_segment *segment;
	bool reserve;
	pthread_mutex_t lock; /* members, and their pages being mapped */
	struct member members[GATE_MEMBERS_MAX];
	struct r3ring_reader_page held; /* of the member that stands for absent readers */
	uint64_t wakes;
	uint32_t changes; /* raised when a member comes or goes */
	uint32_t count;   /* members; stored with the lock held */

	/* the writer's own */
	uint32_t seen;                    /* `changes` at the last look */
	uint64_t free_seq, free_position; /* up to here it may go without looking */
	uint64_t want_seq, want_position; /* what was last refused */
};

/* Of the ring: the most that a reader can have left unread while the writer lives (with the
 * reserve), and how far one goes that keeps as much for readers which have yet to come. */
#define KEPT_SIXTEENTHS 14
#define HELD_SIXTEENTHS 15

struct gate_share {
	uint64_t records;
	uint64_t bytes;
};

/* So many sixteenths of the ring. */
struct gate_share gate_share(const struct gate *gate, uint32_t sixteenths);

/* Only of a record that lies in the ring: nobody but the writer stores there. */
uint64_t gate_record_position(const struct gate *gate, uint64_t seq,
			      const struct gate_front *front);

/* From which record on is kept for a lossless reader that comes now. */
uint64_t gate_begin_of(const struct gate *gate, const struct member *member,
		       const struct gate_front *front);

static inline uint64_t between(uint64_t value, uint64_t least, uint64_t most)
{
	if (value < least)
		return least;
	return value > most ? most : value;
}

#endif
