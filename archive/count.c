/* SPDX-License-Identifier: Apache-2.0 */
#include "archive/count.h"

/* ---- what there is ----------------------------------------------------- */

static void count_decoded(struct archive_verified *to, const struct r3ring_record *record)
{
	switch (record->type) {
	case R3RING_STEP:
		to->steps++;
		to->steps_dropped += (record->u.step.head.flags & R3RING_STEP_DROPPED) != 0;
		to->rows += r3ring_step_valid_rows(&record->u.step.head);
		break;
	case R3RING_LAYER:
		to->layer_rows += record->u.layer.head.valid_rows;
		break;
	case R3RING_STEP_END:
		to->steps_complete += record->u.step_end.head.status == R3RING_STEP_COMPLETE;
		to->steps_partial += record->u.step_end.head.status == R3RING_STEP_PARTIAL;
		break;
	case R3RING_REQUEST:
		to->requests_begun += record->u.request.head.event == R3RING_REQUEST_BEGIN;
		to->requests_ended += record->u.request.head.event == R3RING_REQUEST_END;
		break;
	default:
		break;
	}
}

static void count_record(struct archive_verified *to, const struct archive_item *item,
			 const struct r3ring_record *record)
{
	uint16_t type = item->view.type;

	if (item->repeated)
		return;
	to->ring_bytes += item->view.len;
	if (item->kind == ARCHIVE_SKIPPED) {
		to->skipped++;
		to->kept = item->u.kept;
	}
	if (item->kind == ARCHIVE_RECORD)
		to->records[type < R3RING_RECORD_TYPES ? type : 0]++;
	if (record && !(item->view.flags & R3RING_DESC_REPEATED))
		count_decoded(to, record);
}

void archive_count(struct archive_verified *to, const struct archive_item *item,
		   const struct r3ring_record *decoded)
{
	if (!to->first_ns)
		to->first_ns = item->time_ns;
	switch (item->kind) {
	case ARCHIVE_RECORD:
	case ARCHIVE_SKIPPED:
		count_record(to, item, decoded);
		break;
	case ARCHIVE_GAP:
		to->gaps[item->u.gap.cause]++;
		to->gap_records[item->u.gap.cause] += item->u.gap.lost;
		to->gaps_unsized += !item->u.gap.lost;
		break;
	case ARCHIVE_RESUMED:
		to->resumed++;
		to->cut_bytes += item->u.resumed.cut_bytes;
		break;
	default:
		break;
	}
}
