/* SPDX-License-Identifier: Apache-2.0 */
/* Steps on the cuda device: every id reaches the reader. On a real GPU as well. */
#include <criterion/criterion.h>

#include "tests/cuda/fixture.h"
#include "tests/cuda/gpu_rig.h"
#include "tests/support/fakecuda/fakecuda.h"

static struct gpu_rig rig;

static void finish(void)
{
	gpu_rig_close(&rig);
}

TestSuite(cuda_steps, .fini = finish, .timeout = 60);

static void start(const struct gpu_model *model, uint32_t max_rows)
{
	gpu_rig_start(&rig, model, max_rows, NULL);
}

MACHINE_TEST(cuda_steps, every_id_of_a_decode_reaches_the_reader)
{
	start(&gpu_deepseek_v4, 32);
	gpu_rig_open(&rig);
	gpu_run(&rig, 10, 32, 0);
	gpu_run(&rig, 10, 1, 0);
}

MACHINE_TEST(cuda_steps, every_id_of_a_prefill_reaches_the_reader_layer_by_layer)
{
	start(&gpu_kimi_k3, 256);
	gpu_rig_open(&rig);
	gpu_run(&rig, 3, 256, 1);
	gpu_run(&rig, 3, 255, 7);
}

MACHINE_TEST(cuda_steps, failure_16_a_step_of_more_rows_than_a_record_is_whole)
{
	/* Of the default size it would be more than a container's /dev/shm takes. */
	gpu_rig_start(&rig, &gpu_small, 70000, (const char *[]){"--ring-size", "40M", NULL});
	rig.options.top_k = rig.source.top_k = 16;
	gpu_rig_open(&rig);
	gpu_run(&rig, 2, 70000, 1);
	cr_assert_lt(rig.reader.schema.rows_per_record, 70000);
}

MACHINE_TEST(cuda_steps, steps_without_rows_are_complete)
{
	start(&gpu_small, 16);
	gpu_rig_open(&rig);
	gpu_run(&rig, 3, 0, 1);
	gpu_run(&rig, 3, 16, 1);
}

MACHINE_TEST(cuda_steps, the_default_stream_serves_as_well)
{
	start(&gpu_small, 16);
	gpu_rig_make_engine(&rig);
	cr_assert_eq(cudaStreamDestroy(rig.stream), cudaSuccess);
	gpu_rig_open(&rig);
	rig.stream = NULL;
	gpu_run(&rig, 20, 16, 2);
}

/* ---- how the order is kept ---------------------------------------------- */

MACHINE_TEST(cuda_steps, the_order_by_event_brings_the_same)
{
	start(&gpu_deepseek_v4, 32);
	rig.options.order = "event";
	gpu_rig_open(&rig);
	gpu_run(&rig, 20, 32, 1);
}

MACHINE_TEST(cuda_steps, captures_on_a_side_stream_bring_the_same)
{
	start(&gpu_deepseek_v4, 32);
	rig.options.side_stream = 1;
	rig.buffers = rig.options.layer_count;
	gpu_rig_open(&rig);
	gpu_run(&rig, 20, 32, 1);
}

MACHINE_TEST(cuda_steps, ids_that_are_overwritten_too_early_beside_a_side_stream_are_found)
{
	start(&gpu_small, 16);
	rig.options.side_stream = 1;
	gpu_rig_open(&rig);
	for (uint32_t i = 0; i < 20; i++)
		gpu_step(&rig, 16, 1);
	gpu_wait(rig.stream);
	machine_expect("missing dependency");
}

/* ---- buffers ------------------------------------------------------------ */

static void expect_said(const char *text)
{
	cr_expect(test_daemon_said(&rig.daemon, text), "%s", rig.daemon.log);
}

MACHINE_TEST(cuda_steps, failure_31_a_buffer_goes_by_ipc_handle_in_one_namespace)
{
	start(&gpu_small, 16);
	gpu_rig_open(&rig);
	gpu_run(&rig, 5, 16, 1);
	expect_said("by CUDA IPC");
}

MACHINE_TEST(cuda_steps, failure_31_a_buffer_goes_by_descriptor_where_that_is_asked_for)
{
	start(&gpu_deepseek_v4, 32);
	rig.options.buffer_export = "fd";
	gpu_rig_open(&rig);
	gpu_run(&rig, 10, 32, 1);
	expect_said("by descriptor");
}

/* An engine that sizes its cache must not see the daemon's memory come and go. */
MACHINE_TEST(cuda_steps, the_daemon_keeps_its_context_unless_it_is_told_to_let_go)
{
	static const char *const release[] = {"--release-gpu", NULL};
	size_t before, after, total;

	start(&gpu_small, 16);
	gpu_rig_open(&rig);
	fakecuda_serving(false);
	cr_assert_eq(cudaMemGetInfo(&before, &total), cudaSuccess);
	gpu_rig_close_producer(&rig);
	expect_said("drained");
	cr_assert_eq(cudaMemGetInfo(&after, &total), cudaSuccess);
	cr_expect_lt(after - before, 64u << 20);
	step_reader_close(&rig.reader);
	test_daemon_restart(&rig.daemon, release);
	gpu_rig_open(&rig);
	gpu_run(&rig, 2, 16, 1);
	gpu_rig_close_producer(&rig);
	expect_said("let go of the GPU");
	cr_assert_eq(cudaMemGetInfo(&after, &total), cudaSuccess);
	cr_expect_gt(after, before + (256u << 20));
}
