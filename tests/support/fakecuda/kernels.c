/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernels, as a grid of blocks of threads: the same bodies as on a GPU
 * (kernels/body.h), one thread after another, blocks and threads in any order. What
 * a GPU's barrier separates is separated here (compare kernels/capture.cu): all
 * threads of a block do the first part, then one does the second, then, where bells
 * are due, all ring.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/body.h"
#include "kernels/cuda_kernels.h"
#include "tests/support/fakecuda/runtime.h"

#define KERNELS CUDA_KERNEL_COUNT

union kernel_args {
	const struct extent_control *control; /* all begin with it */
	struct kernel_begin_args begin;
	struct kernel_capture_args capture;
	struct kernel_rows_args rows;
	struct kernel_end_args end;
};

enum part { PART_NONE, PART_COPY, PART_REPORT, PART_RING, PART_OVER };

/* One block at work. */
struct block {
	enum part part;
	uint32_t next, stride; /* the thread that runs next, how far it is to the one after */
	uint32_t ran;          /* of the part */
	uint32_t access;       /* entry of the machine's table */
	struct kernel_launch launch;
	uint32_t from, to;
	struct kernel_tally tally;
};

struct kernel_work {
	enum cuda_kernel which;
	union kernel_args args;     /* as they were given */
	union kernel_args resolved; /* with addresses that can be used */
	struct region *buffer;
	uint64_t buffer_at; /* offset of the buffer in its region */
	uint32_t threads;
	uint32_t blocks, left;
	struct block *block; /* made when it starts */
};

static const char names[KERNELS][16] = {"begin kernel", "capture kernel", "rows kernel",
					"end kernel"};
static const size_t args_bytes[KERNELS] = {
	sizeof(struct kernel_begin_args), sizeof(struct kernel_capture_args),
	sizeof(struct kernel_rows_args), sizeof(struct kernel_end_args)};
static bool is_loaded[KERNELS];

/* ---- by address --------------------------------------------------------- */

const void *cuda_kernel(enum cuda_kernel which)
{
	return names[which];
}

static bool which_of(const void *function, enum cuda_kernel *which)
{
	for (unsigned int i = 0; i < KERNELS; i++) {
		if (function == names[i]) {
			*which = (enum cuda_kernel)i;
			return true;
		}
	}
	return false;
}

bool kernel_is_ours(const void *function)
{
	enum cuda_kernel which;

	return which_of(function, &which);
}

void kernel_load(const void *function, bool capturing, const struct place *place)
{
	enum cuda_kernel which;

	if (!which_of(function, &which) || is_loaded[which])
		return;
	if (capturing)
		findings_add(place, "the code of the %s is loaded while a stream is captured",
			     names[which]);
	is_loaded[which] = true;
}

struct kernel_work *kernel_work_new(const void *function, dim3 grid, dim3 block, void **args,
				    const struct place *place)
{
	struct kernel_work *run = calloc(1, sizeof(*run));

	if (!run || !which_of(function, &run->which))
		abort();
	memcpy(&run->args, args[0], args_bytes[run->which]);
	run->blocks = grid.x * grid.y * grid.z;
	run->threads = block.x * block.y * block.z;
	if (run->which != CUDA_KERNEL_CAPTURE && run->blocks != 1)
		findings_add(place, "the %s runs as %u blocks; its parts need a barrier of all",
			     names[run->which], run->blocks);
	return run;
}

struct kernel_work *kernel_work_copy(const struct kernel_work *run)
{
	struct kernel_work *copy = malloc(sizeof(*copy));

	if (!copy)
		abort();
	*copy = *run;
	copy->block = NULL;
	return copy;
}

void kernel_work_free(struct kernel_work *run)
{
	free(run->block);
	free(run);
}

const char *kernel_work_name(const struct kernel_work *run)
{
	return names[run->which];
}

/* ---- what it uses ------------------------------------------------------- */

static struct extent_control *resolve_control(struct work *work, const struct kernel_work *run,
					      bool write)
{
	return work_use(work, run->args.control, sizeof(struct extent_control), write, false);
}

/* Only of a step that is armed: others know no buffer. */
static uint8_t *resolve_buffer(struct work *work, struct kernel_work *run, const uint8_t *buffer)
{
	uint8_t *usable = work_use(work, buffer, 0, true, false);

	if (!usable)
		return NULL;
	run->buffer = region_of_device(buffer);
	run->buffer_at = (uintptr_t)buffer - run->buffer->device;
	return usable;
}

static uint8_t *resolve_bells(struct work *work, const uint8_t *bells,
			      const struct extent_geometry *g, const struct extent_control *control)
{
	uint64_t bytes = extent_slot_bytes(g->layers);
	uint8_t *slot;

	if (control->offset == EXTENT_NONE)
		return NULL;
	slot = work_use(work, bells + control->slot * bytes, bytes, true, true);
	return slot ? slot - control->slot * bytes : NULL;
}

static bool use_extent(struct work *work, const uint8_t *buffer, uint64_t offset, uint64_t bytes,
		       bool write, bool atomic)
{
	return work_use(work, buffer + offset, bytes, write, atomic) != NULL;
}

static bool start_begin(struct work *work, struct kernel_work *run)
{
	const struct kernel_begin_args *given = &run->args.begin;
	struct kernel_begin_args *args = &run->resolved.begin;

	args->control = resolve_control(work, run, true);
	if (!args->control || given->next.offset == EXTENT_NONE)
		return args->control;
	args->buffer = resolve_buffer(work, run, given->buffer);
	args->bells = resolve_bells(work, given->bells, &given->geometry, &given->next);
	return args->buffer && args->bells &&
	       use_extent(work, given->buffer, given->next.offset,
			  extent_counters_bytes(&given->geometry), true, false);
}

/* The rows that a launch writes, from the first to the last byte. */
static void rows_range(const struct kernel_launch *launch, uint32_t from, uint32_t to,
		       uint64_t *first, uint64_t *last)
{
	const struct extent_geometry *g = &launch->geometry;
	uint32_t rows = kernel_extent_rows(&launch->control);
	uint32_t begin = from - launch->control.row_begin;
	uint32_t end = to - 1 - launch->control.row_begin;

	*first = launch->control.offset + EXTENT_HEAD +
		 extent_part_offset(g, rows, launch->layer, begin / g->rows_per_record) +
		 2ull * (begin % g->rows_per_record) * g->top_k;
	*last = launch->control.offset + EXTENT_HEAD +
		extent_part_offset(g, rows, launch->layer, end / g->rows_per_record) +
		2ull * (end % g->rows_per_record + 1) * g->top_k;
}

static bool layer_is_complete(const struct kernel_launch *launch)
{
	return kernel_counter_load(&kernel_counter(launch->extent, launch->layer)->rows) >=
	       kernel_extent_rows(&launch->control);
}

static bool use_ids(struct work *work, const struct kernel_capture_args *given,
		    struct kernel_capture_args *args, const struct kernel_launch *launch)
{
	uint32_t valid = launch->last < launch->control.valid_end ? launch->last
								  : launch->control.valid_end;
	uint64_t begin, end;
	uint8_t *used;

	if (valid <= launch->first)
		return true;
	begin = (launch->first - launch->source_begin) * given->row_stride;
	end = (valid - 1 - launch->source_begin) * given->row_stride + given->geometry.top_k;
	begin *= kernel_id_bytes(given->type);
	end *= kernel_id_bytes(given->type);
	used = work_use(work, (const uint8_t *)given->ids + begin, end - begin, false, false);
	args->ids = used ? used - begin : NULL;
	return used != NULL;
}

static bool start_capture(struct work *work, struct kernel_work *run)
{
	const struct kernel_capture_args *given = &run->args.capture;
	struct kernel_capture_args *args = &run->resolved.capture;
	struct extent_control *control;
	struct kernel_launch launch;
	uint64_t first, last;

	control = resolve_control(work, run, false);
	args->control = control;
	if (!control || control->offset == EXTENT_NONE)
		return control;
	args->buffer = resolve_buffer(work, run, given->buffer);
	args->bells = resolve_bells(work, given->bells, &given->geometry, control);
	if (!args->buffer || !args->bells)
		return false;
	if (!kernel_capture_plan(args, &launch))
		return true;
	if (!use_ids(work, given, args, &launch))
		return false;
	rows_range(&launch, launch.first, launch.last, &first, &last);
	if (!layer_is_complete(&launch) &&
	    !use_extent(work, given->buffer, first, last - first, true, false))
		return false;
	return use_extent(work, given->buffer,
			  control->offset + given->layer * sizeof(struct extent_counter),
			  sizeof(struct extent_counter), true, true);
}

static bool start_rows(struct work *work, struct kernel_work *run)
{
	const struct kernel_rows_args *given = &run->args.rows;
	struct kernel_rows_args *args = &run->resolved.rows;
	const struct extent_geometry *g = &given->geometry;
	struct extent_control *control;
	uint64_t bytes, first;

	control = resolve_control(work, run, false);
	args->control = control;
	if (!control || control->offset == EXTENT_NONE || !g->captures_rows)
		return control;
	args->buffer = resolve_buffer(work, run, given->buffer);
	bytes = kernel_extent_rows(control) * sizeof(int32_t);
	if (given->positions)
		args->positions = work_use(work, given->positions, bytes, false, false);
	if (given->token_ids)
		args->token_ids = work_use(work, given->token_ids, bytes, false, false);
	if ((given->positions && !args->positions) || (given->token_ids && !args->token_ids))
		return false;
	args->bells = resolve_bells(work, given->bells, g, control);
	first = extent_positions_offset(g, kernel_extent_rows(control));
	return args->buffer && args->bells &&
	       use_extent(work, given->buffer, control->offset + first,
			  extent_bytes(g, kernel_extent_rows(control)) - first, true, false);
}

static bool start_end(struct work *work, struct kernel_work *run)
{
	const struct kernel_end_args *given = &run->args.end;
	struct kernel_end_args *args = &run->resolved.end;

	args->control = resolve_control(work, run, true);
	if (!args->control || args->control->offset == EXTENT_NONE)
		return args->control;
	args->buffer = resolve_buffer(work, run, given->buffer);
	args->bells = resolve_bells(work, given->bells, &given->geometry, args->control);
	return args->buffer && args->bells &&
	       use_extent(work, given->buffer, args->control->offset,
			  extent_counters_bytes(&given->geometry), false, false);
}

static void blocks_make(struct kernel_work *run)
{
	run->block = calloc(run->blocks, sizeof(*run->block));
	if (!run->block)
		abort();
	run->left = run->blocks;
	for (uint32_t i = 0; i < run->blocks; i++) {
		run->block[i].next = executor_chance(run->threads);
		run->block[i].stride = 1;
		/* An odd stride comes past every thread of a power of two. */
		if (!(run->threads & (run->threads - 1)))
			run->block[i].stride = executor_chance(run->threads) | 1;
	}
}

bool kernel_work_start(struct work *work)
{
	static bool (*const start[KERNELS])(struct work *, struct kernel_work *) = {
		start_begin, start_capture, start_rows, start_end};
	struct kernel_work *run = work->u.kernel;

	run->resolved = run->args;
	if (!start[run->which](work, run))
		return false;
	blocks_make(run);
	return true;
}

/* ---- one block ---------------------------------------------------------- */

/* What the block will write of the buffer until it reports; false: nothing. */
static bool block_range(const struct kernel_work *run, const struct block *block, uint64_t *first,
			uint64_t *last)
{
	const struct kernel_begin_args *begin = &run->args.begin;
	const struct kernel_rows_args *rows = &run->resolved.rows;
	const struct extent_geometry *g = &rows->geometry;
	uint32_t count;

	switch (run->which) {
	case CUDA_KERNEL_BEGIN:
		*first = begin->next.offset;
		*last = *first + extent_counters_bytes(&begin->geometry);
		return begin->next.offset != EXTENT_NONE;
	case CUDA_KERNEL_CAPTURE:
		if (block->from == block->to || layer_is_complete(&block->launch))
			return false;
		rows_range(&block->launch, block->from, block->to, first, last);
		return true;
	case CUDA_KERNEL_ROWS:
		if (rows->control->offset == EXTENT_NONE || !g->captures_rows)
			return false;
		count = kernel_extent_rows(rows->control);
		*first = rows->control->offset + extent_positions_offset(g, count);
		*last = rows->control->offset + extent_bytes(g, count);
		return true;
	default:
		return false;
	}
}

static void block_access(const struct work *work, struct block *block)
{
	const struct kernel_work *run = work->u.kernel;
	struct machine_access access = {.write = 1};
	char other[64];
	pid_t pid;

	if (!block_range(run, block, &access.from, &access.to))
		return;
	access.identity = run->buffer->identity;
	access.from += run->buffer_at;
	access.to += run->buffer_at;
	memcpy(access.what, names[run->which], sizeof(names[run->which]));
	pid = machine_access_begin(&access, &block->access, other);
	if (pid)
		findings_add(&work->place,
			     "%s writes memory that %s of process %d uses at the same time",
			     names[run->which], other, pid);
}

static void block_begin(const struct work *work, struct block *block, uint32_t index)
{
	struct kernel_work *run = work->u.kernel;

	block->part = PART_COPY;
	if (run->which == CUDA_KERNEL_CAPTURE) {
		if (!kernel_capture_plan(&run->resolved.capture, &block->launch)) {
			block->part = PART_OVER;
			return;
		}
		kernel_capture_share(&block->launch, index, run->blocks, &block->from, &block->to);
	}
	block_access(work, block);
}

static void thread_copy(const struct kernel_work *run, struct block *block)
{
	const union kernel_args *args = &run->resolved;

	switch (run->which) {
	case CUDA_KERNEL_BEGIN:
		kernel_begin_clear(&args->begin, block->next, run->threads);
		break;
	case CUDA_KERNEL_CAPTURE:
		kernel_capture_copy(&block->launch, block->from, block->to, block->next,
				    run->threads, &block->tally);
		break;
	case CUDA_KERNEL_ROWS:
		kernel_rows_copy(&args->rows, block->next, run->threads);
		break;
	default:
		kernel_end_report(&args->end, block->next, run->threads);
	}
}

/* What one thread does behind the barrier; true: then all ring. */
static bool block_report(const struct kernel_work *run, struct block *block)
{
	const union kernel_args *args = &run->resolved;

	machine_access_end(block->access);
	switch (run->which) {
	case CUDA_KERNEL_BEGIN:
		kernel_begin_arm(&args->begin);
		return false;
	case CUDA_KERNEL_CAPTURE:
		return kernel_capture_report(&block->launch, block->from, block->to, &block->tally);
	case CUDA_KERNEL_ROWS:
		kernel_rows_report(&args->rows);
		return false;
	default:
		kernel_end_disarm(&args->end);
		return false;
	}
}

/* Some threads of a part that all do; true when all have. */
static bool threads_run(const struct kernel_work *run, struct block *block)
{
	uint32_t turns = executor_chance(3) ? run->threads : 1 + executor_chance(run->threads);

	for (; turns && block->ran < run->threads; turns--) {
		if (block->part == PART_COPY)
			thread_copy(run, block);
		else
			kernel_capture_ring(&block->launch, block->next, run->threads);
		block->next = (block->next + block->stride) % run->threads;
		block->ran++;
	}
	if (block->ran < run->threads)
		return false;
	block->ran = 0;
	return true;
}

static void block_run(const struct work *work, struct block *block)
{
	const struct kernel_work *run = work->u.kernel;

	switch (block->part) {
	case PART_NONE:
		block_begin(work, block, (uint32_t)(block - run->block));
		break;
	case PART_COPY:
		if (threads_run(run, block))
			block->part = PART_REPORT;
		break;
	case PART_REPORT:
		block->part = block_report(run, block) ? PART_RING : PART_OVER;
		break;
	case PART_RING:
		if (threads_run(run, block))
			block->part = PART_OVER;
		break;
	case PART_OVER:
		break;
	}
}

static struct block *block_choose(struct kernel_work *run)
{
	uint32_t skip = executor_chance(run->left);

	for (uint32_t i = 0;; i++) {
		if (run->block[i].part != PART_OVER && skip-- == 0)
			return &run->block[i];
	}
}

bool kernel_work_some(struct work *work)
{
	struct kernel_work *run = work->u.kernel;
	struct block *block = block_choose(run);

	block_run(work, block);
	if (block->part != PART_OVER || --run->left)
		return false;
	machine_count_kernel();
	return true;
}
