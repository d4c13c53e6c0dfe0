/* SPDX-License-Identifier: Apache-2.0 */
/* The pictures and figures of a report that page and PNG share. */
#ifndef REPORT_FIGURES_H
#define REPORT_FIGURES_H

#include "report/heatmap.h"
#include "report/report.h"

#define FIGURES_HOTTEST 8u

/* "3"; of multi-token prediction "mtp 0". */
void figures_layer_name(const struct r3ring_layer_entry *layer, char name[HEATMAP_NAME]);

/* How even the experts of a layer are. Returns 0 or -ENOMEM. */
int figures_measure(const struct report *report, uint32_t layer,
		    struct r3ring_load_figures *figures);

/* The least even of the layers. */
struct figures_worst {
	uint32_t layer;  /* index */
	uint32_t expert; /* its hottest */
	double ratio;    /* max/mean */
};

int figures_find_worst(const struct report *report, struct figures_worst *worst);

/*
 * Layers x experts: tokens of an expert over the mean of its layer, on a scale from 0 to
 * the largest.
 *
 * @title: over the picture; what is not ASCII becomes '?'.
 *
 * Returns 0 or -ENOMEM; pairs with picture_free().
 */
int figures_draw_load(const struct report *report, const char *title, struct picture *picture);

/* Layers x time: max/mean of the experts, on a scale from 1 to the largest. Returns 0,
 * -ENODATA (it was not kept, or all is at one time) or -ENOMEM. */
int figures_draw_balance(const struct report *report, struct picture *picture);

/* Pieces of the time line from the first to the last with anything in it; false: none. */
bool figures_time(const struct series *series, uint32_t *first, uint32_t *count);

#endif
