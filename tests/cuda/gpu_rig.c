/* SPDX-License-Identifier: Apache-2.0 */
/* An engine on a fake GPU. */
#include <criterion/criterion.h>

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/cuda/fixture.h"
#include "tests/cuda/gpu_rig.h"
#include "tests/support/fakecuda/fakecuda.h"

#define FIRST_LAYER 3 /* models begin with dense layers */
#define IN_FLIGHT 3u  /* steps that may be on their way to the reader */
#define BUFFER_STEPS 16u

const struct gpu_model gpu_deepseek_v4 = {61, 384, 6, R3RING_INT64};
const struct gpu_model gpu_kimi_k3 = {92, 896, 16, R3RING_INT32};
const struct gpu_model gpu_small = {5, 64, 4, R3RING_INT32};

static void must(cudaError_t error, const char *call)
{
	cr_assert_eq(error, cudaSuccess, "%s: %s; found on the machine:\n%s", call,
		     cudaGetErrorName(error), fakecuda_findings());
}

#define MUST(call) must(call, #call)

static uint32_t id_bytes(const struct gpu_rig *rig)
{
	return rig->source.type == R3RING_INT64 ? 8 : 4;
}

/* Bytes of @rows rows of one layer. */
static size_t rows_bytes(const struct gpu_rig *rig, uint32_t rows)
{
	return (size_t)rows * rig->source.top_k * id_bytes(rig);
}

/* ---- beginning and end -------------------------------------------------- */

/* Room for so many steps that none is dropped, however slow the machine is. */
static uint64_t buffer_bytes(const struct gpu_model *model, uint32_t rows)
{
	uint64_t layer = 2ull * rows * model->top_k + 64ull * (rows / 64 + 4);

	return BUFFER_STEPS * model->layers * layer;
}

void gpu_rig_start(struct gpu_rig *rig, const struct gpu_model *model, uint32_t max_rows,
		   const char *const *args)
{
	machine_make();
	test_daemon_start(&rig->daemon, args);
	snprintf(rig->instance, sizeof(rig->instance), "gpu-%d", getpid());
	for (uint32_t i = 0; i < model->layers; i++)
		rig->layers[i].layer_id = FIRST_LAYER + (int32_t)i;
	rig->options = (struct r3ring_producer_options){
		.size = sizeof(rig->options),
		.runtime_dir = rig->daemon.dir,
		.instance = rig->instance,
		.device = "cuda",
		.model = "gpu",
		.experts = model->experts,
		.top_k = model->top_k,
		.max_rows = max_rows,
		.layer_count = model->layers,
		.layers = rig->layers,
		.buffer_bytes = buffer_bytes(model, max_rows),
	};
	rig->source = (struct step_source){
		.type = model->id_type,
		.experts = model->experts,
		.top_k = model->top_k,
	};
	rig->rows = max_rows;
	rig->buffers = 1;
}

void gpu_rig_join(struct gpu_rig *rig, const struct gpu_rig *first, uint32_t rank)
{
	snprintf(rig->daemon.dir, sizeof(rig->daemon.dir), "%s", first->daemon.dir);
	memcpy(rig->instance, first->instance, sizeof(rig->instance));
	memcpy(rig->layers, first->layers, sizeof(rig->layers));
	rig->options = first->options;
	rig->options.runtime_dir = rig->daemon.dir;
	rig->options.instance = rig->instance;
	rig->options.layers = rig->layers;
	rig->options.rank = rank;
	rig->source = first->source;
	rig->source.memory = NULL;
	rig->rows = first->rows;
	rig->buffers = first->buffers;
	rig->joined_another = true;
}

void gpu_rig_make_engine(struct gpu_rig *rig)
{
	size_t layer = rows_bytes(rig, rig->rows);
	void *memory;

	if (rig->stream)
		return;
	MUST(cudaStreamCreateWithFlags(&rig->stream, cudaStreamNonBlocking));
	MUST(cudaStreamCreateWithFlags(&rig->other, cudaStreamNonBlocking));
	MUST(cudaEventCreateWithFlags(&rig->forked, cudaEventDisableTiming));
	MUST(cudaEventCreateWithFlags(&rig->joined, cudaEventDisableTiming));
	for (uint32_t i = 0; i < GPU_AREAS; i++) {
		MUST(cudaHostAlloc(&memory, layer * rig->options.layer_count,
				   cudaHostAllocDefault));
		rig->areas[i] = memory;
		MUST(cudaEventCreateWithFlags(&rig->used[i], cudaEventDisableTiming));
	}
	MUST(cudaMalloc(&memory, layer * rig->buffers));
	rig->ids = memory;
}

int gpu_rig_open_producer(struct gpu_rig *rig, struct r3ring_error *err)
{
	snprintf(rig->channel, sizeof(rig->channel), "%s/%u", rig->instance, rig->options.rank);
	rig->steps = 0;
	return r3ring_producer_open(&rig->producer, &rig->options, err);
}

void gpu_rig_open(struct gpu_rig *rig)
{
	struct r3ring_error err = {0};

	gpu_rig_make_engine(rig);
	cr_assert_eq(gpu_rig_open_producer(rig, &err), 0, "%s; found on the machine:\n%s", err.text,
		     fakecuda_findings());
	step_reader_open(&rig->reader, rig->daemon.dir, rig->channel);
	fakecuda_serving(true);
}

void gpu_rig_close_producer(struct gpu_rig *rig)
{
	fakecuda_serving(false);
	r3ring_producer_close(rig->producer);
	rig->producer = NULL;
	cr_expect_eq(cudaPeekAtLastError(), cudaSuccess, "an error is left for the engine: %s",
		     cudaGetErrorName(cudaPeekAtLastError()));
}

static void destroy_graphs(struct gpu_rig *rig)
{
	while (rig->graph_count)
		cr_expect_eq(cudaGraphExecDestroy(rig->graphs[--rig->graph_count]), cudaSuccess);
}

void gpu_rig_close(struct gpu_rig *rig)
{
	gpu_rig_close_producer(rig);
	destroy_graphs(rig);
	if (rig->reader.reader)
		step_reader_close(&rig->reader);
	step_source_free(&rig->source);
	if (rig->joined_another)
		return;
	if (rig->daemon.pid)
		cr_expect_eq(test_daemon_stop(&rig->daemon), 0, "%s", rig->daemon.log);
	if (rig->daemon.dir[0])
		test_daemon_close(&rig->daemon);
	machine_check();
}

/* ---- the GPU ------------------------------------------------------------ */

void gpu_order(cudaEvent_t event, cudaStream_t before, cudaStream_t stream)
{
	MUST(cudaEventRecord(event, before));
	MUST(cudaStreamWaitEvent(stream, event, 0));
}

static void wait_for(cudaEvent_t event)
{
	cudaError_t error = cudaEventQuery(event);

	for (int i = 0; i < 20000 && error == cudaErrorNotReady; i++) {
		poll(NULL, 0, 1);
		error = cudaEventQuery(event);
	}
	must(error, "cudaEventQuery");
}

void gpu_wait(cudaStream_t stream)
{
	cudaError_t error = cudaStreamQuery(stream);

	for (int i = 0; i < 20000 && error == cudaErrorNotReady; i++) {
		poll(NULL, 0, 1);
		error = cudaStreamQuery(stream);
	}
	must(error, "cudaStreamQuery");
}

/* ---- steps -------------------------------------------------------------- */

struct r3ring_step gpu_plain_step(uint32_t rows)
{
	return (struct r3ring_step){.size = sizeof(struct r3ring_step),
				    .total_rows = rows,
				    .row_end = rows,
				    .valid_end = rows};
}

int64_t gpu_begin(struct gpu_rig *rig, const struct r3ring_step *step)
{
	int64_t number = r3ring_step_begin(rig->producer, step, rig->stream);

	if (number > 0)
		rig->steps = (uint64_t)number;
	return number;
}

void gpu_end(struct gpu_rig *rig)
{
	cr_assert_eq(r3ring_step_end(rig->producer, rig->stream), 0, "%s",
		     r3ring_producer_error(rig->producer));
}

void gpu_fill(struct gpu_rig *rig, uint32_t area, uint64_t step, uint32_t first_row, uint32_t rows)
{
	cr_assert_leq(rows, rig->rows);
	wait_for(rig->used[area]);
	rig->source.rows = rows;
	rig->source.first_row = first_row;
	for (uint32_t layer = 0; layer < rig->options.layer_count; layer++) {
		step_source_fill(&rig->source, step, layer);
		memcpy(rig->areas[area] + rows_bytes(rig, rig->rows) * layer, rig->source.memory,
		       rows_bytes(rig, rows));
	}
}

void gpu_put(struct gpu_rig *rig, uint32_t area, uint32_t layer, uint32_t row, uint32_t k,
	     int64_t id)
{
	uint8_t *to = rig->areas[area] + rows_bytes(rig, rig->rows) * layer + rows_bytes(rig, row) +
		      (size_t)k * id_bytes(rig);

	memcpy(to, &id, id_bytes(rig)); /* little-endian */
}

void gpu_filled(struct gpu_rig *rig, uint32_t area, cudaStream_t stream)
{
	MUST(cudaEventRecord(rig->used[area], stream));
}

void gpu_layer(struct gpu_rig *rig, uint32_t area, uint32_t layer, uint32_t from, uint32_t to,
	       cudaStream_t stream)
{
	uint8_t *ids = rig->ids + rows_bytes(rig, rig->rows) * (layer % rig->buffers) +
		       rows_bytes(rig, from);
	const struct r3ring_topk topk = {
		.ids = ids,
		.type = rig->source.type,
		.rows = to - from,
		.columns = rig->source.top_k,
		.row_offset = from,
		.row_stride = rig->source.top_k,
	};

	MUST(cudaMemcpyAsync(
		ids, rig->areas[area] + rows_bytes(rig, rig->rows) * layer + rows_bytes(rig, from),
		rows_bytes(rig, to - from), cudaMemcpyHostToDevice, stream));
	cr_assert_eq(r3ring_capture_layer(rig->producer, layer, &topk, stream), 0, "%s",
		     r3ring_producer_error(rig->producer));
}

void gpu_forward(struct gpu_rig *rig, uint32_t area, uint32_t from, uint32_t to,
		 cudaStream_t stream)
{
	for (uint32_t layer = 0; layer < rig->options.layer_count; layer++)
		gpu_layer(rig, area, layer, from, to, stream);
}

int64_t gpu_step(struct gpu_rig *rig, uint32_t rows, uint32_t doorbell)
{
	struct r3ring_step step = gpu_plain_step(rows);
	uint32_t area = (uint32_t)((rig->steps + 1) % GPU_AREAS);
	int64_t number;

	gpu_fill(rig, area, rig->steps + 1, 0, rows);
	step.doorbell_layers = doorbell;
	number = gpu_begin(rig, &step);
	cr_assert_gt(number, 0, "%s", r3ring_producer_error(rig->producer));
	gpu_forward(rig, area, 0, rows, rig->stream);
	gpu_end(rig);
	gpu_filled(rig, area, rig->stream);
	return number;
}

/* ---- graphs ------------------------------------------------------------- */

void gpu_record_begin(struct gpu_rig *rig)
{
	fakecuda_serving(false);
	MUST(cudaStreamBeginCapture(rig->stream, cudaStreamCaptureModeGlobal));
}

cudaGraphExec_t gpu_record_end(struct gpu_rig *rig)
{
	cudaGraphExec_t exec;
	cudaGraph_t graph;

	cr_assert_lt(rig->graph_count, GPU_GRAPHS);
	MUST(cudaStreamEndCapture(rig->stream, &graph));
	MUST(cudaGraphInstantiate(&exec, graph, 0));
	MUST(cudaGraphDestroy(graph));
	fakecuda_serving(true);
	rig->graphs[rig->graph_count++] = exec;
	return exec;
}

/* ---- what was read ------------------------------------------------------ */

static uint32_t not_missing(const struct gpu_rig *rig, uint32_t from, uint32_t to)
{
	uint32_t count = 0;

	for (uint32_t layer = 0; layer < rig->options.layer_count; layer++) {
		for (uint32_t row = from; row < to; row++) {
			for (uint32_t k = 0; k < rig->source.top_k; k++)
				count += read_step_id(&rig->reader, layer, row, k) !=
					 R3RING_MISSING;
		}
	}
	return count;
}

void gpu_expect_step(struct gpu_rig *rig, uint64_t step, uint32_t begin, uint32_t valid,
		     uint32_t end)
{
	const struct read_step *read = &rig->reader.step;

	cr_assert(step_reader_next(&rig->reader), "step %lu was not read; the daemon said:\n%s%s",
		  step, test_daemon_said(&rig->daemon, "") ? rig->daemon.log : "",
		  fakecuda_findings());
	cr_assert_eq(read->head.step, step, "step %lu came in place of %lu", read->head.step, step);
	cr_expect_eq(read->end.status, R3RING_STEP_COMPLETE, "step %lu", step);
	cr_expect_eq(read->end.missing, 0, "step %lu", step);
	cr_expect_eq(read->bad_records, 0, "step %lu", step);
	cr_expect_eq(read_step_all_wrong(&rig->reader, begin, valid), 0, "step %lu", step);
	cr_expect_eq(not_missing(rig, valid, end), 0, "step %lu", step);
}

static bool id_is_wrong(const struct gpu_rig *rig, uint32_t layer, uint32_t row, uint32_t k)
{
	uint16_t id = read_step_id(&rig->reader, layer, row, k);

	return id != R3RING_MISSING &&
	       id != step_source_id(rig->reader.step.head.step, layer, row, k, rig->source.experts);
}

uint32_t gpu_wrong_ids(const struct gpu_rig *rig, uint32_t begin, uint32_t end)
{
	uint32_t wrong = 0;

	for (uint32_t layer = 0; layer < rig->options.layer_count; layer++) {
		for (uint32_t row = begin; row < end; row++) {
			for (uint32_t k = 0; k < rig->source.top_k &&
					     read_step_came(&rig->reader, layer, row, row + 1);
			     k++)
				wrong += id_is_wrong(rig, layer, row, k);
		}
	}
	return wrong;
}

void gpu_run(struct gpu_rig *rig, uint32_t count, uint32_t rows, uint32_t doorbell)
{
	uint64_t last = rig->steps + count, read = rig->steps + 1;

	while (rig->steps < last) {
		gpu_step(rig, rows, doorbell);
		if (rig->steps >= read + IN_FLIGHT)
			gpu_expect_step(rig, read++, 0, rows, rows);
	}
	while (read <= last)
		gpu_expect_step(rig, read++, 0, rows, rows);
}
