/* SPDX-License-Identifier: Apache-2.0 */
/* The slow reference: plain loops over the written rules, full sorts. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/slow_moe.h"

/* The sizes of the models, typed in once more. */
struct shape {
	const char *name;
	uint32_t first, last; /* MoE layers' own numbers, both included */
	uint32_t last_hash;   /* layers below it are hash-routed */
	uint32_t experts, top_k, groups, groups_kept, vocabulary;
	char rule; /* 'p' sqrt-softplus, 's' sigmoid, 'm' softmax, 't' softmax of top-k */
};

static const struct shape shapes[] = {
	{"deepseek-v4-flash", 0, 42, 3, 256, 6, 1, 1, 129280, 'p'},
	{"deepseek-v4-pro", 0, 60, 3, 384, 6, 1, 1, 129280, 'p'},
	{"kimi-k3", 1, 92, 0, 896, 16, 1, 1, 163840, 's'},
	{"kimi-k2", 1, 60, 0, 384, 8, 1, 1, 163840, 's'},
	{"deepseek-v3", 3, 60, 0, 256, 8, 8, 4, 129280, 's'},
	{"qwen3-235b", 0, 93, 0, 128, 8, 1, 1, 151936, 'm'},
	{"gpt-oss-20b", 0, 23, 0, 32, 4, 1, 1, 201088, 't'},
};

struct candidate {
	double choice;
	uint32_t id;
};

struct slow_moe {
	const struct shape *shape;
	uint32_t hidden;
	uint64_t seed;
	int8_t *gate; /* [layers][experts][hidden], kept because drawing them anew takes long */
	int *state;   /* [hidden] */
	double *score, *choice;
	struct candidate *order;
};

static uint64_t mixed(uint64_t x)
{
	x ^= x >> 30;
	x *= UINT64_C(0xbf58476d1ce4e5b9);
	x ^= x >> 27;
	x *= UINT64_C(0x94d049bb133111eb);
	x ^= x >> 31;
	return x;
}

static uint64_t key_of(uint64_t seed, uint64_t purpose, uint64_t a)
{
	return mixed(mixed(seed + purpose * UINT64_C(0x9e3779b97f4a7c15)) + a);
}

static uint64_t word_of(uint64_t key, uint64_t n)
{
	return mixed(key + (n + 1) * UINT64_C(0x9e3779b97f4a7c15));
}

static int byte_of(uint64_t key, uint64_t i)
{
	int value = (int)(word_of(key, i / 8) >> (8 * (i % 8)) & 255);

	return value < 128 ? value : value - 256;
}

static int wrapped(int value)
{
	int rest = ((value + 128) % 256 + 256) % 256;

	return rest - 128;
}

uint32_t slow_moe_layers(const struct slow_moe *moe)
{
	return moe->shape->last - moe->shape->first + 1;
}

uint32_t slow_moe_experts(const struct slow_moe *moe)
{
	return moe->shape->experts;
}

uint32_t slow_moe_top_k(const struct slow_moe *moe)
{
	return moe->shape->top_k;
}

int32_t slow_moe_layer_id(const struct slow_moe *moe, uint32_t index)
{
	return (int32_t)(moe->shape->first + index);
}

int slow_moe_layer_is_hash(const struct slow_moe *moe, uint32_t index)
{
	return moe->shape->first + index < moe->shape->last_hash;
}

static void draw_gates(struct slow_moe *moe)
{
	size_t cells = (size_t)moe->shape->experts * moe->hidden;

	for (uint32_t l = 0; l < slow_moe_layers(moe); l++) {
		uint64_t key = key_of(moe->seed, 1, (uint64_t)slow_moe_layer_id(moe, l));

		for (size_t i = 0; i < cells; i++)
			moe->gate[l * cells + i] = (int8_t)byte_of(key, i);
	}
}

struct slow_moe *slow_moe_create(const char *model, uint32_t hidden, uint64_t seed)
{
	struct slow_moe *moe = calloc(1, sizeof(*moe));

	for (size_t i = 0; moe && i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		if (!strcmp(shapes[i].name, model))
			moe->shape = &shapes[i];
	}
	if (!moe || !moe->shape) {
		free(moe);
		return NULL;
	}
	moe->hidden = hidden;
	moe->seed = seed;
	moe->gate = calloc((size_t)slow_moe_layers(moe) * moe->shape->experts * hidden, 1);
	moe->state = calloc(hidden, sizeof(*moe->state));
	moe->score = calloc(moe->shape->experts, sizeof(*moe->score));
	moe->choice = calloc(moe->shape->experts, sizeof(*moe->choice));
	moe->order = calloc(moe->shape->experts, sizeof(*moe->order));
	if (!moe->gate || !moe->state || !moe->score || !moe->choice || !moe->order) {
		slow_moe_free(moe);
		return NULL;
	}
	draw_gates(moe);
	return moe;
}

void slow_moe_free(struct slow_moe *moe)
{
	if (!moe)
		return;
	free(moe->gate);
	free(moe->state);
	free(moe->score);
	free(moe->choice);
	free(moe->order);
	free(moe);
}

static double logit(const struct slow_moe *moe, uint32_t layer, uint32_t expert)
{
	const int8_t *gate =
		moe->gate + ((size_t)layer * moe->shape->experts + expert) * moe->hidden;
	int sum = 0;

	for (uint32_t i = 0; i < moe->hidden; i++)
		sum += moe->state[i] * gate[i];
	return (double)sum / (4096.0 * sqrt((double)moe->hidden));
}

static double scored(char rule, double x)
{
	if (rule == 'p')
		return sqrt(x > 20.0 ? x : log1p(exp(x)));
	if (rule == 's')
		return 1.0 / (1.0 + exp(-x));
	return x;
}

static void score_all(struct slow_moe *moe, uint32_t layer)
{
	uint32_t experts = moe->shape->experts;
	double largest = -INFINITY;
	double sum = 0;

	for (uint32_t e = 0; e < experts; e++)
		moe->score[e] = scored(moe->shape->rule, logit(moe, layer, e));
	if (moe->shape->rule != 'm')
		return;
	for (uint32_t e = 0; e < experts; e++)
		largest = fmax(largest, moe->score[e]);
	for (uint32_t e = 0; e < experts; e++)
		sum += exp(moe->score[e] - largest);
	for (uint32_t e = 0; e < experts; e++)
		moe->score[e] = exp(moe->score[e] - largest) / sum;
}

static int better(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	if (x->choice != y->choice)
		return x->choice > y->choice ? -1 : 1;
	return x->id < y->id ? -1 : 1;
}

/* Sorts the experts [from, to) by choice, best first. */
static void sort_experts(struct slow_moe *moe, uint32_t from, uint32_t to)
{
	for (uint32_t e = from; e < to; e++)
		moe->order[e - from] = (struct candidate){moe->choice[e], e};
	qsort(moe->order, to - from, sizeof(*moe->order), better);
}

/* Experts outside of the best groups become impossible. */
static void limit_groups(struct slow_moe *moe)
{
	uint32_t size = moe->shape->experts / moe->shape->groups;
	struct candidate group[32] = {{0, 0}};

	for (uint32_t g = 0; g < moe->shape->groups; g++) {
		sort_experts(moe, g * size, (g + 1) * size);
		group[g] = (struct candidate){moe->order[0].choice + moe->order[1].choice, g};
	}
	qsort(group, moe->shape->groups, sizeof(*group), better);
	for (uint32_t i = moe->shape->groups_kept; i < moe->shape->groups; i++) {
		for (uint32_t e = group[i].id * size; e < (group[i].id + 1) * size; e++)
			moe->choice[e] = -INFINITY;
	}
}

static void choose_by_score(struct slow_moe *moe, uint32_t layer, uint16_t *ids)
{
	uint64_t key = key_of(moe->seed, 3, (uint64_t)slow_moe_layer_id(moe, layer));
	int biased = moe->shape->rule == 'p' || moe->shape->rule == 's';

	score_all(moe, layer);
	for (uint32_t e = 0; e < moe->shape->experts; e++)
		moe->choice[e] = biased ? moe->score[e] + byte_of(key, e) / 1024.0 : moe->score[e];
	if (moe->shape->groups > 1)
		limit_groups(moe);
	sort_experts(moe, 0, moe->shape->experts);
	for (uint32_t k = 0; k < moe->shape->top_k; k++)
		ids[k] = (uint16_t)moe->order[k].id;
}

static void choose_by_table(struct slow_moe *moe, uint32_t layer, int32_t token, uint16_t *ids)
{
	uint64_t table = key_of(moe->seed, 6, (uint64_t)slow_moe_layer_id(moe, layer));
	uint64_t key = key_of(table, 0, (uint32_t)token % moe->shape->vocabulary);
	uint32_t found = 0;

	for (uint64_t n = 0; found < moe->shape->top_k; n++) {
		uint32_t drawn = (uint32_t)(word_of(key, n) % moe->shape->experts);
		int seen = 0;

		for (uint32_t k = 0; k < found; k++)
			seen |= ids[k] == drawn;
		if (!seen)
			ids[found++] = (uint16_t)drawn;
	}
	for (uint32_t k = 0; k < moe->shape->top_k; k++)
		moe->score[ids[k]] = scored(moe->shape->rule, logit(moe, layer, ids[k]));
}

static void weigh(const struct slow_moe *moe, const uint16_t *ids, double *weights)
{
	double sum = 0;

	for (uint32_t k = 0; k < moe->shape->top_k; k++) {
		weights[k] = moe->score[ids[k]];
		if (moe->shape->rule == 't')
			weights[k] = exp(weights[k] - moe->score[ids[0]]);
		sum += weights[k];
	}
	for (uint32_t k = 0; k < moe->shape->top_k; k++)
		weights[k] /= sum;
}

static void add_outputs(struct slow_moe *moe, uint32_t layer, const uint16_t *ids,
			const double *weights)
{
	uint64_t key = key_of(moe->seed, 2, (uint64_t)slow_moe_layer_id(moe, layer));

	for (uint32_t i = 0; i < moe->hidden; i++) {
		double y = 0;

		for (uint32_t k = 0; k < moe->shape->top_k; k++)
			y += floor(256.0 * weights[k]) *
			     byte_of(key, (uint64_t)ids[k] * moe->hidden + i);
		moe->state[i] = wrapped(moe->state[i] + (int)floor(y / 256.0));
	}
}

static void token_routes(struct slow_moe *moe, int32_t token, uint32_t position, uint16_t *ids)
{
	uint64_t embedding = key_of(moe->seed, 4, (uint32_t)token % moe->shape->vocabulary);
	uint64_t place = key_of(moe->seed, 5, position);
	double weights[32];

	for (uint32_t i = 0; i < moe->hidden; i++)
		moe->state[i] = wrapped(byte_of(embedding, i) + byte_of(place, i));
	for (uint32_t l = 0; l < slow_moe_layers(moe); l++, ids += moe->shape->top_k) {
		if (slow_moe_layer_is_hash(moe, l))
			choose_by_table(moe, l, token, ids);
		else
			choose_by_score(moe, l, ids);
		weigh(moe, ids, weights);
		add_outputs(moe, l, ids, weights);
	}
}

void slow_moe_routes(struct slow_moe *moe, const int32_t *token_ids, uint32_t first_position,
		     size_t tokens, uint16_t *ids)
{
	size_t row = (size_t)slow_moe_layers(moe) * moe->shape->top_k;

	for (size_t t = 0; t < tokens; t++)
		token_routes(moe, token_ids[t], first_position + (uint32_t)t, ids + t * row);
}
