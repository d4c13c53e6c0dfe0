/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Expert-parallel load balancing: which physical experts stand for a logical
 * one, and the mapping of selected ids that engines do behind the router.
 *
 * A layer has experts + extra physical experts, the same number on each GPU. The
 * extra ones go to the experts with the largest load per replica so far (at most
 * EPLB_REPLICAS_MAX of each); replicas are put, the most loaded first, on the
 * GPU with the least load that has room; equal ones by lower number. Token row r
 * uses replica r % replicas of its expert.
 */
#ifndef PRODUCER_REFERENCE_EPLB_H
#define PRODUCER_REFERENCE_EPLB_H

#include <stdint.h>

#include <r3ring/error.h>
#include <r3ring/producer.h>

#define EPLB_REPLICAS_MAX 4u

struct eplb;

/* A router's output, in place: ids of @type, [total_rows] rows of @stride. */
struct eplb_ids {
	void *ids;
	enum r3ring_id_type type; /* R3RING_INT32 or R3RING_INT64 */
	uint32_t top_k;
	uint32_t stride;
	uint32_t rows;       /* tokens */
	uint32_t total_rows; /* with padding */
};

/*
 * @extra: physical experts of a layer beyond its logical ones.
 * Returns 0, -EINVAL (@extra beyond what replicas can take up) or -ENOMEM; the
 * map is that of equal load, epoch 1. Pairs with eplb_free(), which takes NULL.
 */
int eplb_create(struct eplb **eplb, uint32_t layers, uint32_t experts, uint32_t extra,
		struct r3ring_error *err);
void eplb_free(struct eplb *eplb);

/* Maps the ids of a layer to physical ones, records their load, and sets the
 * padding rows to -1. An id that is no expert becomes -1 too. */
void eplb_apply(struct eplb *eplb, uint32_t layer, const struct eplb_ids *ids);

/* Places anew by the load recorded since the last time, and begins the next
 * epoch. Not while eplb_apply() may run. Returns 0 or -ENOMEM. */
int eplb_place(struct eplb *eplb);

/* The map as a record announces it; first_step is the caller's to set. */
void eplb_describe(const struct eplb *eplb, struct r3ring_eplb_record *head, const uint16_t **map);

/* Tokens that physical expert @physical of @layer got in this epoch. */
uint64_t eplb_load(const struct eplb *eplb, uint32_t layer, uint32_t physical);

#endif
