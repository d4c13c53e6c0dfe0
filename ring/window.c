/* SPDX-License-Identifier: Apache-2.0 */
/* How far back a ring can be read at this moment, and where a reader goes on in it. */
#include <errno.h>

#include <r3ring/atomic.h>

#include "ring/internal.h"

bool window_units_before(const struct r3ring_segment *segment, uint64_t seq, uint64_t *units)
{
	struct r3ring_desc before;

	if (seq == segment->header.first_seq) {
		*units = 0;
		return true;
	}
	if (desc_copy(segment, seq - 1, &before) != DESC_INTACT)
		return false;
	*units = before.units;
	return true;
}

/* Positions grow with sequences, so that what holds for a record holds for all
 * newer ones; inline records are judged by their position too. */
static bool readable(const struct r3ring_segment *segment, uint64_t seq, uint64_t *units_before)
{
	struct r3ring_desc desc;

	return desc_copy(segment, seq, &desc) == DESC_INTACT &&
	       desc_payload_kept(segment, desc.pos) &&
	       window_units_before(segment, seq, units_before);
}

static uint64_t search_begin(const struct r3ring_segment *segment, uint64_t from, uint64_t tail)
{
	uint64_t begin = segment->header.first_seq;

	if (begin < from)
		begin = from;
	if (tail >= segment->depth && begin < tail - segment->depth + 1)
		begin = tail - segment->depth + 1;
	return begin;
}

/*
 * Whether the writer announced more than a ring holds beyond its newest record, which no writer
 * does: then every record would seem to be overwritten.
 */
static bool intent_lies(const struct r3ring_segment *segment, uint64_t tail)
{
	struct r3ring_desc last;
	uint64_t intent;

	if (tail < segment->header.first_seq || desc_copy(segment, tail, &last) != DESC_INTACT)
		return false;
	intent = r3ring_load_relaxed_u64(&segment->lines->intent_pos);
	if (intent < desc_end(&last) || intent - desc_end(&last) <= 2 * segment->arena_bytes)
		return false;
	/* While the tail stood still no more than the arena can have been announced. */
	r3ring_fence_acquire();
	return tail_newest(segment) == tail;
}

/* The oldest that can be read in [@low, @high); @high when none. @units: of what is in front of it. */
static uint64_t bisect(const struct r3ring_segment *segment, uint64_t low, uint64_t high,
		       uint64_t *units)
{
	while (low < high) {
		uint64_t middle = low + (high - low) / 2;
		uint64_t before;

		if (readable(segment, middle, &before)) {
			high = middle;
			*units = before;
		} else {
			low = middle + 1;
		}
	}
	return high;
}

/* One from @begin on that can be read though @oldest seemed to be the oldest, looked for in growing
 * steps: a damaged slot led the search beyond it. @oldest where there is none, as in each ring that
 * is whole. */
static uint64_t misled(const struct r3ring_segment *segment, uint64_t begin, uint64_t oldest,
		       uint64_t *units)
{
	for (uint64_t back = 2; begin < oldest; back *= 2) {
		uint64_t seq = oldest - begin > back ? oldest - back : begin;
		uint64_t before;

		if (readable(segment, seq, &before)) {
			*units = before;
			return seq;
		}
		if (seq == begin)
			break;
	}
	return oldest;
}

int window_find(const struct r3ring_segment *segment, uint64_t from, struct window *window)
{
	uint64_t tail = tail_newest(segment);
	uint64_t begin = search_begin(segment, from, tail);
	uint64_t oldest, next = tail + 1, units = 0;

	if (intent_lies(segment, tail))
		return -EBADMSG;
	do {
		oldest = bisect(segment, begin, next, &units);
		next = misled(segment, begin, oldest, &units);
	} while (next < oldest);
	if (oldest > tail && !window_units_before(segment, tail + 1, &units))
		return -EAGAIN;
	window->oldest = oldest;
	window->tail = tail;
	window->units_before = units;
	return 0;
}

/* What a writer leaves in no slot of a record that it has published: neither that record nor a newer one. */
static bool is_damaged(const struct r3ring_segment *segment, uint64_t seq)
{
	struct r3ring_desc desc;
	enum desc_state state = desc_copy(segment, seq, &desc);

	return state == DESC_CORRUPT || state == DESC_NOT_YET;
}

uint64_t window_begin(const struct r3ring_segment *segment, const struct window *window)
{
	uint64_t begin = search_begin(segment, segment->header.first_seq, window->tail);
	uint64_t seq = window->oldest;

	/* Behind a damaged one the next cannot be the oldest either: what it counts from is gone. */
	if (seq >= begin + 2 && is_damaged(segment, seq - 2))
		seq -= 2;
	while (seq > begin && is_damaged(segment, seq - 1))
		seq--;
	return seq;
}

bool window_flagged_record(const struct r3ring_segment *segment, uint64_t seq, uint16_t flag,
			   const struct window *window, uint64_t *total)
{
	struct r3ring_desc desc;

	if (seq < window->oldest || seq > window->tail)
		return false;
	if (desc_copy(segment, seq, &desc) != DESC_INTACT || !(desc.flags & flag) ||
	    !desc_payload_kept(segment, desc.pos))
		return false;
	return window_units_before(segment, seq, total);
}

bool window_newest_boundary(const struct r3ring_segment *segment, const struct window *window,
			    uint64_t *seq, uint64_t *total)
{
	/* Up to the window's tail the record is there, with an acquire of its own. */
	*seq = r3ring_load_relaxed_u64(&segment->lines->boundary_seq);
	if (window_flagged_record(segment, *seq, R3RING_DESC_BOUNDARY, window, total))
		return true;
	*seq = window->tail + 1;
	return window_units_before(segment, *seq, total);
}

bool window_safe_resume(const struct r3ring_segment *segment, const struct window *window,
			uint64_t *seq, uint64_t *total)
{
	*seq = window->oldest + (window->tail + 1 - window->oldest) / 8;
	return window_units_before(segment, *seq, total);
}

uint64_t r3ring_segment_tail(const struct r3ring_segment *segment)
{
	return tail_newest(segment);
}

uint64_t r3ring_segment_oldest(const struct r3ring_segment *segment)
{
	struct window window;

	if (window_find(segment, segment->header.first_seq, &window))
		return r3ring_segment_tail(segment) + 1;
	return window.oldest;
}

uint64_t r3ring_segment_heartbeat(const struct r3ring_segment *segment)
{
	return r3ring_load_relaxed_u64(&segment->lines->heartbeat_ns);
}

uint64_t r3ring_segment_epoch(const struct r3ring_segment *segment)
{
	return r3ring_load_relaxed_u64(&segment->lines->writer_epoch);
}
