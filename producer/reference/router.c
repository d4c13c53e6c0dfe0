/* SPDX-License-Identifier: Apache-2.0 */
/* Scoring rules and top-k. */
#include <math.h>
#include <stdbool.h>

#include "producer/reference/router.h"

static double score(enum score_rule rule, double logit)
{
	switch (rule) {
	case SCORE_SQRT_SOFTPLUS:
		return sqrt(logit > 20.0 ? logit : log1p(exp(logit)));
	case SCORE_SIGMOID:
		return 1.0 / (1.0 + exp(-logit));
	case SCORE_SOFTMAX:
	case SCORE_SOFTMAX_OF_TOPK:
		break;
	}
	return logit;
}

static void softmax(double *values, uint32_t count)
{
	double max = values[0];
	double sum = 0.0;

	for (uint32_t i = 1; i < count; i++)
		max = values[i] > max ? values[i] : max;
	for (uint32_t i = 0; i < count; i++) {
		values[i] = exp(values[i] - max);
		sum += values[i];
	}
	for (uint32_t i = 0; i < count; i++)
		values[i] /= sum;
}

static void normalise(double *weights, uint32_t count)
{
	double sum = 0.0;

	for (uint32_t i = 0; i < count; i++)
		sum += weights[i];
	for (uint32_t i = 0; i < count; i++)
		weights[i] /= sum;
}

/* The best so far, best first; ids are offered in rising order, so that an equal
 * one never goes before an earlier one. */
struct best {
	double choice[ROUTER_TOP_K_MAX];
	uint16_t id[ROUTER_TOP_K_MAX];
	uint32_t count, room;
};

static inline void offer(struct best *best, uint16_t id, double choice)
{
	uint32_t at;

	if (best->count == best->room) {
		if (!(choice > best->choice[best->count - 1]))
			return;
		best->count--;
	}
	for (at = best->count; at > 0 && choice > best->choice[at - 1]; at--) {
		best->choice[at] = best->choice[at - 1];
		best->id[at] = best->id[at - 1];
	}
	best->choice[at] = choice;
	best->id[at] = id;
	best->count++;
}

static double two_largest(const double *scores, const double *bias, uint32_t from, uint32_t to)
{
	struct best best = {.room = 2};

	for (uint32_t e = from; e < to; e++)
		offer(&best, (uint16_t)e, bias ? scores[e] + bias[e] : scores[e]);
	return best.choice[0] + best.choice[1];
}

static void keep_groups(const struct moe_model *model, const double *scores, const double *bias,
			bool *kept)
{
	struct best best = {.room = model->groups_kept};
	uint32_t size = model->experts / model->groups;

	for (uint32_t g = 0; g < model->groups; g++) {
		offer(&best, (uint16_t)g, two_largest(scores, bias, g * size, (g + 1) * size));
		kept[g] = false;
	}
	for (uint32_t i = 0; i < best.count; i++)
		kept[best.id[i]] = true;
}

static void offer_all(const struct moe_model *model, const double *scores, const double *bias,
		      struct best *best)
{
	uint32_t size = model->experts / model->groups;
	bool kept[ROUTER_GROUPS_MAX] = {[0] = true};

	if (model->groups > 1)
		keep_groups(model, scores, bias, kept);
	for (uint32_t g = 0; g < model->groups; g++) {
		for (uint32_t e = g * size; kept[g] && e < (g + 1) * size; e++)
			offer(best, (uint16_t)e, bias ? scores[e] + bias[e] : scores[e]);
	}
}

void router_select(const struct moe_model *model, double *logits, const double *bias, uint16_t *ids,
		   double *weights)
{
	struct best best = {.room = model->top_k};

	if (model->rule == SCORE_SOFTMAX)
		softmax(logits, model->experts);
	else
		for (uint32_t e = 0; e < model->experts; e++)
			logits[e] = score(model->rule, logits[e]);
	offer_all(model, logits, bias, &best);
	for (uint32_t k = 0; k < model->top_k; k++) {
		ids[k] = best.id[k];
		weights[k] = logits[best.id[k]];
	}
	if (model->rule == SCORE_SOFTMAX_OF_TOPK)
		softmax(weights, model->top_k);
	else
		normalise(weights, model->top_k);
}

void router_hash_weights(const struct moe_model *model, const double *logits, double *weights)
{
	for (uint32_t k = 0; k < model->top_k; k++)
		weights[k] = score(model->rule, logits[k]);
	normalise(weights, model->top_k);
}
