/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scoring rules: from a token's router logits to its experts.
 *
 * Scores, in double, each operation rounded as IEEE 754 says, functions from
 * libm, sums in the order of expert ids:
 *
 *	SQRT_SOFTPLUS     s = sqrt(x > 20 ? x : log1p(exp(x)))
 *	SIGMOID           s = 1 / (1 + exp(-x))
 *	SOFTMAX           s = exp(x - max) / sum of all exp(x - max)
 *	SOFTMAX_OF_TOPK   s = x
 *
 * Selection is by choice = s + bias (s where the model has none), larger first,
 * equal ones by lower expert id; the ids come in that order. With groups (the
 * experts in equal runs): a group's score is the sum of its two largest choices;
 * the groups_kept best groups are kept, equal ones by lower number, and only
 * their experts can be selected.
 *
 * Weights are the unbiased scores of the selected, divided by their sum (added
 * in the order selected); SOFTMAX_OF_TOPK: exp(s - s of the first) divided by
 * the sum of these. A hash layer's ids come from its table, in the table's
 * order; their weights from their scores in the same way. The factor that the
 * models scale the weights with changes no route and is left out.
 *
 * Source: DeepSeek-V3 Technical Report, arXiv:2412.19437, section 2.1.2 and
 * formulas 12 to 16 (sigmoid affinity, bias for selection only, node-limited
 * routing); DeepSeek-V4 as in NVIDIA NeMo AutoModel's deepseek_v4 (tid2eid,
 * sqrtsoftplus, noaux_tc) and ROCm/aiter pull request 2995 (sqrt(softplus(x)) +
 * bias, top-k, subtract bias, renormalise); Kimi-K3 as in NeMo AutoModel's
 * kimi_k3 ("fp32 sigmoid router with correction-bias-only expert selection");
 * Qwen3 and gpt-oss as in Hugging Face transformers' modeling files. The
 * threshold 20 is PyTorch's softplus.
 */
#ifndef PRODUCER_REFERENCE_ROUTER_H
#define PRODUCER_REFERENCE_ROUTER_H

#include <stdint.h>

#include "producer/reference/models.h"

#define ROUTER_EXPERTS_MAX 1024
#define ROUTER_TOP_K_MAX 32
#define ROUTER_GROUPS_MAX 32

/*
 * Selects a token's experts.
 *
 * @logits:  [experts]; turned into scores in place.
 * @bias:    [experts] or NULL.
 * @ids:     receives [top_k].
 * @weights: receives [top_k].
 */
void router_select(const struct moe_model *model, double *logits, const double *bias, uint16_t *ids,
		   double *weights);

/* Weights of a hash layer's experts @ids, from their @logits: [top_k] each. */
void router_hash_weights(const struct moe_model *model, const double *logits, double *weights);

#endif
