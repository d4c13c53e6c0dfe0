/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Steps: announcing them, taking room for what they route, arming and disarming
 * the captures. Nothing here allocates, locks, or enters the kernel while the
 * daemon is awake.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include <r3ring/atomic.h>
#include <test_point.h>

#include "channel/clock.h"
#include "producer/lose.h"
#include "producer/producer.h"
#include "producer/token_map.h"

#define STEP_FLAGS_ALLOWED (R3RING_STEP_WARMUP | R3RING_STEP_GRAPH | R3RING_STEP_SPANS_FOLLOW)
#define STEP_HEAD_BYTES (sizeof(struct lane_step) + sizeof(struct r3ring_step_record))
#define PREFETCH_BYTES_MAX 4096u

/* For words that one thread changes and others read. */
static void add(uint64_t *word, uint64_t value)
{
	r3ring_store_relaxed_u64(word, *word + value);
}

/* ---- checks ----------------------------------------------------------- */

static const char *rows_fault(const struct r3ring_step *step)
{
	if (step->row_begin > step->row_end)
		return "row_begin is beyond row_end";
	if (step->row_end > step->total_rows)
		return "row_end is beyond total_rows";
	if (step->valid_end > step->total_rows)
		return "valid_end is beyond total_rows";
	if (step->flags & ~(uint32_t)STEP_FLAGS_ALLOWED)
		return "flags has a bit that is not for the caller";
	return NULL;
}

static const char *step_fault(const struct r3ring_step *step)
{
	if (step->size != sizeof(*step))
		return "size is not sizeof(struct r3ring_step)";
	return rows_fault(step);
}

/* Tokens among the rank's rows. */
static uint32_t valid_rows(const struct r3ring_step *step)
{
	uint32_t end = step->valid_end < step->row_end ? step->valid_end : step->row_end;

	return end > step->row_begin ? end - step->row_begin : 0;
}

/* ---- announcing ------------------------------------------------------- */

struct announcement {
	struct lane_entry *entry;
	uint64_t number;
	uint32_t valid_rows;
	uint32_t cause; /* of the drop, 0: none */
	bool silent;    /* no record can say it */
	uint32_t flags; /* of the drop: LANE_CAUSE_MAP_UNKNOWN */
	struct extent extent;
};

static void write_record(const struct announcement *a, const struct r3ring_step *step, void *out)
{
	const struct r3ring_step_record record = {
		.step = a->number,
		.total_rows = step->total_rows,
		.row_begin = step->row_begin,
		.row_end = step->row_end,
		.valid_end = step->valid_end,
		.flags = step->flags,
		.spans = step->spans,
		.keys = step->keys,
		.tokens_per_key = step->tokens_per_key,
		.key_kind = step->key_kind,
		.weight_version = step->weight_version,
		.eplb_epoch = step->eplb_epoch,
		.host_ns = clock_now_ns(),
	};

	memcpy(out, &record, sizeof(record));
}

static void submit(struct r3ring_producer *producer, const struct announcement *a,
		   const struct r3ring_step *step)
{
	struct lane_step *lane_step = (void *)(a->entry + 1);

	*lane_step = (struct lane_step){
		.rows_before = producer->rows,
		.extent_offset = a->cause ? EXTENT_NONE : a->extent.offset,
		.slot = a->cause ? 0 : a->extent.slot,
		.cause = a->cause | a->flags,
		.extent_end = a->cause ? 0 : a->extent.end,
		.extents = producer->extents.taken,
		.gap = producer->gap,
	};
	producer->gap = (struct lane_gap){0};
	write_record(a, step, lane_step + 1);
	a->entry->type = LANE_STEP;
	a->entry->record_type = R3RING_STEP;
	/* Pairs with the release in note_announced(): what is still in the spill
	 * counts too, and comes before this step. */
	a->entry->after = r3ring_load_acquire_u64(&producer->announced);
	lane_submit(&producer->steps);
}

/* The next entry tells of a step that has none. */
static void note_gap(struct r3ring_producer *producer, const struct announcement *a)
{
	struct lane_gap *gap = &producer->gap;

	if (a->cause == R3RING_CAUSE_DAEMON_RESTART) {
		gap->restart_steps++;
		gap->restart_rows += a->valid_rows;
	} else if (a->cause == R3RING_CAUSE_TOO_BIG) {
		gap->too_big_steps++;
		gap->too_big_rows += a->valid_rows;
	}
}

/* Steps that no daemon empties the queue or the buffer for are lost to its absence. */
static uint32_t cause_of(const struct r3ring_producer *producer, uint32_t full)
{
	return r3ring_load_relaxed_u32(&producer->connected) ? full : R3RING_CAUSE_DAEMON_RESTART;
}

/* All lines that announcing and arming will write were last read by the daemon's
 * core. Asked for at once, they come at the same time instead of one by one. */
static void ask_for_lines(const struct r3ring_producer *producer, uint64_t entry_bytes)
{
	const struct pages *pages = &producer->pages;
	uint32_t slot = (uint32_t)(producer->extents.taken % PAGES_SLOTS);

	r3ring_prefetch_write(&pages->words->step_head);
	r3ring_prefetch_write(pages->words->begun);
	r3ring_prefetch_write(pages_slot(pages, slot));
	lane_prefetch(&producer->steps,
		      entry_bytes < PREFETCH_BYTES_MAX ? entry_bytes : PREFETCH_BYTES_MAX);
}

static void take_room(struct r3ring_producer *producer, struct announcement *a,
		      const struct r3ring_step *step)
{
	uint64_t bytes;

	if (a->cause)
		return;
	if (!a->entry) {
		a->cause = cause_of(producer, R3RING_CAUSE_QUEUE_FULL);
		return;
	}
	bytes = extent_bytes(&producer->geometry, step->row_end - step->row_begin);
	if (!extents_take(&producer->extents, bytes, &a->extent))
		a->cause = cause_of(producer, R3RING_CAUSE_BUFFER_FULL);
}

/*
 * Gives the step its number and announces it, unless there is no room: the daemon
 * then finds it missing among the numbers. Begun is noted last, so that who reads
 * it finds every entry up to it.
 * Returns what is wrong with its token map (nothing was done), or NULL.
 */
static const char *announce(struct r3ring_producer *producer, struct announcement *a,
			    const struct r3ring_step *step)
{
	uint64_t payload_bytes = STEP_HEAD_BYTES + token_map_bytes(step);
	const char *fault;

	ask_for_lines(producer, sizeof(struct lane_entry) + payload_bytes);
	if (!a->silent)
		a->entry = lane_reserve(&producer->steps, (uint32_t)payload_bytes);
	fault = token_map_write(step, step->total_rows,
				a->entry ? (uint8_t *)(a->entry + 1) + STEP_HEAD_BYTES : NULL);
	if (fault)
		return fault;

	a->number = producer->step + 1;
	a->valid_rows = valid_rows(step);
	take_room(producer, a, step);
	if (a->entry)
		submit(producer, a, step);
	else
		note_gap(producer, a);

	r3ring_store_relaxed_u64(&producer->step, a->number);
	add(&producer->rows, a->valid_rows);
	if (a->cause) {
		add(&producer->dropped_steps[a->cause], 1);
		add(&producer->dropped_rows[a->cause], a->valid_rows);
	}
	pages_note_begun(&producer->pages, producer->step, producer->rows);
	R3RING_TEST_POINT("engine announced");
	pages_wake(&producer->pages);
	return NULL;
}

/* ---- arming and disarming --------------------------------------------- */

static int arm(struct r3ring_producer *producer, const struct announcement *a,
	       const struct r3ring_step *step, r3ring_stream stream)
{
	const struct kernel_begin_args args = {
		.control = producer->control,
		.buffer = producer->buffer.base,
		.bells = producer->bells,
		.geometry = producer->geometry,
		.next =
			{
				.step = a->number,
				.offset = a->cause ? EXTENT_NONE : a->extent.offset,
				.slot = a->extent.slot,
				.row_begin = step->row_begin,
				.row_end = step->row_end,
				.valid_end = step->valid_end,
				.first_source_row = step->first_source_row,
				/* By event the daemon knows the end only. */
				.doorbell_layers = producer->order == R3RING_ORDER_EVENT
							   ? 0
							   : step->doorbell_layers,
			},
	};

	return producer->ops->launch_begin(producer->device, stream, &args);
}

/*
 * The device refused a launch, so nothing on it will ever end the step: the host
 * does. No bell was rung, so all of its layers are missing.
 */
static int device_failed(struct r3ring_producer *producer, const char *launch)
{
	struct extent_slot *slot = pages_slot(&producer->pages, producer->open_slot);

	producer->is_open = false;
	/* Pairs with the daemon's acquire of end_step. */
	if (!producer->open_dropped)
		r3ring_store_release_u64(&slot->end_step, producer->open_step);
	return producer_step_failed(producer, -EIO,
				    "step %" PRIu64 ": device \"%s\" refused to launch %s; its "
				    "layers are missing: %.300s",
				    producer->open_step, producer->ops->name, launch,
				    producer->ops->fault(producer->device));
}

static int finish(struct r3ring_producer *producer, r3ring_stream stream)
{
	const struct kernel_end_args args = {
		.control = producer->control,
		.buffer = producer->buffer.base,
		.bells = producer->bells,
		.geometry = producer->geometry,
	};

	if (producer->ops->launch_end(producer->device, stream, &args))
		return device_failed(producer, "the end");
	R3RING_TEST_POINT("engine ended");
	producer->is_open = false;
	return 0;
}

/* ---- the calls -------------------------------------------------------- */

static int refuse(struct r3ring_producer *producer, const struct r3ring_step *step,
		  const char *fault)
{
	return producer_step_failed(producer, -EINVAL,
				    "step_begin: %s (total_rows %u, rows [%u,%u), valid_end %u, "
				    "spans %u, keys %u)",
				    fault, step->total_rows, step->row_begin, step->row_end,
				    step->valid_end, step->spans, step->keys);
}

/* Ends what may be ended and checks the call; 0 when a step may begin. */
static int prepare(struct r3ring_producer *producer, const struct r3ring_step *step,
		   r3ring_stream stream)
{
	const char *fault;
	int ret;

	if (producer->is_open && producer->stream != stream)
		return producer_step_failed(producer, -EBUSY,
					    "step %" PRIu64 " is open on another stream; end it "
					    "there first",
					    producer->open_step);
	if (producer->ops->stream_capturing(producer->device, stream))
		return producer_step_failed(producer, -EINVAL,
					    "step_begin: the stream is being captured into a "
					    "graph; begin steps outside of it");
	if (producer->is_open) {
		ret = finish(producer, stream);
		if (ret)
			return ret;
	}
	fault = step_fault(step);
	if (fault)
		return refuse(producer, step, fault);
	return 0;
}

/*
 * A step that never fits has a number all the same and is counted. Where a record
 * can say what it was it is announced as lost; else it is a gap in the numbers.
 */
static int refuse_too_big(struct r3ring_producer *producer, const struct r3ring_step *step)
{
	uint64_t map_most = lane_largest(producer->steps.bytes) - STEP_HEAD_BYTES;
	uint64_t map_bytes = token_map_bytes(step);
	struct announcement a = {
		.cause = R3RING_CAUSE_TOO_BIG,
		.silent = map_bytes > map_most || step->total_rows > R3RING_ROWS_MAX,
	};
	const char *fault = announce(producer, &a, step);

	if (fault)
		return refuse(producer, step, fault);
	if (step->total_rows > producer->max_rows)
		return producer_step_failed(producer, -EMSGSIZE,
					    "step %" PRIu64 " is too big: total_rows is %u, "
					    "max_rows %u; its routes are lost",
					    a.number, step->total_rows, producer->max_rows);
	return producer_step_failed(producer, -EMSGSIZE,
				    "step %" PRIu64 " is too big: its spans and keys have %" PRIu64
				    " bytes, the queue takes %" PRIu64 "; raise queue_bytes; its "
				    "routes are lost",
				    a.number, map_bytes, map_most);
}

static bool too_long(const struct r3ring_producer *producer, const struct r3ring_step *step)
{
	return STEP_HEAD_BYTES + token_map_bytes(step) > lane_largest(producer->steps.bytes);
}

static bool too_big(const struct r3ring_producer *producer, const struct r3ring_step *step)
{
	return step->total_rows > producer->max_rows || too_long(producer, step);
}

int producer_lose_step(struct r3ring_producer *producer, const struct r3ring_step *step,
		       enum r3ring_cause cause, enum producer_lost_map map)
{
	struct announcement a = {
		.cause = cause,
		.silent = map == PRODUCER_MAP_MERGED || too_long(producer, step),
		.flags = map == PRODUCER_MAP_UNKNOWN ? LANE_CAUSE_MAP_UNKNOWN : 0,
	};
	const char *fault;
	int ret;

	if (!producer_is_own(producer))
		return -ESTALE;
	ret = prepare(producer, step, NULL);
	if (ret)
		return ret;
	fault = announce(producer, &a, step);
	return fault ? refuse(producer, step, fault) : 0;
}

int64_t r3ring_step_begin(struct r3ring_producer *producer, const struct r3ring_step *step,
			  r3ring_stream stream)
{
	struct announcement a = {0};
	const char *fault;
	int ret;

	if (!producer_is_own(producer))
		return -ESTALE;
	ret = prepare(producer, step, stream);
	if (ret)
		return ret;
	if (too_big(producer, step))
		return refuse_too_big(producer, step);

	fault = announce(producer, &a, step);
	if (fault)
		return refuse(producer, step, fault);
	producer->is_open = true;
	producer->open_step = a.number;
	producer->open_slot = a.extent.slot;
	producer->open_dropped = a.cause != 0;
	producer->stream = stream;
	if (arm(producer, &a, step, stream))
		return device_failed(producer, "the beginning");
	R3RING_TEST_POINT("engine armed");
	return (int64_t)a.number;
}

int r3ring_step_end(struct r3ring_producer *producer, r3ring_stream stream)
{
	if (!producer_is_own(producer))
		return -ESTALE;
	if (!producer->is_open)
		return producer_step_failed(producer, -EINVAL,
					    "step_end: no step is open; begin one first");
	if (producer->stream != stream)
		return producer_step_failed(producer, -EBUSY,
					    "step_end: step %" PRIu64 " is open on another stream",
					    producer->open_step);
	if (producer->ops->stream_capturing(producer->device, stream))
		return producer_step_failed(producer, -EINVAL,
					    "step_end: the stream is being captured into a graph; "
					    "end steps outside of it");
	return finish(producer, stream);
}
