/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON values that jansson has no call for.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <r3ring/record.h>

#include "tools/json_values.h"
#include "tools/words.h"

json_t *json_u64(uint64_t value)
{
	char digits[24];

	if (value <= INT64_MAX)
		return json_integer((json_int_t)value);
	snprintf(digits, sizeof(digits), "%" PRIu64, value);
	return json_string(digits);
}

json_t *json_known_u32(uint32_t value)
{
	return value == R3RING_UNKNOWN_U32 ? json_null() : json_integer(value);
}

/* Replaces every byte beyond ASCII, in text that is not UTF-8 as a whole. */
static json_t *ascii_text(const char *text, size_t len)
{
	static const char replacement[] = "\xef\xbf\xbd"; /* U+FFFD */
	char *clean = malloc(len * 3 + 1);
	size_t used = 0;
	json_t *value;

	if (!clean)
		return NULL;
	for (size_t i = 0; i < len; i++) {
		bool ascii = !((unsigned char)text[i] & 0x80);

		memcpy(clean + used, ascii ? text + i : replacement, ascii ? 1 : 3);
		used += ascii ? 1 : 3;
	}
	value = json_stringn(clean, used);
	free(clean);
	return value;
}

json_t *json_text(const char *text, size_t len)
{
	json_t *value;

	if (!len)
		return json_null();
	value = json_stringn(text, len);
	return value ? value : ascii_text(text, len);
}

json_t *json_lower(const char *name)
{
	char word[WORD_MAX];

	return json_string(word_lower(word, name));
}

json_t *json_hex(const uint8_t *bytes, size_t count)
{
	char digits[2 * 32 + 1] = "";

	for (size_t i = 0; i < count && i < 32; i++)
		snprintf(digits + 2 * i, 3, "%02x", bytes[i]);
	return json_string(digits);
}

json_t *json_key(uint64_t key)
{
	char digits[17];

	snprintf(digits, sizeof(digits), "%016" PRIx64, key);
	return json_string(digits);
}

json_t *json_numbers(const int32_t *numbers, size_t count)
{
	json_t *list = json_array();
	int code = list ? 0 : -1;

	for (size_t i = 0; !code && i < count; i++)
		code = json_array_append_new(list, json_integer(numbers[i]));
	if (!code)
		return list;
	json_decref(list);
	return NULL;
}

json_t *json_lost(const uint64_t *steps, const uint64_t *rows, const char *none)
{
	json_t *lost = json_object();
	int code = lost ? 0 : -1;

	for (uint32_t cause = 0; !code && cause < R3RING_CAUSE_COUNT; cause++) {
		if (steps[cause] || rows[cause])
			code = json_object_set_new(lost, cause ? r3ring_cause_name(cause) : none,
						   json_pack("{s:o, s:o}", "steps",
							     json_u64(steps[cause]), "rows",
							     json_u64(rows[cause])));
	}
	if (!code)
		return lost;
	json_decref(lost);
	return NULL;
}
