/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "tests/support/json_schema.h"

struct check {
	const json_t *document;
	char *why;
};

static bool holds(const struct check *check, const json_t *schema, const json_t *value,
		  const char *where);

static bool fails(const struct check *check, const char *where, const char *what)
{
	snprintf(check->why, 256, "%.150s: %.100s", where, what);
	return false;
}

const json_t *json_schema_find(const json_t *document, const char *reference)
{
	const json_t *at = document;
	char name[128];

	if (!reference || strncmp(reference, "#/", 2) != 0)
		return NULL;
	reference += 2;
	while (at && *reference) {
		size_t len = strcspn(reference, "/");

		snprintf(name, sizeof(name), "%.*s", (int)len, reference);
		at = json_object_get(at, name);
		reference += len + (reference[len] == '/');
	}
	return at;
}

/* ---- keywords --------------------------------------------------------------- */

static bool is_type(const json_t *value, const char *type)
{
	switch (json_typeof(value)) {
	case JSON_OBJECT:
		return strcmp(type, "object") == 0;
	case JSON_ARRAY:
		return strcmp(type, "array") == 0;
	case JSON_STRING:
		return strcmp(type, "string") == 0;
	case JSON_INTEGER:
		return strcmp(type, "integer") == 0 || strcmp(type, "number") == 0;
	case JSON_REAL:
		return strcmp(type, "number") == 0;
	case JSON_TRUE:
	case JSON_FALSE:
		return strcmp(type, "boolean") == 0;
	default:
		return strcmp(type, "null") == 0;
	}
}

static bool type_holds(const struct check *check, const json_t *type, const json_t *value,
		       const char *where)
{
	const json_t *one;
	size_t i;

	if (json_is_string(type) && is_type(value, json_string_value(type)))
		return true;
	json_array_foreach ((json_t *)(uintptr_t)type, i, one) {
		if (is_type(value, json_string_value(one)))
			return true;
	}
	return fails(check, where, "another type");
}

static bool enum_holds(const struct check *check, const json_t *values, const json_t *value,
		       const char *where)
{
	const json_t *one;
	size_t i;

	json_array_foreach ((json_t *)(uintptr_t)values, i, one) {
		if (json_equal(one, value))
			return true;
	}
	return fails(check, where, "none of the values that it may have");
}

static bool any_holds(const struct check *check, const json_t *schemas, const json_t *value,
		      const char *where)
{
	const json_t *one;
	size_t i;

	json_array_foreach ((json_t *)(uintptr_t)schemas, i, one) {
		if (holds(check, one, value, where))
			return true;
	}
	return false;
}

static bool range_holds(const struct check *check, const json_t *schema, const json_t *value,
			const char *where)
{
	const json_t *least = json_object_get(schema, "minimum");
	const json_t *most = json_object_get(schema, "maximum");
	const json_t *shortest = json_object_get(schema, "minLength");
	const json_t *longest = json_object_get(schema, "maxLength");
	size_t length = json_is_string(value) ? strlen(json_string_value(value)) : 0;

	if (json_is_number(value) &&
	    ((least && json_number_value(value) < json_number_value(least)) ||
	     (most && json_number_value(value) > json_number_value(most))))
		return fails(check, where, "out of range");
	if (json_is_string(value) && ((shortest && length < (size_t)json_integer_value(shortest)) ||
				      (longest && length > (size_t)json_integer_value(longest))))
		return fails(check, where, "too short or too long");
	return true;
}

/* ---- parts ------------------------------------------------------------------ */

static bool items_hold(const struct check *check, const json_t *items, const json_t *value,
		       const char *where)
{
	const json_t *one;
	char at[256];
	size_t i;

	json_array_foreach ((json_t *)(uintptr_t)value, i, one) {
		snprintf(at, sizeof(at), "%.200s[%zu]", where, i);
		if (!holds(check, items, one, at))
			return false;
	}
	return true;
}

static bool required_are_there(const struct check *check, const json_t *required,
			       const json_t *value, const char *where)
{
	const json_t *name;
	char what[200];
	size_t i;

	json_array_foreach ((json_t *)(uintptr_t)required, i, name) {
		if (json_object_get(value, json_string_value(name)))
			continue;
		snprintf(what, sizeof(what), "no %.100s", json_string_value(name));
		return fails(check, where, what);
	}
	return true;
}

static bool members_hold(const struct check *check, const json_t *schema, const json_t *value,
			 const char *where)
{
	const json_t *properties = json_object_get(schema, "properties");
	const json_t *others = json_object_get(schema, "additionalProperties");
	const json_t *member;
	const char *name;
	char at[256];

	if (!properties && !others)
		return true;
	json_object_foreach ((json_t *)(uintptr_t)value, name, member) {
		const json_t *one = json_object_get(properties, name);

		snprintf(at, sizeof(at), "%.150s.%.50s", where, name);
		if (!one)
			one = json_is_object(others) ? others : NULL;
		if (!one)
			return fails(check, at, "is not described");
		if (!holds(check, one, member, at))
			return false;
	}
	return true;
}

static bool is_understood(const struct check *check, const json_t *schema, const char *where)
{
	static const char *const known[] = {
		"$ref",  "type",     "enum",    "anyOf",     "properties",  "required",
		"items", "minimum",  "maximum", "minLength", "maxLength",   "additionalProperties",
		"title", "examples", "summary", "format",    "description", NULL};
	const json_t *value;
	const char *name;

	json_object_foreach ((json_t *)(uintptr_t)schema, name, value) {
		const char *const *one = known;

		while (*one && strcmp(*one, name) != 0)
			one++;
		if (!*one)
			return fails(check, where, name);
	}
	return true;
}

static bool holds(const struct check *check, const json_t *schema, const json_t *value,
		  const char *where)
{
	const char *reference = json_string_value(json_object_get(schema, "$ref"));
	const json_t *type = json_object_get(schema, "type");
	const json_t *values = json_object_get(schema, "enum");
	const json_t *any = json_object_get(schema, "anyOf");
	const json_t *items = json_object_get(schema, "items");

	if (reference) {
		schema = json_schema_find(check->document, reference);
		return schema ? holds(check, schema, value, where)
			      : fails(check, where, "its schema is nowhere");
	}
	return is_understood(check, schema, where) &&
	       (!type || type_holds(check, type, value, where)) &&
	       (!values || enum_holds(check, values, value, where)) &&
	       (!any || any_holds(check, any, value, where)) &&
	       (!items || items_hold(check, items, value, where)) &&
	       range_holds(check, schema, value, where) &&
	       required_are_there(check, json_object_get(schema, "required"), value, where) &&
	       members_hold(check, schema, value, where);
}

bool json_schema_holds(const json_t *document, const json_t *schema, const json_t *value,
		       char why[256])
{
	const struct check check = {document, why};

	if (!schema || !value)
		return fails(&check, "", schema ? "nothing was answered" : "there is no schema");
	return holds(&check, schema, value, "");
}
