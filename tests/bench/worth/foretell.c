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

struct score {
	double bits, recall;
	uint32_t count;
};

static double probability(const struct r3ring_demand *demand, const struct trace *trace,
			  uint32_t layer, uint32_t expert)
{
	return ((double)r3ring_demand_of(demand, layer, expert) + 0.5) /
	       ((double)R3RING_DEMAND_TOKEN * NEXT_ROWS * trace->top_k);
}

/* How many experts are foretold as likelier, of equals those with lower numbers. */
static uint32_t rank_of(const struct r3ring_demand *demand, const struct trace *trace,
			uint32_t layer, uint32_t expert)
{
	uint64_t own = r3ring_demand_of(demand, layer, expert);
	uint32_t rank = 0;

	for (uint32_t other = 0; other < trace->experts; other++) {
		uint64_t units = r3ring_demand_of(demand, layer, other);

		rank += units > own || (units == own && other < expert);
	}
	return rank;
}

static void add_score(const struct r3ring_demand *demand, const struct trace *trace,
		      const uint32_t *next, struct score *score)
{
	double bits = 0, hits = 0, visits = 0;

	for (uint32_t layer = 0; layer < trace->layer_count; layer++) {
		for (uint32_t expert = 0; expert < trace->experts; expert++) {
			uint32_t count = next[layer * trace->experts + expert];

			if (!count)
				continue;
			bits -= count * log2(probability(demand, trace, layer, expert));
			visits += count;
			if (rank_of(demand, trace, layer, expert) < 2 * trace->top_k)
				hits += count;
		}
	}
	score->bits += bits / visits;
	score->recall += hits / visits;
	score->count++;
}

struct desk {
	struct r3ring_demand *demand;
	uint32_t *counts, *next; /* [cells] */
};

static void foretell_request(const struct knowledge *knowledge, const struct predictor *predictor,
			     uint32_t request, uint32_t row, const struct desk *desk,
			     struct score *score)
{
	const struct corpus *corpus = knowledge->corpus;
	const struct r3ring_evidence evidence = {.counts = desk->counts};

	if (corpus->request[request].rows < row + NEXT_ROWS)
		return;
	memset(desk->counts, 0, corpus->cells * sizeof(*desk->counts));
	memset(desk->next, 0, corpus->cells * sizeof(*desk->next));
	predictor->fill(knowledge, request, row, desk->counts);
	corpus_count(corpus, request, row, row + NEXT_ROWS, desk->next);
	r3ring_demand_predict(desk->demand, &evidence, NEXT_ROWS);
	add_score(desk->demand, &corpus->trace, desk->next, score);
}

/* One split: the mean over its tested requests. */
static int foretell_split(const struct corpus *corpus, uint64_t seed, const struct desk *desk,
			  struct score scores[][KNOWN])
{
	bool *fitted = calloc(corpus->count, sizeof(*fitted));
	struct knowledge knowledge;

	if (!fitted)
		return -ENOMEM;
	corpus_split(corpus, seed, fitted);
	if (knowledge_make(&knowledge, corpus, fitted)) {
		free(fitted);
		return -ENOMEM;
	}
	for (uint32_t p = 0; p < predictor_count; p++) {
		for (uint32_t k = 0; k < KNOWN; k++) {
			scores[p][k] = (struct score){0};
			for (uint32_t i = 0; i < corpus->count; i++) {
				if (!fitted[i])
					foretell_request(&knowledge, &predictors[p], i,
							 known_rows[k], desk, &scores[p][k]);
			}
		}
	}
	knowledge_free(&knowledge);
	free(fitted);
	return 0;
}

static void report(uint32_t p, uint32_t k, struct figures *bits, struct figures *recall,
		   json_t *json)
{
	printf("%-9s %5u   %6.3f +- %.3f   %6.3f +- %.3f\n", predictors[p].name, known_rows[k],
	       figures_mean(bits), figures_interval(bits), figures_mean(recall),
	       figures_interval(recall));
	json_array_append_new(
		json, json_pack("{s:s, s:i, s:f, s:f, s:f, s:f}", "predictor", predictors[p].name,
				"known_rows", (int)known_rows[k], "bits", figures_mean(bits),
				"bits_interval", figures_interval(bits), "recall",
				figures_mean(recall), "recall_interval", figures_interval(recall)));
}

int foretell(const struct corpus *corpus, uint32_t seeds, json_t *json)
{
	const struct trace *trace = &corpus->trace;
	const struct r3ring_demand_shape shape = {trace->layer_count, trace->experts, trace->top_k};
	struct figures bits[8][KNOWN] = {0}, recall[8][KNOWN] = {0};
	struct score scores[8][KNOWN];
	struct desk desk = {
		.counts = calloc(corpus->cells, sizeof(uint32_t)),
		.next = calloc(corpus->cells, sizeof(uint32_t)),
	};
	int r = desk.counts && desk.next ? r3ring_demand_create(&desk.demand, &shape) : -ENOMEM;

	for (uint64_t seed = 1; !r && seed <= seeds; seed++) {
		r = foretell_split(corpus, seed, &desk, scores);
		for (uint32_t i = 0; !r && i < predictor_count * KNOWN; i++) {
			const struct score *score = &scores[i / KNOWN][i % KNOWN];

			figures_add(&bits[i / KNOWN][i % KNOWN], score->bits / score->count);
			figures_add(&recall[i / KNOWN][i % KNOWN], score->recall / score->count);
		}
	}
	if (!r)
		printf("\nforetelling the next %u rows\npredictor  rows   bits a visit      recall "
		       "of "
		       "the %u likeliest\n",
		       NEXT_ROWS, 2 * trace->top_k);
	for (uint32_t i = 0; !r && i < predictor_count * KNOWN; i++)
		report(i / KNOWN, i % KNOWN, &bits[i / KNOWN][i % KNOWN],
		       &recall[i / KNOWN][i % KNOWN], json);
	r3ring_demand_destroy(desk.demand);
	free(desk.counts);
	free(desk.next);
	return r;
}
