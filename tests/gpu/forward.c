/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A forward of matrix products, as large as a model's, with capture off, bound but not
 * armed, and drained: what a model loses by being watched. cuBLAS is looked for when it
 * runs, so the benchmark needs it neither to build nor for its other rows.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/gpu/bench.h"

#define REPEATS 7u
#define STEPS_MAX 10u
#define REPEAT_US 300000.0 /* about so long, with at least one step */

/* Sizes of one layer's products: attention and the experts that a token takes. */
struct forward_shape {
	const char *model;
	uint32_t layers, experts, top_k;
	int hidden, inner, products;
};

static const struct forward_shape shapes[] = {
	{"deepseek-v4-flash", 43, 256, 6, 4096, 2048, 9},
	{"kimi-k3", 92, 896, 16, 7168, 2048, 19},
};

/* As cublas_v2.h has them. */
typedef struct cublasContext *blas_handle;
struct blas {
	int (*create)(blas_handle *);
	int (*destroy)(blas_handle);
	int (*set_stream)(blas_handle, cudaStream_t);
	int (*gemm)(blas_handle, int, int, int, int, int, const void *, const void *, int, int,
		    const void *, int, int, const void *, void *, int, int, int, int);
};

#define BLAS_OP_N 0
#define BLAS_BF16 14 /* CUDA_R_16BF */
#define BLAS_COMPUTE_32F 68
#define BLAS_DEFAULT (-1)

static int blas_find(struct blas *blas)
{
	static const char *const names[] = {"libcublas.so.13", "libcublas.so.12", "libcublas.so"};
	void *library = NULL;

	for (size_t i = 0; !library && i < sizeof(names) / sizeof(*names); i++)
		library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
	if (!library)
		return -1;
	*(void **)&blas->create = dlsym(library, "cublasCreate_v2");
	*(void **)&blas->destroy = dlsym(library, "cublasDestroy_v2");
	*(void **)&blas->set_stream = dlsym(library, "cublasSetStream_v2");
	*(void **)&blas->gemm = dlsym(library, "cublasGemmEx");
	return blas->create && blas->destroy && blas->set_stream && blas->gemm ? 0 : -1;
}

struct forward {
	const struct forward_shape *shape;
	struct bench_gpu gpu;
	struct blas blas;
	blas_handle handle;
	void *weights, *from, *to;
};

static void blas_must(int status, const char *call)
{
	if (!status)
		return;
	fprintf(stderr, "bench-gpu: %s: status %d\n", call, status);
	exit(1);
}

enum watching { WATCH_OFF, WATCH_BOUND, WATCH_DRAINED };

static void run_layer(struct forward *forward, uint32_t layer, uint32_t rows,
		      enum watching watching)
{
	const struct forward_shape *shape = forward->shape;
	const float one = 1, zero = 0;

	for (int i = 0; i < shape->products; i++)
		blas_must(forward->blas.gemm(forward->handle, BLAS_OP_N, BLAS_OP_N, shape->inner,
					     (int)rows, shape->hidden, &one, forward->weights,
					     BLAS_BF16, shape->inner, forward->from, BLAS_BF16,
					     shape->hidden, &zero, forward->to, BLAS_BF16,
					     shape->inner, BLAS_COMPUTE_32F, BLAS_DEFAULT),
			  "cublasGemmEx");
	if (watching != WATCH_OFF)
		bench_capture(&forward->gpu, layer, rows);
}

/* Microseconds a step. */
static double time_forward(struct forward *forward, uint32_t rows, uint32_t steps,
			   enum watching watching)
{
	uint64_t start;

	MUST(cudaStreamSynchronize(forward->gpu.stream));
	start = bench_ns();
	for (uint32_t step = 0; step < steps; step++) {
		if (watching == WATCH_DRAINED)
			bench_begin(&forward->gpu, rows, 0);
		for (uint32_t layer = 0; layer < forward->shape->layers; layer++)
			run_layer(forward, layer, rows, watching);
		if (watching == WATCH_DRAINED)
			bench_end(&forward->gpu);
	}
	MUST(cudaStreamSynchronize(forward->gpu.stream));
	return (double)(bench_ns() - start) / steps / 1e3;
}

/* The first one also warms it up. */
static uint32_t steps_for(struct forward *forward, uint32_t rows)
{
	double us = time_forward(forward, rows, 1, WATCH_DRAINED);

	us = time_forward(forward, rows, 1, WATCH_DRAINED);
	return us * STEPS_MAX < REPEAT_US ? STEPS_MAX
	       : us < REPEAT_US           ? (uint32_t)(REPEAT_US / us)
					  : 1;
}

/* Interleaved, so that a GPU that gets warm does it to all three. */
static void measure(struct forward *forward, uint32_t rows)
{
	double off[REPEATS], bound[REPEATS], drained[REPEATS];
	char what[96];
	uint32_t steps;

	steps = steps_for(forward, rows);
	for (uint32_t i = 0; i < REPEATS; i++) {
		if (!bench_has_time())
			return;
		off[i] = time_forward(forward, rows, steps, WATCH_OFF);
		bound[i] = time_forward(forward, rows, steps, WATCH_BOUND);
		drained[i] = time_forward(forward, rows, steps, WATCH_DRAINED);
	}
	bench_median(off, REPEATS);
	snprintf(what, sizeof(what), "%s, %u rows: bound, beside off", forward->shape->model, rows);
	bench_tell("forward", what, off[REPEATS / 2], bench_median(bound, REPEATS), "us");
	snprintf(what, sizeof(what), "%s, %u rows: drained, beside off", forward->shape->model,
		 rows);
	bench_tell("forward", what, off[REPEATS / 2], bench_median(drained, REPEATS), "us");
}

static void run_shape(const struct blas *blas, blas_handle handle,
		      const struct forward_shape *shape)
{
	static const uint32_t rows[] = {64, 256, 8192};
	struct forward forward = {.shape = shape, .blas = *blas, .handle = handle};
	const size_t element = 2;

	forward.gpu = (struct bench_gpu){.model = shape->model,
					 .layers = shape->layers,
					 .experts = shape->experts,
					 .top_k = shape->top_k,
					 .rows = 8192};
	bench_gpu_open(&forward.gpu, 2, STEPS_MAX + 4);
	MUST(cudaMalloc(&forward.weights, (size_t)shape->hidden * (size_t)shape->inner * element));
	MUST(cudaMalloc(&forward.from, 8192u * (size_t)shape->hidden * element));
	MUST(cudaMalloc(&forward.to, 8192u * (size_t)shape->inner * element));
	blas_must(blas->set_stream(forward.handle, forward.gpu.stream), "cublasSetStream");
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows) && bench_has_time(); i++)
		measure(&forward, rows[i]);
	bench_tell("forward", "steps dropped: figures above are void unless 0", 0,
		   (double)bench_dropped(&forward.gpu), "steps");
	MUST(cudaFree(forward.weights));
	MUST(cudaFree(forward.from));
	MUST(cudaFree(forward.to));
	bench_gpu_close(&forward.gpu);
}

void bench_forward(void)
{
	blas_handle handle;
	struct blas blas;

	if (blas_find(&blas) || blas.create(&handle)) {
		printf("forward   left out: no libcublas that works\n");
		return;
	}
	for (size_t i = 0; i < sizeof(shapes) / sizeof(*shapes) && bench_has_time(); i++)
		run_shape(&blas, handle, &shapes[i]);
	blas_must(blas.destroy(handle), "cublasDestroy");
}
