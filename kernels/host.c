/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels' CPU twins: a team of one worker, with vector code for the ids. */
#include "kernels/convert.h"
#include "kernels/kernels.h"

struct kernel_run;
struct kernel_tally;
static void run_convert(const struct kernel_run *run, uint32_t worker, uint32_t workers,
			struct kernel_tally *tally);

#define KERNEL_RUN_CONVERT run_convert
#include "kernels/body.h"

/* Ids that lie one behind another. Returns how many are no expert. */
static size_t ids_convert(uint16_t *to, const struct kernel_run *run, uint64_t from, size_t count)
{
	const uint32_t limit = kernel_id_limit(run->type, run->experts);

	switch (kernel_id_bytes(run->type)) {
	case 2:
		return convert_ids_u16(to, (const uint16_t *)run->ids + from, count,
				       (uint16_t)limit);
	case 4:
		return convert_ids_u32(to, (const uint32_t *)run->ids + from, count, limit);
	default:
		return convert_ids_u64(to, (const uint64_t *)run->ids + from, count, limit);
	}
}

static bool id_is_missing(const struct kernel_run *run, uint64_t element)
{
	switch (kernel_id_bytes(run->type)) {
	case 2:
		return ((const uint16_t *)run->ids)[element] == UINT16_MAX;
	case 4:
		return ((const uint32_t *)run->ids)[element] == UINT32_MAX;
	default:
		return ((const uint64_t *)run->ids)[element] == UINT64_MAX;
	}
}

/* Rare, so it looks at the ids a second time. */
static uint32_t missing_count(const struct kernel_run *run, uint64_t from, size_t count)
{
	uint32_t missing = 0;

	for (size_t i = 0; i < count; i++)
		missing += id_is_missing(run, from + i);
	return missing;
}

static void ids_capture(uint16_t *to, const struct kernel_run *run, uint64_t from, size_t count,
			struct kernel_tally *tally)
{
	size_t refused = ids_convert(to, run, from, count);

	if (refused) {
		uint32_t missing = missing_count(run, from, count);

		tally->missing += missing;
		tally->out_of_range += (uint32_t)refused - missing;
	}
}

static void run_convert(const struct kernel_run *run, uint32_t worker, uint32_t workers,
			struct kernel_tally *tally)
{
	if (run->row_stride == run->top_k) {
		if (worker == 0)
			ids_capture(run->to, run, run->from, (size_t)run->rows * run->top_k, tally);
		return;
	}
	for (uint32_t row = worker; row < run->rows; row += workers)
		ids_capture(run->to + (size_t)row * run->top_k, run,
			    run->from + row * run->row_stride, run->top_k, tally);
}

void kernel_begin_host(const struct kernel_begin_args *args)
{
	kernel_begin_clear(args, 0, 1);
	kernel_begin_arm(args);
}

void kernel_capture_host(const struct kernel_capture_args *args)
{
	struct kernel_tally tally = {0};
	struct kernel_launch launch;

	if (!kernel_capture_plan(args, &launch))
		return;
	kernel_capture_copy(&launch, launch.first, launch.last, 0, 1, &tally);
	if (kernel_capture_report(&launch, launch.first, launch.last, &tally))
		kernel_capture_ring(&launch, 0, 1);
}

void kernel_rows_host(const struct kernel_rows_args *args)
{
	kernel_rows_copy(args, 0, 1);
	kernel_rows_report(args);
}

void kernel_end_host(const struct kernel_end_args *args)
{
	kernel_end_report(args, 0, 1);
	kernel_end_disarm(args);
}
