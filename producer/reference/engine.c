/* SPDX-License-Identifier: Apache-2.0 */
/* Making an engine from a run's options. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "device/gpu_work.h"
#include "producer/reference/engine.h"

static int map_to_replicas(void *ctx, uint32_t layer, const struct eplb_ids *ids)
{
	eplb_apply(ctx, layer, ids);
	return 0;
}

static void embed(void *ctx, const int32_t *token_ids, const int32_t *positions, uint32_t rows)
{
	forward_embed(ctx, token_ids, positions, rows);
}

static void select_layer(void *ctx, uint32_t layer, const int32_t *token_ids, uint32_t rows,
			 uint16_t *ids)
{
	forward_layer(ctx, layer, token_ids, rows, ids);
}

/* One for 8 experts, but no more than there are ids for. */
static uint32_t default_replicas(uint32_t experts)
{
	uint32_t most = R3RING_EXPERTS_MAX - experts;

	return experts / 8 < most ? experts / 8 : most;
}

static int make_eplb(struct engine *e, const struct run_options *options, struct r3ring_error *err)
{
	uint32_t extra = options->eplb_replicas;

	if (extra == RUN_EPLB_DEFAULT)
		extra = default_replicas(e->experts);
	return eplb_create(&e->eplb, e->layer_count, e->experts, extra, err);
}

/* Captures on a side stream read a layer's ids while the next ones are computed. */
static int make_layers(struct engine *e, const struct run_options *options,
		       struct megamoe_options *moe, struct r3ring_error *err)
{
	moe->keeps_ids = options->side_stream;
	moe->place = &e->place;
	moe->map = map_to_replicas;
	moe->map_ctx = e->eplb;
	moe->layers = e->layers;
	moe->layer_count = e->layer_count;
	moe->top_k = e->top_k;
	moe->max_rows = e->max_rows;
	return megamoe_create(&e->megamoe, moe, err);
}

static int copy_layers(struct engine *e, const struct r3ring_layer_entry *layers,
		       struct r3ring_error *err)
{
	assert(e->layer_count); /* every model here has an MoE layer */
	e->layers = calloc(e->layer_count, sizeof(*e->layers));
	if (!e->layers)
		return r3ring_error_set(err, -ENOMEM, "no memory for the layer table");
	memcpy(e->layers, layers, e->layer_count * sizeof(*e->layers));
	return 0;
}

static int load_trace(struct engine *e, const struct run_options *options, struct r3ring_error *err)
{
	static const struct moe_module recorded = {R3RING_MODULE_MONOLITHIC, "RecordedMoE",
						   "model.layers.", ".mlp.experts"};
	struct megamoe_options moe = {
		.router = {.layer = trace_layer, .ctx = &e->trace},
		.id_type = R3RING_INT32,
		.module = &recorded,
	};
	int rc = trace_read(&e->trace, options->trace, err);

	if (rc)
		return rc;
	memcpy(e->model, e->trace.model, sizeof(e->model));
	e->experts = e->trace.experts;
	e->top_k = e->trace.top_k;
	e->layer_count = e->trace.layer_count;
	rc = trace_workload(&e->trace, options->repeat, &e->workload, err);
	if (!rc)
		rc = copy_layers(e, e->trace.layers, err);
	if (!rc)
		rc = make_eplb(e, options, err);
	return rc ? rc : make_layers(e, options, &moe, err);
}

static int list_layers(struct engine *e, const struct moe_model *model, struct r3ring_error *err)
{
	struct r3ring_layer_entry layers[R3RING_LAYERS_MAX];

	for (uint32_t i = 0; i < e->layer_count; i++)
		layers[i] = moe_model_layer(model, i);
	return copy_layers(e, layers, err);
}

static int load_text(struct engine *e, const struct moe_model *model,
		     const struct run_options *options, struct r3ring_error *err)
{
	int rc = tokens_read(&e->tokens, options->text, model->vocabulary, err);

	if (!rc)
		rc = workload_from_text(&e->workload, &e->tokens, options->requests, options->seed,
					err);
	return rc ? rc
		  : forward_create(&e->forward, model, options->hidden, options->seed, e->max_rows,
				   err);
}

static int load_model(struct engine *e, const struct run_options *options, struct r3ring_error *err)
{
	const struct moe_model *model = moe_model_find(options->model, err);
	struct megamoe_options moe = {.router = {.embed = embed, .layer = select_layer}};
	int rc;

	if (!model)
		return -EINVAL;
	strncpy(e->model, model->name, sizeof(e->model) - 1);
	e->experts = model->experts;
	e->top_k = model->top_k;
	e->layer_count = moe_model_layers(model);
	rc = load_text(e, model, options, err);
	if (!rc)
		rc = list_layers(e, model, err);
	if (!rc)
		rc = make_eplb(e, options, err);
	if (rc)
		return rc;
	moe.router.ctx = e->forward;
	moe.dense_layers = model->first_moe_layer;
	moe.id_type = model->id_type;
	moe.module = model->module;
	return make_layers(e, options, &moe, err);
}

static int make_stream(struct engine *e, struct r3ring_error *err)
{
	struct r3ring_host_stream *stream;
	int rc;

	if (e->on_gpu) {
		e->place = (struct megamoe_place){gpu_work.enqueue, gpu_work.alloc, gpu_work.free};
		return gpu_work.stream_create(&e->stream, err);
	}
	e->place = megamoe_on_host;
	rc = r3ring_host_stream_create(&stream);
	if (rc)
		return r3ring_error_set(err, rc,
					"no thread for the stream: raise the limit on threads");
	e->stream = stream;
	return 0;
}

int engine_create(struct engine *engine, const struct run_options *options,
		  struct r3ring_error *err)
{
	int rc;

	*engine = (struct engine){
		.max_rows = batch_max_rows(options->batch_rows),
		.on_gpu = options->device && strcmp(options->device, "cuda") == 0,
	};
	rc = make_stream(engine, err);
	if (!rc)
		rc = batch_check(options->batch_rows, options->prefill_chunk, err);
	if (!rc)
		rc = options->trace ? load_trace(engine, options, err)
				    : load_model(engine, options, err);
	if (!rc)
		rc = batch_create(&engine->batch, &engine->workload, options->batch_rows,
				  options->prefill_chunk, err);
	return rc;
}

void engine_free(struct engine *engine)
{
	if (engine->on_gpu && engine->stream)
		gpu_work.stream_destroy(engine->stream);
	else if (engine->stream)
		r3ring_host_stream_destroy(engine->stream);
	batch_free(engine->batch);
	megamoe_free(engine->megamoe);
	eplb_free(engine->eplb);
	forward_free(engine->forward);
	workload_free(&engine->workload);
	trace_free(&engine->trace);
	tokens_free(&engine->tokens);
	free(engine->layers);
	*engine = (struct engine){0};
}
