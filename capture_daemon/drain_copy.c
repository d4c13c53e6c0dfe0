/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies from the capture buffer into the ring. Layers lie in an extent as
 * records lie in the arena, so one copy moves a whole run of them; the heads are
 * written over when it is done, and then the records are published.
 */
#include <errno.h>
#include <string.h>
#include <time.h>

#include <r3ring/atomic.h>
#include <test_point.h>

#include "capture_daemon/clock.h"
#include "capture_daemon/drain_copy.h"
#include "capture_daemon/log.h"

#define COPY_NAP_NS 5000
#define COPY_PATIENCE_NS NS_PER_SECOND

static uint32_t smaller(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

bool step_bell(const struct drain *drain, const struct step_work *work, uint32_t layer,
	       struct bell_counts *counts)
{
	const struct extent_bell *bell = pages_bell(work->slot, layer);
	uint32_t ids = work->valid * drain->geometry.top_k;

	/* Pairs with the release of the kernel that rings: the counts and the
	 * layer's ids come before it. */
	if (r3ring_load_acquire_u64(&bell->step) != work->head.step)
		return false;
	counts->rows = r3ring_load_relaxed_u32(&bell->rows);
	counts->missing = smaller(r3ring_load_relaxed_u32(&bell->missing), ids);
	counts->out_of_range =
		smaller(r3ring_load_relaxed_u32(&bell->out_of_range), ids - counts->missing);
	return true;
}

/* ---- moving what is reserved -------------------------------------------- */

static bool follows(const struct drain_part *part, const struct drain_part *before)
{
	uint64_t step = extent_align(before->slot.len);

	return part->from == before->from + step &&
	       (uint8_t *)part->slot.data == (uint8_t *)before->slot.data + step;
}

/* A GPU that hangs must not keep the daemon from ending, nor a dead producer's event
 * the others from being served. */
static bool waits_in_vain(const struct drain *drain, uint64_t since_ns)
{
	return (drain_expired(drain) || !drain_may_copy(drain)) &&
	       clock_now_ns() - since_ns >= COPY_PATIENCE_NS;
}

static int wait_for_copies(struct drain *drain)
{
	const struct timespec nap = {.tv_nsec = COPY_NAP_NS};
	int done = drain->ops->copies_done(drain->device);
	uint64_t since = done ? 0 : clock_now_ns();

	while (done == 0) {
		if (waits_in_vain(drain, since)) {
			drain->ops->give_up(drain->device);
			return -ENOTRECOVERABLE;
		}
		drain_heartbeat(drain);
		clock_nanosleep(CLOCK_MONOTONIC, 0, &nap, NULL);
		done = drain->ops->copies_done(drain->device);
	}
	return done < 0 ? done : 0;
}

/* Those before one that was refused (@error) are under way. Returns the worse. */
static int copies_end(struct drain *drain, int error)
{
	int r;

	if (error == -ENOTRECOVERABLE)
		return error;
	r = wait_for_copies(drain);
	return error && r != -ENOTRECOVERABLE ? error : r;
}

static int copy_runs(struct drain *drain)
{
	const struct drain_part *parts = drain->parts;
	int r = 0;

	for (uint32_t first = 0, end; r == 0 && first < drain->part_count; first = end) {
		const struct drain_part *last;

		for (end = first + 1; end < drain->part_count; end++) {
			if (!follows(&parts[end], &parts[end - 1]))
				break;
		}
		last = &parts[end - 1];
		r = drain->ops->copy(drain->device, parts[first].slot.data, parts[first].from,
				     (size_t)(last->from - parts[first].from) + last->slot.len);
	}
	return copies_end(drain, r);
}

static uint32_t part_valid_rows(const struct drain *drain, const struct step_work *work,
				uint32_t part)
{
	uint32_t first = part * drain->geometry.rows_per_record;
	uint32_t rows = extent_part_rows(&drain->geometry, work->rows, part);

	return work->valid > first ? smaller(work->valid - first, rows) : 0;
}

static void write_head(const struct drain *drain, const struct step_work *work,
		       const struct drain_part *part)
{
	const struct r3ring_layer_entry *entry = &drain->publisher.layers[part->layer];
	const struct r3ring_layer_record head = {
		.step = work->head.step,
		.layer_id = entry->layer_id,
		.layer_index = (uint16_t)part->layer,
		.kind = entry->kind,
		.row = work->head.row_begin + part->part * drain->geometry.rows_per_record,
		.rows = extent_part_rows(&drain->geometry, work->rows, part->part),
		.total_rows = work->head.total_rows,
		.valid_rows = part_valid_rows(drain, work, part->part),
		.missing = part->missing,
		.out_of_range = part->out_of_range,
		.top_k = (uint16_t)drain->geometry.top_k,
	};

	memcpy(part->slot.data, &head, sizeof(head));
}

/* Publishes what is reserved; with every id missing where the copy failed. */
static void commit_parts(struct drain *drain, const struct step_work *work, bool failed)
{
	struct r3ring_totals *totals = &drain->publisher.totals;

	for (uint32_t i = 0; i < drain->part_count; i++) {
		struct drain_part *part = &drain->parts[i];

		if (failed) {
			memset(part->slot.data, 0xFF, part->slot.len);
			part->missing = work->valid * drain->geometry.top_k;
			part->out_of_range = 0;
			drain->layer_state[part->layer] = STEP_LAYER_COPY_FAILED;
		}
		write_head(drain, work, part);
		r3ring_writer_commit(drain->publisher.writer, &part->slot);
		totals->layer_records++;
		if (!drain->publisher.layers[part->layer].bound && !failed)
			r3ring_store_relaxed_u32(&drain->layer_comes[part->layer], 1);
		if (part->part == 0) {
			totals->ids_missing += part->missing;
			totals->ids_out_of_range += part->out_of_range;
		}
	}
}

/* After an error that lasts, what was reserved may still be written to. */
static void note_failure(struct drain *drain, const struct step_work *work, int error)
{
	const char *fault = drain->ops->fault(drain->device);

	log_error("channel %s: step %llu: copy from the buffer failed: %s", drain->label,
		  (unsigned long long)work->head.step, fault[0] ? fault : strerror(-error));
	if (error != -ENOTRECOVERABLE)
		return;
	drain->gpu_lost = true;
	drain->part_count = 0;
}

static void move_parts(struct drain *drain, const struct step_work *work)
{
	int r;

	if (!drain->part_count)
		return;
	r = copy_runs(drain);
	if (r < 0)
		note_failure(drain, work, r);
	if (drain->gpu_lost)
		return;
	R3RING_TEST_POINT("drain copied");
	commit_parts(drain, work, r < 0);
	drain->part_count = 0;
	r3ring_writer_wake(drain->publisher.writer);
}

/* ---- reserving ---------------------------------------------------------- */

static void reserve_part(struct drain *drain, const struct step_work *work, uint32_t layer,
			 uint32_t index, const struct bell_counts *counts)
{
	const struct extent_geometry *g = &drain->geometry;
	struct r3ring_record_spec spec = {
		.step = work->head.step,
		.units = part_valid_rows(drain, work, index),
		.len = EXTENT_HEAD + extent_part_rows(g, work->rows, index) * g->top_k *
					     (uint32_t)sizeof(uint16_t),
		.type = R3RING_LAYER,
	};
	struct drain_part part = {
		.from = work->layers + layer * work->layer_bytes +
			index * extent_part_bytes(g, g->rows_per_record),
		.layer = layer,
		.part = index,
		.missing = counts->missing,
		.out_of_range = counts->out_of_range,
	};

	int r;

	if (drain->part_count == drain->parts_max)
		move_parts(drain, work);
	if (drain->gpu_lost)
		return;
	r = r3ring_writer_reserve(drain->publisher.writer, &spec, &part.slot);
	if (r == -ENOBUFS || r == -EAGAIN) {
		/* What is reserved goes first: before that nobody can make room. */
		move_parts(drain, work);
		r = publisher_reserve(&drain->publisher, &spec, &part.slot);
	}
	if (r < 0) {
		drain_check(drain, r, "LAYER");
		drain->layer_state[layer] = STEP_LAYER_COPY_FAILED;
		return;
	}
	drain->parts[drain->part_count++] = part;
}

/* How many of its parts readers have already. */
static uint32_t parts_said(const struct step_work *work, uint32_t layer)
{
	return work->said ? work->said->layer_parts[layer] : 0;
}

uint32_t step_copy_ready(struct drain *drain, const struct step_work *work)
{
	struct bell_counts counts;
	uint32_t ready = 0;

	for (uint32_t layer = 0; layer < drain->geometry.layers; layer++) {
		if (drain->layer_state[layer] != STEP_LAYER_PENDING ||
		    !step_bell(drain, work, layer, &counts) || counts.rows != work->rows)
			continue;
		drain->layer_state[layer] = STEP_LAYER_COPIED;
		for (uint32_t part = parts_said(work, layer); part < work->parts; part++)
			reserve_part(drain, work, layer, part, &counts);
		if (!ready++ && drain->buffer.kind == R3RING_BUFFER_HOST)
			/* The first goes ahead: readers who sleep wake up to it while the
			 * others, a whole step's mostly, are copied. */
			move_parts(drain, work);
	}
	move_parts(drain, work);
	return ready;
}

/* ---- ROWS --------------------------------------------------------------- */

static void copy_rows_part(struct drain *drain, const struct step_work *work, uint32_t content,
			   uint32_t first, uint32_t rows)
{
	const struct extent_geometry *g = &drain->geometry;
	const struct r3ring_rows_record head = {
		.step = work->head.step,
		.row = work->head.row_begin + first,
		.rows = rows,
		.content = content,
	};
	uint32_t arrays = content == (R3RING_ROWS_POSITIONS | R3RING_ROWS_TOKEN_IDS) ? 2 : 1;
	uint32_t bytes = rows * (uint32_t)sizeof(int32_t);
	struct r3ring_record_spec spec = {
		.step = work->head.step,
		.len = (uint32_t)sizeof(head) + arrays * bytes,
		.type = R3RING_ROWS,
	};
	struct r3ring_slot slot;
	uint8_t *to;
	int r = 0;

	if (publisher_reserve(&drain->publisher, &spec, &slot) < 0)
		return;
	to = (uint8_t *)slot.data + sizeof(head);
	if (content & R3RING_ROWS_POSITIONS) {
		r = drain->ops->copy(drain->device, to,
				     work->extent + extent_positions_offset(g, work->rows) +
					     first * sizeof(int32_t),
				     bytes);
		to += bytes;
	}
	if (r == 0 && (content & R3RING_ROWS_TOKEN_IDS))
		r = drain->ops->copy(drain->device, to,
				     work->extent + extent_token_ids_offset(g, work->rows) +
					     first * sizeof(int32_t),
				     bytes);
	r = copies_end(drain, r);
	if (r < 0)
		note_failure(drain, work, r);
	if (drain->gpu_lost)
		return;
	if (r < 0) /* -1: no position and no token */
		memset(slot.data, 0xFF, slot.len);
	memcpy(slot.data, &head, sizeof(head));
	r3ring_writer_commit(drain->publisher.writer, &slot);
}

void step_copy_rows(struct drain *drain, const struct step_work *work)
{
	const uint32_t both = R3RING_ROWS_POSITIONS | R3RING_ROWS_TOKEN_IDS;
	size_t room = drain->publisher.scratch_bytes - sizeof(struct r3ring_rows_record);
	uint32_t most = (uint32_t)(room / (2 * sizeof(int32_t)));
	uint32_t content;

	/* Pairs with the release of the kernel that copies rows. */
	if (!drain->geometry.captures_rows ||
	    r3ring_load_acquire_u64(&work->slot->rows_step) != work->head.step)
		return;
	content = (uint32_t)r3ring_load_relaxed_u64(&work->slot->rows_content) & both;
	if (!content)
		return;
	for (uint32_t first = work->said ? work->said->rows : 0;
	     first < work->rows && !drain->gpu_lost; first += most)
		copy_rows_part(drain, work, content, first, smaller(work->rows - first, most));
}
