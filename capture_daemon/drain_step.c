/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One step: announced, worked off layer by layer as its bells ring, and closed
 * with what came and what did not.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include <r3ring/atomic.h>
#include <test_point.h>

#include "capture_daemon/clock.h"
#include "capture_daemon/drain_copy.h"
#include "capture_daemon/log.h"
#include "capture_daemon/totals.h"

/* ---- checks ------------------------------------------------------------- */

static int check_place(const struct drain *drain, const struct r3ring_step_record *head,
		       const struct lane_step *lane, struct r3ring_error *err)
{
	uint32_t rows = head->row_end - head->row_begin;
	uint64_t bytes = extent_bytes(&drain->geometry, rows);

	if (head->total_rows > drain->publisher.schema.max_rows)
		return r3ring_error_set(
			err, -EBADMSG, "step %" PRIu64 " has %u rows, the schema allows %u",
			head->step, head->total_rows, drain->publisher.schema.max_rows);
	if (lane->slot >= drain->pages.slots)
		return r3ring_error_set(err, -EBADMSG, "step %" PRIu64 " names slot %u of %u",
					head->step, lane->slot, drain->pages.slots);
	if (lane->extent_offset % EXTENT_ALIGN || bytes > drain->buffer.bytes ||
	    lane->extent_offset > drain->buffer.bytes - bytes)
		return r3ring_error_set(err, -EBADMSG,
					"step %" PRIu64 " names an extent at %" PRIu64
					" of %" PRIu64 " bytes, the buffer has %" PRIu64,
					head->step, lane->extent_offset, bytes,
					drain->buffer.bytes);
	return 0;
}

/* A daemon that died had told of this step, but not yet given its entry back. */
static bool told_before(const struct drain *drain, uint64_t step)
{
	return step && step == drain->told_step;
}

/* It was at work when that daemon died: what is missing of it is told now. */
static bool said_before(const struct drain *drain, uint64_t step)
{
	return step && step == drain->said.step.step;
}

static bool number_fits(const struct drain *drain, uint64_t step)
{
	if (drain->said.step.step && !said_before(drain, step))
		return false;
	return step > drain->last_step || told_before(drain, step);
}

static int decode(struct drain *drain, const uint8_t *payload, size_t bytes,
		  struct r3ring_record *record, struct lane_step *lane, struct r3ring_error *err)
{
	int r;

	memcpy(lane, payload, sizeof(*lane));
	r = r3ring_record_decode(record, R3RING_STEP, payload + sizeof(*lane),
				 bytes - sizeof(*lane), err);
	if (r < 0)
		return r;
	if (!number_fits(drain, record->u.step.head.step))
		return r3ring_error_set(err, -EBADMSG, "step %" PRIu64 " after step %" PRIu64,
					record->u.step.head.step, drain->last_step);
	if (lane->extent_offset == EXTENT_NONE)
		return 0;
	return check_place(drain, &record->u.step.head, lane, err);
}

/* ---- accounts ----------------------------------------------------------- */

void drain_note_told(struct drain *drain)
{
	struct pages_words *words = drain->pages.words;

	/* Release, for the order of the stores in which a kill leaves them; the next
	 * daemon starts when this one is gone. */
	r3ring_store_release_u64(&words->taken_rows, drain->rows_seen);
	R3RING_TEST_POINT("drain rows noted");
	r3ring_store_release_u64(&words->taken_step, drain->last_step);
	R3RING_TEST_POINT("drain step noted");
}

/* Where the next daemon goes on, should this one end. @rows: valid ones of all steps
 * up to @step. */
static void note_taken(struct drain *drain, uint64_t step, uint64_t rows)
{
	drain->told_step = 0;
	drain->last_step = step;
	drain->rows_seen = rows;
	if (drain->untold_steps)
		drain_store_untold(drain);
	else
		drain_note_told(drain);
}

static void say_lost_of_gap(struct drain *drain, struct r3ring_lost_record *gap,
			    enum r3ring_cause cause, uint64_t steps, uint64_t rows)
{
	struct r3ring_lost_record lost = *gap;

	if (steps > gap->steps)
		steps = gap->steps;
	if (!steps)
		return;
	lost.cause = cause;
	lost.steps = steps;
	lost.rows = rows < gap->rows ? rows : gap->rows;
	lost.layer_rows = lost.rows * drain->geometry.layers;
	gap->steps -= lost.steps;
	gap->rows -= lost.rows;
	if (drain->dropping)
		drain_note_untold(drain, &lost);
	else
		drain_check(drain, publish_lost(&drain->publisher, &lost), "LOST");
	R3RING_TEST_POINT("drain gap told");
}

/* Of a gap of several causes only the whole range is known. */
void drain_say_gap(struct drain *drain, uint64_t step, uint64_t rows_before,
		   const struct lane_gap *causes)
{
	struct r3ring_lost_record gap = {
		.from_step = drain->last_step + 1,
		.to_step = step - 1,
		.steps = step - 1 - drain->last_step,
		.rows = rows_before > drain->rows_seen ? rows_before - drain->rows_seen : 0,
		.spans_unknown = 1,
	};
	uint32_t said = drain->said.gap_records;

	drain->said.gap_records = 0;
	if (step <= drain->last_step + 1)
		return;
	drain->publisher.said = said;
	if (!drain->dropping)
		drain->publisher.totals.steps += gap.steps;
	say_lost_of_gap(drain, &gap, R3RING_CAUSE_DAEMON_RESTART, causes->restart_steps,
			causes->restart_rows);
	say_lost_of_gap(drain, &gap, R3RING_CAUSE_TOO_BIG, causes->too_big_steps,
			causes->too_big_rows);
	say_lost_of_gap(drain, &gap, R3RING_CAUSE_QUEUE_FULL, gap.steps, gap.rows);
	drain->publisher.said = 0;
	note_taken(drain, step - 1, rows_before);
}

/* The step with all its rows and layers. */
static struct r3ring_lost_record whole_step(const struct drain *drain,
					    const struct r3ring_step_record *head,
					    enum r3ring_cause cause)
{
	return (struct r3ring_lost_record){
		.from_step = head->step,
		.to_step = head->step,
		.steps = 1,
		.rows = r3ring_step_valid_rows(head),
		.layer_rows = (uint64_t)r3ring_step_valid_rows(head) * drain->geometry.layers,
		.cause = cause,
	};
}

static void say_step_lost(struct drain *drain, const struct r3ring_step_record *head)
{
	struct r3ring_lost_record lost = whole_step(drain, head, (enum r3ring_cause)head->cause);

	lost.spans_unknown = head->spans_unknown;
	drain_check(drain, publish_lost(&drain->publisher, &lost), "LOST");
}

/* The step's own number of extents: the next daemon may do it again. */
static void release_extent(struct drain *drain, const struct lane_step *lane)
{
	if (lane->extent_offset == EXTENT_NONE)
		return;
	/* Pairs with the acquire of the producer when it looks for room: the
	 * copies out of the extent are done. */
	r3ring_store_release_u64(&drain->pages.words->extents_released, lane->extents);
	R3RING_TEST_POINT("drain extent released");
}

/* ---- dropped steps ------------------------------------------------------ */

/* As the producer says it, if that is one. */
static enum r3ring_cause dropped_cause(uint32_t cause)
{
	cause &= ~LANE_CAUSE_MAP_UNKNOWN;
	if (cause == R3RING_CAUSE_NONE || cause > R3RING_CAUSE_CONFLICT)
		return R3RING_CAUSE_BUFFER_FULL;
	return (enum r3ring_cause)cause;
}

/*
 * Its keys still matter: rows that they stood for are missing now. STEP says why it was
 * dropped for a daemon that finds it without its LOST, and knows no more than the ring.
 */
static void say_dropped(struct drain *drain, const struct r3ring_record *record, uint32_t cause)
{
	struct r3ring_record dropped = *record;
	struct r3ring_step_record *head = &dropped.u.step.head;

	head->flags |= R3RING_STEP_DROPPED;
	head->cause = (uint16_t)dropped_cause(cause);
	head->spans_unknown = (cause & LANE_CAUSE_MAP_UNKNOWN) != 0;
	if (publish_step(&drain->publisher, &dropped) < 0) {
		head->spans = 0;
		head->keys = 0;
		head->spans_unknown = 1;
		drain_check(drain, publish_step(&drain->publisher, &dropped), "STEP");
	}
	R3RING_TEST_POINT("drain drop announced");
	say_step_lost(drain, head);
}

/* ---- the end ------------------------------------------------------------ */

static enum r3ring_cause layer_cause(const struct step_work *work, enum step_outcome outcome,
				     bool rang, uint32_t rows)
{
	if (!rang && outcome == STEP_CUT_SHORT)
		return R3RING_CAUSE_PRODUCER_DIED;
	if (!rang && outcome == STEP_ABANDONED)
		return R3RING_CAUSE_DAEMON_RESTART;
	/* It came, but the buffer went with the producer. */
	if (rang && outcome == STEP_CUT_SHORT && rows == work->rows)
		return R3RING_CAUSE_PRODUCER_DIED;
	if (!rang || (rows == 0 && work->rows))
		return R3RING_CAUSE_NOT_CAPTURED;
	return rows < work->rows ? R3RING_CAUSE_TOO_FEW_ROWS : R3RING_CAUSE_OVERLAP;
}

/* Fills drain->missing; returns how many layers are. A bell is looked at again
 * also where its layer came: rows that came too often are known only now. */
static uint32_t find_missing(struct drain *drain, const struct step_work *work,
			     enum step_outcome outcome)
{
	struct r3ring_missing_layer *missing = drain->missing;

	for (uint32_t layer = 0; layer < drain->geometry.layers; layer++) {
		const struct r3ring_layer_entry *entry = &drain->publisher.layers[layer];
		struct bell_counts counts = {0};
		bool rang = step_bell(drain, work, layer, &counts);
		enum r3ring_cause cause = layer_cause(work, outcome, rang, counts.rows);

		if (drain->layer_state[layer] == STEP_LAYER_COPIED &&
		    (!rang || counts.rows == work->rows))
			continue;
		if (drain->layer_state[layer] == STEP_LAYER_COPY_FAILED)
			cause = R3RING_CAUSE_COPY_FAILED;
		*missing++ = (struct r3ring_missing_layer){
			.layer_id = entry->layer_id,
			.kind = entry->kind,
			.cause = (uint16_t)cause,
			.captured = counts.rows,
			.expected = work->rows,
		};
	}
	return (uint32_t)(missing - drain->missing);
}

/* Of @steps that the engine began so far, also those that were lost. Over a second at least: steps
 * that were waiting are drained faster than they are made. */
static void note_pace(struct drain_report *report, uint64_t steps, uint64_t now)
{
	uint64_t since = report->pace_since_ns;

	report->last_step_ns = now;
	if (since && (now - since < NS_PER_SECOND || steps <= report->pace_from))
		return;
	if (since)
		report->step_period_ns = (now - since) / (steps - report->pace_from);
	report->pace_since_ns = now;
	report->pace_from = steps;
}

static void count_step(struct drain *drain, const struct step_work *work,
		       const struct r3ring_record *end)
{
	totals_add_end(&drain->publisher.totals, end, work->valid, drain->geometry.layers);
	pthread_mutex_lock(&drain->report_lock);
	note_pace(&drain->report, drain->publisher.totals.steps, clock_now_ns());
	pthread_mutex_unlock(&drain->report_lock);
}

static void say_end(struct drain *drain, const struct step_work *work, enum step_outcome outcome)
{
	uint32_t missing = find_missing(drain, work, outcome);
	struct r3ring_record record = {.type = R3RING_STEP_END};
	bool ended = outcome == STEP_ENDED;
	/* Pairs with the release in the begin kernel. */
	bool began = r3ring_load_acquire_u64(&work->slot->begin_step) == work->head.step;

	record.u.step_end.head = (struct r3ring_step_end_record){
		.step = work->head.step,
		.status = missing ? R3RING_STEP_PARTIAL : R3RING_STEP_COMPLETE,
		.missing = missing,
		.host_begin_ns = work->head.host_ns,
		.device_begin_ns = began ? r3ring_load_relaxed_u64(&work->slot->begin_ns) : 0,
		.device_end_ns = ended ? r3ring_load_relaxed_u64(&work->slot->end_ns) : 0,
		.publish_ns = clock_now_ns(),
	};
	record.u.step_end.missing = drain->missing;
	drain_check(drain, publish_record(&drain->publisher, &record, 0), "STEP_END");
	R3RING_TEST_POINT("drain step told");
	r3ring_writer_wake(drain->publisher.writer);
	count_step(drain, work, &record);
}

/* ---- at work ------------------------------------------------------------ */

static struct step_work step_work_of(const struct drain *drain,
				     const struct r3ring_step_record *head,
				     const struct lane_step *lane)
{
	const struct extent_geometry *g = &drain->geometry;
	const uint8_t *extent = drain->buffer.base + lane->extent_offset;
	uint32_t rows = head->row_end - head->row_begin;

	return (struct step_work){
		.head = *head,
		.extent = extent,
		.layers = extent + extent_part_offset(g, rows, 0, 0),
		.layer_bytes = extent_layer_bytes(g, rows),
		.parts = extent_parts(g, rows),
		.slot = pages_slot(&drain->pages, lane->slot),
		.rows = rows,
		.valid = r3ring_step_valid_rows(head),
		.said = said_before(drain, head->step) ? &drain->said : NULL,
	};
}

static enum step_outcome step_work_off(struct drain *drain, const struct r3ring_record *record,
				       const struct lane_step *lane)
{
	struct step_work work = step_work_of(drain, &record->u.step.head, lane);
	enum step_outcome outcome;

	memset(drain->layer_state, STEP_LAYER_PENDING, drain->geometry.layers);
	r3ring_writer_wake(drain->publisher.writer);
	outcome = step_wait(drain, &work);
	if (outcome == STEP_ENDED)
		step_copy_rows(drain, &work);
	if (drain->gpu_lost)
		return STEP_ABANDONED;
	say_end(drain, &work, outcome);
	return outcome;
}

/* Its extent is given back when the model is done with it. */
static enum step_outcome drop_step(struct drain *drain, const struct r3ring_record *record,
				   const struct lane_step *lane)
{
	const struct r3ring_step_record *head = &record->u.step.head;
	const struct r3ring_lost_record lost = whole_step(drain, head,
							  lane->extent_offset == EXTENT_NONE
								  ? dropped_cause(lane->cause)
								  : R3RING_CAUSE_RING_FULL);

	if (lane->extent_offset != EXTENT_NONE) {
		struct step_work work = step_work_of(drain, head, lane);

		work.dropped = true;
		if (step_wait(drain, &work) == STEP_ABANDONED)
			return STEP_ABANDONED;
	}
	drain_note_untold(drain, &lost);
	R3RING_TEST_POINT("drain step dropped");
	return STEP_ENDED;
}

/* Announces the step and sees it through. */
static enum step_outcome say_step(struct drain *drain, const struct r3ring_record *record,
				  const struct lane_step *lane)
{
	/* Of a step that is resumed they know the map, or its beginning. */
	if (said_before(drain, record->u.step.head.step)) {
		drain->publisher.said = drain->said.map_records;
	} else {
		drain_say_gap(drain, record->u.step.head.step, lane->rows_before, &lane->gap);
		if (!drain_finds_room(drain, record))
			return drop_step(drain, record, lane);
		drain_say_untold(drain, true);
		drain->publisher.totals.steps++;
		drain->publisher.newest_step = record->u.step.head.step;
	}
	if (lane->extent_offset == EXTENT_NONE)
		say_dropped(drain, record, lane->cause);
	else if (publish_step(&drain->publisher, record) == 0)
		return step_work_off(drain, record, lane);
	else
		say_dropped(drain, record, R3RING_CAUSE_TOO_BIG);
	return STEP_ENDED;
}

int drain_step(struct drain *drain, const uint8_t *payload, size_t bytes, struct r3ring_error *err)
{
	struct r3ring_record record;
	struct lane_step lane;
	int r = decode(drain, payload, bytes, &record, &lane, err);

	if (r < 0)
		return r;
	/* An abandoned step stays in the queue: the next daemon says it whole. */
	if (!told_before(drain, record.u.step.head.step) &&
	    say_step(drain, &record, &lane) == STEP_ABANDONED)
		return 1;
	note_taken(drain, record.u.step.head.step,
		   lane.rows_before + r3ring_step_valid_rows(&record.u.step.head));
	release_extent(drain, &lane);
	drain->said.step.step = 0;
	r3ring_writer_wake(drain->publisher.writer);
	drain_update_report(drain);
	return 0;
}
