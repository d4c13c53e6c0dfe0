/* SPDX-License-Identifier: Apache-2.0 */
/* The end of engine, daemon or GPU in the middle of the work. */
#include <criterion/criterion.h>

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <r3ring/atomic.h>

#include "tests/cuda/fixture.h"
#include "tests/cuda/gpu_rig.h"
#include "tests/support/fakecuda/fakecuda.h"
#include "tests/support/worker.h"

#define BATCH 16u

static struct gpu_rig rig;
static struct worker engine;

static void finish(void)
{
	if (engine.pid)
		worker_kill(&engine);
	gpu_rig_close(&rig);
}

TestSuite(cuda_deaths, .fini = finish, .timeout = 100);

static void start(void)
{
	gpu_rig_start(&rig, &gpu_deepseek_v4, BATCH, NULL);
}

/* ---- the engine --------------------------------------------------------- */

/* An engine in a process of its own; between its steps it lets others see how far it
 * is. It stops in the middle of a step. */
static int run_engine(struct worker_page *page, const void *steps)
{
	struct r3ring_step step = gpu_plain_step(BATCH);

	gpu_rig_make_engine(&rig);
	if (gpu_rig_open_producer(&rig, &page->err) < 0)
		return 1;
	for (uint32_t i = 0; i < *(const uint32_t *)steps; i++) {
		gpu_step(&rig, BATCH, 1);
		r3ring_store_release_u64(&page->progress, rig.steps);
	}
	step.doorbell_layers = 1;
	gpu_fill(&rig, 0, rig.steps + 1, 0, BATCH);
	gpu_begin(&rig, &step);
	for (uint32_t layer = 0; layer < 7; layer++)
		gpu_layer(&rig, 0, layer, 0, BATCH, rig.stream);
	gpu_wait(rig.stream);
	r3ring_store_release_u64(&page->progress, rig.steps);
	while (!r3ring_load_acquire_u64(&page->stop))
		worker_compute();
	r3ring_producer_close(rig.producer);
	return 0;
}

static void start_engine(uint32_t steps)
{
	static uint32_t count;

	count = steps;
	snprintf(rig.channel, sizeof(rig.channel), "%s/0", rig.instance);
	worker_start(&engine, run_engine, &count);
	cr_assert(worker_reaches(&engine, steps + 1), "%s", engine.page->err.text);
	step_reader_open(&rig.reader, rig.daemon.dir, rig.channel);
}

static void expect_said(const char *text)
{
	cr_expect(test_daemon_said(&rig.daemon, text), "%s", rig.daemon.log);
}

MACHINE_TEST(cuda_deaths, a_killed_engine_leaves_what_came_and_its_last_step_partial)
{
	start();
	start_engine(5);
	for (uint64_t step = 1; step <= 5; step++)
		gpu_expect_step(&rig, step, 0, BATCH, BATCH);
	worker_kill(&engine);
	expect_said("died or hung up");
	cr_assert(step_reader_next(&rig.reader));
	cr_expect_eq(rig.reader.step.head.step, 6);
	cr_expect_eq(rig.reader.step.end.status, R3RING_STEP_PARTIAL);
	cr_expect_eq(gpu_wrong_ids(&rig, 0, BATCH), 0);
	for (uint32_t i = 0; i < rig.reader.step.end.missing; i++)
		cr_expect_eq(rig.reader.step.missing[i].cause, R3RING_CAUSE_PRODUCER_DIED);
}

/* The daemon stands still while the engine works on and dies. */
MACHINE_TEST(cuda_deaths, nothing_is_copied_any_more_from_an_engine_that_is_known_to_be_dead)
{
	uint64_t copies;

	start();
	start_engine(1);
	gpu_expect_step(&rig, 1, 0, BATCH, BATCH);
	worker_kill(&engine);
	expect_said("died or hung up");
	expect_said("drained");
	copies = fakecuda_work().copied_bytes;
	cr_assert(step_reader_next(&rig.reader));
	cr_expect_eq(rig.reader.step.end.status, R3RING_STEP_PARTIAL);
	cr_expect_eq(fakecuda_work().copied_bytes, copies);
	for (uint32_t i = 0; i < rig.reader.step.end.missing; i++)
		cr_expect_eq(rig.reader.step.missing[i].cause, R3RING_CAUSE_PRODUCER_DIED);
}

MACHINE_TEST(cuda_deaths, the_next_engine_opens_the_channel_anew_after_one_was_killed)
{
	start();
	start_engine(2);
	worker_kill(&engine);
	expect_said("died or hung up");
	step_reader_close(&rig.reader);
	gpu_rig_open(&rig);
	gpu_run(&rig, 5, BATCH, 1);
	cr_expect_geq(rig.reader.generation, 2);
}

/* ---- the daemon --------------------------------------------------------- */

static void await_connected(uint32_t connected)
{
	struct r3ring_producer_stats stats;

	do {
		worker_compute();
		r3ring_producer_get_stats(rig.producer, &stats);
	} while (stats.connected != connected);
}

/* Reads on until a step of the newest generation was read; no id is wrong. */
static void read_to_step(uint64_t step)
{
	while (rig.reader.step.head.step < step || !rig.reader.ended) {
		cr_assert(step_reader_next(&rig.reader), "%s", rig.daemon.log);
		cr_expect_eq(gpu_wrong_ids(&rig, 0, BATCH), 0, "step %lu",
			     rig.reader.step.head.step);
	}
}

MACHINE_TEST(cuda_deaths, after_a_killed_daemon_the_next_generation_goes_on)
{
	start();
	gpu_rig_open(&rig);
	gpu_run(&rig, 3, BATCH, 1);
	test_daemon_kill(&rig.daemon);
	await_connected(0);
	gpu_step(&rig, BATCH, 1);
	test_daemon_restart(&rig.daemon, NULL);
	await_connected(1);
	gpu_step(&rig, BATCH, 1);
	gpu_step(&rig, BATCH, 1);
	read_to_step(6);
	cr_expect_eq(rig.reader.step.end.status, R3RING_STEP_COMPLETE);
	cr_expect_eq(rig.reader.generation, 2);
}

MACHINE_TEST(cuda_deaths, a_daemon_that_is_killed_while_it_copies_spoils_nothing)
{
	start();
	gpu_rig_open(&rig);
	for (uint32_t i = 0; i < 4; i++) {
		for (uint32_t k = 0; k < 3; k++)
			gpu_step(&rig, BATCH, 1);
		test_daemon_kill(&rig.daemon);
		await_connected(0);
		test_daemon_restart(&rig.daemon, NULL);
		await_connected(1);
		cr_assert(step_reader_generation(&rig.reader, i + 2)); /* while it is there */
	}
	gpu_step(&rig, BATCH, 1);
	read_to_step(13);
}

/* ---- the daemon's GPU --------------------------------------------------- */

static void restart_daemon_with(const char *failure)
{
	test_daemon_kill(&rig.daemon);
	setenv("FAKECUDA_FAIL", failure, 1);
	test_daemon_restart(&rig.daemon, NULL);
	unsetenv("FAKECUDA_FAIL");
}

/* Its n-th copy breaks its context. */
static void start_with_failing_copy(unsigned int nth)
{
	char spec[96];

	start();
	snprintf(spec, sizeof(spec), "execute:%u:cudaErrorIllegalAddress@r3ringd", nth);
	restart_daemon_with(spec);
	gpu_rig_open(&rig);
}

static void expect_goes_on_after_failing_copy(unsigned int nth)
{
	struct r3ring_producer_stats stats;
	pid_t pid;

	start_with_failing_copy(nth);
	pid = rig.daemon.pid;
	for (uint32_t i = 0; i < 6; i++)
		gpu_step(&rig, BATCH, 1);
	expect_said("executing itself anew");
	expect_said("(came back)");
	await_connected(1);
	gpu_step(&rig, BATCH, 1);
	read_to_step(7);
	cr_expect_eq(rig.reader.step.end.status, R3RING_STEP_COMPLETE);
	cr_expect_eq(rig.reader.generation, 2);
	cr_expect_gt(rig.reader.losses, 0);
	cr_expect_eq(kill(pid, 0), 0);
	r3ring_producer_get_stats(rig.producer, &stats);
	cr_expect_eq(stats.steps, 7);
	gpu_run(&rig, 3, BATCH, 1);
}

MACHINE_TEST(cuda_deaths, a_first_copy_that_breaks_the_context_makes_the_daemon_execute_itself_anew)
{
	expect_goes_on_after_failing_copy(1);
}

MACHINE_TEST(cuda_deaths, so_does_a_later_copy)
{
	expect_goes_on_after_failing_copy(5);
}

MACHINE_TEST(cuda_deaths, channels_in_host_memory_go_on_in_their_ring_when_a_gpu_fails)
{
	struct r3ring_producer_options options;
	struct r3ring_producer *host = NULL;
	struct step_reader reader;
	struct r3ring_error err = {0};
	char channel[64];

	start_with_failing_copy(1);
	options = rig.options;
	options.device = "host";
	options.rank = 1;
	fakecuda_serving(false);
	cr_assert_eq(r3ring_producer_open(&host, &options, &err), 0, "%s", err.text);
	snprintf(channel, sizeof(channel), "%s/1", rig.instance);
	step_reader_open(&reader, rig.daemon.dir, channel);
	gpu_step(&rig, BATCH, 1);
	expect_said("executing itself anew");
	expect_said("goes on where the dead daemon stopped");
	await_connected(1);
	cr_assert_eq(r3ring_step_begin(
			     host, &(struct r3ring_step){.size = sizeof(struct r3ring_step)}, NULL),
		     1);
	cr_assert_eq(r3ring_step_end(host, NULL), 0);
	cr_assert(step_reader_next(&reader));
	cr_expect_eq(reader.generation, 1);
	r3ring_producer_close(host);
	step_reader_close(&reader);
}

MACHINE_TEST(cuda_deaths, a_gpu_that_hangs_does_not_keep_the_daemon_from_ending)
{
	start();
	restart_daemon_with("hang:1:cudaErrorUnknown@r3ringd");
	gpu_rig_open(&rig);
	gpu_step(&rig, BATCH, 1);
	gpu_wait(rig.stream);
	cr_expect_eq(test_daemon_stop(&rig.daemon), 0, "%s", rig.daemon.log);
}

static void CUDART_CB stand_still(void *unused)
{
	(void)unused;
	for (;;)
		pause();
}

/* The copy of its first step waits for the event of its second, which never comes. */
static int run_engine_with_an_event_that_never_comes(struct worker_page *page, const void *unused)
{
	(void)unused;
	gpu_rig_make_engine(&rig);
	if (gpu_rig_open_producer(&rig, &page->err) < 0)
		return 1;
	fakecuda_pause(true);
	gpu_step(&rig, BATCH, 0);
	if (cudaLaunchHostFunc(rig.stream, stand_still, NULL) != cudaSuccess)
		return 1;
	gpu_step(&rig, BATCH, 0);
	fakecuda_pause(false);
	r3ring_store_release_u64(&page->progress, 1);
	for (;;)
		pause();
}

MACHINE_TEST(cuda_deaths, a_copy_that_waits_for_a_dead_engine_is_given_up)
{
	start();
	rig.options.order = "event";
	worker_start(&engine, run_engine_with_an_event_that_never_comes, NULL);
	cr_assert(worker_reaches(&engine, 1), "%s", engine.page->err.text);
	while (fakecuda_work().event_waits < 1)
		worker_compute();
	worker_kill(&engine);
	expect_said("died or hung up");
	expect_said("executing itself anew");
	expect_said("of a dead daemon"); /* the new image */
	gpu_rig_open(&rig);
	gpu_run(&rig, 3, BATCH, 1);
}

/* ---- the engine's GPU --------------------------------------------------- */

MACHINE_TEST(cuda_deaths,
	     a_broken_context_of_the_engine_is_told_by_each_call_and_its_steps_are_partial)
{
	struct r3ring_step step = gpu_plain_step(BATCH);
	const struct r3ring_topk topk = {.type = R3RING_INT64, .columns = 6, .row_stride = 6};

	start();
	gpu_rig_open(&rig);
	gpu_run(&rig, 2, BATCH, 1);
	cr_assert_gt(gpu_begin(&rig, &step), 0);
	fakecuda_fail("cudaLaunchKernel:1:cudaErrorIllegalAddress");
	cr_expect_lt(r3ring_capture_layer(rig.producer, 0, &topk, rig.stream), 0);
	cr_expect(strstr(r3ring_producer_error(rig.producer), "cudaErrorIllegalAddress"), "%s",
		  r3ring_producer_error(rig.producer));
	cr_expect_lt(r3ring_step_end(rig.producer, rig.stream), 0);
	cr_assert(step_reader_next(&rig.reader));
	cr_expect_eq(rig.reader.step.head.step, 3);
	cr_expect_eq(rig.reader.step.end.status, R3RING_STEP_PARTIAL);
	cr_expect_eq(rig.reader.step.end.missing, rig.options.layer_count);
}
