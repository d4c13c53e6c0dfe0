/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "tests/bench/worth/cluster.h"

/* Visits of one layer in one step: by expert, and from these by GPU. */
struct layer_visits {
	uint32_t expert[EXPERTS_MOST];
	double active[GPUS];
	double visits[GPUS];
};

static void add_row(const struct cluster *cluster, const struct running *one, uint32_t row,
		    uint32_t layer, struct layer_visits *to)
{
	const struct trace *trace = &cluster->corpus->trace;
	const uint16_t *ids = cluster->corpus->request[one->request].ids +
			      ((size_t)row * trace->layer_count + layer) * trace->top_k;

	/* What is missing is no expert. */
	for (uint32_t k = 0; k < trace->top_k; k++) {
		if (ids[k] < trace->experts)
			to->expert[ids[k]]++;
	}
}

/* An expert's visits go to its replicas in turns: each replica is as likely as another. */
static void spread(const struct cluster *cluster, uint32_t layer, struct layer_visits *visits)
{
	const struct r3ring_eplb_map *map = cluster->map;
	const uint32_t per_gpu = map->physical / map->gpus;

	memset(visits->active, 0, sizeof(visits->active));
	memset(visits->visits, 0, sizeof(visits->visits));
	for (uint32_t expert = 0; expert < map->experts; expert++) {
		const uint16_t *place =
			map->map + ((size_t)layer * map->experts + expert) * map->replicas;
		uint32_t count = visits->expert[expert], replicas = 0;

		if (!count)
			continue;
		while (replicas < map->replicas && place[replicas] != R3RING_MISSING)
			replicas++;
		for (uint32_t i = 0; i < replicas && i < count; i++) {
			uint32_t gpu = place[i] / per_gpu;

			visits->active[gpu] += 1;
			visits->visits[gpu] += (count + i) / replicas;
		}
	}
}

static void count_layer(const struct cluster *cluster, const struct running *running,
			uint32_t count, uint32_t ahead, uint32_t layer, struct layer_visits *visits)
{
	memset(visits->expert, 0, cluster->map->experts * sizeof(*visits->expert));
	for (uint32_t i = 0; i < count; i++) {
		if (running[i].row + ahead < cluster->corpus->request[running[i].request].rows)
			add_row(cluster, &running[i], running[i].row + ahead, layer, visits);
	}
	spread(cluster, layer, visits);
}

static double step_cost(const struct cluster *cluster, const struct running *running,
			uint32_t count, uint32_t ahead)
{
	struct layer_visits visits;
	double total = FIXED_US;

	for (uint32_t layer = 0; layer < cluster->corpus->trace.layer_count; layer++) {
		double slowest = 0;

		count_layer(cluster, running, count, ahead, layer, &visits);
		for (uint32_t gpu = 0; gpu < GPUS; gpu++) {
			double us = visits.active[gpu] * cluster->cost->expert_us +
				    visits.visits[gpu] * cluster->cost->visit_us;

			slowest = us > slowest ? us : slowest;
		}
		total += LAYER_US + slowest;
	}
	return total;
}

double cluster_cost(const struct cluster *cluster, const struct running *running, uint32_t count,
		    uint32_t rows)
{
	double total = 0;

	for (uint32_t ahead = 0; count && ahead < rows; ahead++)
		total += step_cost(cluster, running, count, ahead);
	return total;
}

double cluster_imbalance(const struct cluster *cluster, const struct running *running,
			 uint32_t count)
{
	const uint32_t layers = cluster->corpus->trace.layer_count;
	struct layer_visits visits;
	double sum = 0;

	for (uint32_t layer = 0; layer < layers; layer++) {
		double most = 0, all = 0;

		count_layer(cluster, running, count, 0, layer, &visits);
		for (uint32_t gpu = 0; gpu < GPUS; gpu++) {
			most = visits.visits[gpu] > most ? visits.visits[gpu] : most;
			all += visits.visits[gpu];
		}
		sum += all > 0 ? most * GPUS / all : 1;
	}
	return sum / layers;
}
