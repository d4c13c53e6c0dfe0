/* SPDX-License-Identifier: Apache-2.0 */
/* The keys of `r3ring top --jsonl` are those that its manual page has, and the other way round. */
#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/top_stage.h"
#include "tools/load_json.h"
#include "tools/top.h"

#define PATHS_MAX 256u

static struct top_stage stage;

static struct paths {
	uint32_t count;
	char path[PATHS_MAX][96];
} told, documented;

static void free_stage(void)
{
	top_stage_free(&stage);
}

TestSuite(top_json, .fini = free_stage);

static bool has(const struct paths *paths, const char *path)
{
	for (uint32_t i = 0; i < paths->count; i++) {
		if (strcmp(paths->path[i], path) == 0)
			return true;
	}
	return false;
}

static void note(struct paths *paths, const char *path)
{
	if (has(paths, path))
		return;
	cr_assert_lt(paths->count, PATHS_MAX);
	snprintf(paths->path[paths->count++], sizeof(*paths->path), "%s", path);
}

/* ---- what is told -------------------------------------------------------------- */

/* Causes and reasons are keys, too; the page has one name for each kind. */
static const char *general(const char *key)
{
	for (uint32_t i = 0; i < R3RING_CAUSE_COUNT; i++) {
		if (strcmp(key, r3ring_cause_name(i)) == 0)
			return "CAUSE";
	}
	for (uint32_t i = 0; i < R3RING_LOAD_REASONS; i++) {
		if (strcmp(key, load_left_out_name(i)) == 0)
			return "REASON";
	}
	return key;
}

static void gather(const json_t *value, const char *path)
{
	char longer[96];
	const char *key;
	json_t *member;
	size_t i;

	if (json_is_object(value)) {
		json_object_foreach ((json_t *)(uintptr_t)value, key, member) {
			snprintf(longer, sizeof(longer), "%s%s%s", path, *path ? "." : "",
				 general(key));
			gather(member, longer);
		}
	} else if (json_is_array(value)) {
		cr_expect_gt(json_array_size(value), 0, "%s is empty in this test", path);
		json_array_foreach (value, i, member) {
			snprintf(longer, sizeof(longer), "%s[]", path);
			gather(member, longer);
		}
	} else {
		cr_expect(!json_is_null(value), "%s is null in this test", path);
		note(&told, path);
	}
}

/* A picture and a load with something of everything. */
static void make_everything(void)
{
	static const struct follower_left_out left_out = {"a/1", "another"};
	const double counts[2][4] = {{1000, 1000, 1000, 9000}, {1000, 1000, 1000, 1000}};

	top_stage_make(&stage, "{\"daemon\":{\"pid\":7},\"channels\":[{\"channel\":\"a/0\","
			       "\"lost\":{\"ring_full\":{\"steps\":1,\"rows\":4}},"
			       "\"bound_layers\":[3],\"unbound_layers\":[4],"
			       "\"readers\":[{\"pid\":7,\"mode\":\"lossy\"}]}]}");
	stage.rates[0].known = true;
	top_stage_load(&stage, 3, 2, 4, counts[0]);
	stage.load->info.accounts.lost[R3RING_CAUSE_RING_FULL] = 1;
	stage.load->info.accounts.left_out[R3RING_LOAD_PADDING] = 1;
	top_stage_gpus(&stage, 2);
	stage.frame.left_out = &left_out;
	stage.frame.left_outs = 1;
}

/* ---- what is documented ----------------------------------------------------------- */

static void read_page(void)
{
	FILE *in = fopen("docs/man/r3ring-top.1", "r");
	char line[512], path[96];
	bool within = false;

	cr_assert(in);
	while (fgets(line, sizeof(line), in)) {
		if (strncmp(line, ".S", 2) == 0)
			within = strcmp(line, ".Ss JSON\n") == 0;
		if (within && sscanf(line, ".It Va %95s", path) == 1)
			note(&documented, path);
	}
	fclose(in);
}

Test(top_json, every_key_is_documented_and_every_documented_key_is_told)
{
	json_t *line;

	make_everything();
	line = top_json(&stage.frame, true);
	cr_assert(line);
	gather(line, "");
	json_decref(line);
	read_page();
	cr_expect_gt(told.count, 50);
	for (uint32_t i = 0; i < told.count; i++)
		cr_expect(has(&documented, told.path[i]), "not documented: %s", told.path[i]);
	for (uint32_t i = 0; i < documented.count; i++)
		cr_expect(has(&told, documented.path[i]), "not told: %s", documented.path[i]);
}
