/* SPDX-License-Identifier: Apache-2.0 */
/* The stand-in runtime itself: the order of streams and events, and graphs. */
#include <criterion/criterion.h>

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cuda_runtime_api.h>

#include "kernels/cuda_kernels.h"
#include "kernels/kernels.h"
#include "tests/cuda/fixture.h"
#include "tests/support/fakecuda/fakecuda.h"

#define BYTES 4096u

static void finish(void)
{
	machine_check();
}

TestSuite(fake_streams, .init = machine_make, .timeout = 60);

static cudaStream_t stream_a, stream_b;
static cudaEvent_t event_a, event_b;
static uint8_t *host_a, *host_b, *device;

static void set_up(void)
{
	void *memory;

	cr_assert_eq(cudaStreamCreateWithFlags(&stream_a, cudaStreamNonBlocking), cudaSuccess);
	cr_assert_eq(cudaStreamCreateWithFlags(&stream_b, cudaStreamNonBlocking), cudaSuccess);
	cr_assert_eq(cudaEventCreateWithFlags(&event_a, cudaEventDisableTiming), cudaSuccess);
	cr_assert_eq(cudaEventCreateWithFlags(&event_b, cudaEventDisableTiming), cudaSuccess);
	cr_assert_eq(cudaHostAlloc(&memory, BYTES, cudaHostAllocDefault), cudaSuccess);
	host_a = memory;
	cr_assert_eq(cudaHostAlloc(&memory, BYTES, cudaHostAllocDefault), cudaSuccess);
	host_b = memory;
	cr_assert_eq(cudaMalloc(&memory, BYTES), cudaSuccess);
	device = memory;
}

static void copy(void *to, const void *from, cudaStream_t stream)
{
	cr_assert_eq(cudaMemcpyAsync(to, from, BYTES, cudaMemcpyDefault, stream), cudaSuccess);
}

static void after(cudaStream_t stream, cudaEvent_t event, cudaStream_t other)
{
	cr_assert_eq(cudaEventRecord(event, other), cudaSuccess);
	cr_assert_eq(cudaStreamWaitEvent(stream, event, 0), cudaSuccess);
}

static void synchronize(void)
{
	cr_assert_eq(cudaDeviceSynchronize(), cudaSuccess);
}

/* ---- order -------------------------------------------------------------- */

MACHINE_TEST(fake_streams, two_streams_that_write_the_same_without_order_are_found)
{
	set_up();
	copy(device, host_a, stream_a);
	copy(device, host_b, stream_b);
	synchronize();
	machine_expect("missing dependency");
}

MACHINE_TEST(fake_streams, a_read_without_order_is_found_whichever_came_first)
{
	set_up();
	copy(device, host_a, stream_a);
	copy(host_b, device, stream_b);
	synchronize();
	machine_expect("missing dependency");
}

MACHINE_TEST(fake_streams, the_finding_names_call_stream_and_place)
{
	set_up();
	copy(device, host_a, stream_a);
	copy(device, host_b, stream_b);
	synchronize();
	cr_expect(fakecuda_found("cudaMemcpyAsync at tests/cuda/fake_streams.c:"));
	machine_expect("lane");
}

MACHINE_TEST(fake_streams, streams_that_an_event_orders_are_not_found)
{
	set_up();
	memset(host_a, 1, BYTES);
	memset(host_b, 2, BYTES);
	for (unsigned int i = 0; i < 100; i++) {
		copy(device, host_a, stream_a);
		after(stream_b, event_a, stream_a);
		copy(host_b, device, stream_b);
		after(stream_a, event_b, stream_b);
	}
	synchronize();
	cr_expect_eq(host_b[BYTES - 1], 1);
}

MACHINE_TEST(fake_streams, an_event_recorded_too_early_orders_nothing)
{
	set_up();
	cr_assert_eq(cudaEventRecord(event_a, stream_a), cudaSuccess);
	copy(device, host_a, stream_a);
	cr_assert_eq(cudaStreamWaitEvent(stream_b, event_a, 0), cudaSuccess);
	copy(host_b, device, stream_b);
	synchronize();
	machine_expect("missing dependency");
}

MACHINE_TEST(fake_streams, what_the_host_has_seen_to_be_done_is_ordered)
{
	set_up();
	copy(device, host_a, stream_a);
	while (cudaStreamQuery(stream_a) == cudaErrorNotReady)
		;
	copy(host_b, device, stream_b);
	synchronize();
}

MACHINE_TEST(fake_streams, the_default_stream_waits_for_blocking_streams_and_they_for_it)
{
	cudaStream_t blocking;

	set_up();
	cr_assert_eq(cudaStreamCreateWithFlags(&blocking, cudaStreamDefault), cudaSuccess);
	copy(device, host_a, blocking);
	copy(host_b, device, NULL);
	copy(device, host_a, blocking);
	synchronize();
	copy(device, host_a, NULL);
	copy(host_b, device, stream_a);
	synchronize();
	machine_expect("missing dependency");
}

static char orders[256];
static unsigned int orders_len;

static void note(void *letter)
{
	orders[orders_len++] = *(const char *)letter;
}

/* The order in which two streams of three are done with a seed. */
static void run_two_streams(void)
{
	static char letters[] = "abcdef";

	fakecuda_pause(true);
	for (unsigned int i = 0; i < 6; i++)
		cr_assert_eq(cudaLaunchHostFunc(i % 2 ? stream_b : stream_a, note, &letters[i]),
			     cudaSuccess);
	fakecuda_pause(false);
	synchronize();
}

MACHINE_TEST(fake_streams, a_stream_is_done_in_order_and_two_of_them_in_any)
{
	unsigned int other_first = 0;

	set_up();
	for (unsigned int i = 0; i < 40; i++) {
		const char *a, *b, *c;

		orders_len = 0;
		run_two_streams();
		a = memchr(orders, 'a', 6);
		b = memchr(orders, 'c', 6);
		c = memchr(orders, 'e', 6);
		cr_assert(a && b && c && a < b && b < c);
		other_first += memchr(orders, 'b', 6) < (void *)orders + 1;
	}
	cr_expect_gt(other_first, 0);
	cr_expect_lt(other_first, 40);
}

MACHINE_TEST(fake_streams, a_destroyed_stream_or_event_that_is_used_is_found)
{
	set_up();
	cr_assert_eq(cudaStreamDestroy(stream_a), cudaSuccess);
	cr_expect_neq(cudaMemcpyAsync(device, host_a, BYTES, cudaMemcpyDefault, stream_a),
		      cudaSuccess);
	machine_expect("was destroyed");
	cr_assert_eq(cudaEventDestroy(event_a), cudaSuccess);
	cr_expect_neq(cudaEventRecord(event_a, stream_b), cudaSuccess);
	machine_expect("was destroyed");
}

/* ---- graphs ------------------------------------------------------------- */

static cudaGraphExec_t capture_end(void)
{
	cudaGraph_t graph;
	cudaGraphExec_t exec;

	cr_assert_eq(cudaStreamEndCapture(stream_a, &graph), cudaSuccess);
	cr_assert_eq(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
	cr_assert_eq(cudaGraphDestroy(graph), cudaSuccess);
	return exec;
}

static void capture_begin(void)
{
	cr_assert_eq(cudaStreamBeginCapture(stream_a, cudaStreamCaptureModeGlobal), cudaSuccess);
}

MACHINE_TEST(fake_streams, what_is_captured_is_done_at_each_launch_and_not_before)
{
	cudaGraphExec_t exec;

	set_up();
	memset(host_b, 0, BYTES);
	capture_begin();
	copy(device, host_a, stream_a);
	copy(host_b, device, stream_a);
	exec = capture_end();
	synchronize();
	cr_expect_eq(fakecuda_work().copies, 0);
	for (uint8_t i = 1; i < 10; i++) {
		memset(host_a, i, BYTES);
		cr_assert_eq(cudaGraphLaunch(exec, stream_b), cudaSuccess);
		cr_assert_eq(cudaStreamSynchronize(stream_b), cudaSuccess);
		cr_expect_eq(host_b[BYTES - 1], i);
	}
	cr_expect_eq(fakecuda_work().copies, 18);
	cr_expect_eq(cudaGraphExecDestroy(exec), cudaSuccess);
	cr_expect_eq(fakecuda_usage().graphs, 0);
}

MACHINE_TEST(fake_streams, branches_of_a_graph_keep_their_order)
{
	cudaGraphExec_t exec;

	set_up();
	capture_begin();
	copy(device, host_a, stream_a);
	after(stream_b, event_a, stream_a);
	copy(host_b, device, stream_b);
	after(stream_a, event_b, stream_b);
	copy(device, host_a, stream_a);
	exec = capture_end();
	for (unsigned int i = 0; i < 50; i++)
		cr_assert_eq(cudaGraphLaunch(exec, stream_a), cudaSuccess);
	synchronize();
	cr_expect_eq(fakecuda_work().copies, 150);
	cr_expect_eq(cudaGraphExecDestroy(exec), cudaSuccess);
}

MACHINE_TEST(fake_streams, branches_of_a_graph_without_order_are_found)
{
	cudaGraphExec_t exec;

	set_up();
	capture_begin();
	after(stream_b, event_a, stream_a);
	copy(device, host_a, stream_a);
	copy(device, host_b, stream_b);
	after(stream_a, event_b, stream_b);
	exec = capture_end();
	cr_assert_eq(cudaGraphLaunch(exec, stream_a), cudaSuccess);
	synchronize();
	cr_expect_eq(cudaGraphExecDestroy(exec), cudaSuccess);
	machine_expect("missing dependency");
}

MACHINE_TEST(fake_streams, a_branch_that_never_joins_again_spoils_the_capture)
{
	cudaGraph_t graph;

	set_up();
	capture_begin();
	after(stream_b, event_a, stream_a);
	copy(device, host_b, stream_b);
	cr_expect_eq(cudaStreamEndCapture(stream_a, &graph), cudaErrorStreamCaptureUnjoined);
}

static void expect_forbidden(cudaError_t error)
{
	cudaGraph_t graph;

	cr_expect_eq(error, cudaErrorStreamCaptureUnsupported);
	cr_expect_eq(cudaStreamEndCapture(stream_a, &graph), cudaErrorStreamCaptureInvalidated);
	machine_expect("illegal while a stream is being captured");
}

MACHINE_TEST(fake_streams, calls_that_no_capture_allows_are_found)
{
	void *memory;

	set_up();
	capture_begin();
	expect_forbidden(cudaMalloc(&memory, 1));
	capture_begin();
	expect_forbidden(cudaStreamSynchronize(stream_b));
	capture_begin();
	expect_forbidden(cudaEventQuery(event_a));
	capture_begin();
	expect_forbidden(cudaHostRegister(orders, sizeof(orders), 0));
}

static void *query(void *error)
{
	*(cudaError_t *)error = cudaEventQuery(event_a);
	return NULL;
}

MACHINE_TEST(fake_streams, another_threads_call_spoils_a_global_capture_and_no_other)
{
	cudaError_t error;
	pthread_t thread;
	cudaGraph_t graph;

	set_up();
	capture_begin();
	cr_assert_eq(pthread_create(&thread, NULL, query, &error), 0);
	pthread_join(thread, NULL);
	expect_forbidden(error);
	cr_assert_eq(cudaStreamBeginCapture(stream_a, cudaStreamCaptureModeThreadLocal),
		     cudaSuccess);
	cr_assert_eq(pthread_create(&thread, NULL, query, &error), 0);
	pthread_join(thread, NULL);
	cr_expect_eq(error, cudaSuccess);
	cr_expect_eq(cudaStreamEndCapture(stream_a, &graph), cudaSuccess);
	cr_expect_eq(cudaGraphDestroy(graph), cudaSuccess);
}

MACHINE_TEST(fake_streams, the_default_stream_spoils_the_capture_of_a_blocking_stream)
{
	enum cudaStreamCaptureStatus status;
	cudaStream_t blocking;
	cudaGraph_t graph;

	set_up();
	cr_assert_eq(cudaStreamCreateWithFlags(&blocking, cudaStreamDefault), cudaSuccess);
	cr_assert_eq(cudaStreamBeginCapture(blocking, cudaStreamCaptureModeRelaxed), cudaSuccess);
	cr_expect_eq(cudaStreamIsCapturing(NULL, &status), cudaErrorStreamCaptureImplicit);
	cr_expect_eq(cudaMemcpyAsync(device, host_a, BYTES, cudaMemcpyDefault, NULL),
		     cudaErrorStreamCaptureImplicit);
	cr_expect_eq(cudaStreamEndCapture(blocking, &graph), cudaErrorStreamCaptureInvalidated);
	machine_expect("default stream");
}

MACHINE_TEST(fake_streams, waiting_in_a_capture_for_what_is_outside_is_found)
{
	cudaGraph_t graph;

	set_up();
	cr_assert_eq(cudaEventRecord(event_a, stream_b), cudaSuccess);
	capture_begin();
	cr_expect_eq(cudaStreamWaitEvent(stream_a, event_a, 0), cudaErrorStreamCaptureIsolation);
	cr_expect_eq(cudaStreamEndCapture(stream_a, &graph), cudaErrorStreamCaptureInvalidated);
	machine_expect("border of a capture");
}

/* ---- kernels ------------------------------------------------------------ */

static cudaError_t launch_end(void *control, void *buffer, cudaStream_t stream)
{
	struct kernel_end_args args = {
		.control = control,
		.buffer = buffer,
		.bells = buffer,
		.geometry = {.layers = 1, .top_k = 1, .experts = 2, .rows_per_record = 16}};
	void *parameters[] = {&args};

	return cudaLaunchKernel(cuda_kernel(CUDA_KERNEL_END), (dim3){1, 1, 1},
				(dim3){CUDA_BLOCK_THREADS, 1, 1}, parameters, 0, stream);
}

MACHINE_TEST(fake_streams, the_code_of_a_kernel_that_is_first_loaded_in_a_capture_is_found)
{
	set_up();
	capture_begin();
	cr_expect_eq(launch_end(device, device, stream_a), cudaSuccess);
	cr_expect_eq(cudaGraphExecDestroy(capture_end()), cudaSuccess);
	machine_expect("loaded while a stream is captured");
}

MACHINE_TEST(fake_streams, a_kernel_that_is_given_a_host_address_is_found)
{
	static struct extent_control control = {.offset = EXTENT_NONE};

	set_up();
	cr_assert_eq(cudaHostRegister(&control, sizeof(control), 0), cudaSuccess);
	cr_expect_eq(launch_end(&control, device, stream_a), cudaSuccess);
	cr_expect_eq(cudaStreamSynchronize(stream_a), cudaErrorIllegalAddress);
	machine_expect("no address of the GPU's");
}

MACHINE_TEST(fake_streams, a_kernel_in_a_program_that_may_only_copy_is_found)
{
	setenv("FAKECUDA_COPIES_ONLY", program_invocation_short_name, 1);
	set_up();
	memset(host_a, 0xFF, BYTES);
	copy(device, host_a, stream_a);
	cr_expect_eq(launch_end(device, device, stream_a), cudaSuccess);
	synchronize();
	machine_expect("which may only copy");
}

/* ---- serving ------------------------------------------------------------ */

MACHINE_TEST(fake_streams, calls_that_wait_or_allocate_while_the_engine_serves_are_found)
{
	void *memory;

	set_up();
	fakecuda_serving(true);
	copy(device, host_a, stream_a);
	cr_expect_eq(cudaEventRecord(event_a, stream_a), cudaSuccess);
	cr_expect_eq(fakecuda_finding_count(), 0);
	cr_expect_eq(cudaStreamSynchronize(stream_a), cudaSuccess);
	machine_expect("a call that waits");
	cr_expect_eq(cudaMalloc(&memory, 1), cudaSuccess);
	machine_expect("a call that allocates");
	cr_expect_eq(cudaEventCreateWithFlags(&event_b, 0), cudaSuccess);
	machine_expect("a call that allocates");
	fakecuda_serving(false);
}
