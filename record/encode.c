/* SPDX-License-Identifier: Apache-2.0 */
/* Encoding: refuses exactly what the decoder would refuse. */
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>

#include "record/types.h"

size_t r3ring_record_size(const struct r3ring_record *record)
{
	const struct record_type *type = record_type_of(record->type);
	uint64_t bytes;

	if (!type || record_measure(type, record, &bytes, NULL))
		return 0;
	return (size_t)bytes;
}

/* The checks say -EBADMSG of a record; to who encodes it, it is an argument. */
static int as_argument(int rc, struct r3ring_error *err)
{
	if (!rc)
		return 0;
	if (err)
		err->code = -EINVAL;
	return -EINVAL;
}

static bool head_only(const struct r3ring_record *record)
{
	return record->type == R3RING_LAYER && !record->u.layer.ids;
}

static int check_pointers(const struct r3ring_record *record, const struct record_array *arrays,
			  unsigned int n, struct r3ring_error *err)
{
	for (unsigned int i = 0; i < n; i++)
		if (arrays[i].bytes && !record_array_get(record, &arrays[i]))
			return RECORD_REFUSE(err,
					     "%s record: %s is NULL, its head announces %llu "
					     "bytes",
					     r3ring_record_type_name(record->type), arrays[i].name,
					     (unsigned long long)arrays[i].bytes);
	return 0;
}

static void write_arrays(const struct r3ring_record *record, const struct record_type *type,
			 const struct record_array *arrays, unsigned int n, uint8_t *out)
{
	uint8_t *at = out;

	for (unsigned int i = 0; i < n; i++) {
		if (arrays[i].bytes)
			memcpy(at, record_array_get(record, &arrays[i]), (size_t)arrays[i].bytes);
		at += arrays[i].bytes;
	}
	if (type->clear_arrays)
		type->clear_arrays(record, out);
}

/* Everything that can be refused; says how many bytes and which arrays follow. */
static int prepare(const struct r3ring_record *record, const struct record_type *type,
		   struct record_array *arrays, unsigned int *n, uint64_t *bytes,
		   struct r3ring_error *err)
{
	int rc = record_measure(type, record, bytes, err);

	if (rc)
		return rc;
	if (head_only(record)) {
		*bytes = type->head_bytes;
		return 0;
	}
	*n = type->arrays(record, arrays);
	rc = check_pointers(record, arrays, *n, err);
	if (!rc && type->check_arrays)
		rc = type->check_arrays(record, err);
	return rc;
}

long r3ring_record_encode(const struct r3ring_record *record, void *buffer, size_t capacity,
			  struct r3ring_error *err)
{
	const struct record_type *type = record_type_of(record->type);
	struct record_array arrays[RECORD_ARRAYS_MAX];
	struct r3ring_record head;
	unsigned int n = 0;
	uint64_t bytes;

	if (!type)
		return r3ring_error_set(err, -EINVAL, "record type %u does not exist",
					record->type);
	if (prepare(record, type, arrays, &n, &bytes, err))
		return as_argument(-EBADMSG, err);
	if (bytes > capacity || bytes > LONG_MAX)
		return r3ring_error_set(
			err, -ENOBUFS, "%s record needs %llu bytes, the buffer has %zu",
			r3ring_record_type_name(record->type), (unsigned long long)bytes, capacity);
	head = *record;
	type->clear_reserved(&head);
	memcpy(buffer, &head.u, type->head_bytes);
	write_arrays(record, type, arrays, n, (uint8_t *)buffer + type->head_bytes);
	return (long)bytes;
}
