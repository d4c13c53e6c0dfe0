/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Seeded weights of a model: small integers, so that whoever computes with them
 * gets the same result to the last bit.
 *
 * Everything is drawn from one function of 64-bit numbers (modulo 2^64):
 *
 *	mix(x):  x ^= x >> 30;  x *= 0xbf58476d1ce4e5b9
 *	         x ^= x >> 27;  x *= 0x94d049bb133111eb
 *	         x ^= x >> 31
 *	key(seed, purpose, a) = mix(mix(seed + purpose * 0x9e3779b97f4a7c15) + a)
 *	word(key, n)          = mix(key + (n + 1) * 0x9e3779b97f4a7c15)
 *	byte(key, i)          = bits [8 * (i % 8), 8 * (i % 8) + 8) of word(key, i / 8),
 *	                        read as int8
 *
 * With l the model's own layer number, e an expert, i a dimension of H:
 *
 *	gate[l][e][i]   = byte(key(seed, 1, l), e * H + i)
 *	expert[l][e][i] = byte(key(seed, 2, l), e * H + i)   what the expert gives out
 *	bias[l][e]      = byte(key(seed, 3, l), e) / 1024    the correction bias
 *	embedding[t][i] = byte(key(seed, 4, t), i)           of token id t
 *	place[p][i]     = byte(key(seed, 5, p), i)           of position p
 *	table[l][t]     = the first top_k different values of
 *	                  word(key(key(seed, 6, l), 0, t), n) % experts, n = 0, 1, ...
 *
 * Source of mix: G. Steele, D. Lea, C. Flood, "Fast Splittable Pseudorandom
 * Number Generators" (SplitMix64), OOPSLA 2014.
 */
#ifndef PRODUCER_REFERENCE_WEIGHTS_H
#define PRODUCER_REFERENCE_WEIGHTS_H

#include <stddef.h>
#include <stdint.h>

#include "producer/reference/models.h"

enum weight_purpose {
	WEIGHT_GATE = 1,
	WEIGHT_EXPERT = 2,
	WEIGHT_BIAS = 3,
	WEIGHT_EMBEDDING = 4,
	WEIGHT_PLACE = 5,
	WEIGHT_TABLE = 6,
};

uint64_t weight_key(uint64_t seed, uint64_t purpose, uint64_t a);
uint64_t weight_word(uint64_t key, uint64_t n);

/* byte(key, 0 .. count-1), widened. */
void weight_bytes(uint64_t key, int16_t *bytes, size_t count);

/* Weights of one MoE layer. int16 holds what int8 would: dot products of it are
 * one instruction on today's processors. */
struct layer_weights {
	int16_t *gate;   /* [experts][hidden] */
	int16_t *expert; /* [experts][hidden] */
	double *bias;    /* [experts], NULL when the model has none */
	uint16_t *table; /* [vocabulary][top_k] of a hash layer, else NULL */
};

struct weights {
	uint64_t seed;
	uint32_t hidden;
	uint32_t layers;
	struct layer_weights *layer; /* [layers], MoE layers only */
};

/* Returns 0 or -ENOMEM; free with weights_free(), which takes NULL. */
int weights_create(struct weights **weights, const struct moe_model *model, uint32_t hidden,
		   uint64_t seed);
void weights_free(struct weights *weights);

#endif
