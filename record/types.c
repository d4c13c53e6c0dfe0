/* SPDX-License-Identifier: Apache-2.0 */
/* The table of record types, and what is common to all. */
#include <errno.h>
#include <string.h>

#include "record/types.h"

static const struct record_type *const types[R3RING_RECORD_TYPES] = {
	[R3RING_SCHEMA] = &record_schema,     [R3RING_REQUEST] = &record_request,
	[R3RING_STEP] = &record_step,         [R3RING_SPANS] = &record_spans,
	[R3RING_ROWS] = &record_rows,         [R3RING_LAYER] = &record_layer,
	[R3RING_STEP_END] = &record_step_end, [R3RING_LOST] = &record_lost,
	[R3RING_EPLB] = &record_eplb,         [R3RING_KEY_COPY] = &record_key_copy,
	[R3RING_KEYFRAME] = &record_keyframe, [R3RING_CLOSED] = &record_closed,
};

const struct record_type *record_type_of(uint16_t type)
{
	return type < R3RING_RECORD_TYPES ? types[type] : NULL;
}

int record_measure(const struct record_type *type, const struct r3ring_record *record,
		   uint64_t *bytes, struct r3ring_error *err)
{
	struct record_array arrays[RECORD_ARRAYS_MAX];
	uint64_t sum = type->head_bytes;
	unsigned int n;
	int rc = type->check_head(record, err);

	if (rc)
		return rc;
	n = type->arrays(record, arrays);
	for (unsigned int i = 0; i < n; i++)
		sum += arrays[i].bytes;
	*bytes = sum;
	return 0;
}

const void *record_array_get(const struct r3ring_record *record, const struct record_array *array)
{
	const void *target;

	memcpy(&target, (const uint8_t *)record + array->pointer, sizeof(target));
	return target;
}

void record_array_set(struct r3ring_record *record, const struct record_array *array,
		      const void *target)
{
	memcpy((uint8_t *)record + array->pointer, &target, sizeof(target));
}

unsigned int record_no_arrays(const struct r3ring_record *record, struct record_array *arrays)
{
	(void)record;
	(void)arrays;
	return 0;
}

void record_nothing_reserved(struct r3ring_record *record)
{
	(void)record;
}

int record_check_layer_kind(const char *record, int32_t layer_id, uint32_t kind,
			    struct r3ring_error *err)
{
	if (kind > R3RING_LAYER_MTP)
		return RECORD_REFUSE(err,
				     "%s record: layer %d has kind %u, known are 0 (moe), 1 (hash) "
				     "and 2 (mtp)",
				     record, layer_id, kind);
	if (layer_id < 0)
		return RECORD_REFUSE(err,
				     "%s record: layer number %d is negative; use the model's own "
				     "number",
				     record, layer_id);
	return 0;
}
