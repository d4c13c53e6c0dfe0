/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the daemon holds of a GPU: its primary context, which it shares among the
 * channels and keeps until it ends, and a stream for each channel.
 *
 * Kept, because an engine that sizes its KV cache by the memory that is free must
 * not see memory come and go. No kernel is ever launched in it: copy engines do the
 * work, so that it takes no time slice from the model's.
 */
#include <errno.h>
#include <pthread.h>

#include "device/cuda.h"

#define GPUS_MAX 64

static unsigned int users[GPUS_MAX]; /* channels with a buffer on it */
static pthread_mutex_t users_lock = PTHREAD_MUTEX_INITIALIZER;

static int make_stream(struct device *device, struct r3ring_error *err)
{
	int least, greatest;
	cudaError_t code = cudaDeviceGetStreamPriorityRange(&least, &greatest);

	if (code != cudaSuccess)
		return cuda_failed(err, code, "cudaDeviceGetStreamPriorityRange", NULL);
	code = cudaStreamCreateWithPriority(&device->copies, cudaStreamNonBlocking, least);
	return code == cudaSuccess ? 0
				   : cuda_failed(err, code, "cudaStreamCreateWithPriority", NULL);
}

/* A fault of one process ends all of those that share an MPS server. */
static int check_mps(const struct device *device, int gpu, struct r3ring_error *err)
{
	if (device->options.shares_faults || !cuda_gpu_under_mps(gpu))
		return 0;
	return r3ring_error_set(
		err, -ENODEV,
		"this GPU is under MPS, where a fault in r3ringd would end the engine: "
		"start r3ringd with CUDA_MPS_PIPE_DIRECTORY of a place without a "
		"server, or allow it with --allow-mps");
}

int cuda_context_take(struct device *device, const uint8_t uuid[CUDA_UUID_BYTES],
		      struct r3ring_error *err)
{
	cudaError_t code;
	int gpu, ret = cuda_gpu_find(uuid, &gpu, err);

	if (!ret && gpu >= GPUS_MAX)
		ret = r3ring_error_set(err, -ENODEV, "GPU %d of a host: %d are known", gpu,
				       GPUS_MAX);
	if (!ret)
		ret = check_mps(device, gpu, err);
	if (ret)
		return ret;
	/* Counted first, so that no other thread lets go of the context meanwhile. */
	pthread_mutex_lock(&users_lock);
	users[gpu]++;
	pthread_mutex_unlock(&users_lock);
	device->gpu = gpu;
	code = cudaSetDevice(gpu);
	if (code != cudaSuccess)
		return cuda_failed(err, code, "cudaSetDevice", NULL);
	return make_stream(device, err);
}

static void release_gpu(const struct device *device)
{
	pthread_mutex_lock(&users_lock);
	if (--users[device->gpu] == 0 && device->options.releases_gpu && !device->lost) {
		cuda_check_release(device, cudaDeviceReset(), "cudaDeviceReset");
		cuda_log(device, R3RING_LOG_INFO, "let go of the GPU: no buffer is on it");
	}
	pthread_mutex_unlock(&users_lock);
}

void cuda_context_put(struct device *device)
{
	if (device->gpu == CUDA_GPU_NONE)
		return;
	if (!device->lost)
		cuda_check_release(device, cudaSetDevice(device->gpu), "cudaSetDevice");
	if (!device->lost && device->before)
		cuda_check_release(device, cudaEventDestroy(device->before), "cudaEventDestroy");
	if (!device->lost && device->copies)
		cuda_check_release(device, cudaStreamDestroy(device->copies), "cudaStreamDestroy");
	release_gpu(device);
}
