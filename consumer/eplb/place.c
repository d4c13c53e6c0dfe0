/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The published placement, a layer at a time: groups onto nodes, replicas within a node,
 * replicas onto its GPUs.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <r3ring/eplb.h>

#include "consumer/eplb/sizes.h"
#include "consumer/options.h"

struct item {
	double load;
	uint32_t number;
	uint32_t pack, rank; /* where it was packed, and as which of that pack */
};

struct pack {
	double load;
	uint32_t items;
};

/* What all layers are placed with. */
struct placing {
	uint32_t experts, physical, gpus, nodes, groups;
	struct item *item; /* [max(groups, physical)] */
	struct pack *pack; /* [max(nodes, gpus)] */
	uint16_t *expert;  /* [physical / nodes] of a node's replicas, by the order made */
	uint32_t *count;   /* [experts] replicas of each */
	uint32_t *rank;    /* [physical / nodes] which of its expert's replicas */
	uint16_t *of_node; /* [experts] the experts in the order of their nodes */
	uint16_t *logical; /* [layers][physical] the result: whose each place is, */
	uint32_t *replica; /* [layers][physical] and which of its replicas */
	uint32_t most;     /* replicas of one expert */
};

/* ---- packing ------------------------------------------------------------ */

static int heaviest_first(const void *a, const void *b)
{
	const struct item *x = a, *y = b;

	if (x->load > y->load || x->load < y->load)
		return x->load > y->load ? -1 : 1;
	return x->number < y->number ? -1 : 1;
}

static int by_number(const void *a, const void *b)
{
	const struct item *x = a, *y = b;

	return x->number < y->number ? -1 : 1;
}

static uint32_t lightest(const struct pack *pack, uint32_t packs, uint32_t room)
{
	uint32_t best = packs;

	for (uint32_t i = 0; i < packs; i++)
		if (pack[i].items < room && (best == packs || pack[i].load < pack[best].load))
			best = i;
	return best;
}

/* Equally many items into each pack. They are in their order again afterwards. */
static void pack_items(struct placing *p, uint32_t items, uint32_t packs)
{
	const uint32_t room = items / packs;

	if (room > 1)
		qsort(p->item, items, sizeof(*p->item), heaviest_first);
	memset(p->pack, 0, packs * sizeof(*p->pack));
	for (uint32_t i = 0; i < items; i++) {
		struct item *item = &p->item[i];

		/* One each: they stay where they are. */
		item->pack = room > 1 ? lightest(p->pack, packs, room) : i;
		item->rank = p->pack[item->pack].items++;
		p->pack[item->pack].load += item->load;
	}
	if (room > 1)
		qsort(p->item, items, sizeof(*p->item), by_number);
}

/* ---- the three steps ----------------------------------------------------- */

/* NULL: of a layer without load all experts count alike. */
static double load_of(const double *load, uint32_t expert)
{
	return load ? load[expert] : 1;
}

static void groups_onto_nodes(struct placing *p, const double *load)
{
	const uint32_t size = p->experts / p->groups, per_node = p->groups / p->nodes;

	for (uint32_t g = 0; g < p->groups; g++) {
		p->item[g] = (struct item){.number = g};
		for (uint32_t e = 0; e < size; e++)
			p->item[g].load += load_of(load, g * size + e);
	}
	pack_items(p, p->groups, p->nodes);
	for (uint32_t g = 0; g < p->groups; g++) {
		uint32_t place = (p->item[g].pack * per_node + p->item[g].rank) * size;

		for (uint32_t e = 0; e < size; e++)
			p->of_node[place + e] = (uint16_t)(g * size + e);
	}
}

static uint16_t most_loaded(const struct placing *p, const uint16_t *experts, uint32_t count,
			    const double *load)
{
	uint16_t most = experts[0];

	for (uint32_t i = 1; i < count; i++)
		if (load_of(load, experts[i]) / p->count[experts[i]] >
		    load_of(load, most) / p->count[most])
			most = experts[i];
	return most;
}

/* One of each of the node's experts, then one more of whichever carries most. */
static void replicate(struct placing *p, const uint16_t *experts, const double *load)
{
	const uint32_t own = p->experts / p->nodes, all = p->physical / p->nodes;

	for (uint32_t i = 0; i < own; i++) {
		p->expert[i] = experts[i];
		p->rank[i] = 0;
		p->count[experts[i]] = 1;
	}
	for (uint32_t i = own; i < all; i++) {
		p->expert[i] = most_loaded(p, experts, own, load);
		p->rank[i] = p->count[p->expert[i]]++;
	}
}

static void replicas_onto_gpus(struct placing *p, const double *load, uint16_t *logical,
			       uint32_t *replica)
{
	const uint32_t all = p->physical / p->nodes, per_gpu = p->physical / p->gpus;

	for (uint32_t i = 0; i < all; i++)
		p->item[i] = (struct item){
			.number = i, .load = load_of(load, p->expert[i]) / p->count[p->expert[i]]};
	pack_items(p, all, p->gpus / p->nodes);
	for (uint32_t i = 0; i < all; i++) {
		uint32_t place = p->item[i].pack * per_gpu + p->item[i].rank;

		logical[place] = p->expert[i];
		replica[place] = p->rank[i];
		if (p->rank[i] + 1 > p->most)
			p->most = p->rank[i] + 1;
	}
}

static void place_layer(struct placing *p, const double *load, uint16_t *logical, uint32_t *replica)
{
	const uint32_t own = p->experts / p->nodes, all = p->physical / p->nodes;
	const double *used;
	double sum = 0;

	for (uint32_t e = 0; e < p->experts; e++)
		sum += load[e];
	used = sum > 0 ? load : NULL;
	groups_onto_nodes(p, used);
	for (uint32_t node = 0; node < p->nodes; node++) {
		replicate(p, p->of_node + node * own, used);
		/* Nothing is allocated below here: placing_release() frees what p holds. */
		/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc) */
		replicas_onto_gpus(p, used, logical + node * all, replica + node * all);
	}
}

/* ---- options ------------------------------------------------------------- */

static int refuse_counts(const struct placing *p, uint32_t experts, struct r3ring_error *err)
{
	if (p->physical < experts)
		return r3ring_error_set(err, -EINVAL,
					"%u physical experts for %u logical ones; there must be at "
					"least one of each",
					p->physical, experts);
	if (experts % p->groups)
		return r3ring_error_set(err, -EINVAL, "%u groups do not divide %u experts",
					p->groups, experts);
	if (p->gpus % p->nodes)
		return r3ring_error_set(err, -EINVAL, "%u nodes do not divide %u GPUs", p->nodes,
					p->gpus);
	return 0;
}

static int refuse_loads(const double *load, uint32_t layers, uint32_t experts,
			struct r3ring_error *err)
{
	for (size_t i = 0; i < (size_t)layers * experts; i++)
		if (!isfinite(load[i]) || load[i] < 0)
			return r3ring_error_set(err, -EINVAL,
						"layer %zu, expert %zu: %g is no load", i / experts,
						i % experts, load[i]);
	return 0;
}

static int options_take(struct placing *p, uint32_t layers, uint32_t experts,
			const struct r3ring_eplb_options *given, struct r3ring_error *err)
{
	struct r3ring_eplb_options options;
	int r = options_copy_known(&options, sizeof(options), sizeof(options), given, err);

	if (r < 0)
		return r;
	*p = (struct placing){
		.experts = experts,
		.physical = options.physical,
		.gpus = options.gpus,
		.nodes = options.nodes ? options.nodes : 1,
		.groups = options.groups ? options.groups : 1,
	};
	r = eplb_check_sizes(layers, experts, p->physical, p->gpus, err);
	if (r == 0)
		r = refuse_counts(p, experts, err);
	if (r == 0 && p->groups % p->nodes) {
		/* Groups cannot stay whole: all GPUs are one node. */
		p->groups = 1;
		p->nodes = 1;
	}
	return r;
}

/* ---- all layers ----------------------------------------------------------- */

static uint32_t larger(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

static int placing_prepare(struct placing *p, uint32_t layers)
{
	const uint32_t all = p->physical / p->nodes;

	p->item = calloc(larger(p->groups, all), sizeof(*p->item));
	p->pack = calloc(larger(p->nodes, p->gpus), sizeof(*p->pack));
	p->expert = calloc(all, sizeof(*p->expert));
	p->rank = calloc(all, sizeof(*p->rank));
	p->count = calloc(p->experts, sizeof(*p->count));
	p->of_node = calloc(p->experts, sizeof(*p->of_node));
	p->logical = calloc((size_t)layers * p->physical, sizeof(*p->logical));
	p->replica = calloc((size_t)layers * p->physical, sizeof(*p->replica));
	if (!p->item || !p->pack || !p->expert || !p->rank || !p->count || !p->of_node ||
	    !p->logical || !p->replica)
		return -ENOMEM;
	return 0;
}

static void placing_release(struct placing *p)
{
	free(p->item);
	free(p->pack);
	free(p->expert);
	free(p->rank);
	free(p->count);
	free(p->of_node);
	free(p->logical);
	free(p->replica);
}

static int map_of(const struct placing *p, uint32_t layers, struct r3ring_eplb_map **map,
		  struct r3ring_error *err)
{
	struct r3ring_eplb_map *made;
	int r = r3ring_eplb_map_create(&made, layers, p->experts, p->most, p->physical, p->gpus,
				       err);

	if (r < 0)
		return r;
	for (uint32_t layer = 0; layer < layers; layer++)
		for (uint32_t place = 0; place < p->physical; place++) {
			size_t at = (size_t)layer * p->physical + place;
			size_t expert = (size_t)layer * p->experts + p->logical[at];

			made->map[expert * p->most + p->replica[at]] = (uint16_t)place;
		}
	*map = made;
	return 0;
}

int r3ring_eplb_place(struct r3ring_eplb_map **map, const double *load, uint32_t layers,
		      uint32_t experts, const struct r3ring_eplb_options *options,
		      struct r3ring_error *err)
{
	struct placing placing = {.nodes = 1};
	int r;

	if (!map || !load || !options)
		return r3ring_error_set(err, -EINVAL, "r3ring_eplb_place: %s is NULL",
					!map    ? "map"
					: !load ? "load"
						: "options");
	r = options_take(&placing, layers, experts, options, err);
	if (r == 0)
		r = refuse_loads(load, layers, experts, err);
	if (r < 0)
		return r;
	r = placing_prepare(&placing, layers);
	if (r < 0)
		r = r3ring_error_set(err, r, "no memory to place %u layers", layers);
	for (uint32_t layer = 0; r == 0 && layer < layers; layer++)
		place_layer(&placing, load + (size_t)layer * experts,
			    placing.logical + (size_t)layer * placing.physical,
			    placing.replica + (size_t)layer * placing.physical);
	if (r == 0)
		r = map_of(&placing, layers, map, err);
	placing_release(&placing);
	return r;
}
