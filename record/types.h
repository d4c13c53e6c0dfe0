/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What decoder and encoder need to know of each record type: how long its head
 * is, which arrays lie behind it, and what makes it refused. Both use the same
 * checks, so neither can let through what the other refuses.
 */
#ifndef RECORD_TYPES_H
#define RECORD_TYPES_H

#include <stddef.h>
#include <stdint.h>

#include <r3ring/record.h>

#define RECORD_ARRAYS_MAX 4

/* An array or text behind a head. */
struct record_array {
	size_t pointer; /* offset of the pointer to it within struct r3ring_record */
	uint64_t bytes;
	const char *name; /* for messages */
};

/*
 * Every head lies at the beginning of the record's union. Checks get a record
 * whose head is private; they return 0 or -EBADMSG.
 */
struct record_type {
	size_t head_bytes;
	void (*clear_reserved)(struct r3ring_record *record);
	int (*check_head)(const struct r3ring_record *record, struct r3ring_error *err);
	/* Describes the arrays of a record whose head is good; returns how many. */
	unsigned int (*arrays)(const struct r3ring_record *record, struct record_array *arrays);
	/* What the arrays hold; each element is read once. May be NULL. */
	int (*check_arrays)(const struct r3ring_record *record, struct r3ring_error *err);
	/* Clears reserved fields within encoded arrays. May be NULL. */
	void (*clear_arrays)(const struct r3ring_record *record, void *arrays);
};

extern const struct record_type record_schema, record_request, record_step, record_spans,
	record_rows, record_layer, record_step_end, record_lost, record_eplb, record_key_copy,
	record_keyframe, record_closed;

/* NULL for a type that this version does not know. */
const struct record_type *record_type_of(uint16_t type);

/* Checks a head and says how many bytes the encoded record has. */
int record_measure(const struct record_type *type, const struct r3ring_record *record,
		   uint64_t *bytes, struct r3ring_error *err);

/* The record's pointer to an array, as a pointer to anything. */
const void *record_array_get(const struct r3ring_record *record, const struct record_array *array);
void record_array_set(struct r3ring_record *record, const struct record_array *array,
		      const void *target);

/* For types that have none. */
unsigned int record_no_arrays(const struct r3ring_record *record, struct record_array *arrays);
void record_nothing_reserved(struct r3ring_record *record);

int record_check_layer_kind(const char *record, int32_t layer_id, uint32_t kind,
			    struct r3ring_error *err);

#define RECORD_POINTER(member) offsetof(struct r3ring_record, u.member)

/* Refuses a record; evaluates to -EBADMSG. */
#define RECORD_REFUSE(err, ...) r3ring_error_set(err, -EBADMSG, __VA_ARGS__)

#endif
