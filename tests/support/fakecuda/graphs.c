/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stream capture and graphs. What is enqueued on a stream that is being captured
 * becomes a node, after what the stream followed; other streams join by waiting for
 * an event, as branches. A launch puts copies of all nodes into lanes: those of the
 * first branch into the launching stream's, each other branch into one of its own.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/fakecuda/runtime.h"

#define BRANCHES_MAX 16u

/* Nodes in the order of their recording; `lane` is the branch, `after` by branch. */
struct CUgraph_st {
	struct work *head, *tail;
	unsigned int branches;
	unsigned int references;
};

struct graph_recording {
	struct CUgraph_st *graph;
	struct CUstream_st *origin;
	enum cudaStreamCaptureMode mode;
	pthread_t thread;
	uint64_t nodes[BRANCHES_MAX];
	bool invalid;
};

struct CUgraphExec_st {
	struct CUgraph_st *graph;
	unsigned int lane[BRANCHES_MAX]; /* of all but the first branch */
	struct stamp last;               /* its newest launch */
};

static unsigned int graph_count;

unsigned int graphs_count(void)
{
	return graph_count;
}

/* ---- captures ----------------------------------------------------------- */

bool capture_forbids(void)
{
	for (const struct CUstream_st *stream = streams; stream; stream = stream->next) {
		const struct graph_recording *recording = stream->recording;

		if (!recording || recording->mode == cudaStreamCaptureModeRelaxed)
			continue;
		if (recording->mode == cudaStreamCaptureModeGlobal ||
		    pthread_equal(recording->thread, pthread_self()))
			return true;
	}
	return false;
}

void captures_invalidate(void)
{
	for (const struct CUstream_st *stream = streams; stream; stream = stream->next) {
		if (stream->recording)
			stream->recording->invalid = true;
	}
}

static struct CUgraph_st *graph_new(void)
{
	struct CUgraph_st *graph = calloc(1, sizeof(*graph));

	if (!graph)
		abort();
	graph->branches = 1;
	graph->references = 1;
	graph_count++;
	return graph;
}

static void graph_put(struct CUgraph_st *graph)
{
	if (--graph->references)
		return;
	while (graph->head) {
		struct work *work = graph->head;

		graph->head = work->next;
		work_free(work);
	}
	free(graph);
	graph_count--;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode)
{
	struct graph_recording *recording;
	struct CUstream_st *origin;
	struct call call;

	if (!call_begin(&call, "cudaStreamBeginCapture", CALL_PLAIN))
		return call_end(&call, cudaSuccess);
	origin = stream_find(stream, &call.place);
	if (!origin || origin->legacy || origin->recording)
		return call_end(&call, cudaErrorStreamCaptureUnsupported);
	recording = calloc(1, sizeof(*recording));
	if (!recording)
		abort();
	*recording = (struct graph_recording){
		.graph = graph_new(), .origin = origin, .mode = mode, .thread = pthread_self()};
	origin->recording = recording;
	origin->branch = 0;
	memset(&origin->recorded_after, 0, sizeof(origin->recorded_after));
	return call_end(&call, cudaSuccess);
}

cudaError_t capture_work(struct CUstream_st *stream, struct work *work)
{
	struct graph_recording *recording = stream->recording;
	struct CUgraph_st *graph = recording->graph;

	if (recording->invalid) {
		work_free(work);
		return cudaErrorStreamCaptureInvalidated;
	}
	work->lane = stream->branch;
	work->number = ++recording->nodes[stream->branch];
	work->after = stream->recorded_after;
	stream->recorded_after.at[stream->branch] = work->number;
	if (graph->head)
		graph->tail->next = work;
	else
		graph->head = work;
	graph->tail = work;
	return cudaSuccess;
}

cudaError_t capture_record(struct CUstream_st *stream, struct CUevent_st *event)
{
	event->recording = stream->recording;
	event->recorded_after = stream->recorded_after;
	return cudaSuccess;
}

cudaError_t capture_wait(struct CUstream_st *stream, struct CUevent_st *event)
{
	if (!event->recording) {
		captures_invalidate();
		return cudaErrorStreamCaptureIsolation;
	}
	if (stream->recording && stream->recording != event->recording)
		return cudaErrorStreamCaptureMerge;
	if (!stream->recording) {
		if (event->recording->graph->branches == BRANCHES_MAX)
			abort();
		stream->recording = event->recording;
		stream->branch = event->recording->graph->branches++;
		memset(&stream->recorded_after, 0, sizeof(stream->recorded_after));
	}
	stamp_join(&stream->recorded_after, &event->recorded_after);
	return cudaSuccess;
}

/* All streams and events leave it; false when a branch was not joined again. */
static bool recording_end(struct graph_recording *recording)
{
	bool joined = true;

	for (unsigned int i = 0; i < recording->graph->branches; i++)
		joined = joined && recording->origin->recorded_after.at[i] >= recording->nodes[i];
	for (struct CUstream_st *stream = streams; stream; stream = stream->next) {
		if (stream->recording == recording)
			stream->recording = NULL;
	}
	for (struct CUevent_st *event = events; event; event = event->next) {
		if (event->recording == recording)
			event->recording = NULL;
	}
	return joined;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *pGraph)
{
	struct graph_recording *recording;
	struct CUstream_st *origin;
	struct call call;
	cudaError_t error = cudaSuccess;

	if (!call_begin(&call, "cudaStreamEndCapture", CALL_PLAIN))
		return call_end(&call, error);
	origin = stream_find(stream, &call.place);
	recording = origin ? origin->recording : NULL;
	if (!recording || recording->origin != origin)
		return call_end(&call, cudaErrorStreamCaptureUnmatched);
	if (!recording_end(recording))
		error = cudaErrorStreamCaptureUnjoined;
	if (recording->invalid)
		error = cudaErrorStreamCaptureInvalidated;
	*pGraph = NULL;
	if (error)
		graph_put(recording->graph);
	else
		*pGraph = recording->graph;
	free(recording);
	return call_end(&call, error);
}

/* ---- graphs ------------------------------------------------------------- */

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
	struct call call;

	if (call_begin(&call, "cudaGraphDestroy", CALL_PLAIN))
		graph_put(graph);
	return call_end(&call, cudaSuccess);
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *pGraphExec, cudaGraph_t graph,
				 unsigned long long flags)
{
	struct CUgraphExec_st *made;
	struct call call;

	(void)flags;
	if (!call_begin(&call, "cudaGraphInstantiate", CALL_ALLOCATES))
		return call_end(&call, cudaSuccess);
	made = calloc(1, sizeof(*made));
	if (!made)
		abort();
	made->graph = graph;
	graph->references++;
	graph_count++;
	for (unsigned int i = 1; i < graph->branches; i++)
		made->lane[i] = lane_take();
	*pGraphExec = made;
	return call_end(&call, cudaSuccess);
}

/* What is launched is still done. */
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graphExec)
{
	struct call call;

	if (!call_begin(&call, "cudaGraphExecDestroy", CALL_PLAIN))
		return call_end(&call, cudaSuccess);
	for (unsigned int i = 1; i < graphExec->graph->branches; i++)
		lanes[graphExec->lane[i]].taken = false;
	graph_put(graphExec->graph);
	free(graphExec);
	graph_count--;
	return call_end(&call, cudaSuccess);
}

static struct work *work_copy(const struct work *node)
{
	struct work *work = work_new(node->kind, &node->place);

	work->device = node->device;
	work->u = node->u;
	if (node->kind == WORK_KERNEL)
		work->u.kernel = kernel_work_copy(node->u.kernel);
	return work;
}

static cudaError_t launch(struct CUgraphExec_st *exec, struct CUstream_st *stream)
{
	unsigned int branches = exec->graph->branches;
	uint64_t begun[BRANCHES_MAX];
	struct stamp before;

	exec->lane[0] = stream->lane;
	stream_before(stream, &before);
	stamp_join(&before, &exec->last);
	for (unsigned int i = 0; i < branches; i++)
		begun[i] = lanes[exec->lane[i]].issued;
	for (const struct work *node = exec->graph->head; node; node = node->next) {
		struct stamp after = before;

		for (unsigned int i = 0; i < branches; i++) {
			if (node->after.at[i])
				after.at[exec->lane[i]] = begun[i] + node->after.at[i];
		}
		lane_enqueue(exec->lane[node->lane], work_copy(node), &after);
	}
	for (unsigned int i = 0; i < branches; i++)
		before.at[exec->lane[i]] = lanes[exec->lane[i]].issued;
	exec->last = before;
	stream_after(stream, &before);
	return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t graphExec, cudaStream_t stream)
{
	struct call call;
	cudaError_t error = cudaErrorInvalidResourceHandle;
	struct CUstream_st *on;

	if (!call_begin(&call, "cudaGraphLaunch", CALL_PLAIN))
		return call_end(&call, error);
	on = stream_find(stream, &call.place);
	if (on && on->recording)
		error = cudaErrorStreamCaptureUnsupported;
	else if (on)
		error = launch(graphExec, on);
	return call_end(&call, error);
}
