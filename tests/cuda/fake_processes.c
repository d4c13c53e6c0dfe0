/* SPDX-License-Identifier: Apache-2.0 */
/* The stand-in runtime itself: several processes, devices, and failures. */
#include <criterion/criterion.h>

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <r3ring/atomic.h>

#include "tests/cuda/fixture.h"
#include "tests/support/fakecuda/fakecuda.h"
#include "tests/support/leaks.h"

#define BYTES (1u << 20)

/* What a test and its second process share. */
struct shared {
	cudaIpcMemHandle_t memory;
	cudaIpcEventHandle_t event;
	uint32_t stage; /* atomic */
	cudaError_t results[8];
	uint8_t seen;
};

static struct shared *shared;
static pid_t child;

static void set_up(void)
{
	machine_make();
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	cr_assert_neq(shared, MAP_FAILED);
}

static void finish(void)
{
	if (child > 0) {
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
	}
	machine_check();
}

TestSuite(fake_processes, .init = set_up, .fini = finish, .timeout = 60);

/* Before this process's first CUDA call: a process with a started runtime must not
 * fork and go on. */
static void start_child(void (*body)(void))
{
	child = fork();
	cr_assert_geq(child, 0);
	if (child)
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	body();
	leaks_look_away();
	exit(0);
}

static void reach(uint32_t stage)
{
	/* Pairs with the acquire in await(). */
	r3ring_store_release_u32(&shared->stage, stage);
}

static void await(uint32_t stage)
{
	for (int i = 0; i < 20000 && r3ring_load_acquire_u32(&shared->stage) < stage; i++)
		poll(NULL, 0, 1);
}

static void await_child(void)
{
	int status = -1;

	cr_assert_eq(waitpid(child, &status, 0), child);
	child = 0;
	cr_expect_eq(status, 0);
}

static cudaStream_t make_stream(void)
{
	cudaStream_t stream = NULL;

	if (cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking))
		abort();
	return stream;
}

static uint8_t *make_pinned(uint8_t value)
{
	void *memory;

	if (cudaHostAlloc(&memory, BYTES, cudaHostAllocDefault))
		abort();
	memset(memory, value, BYTES);
	return memory;
}

static void *make_exported(void)
{
	void *device;

	cr_assert_eq(cudaMalloc(&device, BYTES), cudaSuccess);
	cr_assert_eq(cudaIpcGetMemHandle(&shared->memory, device), cudaSuccess);
	return device;
}

/* ---- memory ------------------------------------------------------------- */

static void read_what_the_parent_wrote(void)
{
	uint8_t *host = make_pinned(0);
	cudaStream_t stream = make_stream();
	void *device = NULL;

	await(1);
	shared->results[0] =
		cudaIpcOpenMemHandle(&device, shared->memory, cudaIpcMemLazyEnablePeerAccess);
	cudaMemcpyAsync(host, device, BYTES, cudaMemcpyDeviceToHost, stream);
	shared->results[1] = cudaStreamSynchronize(stream);
	shared->seen = host[BYTES - 1];
	reach(2);
	await(3);
	shared->results[2] = cudaIpcCloseMemHandle(device);
}

MACHINE_TEST(fake_processes, memory_is_shared_by_its_handle)
{
	cudaStream_t stream;
	void *device;

	start_child(read_what_the_parent_wrote);
	device = make_exported();
	stream = make_stream();
	cr_assert_eq(cudaMemcpyAsync(device, make_pinned(0x37), BYTES, cudaMemcpyDefault, stream),
		     cudaSuccess);
	cr_assert_eq(cudaStreamSynchronize(stream), cudaSuccess);
	reach(1);
	await(2);
	reach(3);
	await_child();
	cr_expect_eq(shared->results[0], cudaSuccess);
	cr_expect_eq(shared->results[1], cudaSuccess);
	cr_expect_eq(shared->results[2], cudaSuccess);
	cr_expect_eq(shared->seen, 0x37);
	cr_expect_eq(cudaFree(device), cudaSuccess);
}

MACHINE_TEST(fake_processes, memory_that_is_freed_while_another_process_has_it_open_is_found)
{
	void *device;

	start_child(read_what_the_parent_wrote);
	device = make_exported();
	reach(1);
	await(2);
	cr_expect_eq(cudaFree(device), cudaSuccess);
	machine_expect("has open");
	reach(3);
	await_child();
}

MACHINE_TEST(fake_processes, a_handle_that_is_opened_where_it_was_made_is_found)
{
	void *device;

	make_exported();
	cr_expect_neq(cudaIpcOpenMemHandle(&device, shared->memory, cudaIpcMemLazyEnablePeerAccess),
		      cudaSuccess);
	machine_expect("in the process that made it");
}

static void export_and_die(void)
{
	make_exported();
	reach(1);
}

MACHINE_TEST(fake_processes, memory_of_a_process_that_has_ended_cannot_be_opened)
{
	void *device;

	start_child(export_and_die);
	await(1);
	await_child();
	cr_expect_neq(cudaIpcOpenMemHandle(&device, shared->memory, cudaIpcMemLazyEnablePeerAccess),
		      cudaSuccess);
}

static void open_on_the_other_gpu(void)
{
	void *device;

	await(1);
	cudaSetDevice(1);
	cudaIpcOpenMemHandle(&device, shared->memory, cudaIpcMemLazyEnablePeerAccess);
}

MACHINE_TEST(fake_processes, memory_that_is_opened_on_another_gpu_is_found)
{
	setenv("FAKECUDA_GPUS", "2", 1);
	start_child(open_on_the_other_gpu);
	make_exported();
	reach(1);
	await_child();
	machine_expect("while GPU 1 is current");
}

/* Until the other's copies meet them, which is found. */
static void copy_until_found(void *to, const void *from)
{
	cudaStream_t stream = make_stream();

	for (int i = 0; i < 20000 && !fakecuda_finding_count(); i++) {
		cudaMemcpyAsync(to, from, BYTES, cudaMemcpyDefault, stream);
		cudaStreamSynchronize(stream);
	}
}

static void read_all_the_time(void)
{
	void *device;

	await(1);
	cudaIpcOpenMemHandle(&device, shared->memory, cudaIpcMemLazyEnablePeerAccess);
	copy_until_found(make_pinned(0), device);
}

MACHINE_TEST(fake_processes, memory_that_two_processes_use_at_the_same_time_is_found)
{
	void *device;

	start_child(read_all_the_time);
	device = make_exported();
	reach(1);
	copy_until_found(device, make_pinned(1));
	machine_expect("uses at the same time");
	fakecuda_clear_findings();
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	child = 0;
	fakecuda_clear_findings();
}

/* ---- events ------------------------------------------------------------- */

static void wait_for_the_parents_event(void)
{
	uint8_t *host = make_pinned(0);
	cudaStream_t stream = make_stream();
	cudaEvent_t event;
	void *device;

	await(1);
	cudaIpcOpenMemHandle(&device, shared->memory, cudaIpcMemLazyEnablePeerAccess);
	shared->results[0] = cudaIpcOpenEventHandle(&event, shared->event);
	shared->results[1] = cudaEventQuery(event);
	cudaStreamWaitEvent(stream, event, 0);
	cudaMemcpyAsync(host, device, BYTES, cudaMemcpyDeviceToHost, stream);
	reach(2);
	shared->results[2] = cudaStreamSynchronize(stream);
	shared->seen = host[BYTES - 1];
	reach(3);
}

MACHINE_TEST(fake_processes, an_event_orders_what_two_processes_do)
{
	cudaStream_t stream;
	cudaEvent_t event;
	void *device;

	start_child(wait_for_the_parents_event);
	device = make_exported();
	stream = make_stream();
	cr_assert_eq(
		cudaEventCreateWithFlags(&event, cudaEventInterprocess | cudaEventDisableTiming),
		cudaSuccess);
	cr_assert_eq(cudaIpcGetEventHandle(&shared->event, event), cudaSuccess);
	fakecuda_pause(true);
	cr_assert_eq(cudaMemcpyAsync(device, make_pinned(0x42), BYTES, cudaMemcpyDefault, stream),
		     cudaSuccess);
	cr_assert_eq(cudaEventRecord(event, stream), cudaSuccess);
	reach(1);
	await(2);
	fakecuda_pause(false);
	await(3);
	await_child();
	cr_expect_eq(shared->results[0], cudaSuccess);
	cr_expect_eq(shared->results[1], cudaErrorNotReady);
	cr_expect_eq(shared->results[2], cudaSuccess);
	cr_expect_eq(shared->seen, 0x42);
}

MACHINE_TEST(fake_processes, only_an_event_without_timing_goes_between_processes)
{
	cudaIpcEventHandle_t handle;
	cudaEvent_t event;

	cr_expect_eq(cudaEventCreateWithFlags(&event, cudaEventInterprocess),
		     cudaErrorInvalidValue);
	cr_assert_eq(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), cudaSuccess);
	cr_expect_eq(cudaIpcGetEventHandle(&handle, event), cudaErrorInvalidResourceHandle);
}

/* ---- devices ------------------------------------------------------------ */

static unsigned int gpu_of(int device)
{
	CUuuid uuid;
	uint8_t wanted[16];
	enum cudaDriverEntryPointQueryResult found;
	CUresult (*get_uuid)(CUuuid *, CUdevice);

	cr_assert_eq(cudaGetDriverEntryPoint("cuDeviceGetUuid", (void *)&get_uuid,
					     cudaEnableDefault, &found),
		     cudaSuccess);
	cr_assert_eq(get_uuid(&uuid, device), CUDA_SUCCESS);
	for (unsigned int gpu = 0; gpu < 8; gpu++) {
		fakecuda_uuid(gpu, wanted);
		if (memcmp(wanted, uuid.bytes, 16) == 0)
			return gpu;
	}
	return 99;
}

MACHINE_TEST(fake_processes, visible_devices_are_those_that_are_named_in_their_order)
{
	char list[64];
	int count;

	setenv("FAKECUDA_GPUS", "4", 1);
	setenv("CUDA_VISIBLE_DEVICES", "3,1", 1);
	cr_assert_eq(cudaGetDeviceCount(&count), cudaSuccess);
	cr_assert_eq(count, 2);
	cr_expect_eq(gpu_of(0), 3);
	cr_expect_eq(gpu_of(1), 1);
	fakecuda_uuid_text(2, list);
	setenv("CUDA_VISIBLE_DEVICES", list, 1);
	cr_assert_eq(cudaGetDeviceCount(&count), cudaSuccess);
	cr_assert_eq(count, 1);
	cr_expect_eq(gpu_of(0), 2);
	setenv("CUDA_VISIBLE_DEVICES", "", 1);
	cr_expect_eq(cudaGetDeviceCount(&count), cudaErrorNoDevice);
}

MACHINE_TEST(fake_processes, a_machine_without_driver_says_so)
{
	int count = 7, version = 7;

	setenv("FAKECUDA_DRIVER", "none", 1);
	cr_expect_eq(cudaGetDeviceCount(&count), cudaErrorInsufficientDriver);
	cr_expect_eq(count, 0);
	cr_expect_eq(cudaDriverGetVersion(&version), cudaSuccess);
	cr_expect_eq(version, 0);
}

/* ---- failures ----------------------------------------------------------- */

MACHINE_TEST(fake_processes, the_nth_call_fails_and_no_other)
{
	void *memory;

	fakecuda_fail("cudaMalloc:2:cudaErrorMemoryAllocation");
	cr_expect_eq(cudaMalloc(&memory, 1), cudaSuccess);
	cr_expect_not(fakecuda_has_failed());
	cr_expect_eq(cudaMalloc(&memory, 1), cudaErrorMemoryAllocation);
	cr_expect(fakecuda_has_failed());
	cr_expect_eq(cudaPeekAtLastError(), cudaErrorMemoryAllocation);
	cr_expect_eq(cudaMalloc(&memory, 1), cudaSuccess);
	cr_expect_eq(fakecuda_calls("cudaMalloc"), 3);
}

MACHINE_TEST(fake_processes, work_that_fails_spoils_all_later_calls)
{
	cudaStream_t stream;
	void *device;

	fakecuda_fail("execute:1:cudaErrorECCUncorrectable");
	device = make_exported();
	stream = make_stream();
	cr_expect_eq(cudaMemcpyAsync(device, make_pinned(0), BYTES, cudaMemcpyDefault, stream),
		     cudaSuccess);
	cr_expect_eq(cudaStreamSynchronize(stream), cudaErrorECCUncorrectable);
	cr_expect_eq(cudaStreamQuery(stream), cudaErrorECCUncorrectable);
	cr_expect_eq(cudaFree(device), cudaErrorECCUncorrectable);
}

static void fail_and_look_away(void)
{
	cudaStream_t stream = make_stream();
	void *device;

	cudaMalloc(&device, BYTES);
	fakecuda_fail("execute:1:cudaErrorIllegalAddress");
	cudaMemcpyAsync(device, make_pinned(0), BYTES, cudaMemcpyDefault, stream);
	while (!fakecuda_has_failed())
		poll(NULL, 0, 1);
}

MACHINE_TEST(fake_processes, a_failed_gpu_that_nobody_looked_at_is_found)
{
	start_child(fail_and_look_away);
	await_child();
	machine_expect("nobody looked");
}

static void fail_by_environment(void)
{
	void *memory;

	shared->results[shared->seen++] = cudaMalloc(&memory, 1);
}

MACHINE_TEST(fake_processes, what_the_environment_lets_fail_fails_once_on_the_machine)
{
	setenv("FAKECUDA_FAIL", "cudaMalloc:1:cudaErrorMemoryAllocation", 1);
	for (unsigned int i = 0; i < 2; i++) {
		start_child(fail_by_environment);
		await_child();
	}
	cr_expect_eq(shared->results[0], cudaErrorMemoryAllocation);
	cr_expect_eq(shared->results[1], cudaSuccess);
}
