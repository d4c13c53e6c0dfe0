/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Engine and daemon in PID, IPC and mount namespaces of their own, as in containers, with
 * differing GPUs visible: real namespaces, real programs. Skipped where the kernel allows
 * none.
 */
#include <criterion/criterion.h>

#include <stdlib.h>
#include <string.h>

#include "tests/cuda/fixture.h"
#include "tests/cuda/model_run.h"
#include "tests/support/apart.h"
#include "tests/support/fakecuda/fakecuda.h"
#include "tests/support/step_reader.h"

#define MODEL "gpt-oss-20b"

static struct model_run run;
static struct apart engine, daemon_side;

static void finish(void)
{
	model_run_finish(&run);
	apart_free(&engine);
	apart_free(&daemon_side);
}

TestSuite(cuda_namespaces, .fini = finish, .timeout = 100);

/* @daemons, @engines: CLONE_NEW... flags, 0: as the test. */
static void start(int daemons, int engines)
{
	if (!apart_allowed(daemons | engines))
		cr_skip_test("the kernel refuses namespaces of one's own here");
	apart_init(&daemon_side, daemons, NULL);
	apart_init(&engine, engines, NULL);
	run.daemon.prepare = daemons ? apart_enter : NULL;
	run.daemon.prepare_ctx = &daemon_side;
	run.prepare = engines ? apart_enter : NULL;
	run.prepare_ctx = &engine;
	model_run_start(&run);
}

static void serve(const char *const options[2])
{
	model_run_serve(&run, MODEL, options);
}

static void expect_way(const char *way)
{
	cr_expect(test_daemon_said(&run.daemon, way), "%s", run.daemon.log);
}

static void expect_reason(const char *reason)
{
	struct command status;

	cr_expect_eq(
		command_run(&status, run.daemon.dir, (const char *[]){"status", "--json", NULL}), 0,
		"%s", status.err);
	cr_expect(strstr(status.out, reason), "%s is not in %s", reason, status.out);
	command_free(&status);
}

static void expect_all_by_descriptor(const char *reason)
{
	serve((const char *const[2]){NULL});
	expect_way("by descriptor");
	expect_reason(reason);
	model_run_check(&run, MODEL);
}

MACHINE_TEST(cuda_namespaces, failure_31_an_engine_in_a_pid_namespace_of_its_own)
{
	start(0, CLONE_NEWPID);
	expect_all_by_descriptor("other PID namespace");
}

MACHINE_TEST(cuda_namespaces, failure_31_a_daemon_in_a_pid_namespace_of_its_own)
{
	start(CLONE_NEWPID, 0);
	expect_all_by_descriptor("other PID namespace");
}

MACHINE_TEST(cuda_namespaces, failure_31_a_daemon_in_an_ipc_namespace_of_its_own)
{
	start(CLONE_NEWIPC, 0);
	expect_all_by_descriptor("other IPC namespace");
}

MACHINE_TEST(cuda_namespaces, failure_31_each_in_a_container)
{
	start(APART_CONTAINER, APART_CONTAINER);
	expect_all_by_descriptor("other PID namespace");
}

MACHINE_TEST(cuda_namespaces, failure_31_both_in_one_container_go_by_handle)
{
	start(CLONE_NEWPID | CLONE_NEWIPC, CLONE_NEWPID | CLONE_NEWIPC);
	engine.with = &daemon_side;
	serve((const char *const[2]){NULL});
	expect_way("by CUDA IPC");
	expect_reason("same namespaces");
	model_run_check(&run, MODEL);
}

MACHINE_TEST(cuda_namespaces, failure_31_a_handle_that_is_forced_on_another_namespace_is_refused)
{
	start(0, CLONE_NEWPID | CLONE_NEWIPC);
	serve((const char *const[2]){"--buffer-export", "ipc"});
	cr_expect_eq(command_wait(&run.produce), 1, "%s", run.produce.err);
	cr_expect(strstr(run.produce.err, "namespace"), "%s", run.produce.err);
}

MACHINE_TEST(cuda_namespaces, failure_31_the_order_by_event_is_refused_from_another_namespace)
{
	start(0, CLONE_NEWPID);
	serve((const char *const[2]){"--order", "event"});
	cr_expect_neq(command_wait(&run.produce), 0);
	cr_expect(strstr(run.produce.err, "order is \"event\""), "%s", run.produce.err);
}

/* ---- other GPUs --------------------------------------------------------- */

/* The daemon sees all three in another order; the engine's only one is its third. */
MACHINE_TEST(cuda_namespaces, failure_31_containers_that_see_other_gpus_meet_on_the_same)
{
	if (machine_is_real())
		cr_skip_test("needs three GPUs");
	setenv("FAKECUDA_GPUS", "3", 1);
	setenv("CUDA_VISIBLE_DEVICES", "0,2,1", 1);
	start(APART_CONTAINER, APART_CONTAINER);
	setenv("CUDA_VISIBLE_DEVICES", "1", 1);
	expect_all_by_descriptor("other PID namespace");
}

MACHINE_TEST(cuda_namespaces, failure_31_a_container_without_the_engines_gpu_is_told_which_it_lacks)
{
	char uuid[41];

	if (machine_is_real())
		cr_skip_test("needs two GPUs");
	setenv("FAKECUDA_GPUS", "2", 1);
	setenv("CUDA_VISIBLE_DEVICES", "0", 1);
	start(APART_CONTAINER, APART_CONTAINER);
	setenv("CUDA_VISIBLE_DEVICES", "1", 1);
	serve((const char *const[2]){NULL});
	cr_expect_eq(command_wait(&run.produce), 1, "%s", run.produce.err);
	fakecuda_uuid_text(1, uuid);
	cr_expect(strstr(run.produce.err, uuid), "%s", run.produce.err);
	cr_expect(strstr(run.produce.err, "--gpus all"), "%s", run.produce.err);
}

/* ---- deaths ------------------------------------------------------------- */

/* Until a step of the channel's newest generation came whole. */
static void read_a_step(void)
{
	struct step_reader reader;

	expect_way("by descriptor");
	step_reader_open(&reader, run.daemon.dir, run.channel);
	do
		cr_assert(step_reader_next(&reader), "%s", run.daemon.log);
	while (reader.step.end.status != R3RING_STEP_COMPLETE);
	step_reader_close(&reader);
}

/* The daemon cannot see the engine's process id, and learns of its end all the same. */
MACHINE_TEST(cuda_namespaces, an_engine_that_is_killed_in_its_container_is_missed_at_once)
{
	start(APART_CONTAINER, APART_CONTAINER);
	serve((const char *const[2]){"--requests", "200"});
	read_a_step();
	apart_kill(&engine, run.produce.pid);
	command_wait(&run.produce);
	expect_way("died or hung up");
	expect_way("drained");
	command_free(&run.produce);
	serve((const char *const[2]){NULL});
	expect_way("generation 2");
	model_run_check(&run, MODEL);
}

MACHINE_TEST(cuda_namespaces, an_engine_finds_the_next_daemon_in_the_next_container)
{
	start(APART_CONTAINER, APART_CONTAINER);
	serve((const char *const[2]){"--requests", "200"});
	read_a_step();
	apart_kill(&daemon_side, run.daemon.pid);
	test_daemon_kill(&run.daemon);
	test_daemon_restart(&run.daemon, NULL);
	expect_way("(came back)");
	read_a_step();
	cr_expect_eq(command_interrupt(&run.produce), 0, "%s", run.produce.err);
	cr_expect_eq(test_daemon_stop(&run.daemon), 0, "%s", run.daemon.log);
}
