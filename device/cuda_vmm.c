/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that is exported as a file descriptor: for a daemon in other namespaces,
 * where a CUDA IPC handle means nothing. Whoever holds the descriptor or a mapping
 * keeps the memory.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <unistd.h>

#include "device/cuda.h"

#define NO_DESCRIPTOR_REMEDY                                                                       \
	"this GPU or driver exports no memory as a descriptor: let engine and r3ringd share PID "  \
	"and IPC namespace (--pid=host --ipc=host) and set buffer_export \"ipc\""

static CUmemAllocationProp properties(const struct device *device)
{
	return (CUmemAllocationProp){
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device->gpu},
	};
}

static int whole_pages(const struct cuda_driver *driver, const struct device *device,
		       struct device_buffer *buffer, struct r3ring_error *err)
{
	const CUmemAllocationProp prop = properties(device);
	size_t page;
	CUresult code = driver->mem_get_allocation_granularity(&page, &prop,
							       CU_MEM_ALLOC_GRANULARITY_MINIMUM);

	if (code != CUDA_SUCCESS)
		return cuda_driver_failed(err, code, "cuMemGetAllocationGranularity",
					  NO_DESCRIPTOR_REMEDY);
	if (!page || buffer->bytes > SIZE_MAX - page)
		return r3ring_error_set(err, -ENOMEM,
					"capture buffer of %" PRIu64
					" bytes in pages of %zu: not a "
					"possible size",
					buffer->bytes, page);
	buffer->mapped = (buffer->bytes + page - 1) / page * page;
	return 0;
}

/* Makes the allocation readable (and, by the kernels, writable) at an address. */
static int map(const struct cuda_driver *driver, const struct device *device,
	       struct device_buffer *buffer, struct r3ring_error *err)
{
	const CUmemAccessDesc access = {
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device->gpu},
		.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
	};
	CUdeviceptr at;
	CUresult code = driver->mem_address_reserve(&at, buffer->mapped, 0, 0, 0);
	int ret;

	if (code != CUDA_SUCCESS)
		return cuda_driver_failed(err, code, "cuMemAddressReserve", NULL);
	code = driver->mem_map(at, buffer->mapped, 0, buffer->allocation, 0);
	if (code != CUDA_SUCCESS) {
		ret = cuda_driver_failed(err, code, "cuMemMap",
					 "the allocation may be smaller than the hello says");
		goto fail;
	}
	code = driver->mem_set_access(at, buffer->mapped, &access, 1);
	if (code != CUDA_SUCCESS) {
		ret = cuda_driver_failed(err, code, "cuMemSetAccess", NULL);
		goto fail_mapped;
	}
	buffer->base = (uint8_t *)(uintptr_t)at;
	return 0;

fail_mapped:
	cuda_check_release(device, (cudaError_t)driver->mem_unmap(at, buffer->mapped),
			   "cuMemUnmap");
fail:
	cuda_check_release(device, (cudaError_t)driver->mem_address_free(at, buffer->mapped),
			   "cuMemAddressFree");
	return ret;
}

static void release(const struct cuda_driver *driver, const struct device *device,
		    const struct device_buffer *buffer)
{
	cuda_check_release(device, (cudaError_t)driver->mem_release(buffer->allocation),
			   "cuMemRelease");
}

int cuda_vmm_alloc(struct device *device, struct device_buffer *buffer, struct r3ring_error *err)
{
	const struct cuda_driver *driver = cuda_driver(err);
	const CUmemAllocationProp prop = properties(device);
	CUmemGenericAllocationHandle allocation;
	CUresult code;
	int ret;

	if (!driver)
		return -ENODEV;
	ret = whole_pages(driver, device, buffer, err);
	if (ret)
		return ret;
	code = driver->mem_create(&allocation, buffer->mapped, &prop, 0);
	if (code != CUDA_SUCCESS)
		return cuda_driver_failed(err, code, "cuMemCreate of the capture buffer",
					  code == CUDA_ERROR_OUT_OF_MEMORY
						  ? "free GPU memory, or set a smaller buffer_bytes"
						  : NO_DESCRIPTOR_REMEDY);
	buffer->allocation = allocation;
	code = driver->mem_export_to_shareable_handle(&buffer->fd, allocation,
						      CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
	if (code != CUDA_SUCCESS) {
		ret = cuda_driver_failed(err, code, "cuMemExportToShareableHandle",
					 NO_DESCRIPTOR_REMEDY);
		goto fail;
	}
	ret = map(driver, device, buffer, err);
	if (ret)
		goto fail_exported;
	return 0;

fail_exported:
	close(buffer->fd);
	buffer->fd = -1;
fail:
	release(driver, device, buffer);
	return ret;
}

int cuda_vmm_import(struct device *device, int fd, struct device_buffer *buffer,
		    struct r3ring_error *err)
{
	const struct cuda_driver *driver = cuda_driver(err);
	CUmemGenericAllocationHandle allocation;
	CUresult code;
	int ret;

	if (!driver)
		return -ENODEV;
	if (fd < 0)
		return r3ring_error_set(err, -EBADMSG,
					"capture buffer: no descriptor came with the hello");
	ret = whole_pages(driver, device, buffer, err);
	if (ret)
		return ret;
	code = driver->mem_import_from_shareable_handle(&allocation, (void *)(uintptr_t)fd,
							CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
	if (code != CUDA_SUCCESS)
		return cuda_driver_failed(err, code, "cuMemImportFromShareableHandle",
					  "the descriptor must be one of a driver of this release");
	buffer->allocation = allocation;
	ret = map(driver, device, buffer, err);
	if (ret)
		release(driver, device, buffer);
	return ret;
}

void cuda_vmm_free(struct device *device, struct device_buffer *buffer)
{
	const struct cuda_driver *driver = cuda_driver(NULL);
	CUdeviceptr at = (CUdeviceptr)(uintptr_t)buffer->base;
	CUresult code;

	if (!driver)
		return;
	code = driver->mem_unmap(at, buffer->mapped);
	cuda_check_release(device, (cudaError_t)code, "cuMemUnmap");
	/* Addresses with memory behind them must not be given back. */
	if (code == CUDA_SUCCESS)
		cuda_check_release(device,
				   (cudaError_t)driver->mem_address_free(at, buffer->mapped),
				   "cuMemAddressFree");
	release(driver, device, buffer);
	if (!device->options.imports && buffer->fd >= 0)
		close(buffer->fd);
}
