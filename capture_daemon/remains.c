/* SPDX-License-Identifier: Apache-2.0 */
/* Reading back what a dead daemon had published. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "capture_daemon/remains.h"
#include "capture_daemon/totals.h"

void remains_init(struct remains *remains)
{
	*remains = (struct remains){.schema.type = R3RING_SCHEMA};
}

void remains_free(struct remains *remains)
{
	free(remains->layers);
	free(remains->said.layer_parts);
	live_clear(&remains->live);
	remains_init(remains);
}

/* ---- the schema --------------------------------------------------------- */

static void note_schema(struct remains *remains, const struct r3ring_record *record)
{
	uint32_t count = record->u.schema.head.layers;
	struct r3ring_layer_entry *layers = calloc(count + 1, sizeof(*layers));
	uint32_t *parts = calloc(count + 1, sizeof(*parts));

	if (!layers || !parts) {
		free(layers);
		free(parts);
		return;
	}
	memcpy(layers, record->u.schema.layers, count * sizeof(*layers));
	/* It may come again in the middle of a step, but never with other layers. */
	if (remains->said.layer_parts && count == remains->schema.u.schema.head.layers)
		memcpy(parts, remains->said.layer_parts, count * sizeof(*parts));
	free(remains->layers);
	free(remains->said.layer_parts);
	remains->layers = layers;
	remains->said.layer_parts = parts;
	remains->schema = *record;
	remains->schema.u.schema.layers = layers;
}

/* ---- the step at work --------------------------------------------------- */

static void forget_step(struct remains *remains)
{
	struct drain_said *said = &remains->said;

	if (said->layer_parts)
		memset(said->layer_parts, 0,
		       remains->schema.u.schema.head.layers * sizeof(*said->layer_parts));
	*said = (struct drain_said){.layer_parts = said->layer_parts};
}

static void count_up_to(struct remains *remains, uint64_t step)
{
	if (step > remains->counted_step)
		remains->counted_step = step;
	if (step > remains->newest_step)
		remains->newest_step = step;
}

static void note_step(struct remains *remains, const struct r3ring_step_record *head)
{
	forget_step(remains);
	remains->said.step = *head;
	remains->said.map_records = 1;
	remains->totals.steps++;
	count_up_to(remains, head->step);
}

static void note_told(struct remains *remains, uint64_t step)
{
	if (step > remains->told_step)
		remains->told_step = step;
	if (step >= remains->said.step.step)
		forget_step(remains);
}

/* Whether @step is at work. One whose beginning was overwritten is not known well
 * enough to go on with. */
static bool at_work(struct remains *remains, uint64_t step)
{
	if (step && step == remains->said.step.step)
		return true;
	if (step > remains->told_step && step > remains->newest_step)
		remains->said.unknown = true;
	return false;
}

static void note_spans(struct remains *remains, const struct r3ring_spans_record *head)
{
	if (at_work(remains, head->step))
		remains->said.map_records++;
}

static void note_layer(struct remains *remains, const struct r3ring_layer_record *head)
{
	struct r3ring_totals *totals = &remains->totals;

	totals->layer_records++;
	if (!at_work(remains, head->step))
		return;
	if (head->row == remains->said.step.row_begin) {
		totals->ids_missing += head->missing;
		totals->ids_out_of_range += head->out_of_range;
	}
	if (head->layer_index < remains->schema.u.schema.head.layers)
		remains->said.layer_parts[head->layer_index]++;
}

static void note_rows(struct remains *remains, const struct r3ring_rows_record *head)
{
	if (at_work(remains, head->step))
		remains->said.rows += head->rows;
}

static void note_end(struct remains *remains, const struct r3ring_record *end)
{
	const struct r3ring_step_end_record *head = &end->u.step_end.head;
	uint64_t valid = at_work(remains, head->step) ? r3ring_step_valid_rows(&remains->said.step)
						      : 0;

	totals_add_end(&remains->totals, end, valid, remains->schema.u.schema.head.layers);
	remains->newest_end_ns = head->publish_ns;
	note_told(remains, head->step);
}

static void note_gap(struct remains *remains, const struct r3ring_lost_record *lost)
{
	struct remains_gap *gap = &remains->gap;

	if (lost->from_step <= remains->newest_step)
		return;
	if (gap->to_step != lost->to_step)
		*gap = (struct remains_gap){.from_step = lost->from_step, .to_step = lost->to_step};
	gap->steps += lost->steps;
	gap->records++;
}

/* Says in the ring's beginning that of the gap behind the newest step a cause was told in
 * the ring before. */
static bool is_carried(const struct r3ring_lost_record *lost)
{
	return lost->cause == R3RING_CAUSE_QUEUE_FULL && !lost->steps && !lost->from_step;
}

static void note_carried(struct remains *remains)
{
	remains->carried_from = remains->told_step + 1;
	remains->carried_records++;
}

/* The dead daemon had more to tell of the gap: it is told on by the next. */
static void reopen_gap(struct remains *remains)
{
	const struct remains_gap *gap = &remains->gap;
	uint64_t steps = gap->to_step - gap->from_step + 1;
	bool carried = remains->carried_records && gap->from_step == remains->carried_from;

	if (remains->carried_records && remains->told_step < remains->carried_from &&
	    remains->newest_step < remains->carried_from) {
		remains->said.gap_records = remains->carried_records;
		return;
	}
	if (!gap->records || gap->to_step != remains->told_step || gap->steps >= steps ||
	    remains->newest_step > gap->to_step)
		return;
	remains->said.gap_records = gap->records + (carried ? remains->carried_records : 0);
	remains->told_step = gap->from_step - 1;
	remains->totals.steps -= steps;
}

/*
 * A daemon that was to close this ring told the step at work as lost here, and left it to
 * the next generation, which has it whole: it is at work no more, and not told either.
 */
static bool leaves_step(const struct remains *remains, const struct r3ring_lost_record *lost)
{
	const struct r3ring_step_record *step = &remains->said.step;

	return lost->cause == R3RING_CAUSE_DAEMON_RESTART && step->step && !step->cause &&
	       lost->to_step == step->step;
}

/* Steps that were never announced are counted by their loss. */
static void note_lost(struct remains *remains, const struct r3ring_lost_record *lost)
{
	uint64_t first = lost->from_step;

	remains->totals.lost_steps[lost->cause] += lost->steps;
	remains->totals.lost_rows[lost->cause] += lost->rows;
	if (first <= remains->counted_step)
		first = remains->counted_step + 1;
	if (lost->to_step >= first) {
		remains->totals.steps += lost->to_step - first + 1;
		remains->counted_step = lost->to_step;
	}
	if (is_carried(lost))
		note_carried(remains);
	if (!lost->steps)
		return;
	if (leaves_step(remains, lost)) {
		forget_step(remains);
		remains->said.unknown = true;
		return;
	}
	note_gap(remains, lost);
	note_told(remains, lost->to_step);
}

/* Published between steps: all before it is told. */
static void note_keyframe(struct remains *remains, const struct r3ring_keyframe_record *keyframe)
{
	remains->totals = keyframe->totals;
	count_up_to(remains, keyframe->step);
	note_told(remains, keyframe->step);
}

/* ---- all records -------------------------------------------------------- */

static void note_record(struct remains *remains, const struct r3ring_record *record,
			const struct r3ring_view *view)
{
	switch (record->type) {
	case R3RING_SCHEMA:
		note_schema(remains, record);
		break;
	case R3RING_REQUEST:
		live_note_request(&remains->live, &record->u.request.head, view->data, view->len);
		break;
	case R3RING_EPLB:
		live_note_map(&remains->live, &record->u.eplb.head, view->data, view->len);
		break;
	case R3RING_STEP:
		note_step(remains, &record->u.step.head);
		break;
	case R3RING_SPANS:
		note_spans(remains, &record->u.spans.head);
		break;
	case R3RING_LAYER:
		note_layer(remains, &record->u.layer.head);
		break;
	case R3RING_ROWS:
		note_rows(remains, &record->u.rows.head);
		break;
	case R3RING_STEP_END:
		note_end(remains, record);
		break;
	case R3RING_LOST:
		note_lost(remains, &record->u.lost);
		break;
	case R3RING_KEYFRAME:
		note_keyframe(remains, &record->u.keyframe);
		break;
	case R3RING_CLOSED:
		remains->closed = true;
		break;
	default:
		break;
	}
}

/* ---- reading a ring ------------------------------------------------------ */

/* A ring that nobody writes, read once from front to end. */
struct walk {
	struct r3ring_cursor *cursor;
	uint64_t calls; /* that an honest ring can take at most: each of them gets behind a slot */
};

static int walk_open(struct walk *walk, const struct r3ring_segment *segment,
		     enum r3ring_cursor_start from, uint64_t seq)
{
	walk->calls =
		2ull << r3ring_segment_get_header(segment)->regions[R3RING_REGION_DESCS].count_log2;
	return r3ring_cursor_open(&walk->cursor, segment, R3RING_LOSSY, from, seq);
}

/* Returns 1 with a record, 0 at the end, -EBADMSG where there is none: of a ring that was not
 * closed only one that lies is said to have ended. */
static int walk_next(struct walk *walk, struct r3ring_view *view)
{
	while (walk->calls--) {
		int r = r3ring_cursor_next(walk->cursor, view);

		if (r != -EOVERFLOW && r != -EBADMSG)
			return r == -EPIPE ? -EBADMSG : r == 1;
	}
	return -EBADMSG;
}

/* Whether all live requests are known: those of the generation's beginning, or of a whole keyframe
 * that leaves none out, and of what was read since. */
struct completeness {
	uint64_t seq;  /* of the record before */
	uint32_t left; /* records of such a keyframe that are to come */
};

static void note_completeness(struct remains *remains, struct completeness *known,
			      const struct r3ring_record *record, const struct r3ring_view *view)
{
	const bool whole_keyframe = record->type == R3RING_KEYFRAME &&
				    !(view->flags & R3RING_DESC_ABRIDGED);

	remains->live.lacks |= view->seq != known->seq + 1;
	if (view->seq != known->seq + 1 || !(view->flags & R3RING_DESC_REPEATED))
		known->left = whole_keyframe ? record->u.keyframe.records : 0;
	else if (known->left && --known->left == 0)
		remains->live.lacks = false;
	known->seq = view->seq;
}

int remains_read(struct remains *remains, const struct r3ring_segment *segment)
{
	struct completeness known = {0};
	struct r3ring_record record;
	struct r3ring_view view;
	struct walk walk;
	int r = walk_open(&walk, segment, R3RING_FROM_OLDEST, 0);

	if (r < 0)
		return r;
	while ((r = walk_next(&walk, &view)) == 1) {
		if (r3ring_record_decode(&record, view.type, view.data, view.len, NULL))
			record.type = 0;
		note_record(remains, &record, &view);
		note_completeness(remains, &known, &record, &view);
	}
	r3ring_cursor_close(walk.cursor);
	reopen_gap(remains);
	return r;
}

/* ---- a side entry ------------------------------------------------------- */

/* What a keyframe repeats, and the LOST of an adopting daemon, is not. */
static bool is_of_entry(const struct r3ring_view *view)
{
	struct r3ring_record record;

	switch (view->type) {
	case R3RING_REQUEST:
	case R3RING_SPANS:
	case R3RING_EPLB:
	case R3RING_KEY_COPY:
	case R3RING_SCHEMA:
		return !(view->flags & R3RING_DESC_REPEATED);
	case R3RING_LOST:
		return r3ring_record_decode(&record, view->type, view->data, view->len, NULL) ==
			       0 &&
		       record.u.lost.cause == R3RING_CAUSE_TOO_BIG;
	default:
		return false;
	}
}

uint32_t remains_count_said(const struct r3ring_segment *segment, uint64_t seq)
{
	struct r3ring_view view;
	struct walk walk;
	uint32_t count = 0;

	if (walk_open(&walk, segment, R3RING_FROM_SEQ, seq) < 0)
		return 0;
	while (walk_next(&walk, &view) == 1)
		count += is_of_entry(&view);
	r3ring_cursor_close(walk.cursor);
	return count;
}
