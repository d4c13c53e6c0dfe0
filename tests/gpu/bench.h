/* SPDX-License-Identifier: Apache-2.0 */
/* What capture costs on a GPU, beside what the same GPU does with the bytes alone. */
#ifndef TESTS_GPU_BENCH_H
#define TESTS_GPU_BENCH_H

#include <stdbool.h>
#include <stdint.h>

#include <cuda_runtime_api.h>

#include <r3ring/producer.h>

/* One producer with a model's sizes, and ids that lie on the GPU already. */
struct bench_gpu {
	const char *model;
	uint32_t layers, experts, top_k, rows;
	struct r3ring_layer_entry *layer; /* [layers] */
	struct r3ring_producer *producer;
	cudaStream_t stream;
	int32_t *ids;   /* on the GPU: [rows][top_k] */
	uint8_t *other; /* on the GPU: room for a copy of them */
	size_t ids_bytes;
	size_t free_before, free_after; /* of the GPU, around the opening */
};

/* Ends the program with a message when a call fails. */
void bench_must(cudaError_t error, const char *call);
#define MUST(call) bench_must(call, #call)

/* @steps: so many of the largest find room in the buffer at a time; 0: as by default. */
void bench_gpu_open(struct bench_gpu *gpu, uint32_t rank, uint32_t steps);
void bench_gpu_close(struct bench_gpu *gpu);

/* Steps that found no room: they captured nothing, so what was measured is void. */
uint64_t bench_dropped(const struct bench_gpu *gpu);

void bench_begin(struct bench_gpu *gpu, uint32_t rows, uint32_t doorbell);
void bench_capture(struct bench_gpu *gpu, uint32_t layer, uint32_t rows);
void bench_end(struct bench_gpu *gpu);

uint64_t bench_ns(void);

/* Whether there is time for something more; tells once that there is none. */
bool bench_has_time(void);
double bench_median(double *values, uint32_t count);

/* One result: a line of the table on standard output, and an object in the JSON file.
 * @floor: 0 for none. */
void bench_tell(const char *group, const char *what, double floor, double value, const char *unit);

/* forward.c: a forward of matrix products, with capture off, bound and drained. */
void bench_forward(void);

/* latency.c: from the end of a step to a reader. */
void bench_latency(void);

#endif
