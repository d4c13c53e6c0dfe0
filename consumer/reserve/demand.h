/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of a demand: in each layer the experts that are named, and what is spread over all. */
#ifndef RESERVE_DEMAND_H
#define RESERVE_DEMAND_H

#include <r3ring/reserve.h>

struct demand_entry {
	uint32_t units; /* above what is spread */
	uint32_t expert;
};

struct demand_layer {
	uint64_t spread; /* units, over all experts alike */
	uint32_t first;  /* its entries: [first, end) */
	uint32_t end;
};

struct r3ring_demand {
	struct r3ring_demand_shape shape;
	uint64_t age_ns;
	uint64_t units; /* over all layers */
	struct demand_layer *layer;
	struct demand_entry *entry;
};

bool demand_shape_is_one(const struct r3ring_demand_shape *shape);
bool demand_shapes_equal(const struct r3ring_demand_shape *a, const struct r3ring_demand_shape *b);

/* A copy with room for what it holds and no more; NULL without memory. */
struct r3ring_demand *demand_copy(const struct r3ring_demand *demand);

/* Its memory. */
size_t demand_bytes(const struct r3ring_demand *demand);

#endif
