/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The CUDA device's inside, shared by device/cuda*.c.
 *
 * Two kinds of process open it. A producer runs in the engine's process, with the
 * GPU that is current when it opens; the daemon imports buffers, on whichever GPU
 * they are, and calls nothing but copies. Neither changes the current GPU of a
 * thread for longer than a call.
 *
 * Source: CUDA Runtime API and CUDA Driver API reference manuals, 13.0; CUDA C++
 * Programming Guide, "Interprocess Communication", "Virtual Memory Management",
 * "CUDA Graphs".
 */
#ifndef DEVICE_CUDA_H
#define DEVICE_CUDA_H

#include <cuda.h>
#include <cuda_runtime_api.h>

#include "device/device.h"

#define CUDA_UUID_BYTES 16
#define CUDA_UUID_TEXT 37
#define CUDA_GPU_NONE (-1)

/* Copies go here first where the arena cannot be registered. */
struct cuda_bounce {
	uint8_t *base; /* pinned; NULL: the arena is registered */
	uint8_t *arena;
	size_t used;
	struct cuda_bounced {
		uint8_t *to;
		size_t bytes;
	} * parts; /* [CUDA_BOUNCE_PARTS], one behind another from base on */
	uint32_t count;
};

#define CUDA_BOUNCE_BYTES (4u << 20)
#define CUDA_BOUNCE_PARTS 256u

struct device {
	struct device_options options;
	int gpu;   /* ordinal in this process, or CUDA_GPU_NONE */
	bool lost; /* the context is spoiled: no call of this process works any more */
	char fault[R3RING_ERROR_TEXT];

	/* producer */
	cudaStream_t side;          /* for the first launches, and captures on the side */
	cudaEvent_t forked, joined; /* between the caller's stream and ours */
	cudaEvent_t ordered;        /* recorded before each end, opened by the daemon */
	bool side_used;             /* since it was joined */

	/* daemon */
	cudaStream_t copies;
	cudaEvent_t before; /* the producer's `ordered`; NULL: bells alone give the order */
	bool copy_failed;   /* one of those enqueued since the stream was last idle */
	struct cuda_bounce bounce;
};

/* ---- cuda_gpu.c: what is there ------------------------------------------ */

/* Functions of the driver, found by name, so that libcuda is not linked. */
struct cuda_driver {
	CUresult (*device_get)(CUdevice *device, int ordinal);
	CUresult (*device_get_uuid)(CUuuid *uuid, CUdevice device);
	CUresult (*mem_get_allocation_granularity)(size_t *granularity,
						   const CUmemAllocationProp *prop,
						   CUmemAllocationGranularity_flags option);
	CUresult (*mem_create)(CUmemGenericAllocationHandle *handle, size_t size,
			       const CUmemAllocationProp *prop, unsigned long long flags);
	CUresult (*mem_address_reserve)(CUdeviceptr *ptr, size_t size, size_t alignment,
					CUdeviceptr addr, unsigned long long flags);
	CUresult (*mem_map)(CUdeviceptr ptr, size_t size, size_t offset,
			    CUmemGenericAllocationHandle handle, unsigned long long flags);
	CUresult (*mem_set_access)(CUdeviceptr ptr, size_t size, const CUmemAccessDesc *desc,
				   size_t count);
	CUresult (*mem_unmap)(CUdeviceptr ptr, size_t size);
	CUresult (*mem_address_free)(CUdeviceptr ptr, size_t size);
	CUresult (*mem_release)(CUmemGenericAllocationHandle handle);
	CUresult (*mem_export_to_shareable_handle)(void *shareable,
						   CUmemGenericAllocationHandle handle,
						   CUmemAllocationHandleType type,
						   unsigned long long flags);
	CUresult (*mem_import_from_shareable_handle)(CUmemGenericAllocationHandle *handle,
						     void *os_handle,
						     CUmemAllocationHandleType type);
	CUresult (*mem_get_address_range)(CUdeviceptr *base, size_t *size, CUdeviceptr ptr);
};

/* The driver's functions, NULL with a message (-ENODEV) where one is not there. */
const struct cuda_driver *cuda_driver(struct r3ring_error *err);

int cuda_probe(struct r3ring_error *err);

int cuda_gpu_uuid(int gpu, uint8_t uuid[CUDA_UUID_BYTES], struct r3ring_error *err);

/* The GPU of that UUID as this process numbers it. Returns 0 or -ENODEV. */
int cuda_gpu_find(const uint8_t uuid[CUDA_UUID_BYTES], int *gpu, struct r3ring_error *err);

const char *cuda_uuid_text(const uint8_t uuid[CUDA_UUID_BYTES], char text[CUDA_UUID_TEXT]);

/* Whether its memory goes to other processes by handle. True where it does not say. */
bool cuda_gpu_has_ipc(int gpu);

/* Whether contexts on the GPU share one server, and its faults. */
bool cuda_gpu_under_mps(int gpu);

/* cuda_current.c: makes the GPU current for this thread; gives the one before, for cuda_gpu_leave(). */
cudaError_t cuda_gpu_enter(int gpu, int *before);
void cuda_gpu_leave(int gpu, int before);

/* ---- cuda_error.c ------------------------------------------------------- */

/*
 * Says that @call failed with @code, by name, and what to do (@remedy; NULL: what
 * the code calls for), and clears it: the engine must not find our error when it
 * asks for its own. Returns -ENOMEM, -ENODEV or -EIO.
 */
int cuda_failed(struct r3ring_error *err, cudaError_t code, const char *call, const char *remedy);

/* The same of a driver call; codes have the same numbers. */
int cuda_driver_failed(struct r3ring_error *err, CUresult code, const char *call,
		       const char *remedy);

/* The same of a launch or copy, kept for device_ops.fault. Returns -EIO. */
int cuda_work_failed(struct device *device, cudaError_t code, const char *call);

/* For what is given back: a failure is only worth a line in the log. */
void cuda_check_release(const struct device *device, cudaError_t code, const char *call);

void cuda_log(const struct device *device, enum r3ring_log_level level, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* ---- the operations ----------------------------------------------------- */

/* cuda_buffer.c */
int cuda_buffer_alloc(struct device *device, enum r3ring_buffer_kind kind, uint64_t bytes,
		      struct device_buffer *buffer, struct r3ring_error *err);
void cuda_buffer_free(struct device *device, struct device_buffer *buffer);
void cuda_buffer_leave(struct device *device, struct device_buffer *buffer);
int cuda_buffer_import(struct device *device, const struct r3ring_hello_producer_message *hello,
		       int fd, struct device_buffer *buffer, struct r3ring_error *err);
void cuda_buffer_unimport(struct device *device, struct device_buffer *buffer);

/* cuda_vmm.c: memory that is exported as a descriptor */
int cuda_vmm_alloc(struct device *device, struct device_buffer *buffer, struct r3ring_error *err);
int cuda_vmm_import(struct device *device, int fd, struct device_buffer *buffer,
		    struct r3ring_error *err);
void cuda_vmm_free(struct device *device, struct device_buffer *buffer);

/* cuda_context.c: what the daemon holds of a GPU */
int cuda_context_take(struct device *device, const uint8_t uuid[CUDA_UUID_BYTES],
		      struct r3ring_error *err);
void cuda_context_put(struct device *device);

/* cuda_copy.c */
int cuda_arena_register(struct device *device, void *arena, size_t bytes, struct r3ring_error *err);
void cuda_arena_unregister(struct device *device, void *arena);
int cuda_copy(struct device *device, void *to, const uint8_t *from, size_t bytes);
int cuda_copies_done(struct device *device);
void cuda_give_up(struct device *device);

/* After @error of another call: -ENOTRECOVERABLE where the context is spoiled. */
int cuda_context_check(struct device *device, int error);

/* cuda_launch.c: all that is called between a producer's open and its close */
bool cuda_stream_capturing(struct device *device, void *stream);
int cuda_launch_begin(struct device *device, void *stream, const struct kernel_begin_args *args);
int cuda_launch_capture(struct device *device, void *stream,
			const struct kernel_capture_args *args);
int cuda_launch_rows(struct device *device, void *stream, const struct kernel_rows_args *args);
int cuda_launch_end(struct device *device, void *stream, const struct kernel_end_args *args);

#endif
