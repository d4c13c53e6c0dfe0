/* SPDX-License-Identifier: Apache-2.0 */
/* Running totals of a generation. */
#include "capture_daemon/totals.h"

void totals_add_end(struct r3ring_totals *totals, const struct r3ring_record *end, uint64_t valid,
		    uint32_t layers)
{
	uint32_t missing = end->u.step_end.head.missing;

	if (missing)
		totals->steps_partial++;
	else
		totals->steps_complete++;
	totals->layers_missing += missing;
	if (missing >= layers)
		return;
	totals->layer_rows += valid * (layers - missing);
	totals->rows += valid;
}
