/* SPDX-License-Identifier: Apache-2.0 */
/*
 * At rows 32, 64, 128 and 256 of each tested request its next 32 rows are foretold, layer by
 * layer, by r3ring_demand_predict() from each predictor's counts. Cross-entropy: bits of a
 * visit, had it been coded by what was foretold (uniform: log2 of the experts). Recall: share
 * of the visits that fell on the experts foretold as the 2 x top_k likeliest.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <r3ring/reserve.h>

#include "tests/bench/worth/figures.h"
#include "tests/bench/worth/foretell.h"
#include "tests/bench/worth/predictors.h"

#define NEXT_ROWS 32u

static const uint32_t known_rows[] = {32, 64, 128, 256};
#define KNOWN (sizeof(known_rows) / sizeof(*known_rows))

/* A request's class is the collection that it is from. */
static const enum r3ring_predictor predictors[] = {
	R3RING_PREDICT_UNIFORM, R3RING_PREDICT_GLOBAL, R3RING_PREDICT_CLASS,
	R3RING_PREDICT_SIMILAR, R3RING_PREDICT_OWN,
};
#define PREDICTORS (sizeof(predictors) / sizeof(*predictors))

struct score {
	double bits, recall;
	uint32_t count;
};

struct desk {
	struct r3ring_demand *demand;
	uint32_t *next;  /* [cells] visits that came */
	uint64_t *units; /* [experts] foretold in a layer */
};

static double probability(const struct trace *trace, uint64_t units)
{
	return ((double)units + 0.5) / ((double)R3RING_DEMAND_TOKEN * NEXT_ROWS * trace->top_k);
}

/* How many experts are foretold as likelier, of equals those with lower numbers. */
static uint32_t rank_of(const uint64_t *units, uint32_t experts, uint32_t expert)
{
	uint32_t rank = 0;

	for (uint32_t other = 0; other < experts; other++)
		rank += units[other] > units[expert] ||
			(units[other] == units[expert] && other < expert);
	return rank;
}

static void add_score(const struct desk *desk, const struct trace *trace, struct score *score)
{
	double bits = 0, hits = 0, visits = 0;

	for (uint32_t layer = 0; layer < trace->layer_count; layer++) {
		const uint32_t *next = desk->next + layer * trace->experts;

		for (uint32_t expert = 0; expert < trace->experts; expert++)
			desk->units[expert] = r3ring_demand_of(desk->demand, layer, expert);
		for (uint32_t expert = 0; expert < trace->experts; expert++) {
			if (!next[expert])
				continue;
			bits -= next[expert] * log2(probability(trace, desk->units[expert]));
			visits += next[expert];
			if (rank_of(desk->units, trace->experts, expert) < 2 * trace->top_k)
				hits += next[expert];
		}
	}
	score->bits += bits / visits;
	score->recall += hits / visits;
	score->count++;
}

static int foretell_request(const struct knowledge *knowledge, enum r3ring_predictor predictor,
			    const struct moment *at, const struct desk *desk, struct score *score)
{
	const struct corpus *corpus = knowledge->corpus;
	int r;

	if (corpus->request[at->request].rows < at->row + NEXT_ROWS)
		return 0;
	r = knowledge_predict(knowledge, predictor, at, NEXT_ROWS, desk->demand);
	if (r)
		return r;
	memset(desk->next, 0, corpus->cells * sizeof(*desk->next));
	corpus_count(corpus, at->request, at->row, at->row + NEXT_ROWS, desk->next);
	add_score(desk, &corpus->trace, score);
	return 0;
}

/* All tested requests. */
static int foretell_tested(const struct knowledge *knowledge, enum r3ring_predictor predictor,
			   uint32_t row, const struct desk *desk, struct score *score)
{
	int r = 0;

	*score = (struct score){0};
	for (uint32_t i = 0; !r && i < knowledge->corpus->count; i++) {
		const struct moment at = {.request = i, .row = row};

		if (!knowledge->fitted[i])
			r = foretell_request(knowledge, predictor, &at, desk, score);
	}
	return r;
}

/* One split: the mean over its tested requests. */
static int foretell_split(const struct corpus *corpus, uint64_t seed, const struct desk *desk,
			  struct score scores[][KNOWN])
{
	bool *fitted = calloc(corpus->count, sizeof(*fitted));
	struct knowledge knowledge;
	int r = 0;

	if (!fitted)
		return -ENOMEM;
	corpus_split(corpus, seed, fitted);
	if (knowledge_make(&knowledge, corpus, fitted)) {
		free(fitted);
		return -ENOMEM;
	}
	for (uint32_t i = 0; !r && i < PREDICTORS * KNOWN; i++)
		r = foretell_tested(&knowledge, predictors[i / KNOWN], known_rows[i % KNOWN], desk,
				    &scores[i / KNOWN][i % KNOWN]);
	knowledge_free(&knowledge);
	free(fitted);
	return r;
}

static void report(uint32_t p, uint32_t k, struct figures *bits, struct figures *recall,
		   json_t *json)
{
	const char *name = r3ring_predictor_name(predictors[p]);

	printf("%-9s %5u   %6.3f +- %.3f   %6.3f +- %.3f\n", name, known_rows[k],
	       figures_mean(bits), figures_interval(bits), figures_mean(recall),
	       figures_interval(recall));
	json_array_append_new(
		json, json_pack("{s:s, s:i, s:f, s:f, s:f, s:f}", "predictor", name, "known_rows",
				(int)known_rows[k], "bits", figures_mean(bits), "bits_interval",
				figures_interval(bits), "recall", figures_mean(recall),
				"recall_interval", figures_interval(recall)));
}

int foretell(const struct corpus *corpus, uint32_t seeds, json_t *json)
{
	const struct trace *trace = &corpus->trace;
	const struct r3ring_demand_shape shape = {trace->layer_count, trace->experts, trace->top_k};
	struct figures bits[PREDICTORS][KNOWN] = {0}, recall[PREDICTORS][KNOWN] = {0};
	struct score scores[PREDICTORS][KNOWN];
	struct desk desk = {.next = calloc(corpus->cells, sizeof(uint32_t)),
			    .units = calloc(trace->experts, sizeof(uint64_t))};
	int r = desk.next && desk.units ? r3ring_demand_create(&desk.demand, &shape) : -ENOMEM;

	for (uint64_t seed = 1; !r && seed <= seeds; seed++) {
		r = foretell_split(corpus, seed, &desk, scores);
		for (uint32_t i = 0; !r && i < PREDICTORS * KNOWN; i++) {
			const struct score *score = &scores[i / KNOWN][i % KNOWN];

			if (!score->count)
				continue;
			figures_add(&bits[i / KNOWN][i % KNOWN], score->bits / score->count);
			figures_add(&recall[i / KNOWN][i % KNOWN], score->recall / score->count);
		}
	}
	if (!r)
		printf("\nforetelling the next %u rows\n"
		       "predictor  rows   bits a visit      recall of the %u likeliest\n",
		       NEXT_ROWS, 2 * trace->top_k);
	/* So long a request may there be none. */
	for (uint32_t i = 0; !r && i < PREDICTORS * KNOWN; i++) {
		if (bits[i / KNOWN][i % KNOWN].count)
			report(i / KNOWN, i % KNOWN, &bits[i / KNOWN][i % KNOWN],
			       &recall[i / KNOWN][i % KNOWN], json);
	}
	r3ring_demand_destroy(desk.demand);
	free(desk.next);
	free(desk.units);
	return r;
}
