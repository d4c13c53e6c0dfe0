/* SPDX-License-Identifier: Apache-2.0 */
/* A CPU's work on a stream of the GPU. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "device/cuda.h"
#include "device/gpu_work.h"

static int work_stream_create(r3ring_stream *stream, struct r3ring_error *err)
{
	cudaStream_t made;
	int ret = cuda_probe(err);
	cudaError_t code;

	if (ret)
		return ret;
	code = cudaStreamCreateWithPriority(&made, cudaStreamNonBlocking, 0);
	if (code != cudaSuccess)
		return cuda_failed(err, code, "cudaStreamCreateWithPriority", NULL);
	*stream = made;
	return 0;
}

static void work_stream_destroy(r3ring_stream stream)
{
	if (!stream)
		return;
	if (cudaStreamSynchronize(stream) != cudaSuccess)
		cudaGetLastError();
	if (cudaStreamDestroy(stream) != cudaSuccess)
		cudaGetLastError();
}

struct piece {
	r3ring_host_work_fn fn;
	uint64_t args[];
};

static void CUDART_CB run_piece(void *data)
{
	struct piece *piece = data;

	piece->fn(piece->args);
	free(piece);
}

static int work_enqueue(r3ring_stream stream, r3ring_host_work_fn fn, const void *args, size_t size)
{
	struct piece *piece = malloc(sizeof(*piece) + size);

	if (!piece)
		return -ENOMEM;
	piece->fn = fn;
	if (size)
		memcpy(piece->args, args, size);
	if (cudaLaunchHostFunc(stream, run_piece, piece) == cudaSuccess)
		return 0;
	cudaGetLastError();
	free(piece);
	return -EIO;
}

static void *work_alloc(size_t bytes)
{
	void *memory;

	if (cudaHostAlloc(&memory, bytes, cudaHostAllocMapped) != cudaSuccess) {
		cudaGetLastError();
		return NULL;
	}
	return memset(memory, 0, bytes);
}

static void work_free(void *memory)
{
	if (memory && cudaFreeHost(memory) != cudaSuccess)
		cudaGetLastError();
}

const struct gpu_work_ops gpu_work = {
	.stream_create = work_stream_create,
	.stream_destroy = work_stream_destroy,
	.enqueue = work_enqueue,
	.alloc = work_alloc,
	.free = work_free,
};
