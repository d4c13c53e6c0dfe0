/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records of every type in three sizes, and their payloads put together from
 * the documented layout alone, as an independent reference for the codec.
 */
#ifndef TESTS_RECORD_EXAMPLES_H
#define TESTS_RECORD_EXAMPLES_H

#include <stddef.h>
#include <stdint.h>

#include <r3ring/record.h>

enum example_size {
	EXAMPLE_MIN = 0, /* nothing behind the head where that is allowed */
	EXAMPLE_TYPICAL = 1,
	EXAMPLE_MAX = 2, /* counts and values at their bounds */
	EXAMPLE_SIZES = 3,
};

#define EXAMPLE_PARTS_MAX 4

/* An array behind the head: where the record points, and how long it is. */
struct example_part {
	const void *data;
	size_t bytes;
};

struct example_payload {
	uint8_t *bytes; /* malloc'd, 64-byte aligned */
	size_t len;
};

/* Arrays that the record points to are static: valid until the next call of the
 * same type. Their contents may be changed through example_*(). */
void example_record(struct r3ring_record *record, uint16_t type, enum example_size size);

size_t example_head_bytes(uint16_t type);

/* The arrays of a record in the order of the layout; returns how many. */
unsigned int example_parts(const struct r3ring_record *record,
			   struct example_part parts[EXAMPLE_PARTS_MAX]);

/* Head, then arrays. Pairs with free(payload.bytes). */
struct example_payload example_payload(const struct r3ring_record *record);

/* The static arrays, to be spoilt by tests. */
struct r3ring_layer_entry *example_layers(void);
struct r3ring_span *example_spans(void);
struct r3ring_missing_layer *example_missing(void);
uint16_t *example_map(void);
char *example_text(void);

#endif
