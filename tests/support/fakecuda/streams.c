/* SPDX-License-Identifier: Apache-2.0 */
/* Streams, and what is enqueued on them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/fakecuda/runtime.h"

struct CUstream_st *streams;
struct stamp host_stamp;

/* ---- streams ------------------------------------------------------------ */

static struct CUstream_st *stream_new(const struct place *place)
{
	struct CUstream_st *stream = calloc(1, sizeof(*stream));

	if (!stream)
		abort();
	stream->made = *place;
	stream->lane = lane_take();
	stream->device = device_current();
	stream->next = streams;
	streams = stream;
	return stream;
}

static struct CUstream_st *legacy_stream(int device)
{
	static const struct place place = {"the default stream", NULL, 0};
	struct CUstream_st *stream;

	for (stream = streams; stream; stream = stream->next) {
		if (stream->legacy && stream->device == device)
			return stream;
	}
	stream = stream_new(&place);
	stream->legacy = true;
	return stream;
}

struct CUstream_st *stream_find(cudaStream_t handle, const struct place *place)
{
	if (!handle || handle == cudaStreamLegacy)
		return legacy_stream(device_current());
	for (struct CUstream_st *stream = streams; stream; stream = stream->next) {
		if (stream != handle)
			continue;
		if (!stream->gone)
			return stream;
		findings_add(place, "the stream made at %s:%d was destroyed", stream->made.file,
			     stream->made.line);
		return NULL;
	}
	findings_add(place, "%p is no stream", (void *)handle);
	return NULL;
}

static cudaError_t stream_create(cudaStream_t *stream, unsigned int flags,
				 const struct place *place)
{
	struct CUstream_st *made;

	if (flags & ~(unsigned int)cudaStreamNonBlocking)
		return cudaErrorInvalidValue;
	made = stream_new(place);
	made->flags = flags;
	*stream = made;
	return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *pStream, unsigned int flags)
{
	struct call call;
	cudaError_t error = cudaSuccess;

	if (call_begin(&call, "cudaStreamCreateWithFlags", CALL_ALLOCATES))
		error = stream_create(pStream, flags, &call.place);
	return call_end(&call, error);
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *pStream, unsigned int flags, int priority)
{
	struct call call;
	cudaError_t error = cudaSuccess;

	(void)priority;
	if (call_begin(&call, "cudaStreamCreateWithPriority", CALL_ALLOCATES))
		error = stream_create(pStream, flags, &call.place);
	return call_end(&call, error);
}

/* What is enqueued is still done. */
cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
	struct call call;
	cudaError_t error = cudaErrorInvalidResourceHandle;
	struct CUstream_st *found;

	if (call_begin(&call, "cudaStreamDestroy", CALL_ALLOCATES)) {
		found = stream ? stream_find(stream, &call.place) : NULL;
		if (found) {
			found->gone = true;
			lanes[found->lane].taken = false;
			error = cudaSuccess;
		}
	}
	return call_end(&call, error);
}

cudaError_t cudaStreamQuery(cudaStream_t stream)
{
	struct call call;
	cudaError_t error = cudaErrorInvalidResourceHandle;
	struct CUstream_st *found;

	if (call_begin(&call, "cudaStreamQuery", CALL_NO_CAPTURE)) {
		found = stream_find(stream, &call.place);
		if (found && stamp_is_done(&found->stamp)) {
			stamp_join(&host_stamp, &found->stamp);
			error = cudaSuccess;
		} else if (found) {
			error = cudaErrorNotReady;
		}
	}
	return call_end(&call, error);
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
	struct call call;
	cudaError_t error = cudaErrorInvalidResourceHandle;
	struct CUstream_st *found;

	if (call_begin(&call, "cudaStreamSynchronize", CALL_WAITS | CALL_NO_CAPTURE)) {
		found = stream_find(stream, &call.place);
		if (found) {
			struct stamp until = found->stamp;

			error = stamp_wait(&until);
			stamp_join(&host_stamp, &until);
		}
	}
	return call_end(&call, error);
}

/* ---- enqueueing --------------------------------------------------------- */

static bool is_blocking(const struct CUstream_st *stream, int device)
{
	return !stream->gone && !stream->legacy && stream->device == device &&
	       !(stream->flags & cudaStreamNonBlocking);
}

void stream_before(const struct CUstream_st *stream, struct stamp *stamp)
{
	*stamp = stream->stamp;
	stamp_join(stamp, &host_stamp);
	if (is_blocking(stream, stream->device))
		stamp_join(stamp, &legacy_stream(stream->device)->stamp);
	for (const struct CUstream_st *other = streams; stream->legacy && other;
	     other = other->next) {
		if (is_blocking(other, stream->device))
			stamp_join(stamp, &other->stamp);
	}
}

void stream_after(struct CUstream_st *stream, const struct stamp *stamp)
{
	stamp_join(&stream->stamp, stamp);
}

/* The default stream would have to wait for what is only being recorded. */
static bool legacy_is_forbidden(const struct CUstream_st *stream)
{
	for (const struct CUstream_st *other = streams; stream->legacy && other;
	     other = other->next) {
		if (other->recording && is_blocking(other, stream->device))
			return true;
	}
	return false;
}

cudaError_t stream_enqueue(struct CUstream_st *stream, struct work *work)
{
	struct stamp stamp;

	work->device = device_gpu(stream->device);
	if (stream->recording)
		return capture_work(stream, work);
	if (legacy_is_forbidden(stream)) {
		findings_add(&work->place, "on the default stream while one that synchronises "
					   "with it is being captured");
		captures_invalidate();
		work_free(work);
		return cudaErrorStreamCaptureImplicit;
	}
	stream_before(stream, &stamp);
	lane_enqueue(stream->lane, work, &stamp);
	stamp.at[stream->lane] = work->number;
	stream->stamp = stamp;
	return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus *pCaptureStatus)
{
	struct call call;
	cudaError_t error = cudaErrorInvalidResourceHandle;
	struct CUstream_st *found;

	if (call_begin(&call, "cudaStreamIsCapturing", CALL_PLAIN)) {
		found = stream_find(stream, &call.place);
		if (found && legacy_is_forbidden(found)) {
			error = cudaErrorStreamCaptureImplicit;
		} else if (found) {
			*pCaptureStatus = found->recording ? cudaStreamCaptureStatusActive
							   : cudaStreamCaptureStatusNone;
			error = cudaSuccess;
		}
	}
	return call_end(&call, error);
}

/* ---- what is enqueued --------------------------------------------------- */

/* A host address, or one whose direction says that it is one. */
static bool is_host(const void *address, enum cudaMemcpyKind kind, bool target)
{
	if (kind == cudaMemcpyDefault)
		return !region_of_device(address) || region_of_host(address);
	return kind == cudaMemcpyHostToHost ||
	       (target ? kind == cudaMemcpyDeviceToHost : kind == cudaMemcpyHostToDevice);
}

static void check_host(const void *address, size_t bytes, const struct place *place)
{
	const struct region *region = region_of_host(address);

	if (!region || (const uint8_t *)address + bytes > region->memory + region->bytes)
		findings_add(place,
			     "host memory at %p is not registered, so this copy is "
			     "not asynchronous",
			     address);
}

static cudaError_t copy_enqueue(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
				cudaStream_t handle, const struct place *place)
{
	struct CUstream_st *stream = stream_find(handle, place);
	struct work *work;

	if (!stream)
		return cudaErrorInvalidResourceHandle;
	if (!to || !from)
		return cudaErrorInvalidValue;
	if (is_host(to, kind, true))
		check_host(to, bytes, place);
	if (is_host(from, kind, false))
		check_host(from, bytes, place);
	work = work_new(WORK_COPY, place);
	work->u.copy = (struct copy_work){.to = to, .from = from, .bytes = bytes};
	return stream_enqueue(stream, work);
}

cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t count, enum cudaMemcpyKind kind,
			    cudaStream_t stream)
{
	struct call call;
	cudaError_t error = cudaSuccess;

	if (call_begin(&call, "cudaMemcpyAsync", CALL_PLAIN) && count)
		error = copy_enqueue(dst, src, count, kind, stream, &call.place);
	return call_end(&call, error);
}

cudaError_t cudaMemcpy(void *dst, const void *src, size_t count, enum cudaMemcpyKind kind)
{
	struct call call;
	cudaError_t error = cudaSuccess;
	struct CUstream_st *stream;
	struct work *work;

	(void)kind;
	if (call_begin(&call, "cudaMemcpy", CALL_WAITS | CALL_NO_CAPTURE) && count) {
		stream = legacy_stream(device_current());
		work = work_new(WORK_COPY, &call.place);
		work->u.copy = (struct copy_work){.to = dst, .from = src, .bytes = count};
		error = stream_enqueue(stream, work);
		if (!error) {
			struct stamp until = stream->stamp;

			error = stamp_wait(&until);
			stamp_join(&host_stamp, &until);
		}
	}
	return call_end(&call, error);
}

static void check_may_launch(const struct place *place)
{
	const char *program = getenv("FAKECUDA_COPIES_ONLY");

	if (program && strcmp(program, program_invocation_short_name) == 0)
		findings_add(place, "a kernel is launched by %s, which may only copy", program);
}

static cudaError_t kernel_enqueue(const void *function, dim3 grid, dim3 block, void **args,
				  cudaStream_t handle, const struct place *place)
{
	struct CUstream_st *stream = stream_find(handle, place);
	struct work *work;

	if (!stream)
		return cudaErrorInvalidResourceHandle;
	if (!kernel_is_ours(function))
		return cudaErrorInvalidDeviceFunction;
	if (!grid.x || !grid.y || !grid.z || !block.x || !block.y || !block.z ||
	    block.x * block.y * block.z > 1024)
		return cudaErrorInvalidValue;
	check_may_launch(place);
	kernel_load(function, stream->recording != NULL, place);
	work = work_new(WORK_KERNEL, place);
	work->u.kernel = kernel_work_new(function, grid, block, args, place);
	return stream_enqueue(stream, work);
}

cudaError_t cudaLaunchKernel(const void *func, dim3 gridDim, dim3 blockDim, void **args,
			     size_t sharedMem, cudaStream_t stream)
{
	struct call call;
	cudaError_t error = cudaSuccess;

	(void)sharedMem;
	if (call_begin(&call, "cudaLaunchKernel", CALL_PLAIN))
		error = kernel_enqueue(func, gridDim, blockDim, args, stream, &call.place);
	return call_end(&call, error);
}

cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *attr, const void *func)
{
	struct call call;
	cudaError_t error = cudaSuccess;

	if (call_begin(&call, "cudaFuncGetAttributes", CALL_ALLOCATES)) {
		if (kernel_is_ours(func)) {
			kernel_load(func, capture_forbids(), &call.place);
			memset(attr, 0, sizeof(*attr));
			attr->maxThreadsPerBlock = 1024;
			attr->numRegs = 40;
			attr->ptxVersion = 80;
			attr->binaryVersion = 90;
		} else {
			error = cudaErrorInvalidDeviceFunction;
		}
	}
	return call_end(&call, error);
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t fn, void *userData)
{
	struct call call;
	cudaError_t error = cudaErrorInvalidResourceHandle;
	struct CUstream_st *found;

	if (call_begin(&call, "cudaLaunchHostFunc", CALL_PLAIN)) {
		found = stream_find(stream, &call.place);
		if (found) {
			struct work *work = work_new(WORK_HOST, &call.place);

			work->u.host = (struct host_work){fn, userData};
			error = stream_enqueue(found, work);
		}
	}
	return call_end(&call, error);
}
