/* SPDX-License-Identifier: Apache-2.0 */
/* Events: within the process a stamp, between processes two numbers of the machine's. */
#include <stdlib.h>

#include <r3ring/atomic.h>

#include "tests/support/fakecuda/runtime.h"

struct CUevent_st *events;

static struct CUevent_st *event_find(cudaEvent_t handle, const struct place *place)
{
	for (struct CUevent_st *event = events; event; event = event->next) {
		if (event != handle)
			continue;
		if (!event->gone)
			return event;
		findings_add(place, "the event was destroyed");
		return NULL;
	}
	findings_add(place, "%p is no event", (void *)handle);
	return NULL;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned int flags)
{
	struct call call;
	struct CUevent_st *made;

	if (!call_begin(&call, "cudaEventCreateWithFlags", CALL_ALLOCATES))
		return call_end(&call, cudaSuccess);
	if ((flags & cudaEventInterprocess) && !(flags & cudaEventDisableTiming))
		return call_end(&call, cudaErrorInvalidValue);
	made = calloc(1, sizeof(*made));
	if (!made)
		abort();
	made->flags = flags;
	if (flags & cudaEventInterprocess)
		made->slot = machine_event_take();
	made->next = events;
	events = made;
	*event = made;
	return call_end(&call, cudaSuccess);
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
	struct call call;
	cudaError_t error = cudaErrorInvalidResourceHandle;
	struct CUevent_st *found;

	if (call_begin(&call, "cudaEventDestroy", CALL_ALLOCATES)) {
		found = event_find(event, &call.place);
		if (found) {
			found->gone = true;
			error = cudaSuccess;
		}
	}
	return call_end(&call, error);
}

/* ---- recording ---------------------------------------------------------- */

static cudaError_t record_between_processes(struct CUevent_st *event, struct CUstream_st *stream,
					    const struct place *place)
{
	struct machine_event *shared = machine_event(event->slot);
	struct work *work = work_new(WORK_EVENT_RECORD, place);
	uint64_t number = r3ring_fetch_add_u64(&shared->recorded, 1) + 1;

	work->u.event = (struct event_work){event->slot, number};
	event->slot_recorded = number;
	return stream_enqueue(stream, work);
}

static cudaError_t record(struct CUevent_st *event, struct CUstream_st *stream,
			  const struct place *place)
{
	cudaError_t error = cudaSuccess;

	if (stream->recording) {
		if (event->slot)
			findings_add(place, "an interprocess event is recorded in a graph");
		return capture_record(stream, event);
	}
	event->recording = NULL;
	if (event->slot)
		error = record_between_processes(event, stream, place);
	stream_before(stream, &event->stamp);
	return error;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
	struct call call;
	cudaError_t error = cudaErrorInvalidResourceHandle;
	struct CUevent_st *found;
	struct CUstream_st *on;

	if (call_begin(&call, "cudaEventRecord", CALL_PLAIN)) {
		found = event_find(event, &call.place);
		on = stream_find(stream, &call.place);
		if (found && on)
			error = record(found, on, &call.place);
	}
	return call_end(&call, error);
}

/* ---- waiting ------------------------------------------------------------ */

static cudaError_t wait_between_processes(struct CUstream_st *stream,
					  const struct CUevent_st *event, const struct place *place)
{
	/* Pairs with the fetch-add of the process that records. */
	uint64_t number = r3ring_load_acquire_u64(&machine_event(event->slot)->recorded);
	struct work *work;

	if (!number)
		return cudaSuccess;
	machine_count_event(false);
	work = work_new(WORK_EVENT_WAIT, place);
	work->u.event = (struct event_work){event->slot, number};
	return stream_enqueue(stream, work);
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int flags)
{
	struct call call;
	cudaError_t error = cudaErrorInvalidResourceHandle;
	struct CUevent_st *found;
	struct CUstream_st *on;

	(void)flags;
	if (!call_begin(&call, "cudaStreamWaitEvent", CALL_PLAIN))
		return call_end(&call, error);
	found = event_find(event, &call.place);
	on = stream_find(stream, &call.place);
	if (found && on) {
		if (found->recording || on->recording) {
			error = capture_wait(on, found);
			if (error)
				findings_add(&call.place, "waits across the border of a capture");
		} else if (found->imported) {
			error = wait_between_processes(on, found, &call.place);
		} else {
			stream_after(on, &found->stamp);
			machine_count_stream_wait();
			error = cudaSuccess;
		}
	}
	return call_end(&call, error);
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
	struct call call;
	cudaError_t error = cudaErrorInvalidResourceHandle;
	struct CUevent_st *found;

	if (!call_begin(&call, "cudaEventQuery", CALL_NO_CAPTURE))
		return call_end(&call, error);
	found = event_find(event, &call.place);
	if (found && found->recording) {
		error = cudaErrorCapturedEvent;
	} else if (found && found->imported) {
		struct machine_event *shared = machine_event(found->slot);
		uint64_t recorded = r3ring_load_acquire_u64(&shared->recorded);

		/* Pairs with the release of the process that recorded it. */
		error = r3ring_load_acquire_u64(&shared->completed) >= recorded ? cudaSuccess
										: cudaErrorNotReady;
	} else if (found) {
		error = stamp_is_done(&found->stamp) ? cudaSuccess : cudaErrorNotReady;
		if (!error)
			stamp_join(&host_stamp, &found->stamp);
	}
	return call_end(&call, error);
}
