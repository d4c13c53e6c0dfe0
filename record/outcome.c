/* SPDX-License-Identifier: Apache-2.0 */
/* STEP_END and LOST: what became of steps. */
#include <errno.h>
#include <string.h>

#include "record/types.h"

/* ---- STEP_END ---- */

static int step_end_check_head(const struct r3ring_record *record, struct r3ring_error *err)
{
	const struct r3ring_step_end_record *head = &record->u.step_end.head;

	if (head->step == 0)
		return RECORD_REFUSE(err, "STEP_END record: step 0; steps are numbered from 1");
	if (head->status != R3RING_STEP_COMPLETE && head->status != R3RING_STEP_PARTIAL)
		return RECORD_REFUSE(err, "STEP_END record: unknown status %u", head->status);
	if (head->status == R3RING_STEP_COMPLETE && head->missing)
		return RECORD_REFUSE(err, "STEP_END record: complete, yet %u layers are missing",
				     head->missing);
	if (head->missing > R3RING_LAYERS_MAX)
		return RECORD_REFUSE(err, "STEP_END record: %u missing layers, at most %u",
				     head->missing, R3RING_LAYERS_MAX);
	return 0;
}

static unsigned int step_end_arrays(const struct r3ring_record *record, struct record_array *arrays)
{
	arrays[0] = (struct record_array){
		RECORD_POINTER(step_end.missing),
		record->u.step_end.head.missing * (uint64_t)sizeof(struct r3ring_missing_layer),
		"missing",
	};
	return 1;
}

static int step_end_check_arrays(const struct r3ring_record *record, struct r3ring_error *err)
{
	for (uint32_t i = 0; i < record->u.step_end.head.missing; i++) {
		struct r3ring_missing_layer layer;
		int rc;

		memcpy(&layer, &record->u.step_end.missing[i], sizeof(layer));
		rc = record_check_layer_kind("STEP_END", layer.layer_id, layer.kind, err);
		if (rc)
			return rc;
		if (layer.cause == R3RING_CAUSE_NONE || layer.cause >= R3RING_CAUSE_COUNT)
			return RECORD_REFUSE(err,
					     "STEP_END record: layer %d is missing for unknown "
					     "cause %u",
					     layer.layer_id, layer.cause);
	}
	return 0;
}

static void step_end_clear_arrays(const struct r3ring_record *record, void *arrays)
{
	struct r3ring_missing_layer *missing = arrays;

	for (uint32_t i = 0; i < record->u.step_end.head.missing; i++)
		missing[i].reserved = 0;
}

const struct record_type record_step_end = {
	.head_bytes = sizeof(struct r3ring_step_end_record),
	.clear_reserved = record_nothing_reserved,
	.check_head = step_end_check_head,
	.arrays = step_end_arrays,
	.check_arrays = step_end_check_arrays,
	.clear_arrays = step_end_clear_arrays,
};

/* ---- LOST ---- */

static int lost_check_steps(const struct r3ring_lost_record *lost, struct r3ring_error *err)
{
	if (lost->from_step > lost->to_step)
		return RECORD_REFUSE(err, "LOST record: from step %llu to step %llu",
				     (unsigned long long)lost->from_step,
				     (unsigned long long)lost->to_step);
	if (lost->from_step == 0 && lost->to_step)
		return RECORD_REFUSE(
			err, "LOST record: from step 0, which does not exist; unknown steps "
			     "are 0 to 0");
	if (lost->from_step && lost->steps && lost->steps - 1 > lost->to_step - lost->from_step)
		return RECORD_REFUSE(err, "LOST record: %llu steps between step %llu and step %llu",
				     (unsigned long long)lost->steps,
				     (unsigned long long)lost->from_step,
				     (unsigned long long)lost->to_step);
	return 0;
}

static int lost_check_head(const struct r3ring_record *record, struct r3ring_error *err)
{
	const struct r3ring_lost_record *lost = &record->u.lost;

	if (lost->cause == R3RING_CAUSE_NONE || lost->cause > R3RING_CAUSE_CONFLICT)
		return RECORD_REFUSE(err, "LOST record: unknown cause %u", lost->cause);
	if (lost->spans_unknown > 1)
		return RECORD_REFUSE(err, "LOST record: spans_unknown is %u, allowed are 0 and 1",
				     lost->spans_unknown);
	return lost_check_steps(lost, err);
}

const struct record_type record_lost = {
	.head_bytes = sizeof(struct r3ring_lost_record),
	.clear_reserved = record_nothing_reserved,
	.check_head = lost_check_head,
	.arrays = record_no_arrays,
};
