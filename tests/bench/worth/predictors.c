/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/bench/worth/predictors.h"

#define NEIGHBOURS 3

int knowledge_make(struct knowledge *knowledge, const struct corpus *corpus, const bool *fitted)
{
	knowledge->corpus = corpus;
	knowledge->fitted = fitted;
	knowledge->global = calloc(corpus->cells, sizeof(*knowledge->global));
	knowledge->signature =
		calloc((size_t)corpus->count * corpus->cells, sizeof(*knowledge->signature));
	if (!knowledge->global || !knowledge->signature) {
		knowledge_free(knowledge);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < corpus->count; i++) {
		uint32_t *signature = knowledge->signature + (size_t)i * corpus->cells;

		if (!fitted[i])
			continue;
		corpus_count(corpus, i, 0, corpus->request[i].rows, signature);
		for (uint32_t cell = 0; cell < corpus->cells; cell++)
			knowledge->global[cell] += signature[cell];
	}
	return 0;
}

void knowledge_free(struct knowledge *knowledge)
{
	free(knowledge->global);
	free(knowledge->signature);
}

/* ---- the predictors ------------------------------------------------------- */

static void fill_uniform(const struct knowledge *knowledge, uint32_t request, uint32_t row,
			 uint32_t *counts)
{
	(void)knowledge;
	(void)request;
	(void)row;
	(void)counts;
}

static void fill_global(const struct knowledge *knowledge, uint32_t request, uint32_t row,
			uint32_t *counts)
{
	(void)request;
	(void)row;
	memcpy(counts, knowledge->global, knowledge->corpus->cells * sizeof(*counts));
}

static void fill_own(const struct knowledge *knowledge, uint32_t request, uint32_t row,
		     uint32_t *counts)
{
	corpus_count(knowledge->corpus, request, 0, row, counts);
}

/* Cosine of the angle between two counts of visits. */
static double similarity(const uint32_t *a, const uint32_t *b, uint32_t cells)
{
	double ab = 0, aa = 0, bb = 0;

	for (uint32_t i = 0; i < cells; i++) {
		ab += (double)a[i] * b[i];
		aa += (double)a[i] * a[i];
		bb += (double)b[i] * b[i];
	}
	return aa > 0 && bb > 0 ? ab / sqrt(aa * bb) : 0;
}

/* The visits of the most similar finished requests. */
static void fill_similar(const struct knowledge *knowledge, uint32_t request, uint32_t row,
			 uint32_t *counts)
{
	const struct corpus *corpus = knowledge->corpus;
	uint32_t *own = calloc(corpus->cells, sizeof(*own));
	bool *taken = calloc(corpus->count, sizeof(*taken));

	if (own && taken)
		corpus_count(corpus, request, 0, row, own);
	for (int n = 0; own && taken && n < NEIGHBOURS; n++) {
		const uint32_t *nearest = NULL;
		double most = -1;
		uint32_t index = 0;

		for (uint32_t i = 0; i < corpus->count; i++) {
			const uint32_t *other = knowledge->signature + (size_t)i * corpus->cells;
			double near = knowledge->fitted[i] && !taken[i]
					      ? similarity(own, other, corpus->cells)
					      : -1;

			if (near > most) {
				most = near;
				nearest = other;
				index = i;
			}
		}
		if (!nearest)
			break;
		taken[index] = true;
		for (uint32_t cell = 0; cell < corpus->cells; cell++)
			counts[cell] += nearest[cell];
	}
	free(own);
	free(taken);
}

const struct predictor predictors[] = {
	{"uniform", fill_uniform},
	{"global", fill_global},
	{"own", fill_own},
	{"similar", fill_similar},
};
const uint32_t predictor_count = sizeof(predictors) / sizeof(*predictors);

const struct predictor *predictor_named(const char *name)
{
	for (uint32_t i = 0; i < predictor_count; i++) {
		if (strcmp(predictors[i].name, name) == 0)
			return &predictors[i];
	}
	return NULL;
}
