/* SPDX-License-Identifier: Apache-2.0 */
/* docs/openapi.json describes the routes that there are, and no others. */
#include <criterion/criterion.h>

#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "tests/support/json_schema.h"
#include "tools/serve_api.h"

static json_t *document;

static void open_document(void)
{
	json_error_t error;

	document = json_loads(api_openapi_text, JSON_REJECT_DUPLICATES, &error);
	cr_assert(document, "docs/openapi.json, line %d: %s", error.line, error.text);
}

static void close_document(void)
{
	json_decref(document);
}

TestSuite(serve_openapi, .init = open_document, .fini = close_document);

/* "/v1/things/{a}/{b}/c" is the route "/v1/things/", a star, and "/c". */
static bool is_of(const char *path, const char *route)
{
	const size_t fixed = strcspn(path, "{");
	const char *last = strrchr(path, '}');

	if (strncmp(path, route, fixed) != 0)
		return false;
	return last ? route[fixed] == '*' && strcmp(route + fixed + 1, last + 1) == 0
		    : !route[fixed];
}

static bool is_method(const char *name, const char *method)
{
	size_t len = strlen(name);

	for (size_t i = 0; i < len; i++) {
		if (toupper((unsigned char)name[i]) != method[i])
			return false;
	}
	return !method[len];
}

static const json_t *operation_of(const struct http_route *route)
{
	const json_t *operations, *operation;
	const char *path, *method;

	json_object_foreach (json_object_get(document, "paths"), path, operations) {
		json_object_foreach ((json_t *)(uintptr_t)operations, method, operation) {
			if (is_of(path, route->path) && is_method(method, route->method))
				return operation;
		}
	}
	return NULL;
}

static bool is_one_of(const json_t *list, const char *word)
{
	const json_t *one;
	size_t i;

	json_array_foreach (list, i, one) {
		if (strcmp(json_string_value(one), word) == 0)
			return true;
	}
	return false;
}

Test(serve_openapi, the_states_of_an_instance_are_those_that_there_are)
{
	const json_t *states = json_schema_find(
		document,
		"#/components/schemas/Channels/properties/instances/items/properties/state/enum");

	cr_assert_eq(json_array_size(states), TAIL_STATES);
	for (unsigned int i = 0; i < TAIL_STATES; i++)
		cr_expect(is_one_of(states, tail_state_name((enum tail_state)i)), "%s",
			  tail_state_name((enum tail_state)i));
}

Test(serve_openapi, every_route_is_described)
{
	for (size_t i = 0; i < api_route_count; i++)
		cr_expect(operation_of(&api_routes[i]), "%s %s is not in docs/openapi.json",
			  api_routes[i].method, api_routes[i].path);
}

static bool is_there(const char *path, const char *method)
{
	for (size_t i = 0; i < api_route_count; i++) {
		if (is_of(path, api_routes[i].path) && is_method(method, api_routes[i].method))
			return true;
	}
	return false;
}

Test(serve_openapi, everything_that_is_described_is_there)
{
	const json_t *operations, *operation;
	const char *path, *method;
	size_t count = 0;

	json_object_foreach (json_object_get(document, "paths"), path, operations) {
		json_object_foreach ((json_t *)(uintptr_t)operations, method, operation) {
			cr_expect(is_there(path, method), "%s %s is no route", method, path);
			count++;
		}
	}
	cr_expect_eq(count, api_route_count);
}

/* The names of the parameters in the query, in their order, as a route has them. */
static void parameters_of(const json_t *operation, char names[256])
{
	const json_t *parameter;
	size_t i;

	names[0] = '\0';
	json_array_foreach (json_object_get(operation, "parameters"), i, parameter) {
		const char *in = json_string_value(json_object_get(parameter, "in"));
		const char *name = json_string_value(json_object_get(parameter, "name"));
		size_t used = strlen(names);

		if (strcmp(in, "query") == 0)
			snprintf(names + used, 256 - used, "%s%s", used ? " " : "", name);
	}
}

Test(serve_openapi, a_routes_parameters_are_those_that_it_takes)
{
	char names[256];

	for (size_t i = 0; i < api_route_count; i++) {
		const struct http_route *route = &api_routes[i];

		parameters_of(operation_of(route), names);
		cr_expect_str_eq(names, route->query ? route->query : "", "%s %s: %s",
				 route->method, route->path, names);
	}
}

static void expect_references(const json_t *json)
{
	const json_t *member;
	const char *name;
	size_t i;

	json_object_foreach ((json_t *)(uintptr_t)json, name, member) {
		if (strcmp(name, "$ref") == 0)
			cr_expect(json_schema_find(document, json_string_value(member)),
				  "%s leads nowhere", json_string_value(member));
		else
			expect_references(member);
	}
	json_array_foreach ((json_t *)(uintptr_t)json, i, member)
		expect_references(member);
}

Test(serve_openapi, its_references_lead_somewhere_and_its_version_is_the_programs)
{
	const json_t *version = json_schema_find(document, "#/info/version");

	expect_references(document);
	cr_expect_str_eq(json_string_value(version), R3RING_VERSION);
}

/* ---- what the check of answers rests on --------------------------------------- */

static bool holds(const char *schema, const char *value)
{
	json_t *rule = json_loads(schema, 0, NULL);
	json_t *told = json_loads(value, JSON_DECODE_ANY, NULL);
	char why[256];
	bool held;

	cr_assert(rule && told);
	held = json_schema_holds(document, rule, told, why);
	json_decref(rule);
	json_decref(told);
	return held;
}

Test(serve_openapi, the_check_of_answers_finds_what_is_not_as_described)
{
	const char *object =
		"{\"type\": \"object\", \"required\": [\"a\"], \"properties\": {\"a\": "
		"{\"type\": \"array\", \"items\": {\"type\": \"integer\", "
		"\"minimum\": 1, \"maximum\": 2}}, \"b\": {\"enum\": [true]}}}";

	cr_expect(holds(object, "{\"a\": [1, 2], \"b\": true}"));
	cr_expect_not(holds(object, "{\"b\": true}"));
	cr_expect_not(holds(object, "{\"a\": [1, 0]}"));
	cr_expect_not(holds(object, "{\"a\": [3]}"));
	cr_expect_not(holds(object, "{\"a\": [1.5]}"));
	cr_expect_not(holds(object, "{\"a\": [], \"b\": false}"));
	cr_expect_not(holds(object, "{\"a\": [], \"c\": 1}"));
	cr_expect_not(holds(object, "[]"));
	cr_expect(holds("{\"anyOf\": [{\"type\": \"null\"}, {\"type\": \"string\", "
			"\"minLength\": 2}]}",
			"\"ab\""));
	cr_expect_not(holds("{\"anyOf\": [{\"type\": \"null\"}, {\"type\": \"string\", "
			    "\"minLength\": 2}]}",
			    "\"a\""));
	cr_expect(holds("{\"additionalProperties\": {\"type\": \"integer\"}}", "{\"x\": 1}"));
	cr_expect_not(
		holds("{\"additionalProperties\": {\"type\": \"integer\"}}", "{\"x\": \"\"}"));
	cr_expect_not(holds("{\"pattern\": \"x\"}", "1"), "an unknown keyword");
	cr_expect_not(holds("{\"$ref\": \"#/nowhere\"}", "1"));
}
