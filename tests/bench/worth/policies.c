/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/bench/worth/policies.h"

#define LOOK_AHEAD 32u
#define AFFINE_SLACK 2u

static uint32_t load_of(const struct worker *worker)
{
	return worker->count + worker->end_waiting - worker->first_waiting;
}

/* ---- without routes ------------------------------------------------------- */

/* The first worker with a free place, else the one with the fewest requests. */
static uint32_t choose_least(struct placement *placement, const struct policy *policy,
			     const struct running *arrival)
{
	const struct cluster *cluster = placement->cluster;
	uint32_t least = 0;

	(void)policy;
	(void)arrival;
	for (uint32_t i = 1; i < cluster->workers; i++) {
		if (load_of(&cluster->worker[i]) < load_of(&cluster->worker[least]))
			least = i;
	}
	return least;
}

static uint32_t choose_first(struct placement *placement, const struct policy *policy,
			     const struct running *arrival)
{
	const struct cluster *cluster = placement->cluster;

	(void)policy;
	for (uint32_t i = 0; i < cluster->workers; i++) {
		if (load_of(&cluster->worker[i]) < BATCH)
			return i;
	}
	return choose_least(placement, policy, arrival);
}

static uint32_t choose_next(struct placement *placement, const struct policy *policy,
			    const struct running *arrival)
{
	(void)policy;
	(void)arrival;
	return placement->turn++ % placement->cluster->workers;
}

/* Requests of one subject share a prefix, and so a worker, unless that is full. */
static uint32_t choose_affine(struct placement *placement, const struct policy *policy,
			      const struct running *arrival)
{
	const struct cluster *cluster = placement->cluster;
	uint32_t home = cluster->corpus->request[arrival->request].subject % cluster->workers;

	(void)policy;
	return load_of(&cluster->worker[home]) < BATCH ? home
						       : choose_least(placement, policy, arrival);
}

/* ---- by routes that are expected ------------------------------------------ */

static int predict(struct placement *placement, const struct policy *policy,
		   const struct running *one)
{
	const struct moment at = {.request = one->request, .row = one->row};

	return knowledge_predict(placement->knowledge, policy->predictor, &at, 1,
				 placement->demand);
}

int placement_reserve(struct placement *placement, const struct policy *policy, uint32_t worker,
		      const struct running *one, uint64_t *reservation)
{
	struct r3ring_reserve_answer answer;
	char key[16];
	int r;

	*reservation = 0;
	if (policy->predictor == R3RING_PREDICTORS)
		return 0;
	snprintf(key, sizeof(key), "%u", one->number);
	r = predict(placement, policy, one);
	if (r == 0)
		r = r3ring_book_make(placement->book[worker],
				     &(struct r3ring_reserve_request){.key = key},
				     placement->demand, &answer);
	*reservation = answer.reservation;
	return r;
}

int placement_update(struct placement *placement, const struct policy *policy, uint32_t worker,
		     const struct running *one, uint64_t reservation)
{
	struct r3ring_reserve_answer answer;
	int r;

	if (policy->predictor == R3RING_PREDICTORS)
		return 0;
	r = predict(placement, policy, one);
	return r ? r
		 : r3ring_book_update(placement->book[worker], reservation, placement->demand,
				      &answer);
}

/* Where the tightest GPU would have the most room left, of those with a free place. */
static uint32_t choose_by_book(struct placement *placement, const struct policy *policy,
			       const struct running *arrival)
{
	const struct cluster *cluster = placement->cluster;
	uint32_t best = choose_least(placement, policy, arrival);
	int64_t most = INT64_MIN;

	if (predict(placement, policy, arrival))
		return best;
	for (uint32_t i = 0; i < cluster->workers; i++) {
		struct r3ring_reserve_answer answer;

		if (load_of(&cluster->worker[i]) >= BATCH)
			continue;
		r3ring_book_ask(placement->book[i], placement->demand, &answer);
		if (answer.margin > most) {
			most = answer.margin;
			best = i;
		}
	}
	return best;
}

/* How many units of the demand fall on experts that are visited there anyway: a step reads such
 * an expert's weights whether one more row wants them or not. */
static double overlap(struct placement *placement, uint32_t worker)
{
	const uint64_t *load = placement->expert_load;
	double units = 0;

	r3ring_book_load(placement->book[worker], NULL, placement->expert_load);
	for (uint32_t i = 0; i < placement->cluster->corpus->cells; i++)
		units += (double)placement->units[i] *
			 (1 - exp(-(double)load[i] / R3RING_DEMAND_TOKEN));
	return units;
}

static void spell_out(struct placement *placement)
{
	const uint32_t experts = placement->cluster->corpus->trace.experts;

	for (uint32_t i = 0; i < placement->cluster->corpus->cells; i++)
		placement->units[i] = r3ring_demand_of(placement->demand, i / experts, i % experts);
}

/* Where the request's experts are in use already, of the workers with hardly more to do than
 * the one that has least. */
static uint32_t choose_by_overlap(struct placement *placement, const struct policy *policy,
				  const struct running *arrival)
{
	const struct cluster *cluster = placement->cluster;
	uint32_t least = choose_least(placement, policy, arrival), best = least;
	double most = -1;

	if (predict(placement, policy, arrival))
		return least;
	spell_out(placement);
	for (uint32_t i = 0; i < cluster->workers; i++) {
		uint32_t load = load_of(&cluster->worker[i]);
		double units;

		if (load >= BATCH || load > load_of(&cluster->worker[least]) + AFFINE_SLACK)
			continue;
		units = overlap(placement, i);
		if (units > most) {
			most = units;
			best = i;
		}
	}
	return best;
}

/* ---- by routes that will be ----------------------------------------------- */

/* Where all that run, itself included, lose the least time over its next rows. */
static uint32_t choose_by_oracle(struct placement *placement, const struct policy *policy,
				 const struct running *arrival)
{
	const struct cluster *cluster = placement->cluster;
	uint32_t best = choose_least(placement, policy, arrival);
	double least = -1;

	(void)policy;
	for (uint32_t i = 0; i < cluster->workers; i++) {
		const struct worker *worker = &cluster->worker[i];
		struct running with[BATCH];
		double lost;

		if (load_of(worker) >= BATCH)
			continue;
		memcpy(with, worker->running, worker->count * sizeof(*with));
		with[worker->count] = *arrival;
		lost = cluster_cost(cluster, with, worker->count + 1, LOOK_AHEAD) *
			       (worker->count + 1) -
		       cluster_cost(cluster, with, worker->count, LOOK_AHEAD) * worker->count;
		if (least < 0 || lost < least) {
			least = lost;
			best = i;
		}
	}
	return best;
}

/* ---- all of them ---------------------------------------------------------- */

const struct policy policies[] = {
	{"oracle", choose_by_oracle, R3RING_PREDICTORS},
	{"first come", choose_first, R3RING_PREDICTORS},
	{"round robin", choose_next, R3RING_PREDICTORS},
	{"least loaded", choose_least, R3RING_PREDICTORS},
	{"prefix-affine", choose_affine, R3RING_PREDICTORS},
	{"reserve: global", choose_by_book, R3RING_PREDICT_GLOBAL},
	{"reserve: own", choose_by_book, R3RING_PREDICT_OWN},
	{"reserve: similar", choose_by_book, R3RING_PREDICT_SIMILAR},
	{"alike: own", choose_by_overlap, R3RING_PREDICT_OWN},
	{"alike: similar", choose_by_overlap, R3RING_PREDICT_SIMILAR},
};
const uint32_t policy_count = sizeof(policies) / sizeof(*policies);

/* ---- opening and closing -------------------------------------------------- */

int placement_open(struct placement *placement, struct cluster *cluster,
		   const struct knowledge *knowledge)
{
	const struct trace *trace = &cluster->corpus->trace;
	const struct r3ring_book_options options = {
		.size = sizeof(options),
		.shape = {trace->layer_count, trace->experts, trace->top_k},
		.gpus = GPUS,
		.capacity = R3RING_DEMAND_TOKENS_MAX,
	};
	int r = r3ring_demand_create(&placement->demand, &options.shape);

	placement->cluster = cluster;
	placement->knowledge = knowledge;
	placement->expert_load = calloc(cluster->corpus->cells, sizeof(*placement->expert_load));
	placement->units = calloc(cluster->corpus->cells, sizeof(*placement->units));
	if (!placement->expert_load || !placement->units)
		r = -ENOMEM;
	for (uint32_t i = 0; !r && i < cluster->workers; i++) {
		r = r3ring_book_create(&placement->book[i], &options, NULL);
		if (!r)
			r = r3ring_book_map(placement->book[i], cluster->map, NULL);
	}
	return r;
}

void placement_close(struct placement *placement)
{
	for (uint32_t i = 0; i < WORKERS_MAX; i++)
		r3ring_book_destroy(placement->book[i]);
	r3ring_demand_destroy(placement->demand);
	free(placement->expert_load);
	free(placement->units);
}
