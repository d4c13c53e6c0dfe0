/* SPDX-License-Identifier: Apache-2.0 */
/* MoE layers on a stream. */
#include <errno.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <r3ring/atomic.h>

#include "producer/reference/megamoe.h"

#define SLOTS 2u
#define PREFIX_MAX 96

/* Input of a forward in flight; the host fills one while the other is in use. */
struct slot {
	int32_t *token_ids, *positions; /* [max_rows] */
	uint32_t rows, total_rows;
};

struct layer {
	struct r3ring_capture_source source;
	char prefix[PREFIX_MAX];
};

struct megamoe {
	struct megamoe_options options;
	uint32_t stride; /* ids from one row to the next */
	struct layer *layers;
	char (*dense_prefixes)[PREFIX_MAX];
	struct r3ring_module *modules; /* dense layers first, then the MoE layers */
	struct slot slots[SLOTS];
	uint32_t next_slot;
	sem_t free_slots;
	uint16_t *selected; /* [max_rows][top_k], of the layer being run */
	size_t ids_bytes;   /* of [max_rows][stride] ids of id_type */
	uint8_t *ids;       /* so many bytes for each layer (keeps_ids), or for all of them */
	uint8_t *mapped;    /* what is mapped where ids are kept; else NULL */
	uint32_t failed;    /* errno of the mapping that refused */
	uint32_t replay;    /* a monolithic kernel writes out its routes: set by binding */
};

/* Arguments of work on the stream. */
struct work {
	struct megamoe *megamoe;
	struct slot *slot;
	uint32_t layer;
};

/* ---- where it runs ---------------------------------------------------- */

static int host_enqueue(r3ring_stream stream, r3ring_host_work_fn fn, const void *args, size_t size)
{
	return r3ring_host_stream_enqueue(stream, fn, args, size);
}

static void *host_alloc(size_t bytes)
{
	return calloc(1, bytes);
}

const struct megamoe_place megamoe_on_host = {
	.enqueue = host_enqueue,
	.alloc = host_alloc,
	.free = free,
};

/* Work that the stream refuses stops the forward as a mapping does. */
static void enqueue(struct megamoe *m, r3ring_stream stream, r3ring_host_work_fn fn,
		    const struct work *work)
{
	int rc = m->options.place->enqueue(stream, fn, work, sizeof(*work));

	if (rc)
		r3ring_store_relaxed_u32(&m->failed, (uint32_t)-rc);
}

/* ---- making it -------------------------------------------------------- */

static size_t id_bytes(enum r3ring_id_type type)
{
	return type == R3RING_INT64 ? sizeof(int64_t) : sizeof(int32_t);
}

static int alloc_buffers(struct megamoe *m)
{
	const struct megamoe_options *o = &m->options;
	size_t areas = o->keeps_ids ? o->layer_count : 1;

	m->ids_bytes = (size_t)o->max_rows * m->stride * id_bytes(o->id_type);
	for (uint32_t s = 0; s < SLOTS; s++) {
		m->slots[s].token_ids = calloc(o->max_rows, sizeof(int32_t));
		m->slots[s].positions = calloc(o->max_rows, sizeof(int32_t));
		if (!m->slots[s].token_ids || !m->slots[s].positions)
			return -ENOMEM;
	}
	m->layers = calloc(o->layer_count, sizeof(*m->layers));
	m->dense_prefixes = calloc(o->dense_layers + 1, sizeof(*m->dense_prefixes));
	m->modules = calloc(o->dense_layers + o->layer_count, sizeof(*m->modules));
	m->selected = calloc((size_t)o->max_rows * o->top_k, sizeof(*m->selected));
	m->ids = o->place->alloc(areas * m->ids_bytes);
	if (o->keeps_ids)
		m->mapped = malloc(m->ids_bytes);
	if (o->keeps_ids && !m->mapped)
		return -ENOMEM;
	return m->layers && m->dense_prefixes && m->modules && m->selected && m->ids ? 0 : -ENOMEM;
}

static void describe_modules(struct megamoe *m)
{
	const struct megamoe_options *o = &m->options;
	struct r3ring_module *module = m->modules;

	for (uint32_t i = 0; i < o->dense_layers; i++, module++) {
		snprintf(m->dense_prefixes[i], PREFIX_MAX, "%s%u.mlp", o->module->prefix, i);
		module->prefix = m->dense_prefixes[i];
		module->class_name = "DenseMLP";
		module->kind = R3RING_MODULE_OTHER;
	}
	for (uint32_t i = 0; i < o->layer_count; i++, module++) {
		struct layer *layer = &m->layers[i];

		layer->source.layer_id = o->layers[i].layer_id;
		snprintf(layer->prefix, PREFIX_MAX, "%s%d%s", o->module->prefix,
			 layer->source.layer_id, o->module->suffix);
		module->prefix = layer->prefix;
		module->class_name = o->module->class_name;
		module->kind = o->module->kind;
		module->layer_kind = o->layers[i].kind;
		module->source = &layer->source;
		if (o->module->kind == R3RING_MODULE_MONOLITHIC)
			module->replay_enabled = &m->replay;
	}
}

int megamoe_create(struct megamoe **megamoe, const struct megamoe_options *options,
		   struct r3ring_error *err)
{
	struct megamoe *m = calloc(1, sizeof(*m));

	if (!m)
		return r3ring_error_set(err, -ENOMEM, "no memory for the MoE layers");
	m->options = *options;
	if (!m->options.place)
		m->options.place = &megamoe_on_host;
	/* As engines do, rows are wider than top_k where that aligns them. */
	m->stride = (options->top_k + 7) / 8 * 8;
	sem_init(&m->free_slots, 0, SLOTS);
	if (alloc_buffers(m)) {
		megamoe_free(m);
		return r3ring_error_set(err, -ENOMEM,
					"no memory for steps of %u rows: take a "
					"smaller --batch",
					options->max_rows);
	}
	describe_modules(m);
	m->options.layers = NULL;
	*megamoe = m;
	return 0;
}

void megamoe_free(struct megamoe *megamoe)
{
	if (!megamoe)
		return;
	for (uint32_t s = 0; s < SLOTS; s++) {
		free(megamoe->slots[s].token_ids);
		free(megamoe->slots[s].positions);
	}
	free(megamoe->layers);
	free(megamoe->dense_prefixes);
	free(megamoe->modules);
	free(megamoe->selected);
	free(megamoe->mapped);
	megamoe->options.place->free(megamoe->ids);
	sem_destroy(&megamoe->free_slots);
	free(megamoe);
}

const struct r3ring_module *megamoe_modules(const struct megamoe *megamoe, size_t *count)
{
	*count = megamoe->options.dense_layers + megamoe->options.layer_count;
	return megamoe->modules;
}

struct r3ring_capture_source *megamoe_source(struct megamoe *megamoe, uint32_t index)
{
	return &megamoe->layers[index].source;
}

/* ---- the work --------------------------------------------------------- */

static void *layer_ids(const struct megamoe *m, uint32_t layer)
{
	return m->ids + (m->options.keeps_ids ? layer * m->ids_bytes : 0);
}

static void embed_work(void *args)
{
	const struct work *work = args;
	const struct megamoe_router *router = &work->megamoe->options.router;

	if (router->embed)
		router->embed(router->ctx, work->slot->token_ids, work->slot->positions,
			      work->slot->total_rows);
}

/* Writes the selected ids as the engine's type, missing ones as -1. */
static void widen(const struct megamoe *m, void *ids, uint32_t rows)
{
	uint32_t top_k = m->options.top_k;
	int32_t *ids32 = ids;
	int64_t *ids64 = ids;

	for (uint32_t row = 0; row < rows; row++) {
		for (uint32_t k = 0; k < top_k; k++) {
			uint16_t id = m->selected[(size_t)row * top_k + k];
			int32_t value = id == R3RING_MISSING ? -1 : id;
			size_t at = (size_t)row * m->stride + k;

			if (m->options.id_type == R3RING_INT64)
				ids64[at] = value;
			else
				ids32[at] = value;
		}
	}
}

static void route_work(void *args)
{
	const struct work *work = args;
	struct megamoe *m = work->megamoe;
	const struct megamoe_router *router = &m->options.router;

	if (r3ring_load_relaxed_u32(&m->failed))
		return;
	router->layer(router->ctx, work->layer, work->slot->token_ids, work->slot->total_rows,
		      m->selected);
	widen(m, layer_ids(m, work->layer), work->slot->total_rows);
}

/* What EPLB may write to. */
static void *ids_to_map(const struct megamoe *m, uint32_t layer)
{
	if (!m->mapped)
		return layer_ids(m, layer);
	return memcpy(m->mapped, layer_ids(m, layer), m->ids_bytes);
}

static void map_work(void *args)
{
	const struct work *work = args;
	struct megamoe *m = work->megamoe;
	struct eplb_ids ids = {
		.ids = ids_to_map(m, work->layer),
		.type = m->options.id_type,
		.top_k = m->options.top_k,
		.stride = m->stride,
		.rows = work->slot->rows,
		.total_rows = work->slot->total_rows,
	};
	int rc = 0;

	if (m->options.map && !r3ring_load_relaxed_u32(&m->failed))
		rc = m->options.map(m->options.map_ctx, work->layer, &ids);
	if (rc)
		/* Ordered before the host's look at it by the semaphore. */
		r3ring_store_relaxed_u32(&m->failed, (uint32_t)-rc);
}

static void done_work(void *args)
{
	const struct work *work = args;

	sem_post(&work->megamoe->free_slots);
}

static void take_slot(struct megamoe *m)
{
	while (sem_wait(&m->free_slots) && errno == EINTR)
		;
}

static int failure(const struct megamoe *m)
{
	return -(int)r3ring_load_relaxed_u32(&m->failed);
}

static struct slot *fill_slot(struct megamoe *m, const struct megamoe_input *input)
{
	struct slot *slot = &m->slots[m->next_slot];

	m->next_slot = (m->next_slot + 1) % SLOTS;
	slot->rows = input->rows;
	slot->total_rows = input->total_rows;
	memcpy(slot->token_ids, input->token_ids, input->total_rows * sizeof(int32_t));
	memcpy(slot->positions, input->positions, input->total_rows * sizeof(int32_t));
	return slot;
}

static void enqueue_layer(struct megamoe *m, const struct work *work, r3ring_stream stream)
{
	const struct r3ring_capture_source *source = &m->layers[work->layer].source;
	struct r3ring_topk topk = {
		.ids = layer_ids(m, work->layer),
		.type = m->options.id_type,
		.rows = work->slot->total_rows,
		.columns = m->options.top_k,
		.row_stride = m->stride,
	};

	enqueue(m, stream, route_work, work);
	if (source->fn && (m->options.module->kind != R3RING_MODULE_MONOLITHIC || m->replay))
		source->fn(source, &topk, stream);
	enqueue(m, stream, map_work, work);
}

/* The slot is free again also where the stream takes no more work. */
static void enqueue_done(struct megamoe *m, const struct work *work, r3ring_stream stream)
{
	int rc = m->options.place->enqueue(stream, done_work, work, sizeof(*work));

	if (!rc)
		return;
	r3ring_store_relaxed_u32(&m->failed, (uint32_t)-rc);
	sem_post(&m->free_slots);
}

int megamoe_forward(struct megamoe *megamoe, const struct megamoe_input *input,
		    r3ring_stream stream)
{
	struct work work = {.megamoe = megamoe};

	if (input->total_rows > megamoe->options.max_rows || input->rows > input->total_rows)
		return -EINVAL;
	take_slot(megamoe);
	if (failure(megamoe)) {
		sem_post(&megamoe->free_slots);
		return failure(megamoe);
	}
	work.slot = fill_slot(megamoe, input);
	enqueue(megamoe, stream, embed_work, &work);
	for (work.layer = 0; work.layer < megamoe->options.layer_count; work.layer++)
		enqueue_layer(megamoe, &work, stream);
	enqueue_done(megamoe, &work, stream);
	return failure(megamoe);
}

int megamoe_wait(struct megamoe *megamoe)
{
	for (uint32_t s = 0; s < SLOTS; s++)
		take_slot(megamoe);
	for (uint32_t s = 0; s < SLOTS; s++)
		sem_post(&megamoe->free_slots);
	return failure(megamoe);
}
