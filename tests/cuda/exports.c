/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the buffer comes to the daemon, and the order behind it, on machines that only the
 * stand-in can be: without CUDA IPC or descriptors, without a driver, with other GPUs.
 */
#include <criterion/criterion.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/cuda/fixture.h"
#include "tests/cuda/gpu_rig.h"
#include "tests/support/command.h"
#include "tests/support/fakecuda/fakecuda.h"

static struct gpu_rig rig;

static void finish(void)
{
	gpu_rig_close(&rig);
}

TestSuite(cuda_exports, .fini = finish, .timeout = 60);

static void start(const struct gpu_model *model, uint32_t max_rows)
{
	gpu_rig_start(&rig, model, max_rows, NULL);
}

static void expect_said(const char *text)
{
	cr_expect(test_daemon_said(&rig.daemon, text), "%s", rig.daemon.log);
}

/* The machine is another for a daemon that is started anew. */
static void restart_with(const char *name, const char *value)
{
	test_daemon_kill(&rig.daemon);
	setenv(name, value, 1);
	test_daemon_restart(&rig.daemon, NULL);
}

/* ---- by handle or by descriptor ----------------------------------------- */

static char said[2048];

static void keep(void *unused, enum r3ring_log_level level, const char *line)
{
	(void)unused;
	(void)level;
	strncat(said, line, sizeof(said) - strlen(said) - 2);
	strcat(said, "\n");
}

/* The channel opens by descriptor, and the log says so, and why. */
static void expect_descriptor(const char *why)
{
	rig.options.log = keep;
	gpu_rig_open(&rig);
	gpu_run(&rig, 5, 16, 1);
	expect_said("by descriptor");
	cr_expect(strstr(said, "as a file descriptor after all"), "%s", said);
	cr_expect(strstr(said, why), "%s", said);
}

static void expect_status(const char *reason)
{
	struct command status;

	cr_expect_eq(
		command_run(&status, rig.daemon.dir, (const char *[]){"status", "--json", NULL}), 0,
		"%s", status.err);
	cr_expect(strstr(status.out, reason), "%s", status.out);
	command_free(&status);
}

MACHINE_TEST(cuda_exports, failure_31_a_buffer_goes_by_handle_where_both_can)
{
	start(&gpu_small, 16);
	gpu_rig_open(&rig);
	gpu_run(&rig, 2, 16, 1);
	expect_status("\"same namespaces\"");
	cr_expect_gt(fakecuda_calls("cudaIpcGetMemHandle"), 0);
	cr_expect_eq(fakecuda_calls("cuMemCreate"), 0);
}

MACHINE_TEST(cuda_exports, failure_31_a_descriptor_that_is_asked_for_needs_no_handle)
{
	start(&gpu_small, 16);
	rig.options.buffer_export = "fd";
	gpu_rig_open(&rig);
	gpu_run(&rig, 2, 16, 1);
	expect_status("\"asked for\"");
	cr_expect_eq(fakecuda_calls("cudaIpcGetMemHandle"), 0);
}

MACHINE_TEST(cuda_exports, failure_31_a_gpu_without_cuda_ipc_gives_a_descriptor)
{
	setenv("FAKECUDA_REFUSE", "ipc", 1);
	start(&gpu_small, 16);
	expect_descriptor("has no CUDA IPC");
	expect_status("\"GPU without CUDA IPC\"");
	cr_expect_eq(fakecuda_calls("cudaIpcGetMemHandle"), 0);
}

MACHINE_TEST(cuda_exports, failure_31_a_handle_that_the_gpu_does_not_give_becomes_a_descriptor)
{
	start(&gpu_small, 16);
	fakecuda_fail("cudaIpcGetMemHandle:1:cudaErrorNotSupported");
	expect_descriptor("cudaIpcGetMemHandle");
	expect_status("\"GPU without CUDA IPC\"");
}

MACHINE_TEST(cuda_exports, failure_31_a_handle_that_the_daemon_cannot_open_becomes_a_descriptor)
{
	struct fakecuda_usage before, after;

	start(&gpu_small, 16);
	restart_with("FAKECUDA_REFUSE", "ipc");
	unsetenv("FAKECUDA_REFUSE");
	gpu_rig_make_engine(&rig);
	before = fakecuda_usage();
	expect_descriptor("cudaIpcOpenMemHandle");
	after = fakecuda_usage();
	expect_status("\"handle could not be opened\"");
	cr_expect_eq(rig.reader.generation, 1, "the handle that was refused began a generation");
	/* Buffer and control block; the buffer behind the handle is freed. */
	cr_expect_eq(after.allocations, before.allocations + 2);
}

MACHINE_TEST(cuda_exports, failure_31_a_handle_that_is_forced_is_refused_where_none_is_to_be_had)
{
	struct r3ring_error err = {0};

	setenv("FAKECUDA_REFUSE", "ipc", 1);
	start(&gpu_small, 16);
	rig.options.buffer_export = "ipc";
	cr_expect_eq(gpu_rig_open_producer(&rig, &err), -ENOTSUP);
	cr_expect(strstr(err.text, "buffer_export"), "%s", err.text);
	unsetenv("FAKECUDA_REFUSE");
	cr_expect_eq(gpu_rig_open_producer(&rig, &err), -ENOTSUP, "the daemon opens none");
	cr_expect(strstr(err.text, "cudaIpcOpenMemHandle"), "%s", err.text);
}

MACHINE_TEST(cuda_exports, failure_31_without_handle_and_descriptor_both_reasons_are_told)
{
	struct r3ring_error err = {0};

	setenv("FAKECUDA_REFUSE", "ipc,vmm", 1);
	start(&gpu_small, 16);
	cr_expect_lt(gpu_rig_open_producer(&rig, &err), 0);
	cr_expect(strstr(err.text, "no CUDA IPC"), "%s", err.text);
	cr_expect(strstr(err.text, "cuMemCreate"), "%s", err.text);
	rig.options.device = "host";
	cr_expect_eq(gpu_rig_open_producer(&rig, &err), 0, "%s", err.text);
}

MACHINE_TEST(cuda_exports, failure_31_the_order_by_event_does_not_go_by_descriptor)
{
	struct r3ring_error err = {0};

	start(&gpu_small, 16);
	rig.options.order = "event";
	fakecuda_fail("cudaIpcGetMemHandle:1:cudaErrorNotSupported");
	cr_expect_eq(gpu_rig_open_producer(&rig, &err), -EINVAL);
	cr_expect(strstr(err.text, "order is \"event\""), "%s", err.text);
	restart_with("FAKECUDA_REFUSE", "ipc");
	unsetenv("FAKECUDA_REFUSE");
	cr_expect_lt(gpu_rig_open_producer(&rig, &err), 0, "the daemon opens no event");
	cr_expect(strstr(err.text, "cudaIpcOpenEventHandle"), "%s", err.text);
}

/* ---- which GPU ---------------------------------------------------------- */

MACHINE_TEST(cuda_exports, failure_31_the_gpu_is_found_by_its_uuid_where_the_processes_see_others)
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

MACHINE_TEST(cuda_exports, a_gpu_that_the_daemon_does_not_see_is_refused_by_its_uuid)
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

MACHINE_TEST(cuda_exports, a_gpu_under_mps_is_refused_unless_that_is_allowed)
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

MACHINE_TEST(cuda_exports, a_machine_without_driver_says_so_and_runs_all_else)
{
	struct r3ring_error err = {0};

	setenv("FAKECUDA_DRIVER", "none", 1);
	start(&gpu_small, 16);
	cr_expect_eq(gpu_rig_open_producer(&rig, &err), -ENODEV);
	cr_expect(strstr(err.text, "driver"), "%s", err.text);
	rig.options.device = "host";
	cr_assert_eq(gpu_rig_open_producer(&rig, &err), 0, "%s", err.text);
}

MACHINE_TEST(cuda_exports, a_bounce_buffer_brings_the_same_where_the_ring_cannot_be_registered)
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

/* ---- the order by event ------------------------------------------------- */

MACHINE_TEST(cuda_exports, by_event_each_step_is_recorded_and_each_copy_waits_for_it)
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
MACHINE_TEST(cuda_exports, by_event_the_record_comes_before_the_end)
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
