/* SPDX-License-Identifier: Apache-2.0 */
#include "archive/again.h"

static bool begins(const struct r3ring_record *record)
{
	return record->type == R3RING_REQUEST &&
	       record->u.request.head.event == R3RING_REQUEST_BEGIN;
}

static void take_schema(struct archive_again *again, const struct archive_item *item,
			const struct r3ring_schema_record *schema)
{
	const bool goes_on = item->view.seq == 1 && schema->continues;

	again->carrying = goes_on;
	again->told = goes_on && item->view.generation - schema->continues == again->generation
			      ? again->newest
			      : 0;
}

static void take_step(struct archive_again *again, const struct archive_item *item,
		      const struct r3ring_step_record *step, struct archive_told_again *told)
{
	if (step->step <= again->told) {
		told->steps++;
		told->rows += r3ring_step_valid_rows(step);
	}
	again->generation = item->view.generation;
	again->newest = step->step;
}

void archive_again_take(struct archive_again *again, const struct archive_item *item,
			const struct r3ring_record *record, struct archive_told_again *told)
{
	if (item->repeated || item->view.flags & R3RING_DESC_REPEATED)
		return;
	if (record->type == R3RING_SCHEMA)
		take_schema(again, item, &record->u.schema.head);
	else
		again->carrying &= begins(record) || record->type == R3RING_EPLB;
	if (record->type == R3RING_STEP)
		take_step(again, item, &record->u.step.head, told);
	told->attempts += again->carrying && begins(record);
}
