/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The models whose routing the reference producer runs: how many layers, which
 * of them are MoE, how many experts, and by which rule a token gets its own.
 */
#ifndef PRODUCER_REFERENCE_MODELS_H
#define PRODUCER_REFERENCE_MODELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <r3ring/bind.h>
#include <r3ring/error.h>
#include <r3ring/producer.h>

/* What makes a score of a router logit; router.h has the rules in full. */
enum score_rule {
	SCORE_SQRT_SOFTPLUS = 1,   /* DeepSeek-V4 */
	SCORE_SIGMOID = 2,         /* DeepSeek-V3, Kimi */
	SCORE_SOFTMAX = 3,         /* Qwen3: softmax over all experts, then top-k */
	SCORE_SOFTMAX_OF_TOPK = 4, /* gpt-oss: top-k of the logits, then softmax over these */
};

/* An engine's modules of a model's experts. */
struct moe_module {
	enum r3ring_module_kind kind;
	const char *class_name;
	const char *prefix; /* text before and after the layer number */
	const char *suffix;
};

struct moe_model {
	const char *name;
	uint32_t total_layers;    /* of the model, dense ones too */
	uint32_t first_moe_layer; /* it and all behind it are MoE */
	uint32_t hash_layers;     /* the first of the MoE layers, routed by a table of token ids */
	uint32_t experts;
	uint32_t top_k;
	uint32_t groups;      /* expert groups; 1: no group limit */
	uint32_t groups_kept; /* groups that a token may choose from */
	uint32_t vocabulary;
	enum score_rule rule;
	bool biased;                 /* a correction bias moves the selection, not the weights */
	enum r3ring_id_type id_type; /* of the ids that the engine's router writes */
	const struct moe_module *module; /* what runs the experts */
};

/* The model of that name. On an unknown one NULL; @err lists the known ones. */
const struct moe_model *moe_model_find(const char *name, struct r3ring_error *err);

/* The model at @index, or NULL behind the last one. */
const struct moe_model *moe_model_at(size_t index);

/* Number of MoE layers. */
uint32_t moe_model_layers(const struct moe_model *model);

/* The model's own number of its MoE layer @index, and that layer's kind. */
struct r3ring_layer_entry moe_model_layer(const struct moe_model *model, uint32_t index);

#endif
