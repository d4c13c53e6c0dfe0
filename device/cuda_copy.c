/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon's copies: from the imported buffer into the ring's arena, which is
 * registered for that. Where it is refused, they go through a pinned buffer, and the
 * CPU copies them on when they are done.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "device/cuda.h"

#define BOUNCE_NAP_NS 5000

/* ---- the arena ---------------------------------------------------------- */

static int bounce_make(struct device *device, void *arena, struct r3ring_error *err)
{
	struct cuda_bounce *bounce = &device->bounce;
	void *base;
	cudaError_t code = cudaHostAlloc(&base, CUDA_BOUNCE_BYTES, cudaHostAllocDefault);

	if (code != cudaSuccess)
		return cuda_failed(err, code, "cudaHostAlloc of the bounce buffer",
				   "raise the limit on locked memory (ulimit -l, in containers "
				   "--ulimit memlock=-1)");
	bounce->parts = calloc(CUDA_BOUNCE_PARTS, sizeof(*bounce->parts));
	if (!bounce->parts) {
		cuda_check_release(device, cudaFreeHost(base), "cudaFreeHost");
		return r3ring_error_set(err, -ENOMEM, "bounce buffer: out of memory");
	}
	bounce->base = base;
	bounce->arena = arena;
	return 0;
}

int cuda_arena_register(struct device *device, void *arena, size_t bytes, struct r3ring_error *err)
{
	struct r3ring_error why = {0};
	cudaError_t code = cudaSetDevice(device->gpu);

	if (code != cudaSuccess)
		return cuda_failed(err, code, "cudaSetDevice", NULL);
	code = cudaHostRegister(arena, bytes, cudaHostRegisterDefault);
	if (code == cudaSuccess)
		return 0;
	cuda_failed(&why, code, "cudaHostRegister of the ring",
		    "raise the limit on locked memory (ulimit -l, in containers --ulimit "
		    "memlock=-1)");
	cuda_log(device, R3RING_LOG_WARN,
		 "copies take a detour through a pinned buffer of %u MiB: %.350s",
		 CUDA_BOUNCE_BYTES >> 20, why.text);
	return bounce_make(device, arena, err);
}

void cuda_arena_unregister(struct device *device, void *arena)
{
	struct cuda_bounce *bounce = &device->bounce;

	if (!device->lost)
		cuda_check_release(device, cudaSetDevice(device->gpu), "cudaSetDevice");
	if (!device->lost && bounce->base)
		cuda_check_release(device, cudaFreeHost(bounce->base), "cudaFreeHost");
	else if (!device->lost)
		cuda_check_release(device, cudaHostUnregister(arena), "cudaHostUnregister");
	free(bounce->parts);
	*bounce = (struct cuda_bounce){0};
}

/* ---- copying ------------------------------------------------------------ */

/* An error that other calls give as well has spoiled the context. */
int cuda_context_check(struct device *device, int error)
{
	cudaError_t code = device->copies ? cudaStreamQuery(device->copies) : cudaSuccess;

	if (code == cudaSuccess || code == cudaErrorNotReady)
		return error;
	cudaGetLastError();
	device->lost = true;
	return -ENOTRECOVERABLE;
}

void cuda_give_up(struct device *device)
{
	device->lost = true;
}

/* What was enqueued before it is still to be waited for. */
static int copy_failed(struct device *device, cudaError_t code, const char *call)
{
	cuda_work_failed(device, code, call);
	device->copy_failed = true;
	return cuda_context_check(device, -EIO);
}

static int enqueue(struct device *device, void *to, const uint8_t *from, size_t bytes)
{
	cudaError_t code = cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, device->copies);

	return code == cudaSuccess ? 0 : copy_failed(device, code, "cudaMemcpyAsync");
}

static void bounce_empty(struct cuda_bounce *bounce)
{
	const uint8_t *from = bounce->base;

	for (uint32_t i = 0; i < bounce->count; i++) {
		memcpy(bounce->parts[i].to, from, bounce->parts[i].bytes);
		from += bounce->parts[i].bytes;
	}
	bounce->count = 0;
	bounce->used = 0;
}

/* A full buffer holds four MiB, which are copied in a moment; the wait is for that. */
static int bounce_room(struct device *device)
{
	const struct timespec nap = {.tv_nsec = BOUNCE_NAP_NS};
	struct cuda_bounce *bounce = &device->bounce;
	int done;

	if (bounce->used < CUDA_BOUNCE_BYTES && bounce->count < CUDA_BOUNCE_PARTS)
		return 0;
	while ((done = cuda_copies_done(device)) == 0)
		clock_nanosleep(CLOCK_MONOTONIC, 0, &nap, NULL);
	return done < 0 ? done : 0;
}

static int bounce_copy(struct device *device, uint8_t *to, const uint8_t *from, size_t bytes)
{
	struct cuda_bounce *bounce = &device->bounce;

	while (bytes) {
		size_t most, now;
		int ret = bounce_room(device);

		if (ret)
			return ret;
		most = CUDA_BOUNCE_BYTES - bounce->used;
		now = bytes < most ? bytes : most;
		ret = enqueue(device, bounce->base + bounce->used, from, now);
		if (ret)
			return ret;
		bounce->parts[bounce->count++] = (struct cuda_bounced){to, now};
		bounce->used += now;
		to += now;
		from += now;
		bytes -= now;
	}
	return 0;
}

int cuda_copy(struct device *device, void *to, const uint8_t *from, size_t bytes)
{
	cudaError_t code;

	if (device->lost)
		return -ENOTRECOVERABLE;
	code = cudaSetDevice(device->gpu);
	if (code != cudaSuccess)
		return copy_failed(device, code, "cudaSetDevice");
	/* The newest record of the event is this step's, or a later one's. */
	if (device->before) {
		code = cudaStreamWaitEvent(device->copies, device->before, 0);
		if (code != cudaSuccess)
			return copy_failed(device, code, "cudaStreamWaitEvent");
	}
	if (device->bounce.base)
		return bounce_copy(device, to, from, bytes);
	return enqueue(device, to, from, bytes);
}

/* Says that one failed when all are over, and not before: the others still write. */
int cuda_copies_done(struct device *device)
{
	cudaError_t code;

	if (device->lost)
		return -ENOTRECOVERABLE;
	code = cudaStreamQuery(device->copies);
	if (code == cudaErrorNotReady)
		return 0;
	if (code != cudaSuccess)
		return copy_failed(device, code, "cudaStreamQuery") == -EIO ? 0 : -ENOTRECOVERABLE;
	bounce_empty(&device->bounce);
	if (!device->copy_failed)
		return 1;
	device->copy_failed = false;
	return -EIO;
}
