/* SPDX-License-Identifier: Apache-2.0 */
/* The capture buffer: the producer allocates and exports it, the daemon imports it. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "device/cuda.h"

/* Smaller allocations share a block with others, and a handle exports the block.
 *
 * Source: CUDA Runtime API, cudaIpcGetMemHandle. */
#define BLOCK_BYTES (2ull << 20)

static uint64_t whole_blocks(uint64_t bytes)
{
	return (bytes + BLOCK_BYTES - 1) / BLOCK_BYTES * BLOCK_BYTES;
}

/* For whoever sizes caches by what is free. */
static void log_memory(const struct device *device, const struct device_buffer *buffer,
		       const char *what, size_t before)
{
	char text[CUDA_UUID_TEXT];
	size_t after = 0, total = 0;
	cudaError_t code = cudaMemGetInfo(&after, &total);

	cuda_check_release(device, code, "cudaMemGetInfo");
	cuda_log(device, R3RING_LOG_INFO,
		 "GPU-%s: %s a buffer of %" PRIu64 " bytes; free memory %zu MiB before, %zu MiB "
		 "after, of %zu",
		 cuda_uuid_text(buffer->gpu_uuid, text), what, buffer->bytes, before >> 20,
		 after >> 20, total >> 20);
}

/* Another kind of buffer may do where this one does not. */
static int unsupported(struct r3ring_error *err)
{
	if (err)
		err->code = -ENOTSUP;
	return -ENOTSUP;
}

/* ---- the producer's ----------------------------------------------------- */

static int export_event(struct device *device, struct device_buffer *buffer,
			struct r3ring_error *err)
{
	cudaIpcEventHandle_t handle;
	cudaError_t code;

	if (!device->ordered)
		return 0;
	code = cudaIpcGetEventHandle(&handle, device->ordered);
	if (code != cudaSuccess)
		return cuda_failed(err, code, "cudaIpcGetEventHandle",
				   "this machine has no interprocess events: use order \"bell\"");
	memcpy(buffer->event, &handle, sizeof(buffer->event));
	return 0;
}

#define NO_IPC "this GPU has no CUDA IPC (some MIG, virtual and integrated ones)"
#define BY_DESCRIPTOR "let buffer_export be \"auto\" or \"fd\""

static int ipc_alloc(const struct device *device, struct device_buffer *buffer,
		     struct r3ring_error *err)
{
	cudaIpcMemHandle_t handle;
	cudaError_t code;
	void *base;

	if (!cuda_gpu_has_ipc(device->gpu))
		return r3ring_error_set(err, -ENOTSUP, NO_IPC ": " BY_DESCRIPTOR);
	code = cudaMalloc(&base, whole_blocks(buffer->bytes));
	if (code != cudaSuccess)
		return cuda_failed(err, code, "cudaMalloc of the capture buffer",
				   "free GPU memory, or set a smaller buffer_bytes");
	code = cudaIpcGetMemHandle(&handle, base);
	if (code != cudaSuccess) {
		cuda_failed(err, code, "cudaIpcGetMemHandle", NO_IPC ": " BY_DESCRIPTOR);
		cuda_check_release(device, cudaFree(base), "cudaFree of the capture buffer");
		return unsupported(err);
	}
	memcpy(buffer->handle, &handle, sizeof(buffer->handle));
	buffer->base = base;
	return 0;
}

int cuda_buffer_alloc(struct device *device, enum r3ring_buffer_kind kind, uint64_t bytes,
		      struct device_buffer *buffer, struct r3ring_error *err)
{
	struct device_buffer made = {.bytes = bytes, .kind = kind, .fd = -1};
	size_t before = 0, total;
	int ret;

	if (bytes == 0 || bytes > INT64_MAX - BLOCK_BYTES)
		return r3ring_error_set(err, -ENOMEM,
					"capture buffer of %" PRIu64 " bytes: not a possible size",
					bytes);
	cuda_check_release(device, cudaMemGetInfo(&before, &total), "cudaMemGetInfo");
	ret = cuda_gpu_uuid(device->gpu, made.gpu_uuid, err);
	if (!ret)
		ret = export_event(device, &made, err);
	if (!ret)
		ret = kind == R3RING_BUFFER_CUDA_VMM ? cuda_vmm_alloc(device, &made, err)
						     : ipc_alloc(device, &made, err);
	if (ret)
		return ret;
	log_memory(device, &made, "allocated", before);
	*buffer = made;
	return 0;
}

static void forget(struct device_buffer *buffer)
{
	*buffer = (struct device_buffer){.fd = -1};
}

void cuda_buffer_free(struct device *device, struct device_buffer *buffer)
{
	if (buffer->kind == R3RING_BUFFER_CUDA_VMM)
		cuda_vmm_free(device, buffer);
	else
		cuda_check_release(device, cudaFree(buffer->base),
				   "cudaFree of the capture buffer");
	forget(buffer);
}

void cuda_buffer_leave(struct device *device, struct device_buffer *buffer)
{
	device->ordered = NULL;
	forget(buffer);
}

/* ---- the daemon's ------------------------------------------------------- */

/* What the peer says of the size is checked with what the driver knows. */
static int check_size(const struct device_buffer *buffer, struct r3ring_error *err)
{
	const struct cuda_driver *driver = cuda_driver(err);
	CUdeviceptr base, at = (CUdeviceptr)(uintptr_t)buffer->base;
	CUresult code;
	size_t size;

	if (!driver)
		return -ENODEV;
	if (!driver->mem_get_address_range)
		return 0;
	code = driver->mem_get_address_range(&base, &size, at);
	if (code != CUDA_SUCCESS)
		return cuda_driver_failed(err, code, "cuMemGetAddressRange", NULL);
	if (buffer->bytes <= size && at - base <= size - buffer->bytes)
		return 0;
	return r3ring_error_set(err, -EBADMSG,
				"capture buffer: the hello says %" PRIu64
				" bytes, the allocation has %zu",
				buffer->bytes, size);
}

static int ipc_import(struct device *device, const struct r3ring_hello_producer_message *hello,
		      struct device_buffer *buffer, struct r3ring_error *err)
{
	cudaIpcMemHandle_t handle;
	void *base;
	cudaError_t code;
	int ret;

	memcpy(&handle, hello->handle, sizeof(handle));
	code = cudaIpcOpenMemHandle(&base, handle, cudaIpcMemLazyEnablePeerAccess);
	if (code != cudaSuccess) {
		ret = cuda_failed(
			err, code, "cudaIpcOpenMemHandle",
			"r3ringd must share the engine's PID and IPC namespace (--pid=host "
			"--ipc=host), or the engine " BY_DESCRIPTOR);
		return ret == -ENOMEM ? ret : unsupported(err);
	}
	buffer->base = base;
	ret = check_size(buffer, err);
	if (ret) {
		cuda_check_release(device, cudaIpcCloseMemHandle(base), "cudaIpcCloseMemHandle");
		buffer->base = NULL;
	}
	return ret;
}

static int event_import(struct device *device, const struct r3ring_hello_producer_message *hello,
			struct r3ring_error *err)
{
	cudaIpcEventHandle_t handle;
	cudaError_t code;

	if (hello->order != R3RING_ORDER_EVENT)
		return 0;
	memcpy(&handle, hello->event, sizeof(handle));
	code = cudaIpcOpenEventHandle(&device->before, handle);
	return code == cudaSuccess
		       ? 0
		       : cuda_failed(
				 err, code, "cudaIpcOpenEventHandle",
				 "r3ringd must share the engine's PID and IPC namespace, or the "
				 "engine set order \"bell\"");
}

static int import(struct device *device, const struct r3ring_hello_producer_message *hello, int fd,
		  struct device_buffer *buffer, struct r3ring_error *err)
{
	int ret = event_import(device, hello, err);

	if (ret)
		return ret;
	if (hello->buffer_kind == R3RING_BUFFER_CUDA_VMM)
		return cuda_vmm_import(device, fd, buffer, err);
	return ipc_import(device, hello, buffer, err);
}

int cuda_buffer_import(struct device *device, const struct r3ring_hello_producer_message *hello,
		       int fd, struct device_buffer *buffer, struct r3ring_error *err)
{
	struct device_buffer made = {.bytes = hello->buffer_bytes,
				     .kind = (enum r3ring_buffer_kind)hello->buffer_kind,
				     .fd = -1};
	size_t before = 0, total;
	cudaError_t code;
	int ret;

	memcpy(made.gpu_uuid, hello->gpu_uuid, sizeof(made.gpu_uuid));
	ret = cuda_context_take(device, made.gpu_uuid, err);
	if (ret)
		return ret;
	code = cudaMemGetInfo(&before, &total);
	if (code != cudaSuccess)
		return cuda_failed(err, code, "cudaMemGetInfo", NULL);
	ret = import(device, hello, fd, &made, err);
	if (ret)
		return cuda_context_check(device, ret);
	made.fd = fd; /* taken over; -1 where there is none */
	log_memory(device, &made, "imported", before);
	*buffer = made;
	return 0;
}

void cuda_buffer_unimport(struct device *device, struct device_buffer *buffer)
{
	if (!device->lost)
		cuda_check_release(device, cudaSetDevice(device->gpu), "cudaSetDevice");
	if (!device->lost && buffer->kind == R3RING_BUFFER_CUDA_VMM)
		cuda_vmm_free(device, buffer);
	else if (!device->lost)
		cuda_check_release(device, cudaIpcCloseMemHandle(buffer->base),
				   "cudaIpcCloseMemHandle");
	if (buffer->fd >= 0)
		close(buffer->fd);
	forget(buffer);
}
