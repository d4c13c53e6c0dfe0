/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order that no manual promises: a bell that the CPU has seen, then a copy by the
 * copy engine. Every step's ids differ from those that its extent held before, so a
 * copy that ran ahead of a block's writes brings ids that are wrong.
 *
 * GPU_LITMUS_STEPS says how many steps (a million), of both export kinds together;
 * GPU_LITMUS_SECONDS how long each kind may take (40): then it is fewer, which it says.
 */
#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "tests/cuda/fixture.h"
#include "tests/cuda/gpu_rig.h"

#define LITMUS_ROWS 64u
#define LITMUS_STEPS 1000000u
#define LITMUS_SECONDS 40u
#define LITMUS_BATCH 500u /* steps between two looks at the clock */

static const struct gpu_model litmus_model = {2, 1024, 8, R3RING_INT32};
static struct gpu_rig rig;

static void finish(void)
{
	if (rig.producer)
		gpu_rig_close(&rig);
}

TestSuite(gpu_litmus, .fini = finish, .timeout = 120);

static uint32_t asked(const char *name, uint32_t otherwise)
{
	const char *text = getenv(name);

	return text ? (uint32_t)strtoul(text, NULL, 10) : otherwise;
}

static uint32_t seconds_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint32_t)now.tv_sec;
}

static void run(const char *buffer_export)
{
	const uint32_t wanted = asked("GPU_LITMUS_STEPS", LITMUS_STEPS) / 2;
	const uint32_t until = seconds_now() + asked("GPU_LITMUS_SECONDS", LITMUS_SECONDS);

	gpu_rig_start(&rig, &litmus_model, LITMUS_ROWS, NULL);
	rig.options.buffer_export = buffer_export;
	gpu_rig_open(&rig);
	/* A bell a layer: the copies race the next layer's block. */
	while (rig.steps < wanted && seconds_now() < until) {
		uint32_t left = wanted - (uint32_t)rig.steps;

		gpu_run(&rig, left < LITMUS_BATCH ? left : LITMUS_BATCH, LITMUS_ROWS, 1);
	}
	fprintf(stderr, "litmus: %lu of %u steps by %s\n", rig.steps, wanted, buffer_export);
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
