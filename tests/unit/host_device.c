/* SPDX-License-Identifier: Apache-2.0 */
/* The host device's buffer, its import by another process, and its launches. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <r3ring/host_stream.h>
#include <r3ring/producer.h>

#include "device/device.h"

static const struct device_ops *const ops = &device_host_ops;

static struct device *device_open(void)
{
	struct device *device = NULL;

	cr_assert_eq(ops->open(&device, &(struct device_options){0}, NULL), 0);
	return device;
}

static struct device_buffer buffer_alloc(struct device *device, uint64_t bytes)
{
	struct device_buffer buffer;

	cr_assert_eq(ops->buffer_alloc(device, R3RING_BUFFER_HOST, bytes, &buffer, NULL), 0);
	return buffer;
}

Test(device, auto_is_cuda_where_there_is_a_gpu_and_else_the_host)
{
	bool gpu = device_cuda_ops.probe(NULL) == 0;

	cr_assert_eq(device_find("host", NULL), ops);
	cr_assert_eq(device_find("auto", NULL), gpu ? &device_cuda_ops : ops);
	cr_assert_eq(device_for_buffer(R3RING_BUFFER_HOST, NULL), ops);
}

Test(device, cuda_that_is_not_there_is_an_error_that_says_so)
{
	struct r3ring_error err = {0};

	if (device_cuda_ops.probe(NULL) == 0)
		cr_skip_test("a GPU is here");
	cr_assert_null(device_find("cuda", &err));
	cr_assert_eq(err.code, -ENODEV);
	cr_assert_not_null(strstr(err.text, "device \"cuda\": "), "%s", err.text);
	cr_assert_null(device_for_buffer(R3RING_BUFFER_CUDA_IPC, NULL));
	cr_assert_null(device_for_buffer(R3RING_BUFFER_CUDA_VMM, NULL));
}

Test(device, a_buffer_of_an_unknown_kind_is_refused)
{
	struct r3ring_error err = {0};

	cr_assert_null(device_for_buffer((enum r3ring_buffer_kind)77, &err));
	cr_assert_eq(err.code, -ENODEV);
	cr_assert_not_null(strstr(err.text, "77"));
}

Test(device, an_unknown_name_is_an_error_that_names_it)
{
	struct r3ring_error err = {0};

	cr_assert_null(device_find("vulkan", &err));
	cr_assert_eq(err.code, -EINVAL);
	cr_assert_not_null(strstr(err.text, "vulkan"));
}

/* ---- buffer ----------------------------------------------------------- */

Test(device, the_buffer_can_neither_shrink_nor_grow)
{
	struct device *device = device_open();
	struct device_buffer buffer = buffer_alloc(device, 100000);

	cr_assert_eq(buffer.bytes, 100000);
	cr_assert_lt(ftruncate(buffer.fd, 4096), 0);
	cr_assert_lt(ftruncate(buffer.fd, 1 << 20), 0);
	cr_assert_lt(fcntl(buffer.fd, F_ADD_SEALS, F_SEAL_WRITE), 0);
	ops->buffer_free(device, &buffer);
	ops->close(device);
}

Test(device, failure_01_a_buffer_that_cannot_be_had_is_an_error_that_names_its_size)
{
	struct device *device = device_open();
	struct device_buffer buffer = {.bytes = 12345};
	struct r3ring_error err = {0};

	cr_assert_eq(ops->buffer_alloc(device, R3RING_BUFFER_HOST, 1ull << 62, &buffer, &err),
		     -ENOSPC);
	cr_assert_not_null(strstr(err.text, "4611686018427387904"));
	cr_assert_eq(buffer.bytes, 12345);
	cr_assert_not_null(strstr(err.text, "available"));
	cr_assert_eq(ops->buffer_alloc(device, R3RING_BUFFER_HOST, 0, &buffer, &err), -ENOMEM);
	ops->close(device);
}

Test(device, an_imported_buffer_shows_what_its_producer_writes)
{
	struct device *device = device_open();
	struct device_buffer buffer = buffer_alloc(device, 70000), imported;
	struct r3ring_hello_producer_message hello = {.buffer_kind = R3RING_BUFFER_HOST,
						      .buffer_bytes = 70000};
	uint8_t out[16];

	cr_assert_eq(ops->buffer_import(device, &hello, dup(buffer.fd), &imported, NULL), 0);
	memcpy(buffer.base + 69984, "0123456789abcdef", 16);
	cr_assert_eq(ops->copy(device, out, imported.base + 69984, 16), 0);
	cr_assert_eq(ops->copies_done(device), 1);
	cr_assert_eq(memcmp(out, "0123456789abcdef", 16), 0);
	ops->buffer_unimport(device, &imported);
	ops->buffer_free(device, &buffer);
	ops->close(device);
}

/* Imports and expects the refusal; the descriptor stays the caller's. */
static void expect_refused(int fd, uint64_t bytes, const char *why)
{
	struct device *device = device_open();
	struct r3ring_hello_producer_message hello = {.buffer_kind = R3RING_BUFFER_HOST,
						      .buffer_bytes = bytes};
	struct device_buffer buffer = {.bytes = 12345};
	struct r3ring_error err = {0};

	cr_assert_eq(ops->buffer_import(device, &hello, fd, &buffer, &err), -EBADMSG);
	cr_assert_not_null(strstr(err.text, why), "message is: %s", err.text);
	cr_assert_eq(buffer.bytes, 12345);
	if (fd >= 0)
		cr_assert_eq(close(fd), 0);
	ops->close(device);
}

static int memory_file(off_t bytes, int seals, unsigned int flags)
{
	int fd = memfd_create("r3ring-test", MFD_CLOEXEC | MFD_ALLOW_SEALING | flags);

	if (fd >= 0) {
		cr_assert_eq(ftruncate(fd, bytes), 0);
		cr_assert_eq(fcntl(fd, F_ADD_SEALS, seals), 0);
	}
	return fd;
}

Test(device, failure_38_a_buffer_that_could_shrink_is_refused)
{
	expect_refused(memory_file(65536, F_SEAL_GROW, 0), 65536, "sealed");
	expect_refused(memory_file(65536, F_SEAL_SHRINK, 0), 65536, "sealed");
	expect_refused(memory_file(65536, 0, 0), 65536, "sealed");
}

Test(device, a_buffer_that_is_no_shared_memory_is_refused)
{
	int ends[2];

	cr_assert_eq(pipe(ends), 0);
	expect_refused(ends[0], 65536, "sealed");
	expect_refused(open("/proc/self/exe", O_RDONLY), 65536, "sealed");
	expect_refused(-1, 65536, "no descriptor");
}

Test(device, a_buffer_of_another_size_than_announced_is_refused)
{
	expect_refused(memory_file(65536, F_SEAL_GROW | F_SEAL_SHRINK, 0), 65537, "65536 bytes");
	expect_refused(memory_file(65536, F_SEAL_GROW | F_SEAL_SHRINK, 0), 65535, "65536 bytes");
	expect_refused(memory_file(0, F_SEAL_GROW | F_SEAL_SHRINK, 0), 0, "0 bytes");
}

Test(device, a_buffer_of_huge_pages_that_may_not_be_there_is_refused)
{
	int fd = memory_file(2 << 20, F_SEAL_GROW | F_SEAL_SHRINK, MFD_HUGETLB);

	if (fd < 0)
		cr_skip_test("this kernel has no huge pages in memory files");
	expect_refused(fd, 2 << 20, "ordinary");
}

Test(device, a_buffer_of_another_device_is_refused)
{
	struct device *device = device_open();
	struct r3ring_hello_producer_message hello = {.buffer_kind = R3RING_BUFFER_CUDA_IPC,
						      .buffer_bytes = 65536};
	struct device_buffer buffer;

	cr_assert_eq(ops->buffer_import(device, &hello, -1, &buffer, NULL), -ENODEV);
	ops->close(device);
}

/* ---- launches --------------------------------------------------------- */

Test(device, a_control_block_begins_disarmed_and_outlives_the_device)
{
	struct device *device = device_open();
	struct extent_control *first, *second;

	cr_assert_eq(ops->control_alloc(device, &first, NULL), 0);
	cr_assert_eq(ops->control_alloc(device, &second, NULL), 0);
	cr_assert_neq(first, second);
	ops->close(device);
	cr_assert_eq(first->offset, EXTENT_NONE);
	cr_assert_eq(second->offset, EXTENT_NONE);
}

static void run_step(struct device *device, struct r3ring_host_stream *stream)
{
	const struct extent_geometry geometry = {
		.layers = 1, .top_k = 2, .experts = 8, .rows_per_record = 16};
	const struct extent_control next = {
		.step = 5, .offset = 64, .slot = 1, .row_end = 2, .valid_end = 2};
	struct device_buffer buffer = buffer_alloc(device, 4096);
	const int32_t ids[4] = {7, 0, 3, 8};
	uint64_t pages[64] = {0};
	const struct extent_slot *slot = (const void *)((uint8_t *)pages + extent_slot_bytes(1));
	struct extent_control *control;
	uint8_t *bells;

	cr_assert_eq(ops->pages_map(device, pages, sizeof(pages), &bells, NULL), 0);
	cr_assert_eq(ops->control_alloc(device, &control, NULL), 0);
	cr_assert_not(ops->stream_capturing(device, stream));
	cr_assert_eq(ops->launch_begin(device, stream,
				       &(struct kernel_begin_args){control, buffer.base, bells,
								   geometry, next}),
		     0);
	cr_assert_eq(ops->launch_capture(device, stream,
					 &(struct kernel_capture_args){.control = control,
								       .buffer = buffer.base,
								       .bells = bells,
								       .geometry = geometry,
								       .ids = ids,
								       .row_stride = 2,
								       .type = R3RING_INT32,
								       .rows = 2}),
		     0);
	cr_assert_eq(
		ops->launch_end(device, stream,
				&(struct kernel_end_args){control, buffer.base, bells, geometry}),
		0);
	ops->stream_synchronize(device, stream);
	cr_assert_eq(slot->end_step, 5);
	cr_assert_eq(memcmp(buffer.base + 64 + 64 + 64, (uint16_t[]){7, 0, 3, 0xFFFF}, 8), 0);
	ops->pages_unmap(device, pages);
	ops->buffer_free(device, &buffer);
}

Test(device, a_step_runs_on_the_inline_stream_and_on_a_threads)
{
	struct device *device = device_open();
	struct r3ring_host_stream *stream;

	run_step(device, NULL);
	cr_assert_eq(r3ring_host_stream_create(&stream), 0);
	run_step(device, stream);
	r3ring_host_stream_destroy(stream);
	ops->close(device);
}
