/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launches. All that a producer calls between open and close is in this file, and
 * none of it waits, allocates, or is forbidden on a stream that is being captured.
 */
#include <errno.h>

#include "device/cuda.h"
#include "kernels/cuda_kernels.h"

/*
 * Where another stream of the process is being captured, the legacy default stream
 * cannot even be asked about: whatever is enqueued there would spoil the capture.
 */
bool cuda_stream_capturing(struct device *device, void *stream)
{
	enum cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
	cudaError_t code = cudaStreamIsCapturing(stream, &status);

	if (code == cudaSuccess)
		return status != cudaStreamCaptureStatusNone;
	cuda_work_failed(device, code, "cudaStreamIsCapturing");
	return code == cudaErrorStreamCaptureImplicit;
}

/* On the GPU that the producer was opened with, whichever is current. */
static int launch(struct device *device, cudaStream_t stream, enum cuda_kernel which,
		  uint32_t blocks, void *args)
{
	void *parameters[] = {args};
	int before;
	cudaError_t code = cuda_gpu_enter(device->gpu, &before);

	if (code != cudaSuccess)
		return cuda_work_failed(device, code, "cudaSetDevice");
	code = cudaLaunchKernel(cuda_kernel(which), (dim3){blocks, 1, 1},
				(dim3){CUDA_BLOCK_THREADS, 1, 1}, parameters, 0, stream);
	cuda_gpu_leave(device->gpu, before);
	return code == cudaSuccess ? 0 : cuda_work_failed(device, code, "cudaLaunchKernel");
}

/* ---- the side stream ---------------------------------------------------- */

/* What is enqueued on @to from now on comes after all that is on @from. */
static int order(struct device *device, cudaEvent_t event, cudaStream_t from, cudaStream_t to)
{
	cudaError_t code = cudaEventRecord(event, from);

	if (code != cudaSuccess)
		return cuda_work_failed(device, code, "cudaEventRecord");
	code = cudaStreamWaitEvent(to, event, 0);
	return code == cudaSuccess ? 0 : cuda_work_failed(device, code, "cudaStreamWaitEvent");
}

static int join_side(struct device *device, cudaStream_t stream)
{
	int ret;

	if (!device->side_used)
		return 0;
	ret = order(device, device->joined, device->side, stream);
	if (!ret)
		device->side_used = false;
	return ret;
}

/*
 * The stream that a capture goes to. While the caller's is recorded into a graph
 * it is that one: at replay the ids live only until what follows uses their memory.
 */
static int choose_stream(struct device *device, cudaStream_t stream, cudaStream_t *chosen)
{
	int ret;

	*chosen = stream;
	if (!device->options.side_stream || cuda_stream_capturing(device, stream))
		return 0;
	ret = order(device, device->forked, stream, device->side);
	if (ret)
		return ret;
	device->side_used = true;
	*chosen = device->side;
	return 0;
}

/* ---- the launches ------------------------------------------------------- */

int cuda_launch_begin(struct device *device, void *stream, const struct kernel_begin_args *args)
{
	struct kernel_begin_args copy = *args;
	/* Captures of a step that never ended must not see this one. */
	int ret = join_side(device, stream);

	return ret ? ret : launch(device, stream, CUDA_KERNEL_BEGIN, 1, &copy);
}

int cuda_launch_capture(struct device *device, void *stream, const struct kernel_capture_args *args)
{
	struct kernel_capture_args copy = *args;
	cudaStream_t chosen;
	int ret = choose_stream(device, stream, &chosen);

	return ret ? ret
		   : launch(device, chosen, CUDA_KERNEL_CAPTURE,
			    cuda_capture_blocks(args->rows, args->geometry.top_k), &copy);
}

int cuda_launch_rows(struct device *device, void *stream, const struct kernel_rows_args *args)
{
	struct kernel_rows_args copy = *args;

	return launch(device, stream, CUDA_KERNEL_ROWS, 1, &copy);
}

/*
 * The order by event: it is recorded before the end kernel is enqueued, so that the
 * daemon, which hears of the end from that kernel, finds it recorded.
 */
int cuda_launch_end(struct device *device, void *stream, const struct kernel_end_args *args)
{
	struct kernel_end_args copy = *args;
	cudaError_t code;
	int ret = join_side(device, stream);

	if (ret)
		return ret;
	if (device->ordered) {
		code = cudaEventRecord(device->ordered, stream);
		if (code != cudaSuccess)
			return cuda_work_failed(device, code, "cudaEventRecord");
	}
	return launch(device, stream, CUDA_KERNEL_END, 1, &copy);
}
