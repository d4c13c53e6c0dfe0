/* SPDX-License-Identifier: Apache-2.0 */
/* The ring of a daemon that died, told record by record, and what the next one reads in it. */
#ifndef TESTS_UNIT_DEAD_RING_H
#define TESTS_UNIT_DEAD_RING_H

#include "capture_daemon/publish.h"
#include "capture_daemon/remains.h"

#define DEAD_LAYERS 3u
#define DEAD_TOP_K 2u
#define DEAD_ROWS 4u /* of a step, the last of them padding */
#define DEAD_GENERATION 7u

struct dead_ring {
	struct publisher publisher;
	struct r3ring_segment *segment;
	struct remains remains;
};

extern struct dead_ring dead;
extern const struct r3ring_layer_entry dead_layer[DEAD_LAYERS];

struct r3ring_record dead_schema(void);

/* A ring with its schema, of which nothing is read yet; for .init and .fini. */
void dead_open(void);
void dead_close(void);

void dead_put(const struct r3ring_record *record);
void dead_step(uint64_t step, uint32_t flags);
void dead_drop(uint64_t step, enum r3ring_cause cause);
/* A layer takes two records; of each one id more is missing, and five more are out of range, than it
 * is the number of. */
void dead_layer_part(uint64_t step, uint32_t layer, uint32_t part);
/* Whole, published at a microsecond a step. */
void dead_end(uint64_t step);
/* All steps from one to another, ten rows each. */
void dead_lost(uint64_t from, uint64_t to, enum r3ring_cause cause);

/* What the next daemon finds; remains_free() before it reads again. */
void dead_read(void);

#endif
