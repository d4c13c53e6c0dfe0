/* SPDX-License-Identifier: Apache-2.0 */
/* A line that `r3ring dump --json` printed, read back with a JSON parser. */
#ifndef TESTS_UNIT_DUMP_LINE_H
#define TESTS_UNIT_DUMP_LINE_H

#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "tools/dump.h"

struct dump_line {
	char *text;
	size_t len;
	json_t *object;
};

/* Parses what was written; it must be one object on one line. Pairs with dump_line_free(). */
void dump_line_parse(struct dump_line *line);
void dump_line_free(struct dump_line *line);

/* What a record with these flags of its descriptor is printed as; likewise. */
struct dump_line dump_line_of(const struct r3ring_record *record, uint16_t flags);

/* A member, which must be of that kind. */
json_int_t dump_line_integer(const json_t *object, const char *key);
const char *dump_line_string(const json_t *object, const char *key);

#endif
