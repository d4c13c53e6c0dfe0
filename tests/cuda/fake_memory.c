/* SPDX-License-Identifier: Apache-2.0 */
/* The stand-in runtime itself: memory, and what may not be done with it. */
#include <criterion/criterion.h>

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cuda.h>
#include <cuda_runtime_api.h>

#include "tests/cuda/fixture.h"
#include "tests/support/fakecuda/fakecuda.h"

#define BYTES 65536u

static void finish(void)
{
	machine_check();
}

TestSuite(fake_memory, .init = machine_make, .timeout = 60);

static cudaStream_t make_stream(void)
{
	cudaStream_t stream;

	cr_assert_eq(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
	return stream;
}

static uint8_t *make_pinned(void)
{
	void *memory;

	cr_assert_eq(cudaHostAlloc(&memory, BYTES, cudaHostAllocDefault), cudaSuccess);
	return memory;
}

static void *make_device(void)
{
	void *memory;

	cr_assert_eq(cudaMalloc(&memory, BYTES), cudaSuccess);
	return memory;
}

static void copy(void *to, const void *from, cudaStream_t stream)
{
	cr_assert_eq(cudaMemcpyAsync(to, from, BYTES, cudaMemcpyDefault, stream), cudaSuccess);
}

MACHINE_TEST(fake_memory, what_is_copied_there_and_back_is_the_same)
{
	cudaStream_t stream = make_stream();
	uint8_t *from = make_pinned(), *to = make_pinned();
	void *device = make_device();

	for (unsigned int i = 0; i < BYTES; i++)
		from[i] = (uint8_t)(i * 7 + i / 256);
	copy(device, from, stream);
	copy(to, device, stream);
	cr_assert_eq(cudaStreamSynchronize(stream), cudaSuccess);
	cr_expect_eq(memcmp(from, to, BYTES), 0);
	cr_expect_eq(fakecuda_work().copies, 2);
	cr_expect_eq(fakecuda_work().copied_bytes, 2 * BYTES);
}

MACHINE_TEST(fake_memory, an_asynchronous_copy_of_unregistered_memory_is_found)
{
	static uint8_t pageable[BYTES];
	cudaStream_t stream = make_stream();

	copy(make_device(), pageable, stream);
	cr_assert_eq(cudaStreamSynchronize(stream), cudaSuccess);
	machine_expect("is not registered");
}

MACHINE_TEST(fake_memory, memory_registered_in_part_only_is_found)
{
	static uint8_t partly[BYTES];
	cudaStream_t stream = make_stream();

	cr_assert_eq(cudaHostRegister(partly, BYTES / 2, cudaHostRegisterDefault), cudaSuccess);
	copy(make_device(), partly, stream);
	cr_assert_eq(cudaStreamSynchronize(stream), cudaSuccess);
	machine_expect("is not registered");
}

MACHINE_TEST(fake_memory, a_use_after_free_is_found_and_spoils_the_context)
{
	cudaStream_t stream = make_stream();
	uint8_t *host = make_pinned();
	void *device = make_device();

	cr_assert_eq(cudaFree(device), cudaSuccess);
	copy(host, device, stream);
	cr_expect_eq(cudaStreamSynchronize(stream), cudaErrorIllegalAddress);
	cr_expect_eq(cudaMalloc(&device, 1), cudaErrorIllegalAddress);
	machine_expect("use after free");
}

MACHINE_TEST(fake_memory, a_copy_beyond_the_end_is_found)
{
	cudaStream_t stream = make_stream();
	uint8_t *host = make_pinned();

	copy(host, (uint8_t *)make_device() + 64, stream);
	cr_expect_eq(cudaStreamSynchronize(stream), cudaErrorIllegalAddress);
	machine_expect("is too short");
}

MACHINE_TEST(fake_memory, what_is_freed_twice_is_found)
{
	void *device = make_device();

	cr_expect_eq(cudaFree(device), cudaSuccess);
	cr_expect_eq(cudaFree(device), cudaErrorInvalidValue);
	machine_expect("not allocated");
}

MACHINE_TEST(fake_memory, the_cpu_cannot_touch_device_memory)
{
	uint8_t *device = make_device();
	pid_t child = fork();
	int status;

	if (child == 0) {
		signal(SIGSEGV, SIG_DFL); /* no report of a sanitizer's */
		_exit(*device);
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_expect(!WIFEXITED(status) || WEXITSTATUS(status) != 0);
}

MACHINE_TEST(fake_memory, the_gpus_address_of_registered_memory_is_another_than_the_cpus)
{
	static uint8_t bells[BYTES];
	void *mapped;

	cr_assert_eq(cudaHostRegister(bells, BYTES, cudaHostRegisterMapped), cudaSuccess);
	cr_assert_eq(cudaHostGetDevicePointer(&mapped, bells, 0), cudaSuccess);
	cr_expect_neq(mapped, (void *)bells);
	cr_expect_eq(cudaHostUnregister(bells), cudaSuccess);
	cr_expect_eq(cudaHostUnregister(bells), cudaErrorHostMemoryNotRegistered);
	machine_expect("not registered");
}

MACHINE_TEST(fake_memory, what_is_not_given_back_is_counted)
{
	struct fakecuda_usage before = fakecuda_usage(), during, after;
	size_t free_before, free_during, free_after, total;
	uint8_t *pinned;
	void *device;

	cr_assert_eq(cudaMemGetInfo(&free_before, &total), cudaSuccess);
	device = make_device();
	pinned = make_pinned();
	during = fakecuda_usage();
	cr_assert_eq(cudaMemGetInfo(&free_during, &total), cudaSuccess);
	cr_assert_eq(cudaFree(device), cudaSuccess);
	cr_assert_eq(cudaFreeHost(pinned), cudaSuccess);
	after = fakecuda_usage();
	cr_assert_eq(cudaMemGetInfo(&free_after, &total), cudaSuccess);
	cr_expect_eq(during.allocations, before.allocations + 1);
	cr_expect_eq(during.pinned, before.pinned + 1);
	cr_expect_eq(memcmp(&before, &after, sizeof(after)), 0);
	cr_expect_eq(free_before - free_during, BYTES);
	cr_expect_eq(free_before, free_after);
}

MACHINE_TEST(fake_memory, more_than_the_gpu_has_is_refused)
{
	void *device;

	cr_expect_eq(cudaMalloc(&device, 81ull << 30), cudaErrorMemoryAllocation);
	cr_expect_eq(cudaGetLastError(), cudaErrorMemoryAllocation);
	cr_expect_eq(cudaGetLastError(), cudaSuccess);
}

/* ---- memory by descriptor ----------------------------------------------- */

/* A function of the driver by name. */
static void find(const char *name, void *function)
{
	enum cudaDriverEntryPointQueryResult found;

	cr_assert_eq(cudaGetDriverEntryPoint(name, function, cudaEnableDefault, &found),
		     cudaSuccess);
	cr_assert_eq(found, cudaDriverEntryPointSuccess, "%s", name);
}

struct vmm {
	CUresult (*create)(CUmemGenericAllocationHandle *, size_t, const CUmemAllocationProp *,
			   unsigned long long);
	CUresult (*reserve)(CUdeviceptr *, size_t, size_t, CUdeviceptr, unsigned long long);
	CUresult (*map)(CUdeviceptr, size_t, size_t, CUmemGenericAllocationHandle,
			unsigned long long);
	CUresult (*set_access)(CUdeviceptr, size_t, const CUmemAccessDesc *, size_t);
	CUresult (*unmap)(CUdeviceptr, size_t);
	CUresult (*address_free)(CUdeviceptr, size_t);
	CUresult (*release)(CUmemGenericAllocationHandle);
	CUresult (*give)(void *, CUmemGenericAllocationHandle, CUmemAllocationHandleType,
			 unsigned long long);
	CUresult (*take)(CUmemGenericAllocationHandle *, void *, CUmemAllocationHandleType);
};

static struct vmm vmm_find(void)
{
	struct vmm vmm;

	find("cuMemCreate", &vmm.create);
	find("cuMemAddressReserve", &vmm.reserve);
	find("cuMemMap", &vmm.map);
	find("cuMemSetAccess", &vmm.set_access);
	find("cuMemUnmap", &vmm.unmap);
	find("cuMemAddressFree", &vmm.address_free);
	find("cuMemRelease", &vmm.release);
	find("cuMemExportToShareableHandle", &vmm.give);
	find("cuMemImportFromShareableHandle", &vmm.take);
	return vmm;
}

#define GRAIN (2u << 20)

static CUmemGenericAllocationHandle vmm_memory(const struct vmm *vmm)
{
	const CUmemAllocationProp properties = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
		.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0},
	};
	CUmemGenericAllocationHandle memory;

	cr_assert_eq(vmm->create(&memory, GRAIN, &properties, 0), CUDA_SUCCESS);
	return memory;
}

static CUdeviceptr vmm_mapped(const struct vmm *vmm, CUmemGenericAllocationHandle memory)
{
	CUdeviceptr address;

	cr_assert_eq(vmm->reserve(&address, GRAIN, 0, 0, 0), CUDA_SUCCESS);
	cr_assert_eq(vmm->map(address, GRAIN, 0, memory, 0), CUDA_SUCCESS);
	return address;
}

static void vmm_allow(const struct vmm *vmm, CUdeviceptr address)
{
	const CUmemAccessDesc both = {{CU_MEM_LOCATION_TYPE_DEVICE, 0},
				      CU_MEM_ACCESS_FLAGS_PROT_READWRITE};

	cr_assert_eq(vmm->set_access(address, GRAIN, &both, 1), CUDA_SUCCESS);
}

MACHINE_TEST(fake_memory, memory_by_descriptor_is_the_same_at_both_addresses)
{
	struct vmm vmm = vmm_find();
	CUmemGenericAllocationHandle memory = vmm_memory(&vmm), imported;
	CUdeviceptr here = vmm_mapped(&vmm, memory), there;
	cudaStream_t stream = make_stream();
	uint8_t *from = make_pinned(), *to = make_pinned();
	int fd = -1;

	cr_assert_eq(vmm.give(&fd, memory, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
		     CUDA_SUCCESS);
	cr_assert_eq(
		vmm.take(&imported, (void *)(intptr_t)fd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
		CUDA_SUCCESS);
	close(fd);
	there = vmm_mapped(&vmm, imported);
	vmm_allow(&vmm, here);
	vmm_allow(&vmm, there);
	memset(from, 0x5C, BYTES);
	copy((void *)(uintptr_t)here, from, stream);
	copy(to, (void *)(uintptr_t)there, stream);
	cr_assert_eq(cudaStreamSynchronize(stream), cudaSuccess);
	cr_expect_eq(memcmp(from, to, BYTES), 0);
	cr_expect_eq(vmm.unmap(here, GRAIN), CUDA_SUCCESS);
	cr_expect_eq(vmm.unmap(there, GRAIN), CUDA_SUCCESS);
	cr_expect_eq(vmm.address_free(here, GRAIN), CUDA_SUCCESS);
	cr_expect_eq(vmm.address_free(there, GRAIN), CUDA_SUCCESS);
	cr_expect_eq(vmm.release(memory), CUDA_SUCCESS);
	cr_expect_eq(vmm.release(imported), CUDA_SUCCESS);
	cr_expect_eq(fakecuda_usage().allocations, 0);
	cr_expect_eq(fakecuda_usage().reserved, 0);
}

MACHINE_TEST(fake_memory, mapped_memory_without_access_is_found)
{
	struct vmm vmm = vmm_find();
	CUdeviceptr address = vmm_mapped(&vmm, vmm_memory(&vmm));
	cudaStream_t stream = make_stream();
	uint8_t *host = make_pinned();

	copy(host, (void *)(uintptr_t)address, stream);
	cr_expect_eq(cudaStreamSynchronize(stream), cudaErrorIllegalAddress);
	machine_expect("cuMemSetAccess");
}

MACHINE_TEST(fake_memory, memory_by_descriptor_has_no_interprocess_handle)
{
	struct vmm vmm = vmm_find();
	CUdeviceptr address = vmm_mapped(&vmm, vmm_memory(&vmm));
	cudaIpcMemHandle_t handle;

	cr_expect_eq(cudaIpcGetMemHandle(&handle, (void *)(uintptr_t)address),
		     cudaErrorInvalidValue);
}

MACHINE_TEST(fake_memory, a_size_that_is_no_multiple_of_the_granularity_is_refused)
{
	struct vmm vmm = vmm_find();
	const CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
						.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
	CUmemGenericAllocationHandle memory;

	cr_expect_eq(vmm.create(&memory, BYTES, &properties, 0), CUDA_ERROR_INVALID_VALUE);
}
