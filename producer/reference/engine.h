/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The serving engine of a run before it meets capture: workload, scheduler,
 * model, EPLB and stream, made from the run's options.
 */
#ifndef PRODUCER_REFERENCE_ENGINE_H
#define PRODUCER_REFERENCE_ENGINE_H

#include <r3ring/host_stream.h>

#include "producer/reference/batch.h"
#include "producer/reference/eplb.h"
#include "producer/reference/forward.h"
#include "producer/reference/megamoe.h"
#include "producer/reference/run.h"
#include "producer/reference/tokens.h"
#include "producer/reference/trace.h"
#include "producer/reference/workload.h"

struct engine {
	char model[R3RING_MODEL_NAME_MAX + 1];
	uint32_t experts, top_k, layer_count, max_rows;
	struct r3ring_layer_entry *layers; /* [layer_count] */
	struct tokens tokens;
	struct trace trace;
	struct workload workload;
	struct forward *forward;
	struct eplb *eplb;
	struct megamoe *megamoe;
	struct batch *batch;
	struct megamoe_place place;
	bool on_gpu; /* captures are made by one; the forward runs on the CPU all the same */
	r3ring_stream stream;
};

/* Returns 0 or the reason; engine_free() is due either way. */
int engine_create(struct engine *engine, const struct run_options *options,
		  struct r3ring_error *err);
void engine_free(struct engine *engine);

#endif
