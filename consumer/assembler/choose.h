/* SPDX-License-Identifier: Apache-2.0 */
/* Which rows count at a position, and what the cells of it hold. */
#ifndef CONSUMER_ASSEMBLER_CHOOSE_H
#define CONSUMER_ASSEMBLER_CHOOSE_H

#include "consumer/assembler/assembled.h"

#define ROWS_MAX 64u /* channels that have a row of one position */

/* The rows of one position, of one attempt. */
struct chosen {
	const struct pass *pass; /* NULL: no pass is known to have consumed the token */
	struct row *row[ROWS_MAX];
	const struct layer_map *map[ROWS_MAX];
	uint32_t rows;
	uint32_t passes;  /* leading rows that may count; what is behind only contradicts, */
	uint64_t instead; /* but those with a bit here may be what a cache found in their place */
	uint8_t cause;    /* of cells of which no row says why */
};

/* Where the row's layers are those of the request; NULL where nobody knows. */
const struct layer_map *map_of(const struct r3ring_assembled *assembled, const struct row *row);

void choose(const struct r3ring_assembled *assembled, uint32_t position, struct chosen *chosen);
/* Whether no attempt before this one is known to have run the position, or may have in records that
 * were lost. */
bool choose_may_be_first(const struct r3ring_assembled *assembled, uint16_t number,
			 uint32_t position);
/* A row of one channel that has all layers, and all of them valid; NULL where that is not all. */
struct row *whole_row(const struct chosen *chosen);

/* cell.c */
struct cell {
	const uint16_t *ids; /* NULL: missing */
	const struct row *from;
	uint8_t cause;
	uint32_t channel[2]; /* of a conflict */
	uint64_t step[2];
};

void cell_read(const struct r3ring_assembled *assembled, const struct chosen *chosen,
	       uint32_t layer, struct cell *cell);

/* mixed.c: cells of which two channels have ids, and those whose experts are not the same. */
struct overlap {
	uint64_t shared, apart;
	uint32_t positions; /* that those are of */
	bool torn;          /* one of the channels lost something */
	uint32_t by[2];     /* channels of the first that were apart */
};

/* Adds those of a position. */
void overlap_add(struct overlap *overlap, const struct r3ring_assembled *assembled,
		 const struct chosen *chosen, uint32_t position);
/* Whether channels that ran so much of one text would have differed less. */
bool overlap_is_mixed(const struct overlap *overlap);

#endif
