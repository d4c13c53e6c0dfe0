/* SPDX-License-Identifier: Apache-2.0 */
/* The load that `r3ring top` shows, of one moment: how even it is, and what is hot. */
#ifndef TOOLS_TOP_LOAD_H
#define TOOLS_TOP_LOAD_H

#include <stdbool.h>
#include <stdint.h>

#include <r3ring/load.h>

#include "monitor/balance.h"
#include "monitor/gpus.h"
#include "monitor/since.h"

#define TOP_HOTTEST 16u

enum top_window {
	TOP_TIME,    /* the last seconds */
	TOP_STEPS,   /* the last steps */
	TOP_AVERAGE, /* an exponential average of steps */
	TOP_SINCE,   /* since it was reset */
	TOP_WINDOWS,
};

struct top_load {
	int code; /* 0; why there is none: -ENODATA, ... */
	enum top_window window;
	struct r3ring_load_info info; /* its arrays are this structure's */
	struct r3ring_layer_entry *layer;
	double *counts, *ratios;       /* [layers][experts] */
	double *rows;                  /* [layers] */
	struct balance_layer *balance; /* [layers] the worst first */
	uint32_t *rank;                /* [layers] where in `balance` a layer is */
	struct balance_expert hottest[TOP_HOTTEST];
	uint32_t hottest_count;
	struct gpus *gpus; /* NULL: no map is known */
	double seconds;    /* from the first step of the window to the newest */
};

/*
 * Reads a window. Pairs with top_load_free(), also where there was nothing to read.
 *
 * @channel: index, or R3RING_LOAD_MERGED.
 * @since:   of that channel, for TOP_SINCE; NULL: all that ever was.
 *
 * Returns NULL without memory.
 */
struct top_load *top_load_read(const struct r3ring_load *load, uint32_t channel,
			       enum top_window window, struct since *since);
void top_load_free(struct top_load *load); /* NULL is fine */

/* The same of counts that are given, which are copied. @map may be NULL. */
struct top_load *top_load_of(const struct r3ring_load_info *info, enum top_window window,
			     const struct r3ring_eplb_map *map);

const char *top_window_name(enum top_window window);

#endif
