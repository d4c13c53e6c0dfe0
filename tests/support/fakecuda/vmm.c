/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory whose addresses, contents and rights are separate things (cuMemCreate and what
 * belongs to it), which can be given away as a file descriptor.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/fakecuda/runtime.h"

#define GRANULARITY (2u << 20)
#define MEMFD_NAME "fakecuda-vmm-" /* and the GPU, so that another process knows it */

/* Memory without an address. Lives as long as its handle or a mapping. */
struct vmm_memory {
	struct vmm_memory *next;
	int fd;
	size_t bytes;
	uint64_t identity;
	unsigned int gpu;
	bool exportable, imported;
	bool released; /* the handle is gone */
	unsigned int mappings;
};

static struct vmm_memory *memories;

static bool memory_is_gone(const struct vmm_memory *memory)
{
	return memory->released && !memory->mappings;
}

static void memory_let_go(struct vmm_memory *memory)
{
	if (!memory_is_gone(memory) || memory->fd < 0)
		return;
	close(memory->fd);
	memory->fd = -1;
	if (!memory->imported)
		machine_give_bytes(memory->gpu, memory->bytes);
}

unsigned int vmm_memories(void)
{
	unsigned int count = 0;

	for (const struct vmm_memory *memory = memories; memory; memory = memory->next)
		count += !memory_is_gone(memory);
	return count;
}

uint64_t vmm_bytes(void)
{
	uint64_t bytes = 0;

	for (const struct vmm_memory *memory = memories; memory; memory = memory->next)
		bytes += memory_is_gone(memory) || memory->imported ? 0 : memory->bytes;
	return bytes;
}

static struct vmm_memory *memory_find(CUmemGenericAllocationHandle handle,
				      const struct place *place)
{
	for (struct vmm_memory *memory = memories; memory; memory = memory->next) {
		if ((CUmemGenericAllocationHandle)(uintptr_t)memory == handle && !memory->released)
			return memory;
	}
	findings_add(place, "%llx is no memory's handle, or was released", handle);
	return NULL;
}

static struct vmm_memory *memory_add(int fd, size_t bytes)
{
	struct vmm_memory *memory = calloc(1, sizeof(*memory));
	struct stat status;

	if (!memory || fstat(fd, &status))
		abort();
	memory->fd = fd;
	memory->bytes = bytes;
	memory->identity = status.st_ino;
	memory->next = memories;
	memories = memory;
	return memory;
}

/* ---- memory ------------------------------------------------------------- */

static CUresult CUDAAPI get_granularity(size_t *granularity, const CUmemAllocationProp *prop,
					CUmemAllocationGranularity_flags option)
{
	struct call call;

	(void)prop;
	(void)option;
	if (call_begin(&call, "cuMemGetAllocationGranularity", CALL_PLAIN))
		*granularity = GRANULARITY;
	return driver_call_end(&call, CUDA_SUCCESS);
}

static int make_memfd(unsigned int gpu, size_t bytes)
{
	char name[32];
	int fd;

	snprintf(name, sizeof(name), MEMFD_NAME "%u", gpu);
	fd = memfd_create(name, MFD_CLOEXEC);
	if (fd < 0 || ftruncate(fd, (off_t)bytes) < 0)
		abort();
	return fd;
}

/* The GPU that memory was made on; false when it is none of ours. */
static bool gpu_of_memfd(int fd, unsigned int *gpu)
{
	char path[64], target[64] = "";

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return readlink(path, target, sizeof(target) - 1) > 0 &&
	       sscanf(target, "/memfd:" MEMFD_NAME "%u", gpu) == 1;
}

static CUresult create(CUmemGenericAllocationHandle *handle, size_t bytes,
		       const CUmemAllocationProp *prop)
{
	struct vmm_memory *memory;
	unsigned int gpu;

	if (!bytes || bytes % GRANULARITY || prop->type != CU_MEM_ALLOCATION_TYPE_PINNED ||
	    prop->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device_is(prop->location.id))
		return CUDA_ERROR_INVALID_DEVICE;
	if (machine_refuses("vmm"))
		return CUDA_ERROR_NOT_SUPPORTED;
	gpu = device_gpu(prop->location.id);
	if (!machine_take_bytes(gpu, bytes))
		return CUDA_ERROR_OUT_OF_MEMORY;
	memory = memory_add(make_memfd(gpu, bytes), bytes);
	memory->gpu = gpu;
	memory->exportable = prop->requestedHandleTypes == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
	*handle = (CUmemGenericAllocationHandle)(uintptr_t)memory;
	return CUDA_SUCCESS;
}

static CUresult CUDAAPI mem_create(CUmemGenericAllocationHandle *handle, size_t size,
				   const CUmemAllocationProp *prop, unsigned long long flags)
{
	struct call call;
	CUresult result = CUDA_SUCCESS;

	(void)flags;
	if (call_begin(&call, "cuMemCreate", CALL_ALLOCATES | CALL_NO_CAPTURE))
		result = create(handle, size, prop);
	return driver_call_end(&call, result);
}

static CUresult CUDAAPI mem_release(CUmemGenericAllocationHandle handle)
{
	struct vmm_memory *memory;
	struct call call;
	CUresult result = CUDA_ERROR_INVALID_VALUE;

	if (call_begin(&call, "cuMemRelease", CALL_WAITS | CALL_NO_CAPTURE)) {
		memory = memory_find(handle, &call.place);
		if (memory) {
			memory->released = true;
			memory_let_go(memory);
			result = CUDA_SUCCESS;
		}
	}
	return driver_call_end(&call, result);
}

static CUresult CUDAAPI mem_export(void *descriptor, CUmemGenericAllocationHandle handle,
				   CUmemAllocationHandleType type, unsigned long long flags)
{
	const struct vmm_memory *memory;
	struct call call;
	CUresult result = CUDA_ERROR_INVALID_VALUE;
	int fd;

	(void)flags;
	if (call_begin(&call, "cuMemExportToShareableHandle", CALL_ALLOCATES)) {
		memory = memory_find(handle, &call.place);
		if (memory && memory->exportable &&
		    type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) {
			fd = fcntl(memory->fd, F_DUPFD_CLOEXEC, 0);
			memcpy(descriptor, &fd, sizeof(fd));
			result = fd < 0 ? CUDA_ERROR_OPERATING_SYSTEM : CUDA_SUCCESS;
		}
	}
	return driver_call_end(&call, result);
}

static CUresult CUDAAPI mem_import(CUmemGenericAllocationHandle *handle, void *os_handle,
				   CUmemAllocationHandleType type)
{
	int fd = (int)(intptr_t)os_handle;
	struct vmm_memory *memory;
	struct stat status;
	unsigned int gpu;
	struct call call;
	CUresult result = CUDA_SUCCESS;

	if (!call_begin(&call, "cuMemImportFromShareableHandle", CALL_ALLOCATES))
		return driver_call_end(&call, result);
	if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR || !gpu_of_memfd(fd, &gpu) ||
	    fstat(fd, &status) || status.st_size <= 0 || status.st_size % GRANULARITY)
		return driver_call_end(&call, CUDA_ERROR_INVALID_VALUE);
	memory = memory_add(fcntl(fd, F_DUPFD_CLOEXEC, 0), (size_t)status.st_size);
	memory->imported = true;
	memory->gpu = gpu;
	*handle = (CUmemGenericAllocationHandle)(uintptr_t)memory;
	return driver_call_end(&call, result);
}

/* ---- addresses ---------------------------------------------------------- */

static struct region *reserved(CUdeviceptr address, size_t bytes, const struct place *place)
{
	struct region *region = region_of_device((const void *)(uintptr_t)address);

	if (region && !region->gone && region->kind == REGION_RESERVED &&
	    region->device == address && region->bytes == bytes)
		return region;
	findings_add(place, "%llx is no range that was reserved", address);
	return NULL;
}

static CUresult CUDAAPI address_reserve(CUdeviceptr *address, size_t size, size_t alignment,
					CUdeviceptr wanted, unsigned long long flags)
{
	struct region *region;
	struct call call;

	(void)alignment;
	(void)wanted;
	(void)flags;
	if (!call_begin(&call, "cuMemAddressReserve", CALL_ALLOCATES))
		return driver_call_end(&call, CUDA_SUCCESS);
	if (!size || size % GRANULARITY)
		return driver_call_end(&call, CUDA_ERROR_INVALID_VALUE);
	region = region_add(REGION_RESERVED, &call.place);
	region->bytes = size;
	region->device = addresses_reserve(size);
	*address = region->device;
	return driver_call_end(&call, CUDA_SUCCESS);
}

static CUresult CUDAAPI address_free(CUdeviceptr address, size_t size)
{
	struct region *region;
	struct call call;
	CUresult result = CUDA_ERROR_INVALID_VALUE;

	if (call_begin(&call, "cuMemAddressFree", CALL_WAITS)) {
		region = reserved(address, size, &call.place);
		if (region && region->memory)
			findings_add(&call.place, "frees addresses with memory behind them");
		if (region) {
			region_gone(region, &call.place);
			result = CUDA_SUCCESS;
		}
	}
	return driver_call_end(&call, result);
}

static CUresult CUDAAPI mem_map(CUdeviceptr address, size_t size, size_t offset,
				CUmemGenericAllocationHandle handle, unsigned long long flags)
{
	struct vmm_memory *memory;
	struct region *region;
	struct call call;

	(void)flags;
	if (!call_begin(&call, "cuMemMap", CALL_ALLOCATES | CALL_NO_CAPTURE))
		return driver_call_end(&call, CUDA_SUCCESS);
	memory = memory_find(handle, &call.place);
	region = reserved(address, size, &call.place);
	if (!memory || !region || region->memory || offset || size != memory->bytes)
		return driver_call_end(&call, CUDA_ERROR_INVALID_VALUE);
	region->memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, memory->fd, 0);
	if (region->memory == MAP_FAILED)
		abort();
	region->identity = memory->identity;
	region->gpu = memory->gpu;
	region->accessible = false;
	memory->mappings++;
	return driver_call_end(&call, CUDA_SUCCESS);
}

static CUresult CUDAAPI mem_unmap(CUdeviceptr address, size_t size)
{
	struct region *region;
	struct call call;

	if (!call_begin(&call, "cuMemUnmap", CALL_WAITS | CALL_NO_CAPTURE))
		return driver_call_end(&call, CUDA_SUCCESS);
	region = reserved(address, size, &call.place);
	if (!region || !region->memory)
		return driver_call_end(&call, CUDA_ERROR_INVALID_VALUE);
	lanes_wait();
	munmap(region->memory, size);
	region->memory = NULL;
	for (struct vmm_memory *memory = memories; memory; memory = memory->next) {
		if (memory->identity == region->identity && memory->mappings) {
			memory->mappings--;
			memory_let_go(memory);
			break;
		}
	}
	return driver_call_end(&call, CUDA_SUCCESS);
}

static CUresult CUDAAPI set_access(CUdeviceptr address, size_t size, const CUmemAccessDesc *desc,
				   size_t count)
{
	struct region *region;
	struct call call;
	CUresult result = CUDA_ERROR_INVALID_VALUE;

	if (call_begin(&call, "cuMemSetAccess", CALL_ALLOCATES)) {
		region = reserved(address, size, &call.place);
		if (region && region->memory && device_is(desc->location.id) &&
		    device_gpu(desc->location.id) != region->gpu)
			findings_add(&call.place, "maps memory of GPU %u into GPU %u", region->gpu,
				     device_gpu(desc->location.id));
		else if (region && region->memory && count == 1 && device_is(desc->location.id)) {
			region->accessible = desc->flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE ||
					     desc->flags == CU_MEM_ACCESS_FLAGS_PROT_READ;
			result = CUDA_SUCCESS;
		}
	}
	return driver_call_end(&call, result);
}

static CUresult CUDAAPI get_address_range(CUdeviceptr *base, size_t *size, CUdeviceptr address)
{
	const struct region *region;
	struct call call;
	CUresult result = CUDA_ERROR_NOT_FOUND;

	if (call_begin(&call, "cuMemGetAddressRange", CALL_PLAIN)) {
		region = region_of_device((const void *)(uintptr_t)address);
		if (region && !region->gone) {
			*base = region->device;
			*size = region->bytes;
			result = CUDA_SUCCESS;
		}
	}
	return driver_call_end(&call, result);
}

/* ---- by name ------------------------------------------------------------ */

const struct driver_function vmm_functions[] = {
	{"cuMemGetAllocationGranularity", (any_function)get_granularity},
	{"cuMemCreate", (any_function)mem_create},
	{"cuMemRelease", (any_function)mem_release},
	{"cuMemExportToShareableHandle", (any_function)mem_export},
	{"cuMemImportFromShareableHandle", (any_function)mem_import},
	{"cuMemAddressReserve", (any_function)address_reserve},
	{"cuMemAddressFree", (any_function)address_free},
	{"cuMemMap", (any_function)mem_map},
	{"cuMemUnmap", (any_function)mem_unmap},
	{"cuMemSetAccess", (any_function)set_access},
	{"cuMemGetAddressRange", (any_function)get_address_range},
	{NULL, NULL},
};
