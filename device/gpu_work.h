/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For a model that computes on the CPU but whose ids a GPU is to capture: its work
 * runs as host functions on a stream of the GPU, in order with the kernels, and the
 * ids lie in host memory that the GPU reads.
 */
#ifndef DEVICE_GPU_WORK_H
#define DEVICE_GPU_WORK_H

#include <stddef.h>

#include <r3ring/error.h>
#include <r3ring/host_stream.h>
#include <r3ring/producer.h>

struct gpu_work_ops {
	/* A stream of the GPU that is current. Returns 0, or -ENODEV or -ENOMEM with
	 * what is missing; all else is there only where this said 0. */
	int (*stream_create)(r3ring_stream *stream, struct r3ring_error *err);
	/* Waits for what is on it. */
	void (*stream_destroy)(r3ring_stream stream);

	/* Runs fn(copy of args) when all that is on the stream before it is done.
	 * Returns 0, -ENOMEM or -EIO. */
	int (*enqueue)(r3ring_stream stream, r3ring_host_work_fn fn, const void *args, size_t size);

	/* Zeroed memory; NULL when there is none. */
	void *(*alloc)(size_t bytes);
	void (*free)(void *memory);
};

extern const struct gpu_work_ops gpu_work;

#endif
