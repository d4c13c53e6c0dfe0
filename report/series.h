/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts of layers and experts, in all and over time. Time is cut into a bounded number of
 * pieces of the same length; where they do not reach, two become one.
 */
#ifndef REPORT_SERIES_H
#define REPORT_SERIES_H

#include <stdbool.h>

#include <r3ring/load.h>

#define SERIES_PIECES 96u /* even */
#define SERIES_FIRST_NS UINT64_C(1000000)
#define SERIES_BYTES (UINT64_C(64) << 20) /* of counts over time, at most */

struct series_layer {
	struct r3ring_layer_entry entry;
	double rows;
	uint64_t *counts;   /* [experts] */
	uint32_t *read;     /* [experts] of the newest snapshot, modulo 2^32 */
	uint32_t rows_read; /* likewise */
	float *over_time;   /* [SERIES_PIECES][experts]; NULL: for want of room */
};

struct series_piece {
	uint64_t counted, lost; /* cells */
	uint64_t steps;         /* that began in it */
};

struct series {
	uint32_t experts, layers;
	uint16_t top_k;
	struct series_layer *layer; /* [layers] */
	uint64_t over_time_bytes;
	int64_t start_ns;           /* CLOCK_REALTIME */
	uint64_t width_ns;          /* 0: nothing yet */
	uint64_t first_ns, last_ns; /* that were placed */
	struct series_piece piece[SERIES_PIECES];
	struct r3ring_load_accounts read; /* of the newest snapshot */
};

void series_free(struct series *series);

/* Whether a point in time lies in one of the pieces as they are. */
bool series_reaches(const struct series *series, uint64_t ns);
/* The piece that it lies in, once they reach there. */
uint32_t series_find(struct series *series, uint64_t ns);

#define SERIES_NOWHERE UINT32_MAX /* counted nowhere: of a time that was not asked for */

/*
 * Takes what was counted since the last time into a piece, and in all.
 *
 * @info:     over R3RING_LOAD_EVER; fewer than 2^32 in one cell since then.
 * @accounts: grows by the difference.
 *
 * Returns 0 or -ENOMEM.
 */
int series_take(struct series *series, const struct r3ring_load_info *info, uint32_t piece,
		struct r3ring_load_accounts *accounts);

/* Puts layers into the model's order. */
void series_sort(struct series *series);

/* max/mean of a layer's experts in a piece; 0 without load, or where it is not known. */
double series_balance(const struct series *series, uint32_t layer, uint32_t piece);

#endif
