/* SPDX-License-Identifier: Apache-2.0 */
/* Seeded weights. */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "producer/reference/weights.h"

#define GOLDEN 0x9e3779b97f4a7c15ull

static uint64_t mix(uint64_t x)
{
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
	return x ^ (x >> 31);
}

uint64_t weight_key(uint64_t seed, uint64_t purpose, uint64_t a)
{
	return mix(mix(seed + purpose * GOLDEN) + a);
}

uint64_t weight_word(uint64_t key, uint64_t n)
{
	return mix(key + (n + 1) * GOLDEN);
}

void weight_bytes(uint64_t key, int16_t *bytes, size_t count)
{
	for (size_t i = 0; i < count; i += 8) {
		uint64_t word = weight_word(key, i / 8);

		for (size_t j = i; j < count && j < i + 8; j++, word >>= 8)
			bytes[j] = (int8_t)(word & 0xff);
	}
}

static int16_t *matrix(uint64_t key, size_t count)
{
	int16_t *values = calloc(count, sizeof(*values));

	if (values)
		weight_bytes(key, values, count);
	return values;
}

static double *correction_bias(uint64_t key, uint32_t experts)
{
	int16_t *bytes = matrix(key, experts);
	double *bias = calloc(experts, sizeof(*bias));

	if (!bytes || !bias) {
		free(bytes);
		free(bias);
		return NULL;
	}
	for (uint32_t e = 0; e < experts; e++)
		bias[e] = bytes[e] / 1024.0;
	free(bytes);
	return bias;
}

static bool contains(const uint16_t *ids, uint32_t count, uint16_t id)
{
	for (uint32_t i = 0; i < count; i++) {
		if (ids[i] == id)
			return true;
	}
	return false;
}

static void draw_experts(uint16_t *ids, uint64_t key, const struct moe_model *model)
{
	uint32_t found = 0;

	for (uint64_t n = 0; found < model->top_k; n++) {
		uint16_t id = (uint16_t)(weight_word(key, n) % model->experts);

		if (!contains(ids, found, id))
			ids[found++] = id;
	}
}

static uint16_t *token_table(uint64_t key, const struct moe_model *model)
{
	uint16_t *table = calloc((size_t)model->vocabulary * model->top_k, sizeof(*table));

	for (uint32_t t = 0; table && t < model->vocabulary; t++)
		draw_experts(table + (size_t)t * model->top_k, weight_key(key, 0, t), model);
	return table;
}

static int layer_create(struct layer_weights *layer, const struct moe_model *model,
			const struct weights *weights, struct r3ring_layer_entry entry)
{
	uint64_t id = (uint64_t)entry.layer_id;
	size_t cells = (size_t)model->experts * weights->hidden;
	bool hash = entry.kind == R3RING_LAYER_HASH;

	layer->gate = matrix(weight_key(weights->seed, WEIGHT_GATE, id), cells);
	layer->expert = matrix(weight_key(weights->seed, WEIGHT_EXPERT, id), cells);
	if (model->biased && !hash)
		layer->bias =
			correction_bias(weight_key(weights->seed, WEIGHT_BIAS, id), model->experts);
	if (hash)
		layer->table = token_table(weight_key(weights->seed, WEIGHT_TABLE, id), model);
	if (!layer->gate || !layer->expert || (model->biased && !hash && !layer->bias) ||
	    (hash && !layer->table))
		return -ENOMEM;
	return 0;
}

int weights_create(struct weights **weights, const struct moe_model *model, uint32_t hidden,
		   uint64_t seed)
{
	struct weights *w = calloc(1, sizeof(*w));
	int rc = 0;

	if (!w)
		return -ENOMEM;
	w->seed = seed;
	w->hidden = hidden;
	w->layers = moe_model_layers(model);
	w->layer = calloc(w->layers, sizeof(*w->layer));
	if (!w->layer)
		rc = -ENOMEM;
	for (uint32_t i = 0; !rc && i < w->layers; i++)
		rc = layer_create(&w->layer[i], model, w, moe_model_layer(model, i));
	if (rc)
		weights_free(w);
	else
		*weights = w;
	return rc;
}

void weights_free(struct weights *weights)
{
	if (!weights)
		return;
	for (uint32_t i = 0; weights->layer && i < weights->layers; i++) {
		free(weights->layer[i].gate);
		free(weights->layer[i].expert);
		free(weights->layer[i].bias);
		free(weights->layer[i].table);
	}
	free(weights->layer);
	free(weights);
}
