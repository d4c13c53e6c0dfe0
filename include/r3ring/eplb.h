/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Expert-parallel load balancing: from load to a map of replicas, and what a map does to
 * a load. Calculation only: nothing here reads a ring, keeps state or tells an engine.
 *
 *	r3ring_load_read -> r3ring_eplb_place -> r3ring_eplb_evaluate -> r3ring_eplb_map_free
 *
 * Loads are [layers][experts] of tokens, in any unit that is the same for all experts of
 * a layer; as doubles, which hold counts below 2^53 exactly.
 *
 * Every function may be called from any thread; a map is its caller's.
 */
#ifndef R3RING_EPLB_H
#define R3RING_EPLB_H

#include <stddef.h>
#include <stdint.h>

#include <r3ring/error.h>
#include <r3ring/record.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Which physical experts stand for each logical one, as an EPLB record says it. */
struct r3ring_eplb_map {
	uint64_t epoch; /* 0: of no engine, planned */
	uint32_t layers;
	uint32_t experts;  /* logical ones of a layer */
	uint32_t replicas; /* columns: the most that one expert has */
	uint32_t physical; /* physical experts of a layer, over all GPUs */
	uint32_t gpus;     /* physical expert p is on GPU p / (physical / gpus) */
	uint16_t *map;     /* [layers][experts][replicas], R3RING_MISSING padded */
};

/*
 * A map whose entries are all R3RING_MISSING.
 *
 * @map: receives it; untouched on failure. Pairs with r3ring_eplb_map_free().
 *
 * Returns 0, -EINVAL (@map is NULL, a number is 0 or beyond what records may say, or the GPUs do not
 * divide the physical experts; named), -ENOMEM.
 */
R3RING_API int r3ring_eplb_map_create(struct r3ring_eplb_map **map, uint32_t layers,
				      uint32_t experts, uint32_t replicas, uint32_t physical,
				      uint32_t gpus, struct r3ring_error *err);
R3RING_API void r3ring_eplb_map_free(struct r3ring_eplb_map *map); /* NULL is fine */

/* The map of an engine without EPLB: expert e is physical expert e, one of each.
 * Returns as r3ring_eplb_map_create(). */
R3RING_API int r3ring_eplb_map_plain(struct r3ring_eplb_map **map, uint32_t layers,
				     uint32_t experts, uint32_t gpus, struct r3ring_error *err);

/*
 * Whether each layer's experts have a place, and no place has two.
 * Returns 0, -EBADMSG (layer, expert and place are named), -EINVAL (@map is NULL), or -ENOMEM.
 */
R3RING_API int r3ring_eplb_map_check(const struct r3ring_eplb_map *map, struct r3ring_error *err);

/* ---- placing ------------------------------------------------------------ */

struct r3ring_eplb_options {
	size_t size;       /* sizeof(struct r3ring_eplb_options) */
	uint32_t physical; /* physical experts of a layer; at least as many as logical ones */
	uint32_t gpus;     /* divides physical */
	uint32_t nodes;    /* divides gpus; 0: 1 */
	uint32_t groups;   /* of experts that are routed to together; divides the experts;
			    * 0: 1 */
};

/*
 * Places replicas so that the GPUs' loads are even. Where the nodes divide the groups,
 * whole groups are packed onto nodes first (hierarchical: a group's tokens stay on one
 * node), then replicas are made and packed within each; else over all GPUs at once
 * (global). Replicas are given one by one to the expert whose replicas carry most; packing
 * takes items from the heaviest down, each to the lightest pack with room. Of equals the
 * lower number goes first. A layer without any load is placed as if all its experts had
 * the same.
 *
 * Source: DeepSeek-AI, EPLB, README "The Algorithm" and eplb.py
 * (https://github.com/deepseek-ai/EPLB).
 *
 * @map:  receives the map; untouched on failure. Pairs with r3ring_eplb_map_free().
 * @load: [layers][experts], each finite and not below 0.
 *
 * Returns 0, -EINVAL (an option or a load, or what is NULL, named), -ENOMEM.
 */
R3RING_API int r3ring_eplb_place(struct r3ring_eplb_map **map, const double *load, uint32_t layers,
				 uint32_t experts, const struct r3ring_eplb_options *options,
				 struct r3ring_error *err);

/* ---- what a map does to a load ------------------------------------------- */

/*
 * Load of each physical expert and of each GPU. An expert's load is taken to spread
 * evenly over its replicas: which of them a token went to is the engine's choice, and not
 * captured.
 *
 * @load:     [layers][experts] of the map.
 * @physical: [layers][physical], @gpu: [layers][gpus]; each may be NULL.
 */
R3RING_API void r3ring_eplb_project(const struct r3ring_eplb_map *map, const double *load,
				    double *physical, double *gpu);

struct r3ring_eplb_balance {
	double worst;          /* the largest of the layers' max/mean; 0: no load at all */
	double average;        /* of the layers that have load */
	uint32_t worst_layer;  /* index */
	uint32_t worst_gpu;    /* the one with the most load there */
	uint32_t layers_empty; /* layers without load */
};

/*
 * How even the GPUs' loads are: max/mean over the GPUs, layer by layer. 1 is even; a
 * layer takes as long as its most loaded GPU, so at x every GPU waits for x - 1 of its
 * own time.
 *
 * @ratio: receives [layers] max/mean, 0 of a layer without load; may be NULL.
 *
 * Returns 0 or -ENOMEM.
 */
R3RING_API int r3ring_eplb_evaluate(const struct r3ring_eplb_map *map, const double *load,
				    struct r3ring_eplb_balance *balance, double *ratio);

#ifdef __cplusplus
}
#endif

#endif
