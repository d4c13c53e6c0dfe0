/* SPDX-License-Identifier: Apache-2.0 */
/* The table of models. */
#include <errno.h>
#include <string.h>

#include "producer/reference/models.h"

static const struct moe_module mega_moe = {R3RING_MODULE_CAPTURE_SOURCE, "MegaMoE", "model.layers.",
					   ".ffn.experts"};
static const struct moe_module mega_moe_of_blocks = {R3RING_MODULE_CAPTURE_SOURCE, "MegaMoE",
						     "model.layers.", ".block_sparse_moe.experts"};
static const struct moe_module fused_moe = {R3RING_MODULE_ROUTER_HOOK, "FusedMoE", "model.layers.",
					    ".mlp.experts"};

/*
 * Source: the models' published config.json (num_hidden_layers,
 * first_k_dense_replace, num_hash_layers, n_routed_experts or num_experts,
 * num_experts_per_tok, n_group and topk_group, scoring_func, vocab_size):
 *   deepseek-ai/DeepSeek-V4-Flash and -Pro (all layers MoE, the first three
 *     routed by tid2eid; sqrtsoftplus, noaux_tc),
 *   moonshotai/Kimi-K3 (layer 0 dense; sigmoid with a correction bias) and
 *     Kimi-K2 (the same with one group),
 *   deepseek-ai/DeepSeek-V3 (layers 0 to 2 dense; 8 groups, 4 kept),
 *   Qwen/Qwen3-235B-A22B (norm_topk_prob), openai/gpt-oss-20b.
 */
static const struct moe_model models[] = {
	{
		.name = "deepseek-v4-flash",
		.total_layers = 43,
		.hash_layers = 3,
		.experts = 256,
		.top_k = 6,
		.groups = 1,
		.groups_kept = 1,
		.vocabulary = 129280,
		.rule = SCORE_SQRT_SOFTPLUS,
		.biased = true,
		.id_type = R3RING_INT64,
		.module = &mega_moe,
	},
	{
		.name = "deepseek-v4-pro",
		.total_layers = 61,
		.hash_layers = 3,
		.experts = 384,
		.top_k = 6,
		.groups = 1,
		.groups_kept = 1,
		.vocabulary = 129280,
		.rule = SCORE_SQRT_SOFTPLUS,
		.biased = true,
		.id_type = R3RING_INT64,
		.module = &mega_moe,
	},
	{
		.name = "kimi-k3",
		.total_layers = 93,
		.first_moe_layer = 1,
		.experts = 896,
		.top_k = 16,
		.groups = 1,
		.groups_kept = 1,
		.vocabulary = 163840,
		.rule = SCORE_SIGMOID,
		.biased = true,
		.id_type = R3RING_INT32,
		.module = &mega_moe_of_blocks,
	},
	{
		.name = "kimi-k2",
		.total_layers = 61,
		.first_moe_layer = 1,
		.experts = 384,
		.top_k = 8,
		.groups = 1,
		.groups_kept = 1,
		.vocabulary = 163840,
		.rule = SCORE_SIGMOID,
		.biased = true,
		.id_type = R3RING_INT32,
		.module = &fused_moe,
	},
	{
		.name = "deepseek-v3",
		.total_layers = 61,
		.first_moe_layer = 3,
		.experts = 256,
		.top_k = 8,
		.groups = 8,
		.groups_kept = 4,
		.vocabulary = 129280,
		.rule = SCORE_SIGMOID,
		.biased = true,
		.id_type = R3RING_INT64,
		.module = &fused_moe,
	},
	{
		.name = "qwen3-235b",
		.total_layers = 94,
		.experts = 128,
		.top_k = 8,
		.groups = 1,
		.groups_kept = 1,
		.vocabulary = 151936,
		.rule = SCORE_SOFTMAX,
		.id_type = R3RING_INT32,
		.module = &fused_moe,
	},
	{
		.name = "gpt-oss-20b",
		.total_layers = 24,
		.experts = 32,
		.top_k = 4,
		.groups = 1,
		.groups_kept = 1,
		.vocabulary = 201088,
		.rule = SCORE_SOFTMAX_OF_TOPK,
		.id_type = R3RING_INT32,
		.module = &fused_moe,
	},
};

#define MODELS (sizeof(models) / sizeof(models[0]))

static void list_names(char *text, size_t size)
{
	size_t used = 0;

	text[0] = '\0';
	for (size_t i = 0; i < MODELS; i++) {
		size_t len = strlen(models[i].name);

		if (used + len + 3 > size)
			return;
		if (used) {
			memcpy(text + used, ", ", 2);
			used += 2;
		}
		memcpy(text + used, models[i].name, len + 1);
		used += len;
	}
}

const struct moe_model *moe_model_find(const char *name, struct r3ring_error *err)
{
	char known[256];

	for (size_t i = 0; i < MODELS; i++) {
		if (!strcmp(models[i].name, name))
			return &models[i];
	}
	list_names(known, sizeof(known));
	r3ring_error_set(err, -EINVAL, "unknown model \"%.64s\": --model takes one of %s", name,
			 known);
	return NULL;
}

const struct moe_model *moe_model_at(size_t index)
{
	return index < MODELS ? &models[index] : NULL;
}

uint32_t moe_model_layers(const struct moe_model *model)
{
	return model->total_layers - model->first_moe_layer;
}

struct r3ring_layer_entry moe_model_layer(const struct moe_model *model, uint32_t index)
{
	return (struct r3ring_layer_entry){
		.layer_id = (int32_t)(model->first_moe_layer + index),
		.kind = index < model->hash_layers ? R3RING_LAYER_HASH : R3RING_LAYER_MOE,
	};
}
