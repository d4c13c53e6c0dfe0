/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>

#include "consumer/reserve/order.h"

#define ROOM_LEAST 64u

uint32_t order_behind(const struct order *order, uint64_t id)
{
	uint32_t low = 0, high = order->end;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (order->entry[middle].id <= id)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Its entry, be it there or gone; NULL: forgotten, or never made. */
static struct order_entry *entry_of(const struct order *order, uint64_t id)
{
	uint32_t behind = order_behind(order, id);

	return behind && order->entry[behind - 1].id == id ? &order->entry[behind - 1] : NULL;
}

struct reservation *order_find(const struct order *order, uint64_t id)
{
	const struct order_entry *entry = entry_of(order, id);

	return entry ? entry->reservation : NULL;
}

static void forget_gone(struct order *order)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < order->end; i++) {
		if (order->entry[i].reservation)
			order->entry[kept++] = order->entry[i];
	}
	order->end = kept;
}

int order_make_room(struct order *order)
{
	uint32_t room = order->room ? 2 * order->room : ROOM_LEAST;
	struct order_entry *entry;

	if (order->end < order->room)
		return 0;
	if (order->count < order->room - order->room / 4) {
		forget_gone(order);
		return 0;
	}
	entry = realloc(order->entry, room * sizeof(*entry));
	if (!entry)
		return -ENOMEM;
	order->entry = entry;
	order->room = room;
	return 0;
}

void order_append(struct order *order, uint64_t id, struct reservation *reservation)
{
	order->entry[order->end++] = (struct order_entry){id, reservation};
	order->count++;
}

void order_remove(struct order *order, uint64_t id)
{
	entry_of(order, id)->reservation = NULL;
	order->count--;
	/* What is gone must not outnumber by far what whoever goes through all is after. */
	if (order->end > ROOM_LEAST && order->count < order->end / 4)
		forget_gone(order);
}
