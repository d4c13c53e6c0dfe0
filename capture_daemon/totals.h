/* SPDX-License-Identifier: Apache-2.0 */
/* Running totals of a generation: counted alike by who ends a step and by who reads
 * its end back from a dead daemon's ring. */
#ifndef DAEMON_TOTALS_H
#define DAEMON_TOTALS_H

#include <stdint.h>

#include <r3ring/record.h>

/*
 * Adds an ended step.
 *
 * @end:    its STEP_END.
 * @valid:  its valid rows.
 * @layers: how many a whole step has.
 *
 * Its rows came if any layer of it did.
 */
void totals_add_end(struct r3ring_totals *totals, const struct r3ring_record *end, uint64_t valid,
		    uint32_t layers);

#endif
