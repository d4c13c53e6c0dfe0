/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/bench/worth/predictors.h"

#define NEIGHBOURS 3

/* What the library compares: counts as a signature has them. */
static void as_signature(const uint32_t *counts, uint32_t cells, uint16_t *signature)
{
	for (uint32_t i = 0; i < cells; i++)
		signature[i] = counts[i] < UINT16_MAX ? (uint16_t)counts[i] : UINT16_MAX;
}

/* Takes in the requests that are fitted on. Returns 0 or -ENOMEM, and frees it then. */
static int learn(struct knowledge *knowledge)
{
	const struct corpus *corpus = knowledge->corpus;
	uint32_t *visits = calloc(corpus->cells, sizeof(*visits));

	if (!visits) {
		knowledge_free(knowledge);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < corpus->count; i++) {
		if (!knowledge->fitted[i])
			continue;
		memset(visits, 0, corpus->cells * sizeof(*visits));
		corpus_count(corpus, i, 0, corpus->request[i].rows, visits);
		as_signature(visits, corpus->cells,
			     knowledge->signature + (size_t)i * corpus->cells);
		for (uint32_t cell = 0; cell < corpus->cells; cell++)
			knowledge->global[cell] += visits[cell];
	}
	free(visits);
	return 0;
}

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
	return learn(knowledge);
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

/* The fitted request most like @own that is not taken yet; the number of requests when there
 * is none. */
static uint32_t find_nearest(const struct knowledge *knowledge, const uint16_t *own,
			     const bool *taken)
{
	const struct corpus *corpus = knowledge->corpus;
	uint32_t nearest = corpus->count;
	double most = -1;

	for (uint32_t i = 0; i < corpus->count; i++) {
		double near;

		if (!knowledge->fitted[i] || taken[i])
			continue;
		near = r3ring_signature_similarity(
			own, knowledge->signature + (size_t)i * corpus->cells,
			corpus->trace.layer_count, corpus->trace.experts);
		if (near > most) {
			most = near;
			nearest = i;
		}
	}
	return nearest;
}

/* The visits of the most similar finished requests. */
static void fill_similar(const struct knowledge *knowledge, uint32_t request, uint32_t row,
			 uint32_t *counts)
{
	const struct corpus *corpus = knowledge->corpus;
	uint32_t *visits = calloc(corpus->cells, sizeof(*visits));
	uint16_t *own = calloc(corpus->cells, sizeof(*own));
	bool *taken = calloc(corpus->count, sizeof(*taken));

	if (visits && own && taken) {
		corpus_count(corpus, request, 0, row, visits);
		as_signature(visits, corpus->cells, own);
	}
	for (int n = 0; visits && own && taken && n < NEIGHBOURS; n++) {
		uint32_t nearest = find_nearest(knowledge, own, taken);

		if (nearest == corpus->count)
			break;
		taken[nearest] = true;
		for (uint32_t i = 0; i < corpus->cells; i++)
			counts[i] += knowledge->signature[(size_t)nearest * corpus->cells + i];
	}
	free(visits);
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
