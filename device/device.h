/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device operations: one table, two implementations (host, cuda), so that every
 * path above also runs without a GPU.
 *
 * A producer opens a device, allocates buffer and control block on it, and
 * launches the kernels. The daemon imports the buffer and copies from it.
 */
#ifndef DEVICE_DEVICE_H
#define DEVICE_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <r3ring/error.h>
#include <r3ring/proto.h>

#include "kernels/kernels.h"

struct device; /* an open device; implementation's own */

/* Who opens it, and how it is to be used. */
struct device_options {
	bool imports;            /* the daemon: copies from other processes' buffers */
	bool releases_gpu;       /* the daemon: keeps no context without a buffer */
	bool shares_faults;      /* the daemon: a GPU under MPS will do */
	enum r3ring_order order; /* the producer: what the daemon's copies wait for; */
	bool side_stream;        /* whether captures leave the caller's stream */
	r3ring_log_fn log;       /* NULL: silent; used while opening and closing only */
	void *log_ctx;
};

/* A capture buffer as its producer has it, and how another process gets it. */
struct device_buffer {
	uint8_t *base; /* device address */
	uint64_t bytes;
	enum r3ring_buffer_kind kind;
	int fd;             /* to be sent along, -1 when the kind has none */
	uint8_t handle[64]; /* cudaIpcMemHandle_t for its kind */
	uint8_t event[64];  /* cudaIpcEventHandle_t, where the order is by event */
	uint8_t gpu_uuid[16];
	uint64_t mapped;     /* bytes of the address range, where that is larger */
	uint64_t allocation; /* the implementation's own */
};

struct device_ops {
	const char *name;    /* "host", "cuda" */
	bool on_gpu;         /* its buffers are in a GPU's memory */
	int runtime_version; /* of the CUDA runtime that is linked; 0: none */

	/* Whether this machine has such a device: 0, or -ENODEV with what is missing
	 * and the remedy. All else is there only where this says 0. */
	int (*probe)(struct r3ring_error *err);

	/* Returns 0, -ENOMEM, or -ENODEV (the message says what is missing). */
	int (*open)(struct device **device, const struct device_options *options,
		    struct r3ring_error *err);
	void (*close)(struct device *device);

	/* Why the newest launch or copy failed, in words; "" when none has. */
	const char *(*fault)(const struct device *device);

	/* -- producer's side -- */

	/* @kind: one of the device's. Returns 0, -ENOMEM, -ENOSPC, -ENODEV, or -ENOTSUP:
	 * none of this kind here, one of another perhaps. */
	int (*buffer_alloc)(struct device *device, enum r3ring_buffer_kind kind, uint64_t bytes,
			    struct device_buffer *buffer, struct r3ring_error *err);
	void (*buffer_free)(struct device *device, struct device_buffer *buffer);

	/* Leaves the buffer to the end of the process: the daemon may still use it. */
	void (*buffer_leave)(struct device *device, struct device_buffer *buffer);

	/* The control block; disarmed, never freed: a recorded graph may read it
	 * at any time until the process ends. Has every kernel run once with it, so
	 * that none is loaded later, in the middle of a graph's recording. */
	int (*control_alloc)(struct device *device, struct extent_control **control,
			     struct r3ring_error *err);

	/* Makes host pages (the bells) visible to the device; gives the device's
	 * address of them. */
	int (*pages_map)(struct device *device, void *host, size_t bytes, uint8_t **mapped,
			 struct r3ring_error *err);
	void (*pages_unmap)(struct device *device, void *host);

	/* Whether the stream is being captured into a graph. */
	bool (*stream_capturing)(struct device *device, void *stream);

	/* Enqueue, never wait. Return 0 or -EIO. */
	int (*launch_begin)(struct device *device, void *stream,
			    const struct kernel_begin_args *args);
	int (*launch_capture)(struct device *device, void *stream,
			      const struct kernel_capture_args *args);
	int (*launch_rows)(struct device *device, void *stream,
			   const struct kernel_rows_args *args);
	int (*launch_end)(struct device *device, void *stream, const struct kernel_end_args *args);

	/* Waits for the work enqueued on the stream; only for close. */
	void (*stream_synchronize)(struct device *device, void *stream);

	/* -- daemon's side -- */

	/*
	 * Maps a buffer that another process made. @fd (or -1) is taken over on
	 * success. For HOST: seals and size are checked before mapping.
	 * Returns 0, -EBADMSG, -ENODEV, -ENOTSUP (one of this kind cannot be opened here,
	 * one of another perhaps), or an errno.
	 */
	int (*buffer_import)(struct device *device,
			     const struct r3ring_hello_producer_message *hello, int fd,
			     struct device_buffer *buffer, struct r3ring_error *err);
	void (*buffer_unimport)(struct device *device, struct device_buffer *buffer);

	/* Prepares the ring's arena as a target of copies. */
	int (*arena_register)(struct device *device, void *arena, size_t bytes,
			      struct r3ring_error *err);
	void (*arena_unregister)(struct device *device, void *arena);

	/* Enqueues one copy from the buffer into the arena, in order. Returns 0, -EIO,
	 * or -ENOTRECOVERABLE: nothing will work in this process any more. */
	int (*copy)(struct device *device, void *to, const uint8_t *from, size_t bytes);

	/* Whether all copies enqueued are done: 1, 0 (not yet), -EIO, -ENOTRECOVERABLE
	 * (what was enqueued may still be written). Never waits. */
	int (*copies_done)(struct device *device);

	/* No further call waits for what was enqueued; copies give -ENOTRECOVERABLE. */
	void (*give_up)(struct device *device);
};

extern const struct device_ops device_host_ops;
extern const struct device_ops device_cuda_ops;

/*
 * The operations for a name: "host", "cuda", or "auto" (cuda where there is a
 * usable GPU, else host). Returns NULL and fills @err (-EINVAL for an unknown
 * name, -ENODEV for cuda without one).
 */
const struct device_ops *device_find(const char *name, struct r3ring_error *err);

/* The operations that can import a buffer of this kind. Returns NULL and fills @err
 * (-ENODEV) when none can. */
const struct device_ops *device_for_buffer(enum r3ring_buffer_kind kind, struct r3ring_error *err);

#endif
