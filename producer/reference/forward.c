/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic of the reference model. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "producer/reference/dot.h"
#include "producer/reference/forward.h"
#include "producer/reference/router.h"
#include "producer/reference/weights.h"

struct forward {
	const struct moe_model *model;
	struct weights *weights;
	dot_rows_fn dot_rows;
	uint32_t hidden;
	uint32_t max_rows;
	double logit_scale;
	int16_t *state; /* [max_rows][hidden] */
	int32_t dots[ROUTER_EXPERTS_MAX];
	double scores[ROUTER_EXPERTS_MAX];
};

static int16_t wrap(int32_t value)
{
	return (int8_t)(uint8_t)(value & 0xff);
}

int forward_create(struct forward **forward, const struct moe_model *model, uint32_t hidden,
		   uint64_t seed, uint32_t max_rows, struct r3ring_error *err)
{
	struct forward *f;
	int rc;

	if (hidden < FORWARD_HIDDEN_MIN || hidden > FORWARD_HIDDEN_MAX || hidden % 16)
		return r3ring_error_set(err, -EINVAL,
					"hidden size %u: must be a multiple of 16 from %u to %u",
					hidden, FORWARD_HIDDEN_MIN, FORWARD_HIDDEN_MAX);
	f = calloc(1, sizeof(*f));
	if (!f)
		return r3ring_error_set(err, -ENOMEM, "no memory for the reference model");
	f->model = model;
	f->hidden = hidden;
	f->max_rows = max_rows;
	f->logit_scale = 4096.0 * sqrt(hidden);
	f->dot_rows = dot_rows_best();
	f->state = calloc((size_t)max_rows * hidden, sizeof(*f->state));
	rc = f->state ? weights_create(&f->weights, model, hidden, seed) : -ENOMEM;
	if (rc) {
		forward_free(f);
		return r3ring_error_set(err, rc,
					"no memory for the weights of %s with hidden size "
					"%u: take a smaller one",
					model->name, hidden);
	}
	*forward = f;
	return 0;
}

void forward_free(struct forward *forward)
{
	if (!forward)
		return;
	weights_free(forward->weights);
	free(forward->state);
	free(forward);
}

static uint32_t table_token(const struct forward *f, int32_t token_id)
{
	return (uint32_t)token_id % f->model->vocabulary;
}

static void embed_row(struct forward *f, uint32_t row, int32_t token_id, int32_t position)
{
	int16_t *state = f->state + (size_t)row * f->hidden;
	int16_t place[FORWARD_HIDDEN_MAX];
	uint64_t seed = f->weights->seed;

	weight_bytes(weight_key(seed, WEIGHT_EMBEDDING, table_token(f, token_id)), state,
		     f->hidden);
	weight_bytes(weight_key(seed, WEIGHT_PLACE, (uint32_t)position), place, f->hidden);
	for (uint32_t i = 0; i < f->hidden; i++)
		state[i] = wrap(state[i] + place[i]);
}

void forward_embed(struct forward *forward, const int32_t *token_ids, const int32_t *positions,
		   uint32_t rows)
{
	for (uint32_t row = 0; row < rows; row++)
		embed_row(forward, row, token_ids[row], positions[row]);
}

static void select_by_score(struct forward *f, const struct layer_weights *layer,
			    const int16_t *state, uint16_t *ids, double *weights)
{
	f->dot_rows(f->dots, layer->gate, f->model->experts, state, f->hidden);
	for (uint32_t e = 0; e < f->model->experts; e++)
		f->scores[e] = f->dots[e] / f->logit_scale;
	router_select(f->model, f->scores, layer->bias, ids, weights);
}

static void select_by_table(struct forward *f, const struct layer_weights *layer, uint32_t token,
			    const int16_t *state, uint16_t *ids, double *weights)
{
	uint32_t top_k = f->model->top_k;
	const uint16_t *listed = layer->table + (size_t)token * top_k;

	for (uint32_t k = 0; k < top_k; k++) {
		ids[k] = listed[k];
		f->dot_rows(&f->dots[k], layer->gate + (size_t)ids[k] * f->hidden, 1, state,
			    f->hidden);
		f->scores[k] = f->dots[k] / f->logit_scale;
	}
	router_hash_weights(f->model, f->scores, weights);
}

/* Adds what the selected experts give out. */
static void add_experts(const struct forward *f, const struct layer_weights *layer,
			const uint16_t *ids, const double *weights, int16_t *state)
{
	int32_t sum[FORWARD_HIDDEN_MAX] = {0};

	for (uint32_t k = 0; k < f->model->top_k; k++) {
		const int16_t *out = layer->expert + (size_t)ids[k] * f->hidden;
		int32_t share = (int32_t)floor(256.0 * weights[k]);

		for (uint32_t i = 0; i < f->hidden; i++)
			sum[i] += share * out[i];
	}
	for (uint32_t i = 0; i < f->hidden; i++)
		state[i] = wrap(state[i] + (sum[i] >> 8));
}

void forward_layer(struct forward *forward, uint32_t layer, const int32_t *token_ids, uint32_t rows,
		   uint16_t *ids)
{
	const struct layer_weights *weights = &forward->weights->layer[layer];
	double shares[ROUTER_TOP_K_MAX];

	for (uint32_t row = 0; row < rows; row++, ids += forward->model->top_k) {
		int16_t *state = forward->state + (size_t)row * forward->hidden;

		if (weights->table)
			select_by_table(forward, weights, table_token(forward, token_ids[row]),
					state, ids, shares);
		else
			select_by_score(forward, weights, state, ids, shares);
		add_experts(forward, weights, ids, shares, state);
	}
}
