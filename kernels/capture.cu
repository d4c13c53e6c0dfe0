/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels on the GPU: a team is a block, a worker is a thread. */
#include "kernels/body.h"
#include "kernels/cuda_kernels.h"

#define KERNEL static __global__ void __launch_bounds__(CUDA_BLOCK_THREADS)

KERNEL begin(const __grid_constant__ struct kernel_begin_args args)
{
	kernel_begin_clear(&args, threadIdx.x, blockDim.x);
	__syncthreads();
	if (threadIdx.x == 0)
		kernel_begin_arm(&args);
}

/* Most threads have nothing to add. */
static __device__ inline void tally_add(struct kernel_tally *sum, const struct kernel_tally *tally)
{
	if (tally->missing)
		atomicAdd(&sum->missing, tally->missing);
	if (tally->out_of_range)
		atomicAdd(&sum->out_of_range, tally->out_of_range);
}

KERNEL capture(const __grid_constant__ struct kernel_capture_args args)
{
	__shared__ struct kernel_tally sum;
	__shared__ bool rings;
	struct kernel_tally tally = {0, 0};
	struct kernel_launch launch;
	uint32_t from, to;

	if (!kernel_capture_plan(&args, &launch))
		return; /* all blocks and threads alike */
	if (threadIdx.x == 0)
		sum = tally;
	__syncthreads();
	kernel_capture_share(&launch, blockIdx.x, gridDim.x, &from, &to);
	kernel_capture_copy(&launch, from, to, threadIdx.x, blockDim.x, &tally);
	tally_add(&sum, &tally);
	__syncthreads();
	if (threadIdx.x == 0)
		rings = kernel_capture_report(&launch, from, to, &sum);
	__syncthreads();
	if (rings)
		kernel_capture_ring(&launch, threadIdx.x, blockDim.x);
}

KERNEL rows(const __grid_constant__ struct kernel_rows_args args)
{
	kernel_rows_copy(&args, threadIdx.x, blockDim.x);
	__syncthreads();
	if (threadIdx.x == 0)
		kernel_rows_report(&args);
}

KERNEL end(const __grid_constant__ struct kernel_end_args args)
{
	kernel_end_report(&args, threadIdx.x, blockDim.x);
	__syncthreads();
	if (threadIdx.x == 0)
		kernel_end_disarm(&args);
}

const void *cuda_kernel(enum cuda_kernel which)
{
	switch (which) {
	case CUDA_KERNEL_BEGIN:
		return (const void *)begin;
	case CUDA_KERNEL_CAPTURE:
		return (const void *)capture;
	case CUDA_KERNEL_ROWS:
		return (const void *)rows;
	case CUDA_KERNEL_END:
		return (const void *)end;
	default:
		return nullptr;
	}
}
