/* SPDX-License-Identifier: Apache-2.0 */
/* The order of router, capture and mapping in a forward. */
#include <criterion/criterion.h>
#include <errno.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "producer/reference/forward.h"
#include "producer/reference/megamoe.h"
#include "tests/support/slow_moe.h"

#define ROWS 5u
#define TOTAL_ROWS 8u
#define HIDDEN 64u
#define SEED 3u

/* A model whose captures and mappings write down what they saw. */
struct stage {
	const struct moe_model *model;
	struct forward *forward;
	struct eplb *eplb;
	struct megamoe *megamoe;
	uint16_t *captured; /* [layers][TOTAL_ROWS][top_k] */
	uint32_t captures, mappings;
	int64_t lowest, highest;      /* ids captured, as the engine has them */
	int map_result;               /* what the mapping answers */
	uint32_t captured_at_refusal; /* captures that were done when it refused */
	bool nothing_known;           /* the router knows no ids */
	bool keeps_ids;               /* captures come when the forward is over */
	uint32_t wrong_order;
	uint32_t not_masked; /* ids of padding rows that the mapping left */
};

static struct stage stage;
static int32_t tokens[TOTAL_ROWS], positions[TOTAL_ROWS];

static int64_t id_of(const void *ids, uint32_t type, size_t at)
{
	return type == R3RING_INT64 ? ((const int64_t *)ids)[at] : ((const int32_t *)ids)[at];
}

struct copy {
	struct r3ring_topk topk;
	uint16_t *to;
};

static void copy_work(void *args)
{
	const struct copy *copy = args;

	/* Layer by layer: mappings of earlier layers are done, none of this one. */
	stage.wrong_order += !stage.map_result && stage.mappings != stage.captures;
	stage.captures++;
	for (uint32_t row = 0; row < copy->topk.rows; row++) {
		for (uint32_t k = 0; k < stage.model->top_k; k++) {
			int64_t id = id_of(copy->topk.ids, copy->topk.type,
					   row * copy->topk.row_stride + k);

			stage.lowest = id < stage.lowest ? id : stage.lowest;
			stage.highest = id > stage.highest ? id : stage.highest;
			copy->to[row * stage.model->top_k + k] = (uint16_t)id;
		}
	}
}

/* Enqueues its copy, as a real capture does. */
static void capture(const struct r3ring_capture_source *source, const struct r3ring_topk *topk,
		    r3ring_stream stream)
{
	struct copy copy = {*topk, source->ctx};

	cr_assert_eq(topk->columns, stage.model->top_k);
	cr_assert_eq(topk->type, stage.model->id_type);
	cr_assert_eq(r3ring_host_stream_enqueue(stream, copy_work, &copy, sizeof(copy)), 0);
}

static int map(void *ctx, uint32_t layer, const struct eplb_ids *ids)
{
	(void)ctx;
	if (stage.map_result) {
		stage.captured_at_refusal = stage.captures;
		return stage.map_result;
	}
	stage.mappings++;
	eplb_apply(stage.eplb, layer, ids);
	for (size_t row = ids->rows; row < ids->total_rows; row++) {
		for (uint32_t k = 0; k < ids->top_k; k++)
			stage.not_masked += id_of(ids->ids, ids->type, row * ids->stride + k) != -1;
	}
	return 0;
}

static void embed(void *ctx, const int32_t *token_ids, const int32_t *at, uint32_t rows)
{
	forward_embed(ctx, token_ids, at, rows);
}

static void select_layer(void *ctx, uint32_t layer, const int32_t *token_ids, uint32_t rows,
			 uint16_t *ids)
{
	if (stage.nothing_known)
		memset(ids, 0xff, rows * stage.model->top_k * sizeof(*ids));
	else
		forward_layer(ctx, layer, token_ids, rows, ids);
}

static void make_megamoe(void)
{
	uint32_t layers = moe_model_layers(stage.model);
	struct r3ring_layer_entry entries[128];
	struct megamoe_options options = {
		.router = {.embed = embed, .layer = select_layer, .ctx = stage.forward},
		.map = map,
		.layers = entries,
		.layer_count = layers,
		.dense_layers = stage.model->first_moe_layer,
		.top_k = stage.model->top_k,
		.max_rows = TOTAL_ROWS,
		.id_type = stage.model->id_type,
		.keeps_ids = stage.keeps_ids,
		.module = stage.model->module,
	};

	for (uint32_t l = 0; l < layers; l++)
		entries[l] = moe_model_layer(stage.model, l);
	cr_assert_eq(megamoe_create(&stage.megamoe, &options, NULL), 0);
}

static void open_stage(const char *name)
{
	uint32_t layers;

	stage.model = moe_model_find(name, NULL);
	stage.lowest = INT64_MAX;
	stage.highest = INT64_MIN;
	layers = moe_model_layers(stage.model);
	cr_assert_eq(forward_create(&stage.forward, stage.model, HIDDEN, SEED, TOTAL_ROWS, NULL),
		     0);
	cr_assert_eq(eplb_create(&stage.eplb, layers, stage.model->experts,
				 stage.model->experts / 8, NULL),
		     0);
	make_megamoe();
	stage.captured = calloc((size_t)layers * TOTAL_ROWS * stage.model->top_k, 2);
	cr_assert_not_null(stage.captured);
	for (uint32_t row = 0; row < ROWS; row++) {
		tokens[row] = (int32_t)(1000 + row * 17);
		positions[row] = (int32_t)(40 + row);
	}
}

static void bind_all(void)
{
	for (uint32_t l = 0; l < moe_model_layers(stage.model); l++) {
		struct r3ring_capture_source *source = megamoe_source(stage.megamoe, l);

		source->ctx = stage.captured + (size_t)l * TOTAL_ROWS * stage.model->top_k;
		source->fn = capture;
	}
}

static void close_stage(void)
{
	megamoe_free(stage.megamoe);
	eplb_free(stage.eplb);
	forward_free(stage.forward);
	free(stage.captured);
}

static int run_forward(struct r3ring_host_stream *stream)
{
	struct megamoe_input input = {tokens, positions, ROWS, TOTAL_ROWS};
	int rc = megamoe_forward(stage.megamoe, &input, stream);

	return rc ? rc : megamoe_wait(stage.megamoe);
}

/* Rows [0, ROWS) of the first @layers layers. */
static void expect_logical_ids(uint32_t layers)
{
	struct slow_moe *slow = slow_moe_create(stage.model->name, HIDDEN, SEED);
	size_t k = stage.model->top_k, all = moe_model_layers(stage.model);
	uint16_t *expected = calloc(ROWS * all * k, sizeof(*expected));

	slow_moe_routes(slow, tokens, 40, ROWS, expected);
	for (size_t l = 0; l < layers; l++) {
		for (size_t row = 0; row < ROWS; row++)
			cr_assert_arr_eq(stage.captured + (l * TOTAL_ROWS + row) * k,
					 expected + (row * all + l) * k, k * sizeof(*expected),
					 "layer %zu, row %zu", l, row);
	}
	free(expected);
	slow_moe_free(slow);
}

/* One that runs on another stream: nothing keeps the model from going on. */
static struct copy late[128];

static void capture_late(const struct r3ring_capture_source *source, const struct r3ring_topk *topk,
			 r3ring_stream stream)
{
	(void)stream;
	late[stage.captures++] = (struct copy){*topk, source->ctx};
}

static void kept_ids_stay_logical_to_the_end(const char *name)
{
	uint32_t layers;

	stage.keeps_ids = true;
	open_stage(name);
	bind_all();
	layers = moe_model_layers(stage.model);
	for (uint32_t l = 0; l < layers; l++)
		megamoe_source(stage.megamoe, l)->fn = capture_late;
	cr_assert_eq(run_forward(NULL), 0);
	cr_assert_eq(stage.captures, layers);
	for (uint32_t l = 0; l < layers; l++)
		copy_work(&late[l]);
	expect_logical_ids(layers);
	cr_assert_eq(stage.mappings, layers);
	cr_assert_eq(stage.not_masked, 0);
	close_stage();
}

Test(reference_megamoe, kept_ids_of_deepseek_v4_stay_logical_to_the_forwards_end)
{
	kept_ids_stay_logical_to_the_end("deepseek-v4-flash");
}

Test(reference_megamoe, kept_ids_of_kimi_k3_stay_logical_to_the_forwards_end)
{
	kept_ids_stay_logical_to_the_end("kimi-k3");
}

static void capture_comes_before_a_mapping_that_refuses(const char *name)
{
	struct r3ring_host_stream *stream;

	open_stage(name);
	bind_all();
	stage.map_result = -EPERM;
	cr_assert_eq(r3ring_host_stream_create(&stream), 0);
	cr_assert_eq(run_forward(stream), -EPERM);
	cr_assert_eq(run_forward(stream), -EPERM, "a later forward must be refused");
	r3ring_host_stream_destroy(stream);
	cr_assert_eq(stage.mappings, 0);
	cr_assert_eq(stage.captured_at_refusal, 1);
	expect_logical_ids(1);
	close_stage();
}

Test(reference_megamoe, failure_05_deepseek_v4_is_captured_before_the_mapping)
{
	capture_comes_before_a_mapping_that_refuses("deepseek-v4-flash");
}

Test(reference_megamoe, failure_05_kimi_k3_is_captured_before_the_mapping)
{
	capture_comes_before_a_mapping_that_refuses("kimi-k3");
}

static void captured_ids_are_logical_with_replicas(const char *name)
{
	struct r3ring_host_stream *stream;

	open_stage(name);
	bind_all();
	cr_assert_eq(r3ring_host_stream_create(&stream), 0);
	cr_assert_eq(run_forward(stream), 0);
	cr_assert_eq(eplb_place(stage.eplb), 0);
	stage.captures = stage.mappings = 0;
	cr_assert_eq(run_forward(stream), 0);
	r3ring_host_stream_destroy(stream);
	cr_assert_eq(stage.captures, moe_model_layers(stage.model));
	cr_assert_eq(stage.mappings, stage.captures);
	cr_assert_eq(stage.wrong_order, 0);
	expect_logical_ids(stage.captures);
	close_stage();
}

Test(reference_megamoe, failure_05_ids_stay_logical_under_replicas_of_deepseek_v4)
{
	captured_ids_are_logical_with_replicas("deepseek-v4-flash");
}

Test(reference_megamoe, failure_05_ids_stay_logical_under_replicas_of_kimi_k3)
{
	captured_ids_are_logical_with_replicas("kimi-k3");
}

Test(reference_megamoe, failure_26_an_id_that_is_not_known_is_minus_one)
{
	open_stage("kimi-k3");
	bind_all();
	stage.nothing_known = true;
	cr_assert_eq(run_forward(NULL), 0);
	cr_assert_eq(stage.lowest, -1);
	cr_assert_eq(stage.highest, -1);
	close_stage();
}

Test(reference_megamoe, failure_28_padding_rows_are_masked_and_no_load)
{
	uint64_t load = 0;

	open_stage("gpt-oss-20b");
	cr_assert_eq(run_forward(NULL), 0);
	cr_assert_eq(stage.not_masked, 0);
	for (uint32_t l = 0; l < 24; l++) {
		for (uint32_t p = 0; p < 36; p++)
			load += eplb_load(stage.eplb, l, p);
	}
	cr_assert_eq(load, 24 * ROWS * 4);
	close_stage();
}

static void unbound_nothing_is_called_or_allocated(const char *name)
{
	struct mallinfo2 before, after;

	open_stage(name);
	cr_assert_eq(run_forward(NULL), 0);
	before = mallinfo2();
	cr_assert_eq(run_forward(NULL), 0);
	after = mallinfo2();
	cr_assert_eq(after.uordblks, before.uordblks);
	cr_assert_eq(after.hblks, before.hblks);
	cr_assert_eq(stage.captures, 0);
	cr_assert_eq(stage.mappings, 2 * moe_model_layers(stage.model));
	close_stage();
}

Test(reference_megamoe, unbound_deepseek_v4_calls_and_allocates_nothing)
{
	unbound_nothing_is_called_or_allocated("deepseek-v4-flash");
}

Test(reference_megamoe, unbound_kimi_k3_calls_and_allocates_nothing)
{
	unbound_nothing_is_called_or_allocated("kimi-k3");
}

Test(reference_megamoe, failure_34_modules_carry_the_models_layer_numbers)
{
	const struct r3ring_module *modules;
	size_t count;

	open_stage("deepseek-v3");
	modules = megamoe_modules(stage.megamoe, &count);
	cr_assert_eq(count, 61);
	cr_assert_eq(modules[2].kind, R3RING_MODULE_OTHER);
	cr_assert_str_eq(modules[3].prefix, "model.layers.3.mlp.experts");
	cr_assert_eq(modules[3].source->layer_id, 3);
	cr_assert_str_eq(modules[60].prefix, "model.layers.60.mlp.experts");
	cr_assert_eq(modules[60].source->layer_id, 60);
	close_stage();
}

Test(reference_megamoe, a_step_beyond_max_rows_is_refused)
{
	struct megamoe_input input = {tokens, positions, ROWS, TOTAL_ROWS + 1};

	open_stage("gpt-oss-20b");
	cr_assert_eq(megamoe_forward(stage.megamoe, &input, NULL), -EINVAL);
	close_stage();
}
