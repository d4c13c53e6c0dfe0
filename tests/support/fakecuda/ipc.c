/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory and events of other processes by handle. As with the real ones, that works
 * in one PID namespace and one IPC namespace only, and not in the process that made
 * the handle.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/fakecuda/runtime.h"

#define MEMORY_MAGIC 0x4D454D46u
#define EVENT_MAGIC 0x45564E54u

struct handle {
	uint32_t magic;
	int32_t pid;
	uint64_t pid_namespace, ipc_namespace;
	uint64_t identity; /* of the memory */
	uint64_t bytes;
	int32_t fd;
	uint32_t gpu;
	uint32_t slot; /* of the event */
	uint32_t unused;
};

static uint64_t namespace_of(const char *name)
{
	char path[64];
	struct stat status;

	snprintf(path, sizeof(path), "/proc/self/ns/%s", name);
	return stat(path, &status) ? 0 : status.st_ino;
}

static struct handle handle_here(uint32_t magic)
{
	return (struct handle){
		.magic = magic,
		.pid = getpid(),
		.pid_namespace = namespace_of("pid"),
		.ipc_namespace = namespace_of("ipc"),
	};
}

/* What is wrong with a handle of that kind here; 0: nothing. */
static cudaError_t check(const struct handle *handle, uint32_t magic, const struct place *place)
{
	if (machine_refuses("ipc"))
		return cudaErrorNotSupported;
	if (handle->magic != magic)
		return cudaErrorInvalidValue;
	if (handle->pid_namespace != namespace_of("pid") ||
	    handle->ipc_namespace != namespace_of("ipc"))
		return cudaErrorInvalidResourceHandle;
	if (handle->pid == getpid()) {
		findings_add(place, "opens a handle in the process that made it");
		return cudaErrorDeviceUninitialized;
	}
	return cudaSuccess;
}

/* ---- memory ------------------------------------------------------------- */

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t *handle, void *devPtr)
{
	struct handle made = handle_here(MEMORY_MAGIC);
	const struct region *region;
	struct call call;

	_Static_assert(sizeof(made) <= sizeof(*handle), "fits a handle");
	if (!call_begin(&call, "cudaIpcGetMemHandle", CALL_NO_CAPTURE))
		return call_end(&call, cudaSuccess);
	region = region_of_device(devPtr);
	/* Memory of cuMemCreate has no such handle. */
	if (!region || region->gone || region->kind != REGION_DEVICE)
		return call_end(&call, cudaErrorInvalidValue);
	if (machine_refuses("ipc"))
		return call_end(&call, cudaErrorNotSupported);
	made.identity = region->identity;
	made.bytes = region->bytes;
	made.fd = region->fd;
	made.gpu = region->gpu;
	memset(handle, 0, sizeof(*handle));
	memcpy(handle, &made, sizeof(made));
	return call_end(&call, cudaSuccess);
}

/* The memfd, by way of the process that made it. */
static int memory_fd(const struct handle *handle)
{
	struct stat status;
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", handle->pid, handle->fd);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd >= 0 && (fstat(fd, &status) || status.st_ino != handle->identity ||
			(uint64_t)status.st_size != handle->bytes)) {
		close(fd);
		fd = -1;
	}
	return fd;
}

static cudaError_t memory_open(void **pointer, const struct handle *handle,
			       const struct place *place)
{
	struct region *region;
	int fd;

	if (device_gpu(device_current()) != handle->gpu)
		findings_add(place, "opens memory of GPU %u while GPU %u is current", handle->gpu,
			     device_gpu(device_current()));
	fd = memory_fd(handle);
	if (fd < 0)
		return cudaErrorMapBufferObjectFailed;
	region = region_add(REGION_IMPORTED, place);
	region->fd = fd;
	region->bytes = handle->bytes;
	region->identity = handle->identity;
	region->gpu = handle->gpu;
	region->memory = mmap(NULL, region->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	region->device = addresses_reserve(region->bytes);
	if (region->memory == MAP_FAILED || !region->device)
		abort();
	machine_import_add(region->identity);
	*pointer = (void *)region->device;
	return cudaSuccess;
}

cudaError_t cudaIpcOpenMemHandle(void **devPtr, cudaIpcMemHandle_t handle, unsigned int flags)
{
	struct handle given;
	struct call call;
	cudaError_t error = cudaSuccess;

	memcpy(&given, &handle, sizeof(given));
	if (call_begin(&call, "cudaIpcOpenMemHandle", CALL_ALLOCATES | CALL_NO_CAPTURE)) {
		error = flags == cudaIpcMemLazyEnablePeerAccess
				? check(&given, MEMORY_MAGIC, &call.place)
				: cudaErrorInvalidValue;
		if (!error)
			error = memory_open(devPtr, &given, &call.place);
	}
	return call_end(&call, error);
}

cudaError_t cudaIpcCloseMemHandle(void *devPtr)
{
	struct region *region;
	struct call call;
	cudaError_t error = cudaSuccess;

	if (!call_begin(&call, "cudaIpcCloseMemHandle", CALL_WAITS | CALL_NO_CAPTURE))
		return call_end(&call, error);
	region = region_of_device(devPtr);
	if (!region || region->gone || region->kind != REGION_IMPORTED) {
		findings_add(&call.place, "closes memory that is not open");
		error = cudaErrorInvalidValue;
	} else {
		lanes_wait();
		region_gone(region, &call.place);
	}
	return call_end(&call, error);
}

/* ---- events ------------------------------------------------------------- */

cudaError_t cudaIpcGetEventHandle(cudaIpcEventHandle_t *handle, cudaEvent_t event)
{
	struct handle made = handle_here(EVENT_MAGIC);
	struct call call;

	if (!call_begin(&call, "cudaIpcGetEventHandle", CALL_NO_CAPTURE))
		return call_end(&call, cudaSuccess);
	if (!event->slot || event->imported)
		return call_end(&call, cudaErrorInvalidResourceHandle);
	made.slot = event->slot;
	memset(handle, 0, sizeof(*handle));
	memcpy(handle, &made, sizeof(made));
	return call_end(&call, cudaSuccess);
}

cudaError_t cudaIpcOpenEventHandle(cudaEvent_t *event, cudaIpcEventHandle_t handle)
{
	struct CUevent_st *made;
	struct handle given;
	struct call call;
	cudaError_t error = cudaSuccess;

	memcpy(&given, &handle, sizeof(given));
	if (!call_begin(&call, "cudaIpcOpenEventHandle", CALL_ALLOCATES | CALL_NO_CAPTURE))
		return call_end(&call, error);
	error = check(&given, EVENT_MAGIC, &call.place);
	if (!error) {
		made = calloc(1, sizeof(*made));
		if (!made)
			abort();
		made->flags = cudaEventInterprocess | cudaEventDisableTiming;
		made->slot = given.slot;
		made->imported = true;
		made->next = events;
		events = made;
		*event = made;
	}
	return call_end(&call, error);
}
