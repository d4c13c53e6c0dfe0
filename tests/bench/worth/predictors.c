/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/bench/worth/predictors.h"

static void class_of(const struct corpus *corpus, uint32_t request, char text[16])
{
	snprintf(text, 16, "%u", corpus->request[request].collection);
}

/* ---- learning ------------------------------------------------------------- */

/* What the library keeps: counts as a signature has them. */
static int keep(const struct knowledge *knowledge, uint32_t request, const uint32_t *visits,
		uint16_t *signature)
{
	const struct corpus *corpus = knowledge->corpus;
	char id[16], collection[16];
	const struct r3ring_labels labels = {.class_name = collection};
	const struct r3ring_finished finished = {
		.id = id,
		.layers = corpus->trace.layer_count,
		.experts = corpus->trace.experts,
		.counts = signature,
	};
	int r;

	snprintf(id, sizeof(id), "%u", request);
	class_of(corpus, request, collection);
	for (uint32_t i = 0; i < corpus->cells; i++)
		signature[i] = visits[i] < UINT16_MAX ? (uint16_t)visits[i] : UINT16_MAX;
	r = r3ring_history_label(knowledge->history, id, &labels);
	return r ? r : r3ring_history_add(knowledge->history, &finished);
}

static int learn(struct knowledge *knowledge, uint32_t request, uint32_t *visits,
		 uint16_t *signature)
{
	const struct corpus *corpus = knowledge->corpus;

	memset(visits, 0, corpus->cells * sizeof(*visits));
	corpus_count(corpus, request, 0, corpus->request[request].rows, visits);
	for (uint32_t cell = 0; cell < corpus->cells; cell++)
		knowledge->global[cell] += visits[cell];
	return keep(knowledge, request, visits, signature);
}

static int learn_all(struct knowledge *knowledge)
{
	const struct corpus *corpus = knowledge->corpus;
	uint32_t *visits = calloc(corpus->cells, sizeof(*visits));
	uint16_t *signature = calloc(corpus->cells, sizeof(*signature));
	int r = visits && signature ? 0 : -ENOMEM;

	for (uint32_t i = 0; r == 0 && i < corpus->count; i++) {
		if (knowledge->fitted[i])
			r = learn(knowledge, i, visits, signature);
	}
	free(visits);
	free(signature);
	return r;
}

int knowledge_make(struct knowledge *knowledge, const struct corpus *corpus, const bool *fitted)
{
	const struct r3ring_history_options options = {
		.size = sizeof(options), .max_requests = corpus->count, .max_bytes = UINT64_MAX};
	int r;

	*knowledge = (struct knowledge){.corpus = corpus, .fitted = fitted};
	knowledge->global = calloc(corpus->cells, sizeof(*knowledge->global));
	r = knowledge->global ? r3ring_history_create(&knowledge->history, &options, NULL)
			      : -ENOMEM;
	if (r == 0)
		r = learn_all(knowledge);
	if (r)
		knowledge_free(knowledge);
	return r;
}

void knowledge_free(struct knowledge *knowledge)
{
	free(knowledge->global);
	r3ring_history_destroy(knowledge->history);
}

/* ---- predicting ----------------------------------------------------------- */

int knowledge_predict(const struct knowledge *knowledge, enum r3ring_predictor predictor,
		      const struct moment *at, uint32_t tokens, struct r3ring_demand *demand)
{
	const struct corpus *corpus = knowledge->corpus;
	uint32_t *own = calloc(corpus->cells, sizeof(*own));
	uint32_t *counts = calloc(corpus->cells, sizeof(*counts));
	struct r3ring_evidence evidence = {0};
	char collection[16];
	const struct r3ring_known known = {
		.shape = {corpus->trace.layer_count, corpus->trace.experts, corpus->trace.top_k},
		.own = {.counts = own},
		.global = {.counts = knowledge->global},
		.history = knowledge->history,
		.labels = {.class_name = collection},
	};
	int r = own && counts ? 0 : -ENOMEM;

	if (r == 0) {
		class_of(corpus, at->request, collection);
		corpus_count(corpus, at->request, 0, at->row, own);
		r = r3ring_predict(predictor, &known, counts, &evidence, NULL);
	}
	if (r == 0 || r == -ENODATA)
		r = r3ring_demand_predict(demand, &evidence, tokens);
	free(own);
	free(counts);
	return r;
}
