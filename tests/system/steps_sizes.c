/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of every size, from none to more rows than are allowed. */
#include <criterion/criterion.h>

#include <errno.h>
#include <string.h>

#include "tests/support/step_rig.h"

#define LAYERS 7u
#define EXPERTS 384u
#define TOP_K 8u

static struct step_rig rig;

static void start(uint32_t max_rows)
{
	step_rig_start(&rig, NULL, LAYERS, EXPERTS, TOP_K, max_rows);
	step_rig_open(&rig);
}

static void finish(void)
{
	step_rig_close(&rig);
}

TestSuite(steps_sizes, .fini = finish);

static void expect_complete(uint32_t rows, uint32_t records_a_layer)
{
	const struct read_step *step = &rig.reader.step;

	cr_expect_eq(step->end.status, R3RING_STEP_COMPLETE);
	cr_expect_eq(step->end.missing, 0);
	cr_expect_eq(step->bad_records, 0);
	cr_expect_eq(step->head.total_rows, rows);
	cr_expect_eq(step->head.row_end, rows);
	cr_expect_eq(read_step_all_wrong(&rig.reader, 0, rows), 0);
	for (uint32_t layer = 0; layer < rig.options.layer_count; layer++) {
		cr_expect_eq(step->layer_records[layer], records_a_layer);
		cr_expect_eq(step->valid_rows[layer], rows);
	}
}

Test(steps_sizes, a_step_without_rows_is_complete)
{
	start(64);
	step_rig_step(&rig, 0);
	expect_complete(0, 1);
}

Test(steps_sizes, a_step_without_a_valid_row_is_complete_and_all_padding)
{
	const struct r3ring_step padding = {
		.size = sizeof(padding), .total_rows = 8, .row_end = 8, .valid_end = 0};
	int64_t step;

	start(64);
	step = r3ring_step_begin(rig.producer, &padding, NULL);
	rig.source.rows = 8;
	for (uint32_t layer = 0; layer < LAYERS; layer++)
		step_rig_capture(&rig, step, layer);
	step_rig_end(&rig);
	cr_assert(step_reader_next(&rig.reader));
	cr_expect_eq(rig.reader.step.end.status, R3RING_STEP_COMPLETE);
	for (uint32_t layer = 0; layer < LAYERS; layer++) {
		cr_expect_eq(rig.reader.step.valid_rows[layer], 0);
		cr_expect_eq(rig.reader.step.ids_missing[layer], 0);
		for (uint32_t row = 0; row < 8; row++)
			cr_expect_eq(read_step_id(&rig.reader, layer, row, 0), R3RING_MISSING);
	}
}

Test(steps_sizes, a_step_of_one_row_is_whole)
{
	start(64);
	step_rig_step(&rig, 1);
	expect_complete(1, 1);
}

Test(steps_sizes, failure_16_a_step_of_exactly_the_most_rows_is_whole)
{
	start(1000);
	step_rig_step(&rig, 1000);
	expect_complete(1000, 1);
}

Test(steps_sizes, failure_16_a_step_of_more_rows_than_a_record_is_split_and_whole)
{
	const uint32_t most = 10000;
	uint32_t parts;

	start(most);
	step_rig_step(&rig, most);
	cr_assert_lt(rig.reader.schema.rows_per_record, most);
	parts = (most + rig.reader.schema.rows_per_record - 1) / rig.reader.schema.rows_per_record;
	expect_complete(most, parts);
	/* Exactly a record full, and one row more. */
	step_rig_step(&rig, rig.reader.schema.rows_per_record);
	expect_complete(rig.reader.schema.rows_per_record, 1);
	step_rig_step(&rig, rig.reader.schema.rows_per_record + 1);
	expect_complete(rig.reader.schema.rows_per_record + 1, 2);
}

Test(steps_sizes, failure_16_a_step_of_more_rows_than_allowed_is_lost_and_never_truncated)
{
	const uint32_t most = 100;
	struct r3ring_producer_stats stats;

	start(most);
	step_rig_step(&rig, 5);
	cr_expect_eq(step_rig_begin(&rig, most + 1), -EMSGSIZE);
	cr_expect(strstr(r3ring_producer_error(rig.producer), "101"), "%s",
		  r3ring_producer_error(rig.producer));
	for (uint32_t layer = 0; layer < LAYERS; layer++)
		step_rig_capture(&rig, 2, layer);
	cr_expect_eq(r3ring_step_end(rig.producer, NULL), -EINVAL);
	cr_assert(step_reader_lost(&rig.reader));
	cr_expect_eq(rig.reader.lost.cause, R3RING_CAUSE_TOO_BIG);
	cr_expect_eq(rig.reader.lost.from_step, 2);
	cr_expect_eq(rig.reader.lost.to_step, 2);
	cr_expect_eq(rig.reader.lost.steps, 1);
	cr_expect_eq(rig.reader.lost.rows, most + 1);
	cr_expect_eq(rig.reader.lost.layer_rows, (most + 1) * LAYERS);
	cr_expect(rig.reader.step.head.flags & R3RING_STEP_DROPPED);
	cr_expect_eq(read_step_records(&rig.reader), 0);
	r3ring_producer_get_stats(rig.producer, &stats);
	cr_expect_eq(stats.dropped_steps[R3RING_CAUSE_TOO_BIG], 1);
	step_rig_step(&rig, most);
	cr_expect_eq(rig.reader.step.head.step, 3);
	expect_complete(most, 1);
	cr_expect_eq(rig.reader.losses, 1);
}

/* 92 layers of 896 experts, 16 a token: 24 MB a step. */
Test(steps_sizes, a_prefill_of_8192_rows_at_the_size_of_kimi_k3_is_whole_by_default)
{
	const uint32_t rows = 8192;

	if (!test_shm_takes(256u << 20))
		cr_skip_test("/dev/shm has less than 256 MiB free");
	step_rig_start(&rig, NULL, 92, 896, 16, rows);
	step_rig_open(&rig);
	rig.source.type = R3RING_INT64;
	step_rig_step(&rig, rows);
	expect_complete(rows, (rows + rig.reader.schema.rows_per_record - 1) /
				      rig.reader.schema.rows_per_record);
	cr_expect_eq(rig.reader.losses, 0);
}
