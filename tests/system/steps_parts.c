/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of which one launch, one stream or one rank has only a part. */
#include <criterion/criterion.h>

#include <stdio.h>

#include <r3ring/host_stream.h>

#include "tests/support/step_rig.h"

#define LAYERS 4u
#define EXPERTS 256u
#define TOP_K 6u
#define ROWS 30u
#define VALID 27u
#define RANKS 3u

static struct step_rig rig;

static void start(void)
{
	step_rig_start(&rig, NULL, LAYERS, EXPERTS, TOP_K, 64);
}

static void finish(void)
{
	step_rig_close(&rig);
}

TestSuite(steps_parts, .init = start, .fini = finish);

/* ---- ranks of one step -------------------------------------------------- */

static const uint32_t bounds[RANKS + 1] = {0, 11, 19, ROWS};

struct rank {
	struct r3ring_producer *producer;
	struct step_reader reader;
};

static struct rank ranks[RANKS];

static void open_ranks(void)
{
	for (uint32_t i = 0; i < RANKS; i++) {
		struct r3ring_producer_options options = rig.options;

		options.rank = i;
		options.coordinates.sp = (struct r3ring_coordinate){(uint16_t)i, RANKS};
		ranks[i].producer = step_rig_open_channel(&rig, &options, &ranks[i].reader);
	}
}

static void close_ranks(void)
{
	for (uint32_t i = 0; i < RANKS; i++) {
		r3ring_producer_close(ranks[i].producer);
		step_reader_close(&ranks[i].reader);
	}
	finish();
}

/* Row 0 of the rank's matrices is row @first_source_row of the step. */
static void run_rank(uint32_t rank, uint32_t first_source_row, uint32_t rows)
{
	const struct r3ring_step step = {
		.size = sizeof(step),
		.total_rows = ROWS,
		.row_begin = bounds[rank],
		.row_end = bounds[rank + 1],
		.valid_end = VALID,
		.first_source_row = first_source_row,
	};
	int64_t number = r3ring_step_begin(ranks[rank].producer, &step, NULL);

	cr_assert_gt(number, 0);
	rig.source.first_row = first_source_row;
	rig.source.rows = rows;
	for (uint32_t layer = 0; layer < LAYERS; layer++) {
		struct r3ring_topk topk;

		step_source_fill(&rig.source, (uint64_t)number, layer);
		topk = step_source_topk(&rig.source);
		cr_assert_eq(r3ring_capture_layer(ranks[rank].producer, layer, &topk, NULL), 0);
	}
	cr_assert_eq(r3ring_step_end(ranks[rank].producer, NULL), 0);
	cr_assert(step_reader_next(&ranks[rank].reader));
}

/* Each rank told its own rows and no other; together they are the whole step. */
static void expect_shards(void)
{
	for (uint32_t i = 0; i < RANKS; i++) {
		const struct step_reader *reader = &ranks[i].reader;
		uint32_t end = bounds[i + 1] < VALID ? bounds[i + 1] : VALID;

		cr_expect_eq(reader->schema.rank.sp.index, i);
		cr_expect_eq(reader->schema.rank.sp.size, RANKS);
		cr_expect_eq(reader->step.head.total_rows, ROWS);
		cr_expect_eq(reader->step.head.row_begin, bounds[i]);
		cr_expect_eq(reader->step.head.row_end, bounds[i + 1]);
		cr_expect_eq(reader->step.end.status, R3RING_STEP_COMPLETE);
		cr_expect_eq(reader->step.bad_records, 0);
		cr_expect_eq(read_step_all_wrong(reader, bounds[i], end), 0);
		for (uint32_t layer = 0; layer < LAYERS; layer++) {
			cr_expect_eq(reader->step.valid_rows[layer], end - bounds[i]);
			cr_expect_eq(read_step_came(reader, layer, 0, bounds[i]), 0);
			cr_expect_eq(read_step_came(reader, layer, bounds[i], bounds[i + 1]),
				     bounds[i + 1] - bounds[i]);
			cr_expect_eq(read_step_came(reader, layer, bounds[i + 1], ROWS), 0);
		}
	}
}

Test(steps_parts, failure_08_ranks_that_route_only_their_rows_say_which_of_how_many,
     .fini = close_ranks)
{
	open_ranks();
	for (uint32_t i = 0; i < RANKS; i++)
		run_rank(i, bounds[i], bounds[i + 1] - bounds[i]);
	expect_shards();
}

Test(steps_parts, failure_08_ranks_that_route_all_rows_capture_only_their_own, .fini = close_ranks)
{
	open_ranks();
	for (uint32_t i = 0; i < RANKS; i++)
		run_rank(i, 0, ROWS);
	expect_shards();
}

Test(steps_parts, failure_08_a_rank_without_rows_is_complete_and_tells_none, .fini = close_ranks)
{
	const struct r3ring_step step = {
		.size = sizeof(step),
		.total_rows = ROWS,
		.row_begin = 12,
		.row_end = 12,
		.valid_end = VALID,
	};

	open_ranks();
	cr_assert_eq(r3ring_step_begin(ranks[0].producer, &step, NULL), 1);
	cr_assert_eq(r3ring_step_end(ranks[0].producer, NULL), 0);
	cr_assert(step_reader_next(&ranks[0].reader));
	cr_expect_eq(ranks[0].reader.step.end.status, R3RING_STEP_COMPLETE);
	cr_expect_eq(ranks[0].reader.step.head.total_rows, ROWS);
	for (uint32_t layer = 0; layer < LAYERS; layer++)
		cr_expect_eq(read_step_came(&ranks[0].reader, layer, 0, ROWS), 0);
}

/* ---- micro-batches ------------------------------------------------------ */

#define MICRO_BATCHES 3u
#define STEPS 40u

struct micro_batches {
	struct r3ring_host_stream *streams[MICRO_BATCHES];
	struct r3ring_host_event *begun, *done[MICRO_BATCHES];
	/* Kept until all is done: the streams read them later. */
	struct step_source sources[MICRO_BATCHES][LAYERS];
};

static struct micro_batches micro;
static const uint32_t micro_bounds[MICRO_BATCHES + 1] = {0, 9, 10, ROWS};

static void open_streams(void)
{
	step_rig_open(&rig);
	cr_assert_eq(r3ring_host_event_create(&micro.begun), 0);
	for (uint32_t i = 0; i < MICRO_BATCHES; i++) {
		cr_assert_eq(r3ring_host_stream_create(&micro.streams[i]), 0);
		cr_assert_eq(r3ring_host_event_create(&micro.done[i]), 0);
		for (uint32_t layer = 0; layer < LAYERS; layer++) {
			micro.sources[i][layer] = rig.source;
			micro.sources[i][layer].first_row = micro_bounds[i];
			micro.sources[i][layer].row_offset = micro_bounds[i];
			micro.sources[i][layer].rows = micro_bounds[i + 1] - micro_bounds[i];
		}
	}
}

static void close_streams(void)
{
	/* It waits for the stream of its newest step. */
	r3ring_producer_close(rig.producer);
	rig.producer = NULL;
	for (uint32_t i = 0; i < MICRO_BATCHES; i++) {
		r3ring_host_stream_destroy(micro.streams[i]);
		r3ring_host_event_destroy(micro.done[i]);
		for (uint32_t layer = 0; layer < LAYERS; layer++)
			step_source_free(&micro.sources[i][layer]);
	}
	r3ring_host_event_destroy(micro.begun);
	finish();
}

/* The micro-batch's rows of all layers, on its own stream. */
static void capture_micro_batch(uint32_t batch, int64_t step)
{
	r3ring_host_event_wait(micro.begun, micro.streams[batch]);
	for (uint32_t layer = 0; layer < LAYERS; layer++) {
		struct step_source *source = &micro.sources[batch][layer];
		struct r3ring_topk topk;

		step_source_fill(source, (uint64_t)step, layer);
		topk = step_source_topk(source);
		cr_assert_eq(r3ring_capture_layer(rig.producer, layer, &topk, micro.streams[batch]),
			     0);
	}
	r3ring_host_event_record(micro.done[batch], micro.streams[batch]);
	r3ring_host_event_wait(micro.done[batch], micro.streams[0]);
}

static void run_micro_batches(uint32_t doorbell_layers)
{
	const struct r3ring_step step = {
		.size = sizeof(step),
		.total_rows = ROWS,
		.row_end = ROWS,
		.valid_end = VALID,
		.doorbell_layers = doorbell_layers,
	};
	int64_t number = r3ring_step_begin(rig.producer, &step, micro.streams[0]);

	cr_assert_gt(number, 0);
	r3ring_host_event_record(micro.begun, micro.streams[0]);
	for (uint32_t batch = MICRO_BATCHES; batch-- > 0;)
		capture_micro_batch(batch, number);
	cr_assert_eq(r3ring_step_end(rig.producer, micro.streams[0]), 0);
	r3ring_host_stream_synchronize(micro.streams[0]);
}

Test(steps_parts, micro_batches_on_streams_of_their_own_make_one_whole_step, .fini = close_streams)
{
	open_streams();
	for (uint32_t i = 0; i < STEPS; i++) {
		run_micro_batches(i % 3);
		cr_assert(step_reader_next(&rig.reader));
		cr_expect_eq(rig.reader.step.end.status, R3RING_STEP_COMPLETE);
		cr_expect_eq(rig.reader.step.bad_records, 0);
		cr_expect_eq(read_step_all_wrong(&rig.reader, 0, VALID), 0);
		cr_expect_eq(rig.reader.step.valid_rows[0], VALID);
	}
}

Test(steps_parts, a_micro_batch_that_never_ran_makes_every_layer_missing, .fini = close_streams)
{
	const struct r3ring_step step = {
		.size = sizeof(step), .total_rows = ROWS, .row_end = ROWS, .valid_end = ROWS};
	int64_t number;

	open_streams();
	number = r3ring_step_begin(rig.producer, &step, micro.streams[0]);
	r3ring_host_event_record(micro.begun, micro.streams[0]);
	capture_micro_batch(0, number);
	capture_micro_batch(2, number);
	cr_assert_eq(r3ring_step_end(rig.producer, micro.streams[0]), 0);
	r3ring_host_stream_synchronize(micro.streams[0]);
	cr_assert(step_reader_next(&rig.reader));
	cr_expect_eq(rig.reader.step.end.missing, LAYERS);
	for (uint32_t i = 0; i < LAYERS; i++) {
		cr_expect_eq(rig.reader.step.missing[i].cause, R3RING_CAUSE_TOO_FEW_ROWS);
		cr_expect_eq(rig.reader.step.missing[i].captured, ROWS - 1);
		cr_expect_eq(rig.reader.step.layer_records[i], 0);
	}
}
