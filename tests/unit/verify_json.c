/* SPDX-License-Identifier: Apache-2.0 */
/* r3ring verify --json tells what its manual names, and nothing else. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include <jansson.h>

#include "tools/verify.h"

#define MANUAL "docs/man/r3ring-verify.1"
#define SEPARATORS " ,()\n"

static bool is_key(const json_t *value, const char *name)
{
	const char *key;
	json_t *member;
	size_t i;

	if (json_object_get(value, name))
		return true;
	json_object_foreach ((json_t *)(uintptr_t)value, key, member)
		if (is_key(member, name))
			return true;
	json_array_foreach (value, i, member)
		if (is_key(member, name))
			return true;
	return false;
}

/* Of a line of the manual the names in it, of which each is a key; those of the whole are noted. */
static void take_line(char *line, const json_t *told, json_t *named)
{
	char *name = strstr(line, "Va "), *rest = NULL;

	for (name = name ? strtok_r(name + 3, SEPARATORS, &rest) : NULL; name;
	     name = strtok_r(NULL, SEPARATORS, &rest)) {
		if (name[0] == '.')
			continue;
		cr_expect(is_key(told, name), "not told: %s", name);
		json_object_set_new(named, name, json_true());
	}
}

static void read_manual(const json_t *told, json_t *named)
{
	FILE *in = fopen(MANUAL, "r");
	bool within = false;
	char line[512];

	cr_assert(in);
	while (fgets(line, sizeof(line), in)) {
		within |= strncmp(line, ".Va archive", strlen(".Va archive")) == 0;
		within &= strncmp(line, ".S", 2) != 0;
		if (within)
			take_line(line, told, named);
	}
	fclose(in);
}

Test(verify_json, every_name_of_the_manual_is_told_and_every_member_is_named)
{
	const struct archive_verified verified = {.absent = {.count = 1, .told = 1}};
	json_t *told = verify_json("there", &verified, json_array()), *member;
	json_t *named = json_object();
	const char *key;

	cr_assert_not_null(told);
	read_manual(told, named);
	cr_expect_gt(json_object_size(named), 30);
	json_object_foreach (told, key, member)
		cr_expect(json_object_get(named, key), "not in the manual: %s", key);
	json_decref(told);
	json_decref(named);
}
