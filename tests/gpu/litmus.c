/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order that no manual promises: a bell that the CPU has seen, then a copy by the
 * copy engine. Every step's ids differ from those that its extent held before, so a
 * copy that ran ahead of a block's writes brings ids that are wrong.
 *
 * GPU_LITMUS_STEPS says how many steps (a million), of both export kinds together.
 */
#include <criterion/criterion.h>

#include <stdlib.h>

#include "tests/cuda/fixture.h"
#include "tests/cuda/gpu_rig.h"

#define LITMUS_ROWS 64u
#define LITMUS_STEPS 1000000u

static const struct gpu_model litmus_model = {2, 1024, 8, R3RING_INT32};
static struct gpu_rig rig;

static void finish(void)
{
	if (rig.producer)
		gpu_rig_close(&rig);
}

TestSuite(gpu_litmus, .fini = finish, .timeout = 300);

static uint32_t litmus_steps(void)
{
	const char *asked = getenv("GPU_LITMUS_STEPS");

	return asked ? (uint32_t)strtoul(asked, NULL, 10) : LITMUS_STEPS;
}

static void run(const char *buffer_export)
{
	gpu_rig_start(&rig, &litmus_model, LITMUS_ROWS, NULL);
	rig.options.buffer_export = buffer_export;
	gpu_rig_open(&rig);
	/* A bell a layer: the copies race the next layer's block. */
	gpu_run(&rig, litmus_steps() / 2, LITMUS_ROWS, 1);
	cr_expect_eq(rig.reader.losses, 0);
}

MACHINE_TEST(gpu_litmus, no_copy_runs_ahead_of_a_block_s_writes_by_ipc_handle)
{
	run("ipc");
}

MACHINE_TEST(gpu_litmus, no_copy_runs_ahead_of_a_block_s_writes_by_descriptor)
{
	run("fd");
}
