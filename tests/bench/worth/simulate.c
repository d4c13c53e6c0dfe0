/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/bench/worth/simulate.h"

/* Requests come as fast as the workers would take them, did each always have this many. */
#define TARGET_BATCH (0.75 * BATCH)
#define UPDATE_ROWS 32u
#define MEASURE_COST_STEPS 50u

struct arrival {
	uint32_t request;
	uint32_t worker;
	double at_us;
	uint64_t reservation;
};

struct step_time {
	double us;
	uint32_t tokens;
};

struct simulation {
	const struct setting *setting;
	const struct policy *policy;
	struct cluster cluster;
	struct placement placement;
	struct arrival arrival[ARRIVALS];
	struct step_time *step;
	size_t steps, room;
	double imbalance; /* sum over steps */
	double token_us[ARRIVALS];
	uint32_t ended;
	int error;
};

/* ---- arrivals ------------------------------------------------------------- */

static uint32_t draw_tested(const struct setting *setting, uint64_t *random)
{
	for (;;) {
		uint32_t request = draw(random, setting->corpus->count);

		if (!setting->knowledge->fitted[request])
			return request;
	}
}

/* Time between two arrivals that keeps the workers as full as is wanted: by what a step of so
 * many takes, whoever they are. */
static double usual_gap(const struct simulation *simulation, uint64_t random)
{
	const struct setting *setting = simulation->setting;
	uint32_t batch = (uint32_t)TARGET_BATCH;
	double us = 0, rows = 0;

	for (uint32_t i = 0; i < MEASURE_COST_STEPS; i++) {
		struct running running[BATCH];

		for (uint32_t j = 0; j < batch; j++) {
			running[j].request = draw_tested(setting, &random);
			running[j].row = PROMPT_ROWS;
			rows += setting->corpus->request[running[j].request].rows - PROMPT_ROWS;
		}
		us += cluster_cost(&simulation->cluster, running, batch, 1);
	}
	us /= MEASURE_COST_STEPS;
	rows /= MEASURE_COST_STEPS * batch;
	return us * rows / (TARGET_BATCH * setting->workers);
}

static void make_arrivals(struct simulation *simulation)
{
	const struct setting *setting = simulation->setting;
	uint64_t random = setting->seed * 7919 + 1;
	double gap = usual_gap(simulation, random), at = 0;

	for (uint32_t i = 0; i < ARRIVALS; i++) {
		at -= gap * log((draw(&random, 1u << 30) + 1.0) / (1u << 30));
		simulation->arrival[i] = (struct arrival){
			.request = draw_tested(setting, &random),
			.at_us = at,
		};
	}
}

/* ---- one worker's step ---------------------------------------------------- */

static void note_error(struct simulation *simulation, int r)
{
	if (r && !simulation->error)
		simulation->error = r;
}

static void start(struct simulation *simulation, struct worker *worker, uint32_t number)
{
	worker->running[worker->count++] = (struct running){
		.request = simulation->arrival[number].request,
		.number = number,
		.row = PROMPT_ROWS,
	};
}

static void end(struct simulation *simulation, struct worker *worker, uint32_t place)
{
	const struct running *one = &worker->running[place];
	const struct arrival *arrival = &simulation->arrival[one->number];
	uint32_t tokens = one->row - PROMPT_ROWS;

	simulation->token_us[simulation->ended++] = (worker->now_us - arrival->at_us) / tokens;
	if (arrival->reservation)
		note_error(simulation, r3ring_book_free(simulation->placement.book[arrival->worker],
							arrival->reservation));
	worker->running[place] = worker->running[--worker->count];
	if (worker->first_waiting < worker->end_waiting)
		start(simulation, worker, worker->waiting[worker->first_waiting++].number);
}

static void note_step(struct simulation *simulation, double us, uint32_t tokens)
{
	if (simulation->steps == simulation->room) {
		size_t room = simulation->room ? simulation->room * 2 : 4096;
		struct step_time *step = realloc(simulation->step, room * sizeof(*step));

		if (!step) {
			note_error(simulation, -ENOMEM);
			return;
		}
		simulation->step = step;
		simulation->room = room;
	}
	simulation->step[simulation->steps++] = (struct step_time){us, tokens};
}

static void run_step(struct simulation *simulation, struct worker *worker)
{
	const struct cluster *cluster = &simulation->cluster;
	double us = cluster_cost(cluster, worker->running, worker->count, 1);

	simulation->imbalance += cluster_imbalance(cluster, worker->running, worker->count);
	note_step(simulation, us, worker->count);
	worker->now_us += us;
	for (uint32_t i = worker->count; i-- > 0;) {
		struct running *one = &worker->running[i];
		const struct arrival *arrival = &simulation->arrival[one->number];

		one->row++;
		if (one->row == cluster->corpus->request[one->request].rows)
			end(simulation, worker, i);
		else if (one->row % UPDATE_ROWS == 0)
			note_error(simulation,
				   placement_update(&simulation->placement, simulation->policy,
						    arrival->worker, one, arrival->reservation));
	}
}

/* ---- the whole ------------------------------------------------------------ */

static void place(struct simulation *simulation, uint32_t number)
{
	struct arrival *arrival = &simulation->arrival[number];
	const struct running one = {arrival->request, number, PROMPT_ROWS};
	struct worker *worker;

	arrival->worker =
		simulation->policy->choose(&simulation->placement, simulation->policy, &one);
	note_error(simulation, placement_reserve(&simulation->placement, simulation->policy,
						 arrival->worker, &one, &arrival->reservation));
	worker = &simulation->cluster.worker[arrival->worker];
	if (worker->count == 0 && worker->now_us < arrival->at_us)
		worker->now_us = arrival->at_us;
	if (worker->count < BATCH)
		start(simulation, worker, number);
	else
		worker->waiting[worker->end_waiting++] = one;
}

/* The worker whose next step begins first; NULL when none has anything to do. */
static struct worker *next_worker(struct cluster *cluster)
{
	struct worker *next = NULL;

	for (uint32_t i = 0; i < cluster->workers; i++) {
		struct worker *worker = &cluster->worker[i];

		if (worker->count && (!next || worker->now_us < next->now_us))
			next = worker;
	}
	return next;
}

static void run(struct simulation *simulation)
{
	uint32_t arrived = 0;

	while (simulation->ended < ARRIVALS && !simulation->error) {
		struct worker *worker = next_worker(&simulation->cluster);

		if (arrived < ARRIVALS &&
		    (!worker || simulation->arrival[arrived].at_us <= worker->now_us))
			place(simulation, arrived++);
		else
			run_step(simulation, worker);
	}
}

static int by_us(const void *a, const void *b)
{
	const double *left = a, *right = b;

	return (*left > *right) - (*left < *right);
}

static int by_step(const void *a, const void *b)
{
	const struct step_time *left = a, *right = b;

	return (left->us > right->us) - (left->us < right->us);
}

static void sum_up(struct simulation *simulation, struct outcome *outcome)
{
	double tokens = 0, us = 0, seen = 0;

	qsort(simulation->step, simulation->steps, sizeof(*simulation->step), by_step);
	qsort(simulation->token_us, ARRIVALS, sizeof(*simulation->token_us), by_us);
	for (size_t i = 0; i < simulation->steps; i++) {
		tokens += simulation->step[i].tokens;
		us += simulation->step[i].us * simulation->step[i].tokens;
	}
	outcome->step_us = us / tokens;
	for (size_t i = 0; i < simulation->steps && seen < 0.99 * tokens; i++) {
		seen += simulation->step[i].tokens;
		outcome->step_p99_us = simulation->step[i].us;
	}
	outcome->imbalance = simulation->imbalance / (double)simulation->steps;
	outcome->token_us = simulation->token_us[ARRIVALS / 2];
}

int simulate(const struct setting *setting, const struct policy *policy, struct outcome *outcome)
{
	struct simulation *simulation = calloc(1, sizeof(*simulation));
	int r = 0;

	if (!simulation)
		return -ENOMEM;
	simulation->setting = setting;
	simulation->policy = policy;
	simulation->cluster = (struct cluster){
		.corpus = setting->corpus,
		.map = setting->map,
		.cost = setting->cost,
		.workers = setting->workers,
	};
	for (uint32_t i = 0; i < setting->workers; i++) {
		struct worker *worker = &simulation->cluster.worker[i];

		worker->waiting = calloc(ARRIVALS, sizeof(*worker->waiting));
		if (!worker->waiting)
			r = -ENOMEM;
	}
	if (!r)
		r = placement_open(&simulation->placement, &simulation->cluster,
				   setting->knowledge);
	if (!r) {
		make_arrivals(simulation);
		run(simulation);
		r = simulation->error;
	}
	if (!r)
		sum_up(simulation, outcome);
	placement_close(&simulation->placement);
	for (uint32_t i = 0; i < setting->workers; i++)
		free(simulation->cluster.worker[i].waiting);
	free(simulation->step);
	free(simulation);
	return r;
}
