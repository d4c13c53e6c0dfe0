/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "consumer/reserve/demand.h"

bool demand_shape_is_one(const struct r3ring_demand_shape *shape)
{
	return shape->layers > 0 && shape->layers <= R3RING_LAYERS_MAX && shape->experts > 0 &&
	       shape->experts <= R3RING_EXPERTS_MAX && shape->top_k > 0 &&
	       shape->top_k <= R3RING_TOP_K_MAX && shape->top_k <= shape->experts;
}

bool demand_shapes_equal(const struct r3ring_demand_shape *a, const struct r3ring_demand_shape *b)
{
	return a->layers == b->layers && a->experts == b->experts && a->top_k == b->top_k;
}

static struct r3ring_demand *allocate(const struct r3ring_demand_shape *shape, uint32_t entries)
{
	struct r3ring_demand *demand = calloc(1, sizeof(*demand));

	if (!demand)
		return NULL;
	demand->shape = *shape;
	demand->layer = calloc(shape->layers, sizeof(*demand->layer));
	demand->entry = calloc(entries ? entries : 1, sizeof(*demand->entry));
	if (demand->layer && demand->entry)
		return demand;
	r3ring_demand_destroy(demand);
	return NULL;
}

int r3ring_demand_create(struct r3ring_demand **demand, const struct r3ring_demand_shape *shape)
{
	struct r3ring_demand *made;

	if (!demand || !shape || !demand_shape_is_one(shape))
		return -EINVAL;
	/* One more, where the last that does not count is noted. */
	made = allocate(shape, shape->layers * R3RING_DEMAND_NAMED_MAX + 1);
	if (!made)
		return -ENOMEM;
	*demand = made;
	return 0;
}

void r3ring_demand_destroy(struct r3ring_demand *demand)
{
	if (!demand)
		return;
	free(demand->layer);
	free(demand->entry);
	free(demand);
}

static uint32_t entries(const struct r3ring_demand *demand)
{
	return demand->layer[demand->shape.layers - 1].end;
}

struct r3ring_demand *demand_copy(const struct r3ring_demand *demand)
{
	struct r3ring_demand *copy = allocate(&demand->shape, entries(demand));

	if (!copy)
		return NULL;
	copy->age_ns = demand->age_ns;
	copy->units = demand->units;
	memcpy(copy->layer, demand->layer, demand->shape.layers * sizeof(*copy->layer));
	memcpy(copy->entry, demand->entry, entries(demand) * sizeof(*copy->entry));
	return copy;
}

size_t demand_bytes(const struct r3ring_demand *demand)
{
	return sizeof(*demand) + demand->shape.layers * sizeof(*demand->layer) +
	       entries(demand) * sizeof(*demand->entry);
}

/* ---- prediction ----------------------------------------------------------- */

static inline uint32_t count_above(const uint32_t *counts, uint32_t experts, uint32_t floor)
{
	uint32_t found = 0;

	for (uint32_t i = 0; i < experts; i++)
		found += counts[i] > floor;
	return found;
}

static inline uint32_t largest(const uint32_t *counts, uint32_t experts)
{
	uint32_t most = 0;

	for (uint32_t i = 0; i < experts; i++)
		most = counts[i] > most ? counts[i] : most;
	return most;
}

/* The smallest count that no more experts are above than can be named. */
static inline uint32_t find_floor(const uint32_t *counts, uint32_t experts)
{
	uint32_t low = 0, high = largest(counts, experts);

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (count_above(counts, experts, middle) <= R3RING_DEMAND_NAMED_MAX)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

/*
 * Those above the floor, then of those on it as many as there is room for. Written without a
 * branch that nobody can foretell: each is noted, and stays noted if it counts.
 */
static inline uint32_t name_experts(const uint32_t *counts, uint32_t experts,
				    struct demand_entry *entry)
{
	uint32_t floor = find_floor(counts, experts), named = 0;

	for (uint32_t i = 0; i < experts; i++) {
		entry[named].expert = i;
		named += counts[i] > floor;
	}
	for (uint32_t i = 0; floor > 0 && i < experts && named < R3RING_DEMAND_NAMED_MAX; i++) {
		entry[named].expert = i;
		named += counts[i] == floor;
	}
	return named;
}

static inline uint64_t sum(const uint32_t *counts, uint32_t experts)
{
	uint64_t total = 0;

	for (uint32_t i = 0; i < experts; i++)
		total += counts[i];
	return total;
}

/* What the named ones get of @units, and no more than one visit of each token. Returns the sum. */
static inline uint64_t share_out(struct demand_entry *entry, uint32_t named, const uint32_t *counts,
				 uint64_t whole, uint64_t units, uint32_t most)
{
	double units_each = (double)units / (double)whole;
	uint64_t given = 0;

	for (uint32_t i = 0; i < named; i++) {
		double own = units_each * (counts[entry[i].expert] + 1.0);

		entry[i].units = own < most ? (uint32_t)own : most;
		given += entry[i].units;
	}
	return given;
}

/* Of what a named expert gets, the part that all get alike goes to what is spread: it then
 * is the rest, to the unit. */
static inline void predict_layer(struct r3ring_demand *demand, uint32_t layer,
				 const uint32_t *counts, uint32_t tokens)
{
	struct demand_layer *at = &demand->layer[layer];
	struct demand_entry *entry = &demand->entry[at->first];
	uint32_t experts = demand->shape.experts, most = tokens * R3RING_DEMAND_TOKEN, each = 0;
	uint64_t units = (uint64_t)most * demand->shape.top_k, given;
	uint64_t seen = counts ? sum(counts, experts) : 0;
	uint32_t named = seen ? name_experts(counts, experts, entry) : 0;

	given = share_out(entry, named, counts, seen + experts, units, most);
	if (named < experts)
		each = (uint32_t)((units - given) / (experts - named));
	at->spread = units;
	at->end = at->first + named;
	for (uint32_t i = 0; i < named; i++) {
		entry[i].units = entry[i].units > each ? entry[i].units - each : 0;
		at->spread -= entry[i].units;
	}
}

static inline __attribute__((always_inline)) void predict(struct r3ring_demand *demand,
							  const struct r3ring_evidence *evidence,
							  uint32_t tokens)
{
	const struct r3ring_demand_shape *shape = &demand->shape;
	uint32_t first = 0;

	for (uint32_t layer = 0; layer < shape->layers; layer++) {
		const uint32_t *counts =
			evidence->counts ? evidence->counts + (size_t)layer * shape->experts : NULL;

		demand->layer[layer].first = first;
		predict_layer(demand, layer, counts, tokens);
		first = demand->layer[layer].end;
	}
}

#if defined(__x86_64__)

/* Twice as many counts at a time as the baseline. */
static __attribute__((target("avx2"), flatten)) void predict_avx2(
	struct r3ring_demand *demand, const struct r3ring_evidence *evidence, uint32_t tokens)
{
	predict(demand, evidence, tokens);
}

static void predict_any(struct r3ring_demand *demand, const struct r3ring_evidence *evidence,
			uint32_t tokens)
{
	if (__builtin_cpu_supports("avx2"))
		predict_avx2(demand, evidence, tokens);
	else
		predict(demand, evidence, tokens);
}

#else

static void predict_any(struct r3ring_demand *demand, const struct r3ring_evidence *evidence,
			uint32_t tokens)
{
	predict(demand, evidence, tokens);
}

#endif

int r3ring_demand_predict(struct r3ring_demand *demand, const struct r3ring_evidence *evidence,
			  uint32_t tokens)
{
	const struct r3ring_demand_shape *shape;

	if (!demand || !evidence || tokens > R3RING_DEMAND_TOKENS_MAX)
		return -EINVAL;
	shape = &demand->shape;
	predict_any(demand, evidence, tokens);
	demand->units = (uint64_t)tokens * R3RING_DEMAND_TOKEN * shape->top_k * shape->layers;
	demand->age_ns = evidence->age_ns;
	return 0;
}

uint64_t r3ring_demand_of(const struct r3ring_demand *demand, uint32_t layer, uint32_t expert)
{
	const struct demand_layer *at;
	uint64_t units;

	if (layer >= demand->shape.layers || expert >= demand->shape.experts)
		return 0;
	at = &demand->layer[layer];
	units = at->spread / demand->shape.experts;
	for (uint32_t i = at->first; i < at->end; i++) {
		if (demand->entry[i].expert == expert)
			units += demand->entry[i].units;
	}
	return units;
}
