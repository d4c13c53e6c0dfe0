/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a load counted since a moment, exactly: the difference between two reads of all that it
 * ever counted. Costs the load nothing, and other readers neither.
 */
#ifndef MONITOR_SINCE_H
#define MONITOR_SINCE_H

#include <stdbool.h>

#include <r3ring/load.h>

struct since;

enum since_begin {
	SINCE_NOW,
	SINCE_EVER, /* with all that was counted so far */
};

/*
 * @load:    outlives it.
 * @channel: index, or R3RING_LOAD_MERGED.
 * @from:    what it is since.
 *
 * Returns 0 or -ENOMEM. Pairs with since_destroy(); NULL is fine there. One thread each.
 */
int since_create(struct since **since, const struct r3ring_load *load, uint32_t channel,
		 enum since_begin from);
void since_destroy(struct since *since);

/*
 * @again: from now on it is since this read.
 * @info:  receives counts, rows and accounts of what was counted since; the rest as
 *         r3ring_load_read() tells it of all that ever was. Valid until the next read.
 *
 * Where layers joined meanwhile it begins anew, with nothing. Returns 0, -ENODATA (no step was
 * ever counted), -EINVAL (no such channel), -ENOMEM.
 */
int since_read(struct since *since, bool again, const struct r3ring_load_info **info);

#endif
