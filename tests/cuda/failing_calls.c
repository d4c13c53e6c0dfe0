/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every CUDA call of r3ring's fails once, the first and the second time it is made, in
 * the producer and in the daemon: an error in words or a step less, and never a wrong
 * row, a hang, or anything that is not given back.
 */
#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/cuda/fixture.h"
#include "tests/cuda/gpu_rig.h"
#include "tests/support/fakecuda/fakecuda.h"

#define BATCH 8u
#define STEPS 3u
#define CALLS_MAX 64u

static struct gpu_rig rig;

static void finish(void)
{
	gpu_rig_close(&rig);
}

TestSuite(cuda_failing, .fini = finish, .timeout = 100);

/* ---- steps whose captures may fail -------------------------------------- */

static const struct r3ring_topk *topk_of(uint32_t layer)
{
	static struct r3ring_topk topk;
	size_t bytes = (size_t)BATCH * rig.source.top_k * sizeof(int32_t);

	topk = (struct r3ring_topk){
		.ids = rig.ids + bytes * layer,
		.type = rig.source.type,
		.rows = BATCH,
		.columns = rig.source.top_k,
		.row_stride = rig.source.top_k,
	};
	return &topk;
}

/* The engine's own part of a step. */
static void hand_over_ids(void)
{
	size_t bytes = (size_t)BATCH * rig.source.top_k * sizeof(int32_t);

	gpu_fill(&rig, 0, rig.steps + 1, 0, BATCH);
	for (uint32_t layer = 0; layer < rig.options.layer_count; layer++)
		cr_assert_eq(cudaMemcpyAsync(rig.ids + bytes * layer, rig.areas[0] + bytes * layer,
					     bytes, cudaMemcpyHostToDevice, rig.stream),
			     cudaSuccess);
	gpu_filled(&rig, 0, rig.stream);
}

/* Fails no assertion where r3ring says that it failed; that it says so is checked. */
static void try_step(const char *spec)
{
	struct r3ring_step step = gpu_plain_step(BATCH);
	int64_t number;
	int failed = 0;

	fakecuda_fail(NULL);
	hand_over_ids();
	fakecuda_fail(spec);
	number = gpu_begin(&rig, &step);
	for (uint32_t layer = 0; number > 0 && layer < rig.options.layer_count; layer++)
		failed |= r3ring_capture_layer(rig.producer, layer, topk_of(layer), rig.stream);
	if (number > 0)
		failed |= r3ring_step_end(rig.producer, rig.stream);
	if (number < 0 || failed)
		cr_expect_gt(strlen(r3ring_producer_error(rig.producer)), 20, "%s", spec);
	cr_expect_eq(cudaPeekAtLastError(), cudaSuccess, "%s: left for the engine", spec);
	fakecuda_fail(NULL);
}

/* All steps that were begun have an end; rows that came are right. */
static void read_steps(uint64_t last, const char *spec)
{
	while (rig.reader.step.head.step < last || !rig.reader.ended) {
		cr_assert(step_reader_next(&rig.reader), "%s: step %lu has no end\n%s", spec, last,
			  rig.daemon.log);
		cr_expect_eq(gpu_wrong_ids(&rig, 0, BATCH), 0, "%s", spec);
	}
}

/* ---- the producer ------------------------------------------------------- */

/* Opens, runs some steps and closes, with something failing all the way. */
static void cycle(const char *spec)
{
	struct r3ring_error err = {0};
	int ret;

	fakecuda_fail(spec);
	ret = gpu_rig_open_producer(&rig, &err);
	cr_expect_eq(cudaPeekAtLastError(), cudaSuccess, "%s: left for the engine", spec);
	if (ret < 0) {
		cr_expect_gt(strlen(err.text), 20, "%s: \"%s\"", spec, err.text);
		fakecuda_fail(NULL);
		return;
	}
	step_reader_open(&rig.reader, rig.daemon.dir, rig.channel);
	fakecuda_serving(true);
	for (uint32_t i = 0; i < STEPS; i++)
		try_step(i == 0 ? spec : NULL);
	read_steps(rig.steps, spec ? spec : "nothing fails");
	fakecuda_serving(false);
	fakecuda_fail(spec);
	r3ring_producer_close(rig.producer);
	rig.producer = NULL;
	cr_expect_eq(cudaPeekAtLastError(), cudaSuccess, "%s: left for the engine", spec);
	fakecuda_fail(NULL);
	step_reader_close(&rig.reader);
}

/* The control block stays, as it should; what could not be given back stays too. */
static void expect_nothing_left(const struct fakecuda_usage *before, const char *spec)
{
	struct fakecuda_usage after = fakecuda_usage();
	bool failed_to_give_back = strstr(spec, "cudaFree") || strstr(spec, "cudaHostUnregister") ||
				   strstr(spec, "Destroy") || strstr(spec, "cuMemUnmap") ||
				   strstr(spec, "cuMemAddressFree") || strstr(spec, "cuMemRelease");

	if (!failed_to_give_back) {
		cr_expect_leq(after.allocations, before->allocations + 1, "%s: memory", spec);
		cr_expect_leq(after.device_bytes, before->device_bytes + 64, "%s: memory", spec);
		cr_expect_eq(after.registered, before->registered, "%s: host memory", spec);
		cr_expect_eq(after.pinned, before->pinned, "%s: pinned memory", spec);
		cr_expect_eq(after.reserved, before->reserved, "%s: addresses", spec);
		cr_expect_eq(after.streams, before->streams, "%s: streams", spec);
		cr_expect_eq(after.events, before->events, "%s: events", spec);
	}
}

static unsigned int calls_of_a_cycle(const char *calls[CALLS_MAX], unsigned int times[CALLS_MAX])
{
	unsigned int before[CALLS_MAX] = {0}, count = 0;

	for (unsigned int i = 0; i < CALLS_MAX && fakecuda_called(i); i++)
		before[i] = fakecuda_calls(fakecuda_called(i));
	cycle(NULL);
	for (unsigned int i = 0; i < CALLS_MAX && fakecuda_called(i); i++) {
		unsigned int now = fakecuda_calls(fakecuda_called(i));

		if (now == before[i])
			continue;
		calls[count] = fakecuda_called(i);
		times[count++] = now - before[i];
	}
	return count;
}

static const char *error_for(const char *call)
{
	if (strstr(call, "alloc") || strstr(call, "Alloc") || strstr(call, "Register"))
		return "cudaErrorMemoryAllocation";
	return "cudaErrorUnknown";
}

static void fail_each_call_of_the_producer(void)
{
	const char *calls[CALLS_MAX];
	unsigned int times[CALLS_MAX], count, tried = 0;

	gpu_rig_make_engine(&rig);
	count = calls_of_a_cycle(calls, times);
	cr_assert_gt(count, 10);
	for (unsigned int i = 0; i < count; i++) {
		for (unsigned int nth = 1; nth <= times[i] && nth <= 2; nth++) {
			struct fakecuda_usage before = fakecuda_usage();
			char spec[96];

			snprintf(spec, sizeof(spec), "%s:%u:%s", calls[i], nth,
				 error_for(calls[i]));
			cycle(spec);
			expect_nothing_left(&before, spec);
			tried++;
		}
	}
	cr_expect_gt(tried, count);
	cycle(NULL);
}

static void start(void)
{
	gpu_rig_start(&rig, &gpu_small, BATCH, NULL);
	rig.buffers = rig.options.layer_count;
}

MACHINE_TEST(cuda_failing, each_call_of_the_producer_may_fail_where_the_buffer_goes_by_handle)
{
	start();
	fail_each_call_of_the_producer();
}

MACHINE_TEST(cuda_failing, each_call_of_the_producer_may_fail_where_the_buffer_goes_by_descriptor)
{
	start();
	rig.options.buffer_export = "fd";
	fail_each_call_of_the_producer();
}

MACHINE_TEST(cuda_failing, each_call_of_the_producer_may_fail_with_side_stream_and_event)
{
	start();
	rig.options.side_stream = 1;
	rig.options.order = "event";
	fail_each_call_of_the_producer();
}

/* ---- the daemon --------------------------------------------------------- */

/* A daemon of which one call fails, once. */
static void daemon_cycle(const char *call, unsigned int nth)
{
	struct r3ring_error err = {0};
	char spec[96];
	int ret;

	snprintf(spec, sizeof(spec), "%s:%u:%s@r3ringd", call, nth, error_for(call));
	test_daemon_kill(&rig.daemon);
	setenv("FAKECUDA_FAIL", spec, 1);
	test_daemon_restart(&rig.daemon, NULL);
	unsetenv("FAKECUDA_FAIL");
	ret = gpu_rig_open_producer(&rig, &err);
	if (ret < 0) {
		cr_expect_gt(strlen(err.text), 20, "%s: \"%s\"", spec, err.text);
		ret = gpu_rig_open_producer(&rig, &err);
	}
	cr_assert_eq(ret, 0, "%s: it fails again: %s", spec, err.text);
	step_reader_open(&rig.reader, rig.daemon.dir, rig.channel);
	for (uint32_t i = 0; i < STEPS; i++)
		try_step(NULL);
	read_steps(rig.steps, spec);
	gpu_rig_close_producer(&rig);
	step_reader_close(&rig.reader);
	cr_assert_eq(test_daemon_stop(&rig.daemon), 0, "%s: %s", spec, rig.daemon.log);
	/* What the daemon could not close it has open still when the engine frees it. */
	if (strcmp(call, "cudaIpcCloseMemHandle") == 0)
		fakecuda_clear_findings();
	machine_check();
}

static void fail_each_call_of_the_daemon(const char *const *calls)
{
	start();
	gpu_rig_make_engine(&rig);
	for (; *calls; calls++) {
		daemon_cycle(*calls, 1);
		daemon_cycle(*calls, 2);
	}
}

MACHINE_TEST(cuda_failing, each_call_of_the_daemon_that_opens_or_closes_may_fail)
{
	static const char *const calls[] = {
		"cudaGetDeviceCount",
		"cudaSetDevice",
		"cudaMemGetInfo",
		"cudaDeviceGetStreamPriorityRange",
		"cudaStreamCreateWithPriority",
		"cudaIpcOpenMemHandle",
		"cudaIpcCloseMemHandle",
		"cudaHostUnregister",
		"cudaStreamDestroy",
		"cuDeviceGet",
		"cuDeviceGetUuid",
		NULL,
	};

	fail_each_call_of_the_daemon(calls);
}

MACHINE_TEST(cuda_failing, each_call_of_the_daemon_that_copies_may_fail)
{
	static const char *const calls[] = {
		"cudaMemcpyAsync",
		"cudaStreamQuery",
		"cudaHostRegister",
		"cudaGetDriverEntryPoint",
		"cudaGetDriverEntryPointByVersion",
		NULL,
	};

	fail_each_call_of_the_daemon(calls);
}
