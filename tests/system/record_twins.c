/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two engines that were given one instance's name, a rank each and nothing else, and that use the
 * same ids for their requests at the same time: `r3ring export` of what `r3ring record` made of
 * it has each one's requests as that engine ran them, which it was recorded to do alone.
 */
#include <criterion/criterion.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "tests/support/command.h"
#include "tests/support/daemon.h"
#include "tests/support/remove_dir.h"
#include "tests/support/safetensors.h"

#define ENGINES 2u
#define PART_MAX 96u

static const char *const seeds[ENGINES] = {"1", "2"}, *const requests[ENGINES] = {"3", "4"};

static struct test_daemon daemon_a;
static struct command engine[ENGINES], recorder, tool;
static char base[64];

static void start(void)
{
	snprintf(base, sizeof(base), "/tmp/r3ring-twins-%d", getpid());
	test_daemon_start(&daemon_a, NULL);
}

static const char *path_of(char path[PART_MAX], const char *part)
{
	snprintf(path, PART_MAX, "%s.%s", base, part);
	return path;
}

static void remove_part(const char *part)
{
	char path[PART_MAX], output[PART_MAX + 4];

	remove_dir(path_of(path, part));
	snprintf(output, sizeof(output), "%s.st", path);
	unlink(output);
}

static void finish(void)
{
	for (unsigned int i = 0; i < ENGINES; i++)
		command_free(&engine[i]);
	command_free(&recorder);
	command_free(&tool);
	remove_part("both");
	remove_part("0");
	remove_part("1");
	if (daemon_a.dir[0])
		test_daemon_close(&daemon_a);
}

TestSuite(record_twins, .init = start, .fini = finish, .timeout = 200);

/* ---- engines, their archives, what is exported ---------------------------- */

static void start_engine(const char *instance, unsigned int i)
{
	const char rank[2] = {(char)('0' + i), '\0'};

	command_free(&engine[i]);
	command_start(&engine[i], daemon_a.dir,
		      (const char *[]){"produce",   "--instance", instance,      "--rank",
				       rank,        "--seed",     seeds[i],      "--requests",
				       requests[i], "--model",    "gpt-oss-20b", "--text",
				       "LICENSE",   "--batch",    "16",          "--prefill-chunk",
				       "8",         "--rate",     "100",         NULL});
}

/* What engines [first, end) run at the same time, in an archive. */
static void record(const char *part, unsigned int first, unsigned int end)
{
	char path[PART_MAX], instance[32];

	snprintf(instance, sizeof(instance), "twins-%s-%d", part, getpid());
	command_free(&recorder);
	command_start(&recorder, daemon_a.dir,
		      (const char *[]){"record", "--instance", instance, "-o", path_of(path, part),
				       "--until-idle", "3", NULL});
	for (unsigned int i = first; i < end; i++)
		start_engine(instance, i);
	for (unsigned int i = first; i < end; i++)
		cr_assert_eq(command_wait(&engine[i]), 0, "%s", engine[i].err);
	cr_assert_eq(command_wait(&recorder), 0, "%s", recorder.err);
}

/* With one more option, or NULL, and its value. */
static json_t *export(const char *part, const char *option, const char *value)
{
	char path[PART_MAX], output[PART_MAX + 4];
	json_t *summary;

	snprintf(output, sizeof(output), "%s.st", path_of(path, part));
	command_free(&tool);
	cr_assert_eq(command_run(&tool, daemon_a.dir,
				 (const char *[]){"export", path, "--format", "safetensors", "-o",
						  output, "--json", "--include", "unfinished",
						  option, value, NULL}),
		     0, "%s", tool.err);
	summary = json_loads(tool.out, 0, NULL);
	cr_assert_not_null(summary);
	return summary;
}

struct exported {
	struct safetensors file;
	struct safetensors_tensor routes;
	const int64_t *cu_seqlens;
	json_t *ids;
};

static void read_back(struct exported *exported, const char *part)
{
	char path[PART_MAX], output[PART_MAX + 4];

	snprintf(output, sizeof(output), "%s.st", path_of(path, part));
	safetensors_read(&exported->file, output);
	exported->routes = safetensors_tensor(&exported->file, "routes");
	exported->cu_seqlens = safetensors_tensor(&exported->file, "cu_seqlens").data;
	exported->ids = json_loads(safetensors_metadata(&exported->file, "request_ids"), 0, NULL);
	cr_assert_not_null(exported->ids);
}

static void let_go(struct exported *exported)
{
	json_decref(exported->ids);
	safetensors_free(&exported->file);
}

/* ---- comparing ------------------------------------------------------------ */

static size_t row_bytes(const struct exported *exported)
{
	return exported->routes.shape[1] * exported->routes.shape[2] * sizeof(uint16_t);
}

static bool same_routes(const struct exported *one, size_t i, const struct exported *other,
			size_t j)
{
	const int64_t first = one->cu_seqlens[i], its = other->cu_seqlens[j];
	const int64_t rows = one->cu_seqlens[i + 1] - first;
	const size_t bytes = row_bytes(one);

	return rows == other->cu_seqlens[j + 1] - its &&
	       !memcmp((const uint8_t *)one->routes.data + (size_t)first * bytes,
		       (const uint8_t *)other->routes.data + (size_t)its * bytes,
		       (size_t)rows * bytes);
}

/* How often there is a request of this id, whatever its name, with the routes of another. */
static unsigned int count_of(const struct exported *both, const struct exported *alone, size_t j)
{
	const char *id = json_string_value(json_array_get(alone->ids, j)), *name;
	const size_t len = strlen(id);
	unsigned int count = 0;
	size_t i;
	json_t *item;

	json_array_foreach (both->ids, i, item) {
		name = json_string_value(item);
		count += !strncmp(name, id, len) && (!name[len] || name[len] == '#') &&
			 same_routes(both, i, alone, j);
	}
	return count;
}

Test(record_twins, ranks_without_coordinates_have_their_own_requests_of_one_id)
{
	struct exported both, alone;
	json_t *summary;

	record("both", 0, ENGINES);
	summary = export("both", NULL, NULL);
	cr_expect_eq(json_integer_value(json_object_get(summary, "requests")), 7);
	cr_expect_eq(json_integer_value(
			     json_object_get(json_object_get(summary, "repeated_ids"), "requests")),
		     3);
	json_decref(summary);
	read_back(&both, "both");
	for (unsigned int i = 0; i < ENGINES; i++) {
		const char part[2] = {(char)('0' + i), '\0'};

		record(part, i, i + 1);
		json_decref(export(part, NULL, NULL));
		read_back(&alone, part);
		for (size_t j = 0; j < json_array_size(alone.ids); j++)
			cr_expect_eq(count_of(&both, &alone, j), 1, "engine %u, request %zu", i, j);
		let_go(&alone);
	}
	let_go(&both);
}

Test(record_twins, joined_by_ends_all_the_same_they_are_left_out_with_both_named)
{
	json_t *summary, *left, *first;

	record("both", 0, ENGINES);
	summary = export("both", "--ends", "2");
	left = json_object_get(summary, "left_out");
	cr_expect_eq(json_integer_value(json_object_get(summary, "requests")), 1);
	cr_expect_eq(json_integer_value(json_object_get(left, "mixed")), 3);
	first = json_array_get(json_object_get(left, "mixed_told"), 0);
	cr_expect_eq(json_array_size(json_object_get(first, "channels")), 2);
	cr_expect(strstr(tool.err, json_string_value(json_object_get(first, "request"))));
	cr_expect(strstr(tool.err, "each ran"));
	json_decref(summary);
}
