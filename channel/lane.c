/* SPDX-License-Identifier: Apache-2.0 */
/* A lane: single-producer single-consumer byte ring of entries. */
#include <errno.h>
#include <string.h>

#include <r3ring/atomic.h>
#include <test_point.h>

#include "channel/lane.h"

#define LANE_ALIGN 64u

static uint64_t entry_bytes(uint64_t payload_bytes)
{
	return (sizeof(struct lane_entry) + payload_bytes + LANE_ALIGN - 1) &
	       ~(uint64_t)(LANE_ALIGN - 1);
}

uint64_t lane_largest(uint64_t lane_bytes)
{
	return lane_bytes / 2 - sizeof(struct lane_entry);
}

/* ---- the producer's end ----------------------------------------------- */

void lane_writer_init(struct lane_writer *lane, uint8_t *base, uint64_t bytes,
		      struct lane_head *head, const uint64_t *tail)
{
	*lane = (struct lane_writer){
		.base = base,
		.bytes = bytes,
		.head = head,
		.tail = tail,
	};
}

uint64_t lane_number(const struct lane_writer *lane)
{
	/* Pairs with the release in lane_submit(). */
	return r3ring_load_acquire_u64(&lane->number);
}

/* Whether @bytes more fit behind the head. The tail is looked at only when the
 * newest one known is not enough; one that goes back or ahead is not believed. */
static bool has_room(struct lane_writer *lane, uint64_t bytes)
{
	uint64_t used = lane->position - lane->seen_tail;
	uint64_t tail;

	if (lane->bytes - used >= bytes)
		return true;

	/* Pairs with the release in lane_consume(): what was consumed has been read. */
	tail = r3ring_load_acquire_u64(lane->tail);
	if (tail % LANE_ALIGN || tail - lane->seen_tail > used)
		return false;
	lane->seen_tail = tail;
	return lane->bytes - (lane->position - tail) >= bytes;
}

static void fill_entry(struct lane_entry *entry, uint64_t bytes, uint16_t type, uint64_t number)
{
	*entry = (struct lane_entry){
		.bytes = (uint32_t)bytes,
		.type = type,
		.number = number,
	};
}

struct lane_entry *lane_reserve(struct lane_writer *lane, uint32_t payload_bytes)
{
	uint64_t bytes = entry_bytes(payload_bytes);
	uint64_t offset = lane->position & (lane->bytes - 1);
	uint64_t rest = lane->bytes - offset;
	uint64_t pad = rest < bytes ? rest : 0;
	struct lane_entry *entry = (void *)(lane->base + offset);

	if (payload_bytes > lane_largest(lane->bytes) || !has_room(lane, pad + bytes))
		return NULL;

	if (pad) {
		fill_entry(entry, pad, LANE_PAD, lane->number + 1);
		entry = (void *)lane->base;
	}
	fill_entry(entry, bytes, LANE_RECORD, lane->number + 1);
	entry->payload_bytes = payload_bytes;
	lane->reserved = pad + bytes;
	return entry;
}

void lane_submit(struct lane_writer *lane)
{
	/* Not taken from the entry: the daemon can write there. */
	lane->position += lane->reserved;
	lane->reserved = 0;

	/* Pairs with the acquire in lane_peek(): the entry is whole. */
	r3ring_store_release_u64(&lane->head->position, lane->position);
	R3RING_TEST_POINT("lane position");
	/* Pairs with the acquire in lane_peek(): the number's entry is seen. */
	r3ring_store_release_u64(&lane->head->number, lane->number + 1);
	R3RING_TEST_POINT("lane number");
	/* Pairs with the acquire in lane_number(): who sees the number and then
	 * submits to the other lane has this entry visible before its own. */
	r3ring_store_release_u64(&lane->number, lane->number + 1);
}

void lane_prefetch(const struct lane_writer *lane, uint64_t bytes)
{
	for (uint64_t byte = 0; byte < bytes; byte += LANE_ALIGN)
		r3ring_prefetch_write(lane->base + ((lane->position + byte) & (lane->bytes - 1)));
}

/* ---- the daemon's end ------------------------------------------------- */

int lane_reader_init(struct lane_reader *lane, const uint8_t *base, uint64_t bytes,
		     const struct lane_head *head, uint64_t *tail)
{
	struct lane_reader made = {
		.base = base,
		.bytes = bytes,
		.head = head,
		.tail = tail,
		.position = r3ring_load_relaxed_u64(tail),
		.unsettled = true,
	};
	struct lane_entry entry;
	int error = 0;

	if (made.position % LANE_ALIGN)
		return -EBADMSG;
	lane_peek(&made, &entry, &error);
	if (error)
		return error;
	*lane = made;
	return 0;
}

int lane_review(const struct lane_writer *lane, struct lane_reader *reader, uint64_t *tail)
{
	*tail = r3ring_load_relaxed_u64(lane->tail);
	return lane_reader_init(reader, lane->base, lane->bytes, lane->head, tail);
}

/* Checks an entry's head against the lane; @available bytes are submitted. */
static bool entry_fits(const struct lane_reader *lane, const struct lane_entry *entry,
		       uint64_t available)
{
	uint64_t rest = lane->bytes - (lane->position & (lane->bytes - 1));

	if (!entry->bytes || entry->bytes % LANE_ALIGN || entry->bytes > available ||
	    entry->bytes > rest)
		return false;
	if (entry->type == LANE_PAD)
		return entry->bytes == rest;
	if (entry->type != LANE_STEP && entry->type != LANE_RECORD)
		return false;
	if (entry->type == LANE_STEP && entry->payload_bytes < sizeof(struct lane_step))
		return false;
	return entry->bytes == entry_bytes(entry->payload_bytes);
}

/* Entries come one by one; the first one says what was taken before it. */
static bool number_fits(struct lane_reader *lane, uint64_t number)
{
	if (lane->unsettled && number)
		lane->taken = number - 1;
	lane->unsettled = false;
	return number && number == lane->taken + 1;
}

const uint8_t *lane_peek(struct lane_reader *lane, struct lane_entry *entry, int *error)
{
	uint64_t head;

	/* Nothing has been seen of a lane that was found empty but what its head says: no
	 * more than is taken, since the load below finds the entry of that number; less only
	 * until its submission is over. Pairs with the release in lane_submit(). */
	if (lane->unsettled)
		lane->taken = r3ring_load_acquire_u64(&lane->head->number);
	/* Pairs with the release in lane_submit(). */
	head = r3ring_load_acquire_u64(&lane->head->position);

	for (;;) {
		uint64_t available = head - lane->position;
		const uint8_t *at = lane->base + (lane->position & (lane->bytes - 1));

		if (available > lane->bytes || available % LANE_ALIGN)
			break;
		if (!available)
			return NULL;

		memcpy(entry, at, sizeof(*entry));
		/* The copy is what is checked and used, whatever becomes of the lane. */
		r3ring_fence_acquire();
		if (!entry_fits(lane, entry, available))
			break;
		if (entry->type == LANE_PAD) {
			lane->position += entry->bytes;
			continue;
		}
		if (!number_fits(lane, entry->number))
			break;
		return at + sizeof(*entry);
	}
	*error = -EBADMSG;
	return NULL;
}

void lane_consume(struct lane_reader *lane, const struct lane_entry *entry)
{
	lane->position += entry->bytes;
	lane->taken = entry->number;
	/* Pairs with the acquire in has_room(). */
	r3ring_store_release_u64(lane->tail, lane->position);
	R3RING_TEST_POINT("lane consumed");
}

const uint8_t *lane_next(struct lane_reader *step, struct lane_reader *side, bool complete,
			 struct lane_reader **from, struct lane_entry *entry, int *error)
{
	struct lane_entry step_entry, side_entry;
	int corrupt = 0;
	const uint8_t *step_payload = lane_peek(step, &step_entry, &corrupt);
	const uint8_t *side_payload = lane_peek(side, &side_entry, &corrupt);

	/* What came before a side entry is visible now, if it was not at first. */
	if (side_payload && !step_payload)
		step_payload = lane_peek(step, &step_entry, &corrupt);

	*from = NULL;
	if (!corrupt && side_payload && side_entry.after <= step->taken) {
		*from = side;
		*entry = side_entry;
		return side_payload;
	}
	if (!corrupt && step_payload &&
	    (step_entry.after <= side->taken || (complete && !side_payload))) {
		*from = step;
		*entry = step_entry;
		return step_payload;
	}
	/* Each waits for the other, or a side entry for a step never submitted. */
	if (corrupt || side_payload)
		*error = -EBADMSG;
	else if (step_payload)
		*from = step;
	return NULL;
}
