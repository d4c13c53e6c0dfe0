/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernels as cudaLaunchKernel() takes them. Each has one parameter, its
 * argument struct of kernels/kernels.h by value, and no dynamic shared memory.
 */
#ifndef KERNELS_CUDA_KERNELS_H
#define KERNELS_CUDA_KERNELS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CUDA_BLOCK_THREADS 256u
/* Each thread of a block converts eight ids (16 bytes of the record) at a time. */
#define CUDA_BLOCK_IDS (8u * CUDA_BLOCK_THREADS)
#define CUDA_BLOCKS_MAX 512u

enum cuda_kernel {
	CUDA_KERNEL_BEGIN,   /* one block */
	CUDA_KERNEL_CAPTURE, /* cuda_capture_blocks() */
	CUDA_KERNEL_ROWS,    /* one block */
	CUDA_KERNEL_END,     /* one block */
	CUDA_KERNEL_COUNT,
};

/* What to launch, with blocks of CUDA_BLOCK_THREADS threads. */
const void *cuda_kernel(enum cuda_kernel which);

/* As few blocks as keep each of their threads busy: a decode takes one or two and
 * leaves the other multiprocessors to the model. */
static inline uint32_t cuda_capture_blocks(uint32_t rows, uint32_t top_k)
{
	uint64_t blocks = ((uint64_t)rows * top_k + CUDA_BLOCK_IDS - 1) / CUDA_BLOCK_IDS;

	if (blocks > CUDA_BLOCKS_MAX)
		blocks = CUDA_BLOCKS_MAX;
	if (blocks > rows)
		blocks = rows;
	return blocks ? (uint32_t)blocks : 1;
}

#ifdef __cplusplus
}
#endif

#endif
