/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decoding. The payload may belong to a hostile process and may change at any
 * moment: the head is copied once and every count is taken from that copy.
 */
#include <errno.h>
#include <string.h>

#include "record/types.h"

static int copy_head(struct r3ring_record *record, const struct record_type *type,
		     const void *payload, size_t len, struct r3ring_error *err)
{
	if (len < type->head_bytes)
		return RECORD_REFUSE(err, "%s record of %zu bytes: its head alone has %zu",
				     r3ring_record_type_name(record->type), len, type->head_bytes);
	memcpy(&record->u, payload, type->head_bytes);
	type->clear_reserved(record);
	return 0;
}

/* Points the record's arrays into the payload, which is known to hold them. */
static void place_arrays(struct r3ring_record *record, const struct record_type *type,
			 const void *payload)
{
	struct record_array arrays[RECORD_ARRAYS_MAX];
	const uint8_t *at = (const uint8_t *)payload + type->head_bytes;
	unsigned int n = type->arrays(record, arrays);

	for (unsigned int i = 0; i < n; i++) {
		record_array_set(record, &arrays[i], at);
		at += arrays[i].bytes;
	}
}

int r3ring_record_decode(struct r3ring_record *record, uint16_t type_number, const void *payload,
			 size_t len, struct r3ring_error *err)
{
	const struct record_type *type = record_type_of(type_number);
	struct r3ring_record local = {.type = type_number};
	uint64_t bytes;
	int rc;

	if (!type)
		return r3ring_error_set(err, -ENOTSUP,
					"record type %u is not known to this version; skip it",
					type_number);
	rc = copy_head(&local, type, payload, len, err);
	if (rc)
		return rc;
	rc = record_measure(type, &local, &bytes, err);
	if (rc)
		return rc;
	if (bytes != len)
		return RECORD_REFUSE(err,
				     "%s record of %zu bytes: its head announces %llu, so it is "
				     "truncated or corrupt",
				     r3ring_record_type_name(type_number), len,
				     (unsigned long long)bytes);
	place_arrays(&local, type, payload);
	rc = type->check_arrays ? type->check_arrays(&local, err) : 0;
	if (rc)
		return rc;
	*record = local;
	return 0;
}
