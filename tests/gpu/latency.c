/* SPDX-License-Identifier: Apache-2.0 */
/* From the end of a step to a reader: decode steps of a model, fifty a second. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#include <r3ring/reader.h>

#include "tests/gpu/bench.h"

#define STEPS 250u
#define PERIOD_NS 20000000u
#define ROWS 256u
#define WAIT_MS 5000

static struct r3ring_reader *open_reader(void)
{
	const struct r3ring_reader_options options = {.size = sizeof(options),
						      .channel = "gpu-bench/1",
						      .mode = R3RING_LOSSY,
						      .from = R3RING_FROM_LATEST};
	struct r3ring_reader *reader;
	struct r3ring_error err = {0};

	if (r3ring_reader_open(&reader, &options, &err)) {
		fprintf(stderr, "bench-gpu: r3ring_reader_open: %s\n", err.text);
		exit(1);
	}
	return reader;
}

/* When the end of the next step was read. */
static uint64_t await_end(struct r3ring_reader *reader)
{
	struct r3ring_view view;

	for (;;) {
		int r = r3ring_reader_next(reader, &view);

		if (r == 1 && r3ring_reader_check(reader) == 0 && view.type == R3RING_STEP_END)
			return bench_ns();
		if (r == 0 && r3ring_reader_wait(reader, WAIT_MS) != 1) {
			fprintf(stderr, "bench-gpu: no step came in %d ms\n", WAIT_MS);
			exit(1);
		}
	}
}

static void until(uint64_t ns)
{
	uint64_t now = bench_ns();

	if (ns > now)
		poll(NULL, 0, (int)((ns - now) / 1000000u));
}

void bench_latency(void)
{
	double passed[STEPS];
	struct bench_gpu gpu = {"deepseek-v4-flash", 43, 256, 6, ROWS, .producer = NULL};
	struct r3ring_reader *reader;
	uint32_t count = 0;
	uint64_t next;

	bench_gpu_open(&gpu, 1, 0);
	reader = open_reader();
	next = bench_ns();
	for (; count < STEPS && bench_has_time(); count++) {
		uint64_t start;

		until(next += PERIOD_NS);
		bench_begin(&gpu, ROWS, 0);
		for (uint32_t layer = 0; layer < gpu.layers; layer++)
			bench_capture(&gpu, layer, ROWS);
		start = bench_ns();
		bench_end(&gpu);
		passed[count] = (double)(await_end(reader) - start) / 1e3;
	}
	if (count == STEPS) {
		bench_median(passed, STEPS); /* sorts them */
		bench_tell("latency", "step end to reader at 50 steps/s, p50", 0, passed[STEPS / 2],
			   "us");
		bench_tell("latency", "step end to reader at 50 steps/s, p99", 0,
			   passed[STEPS * 99 / 100], "us");
	}
	r3ring_reader_close(reader);
	bench_gpu_close(&gpu);
}
