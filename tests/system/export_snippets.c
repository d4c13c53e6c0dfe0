/* SPDX-License-Identifier: Apache-2.0 */
/* What docs/TRAINERS.md shows: its commands write what its snippets read. */
#include <criterion/criterion.h>

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/command.h"
#include "tests/support/daemon.h"
#include "tests/support/remove_dir.h"

#define DOCUMENT "docs/TRAINERS.md"
#define PYTHON "/usr/bin/python3"
#define FENCE "```"
#define DIRECTORY "/data/run7" /* and those of hosts, of which each has a part */

static struct test_daemon daemon_a;
static struct command produce, recorder, tool;
static char instance[32], dir[64], archive[80];

static void start(void)
{
	if (system(PYTHON " -c 'import numpy' 2>/dev/null") != 0)
		cr_skip_test("no numpy for " PYTHON);
	snprintf(instance, sizeof(instance), "shown-%d", getpid());
	snprintf(dir, sizeof(dir), "/tmp/r3ring-shown-%d", getpid());
	snprintf(archive, sizeof(archive), "%s/run7", dir);
	cr_assert_eq(mkdir(dir, 0700), 0);
	test_daemon_start(&daemon_a, NULL);
}

static void finish(void)
{
	command_free(&produce);
	command_free(&recorder);
	command_free(&tool);
	remove_dir(archive);
	remove_dir(dir);
	if (daemon_a.dir[0])
		test_daemon_close(&daemon_a);
}

static void record(void)
{
	command_start(&recorder, daemon_a.dir,
		      (const char *[]){"record", "--instance", instance, "-o", archive,
				       "--until-idle", "3", NULL});
	command_start(&produce, daemon_a.dir,
		      (const char *[]){"produce", "--instance", instance, "--model",
				       "deepseek-v4-flash", "--text", "LICENSE", "--requests", "4",
				       "--hidden", "16", NULL});
	cr_assert_eq(command_wait(&produce), 0, "%s", produce.err);
	cr_assert_eq(command_wait(&recorder), 0, "%s", recorder.err);
}

/* ---- the document ------------------------------------------------------- */

static char *load_document(void)
{
	FILE *file = fopen(DOCUMENT, "r");
	char *text = calloc(1, 1 << 16);

	cr_assert(file && text);
	cr_assert_lt(fread(text, 1, (1 << 16) - 1, file), (1 << 16) - 1);
	fclose(file);
	return text;
}

/* The next block of that language at or behind *at, cut out; NULL when there is none. */
static char *next_block(char **at, const char *language)
{
	char opening[32], *block, *end;

	snprintf(opening, sizeof(opening), "\n" FENCE "%s\n", language);
	block = strstr(*at, opening);
	if (!block)
		return NULL;
	block += strlen(opening);
	end = strstr(block, "\n" FENCE);
	cr_assert_not_null(end);
	*end = '\0';
	*at = end + 1;
	return block;
}

/* ---- commands ----------------------------------------------------------- */

/* Words of a line, those of the document's names replaced by this test's. */
static void run_line(char *line)
{
	const char *args[24];
	char *rest, out[NAME_MAX], path[sizeof(dir) + NAME_MAX];
	unsigned int count = 0;

	for (char *word = strtok_r(line, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
		if (!strncmp(word, DIRECTORY, strlen(DIRECTORY)))
			word = archive;
		if (count && !strcmp(args[count - 1], "-o")) {
			snprintf(out, sizeof(out), "%s", word);
			snprintf(path, sizeof(path), "%s/%s", dir, out);
			word = path;
		}
		args[count++] = word;
	}
	args[count] = NULL;
	command_free(&tool);
	cr_assert_eq(command_run(&tool, daemon_a.dir, args + 1), 0, "%s", tool.err);
}

static void run_commands(void)
{
	char *text = load_document(), *at = text, *block;
	unsigned int exports = 0;

	while ((block = next_block(&at, "sh"))) {
		if (!strstr(block, "r3ring export"))
			continue;
		run_line(block);
		exports++;
	}
	cr_assert_geq(exports, 9);
	free(text);
}

/* ---- snippets ----------------------------------------------------------- */

/* The first block's functions are there for those behind it. */
static void run_snippet(const char *first, const char *block)
{
	char script[96], line[256];
	FILE *file;

	snprintf(script, sizeof(script), "%s/snippet.py", dir);
	file = fopen(script, "w");
	cr_assert_not_null(file);
	if (block != first)
		fprintf(file, "%s\n", first);
	fprintf(file, "%s\n", block);
	fclose(file);
	snprintf(line, sizeof(line), "cd %s && " PYTHON " snippet.py", dir);
	cr_assert_eq(system(line), 0, "%s", block);
}

/* Runs those that need msgpack, or those that do not; returns how many. */
static unsigned int run_snippets(bool with_msgpack)
{
	char *text = load_document(), *at = text, *first = NULL, *block;
	unsigned int snippets = 0;

	record();
	run_commands();
	while ((block = next_block(&at, "python"))) {
		if (!first)
			first = block;
		if ((strstr(block, "import msgpack") != NULL) != with_msgpack)
			continue;
		run_snippet(first, block);
		snippets++;
	}
	free(text);
	return snippets;
}

Test(export_snippets, each_command_of_the_document_writes_what_its_snippet_reads, .init = start,
     .fini = finish, .timeout = 300)
{
	cr_assert_eq(run_snippets(false), 7);
}

Test(export_snippets, the_snippet_that_needs_msgpack_reads_what_its_command_writes, .init = start,
     .fini = finish, .timeout = 300)
{
	if (system(PYTHON " -c 'import msgpack' 2>/dev/null") != 0)
		cr_skip_test("no msgpack for " PYTHON);
	cr_assert_eq(run_snippets(true), 1);
}
