/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernels' bodies: one source for the CPU (host.c) and the GPU (nvcc).
 *
 * A body is run by a team of workers that differ only in (worker, workers): the
 * threads of a block on the GPU, the calling thread alone on the CPU. Where a
 * body has two parts, the second is for one worker, after a barrier of the team.
 * Several teams may share one capture: each copies and reports rows of its own.
 */
#ifndef KERNELS_BODY_H
#define KERNELS_BODY_H

#include <stdbool.h>
#include <stdint.h>

#include <r3ring/producer.h>
#include <r3ring/record.h>

#include "channel/extent.h"
#include "kernels/access.h"
#include "kernels/kernels.h"

/* ---- places ----------------------------------------------------------- */

KERNEL_INLINE uint32_t kernel_extent_rows(const struct extent_control *control)
{
	return control->row_end > control->row_begin ? control->row_end - control->row_begin : 0;
}

KERNEL_INLINE struct extent_slot *kernel_slot(uint8_t *bells, const struct extent_geometry *g,
					      uint32_t slot)
{
	return (struct extent_slot *)(void *)(bells + slot * extent_slot_bytes(g->layers));
}

KERNEL_INLINE struct extent_bell *kernel_bell(struct extent_slot *slot, uint32_t layer)
{
	return (struct extent_bell *)(void *)(slot + 1) + layer;
}

KERNEL_INLINE struct extent_counter *kernel_counter(uint8_t *extent, uint32_t layer)
{
	return (struct extent_counter *)(void *)extent + layer;
}

/* ---- bells ------------------------------------------------------------ */

/* What a layer's counter says; true when every row came exactly once. */
KERNEL_INLINE bool kernel_layer_counts(const struct extent_control *control, uint8_t *extent,
				       uint32_t layer, struct extent_counter *counts)
{
	const struct extent_counter *counter = kernel_counter(extent, layer);
	uint32_t expected = kernel_extent_rows(control);

	/* Acquire: pairs with the add to `rows` in kernel_capture_report(), which
	 * comes after the adds to the other counts and after the ids. */
	counts->rows = kernel_counter_load(&counter->rows);
	counts->missing = kernel_counter_read(&counter->missing);
	counts->out_of_range = kernel_counter_read(&counter->out_of_range);
	counts->coverage = kernel_counter_read(&counter->coverage);
	if (counts->rows != expected)
		return false;
	if (counts->coverage == extent_mark(control->row_end) - extent_mark(control->row_begin))
		return true;
	counts->rows = EXTENT_ROWS_MIXED;
	return false;
}

KERNEL_INLINE void kernel_bell_report(struct extent_bell *bell, uint64_t step,
				      const struct extent_counter *counts)
{
	kernel_bell_store_u32(&bell->rows, counts->rows);
	kernel_bell_store_u32(&bell->missing, counts->missing);
	kernel_bell_store_u32(&bell->out_of_range, counts->out_of_range);
	/* Release: pairs with the daemon's acquire of the bell's step; the counts
	 * and the layer's ids come before it. */
	kernel_bell_ring(&bell->step, step);
}

/* ---- begin ------------------------------------------------------------ */

KERNEL_INLINE void kernel_begin_clear(const struct kernel_begin_args *args, uint32_t worker,
				      uint32_t workers)
{
	if (args->next.offset == EXTENT_NONE)
		return;
	for (uint32_t layer = worker; layer < args->geometry.layers; layer += workers) {
		struct extent_counter *counter =
			kernel_counter(args->buffer + args->next.offset, layer);

		counter->rows = 0;
		counter->missing = 0;
		counter->out_of_range = 0;
		counter->coverage = 0;
	}
}

/* One worker, after all have cleared. */
KERNEL_INLINE void kernel_begin_arm(const struct kernel_begin_args *args)
{
	*args->control = args->next;
	if (args->next.offset != EXTENT_NONE) {
		struct extent_slot *slot =
			kernel_slot(args->bells, &args->geometry, args->next.slot);

		kernel_bell_store_u64(&slot->begin_ns, kernel_clock_ns());
		/* Release: pairs with the daemon's acquire of begin_step. */
		kernel_bell_ring(&slot->begin_step, args->next.step);
	}
}

/* ---- capture ---------------------------------------------------------- */

/* One launch, resolved against the step that is armed. */
struct kernel_launch {
	struct extent_control control;
	struct extent_geometry geometry;
	uint8_t *extent;
	uint8_t *bells;
	const void *ids;
	uint64_t row_stride;
	uint32_t type;
	uint32_t layer;
	uint64_t source_begin; /* the step's row that row 0 of ids is */
	uint32_t first, last;  /* the step's rows to copy: [first, last) */
};

/* Ids of valid rows that are no expert. */
struct kernel_tally {
	uint32_t missing;
	uint32_t out_of_range;
};

/* Rows of a launch that lie one behind another in one record. */
struct kernel_run {
	uint16_t *to;
	const void *ids;
	uint64_t from; /* element of ids that is the run's first */
	uint64_t row_stride;
	uint32_t rows;
	uint32_t top_k;
	uint32_t type;
	uint32_t experts;
};

KERNEL_INLINE uint32_t kernel_id_bytes(uint32_t type)
{
	switch (type) {
	case R3RING_INT16:
	case R3RING_UINT16:
		return 2;
	case R3RING_INT32:
	case R3RING_UINT32:
		return 4;
	default:
		return 8;
	}
}

/*
 * Ids are compared as unsigned words of their width: -1 is the largest, every
 * other negative is beyond the experts. Only int16 is too narrow for that, so
 * its upper half is cut off.
 */
KERNEL_INLINE uint32_t kernel_id_limit(uint32_t type, uint32_t experts)
{
	return type == R3RING_INT16 && experts > 0x8000u ? 0x8000u : experts;
}

KERNEL_INLINE uint64_t kernel_id_missing(uint32_t type)
{
	return UINT64_MAX >> (64 - 8 * kernel_id_bytes(type));
}

/* How ids are converted: by a loop of the CPU's own, or eight at a time. */
#ifndef KERNEL_RUN_CONVERT
#define KERNEL_RUN_CONVERT kernel_run_convert
#include "kernels/convert_wide.h"
#endif

/*
 * Resolves a launch. Returns false when it captures nothing: no step is armed,
 * or none of its rows is this rank's. 64-bit sums: nothing the caller says
 * about rows can lead outside of the extent.
 */
KERNEL_INLINE bool kernel_capture_plan(const struct kernel_capture_args *args,
				       struct kernel_launch *launch)
{
	uint64_t first, last;

	launch->control = *args->control;
	if (launch->control.offset == EXTENT_NONE || args->layer >= args->geometry.layers)
		return false;
	launch->source_begin = (uint64_t)launch->control.first_source_row + args->row_offset;
	first = launch->source_begin;
	last = first + args->rows;
	if (first < launch->control.row_begin)
		first = launch->control.row_begin;
	if (last > launch->control.row_end)
		last = launch->control.row_end;
	if (first >= last)
		return false;
	launch->first = (uint32_t)first;
	launch->last = (uint32_t)last;
	launch->geometry = args->geometry;
	launch->extent = args->buffer + launch->control.offset;
	launch->bells = args->bells;
	launch->ids = args->ids;
	launch->row_stride = args->row_stride;
	launch->type = args->type;
	launch->layer = args->layer;
	return true;
}

/* The rows of team @team: ranges of all teams cover the launch exactly once. */
KERNEL_INLINE void kernel_capture_share(const struct kernel_launch *launch, uint32_t team,
					uint32_t teams, uint32_t *from, uint32_t *to)
{
	uint64_t rows = launch->last - launch->first;

	*from = launch->first + (uint32_t)(rows * team / teams);
	*to = launch->first + (uint32_t)(rows * (team + 1) / teams);
}

KERNEL_INLINE uint32_t kernel_capture_run(const struct kernel_launch *launch, uint32_t from,
					  uint32_t to, uint32_t worker, uint32_t workers,
					  struct kernel_tally *tally)
{
	const struct extent_geometry *g = &launch->geometry;
	const uint32_t row = from - launch->control.row_begin;
	const uint32_t part = row / g->rows_per_record;
	const uint32_t part_row = row % g->rows_per_record;
	uint8_t *ids =
		launch->extent + EXTENT_HEAD +
		extent_part_offset(g, kernel_extent_rows(&launch->control), launch->layer, part);
	uint16_t *target = (uint16_t *)(void *)ids + (uint64_t)part_row * g->top_k;
	uint32_t rows = to - from;

	if (rows > g->rows_per_record - part_row)
		rows = g->rows_per_record - part_row;
	if (from < launch->control.valid_end) {
		if (rows > launch->control.valid_end - from)
			rows = launch->control.valid_end - from;
		struct kernel_run run;

		run.to = target;
		run.ids = launch->ids;
		run.from = (from - launch->source_begin) * launch->row_stride;
		run.row_stride = launch->row_stride;
		run.rows = rows;
		run.top_k = g->top_k;
		run.type = launch->type;
		run.experts = g->experts;
		KERNEL_RUN_CONVERT(&run, worker, workers, tally);
		return rows;
	}
	for (uint64_t i = worker; i < (uint64_t)rows * g->top_k; i += workers)
		target[i] = (uint16_t)R3RING_MISSING;
	return rows;
}

/*
 * Copies the step's rows [from, to) of a launch; adds to this worker's tally. A
 * layer that is complete is not written again, for the daemon may be copying it;
 * the rows still count, as an overlap.
 */
KERNEL_INLINE void kernel_capture_copy(const struct kernel_launch *launch, uint32_t from,
				       uint32_t to, uint32_t worker, uint32_t workers,
				       struct kernel_tally *tally)
{
	const struct extent_counter *counter = kernel_counter(launch->extent, launch->layer);

	if (kernel_counter_read(&counter->rows) >= kernel_extent_rows(&launch->control))
		return;
	while (from < to)
		from += kernel_capture_run(launch, from, to, worker, workers, tally);
}

/*
 * One worker, after its team has copied [from, to): counts the rows. @tally: the
 * team's sum. Returns whether they were the layer's last and the bells of an
 * interval are due: then the whole team rings, after a barrier.
 */
KERNEL_INLINE bool kernel_capture_report(const struct kernel_launch *launch, uint32_t from,
					 uint32_t to, const struct kernel_tally *tally)
{
	struct extent_counter *counter = kernel_counter(launch->extent, launch->layer);
	const uint32_t interval = launch->control.doorbell_layers;
	uint32_t rows;

	if (from == to)
		return false;
	if (tally->missing)
		kernel_counter_add(&counter->missing, tally->missing);
	if (tally->out_of_range)
		kernel_counter_add(&counter->out_of_range, tally->out_of_range);
	kernel_counter_add(&counter->coverage, extent_mark(to) - extent_mark(from));
	/* Release: the ids and the other counts are there before the rows count.
	 * Acquire: whoever reaches the expected rows has all the others' before it. */
	rows = kernel_counter_add(&counter->rows, to - from) + (to - from);
	return interval && rows == kernel_extent_rows(&launch->control) &&
	       (launch->layer + 1) % interval == 0;
}

/* Rings the bells of the interval that the launch's layer completes. */
KERNEL_INLINE void kernel_capture_ring(const struct kernel_launch *launch, uint32_t worker,
				       uint32_t workers)
{
	const uint32_t interval = launch->control.doorbell_layers;
	struct extent_slot *slot =
		kernel_slot(launch->bells, &launch->geometry, launch->control.slot);
	struct extent_counter counts;

	for (uint32_t i = worker; i < interval; i += workers) {
		uint32_t layer = launch->layer - i;

		if (kernel_layer_counts(&launch->control, launch->extent, layer, &counts))
			kernel_bell_report(kernel_bell(slot, layer), launch->control.step, &counts);
	}
}

/* ---- rows ------------------------------------------------------------- */

KERNEL_INLINE void kernel_rows_copy(const struct kernel_rows_args *args, uint32_t worker,
				    uint32_t workers)
{
	const struct extent_geometry *g = &args->geometry;
	const struct extent_control *control = args->control;
	const uint32_t rows = kernel_extent_rows(control);

	if (control->offset == EXTENT_NONE || !g->captures_rows)
		return;
	uint8_t *extent = args->buffer + control->offset;
	int32_t *positions = (int32_t *)(void *)(extent + extent_positions_offset(g, rows));
	int32_t *token_ids = (int32_t *)(void *)(extent + extent_token_ids_offset(g, rows));

	for (uint32_t row = worker; row < rows; row += workers) {
		if (args->positions)
			positions[row] = args->positions[row];
		if (args->token_ids)
			token_ids[row] = args->token_ids[row];
	}
}

/* One worker, after all have copied: says what the extent holds. */
KERNEL_INLINE void kernel_rows_report(const struct kernel_rows_args *args)
{
	const struct extent_control *control = args->control;
	uint64_t content = 0;

	if (control->offset == EXTENT_NONE || !args->geometry.captures_rows)
		return;
	struct extent_slot *slot = kernel_slot(args->bells, &args->geometry, control->slot);

	if (args->positions)
		content |= R3RING_ROWS_POSITIONS;
	if (args->token_ids)
		content |= R3RING_ROWS_TOKEN_IDS;
	if (kernel_bell_load_u64(&slot->rows_step) == control->step)
		content |= kernel_bell_load_u64(&slot->rows_content);
	kernel_bell_store_u64(&slot->rows_content, content);
	/* Release: pairs with the daemon's acquire of rows_step. */
	kernel_bell_ring(&slot->rows_step, control->step);
}

/* ---- end -------------------------------------------------------------- */

KERNEL_INLINE void kernel_end_report(const struct kernel_end_args *args, uint32_t worker,
				     uint32_t workers)
{
	const struct extent_control *control = args->control;
	struct extent_counter counts;

	if (control->offset == EXTENT_NONE)
		return;
	struct extent_slot *slot = kernel_slot(args->bells, &args->geometry, control->slot);

	for (uint32_t layer = worker; layer < args->geometry.layers; layer += workers) {
		kernel_layer_counts(control, args->buffer + control->offset, layer, &counts);
		kernel_bell_report(kernel_bell(slot, layer), control->step, &counts);
	}
}

/* One worker, after all have reported: disarms the captures and says so. */
KERNEL_INLINE void kernel_end_disarm(const struct kernel_end_args *args)
{
	struct extent_control *control = args->control;

	if (control->offset == EXTENT_NONE)
		return;
	struct extent_slot *slot = kernel_slot(args->bells, &args->geometry, control->slot);

	control->offset = EXTENT_NONE;
	kernel_bell_store_u64(&slot->end_ns, kernel_clock_ns());
	/* Release: pairs with the daemon's acquire of end_step; all bells come
	 * before it. */
	kernel_bell_ring(&slot->end_step, control->step);
}

#endif
