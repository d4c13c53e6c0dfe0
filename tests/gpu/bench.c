/* SPDX-License-Identifier: Apache-2.0 */
/*
 * usage: R3RING_RUNTIME_DIR=DIR bench-gpu RESULTS.json SECONDS
 *
 * A daemon must serve DIR. What does not fit into SECONDS is left out, and that is told. Prints a table; tests/gpu/run.sh does all around it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/gpu/bench.h"

#define REPEATS 9u
#define STEPS 20u /* of one repeat */

static FILE *results;
static const char *comma = "";
static uint64_t deadline_ns;
static bool time_is_over;

/* ---- telling ------------------------------------------------------------ */

void bench_must(cudaError_t error, const char *call)
{
	if (error == cudaSuccess)
		return;
	fprintf(stderr, "bench-gpu: %s: %s\n", call, cudaGetErrorString(error));
	exit(1);
}

void bench_tell(const char *group, const char *what, double floor, double value, const char *unit)
{
	printf("%-9s %-62s ", group, what);
	if (floor > 0)
		printf("%10.4g %10.4g %-6s %6.2fx\n", floor, value, unit, value / floor);
	else
		printf("%10s %10.4g %-6s\n", "", value, unit);
	fprintf(results,
		"%s\n{\"group\": \"%s\", \"what\": \"%s\", \"floor\": %g, \"value\": %g, \"unit\": "
		"\"%s\"}",
		comma, group, what, floor, value, unit);
	comma = ",";
	fflush(stdout); /* it may be ended at any time */
	fflush(results);
}

uint64_t bench_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

bool bench_has_time(void)
{
	if (!time_is_over && bench_ns() >= deadline_ns) {
		time_is_over = true;
		bench_tell("time", "is over: what would follow was left out", 0, 0, "");
	}
	return !time_is_over;
}

static int ascending(const void *a, const void *b)
{
	double first = *(const double *)a, second = *(const double *)b;

	return (first > second) - (first < second);
}

double bench_median(double *values, uint32_t count)
{
	qsort(values, count, sizeof(*values), ascending);
	return values[count / 2];
}

/* ---- the producer ------------------------------------------------------- */

static void refuse(const char *what, const char *why)
{
	fprintf(stderr, "bench-gpu: %s: %s\n", what, why);
	exit(1);
}

static void ids_make(struct bench_gpu *gpu)
{
	size_t count = (size_t)gpu->rows * gpu->top_k;
	int32_t *ids = malloc(count * sizeof(*ids));
	void *memory;

	if (!ids)
		refuse("ids", "out of memory");
	for (size_t i = 0; i < count; i++)
		ids[i] = (int32_t)(i * 7919u % gpu->experts);
	gpu->ids_bytes = count * sizeof(*ids);
	MUST(cudaMalloc(&memory, gpu->ids_bytes));
	gpu->ids = memory;
	MUST(cudaMalloc(&memory, gpu->ids_bytes));
	gpu->other = memory;
	MUST(cudaMemcpy(gpu->ids, ids, gpu->ids_bytes, cudaMemcpyHostToDevice));
	free(ids);
}

/* Counters, heads and padding come to less than 128 bytes a layer and record. */
static uint64_t buffer_bytes(const struct bench_gpu *gpu, uint32_t steps)
{
	uint64_t layer = 2ull * gpu->rows * gpu->top_k + 128 * (gpu->rows / 1024 + 2);

	return steps * layer * gpu->layers;
}

uint64_t bench_dropped(const struct bench_gpu *gpu)
{
	struct r3ring_producer_stats stats;
	uint64_t dropped = 0;

	r3ring_producer_get_stats(gpu->producer, &stats);
	for (uint32_t cause = 0; cause < R3RING_CAUSE_COUNT; cause++)
		dropped += stats.dropped_steps[cause];
	return dropped;
}

void bench_gpu_open(struct bench_gpu *gpu, uint32_t rank, uint32_t steps)
{
	struct r3ring_producer_options options = {.size = sizeof(options),
						  .instance = "gpu-bench",
						  .rank = rank,
						  .device = "cuda",
						  .model = gpu->model,
						  .experts = gpu->experts,
						  .top_k = gpu->top_k,
						  .max_rows = gpu->rows,
						  .layer_count = gpu->layers,
						  .buffer_bytes = buffer_bytes(gpu, steps)};
	struct r3ring_error err = {0};
	size_t total;

	gpu->layer = calloc(gpu->layers, sizeof(*gpu->layer));
	if (!gpu->layer)
		refuse("layers", "out of memory");
	for (uint32_t i = 0; i < gpu->layers; i++)
		gpu->layer[i].layer_id = (int32_t)i;
	options.layers = gpu->layer;
	MUST(cudaStreamCreateWithFlags(&gpu->stream, cudaStreamNonBlocking));
	ids_make(gpu);
	MUST(cudaMemGetInfo(&gpu->free_before, &total));
	if (r3ring_producer_open(&gpu->producer, &options, &err))
		refuse("r3ring_producer_open", err.text);
	MUST(cudaMemGetInfo(&gpu->free_after, &total));
}

void bench_gpu_close(struct bench_gpu *gpu)
{
	r3ring_producer_close(gpu->producer);
	MUST(cudaFree(gpu->ids));
	MUST(cudaFree(gpu->other));
	MUST(cudaStreamDestroy(gpu->stream));
	free(gpu->layer);
}

void bench_begin(struct bench_gpu *gpu, uint32_t rows, uint32_t doorbell)
{
	const struct r3ring_step step = {.size = sizeof(step),
					 .total_rows = rows,
					 .row_end = rows,
					 .valid_end = rows,
					 .doorbell_layers = doorbell};

	if (r3ring_step_begin(gpu->producer, &step, gpu->stream) < 0)
		refuse("r3ring_step_begin", r3ring_producer_error(gpu->producer));
}

void bench_capture(struct bench_gpu *gpu, uint32_t layer, uint32_t rows)
{
	const struct r3ring_topk topk = {.ids = gpu->ids,
					 .type = R3RING_INT32,
					 .rows = rows,
					 .columns = gpu->top_k,
					 .row_stride = gpu->top_k};

	if (r3ring_capture_layer(gpu->producer, layer, &topk, gpu->stream))
		refuse("r3ring_capture_layer", r3ring_producer_error(gpu->producer));
}

void bench_end(struct bench_gpu *gpu)
{
	if (r3ring_step_end(gpu->producer, gpu->stream))
		refuse("r3ring_step_end", r3ring_producer_error(gpu->producer));
}

/* ---- one layer ---------------------------------------------------------- */

/* What a recorded graph does once for each layer. */
enum layer_work { WORK_NONE, WORK_LAUNCH, WORK_COPY, WORK_CAPTURE };

static cudaGraphExec_t record(struct bench_gpu *gpu, enum layer_work work, uint32_t rows)
{
	size_t bytes = (size_t)rows * gpu->top_k * sizeof(int32_t);
	cudaGraphExec_t exec;
	cudaGraph_t graph;

	MUST(cudaStreamBeginCapture(gpu->stream, cudaStreamCaptureModeThreadLocal));
	for (uint32_t layer = 0; work != WORK_NONE && layer < gpu->layers; layer++) {
		if (work == WORK_COPY)
			MUST(cudaMemcpyAsync(gpu->other, gpu->ids, bytes, cudaMemcpyDeviceToDevice,
					     gpu->stream));
		else
			bench_capture(gpu, layer, rows);
	}
	MUST(cudaStreamEndCapture(gpu->stream, &graph));
	MUST(cudaGraphInstantiate(&exec, graph, 0));
	MUST(cudaGraphDestroy(graph));
	return exec;
}

/* Microseconds for each step: with or without capture being armed. */
static double time_steps(struct bench_gpu *gpu, cudaGraphExec_t exec, uint32_t rows, bool armed,
			 uint32_t doorbell)
{
	double repeats[REPEATS];

	for (uint32_t i = 0; i < REPEATS; i++) {
		uint64_t start;

		MUST(cudaStreamSynchronize(gpu->stream));
		start = bench_ns();
		for (uint32_t step = 0; step < STEPS; step++) {
			if (armed)
				bench_begin(gpu, rows, doorbell);
			MUST(cudaGraphLaunch(exec, gpu->stream));
			if (armed)
				bench_end(gpu);
		}
		MUST(cudaStreamSynchronize(gpu->stream));
		repeats[i] = (double)(bench_ns() - start) / STEPS / 1e3;
	}
	return bench_median(repeats, REPEATS);
}

static double time_work(struct bench_gpu *gpu, enum layer_work work, uint32_t rows, bool armed,
			uint32_t doorbell)
{
	cudaGraphExec_t exec = record(gpu, work, rows);
	double us = time_steps(gpu, exec, rows, armed, doorbell);

	MUST(cudaGraphExecDestroy(exec));
	return us;
}

static void bench_layers(struct bench_gpu *gpu, uint32_t rows)
{
	double launch = time_work(gpu, WORK_LAUNCH, rows, false, 0) / gpu->layers;
	double copy = time_work(gpu, WORK_COPY, rows, false, 0) / gpu->layers;
	double capture = time_work(gpu, WORK_CAPTURE, rows, true, 0) / gpu->layers;
	double bell = time_work(gpu, WORK_CAPTURE, rows, true, 1) / gpu->layers;
	char what[96];

	snprintf(what, sizeof(what), "%s, %u rows: a launch that captures nothing", gpu->model,
		 rows);
	bench_tell("layer", what, 0, launch, "us");
	snprintf(what, sizeof(what), "%s, %u rows: capture, beside a copy of its ids", gpu->model,
		 rows);
	bench_tell("layer", what, copy, capture, "us");
	snprintf(what, sizeof(what), "%s, %u rows: with a bell a layer, beside without", gpu->model,
		 rows);
	bench_tell("layer", what, capture, bell, "us");
}

static void bench_calls(struct bench_gpu *gpu, uint32_t rows)
{
	double repeats[REPEATS];
	char what[96];

	for (uint32_t i = 0; i < REPEATS; i++) {
		uint64_t passed = 0;

		for (uint32_t step = 0; step < STEPS; step++) {
			uint64_t start = bench_ns();

			bench_begin(gpu, rows, 0);
			for (uint32_t layer = 0; layer < gpu->layers; layer++)
				bench_capture(gpu, layer, rows);
			bench_end(gpu);
			passed += bench_ns() - start;
			MUST(cudaStreamSynchronize(gpu->stream));
		}
		repeats[i] = (double)passed / STEPS / (gpu->layers + 2) / 1e3;
	}
	snprintf(what, sizeof(what), "%s, %u rows: host time of a call", gpu->model, rows);
	bench_tell("calls", what, 0, bench_median(repeats, REPEATS), "us");
}

/* ---- a model ------------------------------------------------------------ */

static void bench_memory(struct bench_gpu gpu)
{
	char what[96];

	bench_gpu_open(&gpu, 0, 0);
	snprintf(what, sizeof(what), "%s: GPU memory that opening takes (8192 rows)", gpu.model);
	bench_tell("memory", what, 0, (double)(gpu.free_before - gpu.free_after) / 1e6, "MB");
	bench_gpu_close(&gpu);
}

static void bench_model(struct bench_gpu gpu)
{
	static const uint32_t rows[] = {1, 64, 1024, 8192};

	bench_memory(gpu);
	bench_gpu_open(&gpu, 0, STEPS + 4);
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows) && bench_has_time(); i++)
		bench_layers(&gpu, rows[i]);
	bench_calls(&gpu, 64);
	bench_tell("layer", "steps dropped: figures above are void unless 0", 0,
		   (double)bench_dropped(&gpu), "steps");
	bench_gpu_close(&gpu);
}

int main(int argc, char **argv)
{
	if (argc != 3)
		refuse("usage", "bench-gpu RESULTS.json SECONDS");
	deadline_ns = bench_ns() + strtoull(argv[2], NULL, 10) * 1000000000u;
	results = fopen(argv[1], "w");
	if (!results)
		refuse(argv[1], "cannot be written");
	fprintf(results, "[");
	printf("%-9s %-62s %10s %10s\n", "group", "what", "floor", "measured");
	bench_model((struct bench_gpu){"deepseek-v4-flash", 43, 256, 6, 8192, .producer = NULL});
	bench_model((struct bench_gpu){"kimi-k3", 92, 896, 16, 8192, .producer = NULL});
	if (bench_has_time())
		bench_latency();
	if (bench_has_time())
		bench_forward();
	fprintf(results, "\n]\n");
	return fclose(results) == 0 ? 0 : 1;
}
