/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room in the ring for whole steps, where a channel drops new steps instead of
 * demoting lossless readers; and the account of those it dropped, which is told as
 * one LOST record when there is room again.
 */
#include "capture_daemon/drain_copy.h"

#define LOST_BYTES 1024u /* more than a LOST record takes */

/* What the step takes at most, with what is skipped at the arena's end. */
static uint64_t step_bytes(const struct drain *drain, const struct r3ring_record *record)
{
	const struct extent_geometry *g = &drain->geometry;
	const struct r3ring_step_record *head = &record->u.step.head;
	uint32_t rows = head->row_end - head->row_begin;
	uint64_t end = sizeof(struct r3ring_step_end_record) +
		       (uint64_t)g->layers * sizeof(struct r3ring_missing_layer);

	return extent_align(r3ring_record_size(record)) + extent_bytes(g, rows) +
	       extent_align(end) + r3ring_segment_max_record(drain->publisher.segment) + LOST_BYTES;
}

static uint64_t step_records(const struct drain *drain, const struct r3ring_record *record)
{
	const struct r3ring_step_record *head = &record->u.step.head;
	uint32_t rows = head->row_end - head->row_begin;
	uint64_t parts = extent_parts(&drain->geometry, rows);
	uint64_t heads = 1 + r3ring_record_size(record) / drain->publisher.scratch_bytes;

	/* ROWS are no more than the parts of one layer. */
	return heads + parts * (drain->geometry.layers + 1) + 2;
}

static bool has_room(const struct drain *drain, uint64_t records, uint64_t bytes)
{
	const struct gate_front front = writer_front(drain->publisher.writer);

	return gate_has_room(drain->publisher.stall.gate, &front, records, bytes);
}

bool drain_finds_room(struct drain *drain, const struct r3ring_record *step)
{
	struct stall *stall = &drain->publisher.stall;
	uint64_t records = step_records(drain, step), bytes = step_bytes(drain, step);
	struct stall_wait wait = {0};
	bool room;

	if (!stall->policy.drop)
		return true;
	while (!(room = has_room(drain, records, bytes)) && !drain->dropping) {
		if (!stall_nap(stall, drain->publisher.writer, &wait))
			break;
	}
	drain->dropping = !room;
	return room;
}

void drain_note_dropped(struct drain *drain, const struct r3ring_step_record *head, uint32_t rows)
{
	struct r3ring_lost_record *lost = &drain->ring_full;

	if (!lost->steps)
		lost->from_step = head->step;
	lost->to_step = head->step;
	lost->steps++;
	lost->rows += rows;
	lost->layer_rows += (uint64_t)rows * drain->geometry.layers;
	drain->publisher.totals.steps++;
}

void drain_say_dropped(struct drain *drain, bool now)
{
	struct r3ring_lost_record lost = drain->ring_full;

	if (!lost.steps || (!now && !has_room(drain, 1, LOST_BYTES)))
		return;
	lost.cause = R3RING_CAUSE_RING_FULL;
	lost.spans_unknown = 1;
	drain_check(drain, publish_lost(&drain->publisher, &lost), "LOST");
	drain->ring_full = (struct r3ring_lost_record){0};
	drain_note_told(drain);
}
