/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The gate. A lossless reader at cursor c holds the writer back so that
 *
 *	end position <= position of record c + its limit in bytes
 *	end sequence <= c + its limit in records
 *
 * The limits are at most 3/4 of the ring, so that what the writer marks ahead of need
 * (see writer.c) never reaches record c.
 */
#include <errno.h>
#include <stdlib.h>

#include <r3ring/atomic.h>
#include <test_point.h>

#include "ring/gate_members.h"
#include "ring/internal.h"

/* A reader makes progress when it frees this part of its limit. */
#define PROGRESS_SHARE 8

/* ---- making ------------------------------------------------------------- */

struct gate *gate_create(const struct r3ring_segment *segment, bool reserve)
{
	struct gate *gate = calloc(1, sizeof(*gate));

	if (!gate)
		return NULL;
	gate->segment = segment;
	gate->reserve = reserve;
	gate->free_seq = UINT64_MAX;
	gate->free_position = UINT64_MAX;
	pthread_mutex_init(&gate->lock, NULL);
	return gate;
}

void gate_destroy(struct gate *gate)
{
	if (!gate)
		return;
	pthread_mutex_destroy(&gate->lock);
	free(gate);
}

/* ---- members ------------------------------------------------------------ */

/* At least a quarter: so much may one record take, with what is skipped for it. */
static void grant(const struct gate *gate, struct member *member)
{
	uint64_t arena = gate->segment->arena_bytes, depth = gate->segment->depth;
	uint64_t asked = member->terms.limit_bytes ? member->terms.limit_bytes : arena;
	uint32_t arena_log2 = gate->segment->header.regions[R3RING_REGION_ARENA].count_log2;

	member->terms.limit_bytes = between(asked, arena / 4, arena / 4 * 3);
	/* The same share of the descriptors, in sixteenths. */
	member->limit_records = depth / 16 * (member->terms.limit_bytes * 16 >> arena_log2);
	member->page->lossless = member->lossless;
	member->page->limit_bytes = member->terms.limit_bytes;
	member->page->stall_ns = member->terms.stall_ns;
}

static int free_place(const struct gate *gate)
{
	for (int i = 0; i < GATE_MEMBERS_MAX; i++) {
		if (!gate->members[i].page)
			return i;
	}
	return -ENOSPC;
}

static void note_change(struct gate *gate, uint32_t count)
{
	r3ring_store_relaxed_u32(&gate->count, count);
	r3ring_fetch_add_u32(&gate->changes, 1);
}

int gate_add(struct gate *gate, struct r3ring_reader_page *page, const struct gate_terms *terms)
{
	int number;

	pthread_mutex_lock(&gate->lock);
	number = free_place(gate);
	if (number >= 0) {
		struct member *member = &gate->members[number];

		*member =
			(struct member){.page = page, .terms = *terms, .lossless = terms->lossless};
		grant(gate, member);
		note_change(gate, gate->count + 1);
	}
	pthread_mutex_unlock(&gate->lock);
	return number;
}

void gate_remove(struct gate *gate, int number)
{
	pthread_mutex_lock(&gate->lock);
	gate->members[number].page = NULL;
	note_change(gate, gate->count - 1);
	pthread_mutex_unlock(&gate->lock);
}

/* ---- admitting ---------------------------------------------------------- */

static void note_progress(struct member *member)
{
	member->mark_cursor = member->cursor;
	member->mark_position = member->position;
	member->stalled_ns = 0;
}

static void admit(const struct gate *gate, struct member *member, const struct gate_front *front)
{
	if (member->lossless) {
		member->cursor = gate_begin_of(gate, member, front);
		member->position = gate_record_position(gate, member->cursor, front);
		note_progress(member);
	}
	member->state = R3RING_READER_ADMITTED;
	r3ring_store_relaxed_u64(&member->page->held_from, member->cursor);
	/* Pairs with the acquire of the reader that waits to be admitted. */
	r3ring_store_release_u32(&member->page->state, R3RING_READER_ADMITTED);
	R3RING_TEST_POINT("gate admitted");
}

static bool something_changed(const struct gate *gate)
{
	/* Relaxed: what has changed is looked at with the lock held. */
	return r3ring_load_relaxed_u32(&gate->changes) != gate->seen;
}

bool gate_has_new(const struct gate *gate)
{
	return something_changed(gate);
}

/* With the lock held. */
static void admit_new(struct gate *gate, const struct gate_front *front)
{
	for (int i = 0; i < GATE_MEMBERS_MAX; i++) {
		struct member *member = &gate->members[i];

		if (member->page && member->state == R3RING_READER_ADMITTING)
			admit(gate, member, front);
	}
	gate->seen = r3ring_load_relaxed_u32(&gate->changes);
	gate->free_seq = 0;
	gate->free_position = 0;
}

void gate_admit(struct gate *gate, const struct gate_front *front)
{
	if (!something_changed(gate))
		return;
	pthread_mutex_lock(&gate->lock);
	admit_new(gate, front);
	pthread_mutex_unlock(&gate->lock);
}

/* ---- the gate ----------------------------------------------------------- */

/* How far members let the writer go. */
struct horizon {
	uint64_t seq;
	uint64_t position;
};

/* Takes note of the member's cursor, within what can be true. */
static void follow(const struct gate *gate, struct member *member, const struct gate_front *front)
{
	/* Pairs with the release of `cursor` by the reader: its last use of what lies
	 * before comes before any store, or copy of a device, into that space. */
	uint64_t cursor = r3ring_load_acquire_u64(&member->page->cursor);

	member->cursor = between(cursor, member->cursor, front->commit_seq);
	member->position = gate_record_position(gate, member->cursor, front);
	if (member->cursor == front->commit_seq ||
	    member->cursor - member->mark_cursor >= member->limit_records / PROGRESS_SHARE ||
	    member->position - member->mark_position >= member->terms.limit_bytes / PROGRESS_SHARE)
		note_progress(member);
}

static struct horizon granted(const struct member *member)
{
	return (struct horizon){member->cursor + member->limit_records,
				member->position + member->terms.limit_bytes};
}

/* More with the reserve, and in front of readers that have yet to come back. */
static struct horizon hard_end(const struct gate *gate, const struct member *member)
{
	bool absent = member->page == &gate->held;
	struct gate_share most = gate_share(gate, absent ? HELD_SIXTEENTHS : KEPT_SIXTEENTHS);

	if (!gate->reserve && !absent)
		return granted(member);
	return (struct horizon){member->cursor + most.records, member->position + most.bytes};
}

static bool holds_back(const struct member *member)
{
	return member->page && member->lossless && member->state == R3RING_READER_ADMITTED;
}

/* Looks at all pages. With the lock held. */
static struct horizon look(struct gate *gate, const struct gate_front *front)
{
	struct horizon nearest = {UINT64_MAX, UINT64_MAX};

	for (int i = 0; i < GATE_MEMBERS_MAX; i++) {
		struct member *member = &gate->members[i];
		struct horizon end;

		if (!holds_back(member))
			continue;
		follow(gate, member, front);
		end = hard_end(gate, member);
		if (end.seq < nearest.seq)
			nearest.seq = end.seq;
		if (end.position < nearest.position)
			nearest.position = end.position;
	}
	return nearest;
}

bool gate_admits(struct gate *gate, const struct gate_front *front, uint64_t seq_end,
		 uint64_t pos_end)
{
	struct horizon horizon;

	if (!something_changed(gate) && seq_end <= gate->free_seq && pos_end <= gate->free_position)
		return true;
	pthread_mutex_lock(&gate->lock);
	if (something_changed(gate))
		admit_new(gate, front);
	horizon = look(gate, front);
	pthread_mutex_unlock(&gate->lock);
	gate->free_seq = horizon.seq;
	gate->free_position = horizon.position;
	gate->want_seq = seq_end;
	gate->want_position = pos_end;
	return seq_end <= gate->free_seq && pos_end <= gate->free_position;
}

/* Whether all that may be asked for is free in front of this member. */
static bool has_room(const struct gate *gate, const struct member *member,
		     const struct gate_front *front, uint64_t records, uint64_t bytes)
{
	struct horizon end = granted(member);

	if (member->page == &gate->held)
		end = hard_end(gate, member);
	return front->next_seq == member->cursor ||
	       (front->next_seq + records <= end.seq && front->position + bytes <= end.position);
}

bool gate_is_behind(struct gate *gate, const struct gate_front *front)
{
	const struct gate_share most = gate_share(gate, KEPT_SIXTEENTHS);
	bool behind = false;

	pthread_mutex_lock(&gate->lock);
	for (int i = 0; !behind && i < GATE_MEMBERS_MAX; i++) {
		struct member *member = &gate->members[i];

		if (!holds_back(member) || member->page == &gate->held)
			continue;
		follow(gate, member, front);
		behind = front->next_seq - member->cursor > most.records ||
			 front->position - member->position > most.bytes;
	}
	pthread_mutex_unlock(&gate->lock);
	return behind;
}

bool gate_has_room(struct gate *gate, const struct gate_front *front, uint64_t records,
		   uint64_t bytes)
{
	bool room = true;

	pthread_mutex_lock(&gate->lock);
	if (something_changed(gate))
		admit_new(gate, front);
	for (int i = 0; room && i < GATE_MEMBERS_MAX; i++) {
		struct member *member = &gate->members[i];

		if (!holds_back(member))
			continue;
		follow(gate, member, front);
		room = has_room(gate, member, front, records, bytes);
	}
	pthread_mutex_unlock(&gate->lock);
	return room;
}

/* ---- demoting ----------------------------------------------------------- */

static void demote(struct member *member, const struct gate_front *front)
{
	member->lossless = false;
	member->state = R3RING_READER_DEMOTED;
	member->demoted_from = member->cursor;
	member->demoted_to = front->commit_seq - 1;
	r3ring_store_relaxed_u64(&member->page->demoted_from, member->demoted_from);
	r3ring_store_relaxed_u64(&member->page->demoted_to, member->demoted_to);
	r3ring_store_relaxed_u32(&member->page->lossless, 0);
	/* Pairs with the acquire of `state` by the reader. */
	r3ring_store_release_u32(&member->page->state, R3RING_READER_DEMOTED);
	R3RING_TEST_POINT("gate demoted");
}

/* Whether the member forbids what was last refused. */
static bool in_the_way(const struct gate *gate, const struct member *member)
{
	struct horizon end = hard_end(gate, member);

	return gate->want_seq > end.seq || gate->want_position > end.position;
}

unsigned int gate_demote(struct gate *gate, const struct gate_front *front, uint64_t waited_ns,
			 bool all)
{
	unsigned int count = 0;

	pthread_mutex_lock(&gate->lock);
	for (int i = 0; i < GATE_MEMBERS_MAX; i++) {
		struct member *member = &gate->members[i];

		if (!holds_back(member))
			continue;
		follow(gate, member, front);
		if (!in_the_way(gate, member))
			continue;
		member->stalled_ns += waited_ns;
		if (!all && member->stalled_ns < member->terms.stall_ns)
			continue;
		demote(member, front);
		count += member->page != &gate->held;
	}
	pthread_mutex_unlock(&gate->lock);
	gate->free_seq = 0;
	gate->free_position = 0;
	return count;
}

void gate_set_reserve(struct gate *gate, bool reserve)
{
	pthread_mutex_lock(&gate->lock);
	gate->reserve = reserve;
	pthread_mutex_unlock(&gate->lock);
	gate->free_seq = 0;
	gate->free_position = 0;
}
