/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The regression that matters most, for the module lists of two model families:
 * capture has the logical ids before the mapping to replicas is entered, and a
 * model that is not bound pays nothing.
 */
#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "producer/binding.h"

/* ---- counting allocations --------------------------------------------- */

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(__clang__)
#define COUNTS_ALLOCATIONS 0 /* a sanitizer has put its own functions there */
static size_t allocations;
#else
#define COUNTS_ALLOCATIONS 1
static _Thread_local size_t allocations;

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *memory, size_t bytes);

void *malloc(size_t bytes)
{
	allocations++;
	return __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes)
{
	allocations++;
	return __libc_calloc(count, bytes);
}

void *realloc(void *memory, size_t bytes)
{
	allocations++;
	return __libc_realloc(memory, bytes);
}
#endif

/* ---- a model ---------------------------------------------------------- */

#define MODEL_LAYERS_MAX 96
#define MODEL_ROWS 4u

struct family {
	char name[32];
	char prefix[48]; /* with %u for the layer */
	uint32_t layers; /* in the model */
	uint32_t dense;  /* leading layers without experts */
	uint32_t hash;   /* leading MoE layers that are hash-routed */
	uint32_t experts;
	uint32_t top_k;
};

static struct family families[] = {
	{"DeepSeek-V4-Flash", "model.layers.%u.ffn.experts", 43, 0, 3, 256, 6},
	{"Kimi-K3", "language_model.model.layers.%u.block_sparse_moe", 93, 1, 0, 896, 16},
};

struct moe_layer {
	struct r3ring_capture_source source;
	int64_t topk_ids[MODEL_ROWS * 16];
};

struct moe_model {
	const struct family *family;
	struct moe_layer layers[MODEL_LAYERS_MAX];
	struct r3ring_module modules[MODEL_LAYERS_MAX];
	char prefixes[MODEL_LAYERS_MAX][64];
	struct r3ring_layer_entry table[MODEL_LAYERS_MAX];
	uint32_t table_layers;

	/* what the capture saw */
	uint32_t captures;
	int64_t captured[MODEL_ROWS * 16];
	uint32_t captured_layer;
	uint32_t mappings_entered; /* when the capture was called */

	uint32_t mappings;
};

static struct moe_model model;

static void model_build(const struct family *family)
{
	model.family = family;
	for (uint32_t i = 0; i < family->layers; i++) {
		struct r3ring_module *module = &model.modules[i];
		const bool hash = i < family->hash;

		snprintf(model.prefixes[i], sizeof(model.prefixes[i]), "%.*s%u%s",
			 (int)(strchr(family->prefix, '%') - family->prefix), family->prefix, i,
			 strchr(family->prefix, '%') + 2);
		module->prefix = model.prefixes[i];
		module->class_name = i < family->dense ? "MLP" : "MegaMoE";
		module->kind = R3RING_MODULE_OTHER;
		if (i < family->dense)
			continue;
		module->kind = R3RING_MODULE_CAPTURE_SOURCE;
		module->layer_kind = hash ? R3RING_LAYER_HASH : R3RING_LAYER_MOE;
		module->source = &model.layers[i].source;
		model.layers[i].source.layer_id = (int)i;
		model.table[model.table_layers++] = (struct r3ring_layer_entry){
			.layer_id = (int32_t)i, .kind = module->layer_kind};
	}
}

/* The router's choice, as far as this test cares: different for each place. */
static int64_t logical_id(const struct family *family, uint32_t layer, uint32_t index)
{
	return (layer * 31 + index * 7 + 1) % family->experts;
}

/* In place of the mapping to replicas: refuses, so that a capture that came
 * after it, or of what it returns, would never be called. */
static int mapping_refuses(int64_t *ids)
{
	model.mappings++;
	memset(ids, 0xEE, MODEL_ROWS * model.family->top_k * sizeof(*ids));
	return -1;
}

static int layer_forward(struct moe_layer *layer)
{
	const struct family *family = model.family;
	const struct r3ring_topk topk = {.ids = layer->topk_ids,
					 .type = R3RING_INT64,
					 .rows = MODEL_ROWS,
					 .columns = family->top_k,
					 .row_stride = family->top_k};

	for (uint32_t i = 0; i < MODEL_ROWS * family->top_k; i++)
		layer->topk_ids[i] = logical_id(family, (uint32_t)layer->source.layer_id, i);
	if (layer->source.fn)
		layer->source.fn(&layer->source, &topk, NULL);
	return mapping_refuses(layer->topk_ids);
}

static void note_capture(void *ctx, uint32_t layer, const struct r3ring_topk *topk,
			 r3ring_stream stream)
{
	struct moe_model *captured_by = ctx;

	(void)stream;
	captured_by->captures++;
	captured_by->captured_layer = layer;
	captured_by->mappings_entered = captured_by->mappings;
	memcpy(captured_by->captured, topk->ids,
	       topk->rows * topk->columns * sizeof(captured_by->captured[0]));
}

static struct binding *model_bind(void)
{
	const struct binding_target target = {.layers = model.table,
					      .layer_count = model.table_layers,
					      .capture = note_capture,
					      .ctx = &model};
	struct binding *binding = NULL;
	struct r3ring_error err = {0};

	cr_assert_eq(binding_create(&binding, &target, model.modules, model.family->layers, &err),
		     (int)model.table_layers, "%s", err.text);
	return binding;
}

static void expect_captured_before_mapping(uint32_t table_layer)
{
	const struct family *family = model.family;
	const uint32_t layer = family->dense + table_layer;
	const uint32_t before = model.mappings;

	cr_assert_not_null(model.layers[layer].source.fn);
	cr_assert_eq(layer_forward(&model.layers[layer]), -1);
	cr_assert_eq(model.mappings, before + 1);
	cr_assert_eq(model.captures, table_layer + 1);
	cr_assert_eq(model.captured_layer, table_layer);
	cr_assert_eq(model.mappings_entered, before);
	for (uint32_t i = 0; i < MODEL_ROWS * family->top_k; i++)
		cr_assert_eq(model.captured[i], logical_id(family, layer, i));
}

/* Allocations and captures of one forward. */
static void expect_forward_costs_nothing(void)
{
	const uint32_t captures = model.captures;
	size_t before;

	before = allocations;
	free(malloc(model.family->layers)); /* the counter counts */
	if (COUNTS_ALLOCATIONS)
		cr_assert_gt(allocations, before);
	before = allocations;
	for (uint32_t i = model.family->dense; i < model.family->layers; i++)
		layer_forward(&model.layers[i]);
	cr_assert_eq(allocations, before);
	cr_assert_eq(model.captures, captures);
}

ParameterizedTestParameters(regression, failure_05_capture_has_the_logical_ids_before_the_mapping)
{
	return cr_make_param_array(struct family, families, sizeof(families) / sizeof(families[0]));
}

ParameterizedTest(struct family *family, regression,
		  failure_05_capture_has_the_logical_ids_before_the_mapping)
{
	struct binding *binding;

	model_build(family);
	expect_forward_costs_nothing();
	binding = model_bind();
	for (uint32_t i = 0; i < model.table_layers; i++)
		expect_captured_before_mapping(i);
	binding_release(binding);
	expect_forward_costs_nothing();
}
