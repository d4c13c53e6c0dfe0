/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The last minutes of an engine's load, a frame for each time that it is looked at: how even
 * it was, what was lost, and the counts of its experts in a byte each (code8.h). Memory is
 * bounded, the oldest frame leaves for the newest. One thread adds, any may read.
 */
#ifndef MONITOR_HISTORY_H
#define MONITOR_HISTORY_H

#include <stdbool.h>

#include <r3ring/load.h>

#include "monitor/gpus.h"

#define HISTORY_FRAMES_MAX 600u
#define HISTORY_GPUS_MAX 1024u

struct history;

struct history_entry {
	uint64_t id;      /* 1, 2, ... */
	int64_t time_ms;  /* since 1970 */
	double rows;      /* the most that a layer had since the frame before; 0: none ran */
	double balance;   /* the largest max/mean of its layers; 0 without load */
	int32_t worst;    /* model number of that layer */
	uint64_t lost;    /* cells, in the same time */
	uint64_t counted; /* cells, likewise */
};

/* A frame whole; lists and codes are the caller's: history_picture_free(). */
struct history_picture {
	struct history_entry entry;
	uint32_t layers, experts;
	int32_t *layer; /* [layers] model layer numbers */
	double unit;
	uint8_t *codes;    /* [layers][experts] */
	struct gpus *gpus; /* NULL: no EPLB map was known then */
};

/*
 * @max_bytes: for the codes of its frames, allocated when the first frame says how large
 *             they are; at least one frame is kept.
 *
 * Returns 0 or -ENOMEM. Pairs with history_destroy(); NULL is fine there.
 */
int history_create(struct history **history, size_t max_bytes);
void history_destroy(struct history *history);

/*
 * Adds a frame. One of another shape than those before is of another model: they go.
 *
 * @info: what was counted since the frame before.
 * @gpus: what the EPLB map of its newest step makes of that; copied, up to
 *        HISTORY_GPUS_MAX of them. NULL: none is known.
 *
 * Returns 0 or -ENOMEM: the frame is not there.
 */
int history_add(struct history *history, const struct r3ring_load_info *info,
		const struct gpus *gpus, int64_t time_ms);

/* Fills in what there is behind frame @after, the oldest first; returns how many. */
uint32_t history_list(struct history *history, uint64_t after, struct history_entry *entries,
		      uint32_t most);

/* Returns 0, -ENOENT (no such frame any more, or yet), -ENOMEM. */
int history_get(struct history *history, uint64_t id, struct history_picture *picture);
void history_picture_free(struct history_picture *picture);

#endif
