/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room in the ring for whole steps, where a channel drops new steps instead of
 * demoting lossless readers; and the account of what was lost meanwhile, told in one
 * LOST record for each cause when there is room again.
 */
#include "capture_daemon/drain_copy.h"

#define LOST_BYTES 128u /* more than a LOST record takes */

/* What the step takes at most, with what is skipped at the arena's end. */
static uint64_t step_bytes(const struct drain *drain, const struct r3ring_record *record)
{
	const struct extent_geometry *g = &drain->geometry;
	const struct r3ring_step_record *head = &record->u.step.head;
	uint32_t rows = head->row_end - head->row_begin;
	uint64_t end = sizeof(struct r3ring_step_end_record) +
		       (uint64_t)g->layers * sizeof(struct r3ring_missing_layer);

	return extent_align(r3ring_record_size(record)) + extent_bytes(g, rows) +
	       extent_align(end) + r3ring_segment_max_record(drain->publisher.segment) +
	       R3RING_CAUSE_COUNT * LOST_BYTES;
}

static uint64_t step_records(const struct drain *drain, const struct r3ring_record *record)
{
	const struct r3ring_step_record *head = &record->u.step.head;
	uint32_t rows = head->row_end - head->row_begin;
	uint64_t parts = extent_parts(&drain->geometry, rows);
	uint64_t heads = 1 + r3ring_record_size(record) / drain->publisher.scratch_bytes;

	/* ROWS are no more than the parts of one layer. */
	return heads + parts * (drain->geometry.layers + 1) + 1 + R3RING_CAUSE_COUNT;
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

void drain_note_untold(struct drain *drain, const struct r3ring_lost_record *lost)
{
	struct r3ring_lost_record *sum = &drain->untold[lost->cause];

	if (!sum->steps)
		sum->from_step = lost->from_step;
	sum->to_step = lost->to_step;
	sum->steps += lost->steps;
	sum->rows += lost->rows;
	sum->layer_rows += lost->layer_rows;
	sum->cause = lost->cause;
	sum->spans_unknown = 1;
	drain->untold_steps += lost->steps;
}

void drain_say_untold(struct drain *drain, bool now)
{
	if (!drain->untold_steps ||
	    (!now && !has_room(drain, R3RING_CAUSE_COUNT, R3RING_CAUSE_COUNT * LOST_BYTES)))
		return;
	for (uint32_t cause = 0; cause < R3RING_CAUSE_COUNT; cause++) {
		struct r3ring_lost_record *lost = &drain->untold[cause];

		if (lost->steps)
			drain_check(drain, publish_lost(&drain->publisher, lost), "LOST");
		*lost = (struct r3ring_lost_record){0};
	}
	drain->untold_steps = 0;
	drain_note_told(drain);
}
