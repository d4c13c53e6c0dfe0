/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An engine with its model on a fake GPU: daemon (a process of its own), producer on
 * the device "cuda", reader. The ids of a layer are handed over as a real engine's are:
 * they come into a device buffer by work on the stream, are captured, and the next
 * layer's overwrite them. Nothing waits for the GPU but where it says so.
 *
 * While the channel is open, a call of r3ring's that waits or allocates is a finding.
 */
#ifndef TESTS_CUDA_GPU_RIG_H
#define TESTS_CUDA_GPU_RIG_H

#include <stdint.h>

#include <cuda_runtime_api.h>

#include <r3ring/producer.h>

#include "tests/support/daemon.h"
#include "tests/support/step_reader.h"
#include "tests/support/step_source.h"

#define GPU_AREAS 4u /* steps whose ids may be on their way at a time */
#define GPU_GRAPHS STEP_READER_LAYERS

/* A model's sizes, and how its router gives ids. */
struct gpu_model {
	uint32_t layers, experts, top_k;
	uint32_t id_type;
};

extern const struct gpu_model gpu_deepseek_v4, gpu_kimi_k3, gpu_small;

struct gpu_rig {
	struct test_daemon daemon;
	char instance[48], channel[64];
	struct r3ring_layer_entry layers[STEP_READER_LAYERS];
	struct r3ring_producer_options options; /* may be changed before the channel opens */
	struct r3ring_producer *producer;
	struct step_reader reader;
	struct step_source source;
	uint64_t steps; /* begun */
	bool joined_another;

	cudaStream_t stream, other;
	cudaEvent_t forked, joined;
	uint8_t *areas[GPU_AREAS]; /* pinned: [layers][rows][top_k] */
	cudaEvent_t used[GPU_AREAS];
	uint32_t rows;    /* an area has room for */
	uint8_t *ids;     /* on the GPU: [buffers][rows][top_k] */
	uint32_t buffers; /* 1: each layer's ids overwrite the former's; or one a layer */
	cudaGraphExec_t graphs[GPU_GRAPHS]; /* recorded, to be destroyed */
	uint32_t graph_count;
};

/* Makes the machine, starts a daemon on it, fills in the options: layers are moe layers
 * 3, 4, ... @args: the daemon's, or NULL. */
void gpu_rig_start(struct gpu_rig *rig, const struct gpu_model *model, uint32_t max_rows,
		   const char *const *args);

/* One more rank of @first's instance, on the same machine and daemon. */
void gpu_rig_join(struct gpu_rig *rig, const struct gpu_rig *first, uint32_t rank);

/* Opens the channel and a reader of it; from then on the engine serves. */
void gpu_rig_open(struct gpu_rig *rig);
/* The same of the producer alone; returns what r3ring_producer_open() does. */
int gpu_rig_open_producer(struct gpu_rig *rig, struct r3ring_error *err);

/* The engine's memory and streams, without a channel. */
void gpu_rig_make_engine(struct gpu_rig *rig);

/* Closes the channel, ends the daemon in good order; fails on any finding. */
void gpu_rig_close(struct gpu_rig *rig);
/* The channel only. */
void gpu_rig_close_producer(struct gpu_rig *rig);

/* ---- steps -------------------------------------------------------------- */

/* Begins the next step on rig->stream. Returns its number. */
int64_t gpu_begin(struct gpu_rig *rig, const struct r3ring_step *step);
void gpu_end(struct gpu_rig *rig);

/* A step whose rows all are this rank's and valid. */
struct r3ring_step gpu_plain_step(uint32_t rows);

/* Waits until an area is free, and fills it with the ids of a step's rows
 * [first_row, first_row + rows) at all layers. */
void gpu_fill(struct gpu_rig *rig, uint32_t area, uint64_t step, uint32_t first_row, uint32_t rows);

/* The area is in use until here of the stream. */
void gpu_filled(struct gpu_rig *rig, uint32_t area, cudaStream_t stream);

/* One layer: rows [from, to) of the area's go to the GPU and are captured. */
void gpu_layer(struct gpu_rig *rig, uint32_t area, uint32_t layer, uint32_t from, uint32_t to,
	       cudaStream_t stream);

/* The same of all layers. */
void gpu_forward(struct gpu_rig *rig, uint32_t area, uint32_t from, uint32_t to,
		 cudaStream_t stream);

/* Writes one id of the area over. */
void gpu_put(struct gpu_rig *rig, uint32_t area, uint32_t layer, uint32_t row, uint32_t k,
	     int64_t id);

/* A whole step of @rows rows with bells every @doorbell layers, on rig->stream. */
int64_t gpu_step(struct gpu_rig *rig, uint32_t rows, uint32_t doorbell);

/* What follows on @stream waits for all that is on @before. */
void gpu_order(cudaEvent_t event, cudaStream_t before, cudaStream_t stream);

/* Waits, as an engine does between steps, without blocking calls. */
void gpu_wait(cudaStream_t stream);

/* ---- graphs ------------------------------------------------------------- */

/* Records what is enqueued on rig->stream in between; the graph is the rig's. */
void gpu_record_begin(struct gpu_rig *rig);
cudaGraphExec_t gpu_record_end(struct gpu_rig *rig);

/* ---- what was read ------------------------------------------------------ */

/* Reads the next step: it is complete, and rows [begin, valid) are right at all layers,
 * rows [valid, end) missing. */
void gpu_expect_step(struct gpu_rig *rig, uint64_t step, uint32_t begin, uint32_t valid,
		     uint32_t end);

/* Ids of rows [begin, end) that came, at any layer, and are neither the step's nor
 * missing. */
uint32_t gpu_wrong_ids(const struct gpu_rig *rig, uint32_t begin, uint32_t end);

/* Runs so many steps of @rows rows as gpu_step() does, and expects each. */
void gpu_run(struct gpu_rig *rig, uint32_t count, uint32_t rows, uint32_t doorbell);

#endif
