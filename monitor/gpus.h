/* SPDX-License-Identifier: Apache-2.0 */
/* What an EPLB map makes of a load: each GPU's share of it, and how even they are. */
#ifndef MONITOR_GPUS_H
#define MONITOR_GPUS_H

#include <stdbool.h>

#include <r3ring/eplb.h>
#include <r3ring/load.h>

struct gpus {
	uint64_t epoch;      /* of the map */
	double worst;        /* the largest max/mean of a layer's GPUs */
	double average;      /* over layers */
	int32_t worst_layer; /* the model's number of it */
	uint32_t worst_gpu;
	double chance; /* the max/mean that even routing may come to in the worst layer */
	uint32_t count;
	double load[]; /* [count] over all layers */
};

/* Of a load of the map's layers and experts. The caller's, to be freed; NULL: the map is of
 * other ones, or there is no memory. */
struct gpus *gpus_measure(const struct r3ring_eplb_map *map, const struct r3ring_load_info *info);

/* Whether they are to be called uneven: beyond BALANCE_GPUS_UNEVEN, and beyond chance. */
bool gpus_uneven(const struct gpus *gpus);

/* A GPU's load over all layers, over the mean of all; 0 where there is none. */
double gpus_to_mean(const struct gpus *gpus, uint32_t gpu);

/* Another one like it; NULL for NULL, or without memory. */
struct gpus *gpus_copy(const struct gpus *gpus);

#endif
