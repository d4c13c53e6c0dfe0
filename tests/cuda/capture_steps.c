/* SPDX-License-Identifier: Apache-2.0 */
/* Steps on the cuda device, over the stand-in runtime: every id reaches the reader. */
#include <criterion/criterion.h>

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

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

MACHINE_TEST(cuda_steps, by_event_each_step_is_recorded_and_each_copy_waits_for_it)
{
	struct fakecuda_work work;

	start(&gpu_small, 16);
	rig.options.order = "event";
	gpu_rig_open(&rig);
	gpu_run(&rig, 20, 16, 1);
	work = fakecuda_work();
	cr_expect_geq(work.event_records, 20);
	cr_expect_geq(work.event_waits, 20);
}

/* The daemon hears of the end from the end kernel, and must find the event recorded. */
MACHINE_TEST(cuda_steps, by_event_the_record_comes_before_the_end)
{
	struct r3ring_step step = gpu_plain_step(16);
	unsigned int records;

	start(&gpu_small, 16);
	rig.options.order = "event";
	gpu_rig_open(&rig);
	cr_assert_eq(gpu_begin(&rig, &step), 1);
	records = fakecuda_calls("cudaEventRecord");
	fakecuda_fail("cudaLaunchKernel:1:cudaErrorUnknown");
	cr_expect_eq(r3ring_step_end(rig.producer, rig.stream), -EIO);
	cr_expect(fakecuda_has_failed());
	cr_expect_eq(fakecuda_calls("cudaEventRecord"), records + 1);
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
	cr_expect_gt(fakecuda_calls("cudaIpcGetMemHandle"), 0);
	cr_expect_eq(fakecuda_calls("cuMemCreate"), 0);
}

MACHINE_TEST(cuda_steps, failure_31_a_buffer_goes_by_descriptor_where_that_is_asked_for)
{
	start(&gpu_deepseek_v4, 32);
	rig.options.buffer_export = "fd";
	gpu_rig_open(&rig);
	gpu_run(&rig, 10, 32, 1);
	expect_said("by descriptor");
	cr_expect_eq(fakecuda_calls("cudaIpcGetMemHandle"), 0);
}

static bool leave_ipc_namespace(void *unused)
{
	(void)unused;
	return unshare(CLONE_NEWIPC) == 0;
}

static bool may_leave_namespaces(void)
{
	pid_t child = fork();
	int status = 1;

	if (child == 0)
		_exit(!leave_ipc_namespace(NULL));
	waitpid(child, &status, 0);
	return status == 0;
}

MACHINE_TEST(cuda_steps, failure_31_a_buffer_goes_by_descriptor_to_another_ipc_namespace)
{
	if (!may_leave_namespaces())
		cr_skip_test("no right to make an IPC namespace");
	rig.daemon.prepare = leave_ipc_namespace;
	start(&gpu_small, 16);
	gpu_rig_open(&rig);
	gpu_run(&rig, 5, 16, 1);
	expect_said("by descriptor");
	cr_expect_eq(fakecuda_calls("cudaIpcGetMemHandle"), 0);
}

MACHINE_TEST(cuda_steps, failure_31_a_handle_that_is_forced_on_another_namespace_is_refused)
{
	struct r3ring_error err = {0};

	if (!may_leave_namespaces())
		cr_skip_test("no right to make an IPC namespace");
	rig.daemon.prepare = leave_ipc_namespace;
	start(&gpu_small, 16);
	rig.options.buffer_export = "ipc";
	cr_expect_lt(gpu_rig_open_producer(&rig, &err), 0);
	cr_expect(strstr(err.text, "namespace"), "%s", err.text);
}

MACHINE_TEST(cuda_steps, a_gpu_under_mps_is_refused_unless_that_is_allowed)
{
	static const char *const allow[] = {"--allow-mps", NULL};
	struct r3ring_error err = {0};

	setenv("FAKECUDA_MPS", "1", 1);
	start(&gpu_small, 16);
	cr_expect_lt(gpu_rig_open_producer(&rig, &err), 0);
	cr_expect(strstr(err.text, "MPS"), "%s", err.text);
	test_daemon_restart(&rig.daemon, allow);
	gpu_rig_open(&rig);
	gpu_run(&rig, 2, 16, 1);
}

MACHINE_TEST(cuda_steps, a_machine_without_driver_says_so_and_runs_all_else)
{
	struct r3ring_error err = {0};

	setenv("FAKECUDA_DRIVER", "none", 1);
	start(&gpu_small, 16);
	cr_expect_eq(gpu_rig_open_producer(&rig, &err), -ENODEV);
	cr_expect(strstr(err.text, "driver"), "%s", err.text);
	rig.options.device = "host";
	cr_assert_eq(gpu_rig_open_producer(&rig, &err), 0, "%s", err.text);
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

MACHINE_TEST(cuda_steps, a_bounce_buffer_brings_the_same_where_the_ring_cannot_be_registered)
{
	start(&gpu_kimi_k3, 128);
	test_daemon_kill(&rig.daemon);
	setenv("FAKECUDA_REFUSE", "register", 1);
	test_daemon_restart(&rig.daemon, NULL);
	unsetenv("FAKECUDA_REFUSE");
	gpu_rig_open(&rig);
	expect_said("detour");
	gpu_run(&rig, 5, 128, 1);
}

MACHINE_TEST(cuda_steps, failure_31_the_gpu_is_found_by_its_uuid_where_the_processes_see_others)
{
	start(&gpu_small, 16);
	test_daemon_kill(&rig.daemon);
	setenv("FAKECUDA_GPUS", "3", 1);
	setenv("CUDA_VISIBLE_DEVICES", "0,2,1", 1);
	test_daemon_restart(&rig.daemon, NULL);
	setenv("CUDA_VISIBLE_DEVICES", "1", 1);
	gpu_rig_open(&rig);
	gpu_run(&rig, 5, 16, 1);
}

MACHINE_TEST(cuda_steps, a_gpu_that_the_daemon_does_not_see_is_refused_by_its_uuid)
{
	struct r3ring_error err = {0};

	start(&gpu_small, 16);
	test_daemon_kill(&rig.daemon);
	setenv("FAKECUDA_GPUS", "2", 1);
	setenv("CUDA_VISIBLE_DEVICES", "0", 1);
	test_daemon_restart(&rig.daemon, NULL);
	setenv("CUDA_VISIBLE_DEVICES", "1", 1);
	cr_expect_lt(gpu_rig_open_producer(&rig, &err), 0);
	cr_expect(strstr(err.text, "CUDA_VISIBLE_DEVICES"), "%s", err.text);
}
