/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON against JSON Schema, as far as docs/openapi.json uses it: $ref within the document, type,
 * enum, anyOf, properties, required, additionalProperties, items, minimum, maximum, minLength,
 * maxLength. A keyword beyond these is a failure: what is not understood is not checked.
 */
#ifndef TESTS_SUPPORT_JSON_SCHEMA_H
#define TESTS_SUPPORT_JSON_SCHEMA_H

#include <stdbool.h>

#include <jansson.h>

/*
 * Whether @value is as @schema says. A member that the schema does not name is a failure,
 * unless additionalProperties says what it may be.
 *
 * @document: that references lead into.
 * @why:      receives what is wrong, and where.
 */
bool json_schema_holds(const json_t *document, const json_t *schema, const json_t *value,
		       char why[256]);

/* What "#/a/b" names; NULL: nothing. */
const json_t *json_schema_find(const json_t *document, const char *reference);

#endif
