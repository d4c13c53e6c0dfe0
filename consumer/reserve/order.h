/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reservations in the order of their making, which is that of their numbers. From any number
 * on, whether it is still there or not, the next is found without going through all of them.
 */
#ifndef RESERVE_ORDER_H
#define RESERVE_ORDER_H

#include <stdint.h>

struct reservation;

struct order_entry {
	uint64_t id;
	struct reservation *reservation; /* NULL: gone */
};

struct order {
	struct order_entry *entry; /* [end], ids ascend */
	uint32_t end, room;
	uint32_t count; /* of those that are there */
};

/* Room for one more. Returns 0 or -ENOMEM. */
int order_make_room(struct order *order);

/* @id: above all before it; there is room. */
void order_append(struct order *order, uint64_t id, struct reservation *reservation);

/* It is there. */
void order_remove(struct order *order, uint64_t id);

/* NULL: it is not there. */
struct reservation *order_find(const struct order *order, uint64_t id);

/* Index of the first entry, be it there or gone, with a number above @id; at most end. */
uint32_t order_behind(const struct order *order, uint64_t id);

#endif
