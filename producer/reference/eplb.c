/* SPDX-License-Identifier: Apache-2.0 */
/* Replica placement and the mapping of ids. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "producer/reference/eplb.h"

#define GPUS_MAX 8u

struct eplb {
	uint64_t epoch;
	uint32_t layers, experts, physical, gpus;
	uint16_t *map;           /* [layers][experts][EPLB_REPLICAS_MAX], R3RING_MISSING padded */
	uint8_t *replicas;       /* [layers][experts] */
	uint64_t *expert_load;   /* [layers][experts] */
	uint64_t *physical_load; /* [layers][physical] */
};

/* A logical expert while its layer is being placed. */
struct seat {
	uint32_t expert;
	uint32_t replicas;
	double share; /* load of one replica */
};

static uint32_t gpus_for(uint32_t physical)
{
	uint32_t gpus = GPUS_MAX;

	while (physical % gpus)
		gpus /= 2;
	return gpus;
}

int eplb_create(struct eplb **eplb, uint32_t layers, uint32_t experts, uint32_t extra,
		struct r3ring_error *err)
{
	uint64_t physical = (uint64_t)experts + extra;
	struct eplb *e;

	if (extra > experts * (uint64_t)(EPLB_REPLICAS_MAX - 1) || physical > R3RING_EXPERTS_MAX)
		return r3ring_error_set(
			err, -EINVAL,
			"%u extra replicas for %u experts: --eplb-replicas takes at "
			"most %u of each expert and %u experts in all",
			extra, experts, EPLB_REPLICAS_MAX, R3RING_EXPERTS_MAX);
	e = calloc(1, sizeof(*e));
	if (!e)
		return r3ring_error_set(err, -ENOMEM, "no memory for the EPLB map");
	e->layers = layers;
	e->experts = experts;
	e->physical = (uint32_t)physical;
	e->gpus = gpus_for(e->physical);
	e->map = calloc((size_t)layers * experts * EPLB_REPLICAS_MAX, sizeof(*e->map));
	e->replicas = calloc((size_t)layers * experts, sizeof(*e->replicas));
	e->expert_load = calloc((size_t)layers * experts, sizeof(*e->expert_load));
	e->physical_load = calloc((size_t)layers * e->physical, sizeof(*e->physical_load));
	if (!e->map || !e->replicas || !e->expert_load || !e->physical_load || eplb_place(e)) {
		eplb_free(e);
		return r3ring_error_set(err, -ENOMEM, "no memory for the EPLB map");
	}
	*eplb = e;
	return 0;
}

void eplb_free(struct eplb *eplb)
{
	if (!eplb)
		return;
	free(eplb->map);
	free(eplb->replicas);
	free(eplb->expert_load);
	free(eplb->physical_load);
	free(eplb);
}

/* There is room: eplb_create() has seen to it. */
static void give_replica(struct seat *seats, uint32_t experts, const uint64_t *load)
{
	struct seat *most = seats;

	for (uint32_t e = 0; e < experts; e++) {
		if (seats[e].replicas < EPLB_REPLICAS_MAX &&
		    (most->replicas == EPLB_REPLICAS_MAX || seats[e].share > most->share))
			most = &seats[e];
	}
	if (!most)
		return; /* every expert has as many as the map holds */
	most->replicas++;
	most->share = (double)load[most->expert] / most->replicas;
}

static int by_share(const void *a, const void *b)
{
	const struct seat *x = a, *y = b;

	if (x->share != y->share)
		return x->share > y->share ? -1 : 1;
	return x->expert < y->expert ? -1 : 1;
}

/* Puts one replica on the least loaded GPU with room; returns its number. */
static uint16_t take_place(const struct eplb *e, double *gpu_load, uint32_t *gpu_used, double share)
{
	uint32_t room = e->physical / e->gpus;
	uint32_t best = e->gpus;

	for (uint32_t g = 0; g < e->gpus; g++) {
		if (gpu_used[g] < room && (best == e->gpus || gpu_load[g] < gpu_load[best]))
			best = g;
	}
	gpu_load[best] += share;
	return (uint16_t)(best * room + gpu_used[best]++);
}

static void place_layer(struct eplb *e, uint32_t layer, struct seat *seats)
{
	size_t first = (size_t)layer * e->experts;
	double gpu_load[GPUS_MAX] = {0};
	uint32_t gpu_used[GPUS_MAX] = {0};

	for (uint32_t i = 0; i < e->experts; i++)
		seats[i] = (struct seat){i, 1, (double)e->expert_load[first + i]};
	for (uint32_t i = e->experts; i < e->physical; i++)
		give_replica(seats, e->experts, e->expert_load + first);
	qsort(seats, e->experts, sizeof(*seats), by_share);
	memset(e->map + first * EPLB_REPLICAS_MAX, 0xff,
	       e->experts * EPLB_REPLICAS_MAX * sizeof(*e->map));
	for (uint32_t i = 0; i < e->experts; i++) {
		uint16_t *row = e->map + (first + seats[i].expert) * EPLB_REPLICAS_MAX;

		e->replicas[first + seats[i].expert] = (uint8_t)seats[i].replicas;
		for (uint32_t r = 0; r < seats[i].replicas; r++)
			row[r] = take_place(e, gpu_load, gpu_used, seats[i].share);
	}
}

int eplb_place(struct eplb *eplb)
{
	struct seat *seats = calloc(eplb->experts, sizeof(*seats));

	if (!seats)
		return -ENOMEM;
	for (uint32_t l = 0; l < eplb->layers; l++)
		place_layer(eplb, l, seats);
	free(seats);
	memset(eplb->expert_load, 0,
	       (size_t)eplb->layers * eplb->experts * sizeof(*eplb->expert_load));
	memset(eplb->physical_load, 0,
	       (size_t)eplb->layers * eplb->physical * sizeof(*eplb->physical_load));
	eplb->epoch++;
	return 0;
}

static int64_t id_at(const struct eplb_ids *ids, size_t at)
{
	return ids->type == R3RING_INT64 ? ((const int64_t *)ids->ids)[at]
					 : ((const int32_t *)ids->ids)[at];
}

static void set_id(const struct eplb_ids *ids, size_t at, int32_t id)
{
	if (ids->type == R3RING_INT64)
		((int64_t *)ids->ids)[at] = id;
	else
		((int32_t *)ids->ids)[at] = id;
}

static int32_t place_token(struct eplb *e, uint32_t layer, int64_t expert, uint32_t row)
{
	size_t at = (size_t)layer * e->experts + (size_t)expert;
	uint16_t physical;

	if (expert < 0 || expert >= e->experts)
		return -1;
	physical = e->map[at * EPLB_REPLICAS_MAX + row % e->replicas[at]];
	e->expert_load[at]++;
	e->physical_load[(size_t)layer * e->physical + physical]++;
	return physical;
}

void eplb_apply(struct eplb *eplb, uint32_t layer, const struct eplb_ids *ids)
{
	for (uint32_t row = 0; row < ids->total_rows; row++) {
		for (uint32_t k = 0; k < ids->top_k; k++) {
			size_t at = (size_t)row * ids->stride + k;

			set_id(ids, at,
			       row < ids->rows ? place_token(eplb, layer, id_at(ids, at), row)
					       : -1);
		}
	}
}

void eplb_describe(const struct eplb *eplb, struct r3ring_eplb_record *head, const uint16_t **map)
{
	*head = (struct r3ring_eplb_record){
		.epoch = eplb->epoch,
		.layers = eplb->layers,
		.experts = eplb->experts,
		.replicas = EPLB_REPLICAS_MAX,
		.physical = eplb->physical,
		.gpus = eplb->gpus,
	};
	*map = eplb->map;
}

uint64_t eplb_load(const struct eplb *eplb, uint32_t layer, uint32_t physical)
{
	return eplb->physical_load[(size_t)layer * eplb->physical + physical];
}
