/* SPDX-License-Identifier: Apache-2.0 */
/* Making a GPU the current one of a thread, for the length of a call. */
#include "device/cuda.h"

cudaError_t cuda_gpu_enter(int gpu, int *before)
{
	cudaError_t code = cudaGetDevice(before);

	if (code != cudaSuccess || *before == gpu)
		return code;
	return cudaSetDevice(gpu);
}

void cuda_gpu_leave(int gpu, int before)
{
	/* It was current a moment ago, so it can be made current again. */
	if (before != gpu && cudaSetDevice(before) != cudaSuccess)
		cudaGetLastError();
}
