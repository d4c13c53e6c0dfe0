/* SPDX-License-Identifier: Apache-2.0 */
/* The CUDA device: opening and closing, the control block, the table. */
#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "device/cuda.h"

#define FIRST_LAUNCH_NS 10000000000 /* code for a GPU newer than the build is compiled then */
#define FIRST_LAUNCH_NAP_NS 100000

/* ---- opening ------------------------------------------------------------ */

static int make_stream(cudaStream_t *stream, struct r3ring_error *err)
{
	int least, greatest;
	cudaError_t code = cudaDeviceGetStreamPriorityRange(&least, &greatest);

	if (code != cudaSuccess)
		return cuda_failed(err, code, "cudaDeviceGetStreamPriorityRange", NULL);
	code = cudaStreamCreateWithPriority(stream, cudaStreamNonBlocking, least);
	return code == cudaSuccess ? 0
				   : cuda_failed(err, code, "cudaStreamCreateWithPriority", NULL);
}

static int make_event(cudaEvent_t *event, unsigned int flags, struct r3ring_error *err)
{
	cudaError_t code = cudaEventCreateWithFlags(event, cudaEventDisableTiming | flags);

	return code == cudaSuccess ? 0 : cuda_failed(err, code, "cudaEventCreateWithFlags", NULL);
}

/* With the GPU that is current: it is the engine's. */
static int open_producer(struct device *device, struct r3ring_error *err)
{
	cudaError_t code = cudaGetDevice(&device->gpu);
	int ret;

	if (code != cudaSuccess)
		return cuda_failed(err, code, "cudaGetDevice", NULL);
	code = cudaSetDevice(device->gpu);
	if (code != cudaSuccess)
		return cuda_failed(err, code, "cudaSetDevice", NULL);
	ret = make_stream(&device->side, err);
	if (!ret && device->options.side_stream)
		ret = make_event(&device->forked, 0, err);
	if (!ret && device->options.side_stream)
		ret = make_event(&device->joined, 0, err);
	if (!ret && device->options.order == R3RING_ORDER_EVENT)
		ret = make_event(&device->ordered, cudaEventInterprocess, err);
	return ret;
}

static void destroy_stream(const struct device *device, cudaStream_t stream)
{
	if (stream)
		cuda_check_release(device, cudaStreamDestroy(stream), "cudaStreamDestroy");
}

static void destroy_event(const struct device *device, cudaEvent_t event)
{
	if (event)
		cuda_check_release(device, cudaEventDestroy(event), "cudaEventDestroy");
}

static void cuda_close(struct device *device)
{
	if (!device)
		return;
	if (device->options.imports) {
		cuda_context_put(device);
	} else {
		destroy_event(device, device->ordered);
		destroy_event(device, device->joined);
		destroy_event(device, device->forked);
		destroy_stream(device, device->side);
	}
	free(device);
}

static int cuda_open(struct device **device, const struct device_options *options,
		     struct r3ring_error *err)
{
	struct device *made = calloc(1, sizeof(*made));
	int ret = 0;

	if (!made)
		return r3ring_error_set(err, -ENOMEM, "device \"cuda\": out of memory");
	made->options = *options;
	made->gpu = CUDA_GPU_NONE;
	/* The daemon learns the GPU from the buffer. */
	if (!options->imports)
		ret = open_producer(made, err);
	if (ret) {
		cuda_close(made);
		return ret;
	}
	*device = made;
	return 0;
}

static const char *cuda_fault(const struct device *device)
{
	return device->fault;
}

/* ---- the control block -------------------------------------------------- */

static int wait_for_side(struct device *device, struct r3ring_error *err)
{
	const struct timespec nap = {.tv_nsec = FIRST_LAUNCH_NAP_NS};
	cudaError_t code = cudaErrorNotReady;

	for (long waited = 0; waited < FIRST_LAUNCH_NS; waited += nap.tv_nsec) {
		code = cudaStreamQuery(device->side);
		if (code != cudaErrorNotReady)
			break;
		clock_nanosleep(CLOCK_MONOTONIC, 0, &nap, NULL);
	}
	return code == cudaSuccess
		       ? 0
		       : cuda_failed(err, code, "cudaStreamQuery after the first launches", NULL);
}

/*
 * Each kernel is loaded by its first launch, and loading is forbidden while a graph
 * is recorded. Disarmed, they touch nothing but the control block.
 *
 * Source: CUDA C++ Programming Guide, "Lazy Loading".
 */
static int launch_first(struct device *device, struct extent_control *control,
			struct r3ring_error *err)
{
	const struct kernel_begin_args begin = {.control = control,
						.next = {.offset = EXTENT_NONE}};
	const struct kernel_capture_args capture = {.control = control};
	const struct kernel_rows_args rows = {.control = control};
	const struct kernel_end_args end = {.control = control};
	const bool side_stream = device->options.side_stream;
	int ret;

	device->options.side_stream = false;
	ret = cuda_launch_begin(device, device->side, &begin);
	if (!ret)
		ret = cuda_launch_capture(device, device->side, &capture);
	if (!ret)
		ret = cuda_launch_rows(device, device->side, &rows);
	if (!ret)
		ret = cuda_launch_end(device, device->side, &end);
	device->options.side_stream = side_stream;
	if (ret)
		return r3ring_error_set(err, -ENODEV, "the capture kernels do not run: %s",
					device->fault);
	return wait_for_side(device, err);
}

/* Never freed, so that a graph that outlives the producer finds it disarmed. */
static int cuda_control_alloc(struct device *device, struct extent_control **control,
			      struct r3ring_error *err)
{
	const struct extent_control disarmed = {.offset = EXTENT_NONE};
	void *made;
	int ret;
	cudaError_t code = cudaMalloc(&made, sizeof(disarmed));

	if (code != cudaSuccess)
		return cuda_failed(err, code, "cudaMalloc of the control block", NULL);
	code = cudaMemcpy(made, &disarmed, sizeof(disarmed), cudaMemcpyHostToDevice);
	if (code != cudaSuccess) {
		ret = cuda_failed(err, code, "cudaMemcpy to the control block", NULL);
		goto fail;
	}
	ret = launch_first(device, made, err);
	if (ret)
		goto fail;
	*control = made;
	return 0;

fail:
	cuda_check_release(device, cudaFree(made), "cudaFree"); /* no graph knows it yet */
	return ret;
}

/* ---- pages of the host -------------------------------------------------- */

static int cuda_pages_map(struct device *device, void *host, size_t bytes, uint8_t **mapped,
			  struct r3ring_error *err)
{
	void *address;
	cudaError_t code = cudaHostRegister(host, bytes, cudaHostRegisterMapped);

	if (code != cudaSuccess)
		return cuda_failed(
			err, code, "cudaHostRegister of the bells",
			"the GPU must be able to write to shared memory; raise the limit "
			"on locked memory (ulimit -l, in containers --ulimit memlock=-1)");
	code = cudaHostGetDevicePointer(&address, host, 0);
	if (code != cudaSuccess) {
		int ret = cuda_failed(err, code, "cudaHostGetDevicePointer of the bells", NULL);

		cuda_check_release(device, cudaHostUnregister(host), "cudaHostUnregister");
		return ret;
	}
	*mapped = address;
	return 0;
}

/* Whoever closes may have another GPU current. */
static void cuda_pages_unmap(struct device *device, void *host)
{
	int before = device->gpu;

	cuda_check_release(device, cuda_gpu_enter(device->gpu, &before), "cudaSetDevice");
	cuda_check_release(device, cudaHostUnregister(host), "cudaHostUnregister");
	cuda_gpu_leave(device->gpu, before);
}

/* Only for close. A stream that is being captured cannot be waited for, and what is
 * enqueued on it has not begun. */
static void cuda_stream_synchronize(struct device *device, void *stream)
{
	int before = device->gpu;

	cuda_check_release(device, cuda_gpu_enter(device->gpu, &before), "cudaSetDevice");
	if (!cuda_stream_capturing(device, stream))
		cuda_check_release(device, cudaStreamSynchronize(stream), "cudaStreamSynchronize");
	cuda_gpu_leave(device->gpu, before);
}

const struct device_ops device_cuda_ops = {
	.name = "cuda",
	.on_gpu = true,
	.runtime_version = CUDART_VERSION,
	.probe = cuda_probe,
	.open = cuda_open,
	.close = cuda_close,
	.fault = cuda_fault,
	.buffer_alloc = cuda_buffer_alloc,
	.buffer_free = cuda_buffer_free,
	.buffer_leave = cuda_buffer_leave,
	.control_alloc = cuda_control_alloc,
	.pages_map = cuda_pages_map,
	.pages_unmap = cuda_pages_unmap,
	.stream_capturing = cuda_stream_capturing,
	.launch_begin = cuda_launch_begin,
	.launch_capture = cuda_launch_capture,
	.launch_rows = cuda_launch_rows,
	.launch_end = cuda_launch_end,
	.stream_synchronize = cuda_stream_synchronize,
	.buffer_import = cuda_buffer_import,
	.buffer_unimport = cuda_buffer_unimport,
	.arena_register = cuda_arena_register,
	.arena_unregister = cuda_arena_unregister,
	.copy = cuda_copy,
	.copies_done = cuda_copies_done,
	.give_up = cuda_give_up,
};
