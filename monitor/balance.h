/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which layers are out of balance, and which experts make them so. Calculation only, from a
 * snapshot of load; any thread.
 */
#ifndef MONITOR_BALANCE_H
#define MONITOR_BALANCE_H

#include <stdbool.h>
#include <stdint.h>

#include <r3ring/load.h>

/*
 * max/mean beyond which a layer's experts, and its GPUs, are called uneven: by `r3ring top`, the
 * page, reports, and docs/alerts.yml (R3ringImbalance). The page's own copy of the first is the
 * number that stands in its field at the beginning.
 */
#define BALANCE_UNEVEN 2.0
#define BALANCE_GPUS_UNEVEN 1.5

struct balance_layer {
	uint32_t index; /* in the snapshot */
	int32_t layer;  /* its number in the model */
	double rows;
	double share;  /* of the layer's ids that its hottest expert (figures.most) has */
	double chance; /* the max/mean that even routing may come to with so few ids */
	struct r3ring_load_figures figures; /* `hottest`: share of the eight hottest */
};

/*
 * The layers of a snapshot, the one that is furthest from even (figures.max_to_mean) first;
 * of equals the lower one.
 *
 * @layers: receives [info->layers].
 *
 * Returns 0 or -ENOMEM.
 */
int balance_layers(const struct r3ring_load_info *info, struct balance_layer *layers);

/*
 * What the largest of @cells counts, over their mean, stays below in 19 of 20 cases where
 * every token's way is by chance: the r with r ln r - r + 1 = ln(20 cells) / mean, which is
 * Chernoff's bound of a Poisson variable for each. 0 when nothing was counted. A layer below
 * it may be even.
 *
 * Source: Boucheron, Lugosi, Massart, Concentration Inequalities, 2013, section 2.2.
 */
double balance_chance(double mean, uint32_t cells);

/* Whether a layer is to be called uneven: beyond @limit, and beyond chance. */
bool balance_uneven(const struct balance_layer *layer, double limit);

struct balance_expert {
	uint32_t index; /* of its layer in the snapshot */
	int32_t layer;
	uint32_t expert;
	double ratio; /* its count over the mean of its layer */
	double share; /* of its layer's ids */
};

/*
 * The experts furthest above the mean of their layer, the furthest first; of equals the one
 * of the lower layer and number. Those without any load are never among them.
 *
 * @hottest: receives at most @most.
 *
 * Returns how many.
 */
uint32_t balance_hottest(const struct r3ring_load_info *info, struct balance_expert *hottest,
			 uint32_t most);

#endif
