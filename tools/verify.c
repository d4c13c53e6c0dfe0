/* SPDX-License-Identifier: Apache-2.0 */
/* r3ring verify: the command line. */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "archive/close.h"
#include "archive/index.h"
#include "tools/arguments.h"
#include "tools/commands.h"
#include "tools/output.h"
#include "tools/plain_text.h"
#include "tools/quantity.h"
#include "tools/verify.h"

#define TOLD_MAX 20u /* problems; the rest is counted */
#define PROGRESS_NS 200000000ll

static const char usage[] =
	"usage: r3ring verify DIR [OPTION]...\n"
	"\n"
	"Looks at every byte of the archive in DIR, at the accounts of its channels, and at its\n"
	"index, and says what is not true of it or is missing, with the place.\n"
	"\n"
	"  --close    first gives it the end that a killed recorder did not: what is not whole\n"
	"             there is cut\n"
	"  --reindex  makes the index anew from the segments first\n"
	"  --json     a report as a JSON object\n"
	"  --help     this text\n"
	"\n"
	"exit codes: 0 all of it is true, 1 something is not, or there is no archive, 2 usage\n";

struct command_line {
	const char *dir;
	bool close, reindex, json, help;
};

/* What was told, and how far it is. */
struct telling {
	json_t *problems; /* NULL: they go to standard error */
	uint64_t told;
	bool terminal, drawn;
	struct timespec shown;
};

/* ---- while it runs ----------------------------------------------------- */

static void clear_progress(struct telling *telling)
{
	if (telling->drawn)
		fputs("\r\033[K", stderr);
	telling->drawn = false;
}

static void show_progress(void *ctx, uint64_t passed, uint64_t bytes)
{
	struct telling *telling = ctx;
	char done[QUANTITY_TEXT], all[QUANTITY_TEXT];
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	if (!telling->terminal || (now.tv_sec - telling->shown.tv_sec) * 1000000000ll +
						  now.tv_nsec - telling->shown.tv_nsec <
					  PROGRESS_NS)
		return;
	telling->shown = now;
	telling->drawn = true;
	fprintf(stderr, "\r%s of %s verified (%u %%)\033[K", quantity_bytes(done, passed),
		quantity_bytes(all, bytes), bytes ? (unsigned int)(passed * 100 / bytes) : 100);
}

static void tell_problem(void *ctx, const char *text)
{
	struct telling *telling = ctx;

	if (telling->told++ >= TOLD_MAX)
		return;
	if (telling->problems) {
		json_array_append_new(telling->problems, json_string(text));
		return;
	}
	clear_progress(telling);
	fputs("r3ring verify: ", stderr);
	plain_text_print(stderr, text, strlen(text));
	fputc('\n', stderr);
}

/* ---- command line ------------------------------------------------------ */

static int parse(int argc, char **argv, struct command_line *line)
{
	static const struct option options[] = {
		{"close", no_argument, NULL, 'c'},
		{"reindex", no_argument, NULL, 'r'},
		{"json", no_argument, NULL, 'j'},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	int option;

	while ((option = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		line->close |= option == 'c';
		line->reindex |= option == 'r';
		line->json |= option == 'j';
		line->help |= option == 'h';
		if (option == '?')
			return arguments_refuse(argv[0], NULL);
	}
	if (line->help)
		return TOOL_DONE;
	if (optind == argc) {
		fputs("r3ring verify: which archive? Give its directory\n", stderr);
		return arguments_refuse(argv[0], NULL);
	}
	line->dir = argv[optind];
	return optind + 1 < argc ? arguments_refuse(argv[0], argv[optind + 1]) : TOOL_DONE;
}

static int complain(int code, const struct r3ring_error *err)
{
	plain_text_error("r3ring verify", code, err);
	return TOOL_FAILED;
}

/* Both change what is verified. */
static int prepare(const struct command_line *line, struct r3ring_error *err)
{
	uint64_t cut = 0;
	int code = line->reindex ? archive_index_rebuild(line->dir, err) : 0;

	/* What is damaged is told with all the rest. */
	if (code == -EBADMSG)
		code = 0;
	/* The index knows of segments that may be missing: so it comes first. */
	if (!code && line->close)
		code = archive_close(line->dir, &cut, err);
	if (code <= 0)
		return code;
	fprintf(stderr, "r3ring verify: closed; %" PRIu64 " bytes that were not whole are cut\n",
		cut);
	code = archive_index_update(line->dir, err);
	return code == -EBADMSG ? 0 : code;
}

static int report(const struct command_line *line, const struct archive_verified *verified,
		  struct telling *telling)
{
	int code = verified->problems ? TOOL_FAILED : TOOL_DONE;

	if (line->json) {
		if (output_json("r3ring verify",
				verify_json(line->dir, verified, telling->problems)))
			code = TOOL_FAILED;
		return code;
	}
	if (telling->told > TOLD_MAX)
		fprintf(stderr, "r3ring verify: and %" PRIu64 " problems more\n",
			telling->told - TOLD_MAX);
	verify_print(stdout, line->dir, verified);
	return code;
}

static int run(const struct command_line *line)
{
	struct telling telling = {.terminal = isatty(STDERR_FILENO),
				  .problems = line->json ? json_array() : NULL};
	const struct archive_verify_hooks hooks = {
		.problem = tell_problem, .progress = show_progress, .ctx = &telling};
	struct archive_verified verified;
	struct r3ring_error err = {0};
	int code = prepare(line, &err);

	if (!code)
		code = archive_verify(line->dir, &hooks, &verified, &err);
	clear_progress(&telling);
	if (code) {
		json_decref(telling.problems);
		return complain(code, &err);
	}
	return report(line, &verified, &telling);
}

int cmd_verify(int argc, char **argv)
{
	struct command_line line = {0};
	int code = parse(argc, argv, &line);

	if (code || !line.help)
		return code ? code : run(&line);
	fputs(usage, stdout);
	return TOOL_DONE;
}
