/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A cluster of workers, each an engine whose experts lie on GPUS GPUs and which decodes up to
 * BATCH requests at a time, a row each in a step. A request is placed once, when it arrives; where
 * its worker is full it waits there.
 *
 * A step takes FIXED_US and, for each layer, what its slowest GPU takes:
 *
 *	LAYER_US + experts that any row visits there x expert_us + visits there x visit_us
 *
 * (an expert's weights are read once a step, whoever visits it; each visit is computed). What
 * happens between workers, or in attention, is not in it.
 */
#ifndef WORTH_CLUSTER_H
#define WORTH_CLUSTER_H

#include <r3ring/eplb.h>

#include "tests/bench/worth/corpus.h"

#define GPUS 4u
#define BATCH 16u
#define WORKERS_MAX 8u
#define FIXED_US 500.0
#define LAYER_US 20.0

struct cost {
	const char *name;
	double expert_us; /* reading an expert's weights */
	double visit_us;  /* computing a visit */
};

struct running {
	uint32_t request; /* of the recording */
	uint32_t number;  /* of the arrival */
	uint32_t row;     /* the next to be decoded */
};

struct worker {
	struct running running[BATCH];
	uint32_t count;
	struct running *waiting; /* [arrivals] first in, first out */
	uint32_t first_waiting, end_waiting;
	double now_us; /* when its present step ends */
};

struct cluster {
	const struct corpus *corpus;
	const struct r3ring_eplb_map *map;
	const struct cost *cost;
	struct worker worker[WORKERS_MAX];
	uint32_t workers;
};

/* What the next @rows rows of these requests take, a step each, as they were recorded; those
 * that end before take part while they last. */
double cluster_cost(const struct cluster *cluster, const struct running *running, uint32_t count,
		    uint32_t rows);

/* The mean over layers of the busiest GPU's visits to the mean GPU's, in one step. */
double cluster_imbalance(const struct cluster *cluster, const struct running *running,
			 uint32_t count);

#endif
