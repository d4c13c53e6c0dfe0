/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory. A device address is one that nobody can touch; the memory itself lies
 * elsewhere, in a memfd, so that only what goes through the runtime reaches it and
 * another process can be given it.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/fakecuda/runtime.h"

#define PAGE 4096u
#define GARBAGE 0xC5 /* what new memory of a GPU holds */

struct region *regions;
static uint64_t host_identity = 1ull << 63;

/* ---- regions ------------------------------------------------------------ */

struct region *region_add(enum region_kind kind, const struct place *place)
{
	struct region *region = calloc(1, sizeof(*region));

	if (!region)
		abort();
	region->kind = kind;
	region->made = *place;
	region->fd = -1;
	region->gpu = device_gpu(device_current());
	region->next = regions;
	regions = region;
	return region;
}

struct region *region_of_device(const void *address)
{
	uintptr_t at = (uintptr_t)address;
	struct region *gone = NULL;

	for (struct region *region = regions; region; region = region->next) {
		if (at < region->device || at - region->device >= region->bytes)
			continue;
		if (!region->gone)
			return region;
		if (!gone)
			gone = region;
	}
	return gone;
}

struct region *region_of_host(const void *address)
{
	for (struct region *region = regions; region; region = region->next) {
		if ((region->kind == REGION_PINNED || region->kind == REGION_REGISTERED) &&
		    !region->gone && (const uint8_t *)address >= region->memory &&
		    (const uint8_t *)address < region->memory + region->bytes)
			return region;
	}
	return NULL;
}

/* Its addresses stay taken, so that a later use of them is known for what it is. */
void region_gone(struct region *region, const struct place *place)
{
	bool mapped = region->kind == REGION_DEVICE || region->kind == REGION_IMPORTED ||
		      (region->kind == REGION_RESERVED && region->memory);

	region->gone = true;
	region->freed = *place;
	if (mapped)
		munmap(region->memory, region->bytes);
	if (region->kind == REGION_PINNED)
		munmap(region->memory, (region->bytes + PAGE - 1) / PAGE * PAGE);
	if (region->kind == REGION_DEVICE)
		machine_give_bytes(region->gpu, region->bytes);
	if (region->kind == REGION_IMPORTED)
		machine_import_remove(region->identity);
	if (region->fd >= 0)
		close(region->fd);
	region->fd = -1;
	region->memory = NULL;
}

uintptr_t addresses_reserve(size_t bytes)
{
	void *address =
		mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return address == MAP_FAILED ? 0 : (uintptr_t)address;
}

/* ---- device memory ------------------------------------------------------ */

static bool memory_make(struct region *region, size_t bytes)
{
	struct stat status;

	region->bytes = bytes;
	region->fd = memfd_create("fakecuda", MFD_CLOEXEC);
	if (region->fd < 0 || ftruncate(region->fd, (off_t)bytes) < 0 ||
	    fstat(region->fd, &status) < 0)
		return false;
	region->identity = status.st_ino;
	region->memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, region->fd, 0);
	region->device = addresses_reserve(bytes);
	if (region->memory == MAP_FAILED || !region->device)
		return false;
	memset(region->memory, GARBAGE, bytes < PAGE * PAGE ? bytes : PAGE * PAGE);
	return true;
}

cudaError_t cudaMalloc(void **devPtr, size_t size)
{
	struct call call;
	cudaError_t error = cudaSuccess;
	struct region *region;

	if (!call_begin(&call, "cudaMalloc", CALL_ALLOCATES | CALL_NO_CAPTURE))
		return call_end(&call, error);
	if (!devPtr || !size)
		return call_end(&call, cudaErrorInvalidValue);
	if (!machine_take_bytes(device_gpu(device_current()), size))
		return call_end(&call, cudaErrorMemoryAllocation);
	region = region_add(REGION_DEVICE, &call.place);
	if (!memory_make(region, size))
		abort();
	*devPtr = (void *)region->device;
	return call_end(&call, error);
}

/* Frees what was allocated by one kind of call; waits for the GPU, as the real one. */
static cudaError_t region_free(enum region_kind kind, const void *pointer, bool host,
			       const struct place *place)
{
	struct region *region = host ? region_of_host(pointer) : region_of_device(pointer);
	pid_t importer;

	if (!pointer)
		return cudaSuccess;
	if (!region || region->kind != kind || region->gone) {
		findings_add(place, "frees what is not allocated, or not any more");
		return cudaErrorInvalidValue;
	}
	lanes_wait();
	importer = kind == REGION_DEVICE ? machine_import_of(region->identity) : 0;
	if (importer)
		findings_add(place, "frees memory that process %d has open", importer);
	region_gone(region, place);
	return cudaSuccess;
}

cudaError_t cudaFree(void *devPtr)
{
	struct call call;
	cudaError_t error = cudaSuccess;

	if (call_begin(&call, "cudaFree", CALL_WAITS | CALL_NO_CAPTURE))
		error = region_free(REGION_DEVICE, devPtr, false, &call.place);
	return call_end(&call, error);
}

/* ---- host memory -------------------------------------------------------- */

cudaError_t cudaHostAlloc(void **pHost, size_t size, unsigned int flags)
{
	struct call call;
	struct region *region;

	(void)flags;
	if (!call_begin(&call, "cudaHostAlloc", CALL_ALLOCATES | CALL_NO_CAPTURE))
		return call_end(&call, cudaSuccess);
	if (!size)
		return call_end(&call, cudaErrorInvalidValue);
	region = region_add(REGION_PINNED, &call.place);
	region->bytes = size;
	region->identity = ++host_identity;
	region->memory = mmap(NULL, (size + PAGE - 1) / PAGE * PAGE, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (region->memory == MAP_FAILED)
		abort();
	region->device = (uintptr_t)region->memory;
	*pHost = region->memory;
	return call_end(&call, cudaSuccess);
}

cudaError_t cudaFreeHost(void *ptr)
{
	struct call call;
	cudaError_t error = cudaSuccess;

	if (call_begin(&call, "cudaFreeHost", CALL_WAITS | CALL_NO_CAPTURE))
		error = region_free(REGION_PINNED, ptr, true, &call.place);
	return call_end(&call, error);
}

static cudaError_t host_register(void *pointer, size_t size, const struct place *place)
{
	struct region *region;

	if (!pointer || !size)
		return cudaErrorInvalidValue;
	if (machine_refuses("register"))
		return cudaErrorMemoryAllocation;
	if (region_of_host(pointer) || region_of_host((uint8_t *)pointer + size - 1))
		return cudaErrorHostMemoryAlreadyRegistered;
	region = region_add(REGION_REGISTERED, place);
	region->bytes = size;
	region->identity = ++host_identity;
	region->memory = pointer;
	region->device = addresses_reserve(size);
	return cudaSuccess;
}

cudaError_t cudaHostRegister(void *ptr, size_t size, unsigned int flags)
{
	struct call call;
	cudaError_t error = cudaSuccess;

	(void)flags;
	if (call_begin(&call, "cudaHostRegister", CALL_ALLOCATES | CALL_NO_CAPTURE))
		error = host_register(ptr, size, &call.place);
	return call_end(&call, error);
}

cudaError_t cudaHostUnregister(void *ptr)
{
	struct call call;
	cudaError_t error = cudaSuccess;
	struct region *region;

	if (call_begin(&call, "cudaHostUnregister", CALL_WAITS | CALL_NO_CAPTURE)) {
		region = region_of_host(ptr);
		if (!region || region->kind != REGION_REGISTERED || region->memory != ptr) {
			findings_add(&call.place, "unregisters what is not registered");
			error = cudaErrorHostMemoryNotRegistered;
		} else {
			lanes_wait();
			region_gone(region, &call.place);
		}
	}
	return call_end(&call, error);
}

cudaError_t cudaHostGetDevicePointer(void **pDevice, void *pHost, unsigned int flags)
{
	struct call call;
	cudaError_t error = cudaErrorInvalidValue;
	struct region *region;

	(void)flags;
	if (call_begin(&call, "cudaHostGetDevicePointer", CALL_PLAIN)) {
		region = region_of_host(pHost);
		if (region) {
			*pDevice = (void *)(region->device +
					    (uintptr_t)((uint8_t *)pHost - region->memory));
			error = cudaSuccess;
		}
	}
	return call_end(&call, error);
}

/* ---- usage -------------------------------------------------------------- */

struct fakecuda_usage fakecuda_usage(void)
{
	struct fakecuda_usage usage = {0};

	pthread_mutex_lock(&fake_lock);
	for (const struct region *region = regions; region; region = region->next) {
		if (region->gone)
			continue;
		usage.allocations += region->kind == REGION_DEVICE;
		usage.device_bytes += region->kind == REGION_DEVICE ? region->bytes : 0;
		usage.imported += region->kind == REGION_IMPORTED;
		usage.pinned += region->kind == REGION_PINNED;
		usage.registered += region->kind == REGION_REGISTERED;
		usage.reserved += region->kind == REGION_RESERVED;
	}
	usage.allocations += vmm_memories();
	usage.device_bytes += vmm_bytes();
	for (const struct CUstream_st *stream = streams; stream; stream = stream->next)
		usage.streams += !stream->gone && !stream->legacy;
	for (const struct CUevent_st *event = events; event; event = event->next)
		usage.events += !event->gone;
	usage.graphs = graphs_count();
	pthread_mutex_unlock(&fake_lock);
	return usage;
}
