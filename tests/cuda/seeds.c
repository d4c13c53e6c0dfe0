/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Engines of all kinds by chance, on a machine whose streams, blocks and copies run in
 * an order by chance: what a seed decides, it decides again. R3RING_CUDA_SEEDS=COUNT or
 * FIRST-LAST says which seeds; a handful without it.
 */
#include <criterion/criterion.h>
#include <criterion/parameterized.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/cuda/fixture.h"
#include "tests/cuda/gpu_rig.h"
#include "tests/support/fakecuda/fakecuda.h"

#define STEPS 30u
#define BATCHES 3u
#define READ_BEHIND 2u

/* What is to be read of a step. */
struct told {
	uint32_t rows, valid;
	uint32_t left_out; /* layer + 1; 0: none */
	bool dropped;
};

static struct gpu_rig rig;
static struct told told[STEPS + 1];
static uint64_t next_to_read;
static cudaGraphExec_t graphs[BATCHES];
static uint32_t batches[BATCHES];
static uint64_t state;
static unsigned int seed;

static uint32_t any(uint32_t below)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (uint32_t)((state >> 20) % below);
}

static void finish(void)
{
	gpu_rig_close(&rig);
}

TestSuite(cuda_seeds, .fini = finish, .timeout = 100);

/* ---- an engine by chance ------------------------------------------------ */

static void start(void)
{
	static const uint32_t most[] = {1, 7, 33, 200, 700};
	const struct gpu_model model = {
		.layers = 1 + any(12),
		.experts = 32 + any(900),
		.top_k = 1 + any(16),
		.id_type = any(2) ? R3RING_INT64 : R3RING_INT32,
	};
	char text[16];

	snprintf(text, sizeof(text), "%u", seed);
	setenv("FAKECUDA_SEED", text, 1);
	gpu_rig_start(&rig, &model, most[any(5)], NULL);
	rig.options.buffer_bytes = rig.options.buffer_bytes / 16 * (3 + any(13));
	rig.options.buffer_export = any(2) ? "fd" : "ipc";
	if (strcmp(rig.options.buffer_export, "ipc") == 0 && any(2))
		rig.options.order = "event";
	rig.options.side_stream = any(2);
	if (rig.options.side_stream)
		rig.buffers = model.layers;
	gpu_rig_open(&rig);
	for (uint32_t i = 0; i < BATCHES; i++)
		batches[i] = 1 + any(rig.rows);
}

/* In the side stream's case the ids of one step must outlive it. */
static void let_ids_go(void)
{
	gpu_wait(rig.stream);
}

static void forward(uint32_t area, uint32_t rows, uint32_t left_out)
{
	uint32_t cut = any(3) ? rows : any(rows + 1);

	gpu_order(rig.forked, rig.stream, rig.other);
	for (uint32_t layer = 0; layer < rig.options.layer_count; layer++) {
		if (layer + 1 == left_out)
			continue;
		gpu_layer(&rig, area, layer, 0, cut, rig.stream);
		if (cut < rows)
			gpu_layer(&rig, area, layer, cut, rows, rig.other);
	}
	gpu_order(rig.joined, rig.other, rig.stream);
}

static void record(uint32_t which)
{
	gpu_record_begin(&rig);
	forward(which, batches[which], 0);
	graphs[which] = gpu_record_end(&rig);
}

static uint64_t dropped_so_far(void)
{
	struct r3ring_producer_stats stats;

	r3ring_producer_get_stats(rig.producer, &stats);
	return stats.dropped_steps[R3RING_CAUSE_BUFFER_FULL];
}

static void begin(const struct told *tell)
{
	struct r3ring_step step = gpu_plain_step(tell->rows);
	uint64_t before = dropped_so_far();

	step.valid_end = tell->valid;
	step.doorbell_layers = any(rig.options.layer_count + 1);
	cr_assert_gt(gpu_begin(&rig, &step), 0, "seed %u: %s", seed,
		     r3ring_producer_error(rig.producer));
	told[rig.steps] = *tell;
	told[rig.steps].dropped = dropped_so_far() != before;
}

static void step_by_graph(void)
{
	uint32_t which = any(BATCHES);
	struct told tell = {.rows = batches[which], .valid = any(batches[which] + 1)};

	if (!graphs[which])
		record(which);
	gpu_fill(&rig, which, rig.steps + 1, 0, tell.rows);
	begin(&tell);
	cr_assert_eq(cudaGraphLaunch(graphs[which], rig.stream), cudaSuccess);
	gpu_end(&rig);
	gpu_filled(&rig, which, rig.stream);
}

static void step_by_hand(void)
{
	struct told tell = {.rows = any(rig.rows + 1)};
	uint32_t area = any(GPU_AREAS);

	tell.valid = any(3) ? tell.rows : any(tell.rows + 1);
	if (tell.rows && any(4) == 0)
		tell.left_out = 1 + any(rig.options.layer_count);
	gpu_fill(&rig, area, rig.steps + 1, 0, tell.rows);
	begin(&tell);
	forward(area, tell.rows, tell.left_out);
	gpu_end(&rig);
	gpu_filled(&rig, area, rig.stream);
}

/* A forward that is no step: nothing of it may ever be seen. */
static void forward_unannounced(void)
{
	uint32_t area = any(GPU_AREAS);

	gpu_fill(&rig, area, 123456, 0, rig.rows);
	forward(area, rig.rows, 0);
	gpu_filled(&rig, area, rig.stream);
}

/* ---- what was read ------------------------------------------------------ */

static void expect_told(const struct told *tell, uint64_t step)
{
	const struct read_step *read = &rig.reader.step;

	cr_assert_eq(read->head.step, step, "seed %u: step %lu in place of %lu", seed,
		     read->head.step, step);
	cr_assert_eq(read->bad_records, 0, "seed %u, step %lu", seed, step);
	cr_assert_eq(read->end.missing, tell->left_out ? 1 : 0, "seed %u, step %lu", seed, step);
	for (uint32_t layer = 0; layer < rig.options.layer_count; layer++) {
		if (layer + 1 == tell->left_out)
			cr_assert_eq(read_step_came(&rig.reader, layer, 0, tell->rows), 0);
		else
			cr_assert_eq(read_step_wrong(&rig.reader, layer, 0, tell->valid), 0,
				     "seed %u, step %lu, layer %u", seed, step, layer);
	}
	cr_assert_eq(gpu_wrong_ids(&rig, 0, tell->valid), 0, "seed %u, step %lu", seed, step);
}

static void read_until(uint64_t step)
{
	for (; next_to_read <= step; next_to_read++) {
		if (told[next_to_read].dropped)
			continue;
		cr_assert(step_reader_next(&rig.reader), "seed %u: step %lu has no end", seed,
			  next_to_read);
		expect_told(&told[next_to_read], next_to_read);
	}
}

static void run_seed(unsigned int number)
{
	seed = number;
	state = (number + 1) * 0x9E3779B97F4A7C15u;
	start();
	next_to_read = 1;
	while (rig.steps < STEPS) {
		if (any(6) == 0)
			forward_unannounced();
		if (any(2))
			step_by_graph();
		else
			step_by_hand();
		if (rig.options.side_stream || any(8) == 0)
			let_ids_go();
		if (rig.steps > READ_BEHIND && any(3))
			read_until(rig.steps - READ_BEHIND);
	}
	read_until(rig.steps);
	finish();
}

ParameterizedTestParameters(cuda_seeds, every_engine_tells_the_truth)
{
	const char *text = getenv("R3RING_CUDA_SEEDS");
	unsigned long first = 1, last = 6;
	unsigned int *seeds;
	char *end;

	if (text) {
		last = strtoul(text, &end, 10);
		if (*end == '-') {
			first = last;
			last = strtoul(end + 1, NULL, 10);
		}
	}
	seeds = cr_malloc((last - first + 1) * sizeof(*seeds));
	for (unsigned long i = first; i <= last; i++)
		seeds[i - first] = (unsigned int)i;
	return cr_make_param_array(unsigned int, seeds, last - first + 1, NULL);
}

ParameterizedTest(unsigned int *number, cuda_seeds, every_engine_tells_the_truth)
{
	run_seed(*number);
}
