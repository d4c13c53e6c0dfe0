/* SPDX-License-Identifier: Apache-2.0 */
/* Doorbells, ROWS, drafts, replicas, and a channel that is opened again. */
#include <criterion/criterion.h>

#include <errno.h>

#include "tests/support/step_rig.h"

#define LAYERS 7u
#define EXPERTS 320u
#define TOP_K 5u
#define ROWS 12u
#define QUIET_MS 50
#define STEPS_ROUND 300u /* more than there are slots of bells */

static struct step_rig rig;

static void start(void)
{
	step_rig_start(&rig, NULL, LAYERS, EXPERTS, TOP_K, 64);
}

static void finish(void)
{
	step_rig_close(&rig);
}

TestSuite(steps_records, .init = start, .fini = finish);

static void expect_whole(const struct step_reader *reader, uint32_t rows)
{
	cr_expect_eq(reader->step.end.status, R3RING_STEP_COMPLETE);
	cr_expect_eq(reader->step.bad_records, 0);
	cr_expect_eq(read_step_all_wrong(reader, 0, rows), 0);
}

/* ---- doorbells ---------------------------------------------------------- */

static int64_t begin_with_doorbell(uint32_t layers)
{
	const struct r3ring_step step = {
		.size = sizeof(step),
		.total_rows = ROWS,
		.row_end = ROWS,
		.valid_end = ROWS,
		.doorbell_layers = layers,
	};

	rig.source.rows = ROWS;
	return r3ring_step_begin(rig.producer, &step, NULL);
}

/* After each layer the reader is told of as many as the interval allows, while the
 * step goes on; the end tells the rest. */
static void expect_doorbells(uint32_t interval)
{
	int64_t step;

	step_rig_open(&rig);
	step = begin_with_doorbell(interval);
	cr_assert(step_reader_begun(&rig.reader, (uint64_t)step));
	for (uint32_t layer = 0; layer < LAYERS; layer++) {
		uint32_t due = (layer + 1) / interval * interval;

		step_rig_capture(&rig, step, layer);
		cr_assert(step_reader_layers(&rig.reader, due));
		cr_expect_not(step_reader_has_more(&rig.reader, due == layer + 1 ? 0 : QUIET_MS),
			      "layer %u was told too early", layer);
	}
	step_rig_end(&rig);
	cr_assert(step_reader_next(&rig.reader));
	expect_whole(&rig.reader, ROWS);
	cr_expect_eq(read_step_records(&rig.reader), LAYERS);
}

Test(steps_records, a_doorbell_for_each_layer_tells_it_while_the_step_runs)
{
	expect_doorbells(1);
}

Test(steps_records, a_doorbell_for_three_layers_tells_three_at_a_time)
{
	expect_doorbells(3);
}

Test(steps_records, without_doorbells_all_layers_are_told_at_the_end)
{
	int64_t step;

	step_rig_open(&rig);
	step = begin_with_doorbell(0);
	for (uint32_t layer = 0; layer < LAYERS; layer++)
		step_rig_capture(&rig, step, layer);
	cr_assert(step_reader_begun(&rig.reader, (uint64_t)step));
	cr_expect_not(step_reader_has_more(&rig.reader, QUIET_MS), "a layer was told too early");
	step_rig_end(&rig);
	cr_assert(step_reader_next(&rig.reader));
	expect_whole(&rig.reader, ROWS);
}

Test(steps_records, a_doorbell_interval_beyond_the_layers_tells_all_at_the_end)
{
	int64_t step;

	step_rig_open(&rig);
	step = begin_with_doorbell(1000);
	for (uint32_t layer = 0; layer < LAYERS; layer++)
		step_rig_capture(&rig, step, layer);
	step_rig_end(&rig);
	cr_assert(step_reader_next(&rig.reader));
	expect_whole(&rig.reader, ROWS);
}

/* ---- ROWS --------------------------------------------------------------- */

static int32_t positions[64], token_ids[64];

static void open_with_rows(void)
{
	rig.options.capture_rows = 1;
	step_rig_open(&rig);
	for (int32_t i = 0; i < 64; i++) {
		positions[i] = 100000 + 3 * i;
		token_ids[i] = 7 + 11 * i;
	}
}

static void run_with_rows(const int32_t *with_positions, const int32_t *with_token_ids)
{
	int64_t step = begin_with_doorbell(0);

	for (uint32_t layer = 0; layer < LAYERS; layer++)
		step_rig_capture(&rig, step, layer);
	cr_assert_eq(r3ring_capture_rows(rig.producer, with_positions, with_token_ids, NULL), 0);
	step_rig_end(&rig);
	cr_assert(step_reader_next(&rig.reader));
	expect_whole(&rig.reader, ROWS);
}

Test(steps_records, positions_and_token_ids_come_as_the_device_had_them)
{
	open_with_rows();
	run_with_rows(positions, token_ids);
	cr_expect_eq(rig.reader.step.rows_content, R3RING_ROWS_POSITIONS | R3RING_ROWS_TOKEN_IDS);
	cr_expect_eq(rig.reader.step.rows_told, ROWS);
	for (uint32_t i = 0; i < ROWS; i++) {
		cr_expect_eq(rig.reader.step.positions[i], 100000 + 3 * (int32_t)i);
		cr_expect_eq(rig.reader.step.token_ids[i], 7 + 11 * (int32_t)i);
	}
}

Test(steps_records, token_ids_stay_out_unless_they_are_given)
{
	open_with_rows();
	/* Of these nothing may be left where room and bells are used again. */
	for (uint32_t i = 0; i < STEPS_ROUND; i++)
		run_with_rows(positions, token_ids);
	for (uint32_t i = 0; i < STEPS_ROUND; i++) {
		run_with_rows(positions, NULL);
		cr_assert_eq(rig.reader.step.rows_content, R3RING_ROWS_POSITIONS);
		cr_assert_eq(rig.reader.step.positions[ROWS - 1], positions[ROWS - 1]);
		cr_assert_eq(rig.reader.step.token_ids[ROWS - 1], 0);
	}
	step_rig_step(&rig, ROWS);
	cr_expect_eq(rig.reader.step.rows_told, 0);
}

Test(steps_records, rows_cannot_be_captured_where_no_room_was_asked_for)
{
	step_rig_open(&rig);
	cr_expect_eq(r3ring_capture_rows(rig.producer, positions, NULL, NULL), -ENOTSUP);
	step_rig_step(&rig, ROWS);
	cr_expect_eq(rig.reader.schema.captures_rows, 0);
	cr_expect_eq(rig.reader.step.rows_told, 0);
}

/* ---- drafts and replicas ------------------------------------------------ */

static struct r3ring_producer *draft;
static struct step_reader draft_reader;

static void close_draft(void)
{
	r3ring_producer_close(draft);
	step_reader_close(&draft_reader);
	finish();
}

/* A draft model of the same layer numbers, with other ids. */
static void draft_step(uint32_t rows)
{
	const struct r3ring_step step = {
		.size = sizeof(step), .total_rows = rows, .row_end = rows, .valid_end = rows};
	struct step_source source = {
		.type = R3RING_INT64, .experts = EXPERTS - 111, .top_k = TOP_K, .rows = rows};
	int64_t number = r3ring_step_begin(draft, &step, NULL);

	for (uint32_t layer = 0; layer < LAYERS; layer++) {
		struct r3ring_topk topk;

		step_source_fill(&source, (uint64_t)number, layer);
		topk = step_source_topk(&source);
		cr_assert_eq(r3ring_capture_layer(draft, layer, &topk, NULL), 0);
	}
	cr_assert_eq(r3ring_step_end(draft, NULL), 0);
	step_source_free(&source);
}

Test(steps_records, failure_13_a_draft_model_beside_the_target_never_mixes_with_it,
     .fini = close_draft)
{
	struct r3ring_producer_options options = rig.options;

	options.draft = 1;
	options.experts = EXPERTS - 111;
	draft = step_rig_open_channel(&rig, &options, &draft_reader);
	step_rig_open(&rig);
	for (uint32_t i = 0; i < 20; i++) {
		int64_t step;

		draft_step(4);
		step = begin_with_doorbell(1);
		for (uint32_t layer = 0; layer < LAYERS; layer++) {
			if (layer == LAYERS / 2)
				draft_step(3); /* within the target's step */
			step_rig_capture(&rig, step, layer);
		}
		step_rig_end(&rig);
		cr_assert(step_reader_next(&rig.reader));
		expect_whole(&rig.reader, ROWS);
		cr_expect_eq(rig.reader.step.head.step, i + 1);
		cr_assert(step_reader_next(&draft_reader));
		expect_whole(&draft_reader, 4);
		cr_assert(step_reader_next(&draft_reader));
		expect_whole(&draft_reader, 3);
		cr_expect_eq(draft_reader.step.head.step, 2 * i + 2);
	}
	cr_expect_eq(draft_reader.schema.experts, EXPERTS - 111);
}

Test(steps_records, failure_47_a_copy_of_another_ranks_rows_is_marked_as_one, .fini = close_draft)
{
	struct r3ring_producer_options options = rig.options;

	options.rank = 1;
	options.replica = 1;
	options.coordinates.tp = (struct r3ring_coordinate){1, 2};
	draft = step_rig_open_channel(&rig, &options, &draft_reader);
	rig.options.coordinates.tp = (struct r3ring_coordinate){0, 2};
	step_rig_open(&rig);
	step_rig_step(&rig, ROWS);
	cr_expect_eq(rig.reader.schema.replica, 0);
	cr_expect_eq(rig.reader.schema.rank.tp.index, 0);
	cr_assert(step_reader_generation(&draft_reader, 1));
	cr_expect_eq(draft_reader.schema.replica, 1);
	cr_expect_eq(draft_reader.schema.rank.tp.index, 1);
	cr_expect_eq(draft_reader.schema.rank.tp.size, 2);
}

/* ---- again -------------------------------------------------------------- */

Test(steps_records, failure_04_a_channel_opened_again_with_other_sizes_is_followed_whole)
{
	uint64_t generation;

	step_rig_open(&rig);
	step_rig_step(&rig, ROWS);
	step_rig_step(&rig, ROWS);
	expect_whole(&rig.reader, ROWS);
	generation = rig.reader.generation;
	for (uint32_t again = 1; again <= 3; again++) {
		r3ring_producer_close(rig.producer);
		rig.options.experts = EXPERTS + again;
		rig.options.top_k = TOP_K + again;
		rig.options.layer_count = LAYERS - again;
		rig.source.experts = rig.options.experts;
		rig.source.top_k = rig.options.top_k;
		rig.producer = step_rig_open_channel(&rig, &rig.options, NULL);
		step_rig_step(&rig, ROWS);
		cr_expect_gt(rig.reader.generation, generation);
		cr_expect_eq(rig.reader.schema.experts, EXPERTS + again);
		cr_expect_eq(rig.reader.schema.top_k, TOP_K + again);
		cr_expect_eq(rig.reader.schema.layers, LAYERS - again);
		/* Numbered from the beginning again. */
		cr_expect_eq(rig.reader.step.head.step, 1);
		expect_whole(&rig.reader, ROWS);
		generation = rig.reader.generation;
	}
}
