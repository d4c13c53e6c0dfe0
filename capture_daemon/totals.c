/* SPDX-License-Identifier: Apache-2.0 */
/* Running totals of a generation. */
#include "capture_daemon/totals.h"

static uint32_t layers_cut(const struct r3ring_record *end)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < end->u.step_end.head.missing; i++)
		count += end->u.step_end.missing[i].cause == R3RING_CAUSE_PRODUCER_DIED;
	return count;
}

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
	if (!layers_cut(end))
		totals->rows += valid;
}

bool totals_add_cut(struct r3ring_lost_record *lost, const struct r3ring_record *end,
		    uint64_t valid)
{
	uint32_t layers = layers_cut(end);

	if (!layers)
		return false;
	lost->to_step = end->u.step_end.head.step;
	if (!lost->from_step)
		lost->from_step = lost->to_step;
	lost->steps++;
	lost->rows += valid;
	lost->layer_rows += valid * layers;
	return true;
}
