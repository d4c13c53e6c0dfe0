/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams of the host device: ordered queues of work with a thread of their
 * own, so that a forward on the CPU is as asynchronous as one on a GPU.
 */
#ifndef R3RING_HOST_STREAM_H
#define R3RING_HOST_STREAM_H

#include <stddef.h>
#include <stdint.h>

#include <r3ring/error.h>

#ifdef __cplusplus
extern "C" {
#endif

struct r3ring_host_stream;
struct r3ring_host_event;

/* Work on a stream; @args is a private copy of what was enqueued. */
typedef void (*r3ring_host_work_fn)(void *args);

#define R3RING_HOST_WORK_ARGS_MAX 192

/*
 * Starts a stream with a worker thread. Pairs with r3ring_host_stream_destroy(),
 * which first runs what is enqueued. Returns 0, -ENOMEM or -EAGAIN (no thread).
 */
R3RING_API int r3ring_host_stream_create(struct r3ring_host_stream **stream);
R3RING_API void r3ring_host_stream_destroy(struct r3ring_host_stream *stream);

/*
 * Enqueues work behind all work already there. NULL is the inline stream: the
 * work runs at once, in the calling thread.
 *
 * @args, @size: copied; at most R3RING_HOST_WORK_ARGS_MAX bytes.
 *
 * Returns 0 or -EMSGSIZE. Waits while the stream's queue (1024 entries) is
 * full, as a GPU driver does. Any thread.
 */
R3RING_API int r3ring_host_stream_enqueue(struct r3ring_host_stream *stream,
					  r3ring_host_work_fn work, const void *args, size_t size);

/* Waits until all work enqueued before is done. Not from within work. */
R3RING_API void r3ring_host_stream_synchronize(struct r3ring_host_stream *stream);

/*
 * Events order work of different streams: work enqueued behind wait() runs
 * after the work enqueued before the newest record(). An event that was never
 * recorded is done. Pairs: create/destroy.
 */
R3RING_API int r3ring_host_event_create(struct r3ring_host_event **event);
R3RING_API void r3ring_host_event_destroy(struct r3ring_host_event *event);
R3RING_API int r3ring_host_event_record(struct r3ring_host_event *event,
					struct r3ring_host_stream *stream);
R3RING_API int r3ring_host_event_wait(struct r3ring_host_event *event,
				      struct r3ring_host_stream *stream);

#ifdef __cplusplus
}
#endif

#endif
