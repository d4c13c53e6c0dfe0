/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The arithmetic of the reference model: embedding, router logits, and what the
 * experts add to the hidden state.
 *
 * A token's hidden state is H integers of int8; with the weights of weights.h
 * and the rules of router.h:
 *
 *	hidden[i] = wrap(embedding[token][i] + place[position][i])
 *	in each MoE layer, in the model's order:
 *	  logit[e]  = (sum of hidden[i] * gate[l][e][i]) / (4096 * sqrt(H))
 *	  ids, weights as in router.h
 *	  share[k]  = floor(256 * weights[k])
 *	  hidden[i] = wrap(hidden[i] + floor(y[i] / 256)),
 *	              y[i] = sum over k of share[k] * expert[l][ids[k]][i]
 *
 * wrap() is modulo 256 into [-128, 127]; the sums are exact integers, the logit
 * is a double. Dense layers leave the hidden state as it is.
 *
 * There is no attention: a token's routes depend on its id, its position and the
 * seed, never on how requests were cut into chunks or batched together. So
 * whatever batching does, the expected routes of a request stay the same.
 */
#ifndef PRODUCER_REFERENCE_FORWARD_H
#define PRODUCER_REFERENCE_FORWARD_H

#include <stdint.h>

#include <r3ring/error.h>

#include "producer/reference/models.h"

#define FORWARD_HIDDEN_MIN 16u
#define FORWARD_HIDDEN_MAX 4096u

struct forward;

/*
 * A model with weights of @seed and room for the hidden state of @max_rows rows.
 * @hidden: a multiple of 16 between FORWARD_HIDDEN_MIN and FORWARD_HIDDEN_MAX.
 * Returns 0, -EINVAL or -ENOMEM. Pairs with forward_free(), which takes NULL.
 */
int forward_create(struct forward **forward, const struct moe_model *model, uint32_t hidden,
		   uint64_t seed, uint32_t max_rows, struct r3ring_error *err);
void forward_free(struct forward *forward);

/* Sets the hidden state of rows [0, rows). Token ids beyond the vocabulary are
 * taken modulo its size. */
void forward_embed(struct forward *forward, const int32_t *token_ids, const int32_t *positions,
		   uint32_t rows);

/*
 * Runs MoE layer @layer (index among the MoE layers) over the rows.
 * @ids: receives [rows][top_k] logical experts.
 */
void forward_layer(struct forward *forward, uint32_t layer, const int32_t *token_ids, uint32_t rows,
		   uint16_t *ids);

#endif
