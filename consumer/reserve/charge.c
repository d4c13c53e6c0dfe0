/* SPDX-License-Identifier: Apache-2.0 */
/* From demand to GPUs. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "consumer/reserve/book.h"

/*
 * Replica number r of n takes (units + r) / n: all take the whole, and each no more than one
 * unit more than another. It depends on the sum alone, so that adding and taking away leave
 * nothing behind.
 */
static uint64_t replica_units(const struct book_expert *expert, uint32_t replica)
{
	return expert->replicas == 1 ? expert->units : (expert->units + replica) / expert->replicas;
}

static uint32_t replica_gpu(const struct book_layer *layer, const struct book_expert *expert,
			    uint32_t replica)
{
	return expert->replicas == 1 ? expert->place : layer->gpu[expert->place + replica];
}

/* @units: to be added; as unsigned numbers wrap, a negative one is taken away. */
static void add_units(struct book_layer *layer, struct book_expert *expert, uint64_t units)
{
	struct book_expert before;

	if (expert->replicas == 1) {
		expert->units += units;
		layer->charge[expert->place] += units;
		return;
	}
	before = *expert;
	expert->units += units;
	for (uint32_t i = 0; i < expert->replicas; i++)
		layer->charge[replica_gpu(layer, expert, i)] +=
			replica_units(expert, i) - replica_units(&before, i);
}

static void add_demand(struct r3ring_book *book, const struct r3ring_demand *demand, uint64_t sign)
{
	for (uint32_t i = 0; i < book->shape.layers; i++) {
		const struct demand_layer *from = &demand->layer[i];
		struct book_layer *layer = &book->layer[i];

		layer->spread += sign * from->spread;
		for (uint32_t e = from->first; e < from->end; e++)
			add_units(layer, &layer->expert[demand->entry[e].expert],
				  sign * demand->entry[e].units);
	}
	book->stats.units += sign * demand->units;
}

void book_charge(struct r3ring_book *book, const struct r3ring_demand *demand)
{
	add_demand(book, demand, 1);
}

void book_discharge(struct r3ring_book *book, const struct r3ring_demand *demand)
{
	add_demand(book, demand, -1ull);
}

bool book_has_range(const struct r3ring_book *book, const struct r3ring_demand *demand)
{
	uint64_t units = (book->stats.units + demand->units) / book->shape.layers;

	return units < LAYER_UNITS_MAX;
}

uint64_t book_gpu_units(const struct book_layer *layer, uint32_t gpu)
{
	/* A layer's units are far below 2^63, and are converted the faster as signed ones. */
	return layer->charge[gpu] +
	       (uint64_t)(int64_t)((double)(int64_t)layer->spread * layer->part[gpu]);
}

struct book_place book_tightest(const struct r3ring_book *book)
{
	struct book_place tightest = {.margin = INT64_MAX};

	for (uint32_t i = 0; i < book->shape.layers; i++) {
		const struct book_layer *layer = &book->layer[i];

		for (uint32_t gpu = 0; gpu < book->gpus; gpu++) {
			int64_t margin = (int64_t)(layer->room[gpu] - book_gpu_units(layer, gpu));

			if (margin < tightest.margin)
				tightest = (struct book_place){i, gpu, margin};
		}
	}
	return tightest;
}

static uint32_t replicas_on(const struct book_layer *layer, const struct book_expert *expert,
			    uint32_t gpu)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < expert->replicas; i++)
		count += replica_gpu(layer, expert, i) == gpu;
	return count;
}

uint32_t book_heaviest(const struct r3ring_book *book, uint32_t layer, uint32_t gpu)
{
	const struct book_layer *from = &book->layer[layer];
	const double spread = (double)from->spread / book->shape.experts;
	double most = -1;
	uint32_t heaviest = 0;

	for (uint32_t i = 0; i < book->shape.experts; i++) {
		const struct book_expert *expert = &from->expert[i];
		uint32_t here = replicas_on(from, expert, gpu);
		double units = ((double)expert->units + spread) * here / expert->replicas;

		if (here && units > most) {
			most = units;
			heaviest = i;
		}
	}
	return heaviest;
}

/* ---- where experts are ---------------------------------------------------- */

void book_project(struct book_layer *layer, uint32_t experts, uint32_t gpus)
{
	memset(layer->part, 0, gpus * sizeof(*layer->part));
	memset(layer->charge, 0, gpus * sizeof(*layer->charge));
	for (uint32_t e = 0; e < experts; e++) {
		const struct book_expert *expert = &layer->expert[e];

		for (uint32_t i = 0; i < expert->replicas; i++) {
			uint32_t gpu = replica_gpu(layer, expert, i);

			layer->charge[gpu] += replica_units(expert, i);
			layer->part[gpu] += 1.0 / ((double)experts * expert->replicas);
		}
	}
}

void book_layer_free(struct book_layer *layer)
{
	free(layer->gpu);
	free(layer->part);
	free(layer->expert);
	free(layer->charge);
	free(layer->room);
}

void book_layer_order(struct book_layer *layer, uint32_t experts, uint32_t gpus)
{
	for (uint32_t expert = 0; expert < experts; expert++) {
		layer->expert[expert].replicas = 1;
		layer->expert[expert].place = (uint32_t)((uint64_t)expert * gpus / experts);
	}
	free(layer->gpu);
	layer->gpu = NULL;
	book_project(layer, experts, gpus);
}

int book_layer_init(struct book_layer *layer, uint32_t experts, uint32_t gpus)
{
	layer->part = calloc(gpus, sizeof(*layer->part));
	layer->expert = calloc(experts, sizeof(*layer->expert));
	layer->charge = calloc(gpus, sizeof(*layer->charge));
	layer->room = calloc(gpus, sizeof(*layer->room));
	if (!layer->part || !layer->expert || !layer->charge || !layer->room)
		return -ENOMEM;
	book_layer_order(layer, experts, gpus);
	return 0;
}
