/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The routes that a reference model must take, computed a second time: slowly,
 * plainly, and from the rules as they are written in
 * producer/reference/{weights,router,forward}.h alone. It shares no code and no
 * table with the producer, so that an error of one is not an error of both.
 *
 * A token's routes depend on its id, its position, the hidden size and the seed
 * only (no attention), so no chunking or batching can change them.
 */
#ifndef TESTS_SUPPORT_SLOW_MOE_H
#define TESTS_SUPPORT_SLOW_MOE_H

#include <stddef.h>
#include <stdint.h>

struct slow_moe;

/* @model: name as in `r3ring produce --model`. NULL for an unknown name or
 * without memory. */
struct slow_moe *slow_moe_create(const char *model, uint32_t hidden, uint64_t seed);
void slow_moe_free(struct slow_moe *moe);

uint32_t slow_moe_layers(const struct slow_moe *moe); /* MoE layers */
uint32_t slow_moe_experts(const struct slow_moe *moe);
uint32_t slow_moe_top_k(const struct slow_moe *moe);

/* The model's own number of MoE layer @index, and 1 if it is hash-routed. */
int32_t slow_moe_layer_id(const struct slow_moe *moe, uint32_t index);
int slow_moe_layer_is_hash(const struct slow_moe *moe, uint32_t index);

/*
 * Routes of consecutive tokens of one request.
 *
 * @token_ids:      [tokens].
 * @first_position: absolute position of token_ids[0].
 * @ids:            receives [tokens][layers][top_k], best expert first.
 */
void slow_moe_routes(struct slow_moe *moe, const int32_t *token_ids, uint32_t first_position,
		     size_t tokens, uint16_t *ids);

#endif
