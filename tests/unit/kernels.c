/* SPDX-License-Identifier: Apache-2.0 */
/* What a capture writes, compared byte for byte with the rules applied slowly. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <r3ring/producer.h>
#include <r3ring/record.h>

#include "tests/support/capture_rig.h"

/* How a step and its launches are cut; 0 in `batches` reads as one. */
struct shape {
	uint32_t rows, top_k, experts, rows_per_record;
	uint32_t extra_columns;
	uint32_t row_begin, first_source_row; /* rows before the rank's, rows before the ids' */
	uint32_t padding;                     /* last rows of the rank that are no tokens */
	uint32_t batches;
	uint32_t odd;
	uint32_t shift; /* ids before the first, in its array */
};

static void capture_in_batches(struct rig *rig, const struct shape *shape, uint32_t layer,
			       uint32_t type)
{
	const uint32_t batches = shape->batches ? shape->batches : 1;
	const uint32_t source = shape->row_begin + shape->rows + 2 - shape->first_source_row;

	/* Last batch first: only row_offset says where rows belong. */
	for (uint32_t batch = batches; batch-- > 0;) {
		uint32_t from = source * batch / batches, to = source * (batch + 1) / batches;
		int64_t *ids =
			rig_random_ids(rig, type, (size_t)(to - from) * shape->top_k, shape->odd);
		struct rig_launch launch = {.layer = layer,
					    .type = type,
					    .rows = to - from,
					    .row_offset = from,
					    .row_stride = shape->top_k + shape->extra_columns,
					    .ids = ids};

		rig_capture(rig, &launch);
		free(ids);
	}
}

static void expect_equal(const struct shape *shape, uint32_t type, bool by_threads)
{
	struct rig *rig =
		rig_create(3, shape->top_k, shape->experts, shape->rows_per_record, shape->rows);

	rig->by_threads = by_threads;
	rig->shift = shape->shift;
	rig->next.row_begin = shape->row_begin;
	rig->next.row_end = shape->row_begin + shape->rows;
	rig->next.valid_end = rig->next.row_end - shape->padding;
	rig->next.first_source_row = shape->first_source_row;
	rig_begin(rig);
	for (uint32_t layer = 0; layer < 3; layer++)
		capture_in_batches(rig, shape, layer, type);
	rig_end(rig);
	cr_assert_eq(rig_difference(rig), -1, "type %u, threads %d: byte %ld differs", type,
		     by_threads, rig_difference(rig));
	for (uint32_t layer = 0; layer < 3; layer++) {
		const struct extent_counter *counter =
			(const struct extent_counter *)(void *)(rig->image + RIG_GUARD) + layer;
		const struct extent_bell *bell = rig_bell(rig, layer);

		cr_assert_eq(bell->step, 1);
		cr_assert_eq(bell->rows, shape->rows);
		cr_assert_eq(bell->missing, counter->missing);
		cr_assert_eq(bell->out_of_range, counter->out_of_range);
	}
	rig_free(rig);
}

static void expect_equal_for_all(const struct shape *shape)
{
	for (uint32_t type = R3RING_INT16; type <= R3RING_INT64; type++) {
		expect_equal(shape, type, false);
		expect_equal(shape, type, true);
	}
}

Test(kernels, every_id_type_is_narrowed_to_u16)
{
	expect_equal_for_all(
		&(struct shape){.rows = 67, .top_k = 6, .experts = 256, .rows_per_record = 1000});
	expect_equal_for_all(&(struct shape){
		.rows = 33, .top_k = 16, .experts = 65535, .rows_per_record = 1000});
}

/* Each top-k puts rows at other multiples of 16 bytes, each shift the ids. */
Test(kernels, ids_are_captured_whatever_they_are_aligned_to)
{
	for (uint32_t top_k = 1; top_k <= 20; top_k++) {
		for (uint32_t shift = 0; shift <= 8; shift++)
			expect_equal_for_all(&(struct shape){.rows = 23,
							     .top_k = top_k,
							     .experts = 300,
							     .rows_per_record = 9,
							     .extra_columns = shift % 3,
							     .batches = 1 + shift % 2,
							     .odd = 7,
							     .shift = shift});
	}
}

Test(kernels, columns_beyond_top_k_are_ignored)
{
	expect_equal_for_all(&(struct shape){.rows = 29,
					     .top_k = 8,
					     .experts = 384,
					     .rows_per_record = 1000,
					     .extra_columns = 3});
}

Test(kernels, micro_batches_are_placed_by_their_row_offset)
{
	expect_equal_for_all(&(struct shape){.rows = 41,
					     .top_k = 6,
					     .experts = 256,
					     .rows_per_record = 1000,
					     .extra_columns = 1,
					     .batches = 5});
}

Test(kernels, failure_08_a_rank_takes_only_its_own_rows)
{
	expect_equal_for_all(&(struct shape){.rows = 20,
					     .top_k = 6,
					     .experts = 256,
					     .rows_per_record = 7,
					     .row_begin = 20,
					     .batches = 3});
	expect_equal_for_all(&(struct shape){.rows = 20,
					     .top_k = 6,
					     .experts = 256,
					     .rows_per_record = 7,
					     .row_begin = 20,
					     .first_source_row = 13});
}

Test(kernels, failure_28_padding_rows_are_missing_and_not_counted)
{
	for (uint32_t padding = 0; padding <= 10; padding += 5)
		expect_equal_for_all(&(struct shape){.rows = 10,
						     .top_k = 6,
						     .experts = 256,
						     .rows_per_record = 4,
						     .padding = padding,
						     .batches = 2,
						     .odd = 3});
}

Test(kernels, failure_16_a_long_prefill_is_split_over_records)
{
	for (uint32_t rows = 63; rows <= 65; rows++)
		expect_equal_for_all(&(struct shape){.rows = rows,
						     .top_k = 5,
						     .experts = 128,
						     .rows_per_record = 16,
						     .extra_columns = rows % 2,
						     .batches = 3});
}

Test(kernels, failure_05_an_id_that_is_no_expert_is_missing_and_counted)
{
	for (uint32_t experts = 1; experts <= 65535; experts = experts * 7 + 5)
		expect_equal_for_all(&(struct shape){.rows = 50,
						     .top_k = 6,
						     .experts = experts,
						     .rows_per_record = 1000,
						     .odd = 4});
	expect_equal_for_all(&(struct shape){
		.rows = 50, .top_k = 6, .experts = 65535, .rows_per_record = 1000, .odd = 4});
}

Test(kernels, steps_of_one_row_and_of_very_many_rows_are_whole)
{
	expect_equal_for_all(
		&(struct shape){.rows = 1, .top_k = 1, .experts = 1, .rows_per_record = 1});
	expect_equal(&(struct shape){.rows = 5000,
				     .top_k = 16,
				     .experts = 896,
				     .rows_per_record = 1021,
				     .odd = 100},
		     R3RING_INT64, false);
	expect_equal(&(struct shape){.rows = 5000,
				     .top_k = 16,
				     .experts = 896,
				     .rows_per_record = 5000,
				     .odd = 100},
		     R3RING_UINT16, false);
}

Test(kernels, ids_that_are_all_no_expert_are_all_counted)
{
	for (uint32_t type = R3RING_INT16; type <= R3RING_INT64; type++)
		expect_equal(&(struct shape){.rows = 5000,
					     .top_k = 16,
					     .experts = 10,
					     .rows_per_record = 5000,
					     .odd = 1},
			     type, false);
}

Test(kernels, a_step_without_rows_is_complete)
{
	struct rig *rig = rig_create(2, 6, 256, 16, 0);

	rig_begin(rig);
	rig_capture_layer(rig, 0);
	rig_end(rig);
	cr_assert_eq(rig_difference(rig), -1);
	cr_assert_eq(rig_bell(rig, 0)->step, 1);
	cr_assert_eq(rig_bell(rig, 0)->rows, 0);
	cr_assert_eq(rig_slot(rig)->end_step, 1);
	rig_free(rig);
}

Test(kernels, failure_26_minus_one_is_missing_and_no_expert)
{
	int64_t ids[4] = {-1, 255, -1, 0};

	for (uint32_t type = R3RING_INT16; type <= R3RING_INT64; type++) {
		struct rig *rig = rig_create(1, 4, 65535, 16, 1);
		struct rig_launch launch = {.type = type, .rows = 1, .row_stride = 4, .ids = ids};
		const uint16_t *stored = (const uint16_t *)(void *)(rig->buffer + RIG_GUARD + 128);

		rig_begin(rig);
		rig_capture(rig, &launch);
		rig_end(rig);
		cr_assert_eq(stored[0], R3RING_MISSING);
		cr_assert_eq(stored[1], 255);
		cr_assert_eq(stored[2], R3RING_MISSING);
		cr_assert_eq(stored[3], 0);
		cr_assert_eq(rig_bell(rig, 0)->missing, 2);
		cr_assert_eq(rig_bell(rig, 0)->out_of_range, 0);
		rig_free(rig);
	}
}

Test(kernels, failure_01_no_row_number_leads_outside_of_the_extent)
{
	static const uint32_t numbers[] = {0, 1, 7, 8, 9, 1u << 31, UINT32_MAX - 1, UINT32_MAX};
	enum { COUNT = sizeof(numbers) / sizeof(numbers[0]) };
	int64_t ids[40 * 6];

	for (size_t i = 0; i < 40 * 6; i++)
		ids[i] = (int64_t)(i % 250);
	for (size_t i = 0; i < 2 * COUNT * COUNT; i++) {
		struct rig *rig = rig_create(2, 6, 256, 3, 8);
		struct rig_launch launch = {.rows = 40,
					    .type = R3RING_INT32,
					    .row_stride = 6,
					    .row_offset = numbers[i % COUNT],
					    .ids = ids};

		rig->by_threads = i % 2;
		rig->next.first_source_row = numbers[i / 2 / COUNT];
		rig->next.row_begin += 4;
		rig->next.row_end += 4;
		rig_begin(rig);
		rig_capture(rig, &launch);
		cr_assert_eq(rig_difference(rig), -1, "offset %u, source row %u: byte %ld",
			     launch.row_offset, rig->next.first_source_row, rig_difference(rig));
		rig_free(rig);
	}
}

Test(kernels, a_layer_beyond_the_schema_is_not_captured)
{
	struct rig *rig = rig_create(2, 6, 256, 16, 4);
	struct kernel_capture_args args = {.control = &rig->control,
					   .buffer = rig->buffer,
					   .bells = rig->bells,
					   .geometry = rig->geometry,
					   .row_stride = 6,
					   .type = R3RING_INT32,
					   .rows = 4,
					   .layer = 2};

	rig_begin(rig);
	kernel_capture_host(&args);
	cr_assert_eq(rig_difference(rig), -1);
	rig_free(rig);
}

Test(kernels, failure_42_nothing_is_captured_outside_of_a_step)
{
	struct rig *rig = rig_create(2, 6, 256, 16, 4);

	rig_capture_layer(rig, 0);
	cr_assert_eq(rig_difference(rig), -1, "captured before any step");
	rig_begin(rig);
	rig_capture_layer(rig, 0);
	rig_end(rig);
	rig_capture_layer(rig, 1);
	cr_assert_eq(rig_difference(rig), -1, "captured after the end");
	rig_free(rig);
}

Test(kernels, a_dropped_step_captures_nothing_and_rings_nothing)
{
	struct rig *rig = rig_create(2, 6, 256, 16, 4);

	rig->next.offset = EXTENT_NONE;
	rig->next.doorbell_layers = 1;
	rig_begin(rig);
	rig_capture_layer(rig, 0);
	rig_end(rig);
	cr_assert_eq(rig_difference(rig), -1);
	for (size_t i = 0; i < RIG_SLOTS * (64 + 32 * 2); i++)
		cr_assert_eq(rig->bells[i], 0xA5);
	rig_free(rig);
}

Test(kernels, failure_44_a_replay_after_close_reads_nothing_but_the_control_block)
{
	struct rig *rig = rig_create(2, 6, 256, 16, 4);
	void *gone = mmap(NULL, 65536, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct kernel_capture_args args = {.control = &rig->control,
					   .buffer = gone,
					   .bells = gone,
					   .geometry = rig->geometry,
					   .ids = gone,
					   .row_stride = 6,
					   .type = R3RING_INT64,
					   .rows = 4};

	cr_assert_neq(gone, MAP_FAILED);
	rig_begin(rig);
	rig_end(rig);
	kernel_capture_host(&args); /* faults if it touches anything */
	cr_assert_eq(rig->control.offset, EXTENT_NONE);
	rig_free(rig);
}
