/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Capture where engines put it: in full and piecewise CUDA graphs, in sequence-parallel
 * shards, with data-parallel padding, in two micro-batches, beside warm-up and recording
 * passes; each at the sizes of DeepSeek-V4 and Kimi-K3.
 */
#include <criterion/criterion.h>

#include <errno.h>
#include <string.h>

#include "tests/cuda/fixture.h"
#include "tests/cuda/gpu_rig.h"
#include "tests/support/fakecuda/fakecuda.h"

#define BATCH 32u

static struct gpu_rig rig, second;

static void finish(void)
{
	if (second.options.size)
		gpu_rig_close(&second);
	gpu_rig_close(&rig);
}

TestSuite(cuda_placement, .fini = finish, .timeout = 60);

static void start(const struct gpu_model *model)
{
	gpu_rig_start(&rig, model, BATCH, NULL);
}

/* The same test for both models. */
#define TEST_BOTH(name)                                                                            \
	static void name(void);                                                                    \
	MACHINE_TEST(cuda_placement, name##_of_deepseek_v4)                                        \
	{                                                                                          \
		start(&gpu_deepseek_v4);                                                           \
		name();                                                                            \
	}                                                                                          \
	MACHINE_TEST(cuda_placement, name##_of_kimi_k3)                                            \
	{                                                                                          \
		start(&gpu_kimi_k3);                                                               \
		name();                                                                            \
	}                                                                                          \
	static void name(void)

static void begin(const struct r3ring_step *step)
{
	cr_assert_eq(gpu_begin(&rig, step), (int64_t)rig.steps, "%s",
		     r3ring_producer_error(rig.producer));
}

/* ---- graphs ------------------------------------------------------------- */

/* A graph of the whole forward of @rows rows, with ids from an area of its own. */
static cudaGraphExec_t record_forward(uint32_t area, uint32_t rows)
{
	gpu_record_begin(&rig);
	gpu_forward(&rig, area, 0, rows, rig.stream);
	return gpu_record_end(&rig);
}

static void replay(cudaGraphExec_t exec)
{
	cr_assert_eq(cudaGraphLaunch(exec, rig.stream), cudaSuccess);
}

/* One step through a graph of @batch rows, @valid of them tokens. */
static void step_by_graph(cudaGraphExec_t exec, uint32_t area, uint32_t batch, uint32_t valid)
{
	struct r3ring_step step = gpu_plain_step(batch);

	step.valid_end = valid;
	step.flags = R3RING_STEP_GRAPH;
	step.doorbell_layers = 8;
	gpu_fill(&rig, area, rig.steps + 1, 0, batch);
	begin(&step);
	replay(exec);
	gpu_end(&rig);
	gpu_filled(&rig, area, rig.stream);
}

TEST_BOTH(full_graphs_capture_the_step_of_each_replay)
{
	static const uint32_t batches[] = {8, 16, BATCH};
	cudaGraphExec_t graphs[3];

	gpu_rig_open(&rig);
	for (uint32_t i = 0; i < 3; i++)
		graphs[i] = record_forward(i, batches[i]);
	for (uint32_t i = 0; i < 24; i++) {
		uint32_t which = i * 7 % 3;
		uint32_t valid = batches[which] - i % 5;

		step_by_graph(graphs[which], which, batches[which], valid);
		gpu_expect_step(&rig, rig.steps, 0, valid, batches[which]);
		cr_expect(rig.reader.step.head.flags & R3RING_STEP_GRAPH);
	}
}

/* The rows of a step are fewer than those that the graph was recorded for. */
TEST_BOTH(a_graph_of_more_rows_than_the_step_has_captures_its_rows_only)
{
	cudaGraphExec_t graph;

	gpu_rig_open(&rig);
	graph = record_forward(0, BATCH);
	for (uint32_t rows = 1; rows <= BATCH; rows += 6) {
		struct r3ring_step step = gpu_plain_step(rows);

		gpu_fill(&rig, 0, rig.steps + 1, 0, BATCH);
		begin(&step);
		replay(graph);
		gpu_end(&rig);
		gpu_filled(&rig, 0, rig.stream);
		gpu_expect_step(&rig, rig.steps, 0, rows, rows);
	}
}

TEST_BOTH(piecewise_graphs_capture_each_layer_in_its_piece)
{
	cudaGraphExec_t pieces[STEP_READER_LAYERS];
	struct r3ring_step step = gpu_plain_step(BATCH);

	gpu_rig_open(&rig);
	step.doorbell_layers = 1;
	for (uint32_t layer = 0; layer < rig.options.layer_count; layer++) {
		gpu_record_begin(&rig);
		gpu_layer(&rig, 0, layer, 0, BATCH, rig.stream);
		pieces[layer] = gpu_record_end(&rig);
	}
	for (uint32_t i = 0; i < 6; i++) {
		gpu_fill(&rig, 0, rig.steps + 1, 0, BATCH);
		begin(&step);
		for (uint32_t layer = 0; layer < rig.options.layer_count; layer++) {
			replay(pieces[layer]);
			/* stands for the attention, which is not in a graph */
			gpu_order(rig.forked, rig.stream, rig.other);
			gpu_order(rig.joined, rig.other, rig.stream);
		}
		gpu_end(&rig);
		gpu_filled(&rig, 0, rig.stream);
		gpu_expect_step(&rig, rig.steps, 0, BATCH, BATCH);
	}
}

MACHINE_TEST(cuda_placement, a_graph_that_is_recorded_within_a_step_captures_when_it_is_replayed)
{
	struct r3ring_step step = gpu_plain_step(BATCH);
	cudaGraphExec_t graph;

	start(&gpu_small);
	gpu_rig_open(&rig);
	gpu_fill(&rig, 0, 1, 0, BATCH);
	begin(&step);
	graph = record_forward(0, BATCH);
	replay(graph);
	gpu_end(&rig);
	gpu_expect_step(&rig, 1, 0, BATCH, BATCH);
}

MACHINE_TEST(cuda_placement, steps_do_not_begin_or_end_while_a_graph_is_recorded)
{
	struct r3ring_step step = gpu_plain_step(BATCH);

	start(&gpu_small);
	gpu_rig_open(&rig);
	gpu_record_begin(&rig);
	cr_expect_eq(gpu_begin(&rig, &step), -EINVAL);
	gpu_record_end(&rig);
	begin(&step);
	gpu_record_begin(&rig);
	cr_expect_eq(r3ring_step_end(rig.producer, rig.stream), -EINVAL);
	gpu_record_end(&rig);
	gpu_fill(&rig, 0, 1, 0, BATCH);
	gpu_forward(&rig, 0, 0, BATCH, rig.stream);
	gpu_end(&rig);
	gpu_expect_step(&rig, 1, 0, BATCH, BATCH);
}

MACHINE_TEST(cuda_placement, a_side_stream_is_left_out_while_a_graph_is_recorded)
{
	cudaGraphExec_t graph;

	start(&gpu_small);
	rig.options.side_stream = 1;
	gpu_rig_open(&rig);
	graph = record_forward(0, BATCH);
	for (uint32_t i = 0; i < 20; i++) {
		step_by_graph(graph, 0, BATCH, BATCH);
		gpu_expect_step(&rig, rig.steps, 0, BATCH, BATCH);
	}
}

/* ---- passes that are no steps ------------------------------------------- */

static uint64_t kernels_so_far(void)
{
	return machine_is_real() ? 0 : fakecuda_work().kernels;
}

TEST_BOTH(failure_28_warm_up_and_recording_passes_publish_nothing)
{
	cudaGraphExec_t graph;
	uint64_t kernels;

	gpu_rig_open(&rig);
	kernels = kernels_so_far();
	gpu_fill(&rig, 0, 77, 0, BATCH);
	gpu_forward(&rig, 0, 0, BATCH, rig.stream);
	graph = record_forward(0, BATCH);
	gpu_wait(rig.stream);
	if (!machine_is_real())
		cr_expect_eq(kernels_so_far() - kernels, rig.options.layer_count);
	replay(graph); /* a warm-up of the graph */
	gpu_wait(rig.stream);
	cr_expect_not(step_reader_has_more(&rig.reader, 0) && rig.reader.step.head.step);
	gpu_run(&rig, 2, BATCH, 4);
	cr_expect_eq(rig.reader.losses, 0);
	step_by_graph(graph, 0, BATCH, BATCH);
	gpu_expect_step(&rig, 3, 0, BATCH, BATCH);
}

MACHINE_TEST(cuda_placement, failure_28_a_warm_up_step_is_told_as_one)
{
	struct r3ring_step step = gpu_plain_step(BATCH);

	start(&gpu_small);
	gpu_rig_open(&rig);
	step.flags = R3RING_STEP_WARMUP;
	gpu_fill(&rig, 0, 1, 0, BATCH);
	begin(&step);
	gpu_forward(&rig, 0, 0, BATCH, rig.stream);
	gpu_end(&rig);
	gpu_expect_step(&rig, 1, 0, BATCH, BATCH);
	cr_expect(rig.reader.step.head.flags & R3RING_STEP_WARMUP);
}

/* ---- parts of a batch --------------------------------------------------- */

TEST_BOTH(failure_28_data_parallel_padding_is_missing_and_no_load)
{
	struct r3ring_step step = gpu_plain_step(BATCH);

	gpu_rig_open(&rig);
	for (uint32_t valid = 0; valid <= BATCH; valid += 8) {
		step.valid_end = valid;
		step.doorbell_layers = 3;
		gpu_fill(&rig, 0, rig.steps + 1, 0, BATCH);
		begin(&step);
		gpu_forward(&rig, 0, 0, BATCH, rig.stream);
		gpu_end(&rig);
		gpu_filled(&rig, 0, rig.stream);
		gpu_expect_step(&rig, rig.steps, 0, valid, BATCH);
		for (uint32_t layer = 0; layer < rig.options.layer_count; layer++)
			cr_assert_eq(rig.reader.step.valid_rows[layer], valid);
	}
}

/* One rank's step: it has the ids of its own rows only. */
static void shard_step(struct gpu_rig *rank, uint32_t begin_row, uint32_t end_row)
{
	struct r3ring_step step = gpu_plain_step(BATCH);

	step.row_begin = begin_row;
	step.row_end = end_row;
	step.first_source_row = begin_row;
	step.doorbell_layers = 2;
	gpu_fill(rank, 0, rank->steps + 1, begin_row, end_row - begin_row);
	cr_assert_gt(gpu_begin(rank, &step), 0);
	gpu_forward(rank, 0, 0, end_row - begin_row, rank->stream);
	gpu_end(rank);
	gpu_filled(rank, 0, rank->stream);
}

TEST_BOTH(failure_8_sequence_parallel_shards_tell_which_rows_they_are)
{
	gpu_rig_open(&rig);
	fakecuda_serving(false);
	gpu_rig_join(&second, &rig, 1);
	gpu_rig_open(&second);
	for (uint32_t i = 0; i < 4; i++) {
		uint32_t cut = BATCH / 2 - i;

		shard_step(&rig, 0, cut);
		shard_step(&second, cut, BATCH);
		gpu_expect_step(&rig, rig.steps, 0, cut, cut);
		cr_expect_eq(read_step_came(&rig.reader, 0, cut, BATCH), 0);
		gpu_expect_step(&second, second.steps, cut, BATCH, BATCH);
		cr_expect_eq(read_step_came(&second.reader, 0, 0, cut), 0);
		cr_expect_eq(second.reader.step.head.total_rows, BATCH);
	}
}

/* Both halves of the batch, layer by layer, each on a stream of its own. */
static void forward_in_two(uint32_t area, uint32_t cut)
{
	gpu_order(rig.forked, rig.stream, rig.other);
	for (uint32_t layer = 0; layer < rig.options.layer_count; layer++) {
		gpu_layer(&rig, area, layer, 0, cut, rig.stream);
		gpu_layer(&rig, area, layer, cut, BATCH, rig.other);
	}
	gpu_order(rig.joined, rig.other, rig.stream);
}

TEST_BOTH(two_micro_batches_on_two_streams_complete_the_layers_together)
{
	struct r3ring_step step = gpu_plain_step(BATCH);

	gpu_rig_open(&rig);
	step.doorbell_layers = 1;
	for (uint32_t i = 0; i < 8; i++) {
		gpu_fill(&rig, i % GPU_AREAS, rig.steps + 1, 0, BATCH);
		begin(&step);
		forward_in_two(i % GPU_AREAS, 1 + i * 4);
		gpu_end(&rig);
		gpu_filled(&rig, i % GPU_AREAS, rig.stream);
		gpu_expect_step(&rig, rig.steps, 0, BATCH, BATCH);
	}
}

TEST_BOTH(two_micro_batches_in_one_graph_complete_the_layers_together)
{
	cudaGraphExec_t graph;

	gpu_rig_open(&rig);
	gpu_record_begin(&rig);
	forward_in_two(0, 11);
	graph = gpu_record_end(&rig);
	for (uint32_t i = 0; i < 8; i++) {
		step_by_graph(graph, 0, BATCH, BATCH - i);
		gpu_expect_step(&rig, rig.steps, 0, BATCH - i, BATCH);
	}
}

MACHINE_TEST(cuda_placement, two_micro_batches_that_nothing_orders_are_found)
{
	struct r3ring_step step = gpu_plain_step(BATCH);

	start(&gpu_small);
	gpu_rig_open(&rig);
	for (uint32_t i = 0; i < 10; i++) {
		gpu_fill(&rig, i % GPU_AREAS, rig.steps + 1, 0, BATCH);
		begin(&step);
		gpu_forward(&rig, i % GPU_AREAS, 0, 16, rig.stream);
		gpu_forward(&rig, i % GPU_AREAS, 16, BATCH, rig.other);
		gpu_end(&rig);
		gpu_order(rig.joined, rig.other, rig.stream);
		gpu_filled(&rig, i % GPU_AREAS, rig.stream);
	}
	gpu_wait(rig.stream);
	machine_expect("missing dependency");
}
