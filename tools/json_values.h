/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON values that jansson has no call for. Each returns a new reference, or
 * NULL when memory is out.
 */
#ifndef TOOLS_JSON_VALUES_H
#define TOOLS_JSON_VALUES_H

#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

/* An integer; a decimal string beyond INT64_MAX, which JSON readers would bend. */
json_t *json_u64(uint64_t value);

/* The same, but null for R3RING_UNKNOWN_U32. */
json_t *json_known_u32(uint32_t value);

/* Text of @len bytes; what is not UTF-8 becomes U+FFFD. null when @len is 0. */
json_t *json_text(const char *text, size_t len);

/* A name of the library ("STEP_END") in lower case. */
json_t *json_lower(const char *name);

/* Bytes in hexadecimal, without separators. */
json_t *json_hex(const uint8_t *bytes, size_t count);

/* A 64-bit key: 16 hexadecimal digits, since keys are hashes and no quantities. */
json_t *json_key(uint64_t key);

json_t *json_numbers(const int32_t *numbers, size_t count);

/* Steps and rows lost, by cause: an object of those that came. @steps, @rows:
 * [R3RING_CAUSE_COUNT]; @none: what R3RING_CAUSE_NONE is called. */
json_t *json_lost(const uint64_t *steps, const uint64_t *rows, const char *none);

#endif
