/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The host device: the buffer is a sealed memfd, a stream is an ordered queue
 * with a thread of its own (host_stream.c), kernels are their CPU twins.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <file_limit.h>
#include <r3ring/host_stream.h>

#include "device/device.h"
#include "device/host_memory.h"

#define BUFFER_SEALS (F_SEAL_SHRINK | F_SEAL_GROW)

struct device {
	const char *name;
};

static struct device the_host = {"host"};

static int host_probe(struct r3ring_error *err)
{
	(void)err;
	return 0;
}

static int host_open(struct device **device, const struct device_options *options,
		     struct r3ring_error *err)
{
	(void)options;
	(void)err;
	*device = &the_host;
	return 0;
}

static void host_close(struct device *device)
{
	(void)device;
}

static const char *host_fault(const struct device *device)
{
	(void)device;
	return "";
}

/* ---- the producer's buffer -------------------------------------------- */

/* All pages now, so that a machine without memory says so here and not by a
 * signal in the middle of a step. */
static int memory_reserve(int fd, uint64_t bytes)
{
	int rc;

	if (ftruncate(fd, (off_t)bytes) < 0)
		return -errno;
	do {
		rc = fallocate(fd, 0, 0, (off_t)bytes);
	} while (rc < 0 && errno == EINTR);
	if (rc < 0)
		return -errno;
	if (fcntl(fd, F_ADD_SEALS, BUFFER_SEALS | F_SEAL_SEAL) < 0)
		return -errno;
	return 0;
}

/* Asked first: taking more than there is gets processes killed, not refused. */
static int memory_check(uint64_t bytes, struct r3ring_error *err)
{
	uint64_t available = host_memory_available();

	if (bytes == 0 || bytes > INT64_MAX)
		return r3ring_error_set(err, -ENOMEM,
					"capture buffer of %llu bytes: not a possible size",
					(unsigned long long)bytes);
	if (!file_limit_allows(bytes))
		return r3ring_error_set(err, -EFBIG,
					"capture buffer of %llu bytes: " FILE_LIMIT_REMEDY,
					(unsigned long long)bytes);
	if (bytes > available)
		return r3ring_error_set(
			err, -ENOSPC,
			"capture buffer of %llu bytes: only %llu bytes of memory are "
			"available; set a smaller buffer or free memory",
			(unsigned long long)bytes, (unsigned long long)available);
	return 0;
}

static int host_buffer_alloc(struct device *device, enum r3ring_buffer_kind kind, uint64_t bytes,
			     struct device_buffer *buffer, struct r3ring_error *err)
{
	struct device_buffer made = {.bytes = bytes, .kind = kind};
	void *base;
	int rc;

	(void)device;
	rc = memory_check(bytes, err);
	if (rc)
		return rc;
	made.fd = memfd_create("r3ring-buffer", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (made.fd < 0) {
		rc = -errno;
		goto fail;
	}
	rc = memory_reserve(made.fd, bytes);
	if (rc)
		goto fail_fd;
	base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, made.fd, 0);
	if (base == MAP_FAILED) {
		rc = -errno;
		goto fail_fd;
	}
	made.base = base;
	*buffer = made;
	return 0;

fail_fd:
	close(made.fd);
fail:
	return r3ring_error_set(err, rc == -ENOSPC ? -ENOSPC : -ENOMEM,
				"capture buffer of %llu bytes of shared memory: %s; set a "
				"smaller buffer or free memory",
				(unsigned long long)bytes, strerror(-rc));
}

static void buffer_release(struct device_buffer *buffer)
{
	if (!buffer->base)
		return;
	munmap(buffer->base, buffer->bytes);
	close(buffer->fd);
	memset(buffer, 0, sizeof(*buffer));
	buffer->fd = -1;
}

static void host_buffer_free(struct device *device, struct device_buffer *buffer)
{
	(void)device;
	buffer_release(buffer);
}

/* ---- control blocks --------------------------------------------------- */

struct control_block {
	struct extent_control control;
	struct control_block *next;
	uint8_t pad[EXTENT_ALIGN - sizeof(struct control_block *)];
};

/* Every control block ever made: none is freed or used again, for a graph that
 * was recorded with one may be replayed at any time. */
static struct control_block *all_blocks;
static pthread_mutex_t all_blocks_lock = PTHREAD_MUTEX_INITIALIZER;

static int host_control_alloc(struct device *device, struct extent_control **control,
			      struct r3ring_error *err)
{
	struct control_block *block = aligned_alloc(EXTENT_ALIGN, sizeof(*block));

	(void)device;
	if (!block)
		return r3ring_error_set(err, -ENOMEM, "control block: out of memory");
	memset(block, 0, sizeof(*block));
	block->control.offset = EXTENT_NONE;
	pthread_mutex_lock(&all_blocks_lock);
	block->next = all_blocks;
	all_blocks = block;
	pthread_mutex_unlock(&all_blocks_lock);
	*control = &block->control;
	return 0;
}

static int host_pages_map(struct device *device, void *host, size_t bytes, uint8_t **mapped,
			  struct r3ring_error *err)
{
	(void)device;
	(void)bytes;
	(void)err;
	*mapped = host;
	return 0;
}

static void host_pages_unmap(struct device *device, void *host)
{
	(void)device;
	(void)host;
}

/* ---- launches --------------------------------------------------------- */

#define HOST_LAUNCH(kernel)                                                                        \
	static void kernel##_work(void *args)                                                      \
	{                                                                                          \
		kernel_##kernel##_host(args);                                                      \
	}                                                                                          \
	static int host_launch_##kernel(struct device *device, void *stream,                       \
					const struct kernel_##kernel##_args *args)                 \
	{                                                                                          \
		(void)device;                                                                      \
		return r3ring_host_stream_enqueue(stream, kernel##_work, args, sizeof(*args));     \
	}                                                                                          \
	R3RING_STATIC_ASSERT(sizeof(struct kernel_##kernel##_args) <= R3RING_HOST_WORK_ARGS_MAX,   \
			     "a launch's arguments fit a stream's entry");

HOST_LAUNCH(begin)
HOST_LAUNCH(capture)
HOST_LAUNCH(rows)
HOST_LAUNCH(end)

static bool host_stream_capturing(struct device *device, void *stream)
{
	(void)device;
	(void)stream;
	return false;
}

static void host_stream_synchronize(struct device *device, void *stream)
{
	(void)device;
	r3ring_host_stream_synchronize(stream);
}

/* ---- the daemon's side ------------------------------------------------ */

/*
 * The descriptor is another process's. Only sealed shared memory cannot fault
 * under a reader; a memfd of huge pages has seals too, but may lack the pages.
 */
static int buffer_check(int fd, uint64_t bytes, struct r3ring_error *err)
{
	struct statfs fs;
	struct stat st;
	int seals;

	if (fd < 0)
		return r3ring_error_set(err, -EBADMSG,
					"capture buffer: no descriptor came with the hello");
	seals = fcntl(fd, F_GET_SEALS);
	if (seals < 0 || (seals & BUFFER_SEALS) != BUFFER_SEALS)
		return r3ring_error_set(err, -EBADMSG,
					"capture buffer: descriptor is not a memfd sealed against "
					"shrinking and growing");
	if (fstat(fd, &st) < 0 || fstatfs(fd, &fs) < 0)
		return r3ring_error_set(err, -errno, "capture buffer: cannot stat it: %s",
					strerror(errno));
	if (fs.f_type != TMPFS_MAGIC)
		return r3ring_error_set(err, -EBADMSG,
					"capture buffer: not in ordinary shared memory");
	if (bytes == 0 || st.st_size < 0 || (uint64_t)st.st_size != bytes)
		return r3ring_error_set(err, -EBADMSG,
					"capture buffer: descriptor has %lld bytes, the hello says "
					"%llu",
					(long long)st.st_size, (unsigned long long)bytes);
	return 0;
}

static int host_buffer_import(struct device *device,
			      const struct r3ring_hello_producer_message *hello, int fd,
			      struct device_buffer *buffer, struct r3ring_error *err)
{
	struct device_buffer made = {
		.bytes = hello->buffer_bytes,
		.kind = R3RING_BUFFER_HOST,
		.fd = fd,
	};
	void *base;
	int rc;

	(void)device;
	if (hello->buffer_kind != R3RING_BUFFER_HOST)
		return r3ring_error_set(err, -ENODEV,
					"capture buffer: the host device cannot import kind %u",
					hello->buffer_kind);
	rc = buffer_check(fd, made.bytes, err);
	if (rc)
		return rc;
	base = mmap(NULL, made.bytes, PROT_READ, MAP_SHARED, fd, 0);
	if (base == MAP_FAILED)
		return r3ring_error_set(err, -errno, "capture buffer of %llu bytes: mmap: %s",
					(unsigned long long)made.bytes, strerror(errno));
	made.base = base;
	*buffer = made;
	return 0;
}

static void host_buffer_unimport(struct device *device, struct device_buffer *buffer)
{
	(void)device;
	buffer_release(buffer);
}

static int host_arena_register(struct device *device, void *arena, size_t bytes,
			       struct r3ring_error *err)
{
	(void)device;
	(void)arena;
	(void)bytes;
	(void)err;
	return 0;
}

static void host_arena_unregister(struct device *device, void *arena)
{
	(void)device;
	(void)arena;
}

static int host_copy(struct device *device, void *to, const uint8_t *from, size_t bytes)
{
	(void)device;
	memcpy(to, from, bytes);
	return 0;
}

static int host_copies_done(struct device *device)
{
	(void)device;
	return 1;
}

static void host_give_up(struct device *device)
{
	(void)device;
}

const struct device_ops device_host_ops = {
	.name = "host",
	.probe = host_probe,
	.open = host_open,
	.close = host_close,
	.fault = host_fault,
	.buffer_alloc = host_buffer_alloc,
	.buffer_free = host_buffer_free,
	.buffer_leave = host_buffer_free, /* its pages live as long as anybody has them */
	.control_alloc = host_control_alloc,
	.pages_map = host_pages_map,
	.pages_unmap = host_pages_unmap,
	.stream_capturing = host_stream_capturing,
	.launch_begin = host_launch_begin,
	.launch_capture = host_launch_capture,
	.launch_rows = host_launch_rows,
	.launch_end = host_launch_end,
	.stream_synchronize = host_stream_synchronize,
	.buffer_import = host_buffer_import,
	.buffer_unimport = host_buffer_unimport,
	.arena_register = host_arena_register,
	.arena_unregister = host_arena_unregister,
	.copy = host_copy,
	.copies_done = host_copies_done,
	.give_up = host_give_up,
};
