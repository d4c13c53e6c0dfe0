/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a dead daemon had published, read back from its ring: enough to go on as if
 * it had not died.
 */
#ifndef DAEMON_REMAINS_H
#define DAEMON_REMAINS_H

#include <stdbool.h>
#include <stdint.h>

#include <r3ring/record.h>
#include <r3ring/ring.h>

#include "capture_daemon/drain.h"

/* Steps that were never announced: one LOST record a cause. */
struct remains_gap {
	uint64_t from_step, to_step;
	uint64_t steps; /* that the records told of so far */
	uint32_t records;
};

/* Begin with remains_init(). */
struct remains {
	struct r3ring_record schema; /* the newest one; no layers: none was found */
	struct r3ring_layer_entry *layers;
	struct live live;
	struct r3ring_totals totals;
	uint64_t newest_step;
	uint64_t counted_step;    /* newest of the steps that totals.steps counts */
	uint64_t told_step;       /* newest of which the end, or the loss, was told */
	uint64_t newest_end_ns;   /* when the newest one that ended did */
	struct remains_gap gap;   /* the newest */
	uint32_t carried_records; /* of a gap behind told_step, told in the ring before */
	uint64_t carried_from;    /* its first step */
	struct drain_said said;
	bool closed; /* its end was told: nothing may follow */
};

void remains_init(struct remains *remains);

/* Reads the whole ring, which nobody writes. Returns 0, -EBADMSG (it claims more records than
 * it has room for), or another negative errno. */
int remains_read(struct remains *remains, const struct r3ring_segment *segment);

/* Frees what was not taken out of it (and zeroed). */
void remains_free(struct remains *remains);

/*
 * How many records of one side entry are in the ring, which begin at sequence @seq:
 * what an adopting daemon added behind them does not count.
 */
uint32_t remains_count_said(const struct r3ring_segment *segment, uint64_t seq);

#endif
