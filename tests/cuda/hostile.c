/* SPDX-License-Identifier: Apache-2.0 */
/* A hello about a buffer on a GPU that is not as it says: the daemon's device refuses it. */
#include <criterion/criterion.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <r3ring/atomic.h>

#include "device/device.h"
#include "tests/cuda/fixture.h"
#include "tests/support/fakecuda/fakecuda.h"
#include "tests/support/worker.h"

#define BYTES (3u << 20) /* the allocation has a whole number of blocks of 2 MiB: 4 MiB */

static const struct device_ops *const ops = &device_cuda_ops;
static struct r3ring_hello_producer_message *hello; /* shared with the importer */
static struct worker importer;
static struct device *device;
static struct device_buffer buffer;

static void finish(void)
{
	if (importer.pid)
		worker_kill(&importer);
	machine_check();
}

TestSuite(cuda_hostile, .fini = finish, .timeout = 60);

/* The daemon's part, in a process of its own. `pid` and `reserved` say where a descriptor is. */
static int import_when_told(struct worker_page *page, const void *unused)
{
	const struct device_options options = {.imports = true};
	struct device_buffer imported;
	char path[64];
	int fd = -1;

	(void)unused;
	while (!r3ring_load_acquire_u64(&page->stop))
		worker_compute();
	if (hello->buffer_kind == R3RING_BUFFER_CUDA_VMM) {
		snprintf(path, sizeof(path), "/proc/%u/fd/%u", hello->pid, hello->reserved);
		fd = open(path, O_RDWR | O_CLOEXEC);
	}
	page->err.code = ops->open(&device, &options, &page->err);
	if (!page->err.code)
		page->err.code = ops->buffer_import(device, hello, fd, &imported, &page->err);
	if (!page->err.code)
		ops->buffer_unimport(device, &imported);
	ops->close(device);
	return 0;
}

/* A buffer of that kind, and a hello that tells the truth about it. */
static void start(enum r3ring_buffer_kind kind)
{
	const struct device_options options = {.order = R3RING_ORDER_EVENT};
	struct r3ring_error err = {0};

	machine_make();
	hello = mmap(NULL, sizeof(*hello), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	cr_assert_neq(hello, MAP_FAILED);
	worker_start(&importer, import_when_told, NULL);
	cr_assert_eq(ops->open(&device, &options, &err), 0, "%s", err.text);
	cr_assert_eq(ops->buffer_alloc(device, kind, BYTES, &buffer, &err), 0, "%s", err.text);
	*hello = (struct r3ring_hello_producer_message){
		.buffer_kind = kind,
		.buffer_bytes = buffer.bytes,
		.pid = (uint32_t)getpid(),
		.reserved = (uint32_t)buffer.fd,
	};
	memcpy(hello->handle, buffer.handle, sizeof(hello->handle));
	memcpy(hello->event, buffer.event, sizeof(hello->event));
	memcpy(hello->gpu_uuid, buffer.gpu_uuid, sizeof(hello->gpu_uuid));
}

static int import(void)
{
	/* Pairs with the acquire of `stop` in the importer. */
	r3ring_store_release_u64(&importer.page->stop, 1);
	cr_assert_eq(worker_wait(&importer), 0);
	ops->buffer_free(device, &buffer);
	ops->close(device);
	return importer.page->err.code;
}

static void expect_text(const char *part)
{
	cr_expect(strstr(importer.page->err.text, part), "%s", importer.page->err.text);
}

MACHINE_TEST(cuda_hostile, a_true_hello_of_a_handle_is_taken)
{
	start(R3RING_BUFFER_CUDA_IPC);
	hello->order = R3RING_ORDER_EVENT;
	cr_expect_eq(import(), 0, "%s", importer.page->err.text);
}

MACHINE_TEST(cuda_hostile, a_true_hello_of_a_descriptor_is_taken)
{
	start(R3RING_BUFFER_CUDA_VMM);
	cr_expect_eq(import(), 0, "%s", importer.page->err.text);
}

MACHINE_TEST(cuda_hostile, a_buffer_that_is_smaller_than_its_hello_says_is_refused)
{
	start(R3RING_BUFFER_CUDA_IPC);
	hello->buffer_bytes = (4u << 20) + 1;
	cr_expect_eq(import(), -EBADMSG);
	expect_text("4194305 bytes, the allocation has 4194304");
}

MACHINE_TEST(cuda_hostile, a_descriptor_of_less_memory_than_its_hello_says_is_refused)
{
	start(R3RING_BUFFER_CUDA_VMM);
	hello->buffer_bytes = 6u << 20;
	cr_expect_lt(import(), 0);
	expect_text("cuMemMap");
}

MACHINE_TEST(cuda_hostile, a_descriptor_of_something_else_is_refused)
{
	start(R3RING_BUFFER_CUDA_VMM);
	hello->reserved = (uint32_t)memfd_create("no-gpu", MFD_CLOEXEC);
	cr_expect_lt(import(), 0);
	expect_text("cuMemImportFromShareableHandle");
	close((int)hello->reserved);
}

MACHINE_TEST(cuda_hostile, a_handle_that_is_none_is_refused)
{
	start(R3RING_BUFFER_CUDA_IPC);
	memset(hello->handle, 0xA5, sizeof(hello->handle));
	cr_expect_eq(import(), -ENOTSUP);
	expect_text("cudaIpcOpenMemHandle");
}

MACHINE_TEST(cuda_hostile, an_event_that_is_none_is_refused)
{
	start(R3RING_BUFFER_CUDA_IPC);
	hello->order = R3RING_ORDER_EVENT;
	memset(hello->event, 0xA5, sizeof(hello->event));
	cr_expect_lt(import(), 0);
	expect_text("cudaIpcOpenEventHandle");
}

MACHINE_TEST(cuda_hostile, a_gpu_that_is_not_there_is_named)
{
	start(R3RING_BUFFER_CUDA_IPC);
	memset(hello->gpu_uuid, 0xA5, sizeof(hello->gpu_uuid));
	cr_expect_eq(import(), -ENODEV);
	expect_text("GPU-a5a5a5a5-a5a5-a5a5");
}
