/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is kept for lossless readers that have yet to come: those of a dead writer, and
 * those that still read the generation before. The ring itself says from where on, so
 * that of any number of writers that die one after the other each keeps what the first did.
 */
#include <r3ring/atomic.h>
#include <test_point.h>

#include "ring/gate_members.h"
#include "ring/internal.h"

uint64_t gate_record_position(const struct gate *gate, uint64_t seq, const struct gate_front *front)
{
	if (seq >= front->next_seq)
		return front->position;
	return r3ring_load_relaxed_u64(&ring_desc(gate->segment, seq)->pos);
}

/* The oldest record in front of which no more than @limit lies. */
static uint64_t oldest_within(const struct gate *gate, struct gate_share limit,
			      const struct gate_front *front)
{
	uint64_t low = gate->segment->header.first_seq, high = front->commit_seq;

	if (front->next_seq - low > limit.records)
		low = front->next_seq - limit.records;
	while (low < high) {
		uint64_t middle = low + (high - low) / 2;

		if (front->position - gate_record_position(gate, middle, front) <= limit.bytes)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

struct gate_share gate_share(const struct gate *gate, uint32_t sixteenths)
{
	return (struct gate_share){gate->segment->depth / 16 * sixteenths,
				   gate->segment->arena_bytes / 16 * sixteenths};
}

enum r3ring_keeps gate_keeps(const struct gate *gate)
{
	uint32_t keeps = r3ring_load_relaxed_u32(&gate->segment->lines->keeps);

	return keeps <= R3RING_KEEPS_FORMER ? (enum r3ring_keeps)keeps : R3RING_KEEPS_NONE;
}

/* What the words say, where that can be. */
static bool find_kept(const struct gate *gate, const struct gate_front *front, uint64_t *from)
{
	const struct gate_share most = gate_share(gate, HELD_SIXTEENTHS);
	uint64_t seq = r3ring_load_relaxed_u64(&gate->segment->lines->kept_from);

	if (gate_keeps(gate) == R3RING_KEEPS_NONE || seq < gate->segment->header.first_seq ||
	    seq > front->commit_seq || front->next_seq - seq > most.records ||
	    front->position - gate_record_position(gate, seq, front) > most.bytes)
		return false;
	*from = seq;
	return true;
}

void gate_keep(struct gate *gate, const struct gate_front *front, enum r3ring_keeps whom)
{
	struct r3ring_writer_lines *lines = gate->segment->lines;
	uint64_t from;

	if (!find_kept(gate, front, &from)) {
		from = oldest_within(gate, gate_share(gate, KEPT_SIXTEENTHS), front);
		r3ring_store_relaxed_u64(&lines->kept_from, from);
		R3RING_TEST_POINT("gate keeps from");
	}
	/* Release, for the order of the stores in which a kill leaves them; the next
	 * writer starts when this one is gone. */
	r3ring_store_release_u32(&lines->keeps, whom);
	R3RING_TEST_POINT("gate keeps");
}

static void keep_no_more(struct gate *gate)
{
	r3ring_store_relaxed_u32(&gate->segment->lines->keeps, R3RING_KEEPS_NONE);
	R3RING_TEST_POINT("gate let go");
}

uint64_t gate_begin_of(const struct gate *gate, const struct member *member,
		       const struct gate_front *front)
{
	const struct gate_share limit = {member->limit_records, member->terms.limit_bytes};
	uint64_t from = oldest_within(gate, limit, front), kept;

	return find_kept(gate, front, &kept) && kept < from ? kept : from;
}

int gate_hold(struct gate *gate, const struct gate_front *front)
{
	const struct gate_terms terms = {.lossless = true, .stall_ns = UINT64_MAX};
	int number = gate_add(gate, &gate->held, &terms);

	if (number >= 0)
		gate_admit(gate, front);
	return number;
}

void gate_let_go(struct gate *gate, int number)
{
	keep_no_more(gate);
	if (number >= 0)
		gate_remove(gate, number);
}
