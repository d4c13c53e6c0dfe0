/* SPDX-License-Identifier: Apache-2.0 */
/* The GPUs of the machine, and those of them that this process sees. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/fakecuda/runtime.h"

#define RUNTIME_VERSION 13000
#define LEAST_PRIORITY 0
#define GREATEST_PRIORITY (-5)

static __thread int current;
static bool has_context[MACHINE_GPUS_MAX];

void fakecuda_uuid(unsigned int gpu, uint8_t uuid[16])
{
	for (unsigned int i = 0; i < 16; i++)
		uuid[i] = (uint8_t)(0xFA + 29 * i + 7 * gpu * (i == 15 || i == 3));
}

void fakecuda_uuid_text(unsigned int gpu, char *text)
{
	uint8_t u[16];

	fakecuda_uuid(gpu, u);
	snprintf(text, 41,
		 "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", u[0],
		 u[1], u[2], u[3], u[4], u[5], u[6], u[7], u[8], u[9], u[10], u[11], u[12], u[13],
		 u[14], u[15]);
}

/* ---- visible ones ------------------------------------------------------- */

/* One word of CUDA_VISIBLE_DEVICES; -1: it names none. */
static int gpu_of_word(const char *word)
{
	char uuid[41], *end;
	unsigned long number = strtoul(word, &end, 10);

	if (*word && !*end)
		return number < machine_gpus() ? (int)number : -1;
	for (unsigned int gpu = 0; gpu < machine_gpus(); gpu++) {
		fakecuda_uuid_text(gpu, uuid);
		if (strlen(word) > 4 && strncmp(uuid, word, strlen(word)) == 0)
			return (int)gpu;
	}
	return -1;
}

/* Those in front of the first that is none, as the real one has it. */
static int visible(unsigned int gpus[MACHINE_GPUS_MAX])
{
	const char *list = getenv("CUDA_VISIBLE_DEVICES");
	char copy[512], *word, *saved = NULL;
	int count = 0;

	if (!list) {
		for (unsigned int gpu = 0; gpu < machine_gpus(); gpu++)
			gpus[count++] = gpu;
		return count;
	}
	snprintf(copy, sizeof(copy), "%s", list);
	for (word = strtok_r(copy, ",", &saved); word && count < (int)MACHINE_GPUS_MAX;
	     word = strtok_r(NULL, ",", &saved)) {
		int gpu = gpu_of_word(word);

		if (gpu < 0)
			break;
		gpus[count++] = (unsigned int)gpu;
	}
	return count;
}

int device_count(void)
{
	unsigned int gpus[MACHINE_GPUS_MAX];

	return visible(gpus);
}

bool device_is(int device)
{
	return device >= 0 && device < device_count();
}

unsigned int device_gpu(int device)
{
	unsigned int gpus[MACHINE_GPUS_MAX] = {0};

	visible(gpus);
	return gpus[device];
}

int device_current(void)
{
	return current;
}

/* The first use of a GPU takes memory of it. */
static cudaError_t context_make(int device)
{
	unsigned int gpu = device_gpu(device);

	if (has_context[gpu])
		return cudaSuccess;
	if (!machine_take_bytes(gpu, MACHINE_CONTEXT_BYTES))
		return cudaErrorMemoryAllocation;
	has_context[gpu] = true;
	return cudaSuccess;
}

cudaError_t device_context(void)
{
	return device_is(current) ? context_make(current) : cudaErrorInvalidDevice;
}

/* ---- calls -------------------------------------------------------------- */

cudaError_t cudaGetDeviceCount(int *count)
{
	struct call call;
	cudaError_t error = cudaSuccess;

	if (call_begin(&call, "cudaGetDeviceCount", CALL_PLAIN))
		*count = device_count();
	else
		*count = 0;
	return call_end(&call, error);
}

cudaError_t cudaGetDevice(int *device)
{
	struct call call;

	if (call_begin(&call, "cudaGetDevice", CALL_PLAIN))
		*device = current;
	return call_end(&call, cudaSuccess);
}

cudaError_t cudaSetDevice(int device)
{
	struct call call;
	cudaError_t error = cudaSuccess;

	if (call_begin(&call, "cudaSetDevice", CALL_PLAIN)) {
		error = device_is(device) ? context_make(device) : cudaErrorInvalidDevice;
		if (!error)
			current = device;
	}
	return call_end(&call, error);
}

static bool attribute(enum cudaDeviceAttr attr, int *value)
{
	switch (attr) {
	case cudaDevAttrMaxThreadsPerBlock:
		*value = 1024;
		return true;
	case cudaDevAttrWarpSize:
		*value = 32;
		return true;
	case cudaDevAttrMultiProcessorCount:
		*value = 4;
		return true;
	case cudaDevAttrMaxThreadsPerMultiProcessor:
		*value = 2048;
		return true;
	case cudaDevAttrAsyncEngineCount:
		*value = 2;
		return true;
	case cudaDevAttrComputeCapabilityMajor:
		*value = 9;
		return true;
	case cudaDevAttrCanMapHostMemory:
	case cudaDevAttrUnifiedAddressing:
	case cudaDevAttrHostRegisterSupported:
		*value = 1;
		return true;
	case cudaDevAttrIpcEventSupport:
		*value = !machine_refuses("ipc");
		return true;
	case cudaDevAttrMpsEnabled:
		*value = getenv("FAKECUDA_MPS") != NULL;
		return true;
	case cudaDevAttrComputeCapabilityMinor:
	case cudaDevAttrIntegrated:
	case cudaDevAttrComputeMode:
	case cudaDevAttrCanUseHostPointerForRegisteredMem:
		*value = 0;
		return true;
	default: /* one that r3ring was never seen to ask for */
		return false;
	}
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attr, int device)
{
	struct call call;
	cudaError_t error = cudaSuccess;

	if (call_begin(&call, "cudaDeviceGetAttribute", CALL_PLAIN)) {
		if (!device_is(device))
			error = cudaErrorInvalidDevice;
		else if (!attribute(attr, value))
			error = cudaErrorInvalidValue;
	}
	return call_end(&call, error);
}

cudaError_t cudaDriverGetVersion(int *driverVersion)
{
	struct call call;

	if (call_begin(&call, "cudaDriverGetVersion", CALL_NO_CONTEXT))
		*driverVersion = machine_driver_version();
	return call_end(&call, cudaSuccess);
}

cudaError_t cudaRuntimeGetVersion(int *runtimeVersion)
{
	struct call call;

	if (call_begin(&call, "cudaRuntimeGetVersion", CALL_NO_CONTEXT))
		*runtimeVersion = RUNTIME_VERSION;
	return call_end(&call, cudaSuccess);
}

cudaError_t cudaMemGetInfo(size_t *free, size_t *total)
{
	struct call call;
	cudaError_t error = cudaSuccess;

	if (call_begin(&call, "cudaMemGetInfo", CALL_WAITS)) {
		error = context_make(current);
		if (!error) {
			*free = machine_free_bytes(device_gpu(current));
			*total = MACHINE_GPU_BYTES;
		}
	}
	return call_end(&call, error);
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *leastPriority, int *greatestPriority)
{
	struct call call;

	if (call_begin(&call, "cudaDeviceGetStreamPriorityRange", CALL_PLAIN)) {
		*leastPriority = LEAST_PRIORITY;
		*greatestPriority = GREATEST_PRIORITY;
	}
	return call_end(&call, cudaSuccess);
}

cudaError_t cudaDeviceSynchronize(void)
{
	struct call call;
	cudaError_t error = cudaSuccess;

	if (call_begin(&call, "cudaDeviceSynchronize", CALL_WAITS | CALL_NO_CAPTURE))
		error = lanes_wait();
	return call_end(&call, error);
}

/* All of the device's memory and streams are gone, and the context with them. */
cudaError_t cudaDeviceReset(void)
{
	struct call call;
	unsigned int gpu;

	call_begin(&call, "cudaDeviceReset", CALL_WAITS | CALL_NO_CAPTURE);
	lanes_wait();
	if (!device_is(current))
		return call_end(&call, cudaErrorInvalidDevice);
	gpu = device_gpu(current);
	for (struct region *region = regions; region; region = region->next) {
		if (!region->gone && region->gpu == gpu)
			region_gone(region, &call.place);
	}
	for (struct CUstream_st *stream = streams; stream; stream = stream->next)
		stream->gone = stream->gone || (stream->device == current && !stream->legacy);
	if (has_context[gpu])
		machine_give_bytes(gpu, MACHINE_CONTEXT_BYTES);
	has_context[gpu] = false;
	return call_end(&call, cudaSuccess);
}
