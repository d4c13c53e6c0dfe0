/* SPDX-License-Identifier: Apache-2.0 */
/* Ids of every type and shape, and ids that are none. */
#include <criterion/criterion.h>

#include <string.h>

#include <jansson.h>

#include "tests/support/command.h"
#include "tests/support/step_rig.h"

#define LAYERS 5u
#define EXPERTS 500u
#define TOP_K 6u
#define ROWS 37u

static struct step_rig rig;
static struct command status;

static void start(void)
{
	step_rig_start(&rig, NULL, LAYERS, EXPERTS, TOP_K, 64);
	step_rig_open(&rig);
}

static void finish(void)
{
	command_free(&status);
	step_rig_close(&rig);
}

TestSuite(steps_ids, .init = start, .fini = finish);

static void expect_whole(uint32_t rows)
{
	cr_expect_eq(rig.reader.step.end.status, R3RING_STEP_COMPLETE);
	cr_expect_eq(read_step_all_wrong(&rig.reader, 0, rows), 0);
	for (uint32_t layer = 0; layer < LAYERS; layer++) {
		cr_expect_eq(rig.reader.step.ids_missing[layer], 0);
		cr_expect_eq(rig.reader.step.ids_out_of_range[layer], 0);
	}
}

static void expect_type(uint32_t type)
{
	rig.source.type = type;
	step_rig_step(&rig, ROWS);
	expect_whole(ROWS);
}

Test(steps_ids, int16_ids_arrive_as_they_were)
{
	expect_type(R3RING_INT16);
}

Test(steps_ids, uint16_ids_arrive_as_they_were)
{
	expect_type(R3RING_UINT16);
}

Test(steps_ids, int32_ids_arrive_as_they_were)
{
	expect_type(R3RING_INT32);
}

Test(steps_ids, uint32_ids_arrive_as_they_were)
{
	expect_type(R3RING_UINT32);
}

Test(steps_ids, int64_ids_arrive_as_they_were)
{
	expect_type(R3RING_INT64);
}

Test(steps_ids, columns_beyond_top_k_are_ignored_in_every_type)
{
	rig.source.columns = TOP_K + 2;
	for (uint32_t type = R3RING_INT16; type <= R3RING_INT64; type++)
		expect_type(type);
}

Test(steps_ids, a_row_stride_larger_than_the_columns_is_kept_in_every_type)
{
	rig.source.columns = TOP_K + 1;
	rig.source.row_stride = TOP_K + 9;
	for (uint32_t type = R3RING_INT16; type <= R3RING_INT64; type++)
		expect_type(type);
}

static int64_t begin_padded(uint32_t total, uint32_t valid)
{
	const struct r3ring_step step = {
		.size = sizeof(step), .total_rows = total, .row_end = total, .valid_end = valid};

	rig.source.rows = total;
	return r3ring_step_begin(rig.producer, &step, NULL);
}

Test(steps_ids, failure_28_padding_rows_are_empty_and_neither_valid_nor_missing)
{
	int64_t step = begin_padded(ROWS + 11, ROWS);

	for (uint32_t layer = 0; layer < LAYERS; layer++)
		step_rig_capture(&rig, step, layer);
	step_rig_end(&rig);
	cr_assert(step_reader_next(&rig.reader));
	expect_whole(ROWS);
	for (uint32_t layer = 0; layer < LAYERS; layer++) {
		cr_expect_eq(rig.reader.step.valid_rows[layer], ROWS);
		cr_expect_eq(read_step_came(&rig.reader, layer, ROWS, ROWS + 11), 11);
		for (uint32_t row = ROWS; row < ROWS + 11; row++) {
			for (uint32_t k = 0; k < TOP_K; k++)
				cr_expect_eq(read_step_id(&rig.reader, layer, row, k),
					     R3RING_MISSING);
		}
	}
}

/* ---- ids that are none -------------------------------------------------- */

struct odd_id {
	uint32_t row, k;
	int64_t id;
};

/* One step whose layer 2 has ids that are none in some places. */
static void run_with(uint32_t type, const struct odd_id *odd, size_t count)
{
	int64_t step;

	rig.source.type = type;
	step = step_rig_begin(&rig, ROWS);
	for (uint32_t layer = 0; layer < LAYERS; layer++) {
		struct r3ring_topk topk;

		step_source_fill(&rig.source, (uint64_t)step, layer);
		for (size_t i = 0; layer == 2 && i < count; i++)
			step_source_put(&rig.source, odd[i].row, odd[i].k, odd[i].id);
		topk = step_source_topk(&rig.source);
		cr_assert_eq(r3ring_capture_layer(rig.producer, layer, &topk, NULL), 0);
	}
	step_rig_end(&rig);
	cr_assert(step_reader_next(&rig.reader));
}

/* The odd ones are missing; all others are as they were. */
static void expect_only_missing(const struct odd_id *odd, size_t count)
{
	for (uint32_t row = 0; row < ROWS; row++) {
		for (uint32_t k = 0; k < TOP_K; k++) {
			uint16_t expected =
				step_source_id(rig.reader.step.head.step, 2, row, k, EXPERTS);

			for (size_t i = 0; i < count; i++) {
				if (odd[i].row == row && odd[i].k == k)
					expected = R3RING_MISSING;
			}
			cr_expect_eq(read_step_id(&rig.reader, 2, row, k), expected,
				     "row %u, k %u: %u", row, k,
				     read_step_id(&rig.reader, 2, row, k));
		}
	}
	for (uint32_t layer = 0; layer < LAYERS; layer++) {
		if (layer != 2)
			cr_expect_eq(read_step_wrong(&rig.reader, layer, 0, ROWS), 0);
	}
}

static json_t *channel_status(json_t **root)
{
	json_t *channel;
	size_t i;

	cr_assert_eq(
		command_run(&status, rig.daemon.dir, (const char *[]){"status", "--json", NULL}), 0,
		"%s", status.err);
	*root = json_loads(status.out, 0, NULL);
	cr_assert(*root);
	json_array_foreach (json_object_get(*root, "channels"), i, channel) {
		if (!strcmp(json_string_value(json_object_get(channel, "channel")), rig.channel))
			return channel;
	}
	cr_assert_fail("the channel is not in: %s", status.out);
	return NULL;
}

static void expect_status(bool flagged, json_int_t missing, json_int_t out_of_range)
{
	json_t *root;
	const json_t *channel = channel_status(&root);

	cr_expect_eq(json_is_true(json_object_get(channel, "flagged")), flagged);
	cr_expect_eq(json_integer_value(json_object_get(channel, "ids_missing")), missing);
	cr_expect_eq(json_integer_value(json_object_get(channel, "ids_out_of_range")),
		     out_of_range);
	json_decref(root);
	command_free(&status);
}

Test(steps_ids, failure_05_an_id_that_is_no_expert_is_missing_counted_and_flags_the_channel)
{
	const struct odd_id odd[] = {{0, 0, EXPERTS},
				     {3, 5, EXPERTS + 1},
				     {ROWS - 1, 2, 65534},
				     {9, 1, -2},
				     {10, 4, 65535}};

	run_with(R3RING_INT32, NULL, 0);
	expect_whole(ROWS);
	expect_status(false, 0, 0);
	run_with(R3RING_INT32, odd, 5);
	expect_only_missing(odd, 5);
	cr_expect_eq(rig.reader.step.ids_out_of_range[2], 5);
	cr_expect_eq(rig.reader.step.ids_missing[2], 0);
	cr_expect_eq(rig.reader.step.end.status, R3RING_STEP_COMPLETE);
	expect_status(true, 0, 5);
	command_run(&status, rig.daemon.dir, (const char *[]){"status", NULL});
	cr_expect(strstr(status.out, "OUT OF RANGE 5"), "%s", status.out);
}

Test(steps_ids, failure_05_an_id_whose_low_bits_are_an_expert_is_out_of_range_all_the_same)
{
	const struct odd_id odd[] = {{1, 1, 0x100000007}, {2, 2, 0x10007}, {3, 3, INT64_MIN}};

	run_with(R3RING_INT64, odd, 3);
	expect_only_missing(odd, 3);
	cr_expect_eq(rig.reader.step.ids_out_of_range[2], 3);
	run_with(R3RING_UINT32, odd + 1, 1);
	expect_only_missing(odd + 1, 1);
	cr_expect_eq(rig.reader.step.ids_out_of_range[2], 1);
}

Test(steps_ids, failure_26_minus_one_is_missing_in_every_signed_type_and_no_fault)
{
	const struct odd_id odd[] = {{0, 0, -1}, {0, 1, -1}, {20, 5, -1}};
	const uint32_t types[] = {R3RING_INT16, R3RING_INT32, R3RING_INT64, R3RING_UINT16};

	for (size_t i = 0; i < 4; i++) {
		run_with(types[i], odd, 3);
		expect_only_missing(odd, 3);
		cr_expect_eq(rig.reader.step.ids_missing[2], 3);
		cr_expect_eq(rig.reader.step.ids_out_of_range[2], 0);
		cr_expect_eq(rig.reader.step.end.status, R3RING_STEP_COMPLETE);
	}
	expect_status(false, 4 * 3, 0);
}
