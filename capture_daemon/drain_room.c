/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room in the ring for whole steps, where a channel drops new steps instead of
 * demoting lossless readers; and the account of what was lost meanwhile, told in one
 * LOST record for each cause when there is room again.
 */
#include <string.h>

#include <test_point.h>

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

	if (!stall->policy.drop) {
		drain->dropping = false;
		return true;
	}
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

	if (!drain->untold_steps)
		drain->untold_from = lost->from_step;
	sum->steps += lost->steps;
	sum->rows += lost->rows;
	drain->untold_steps += lost->steps;
}

/* A dead daemon may have begun to tell: what it told is in the totals already. */
void drain_add_untold(const struct drain *drain, struct r3ring_totals *totals)
{
	uint32_t told = drain->said.gap_records;

	totals->steps += drain->untold_steps;
	for (uint32_t cause = 0; cause < R3RING_CAUSE_COUNT; cause++) {
		if (drain->untold[cause].steps && told) {
			told--;
			continue;
		}
		totals->lost_steps[cause] += drain->untold[cause].steps;
		totals->lost_rows[cause] += drain->untold[cause].rows;
	}
}

void drain_store_untold(struct drain *drain)
{
	struct pages_untold untold = {
		.from_step = drain->untold_from,
		.to_step = drain->last_step,
		.rows = drain->rows_seen,
	};

	for (uint32_t cause = 0; cause < R3RING_CAUSE_COUNT; cause++) {
		untold.steps[cause] = drain->untold[cause].steps;
		untold.lost_rows[cause] = drain->untold[cause].rows;
	}
	pages_note_untold(&drain->pages, &untold);
	R3RING_TEST_POINT("drain untold noted");
}

/* Whether it can be what comes behind the newest step that was told; the producer could
 * have stored there. */
static bool follows(const struct drain *drain, const struct pages_untold *untold)
{
	uint64_t range = untold->to_step - untold->from_step + 1, steps = 0;

	if (untold->from_step != drain->last_step + 1 || untold->to_step < untold->from_step)
		return false;
	for (uint32_t cause = 0; cause < R3RING_CAUSE_COUNT; cause++) {
		if (untold->steps[cause] > range - steps)
			return false;
		steps += untold->steps[cause];
	}
	return steps == range;
}

void drain_take_untold(struct drain *drain)
{
	const struct pages_untold untold = pages_read_untold(&drain->pages);

	if (!follows(drain, &untold))
		return;
	for (uint32_t cause = 0; cause < R3RING_CAUSE_COUNT; cause++) {
		drain->untold[cause].steps = untold.steps[cause];
		drain->untold[cause].rows = untold.lost_rows[cause];
		drain->untold_steps += untold.steps[cause];
	}
	drain->untold_from = untold.from_step;
	drain->last_step = untold.to_step;
	drain->rows_seen = untold.rows;
	/* The entry that was at work may not have been given back. */
	drain->told_step = untold.to_step;
	/* What is lost behind them is told with them. */
	drain->dropping = true;
}

static void say_untold_of(struct drain *drain, enum r3ring_cause cause)
{
	const struct r3ring_lost_record *sum = &drain->untold[cause];
	const struct r3ring_lost_record lost = {
		.from_step = drain->untold_from,
		.to_step = drain->last_step,
		.steps = sum->steps,
		.rows = sum->rows,
		.layer_rows = sum->rows * drain->geometry.layers,
		.cause = cause,
		.spans_unknown = 1,
	};

	if (!sum->steps)
		return;
	drain_check(drain, publish_lost(&drain->publisher, &lost), "LOST");
	R3RING_TEST_POINT("drain untold told");
}

/* Of several causes only the whole range is known; all are told, or the next daemon tells
 * the rest. */
void drain_say_untold(struct drain *drain, bool now)
{
	if (!drain->untold_steps ||
	    (!now && !has_room(drain, R3RING_CAUSE_COUNT, R3RING_CAUSE_COUNT * LOST_BYTES)))
		return;
	drain->publisher.totals.steps += drain->untold_steps;
	for (uint32_t cause = 0; cause < R3RING_CAUSE_COUNT; cause++)
		say_untold_of(drain, (enum r3ring_cause)cause);
	memset(drain->untold, 0, sizeof(drain->untold));
	drain->untold_steps = 0;
	drain_note_told(drain);
}
