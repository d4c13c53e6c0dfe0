/* SPDX-License-Identifier: Apache-2.0 */
/* When captures ring, and what their bells say. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <r3ring/producer.h>
#include <r3ring/record.h>

#include "tests/support/capture_rig.h"

static void capture_rows(struct rig *rig, uint32_t layer, uint32_t from, uint32_t to)
{
	int64_t *ids =
		rig_random_ids(rig, R3RING_INT32, (size_t)(to - from) * rig->geometry.top_k, 0);
	struct rig_launch launch = {.layer = layer,
				    .type = R3RING_INT32,
				    .rows = to - from,
				    .row_offset = from,
				    .row_stride = rig->geometry.top_k,
				    .ids = ids};

	rig_capture(rig, &launch);
	free(ids);
}

static bool rung(const struct rig *rig, uint32_t layer)
{
	return rig_bell(rig, layer)->step == rig->next.step;
}

Test(bells, without_an_interval_only_the_end_rings)
{
	struct rig *rig = rig_create(4, 6, 256, 16, 8);

	rig_begin(rig);
	for (uint32_t layer = 0; layer < 4; layer++)
		rig_capture_layer(rig, layer);
	for (uint32_t layer = 0; layer < 4; layer++)
		cr_assert_not(rung(rig, layer));
	rig_end(rig);
	for (uint32_t layer = 0; layer < 4; layer++)
		cr_assert(rung(rig, layer));
	rig_free(rig);
}

Test(bells, the_last_layer_of_an_interval_rings_for_all_of_it)
{
	struct rig *rig = rig_create(5, 6, 256, 16, 8);

	rig->next.doorbell_layers = 2;
	rig_begin(rig);
	for (uint32_t layer = 0; layer < 5; layer++) {
		rig_capture_layer(rig, layer);
		for (uint32_t other = 0; other < 5; other++)
			cr_assert_eq(rung(rig, other), other < (layer + 1) / 2 * 2);
	}
	rig_end(rig);
	cr_assert(rung(rig, 4));
	cr_assert_eq(rig_bell(rig, 4)->rows, 8);
	rig_free(rig);
}

Test(bells, rows_before_a_layers_last_ring_nothing)
{
	struct rig *rig = rig_create(2, 6, 256, 16, 8);

	rig->next.doorbell_layers = 2;
	rig_begin(rig);
	rig_capture_layer(rig, 0);
	capture_rows(rig, 1, 0, 7);
	cr_assert_not(rung(rig, 0));
	capture_rows(rig, 1, 7, 8);
	cr_assert(rung(rig, 0));
	rig_free(rig);
}

Test(bells, a_layer_rings_with_its_last_rows)
{
	struct rig *rig = rig_create(2, 6, 256, 16, 8);

	rig->next.doorbell_layers = 1;
	rig_begin(rig);
	capture_rows(rig, 0, 4, 8);
	cr_assert_not(rung(rig, 0));
	capture_rows(rig, 0, 0, 4);
	cr_assert(rung(rig, 0));
	cr_assert_eq(rig_bell(rig, 0)->rows, 8);
	rig_free(rig);
}

Test(bells, an_incomplete_layer_is_left_out_until_the_end)
{
	struct rig *rig = rig_create(2, 6, 256, 16, 8);

	rig->next.doorbell_layers = 2;
	rig_begin(rig);
	capture_rows(rig, 0, 0, 7);
	capture_rows(rig, 1, 0, 7);
	cr_assert_not(rung(rig, 1));
	capture_rows(rig, 1, 7, 8);
	cr_assert_not(rung(rig, 0));
	cr_assert(rung(rig, 1));
	rig_end(rig);
	cr_assert(rung(rig, 0));
	cr_assert_eq(rig_bell(rig, 0)->rows, 7);
	rig_free(rig);
}

Test(bells, failure_06_a_layer_that_never_came_reports_no_rows)
{
	struct rig *rig = rig_create(3, 6, 256, 16, 8);

	rig_begin(rig);
	rig_capture_layer(rig, 0);
	rig_capture_layer(rig, 2);
	rig_end(rig);
	cr_assert(rung(rig, 1));
	cr_assert_eq(rig_bell(rig, 1)->rows, 0);
	cr_assert_eq(rig_bell(rig, 2)->rows, 8);
	rig_free(rig);
}

Test(bells, failure_07_fewer_rows_than_were_run_are_reported)
{
	struct rig *rig = rig_create(1, 6, 256, 16, 8);

	rig_begin(rig);
	capture_rows(rig, 0, 0, 5);
	rig_end(rig);
	cr_assert_eq(rig_bell(rig, 0)->rows, 5);
	rig_free(rig);
}

Test(bells, failure_09_rows_that_came_twice_are_reported_as_more)
{
	struct rig *rig = rig_create(1, 6, 256, 16, 8);

	rig_begin(rig);
	capture_rows(rig, 0, 0, 8);
	capture_rows(rig, 0, 2, 4);
	rig_end(rig);
	cr_assert_eq(rig_bell(rig, 0)->rows, 10);
	rig_free(rig);
}

/* Ranges of a 6-row layer that add up to 6 rows without
 * covering each row once. */
Test(bells, failure_07_rows_that_came_twice_do_not_stand_in_for_rows_that_never_came)
{
	static const uint32_t cases[][6] = {/* from, to, thrice */
					    {0, 3, 0, 3, 0, 0}, {3, 6, 3, 6, 0, 0},
					    {0, 4, 2, 4, 0, 0}, {0, 2, 0, 2, 4, 6},
					    {1, 3, 2, 4, 3, 5}, {0, 5, 4, 5, 0, 0}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct rig *rig = rig_create(1, 6, 256, 16, 6);

		rig->next.doorbell_layers = 1;
		rig_begin(rig);
		for (size_t range = 0; range < 6; range += 2)
			capture_rows(rig, 0, cases[i][range], cases[i][range + 1]);
		cr_assert_not(rung(rig, 0), "case %zu rang", i);
		rig_end(rig);
		cr_assert_eq(rig_bell(rig, 0)->rows, EXTENT_ROWS_MIXED, "case %zu", i);
		rig_free(rig);
	}
}

Test(bells, a_layer_that_has_rung_is_not_written_again)
{
	struct rig *rig = rig_create(1, 6, 256, 16, 8);
	uint8_t *before = malloc(rig->bytes);

	rig->next.doorbell_layers = 1;
	rig_begin(rig);
	rig_capture_layer(rig, 0);
	memcpy(before, rig->buffer, rig->bytes);
	rig_capture_layer(rig, 0);
	cr_assert_eq(memcmp(before + RIG_GUARD + 64, rig->buffer + RIG_GUARD + 64,
			    rig->bytes - RIG_GUARD - 64),
		     0);
	rig_end(rig);
	cr_assert_eq(rig_bell(rig, 0)->rows, 16);
	free(before);
	rig_free(rig);
}

Test(bells, failure_43_a_bell_of_an_earlier_step_never_counts)
{
	struct rig *rig = rig_create(2, 6, 256, 16, 8);

	rig->next.doorbell_layers = 1;
	for (rig->next.step = 7; rig->next.step <= 8; rig->next.step++) {
		rig_begin(rig);
		rig_capture_layer(rig, 0);
		if (rig->next.step == 7)
			rig_capture_layer(rig, 1);
		cr_assert(rung(rig, 0));
		cr_assert_eq(rung(rig, 1), rig->next.step == 7);
		rig_end(rig);
		cr_assert_eq(rig_bell(rig, 1)->rows, rig->next.step == 7 ? 8 : 0);
		cr_assert_eq(rig_slot(rig)->end_step, rig->next.step);
	}
	rig_free(rig);
}

Test(bells, a_second_end_changes_nothing)
{
	struct rig *rig = rig_create(2, 6, 256, 16, 8);
	uint8_t before[RIG_SLOTS * (64 + 32 * 2)];

	rig_begin(rig);
	rig_capture_layer(rig, 0);
	rig_end(rig);
	memcpy(before, rig->bells, sizeof(before));
	rig_end(rig);
	cr_assert_eq(memcmp(before, rig->bells, sizeof(before)), 0);
	rig_free(rig);
}

Test(bells, begin_and_end_carry_the_step_and_times_in_order)
{
	struct rig *rig = rig_create(2, 6, 256, 16, 8);
	const struct extent_slot *slot = rig_slot(rig);

	rig->next.step = 9;
	rig_begin(rig);
	cr_assert_eq(slot->begin_step, 9);
	cr_assert_neq(slot->end_step, 9);
	rig_end(rig);
	cr_assert_eq(slot->end_step, 9);
	cr_assert_gt(slot->begin_ns, 0);
	cr_assert_geq(slot->end_ns, slot->begin_ns);
	rig_free(rig);
}

Test(bells, other_slots_are_not_touched)
{
	struct rig *rig = rig_create(2, 6, 256, 16, 8);
	const size_t slot_bytes = 64 + 32 * 2;

	rig->next.doorbell_layers = 1;
	rig_begin(rig);
	rig_capture_layer(rig, 0);
	rig_end(rig);
	for (size_t i = 0; i < slot_bytes; i++) {
		cr_assert_eq(rig->bells[i], 0xA5);
		cr_assert_eq(rig->bells[2 * slot_bytes + i], 0xA5);
	}
	rig_free(rig);
}

/* ---- positions and token ids ------------------------------------------ */

static void launch_rows(struct rig *rig, const int32_t *positions, const int32_t *token_ids)
{
	struct kernel_rows_args args = {.control = &rig->control,
					.buffer = rig->buffer,
					.bells = rig->bells,
					.geometry = rig->geometry,
					.positions = positions,
					.token_ids = token_ids};

	kernel_rows_host(&args);
}

Test(rows, positions_and_token_ids_lie_behind_the_layers_and_are_announced)
{
	/* 2 layers of 5 rows x 6 ids: 64 + 2 x (64 + 60 -> 128); then 64 bytes each. */
	const size_t positions_at = 64 + 2 * 128, token_ids_at = positions_at + 64;
	const int32_t positions[5] = {3, 4, 5, 1000, -1}, token_ids[5] = {7, 8, 9, 1, 0};
	struct rig *rig = rig_create(2, 6, 256, 16, 5);
	uint8_t *buffer = realloc(rig->buffer, rig->bytes + 128);

	cr_assert_not_null(buffer);
	rig->buffer = buffer;
	rig->geometry.captures_rows = 1;
	rig_begin(rig);
	cr_assert_neq(rig_slot(rig)->rows_step, 1);
	launch_rows(rig, positions, NULL);
	cr_assert_eq(rig_slot(rig)->rows_step, 1);
	cr_assert_eq(rig_slot(rig)->rows_content, R3RING_ROWS_POSITIONS);
	launch_rows(rig, NULL, token_ids);
	cr_assert_eq(rig_slot(rig)->rows_content, R3RING_ROWS_POSITIONS | R3RING_ROWS_TOKEN_IDS);
	cr_assert_eq(memcmp(rig->buffer + RIG_GUARD + positions_at, positions, 20), 0);
	cr_assert_eq(memcmp(rig->buffer + RIG_GUARD + token_ids_at, token_ids, 20), 0);
	rig_end(rig);
	rig->next.step = 2;
	rig_begin(rig);
	launch_rows(rig, NULL, token_ids);
	cr_assert_eq(rig_slot(rig)->rows_step, 2);
	cr_assert_eq(rig_slot(rig)->rows_content, R3RING_ROWS_TOKEN_IDS);
	rig_free(rig);
}

Test(rows, nothing_is_copied_outside_of_a_step)
{
	const int32_t positions[5] = {3, 4, 5, 1000, -1};
	struct rig *rig = rig_create(2, 6, 256, 16, 5);

	rig->geometry.captures_rows = 1;
	rig_begin(rig);
	rig_end(rig);
	launch_rows(rig, positions, NULL);
	cr_assert_eq(rig_difference(rig), -1);
	cr_assert_eq(rig_slot(rig)->rows_step, 0xA5A5A5A5A5A5A5A5u);
	rig_free(rig);
}

/* ---- two threads ------------------------------------------------------ */

struct half {
	struct kernel_capture_args args;
	pthread_barrier_t *start;
	uint32_t first, rows;
};

static void *capture_half(void *arg)
{
	struct half *half = arg;

	pthread_barrier_wait(half->start);
	for (uint32_t row = half->first; row < half->rows; row += 2) {
		half->args.row_offset = row;
		half->args.rows = 1;
		kernel_capture_host(&half->args);
	}
	return NULL;
}

Test(bells, two_threads_may_capture_parts_of_one_layer)
{
	enum { ROWS = 2001 };
	int64_t *ids = malloc(ROWS * 6 * sizeof(*ids));
	struct rig *rig = rig_create(1, 6, 256, 100, ROWS);
	pthread_barrier_t start;
	struct half halves[2];
	pthread_t threads[2];

	for (size_t i = 0; i < 6; i++)
		ids[i] = i == 5 ? -1 : (int64_t)i;
	rig->next.doorbell_layers = 1;
	rig_begin(rig);
	pthread_barrier_init(&start, NULL, 2);
	for (uint32_t i = 0; i < 2; i++) {
		halves[i] = (struct half){.args = {.control = &rig->control,
						   .buffer = rig->buffer,
						   .bells = rig->bells,
						   .geometry = rig->geometry,
						   .ids = ids,
						   .row_stride = 6,
						   .type = R3RING_INT64},
					  .start = &start,
					  .first = i,
					  .rows = ROWS};
		cr_assert_eq(pthread_create(&threads[i], NULL, capture_half, &halves[i]), 0);
	}
	for (uint32_t i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	cr_assert(rung(rig, 0));
	cr_assert_eq(rig_bell(rig, 0)->rows, ROWS);
	cr_assert_eq(rig_bell(rig, 0)->missing, ROWS);
	free(ids);
	rig_free(rig);
}
