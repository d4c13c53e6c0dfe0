/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of docs/FAILURES.md that the CUDA path could break, on it. */
#include <criterion/criterion.h>

#include <string.h>

#include "tests/cuda/fixture.h"
#include "tests/cuda/gpu_rig.h"
#include "tests/support/fakecuda/fakecuda.h"

#define BATCH 16u

static struct gpu_rig rig;

static void finish(void)
{
	gpu_rig_close(&rig);
}

TestSuite(cuda_faults, .fini = finish, .timeout = 60);

static void start(void)
{
	gpu_rig_start(&rig, &gpu_small, BATCH, NULL);
}

static void begin(const struct r3ring_step *step)
{
	cr_assert_eq(gpu_begin(&rig, step), (int64_t)rig.steps, "%s",
		     r3ring_producer_error(rig.producer));
}

/* A step whose ids are in area 0 and may still be spoiled. */
static void prepare_step(void)
{
	gpu_fill(&rig, 0, rig.steps + 1, 0, BATCH);
}

static void run_prepared_step(void)
{
	struct r3ring_step step = gpu_plain_step(BATCH);

	begin(&step);
	gpu_forward(&rig, 0, 0, BATCH, rig.stream);
	gpu_end(&rig);
	gpu_filled(&rig, 0, rig.stream);
}

static void read_partial(uint32_t missing)
{
	cr_assert(step_reader_next(&rig.reader));
	cr_assert_eq(rig.reader.step.head.step, rig.steps);
	cr_expect_eq(rig.reader.step.end.status, R3RING_STEP_PARTIAL);
	cr_assert_eq(rig.reader.step.end.missing, missing);
	cr_expect_eq(gpu_wrong_ids(&rig, 0, rig.reader.step.head.total_rows), 0);
}

/* ---- 2 and 19: the engine never waits ----------------------------------- */

MACHINE_TEST(cuda_faults, failures_2_and_19_a_gpu_that_stands_still_holds_nobody_up)
{
	struct r3ring_producer_stats stats;
	uint64_t ended;

	start();
	gpu_rig_open(&rig);
	for (uint32_t area = 0; area < GPU_AREAS; area++)
		gpu_fill(&rig, area, area + 1, 0, BATCH);
	fakecuda_pause(true);
	for (uint32_t i = 0; i < 200; i++) {
		struct r3ring_step step = gpu_plain_step(BATCH);

		begin(&step);
		gpu_forward(&rig, i % GPU_AREAS, 0, BATCH, rig.stream);
		gpu_end(&rig);
	}
	fakecuda_pause(false);
	r3ring_producer_get_stats(rig.producer, &stats);
	ended = stats.steps - stats.dropped_steps[R3RING_CAUSE_BUFFER_FULL];
	cr_expect_gt(stats.dropped_steps[R3RING_CAUSE_BUFFER_FULL], 0);
	cr_expect_gt(ended, GPU_AREAS);
	for (uint64_t i = 0; i < ended; i++) {
		cr_assert(step_reader_next(&rig.reader));
		cr_expect_eq(rig.reader.step.end.status, R3RING_STEP_COMPLETE);
	}
}

static bool is_allowed(const char *call)
{
	static const char *const allowed[] = {
		"cudaLaunchKernel",    "cudaStreamIsCapturing", "cudaEventRecord",
		"cudaStreamWaitEvent", "cudaGetDevice",         "cudaSetDevice",
	};

	for (size_t i = 0; i < sizeof(allowed) / sizeof(*allowed); i++) {
		if (strcmp(call, allowed[i]) == 0)
			return true;
	}
	return false;
}

/* Runs steps without the engine's own calls in between; what was called is r3ring's. */
static void expect_allowed_calls_only(void)
{
	unsigned int before[128] = {0};
	const struct r3ring_topk topk = {
		.ids = rig.ids,
		.type = rig.source.type,
		.rows = BATCH,
		.columns = rig.source.top_k,
		.row_stride = rig.source.top_k,
	};
	struct r3ring_step step = gpu_plain_step(BATCH);

	for (unsigned int i = 0; fakecuda_called(i); i++)
		before[i] = fakecuda_calls(fakecuda_called(i));
	for (unsigned int i = 0; i < 3; i++) {
		begin(&step);
		for (uint32_t layer = 0; layer < rig.options.layer_count; layer++)
			r3ring_capture_layer(rig.producer, layer, &topk, rig.stream);
		gpu_end(&rig);
	}
	for (unsigned int i = 0; fakecuda_called(i); i++) {
		const char *call = fakecuda_called(i);

		if (fakecuda_calls(call) != before[i])
			cr_expect(is_allowed(call), "%s is called between open and close", call);
	}
}

MACHINE_TEST(cuda_faults, failure_19_between_open_and_close_nothing_synchronises_or_allocates)
{
	start();
	gpu_rig_open(&rig);
	expect_allowed_calls_only();
}

MACHINE_TEST(cuda_faults, failure_19_nor_does_it_with_a_side_stream_and_the_order_by_event)
{
	start();
	rig.options.side_stream = 1;
	rig.options.order = "event";
	gpu_rig_open(&rig);
	expect_allowed_calls_only();
}

MACHINE_TEST(cuda_faults, the_engines_current_gpu_is_what_it_was)
{
	int device = -1;

	setenv("FAKECUDA_GPUS", "2", 1);
	start();
	gpu_rig_open(&rig);
	cr_assert_eq(cudaSetDevice(1), cudaSuccess);
	cr_assert_eq(gpu_begin(&rig, &(struct r3ring_step){.size = sizeof(struct r3ring_step)}), 1);
	gpu_end(&rig);
	cr_assert_eq(cudaGetDevice(&device), cudaSuccess);
	cr_expect_eq(device, 1);
	fakecuda_serving(false);
	r3ring_producer_close(rig.producer);
	rig.producer = NULL;
	cr_assert_eq(cudaGetDevice(&device), cudaSuccess);
	cr_expect_eq(device, 1);
}

/* ---- 5 to 8: what came, and what did not -------------------------------- */

MACHINE_TEST(cuda_faults, failure_5_ids_that_are_no_expert_are_counted_and_missing)
{
	start();
	gpu_rig_open(&rig);
	prepare_step();
	gpu_put(&rig, 0, 2, 3, 1, rig.source.experts);
	gpu_put(&rig, 0, 2, 7, 0, 1000000);
	gpu_put(&rig, 0, 2, 9, 2, -1);
	run_prepared_step();
	cr_assert(step_reader_next(&rig.reader));
	cr_expect_eq(rig.reader.step.ids_out_of_range[2], 2);
	cr_expect_eq(rig.reader.step.ids_missing[2], 1);
	cr_expect_eq(read_step_id(&rig.reader, 2, 3, 1), R3RING_MISSING);
	cr_expect_eq(read_step_id(&rig.reader, 2, 7, 0), R3RING_MISSING);
	cr_expect_eq(read_step_id(&rig.reader, 2, 9, 2), R3RING_MISSING);
	cr_expect_eq(read_step_wrong(&rig.reader, 2, 0, BATCH), 3);
	cr_expect_eq(gpu_wrong_ids(&rig, 0, 3), 0);
}

MACHINE_TEST(cuda_faults, failure_6_a_layer_that_never_came_is_missing_and_not_zero)
{
	struct r3ring_step step = gpu_plain_step(BATCH);

	start();
	gpu_rig_open(&rig);
	prepare_step();
	begin(&step);
	for (uint32_t layer = 0; layer < rig.options.layer_count; layer++) {
		if (layer != 3)
			gpu_layer(&rig, 0, layer, 0, BATCH, rig.stream);
	}
	gpu_end(&rig);
	read_partial(1);
	cr_expect_eq(rig.reader.step.missing[0].layer_id, 3 + 3);
	cr_expect_eq(rig.reader.step.missing[0].cause, R3RING_CAUSE_NOT_CAPTURED);
	cr_expect_eq(read_step_came(&rig.reader, 3, 0, BATCH), 0);
}

MACHINE_TEST(cuda_faults, failure_7_rows_that_are_fewer_than_were_run_are_told)
{
	struct r3ring_step step = gpu_plain_step(BATCH);

	start();
	gpu_rig_open(&rig);
	prepare_step();
	begin(&step);
	for (uint32_t layer = 0; layer < rig.options.layer_count; layer++)
		gpu_layer(&rig, 0, layer, 0, layer == 1 ? BATCH - 1 : BATCH, rig.stream);
	gpu_end(&rig);
	read_partial(1);
	cr_expect_eq(rig.reader.step.missing[0].cause, R3RING_CAUSE_TOO_FEW_ROWS);
	cr_expect_eq(rig.reader.step.missing[0].captured, BATCH - 1);
	cr_expect_eq(rig.reader.step.missing[0].expected, BATCH);
}

MACHINE_TEST(cuda_faults, failure_8_rows_that_came_twice_in_place_of_others_are_no_whole_layer)
{
	struct r3ring_step step = gpu_plain_step(BATCH);

	start();
	gpu_rig_open(&rig);
	prepare_step();
	step.doorbell_layers = 1;
	begin(&step);
	for (uint32_t layer = 0; layer < rig.options.layer_count; layer++) {
		gpu_layer(&rig, 0, layer, 0, BATCH / 2, rig.stream);
		gpu_layer(&rig, 0, layer, layer == 4 ? 0 : BATCH / 2,
			  layer == 4 ? BATCH / 2 : BATCH, rig.stream);
	}
	gpu_end(&rig);
	read_partial(1);
	cr_expect_eq(rig.reader.step.missing[0].cause, R3RING_CAUSE_OVERLAP);
}

/* ---- 12: no slot is used again before it was copied --------------------- */

MACHINE_TEST(cuda_faults, failure_12_an_extent_is_used_again_only_when_its_copy_is_done)
{
	struct r3ring_producer_stats stats;
	uint64_t ended;

	gpu_rig_start(&rig, &gpu_kimi_k3, 64, NULL);
	rig.options.buffer_bytes = rig.options.buffer_bytes / 16 * 2; /* two steps */
	gpu_rig_open(&rig);
	for (uint32_t i = 0; i < 60; i++)
		gpu_step(&rig, 64, 4);
	r3ring_producer_get_stats(rig.producer, &stats);
	ended = stats.steps - stats.dropped_steps[R3RING_CAUSE_BUFFER_FULL];
	cr_assert_gt(ended, 1);
	for (uint64_t i = 0; i < ended; i++) {
		cr_assert(step_reader_next(&rig.reader));
		cr_expect_eq(rig.reader.step.end.status, R3RING_STEP_COMPLETE);
		cr_expect_eq(read_step_all_wrong(&rig.reader, 0, 64), 0);
	}
}

/* ---- 16: any number of rows --------------------------------------------- */

MACHINE_TEST(cuda_faults, failure_16_a_step_larger_than_agreed_is_lost_and_never_truncated)
{
	struct r3ring_step large = gpu_plain_step(BATCH + 1);

	start();
	gpu_rig_open(&rig);
	cr_expect_lt(gpu_begin(&rig, &large), 0);
	prepare_step();
	gpu_forward(&rig, 0, 0, BATCH, rig.stream);
	gpu_wait(rig.stream);
	cr_assert(step_reader_lost(&rig.reader));
	cr_expect_eq(rig.reader.lost.cause, R3RING_CAUSE_TOO_BIG);
	rig.steps = 1;
	gpu_run(&rig, 2, BATCH, 1);
}

/* ---- 42 to 44: nothing outside of its step ------------------------------ */

MACHINE_TEST(cuda_faults, failure_42_a_forward_that_no_step_announced_leaves_no_trace)
{
	start();
	gpu_rig_open(&rig);
	for (uint32_t i = 0; i < 5; i++) {
		gpu_run(&rig, 2, BATCH, 1);
		gpu_fill(&rig, 0, 1234, 0, BATCH);
		gpu_forward(&rig, 0, 0, BATCH, rig.stream);
		gpu_filled(&rig, 0, rig.stream);
	}
	cr_expect_eq(rig.reader.losses, 0);
}

MACHINE_TEST(cuda_faults, failure_43_a_bell_of_the_slots_former_step_is_not_taken_for_this_ones)
{
	struct r3ring_step step = gpu_plain_step(1);

	start();
	gpu_rig_open(&rig);
	step.doorbell_layers = 1;
	gpu_run(&rig, 300, 1, 1); /* more than there are slots */
	for (uint32_t i = 0; i < 20; i++) {
		uint32_t left_out = i % rig.options.layer_count;

		gpu_fill(&rig, 0, rig.steps + 1, 0, 1);
		begin(&step);
		for (uint32_t layer = 0; layer < rig.options.layer_count; layer++) {
			if (layer != left_out)
				gpu_layer(&rig, 0, layer, 0, 1, rig.stream);
		}
		gpu_end(&rig);
		gpu_filled(&rig, 0, rig.stream);
		read_partial(1);
		cr_expect_eq(rig.reader.step.missing[0].layer_id, 3 + (int32_t)left_out);
	}
}

static cudaGraphExec_t record_forward(void)
{
	gpu_record_begin(&rig);
	gpu_forward(&rig, 0, 0, BATCH, rig.stream);
	return gpu_record_end(&rig);
}

MACHINE_TEST(cuda_faults, failure_44_a_graph_that_is_replayed_after_close_touches_nothing)
{
	cudaGraphExec_t graph;

	start();
	gpu_rig_open(&rig);
	graph = record_forward();
	gpu_run(&rig, 2, BATCH, 1);
	gpu_rig_close_producer(&rig);
	cr_assert_eq(cudaGraphLaunch(graph, rig.stream), cudaSuccess);
	gpu_wait(rig.stream);
}

MACHINE_TEST(cuda_faults, failure_44_a_graph_of_a_closed_channel_captures_nothing_for_the_next)
{
	struct r3ring_step step = gpu_plain_step(BATCH);
	cudaGraphExec_t graph;

	start();
	gpu_rig_open(&rig);
	graph = record_forward();
	gpu_run(&rig, 2, BATCH, 1);
	gpu_rig_close_producer(&rig);
	step_reader_close(&rig.reader);
	gpu_rig_open(&rig);
	begin(&step);
	cr_assert_eq(cudaGraphLaunch(graph, rig.stream), cudaSuccess);
	gpu_end(&rig);
	read_partial(rig.options.layer_count);
	gpu_run(&rig, 2, BATCH, 1);
}

MACHINE_TEST(cuda_faults, a_step_that_never_ended_is_partial_and_the_next_is_whole)
{
	struct r3ring_step step = gpu_plain_step(BATCH);

	start();
	gpu_rig_open(&rig);
	prepare_step();
	begin(&step);
	gpu_layer(&rig, 0, 0, 0, BATCH, rig.stream);
	gpu_filled(&rig, 0, rig.stream);
	begin(&step);
	rig.steps = 1;
	read_partial(rig.options.layer_count - 1);
	rig.steps = 2;
	gpu_fill(&rig, 1, 2, 0, BATCH);
	gpu_forward(&rig, 1, 0, BATCH, rig.stream);
	gpu_end(&rig);
	gpu_expect_step(&rig, 2, 0, BATCH, BATCH);
}

MACHINE_TEST(cuda_faults, positions_and_token_ids_come_from_the_gpu)
{
	static const int32_t values[2 * BATCH] = {5, 6, 7, 8};
	struct r3ring_step step = gpu_plain_step(BATCH);
	int32_t *host, *device;

	start();
	rig.options.capture_rows = 1;
	gpu_rig_make_engine(&rig);
	cr_assert_eq(cudaHostAlloc((void **)&host, sizeof(values), 0), cudaSuccess);
	cr_assert_eq(cudaMalloc((void **)&device, sizeof(values)), cudaSuccess);
	memcpy(host, values, sizeof(values));
	gpu_rig_open(&rig);
	cr_assert_eq(
		cudaMemcpyAsync(device, host, sizeof(values), cudaMemcpyHostToDevice, rig.stream),
		cudaSuccess);
	prepare_step();
	begin(&step);
	cr_assert_eq(r3ring_capture_rows(rig.producer, device, device + BATCH, rig.stream), 0);
	gpu_forward(&rig, 0, 0, BATCH, rig.stream);
	gpu_end(&rig);
	gpu_expect_step(&rig, 1, 0, BATCH, BATCH);
	cr_expect_eq(rig.reader.step.rows_told, BATCH);
	cr_expect_eq(memcmp(rig.reader.step.positions, values, BATCH * 4), 0);
	cr_expect_eq(memcmp(rig.reader.step.token_ids, values + BATCH, BATCH * 4), 0);
}
