/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/dump_line.h"

void dump_line_parse(struct dump_line *line)
{
	cr_assert(line->len > 0 && line->text[line->len - 1] == '\n');
	cr_assert_eq(strchr(line->text, '\n'), line->text + line->len - 1, "more than one line");
	line->object = json_loadb(line->text, line->len - 1, JSON_REJECT_DUPLICATES, NULL);
	cr_assert(json_is_object(line->object), "no object: %.200s", line->text);
}

void dump_line_free(struct dump_line *line)
{
	json_decref(line->object);
	free(line->text);
}

struct dump_line dump_line_of(const struct r3ring_record *record, uint16_t flags)
{
	const struct r3ring_view view = {.seq = 77, .type = record->type, .flags = flags};
	const struct dump_item item = {.view = &view, .record = record};
	struct dump_line line = {0};
	FILE *out = open_memstream(&line.text, &line.len);

	cr_assert_eq(dump_json_record(out, &item), 0);
	fclose(out);
	dump_line_parse(&line);
	return line;
}

json_int_t dump_line_integer(const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);

	cr_assert(json_is_integer(value), "%s is no integer", key);
	return json_integer_value(value);
}

const char *dump_line_string(const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);

	cr_assert(json_is_string(value), "%s is no string", key);
	return json_string_value(value);
}
