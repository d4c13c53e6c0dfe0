/* SPDX-License-Identifier: Apache-2.0 */
/*
 * r3ring: one tool with a subcommand for each task.
 */
#include <stdio.h>
#include <string.h>

#include "tools/commands.h"
#include "tools/output.h"

struct command {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *summary;
};

static const struct command commands[] = {
	{"status", cmd_status, "show channels, layers bound, rates and losses"},
	{"top", cmd_top, "watch channels, losses and the load of experts in a terminal"},
	{"dump", cmd_dump, "print a channel's records as text, JSON or totals"},
	{"record", cmd_record, "write an instance's records into an archive"},
	{"produce", cmd_produce, "run the reference producer: a model over a text, or a recording"},
	{"export", cmd_export, "write an archive's routes in the form that a trainer takes"},
	{"verify", cmd_verify, "look whether all of an archive is true, down to every byte"},
	{"replay", cmd_replay, "feed an archive through the daemon, as its engine did"},
	{"serve", cmd_serve, "answer schedulers over HTTP: expert load, reservations"},
	{"report", cmd_report, "say on one page what an archive has: load, balance, losses"},
	{"plan", cmd_plan, "place expert replicas by the load that was captured"},
	{"gc", cmd_gc, "remove the segments that a dead daemon left"},
	{"doctor", cmd_doctor, "say what this machine lacks, each with its remedy"},
};

#define COMMANDS (sizeof(commands) / sizeof(commands[0]))
#define COMMAND_LENGTH 32

static void print_usage(FILE *out)
{
	fputs("usage: r3ring COMMAND [OPTION]...\n"
	      "       r3ring --help | --version\n"
	      "\n"
	      "commands:\n",
	      out);
	for (size_t i = 0; i < COMMANDS; i++)
		fprintf(out, "  %-9s %s\n", commands[i].name, commands[i].summary);
	fputs("\n"
	      "'r3ring COMMAND --help' tells of a command's options.\n"
	      "\n"
	      "The daemon is looked for in $R3RING_RUNTIME_DIR, else in $XDG_RUNTIME_DIR/r3ring,\n"
	      "then in /run/r3ring.\n"
	      "\n"
	      "exit codes: 0 done, 1 failed or found something wrong, 2 usage,\n"
	      "3 nothing to connect to\n",
	      out);
}

/*
 * Edits (insertion, deletion, change) between two words, both shorter than
 * COMMAND_LENGTH. Source: Wagner and Fischer, "The string-to-string correction
 * problem", J. ACM 21(1), 1974.
 */
static size_t edit_distance(const char *a, const char *b)
{
	size_t row[COMMAND_LENGTH];
	size_t columns = strlen(b);

	for (size_t j = 0; j <= columns; j++)
		row[j] = j;
	for (size_t i = 1; a[i - 1]; i++) {
		size_t diagonal = row[0];

		row[0] = i;
		for (size_t j = 1; j <= columns; j++) {
			size_t change = diagonal + (a[i - 1] != b[j - 1]);
			size_t least = row[j] < row[j - 1] ? row[j] + 1 : row[j - 1] + 1;

			diagonal = row[j];
			row[j] = change < least ? change : least;
		}
	}
	return row[columns];
}

/* The command that was probably meant, or NULL. */
static const char *nearest_command(const char *name)
{
	const char *nearest = NULL;
	size_t least = 3;

	if (strlen(name) >= COMMAND_LENGTH)
		return NULL;
	for (size_t i = 0; i < COMMANDS; i++) {
		size_t distance = edit_distance(name, commands[i].name);

		if (distance < least) {
			least = distance;
			nearest = commands[i].name;
		}
	}
	return nearest;
}

static int refuse_command(const char *name)
{
	const char *nearest = nearest_command(name);

	fprintf(stderr, "r3ring: unknown command '%s'", name);
	if (nearest)
		fprintf(stderr, "; did you mean '%s'?", nearest);
	fputs("\n'r3ring --help' lists the commands.\n", stderr);
	return TOOL_USAGE;
}

/* The command's argv[0] is its full name, which getopt's messages begin with. */
static int run_command(int argc, char **argv)
{
	char name[COMMAND_LENGTH];

	for (size_t i = 0; i < COMMANDS; i++) {
		if (strcmp(argv[0], commands[i].name) != 0)
			continue;
		snprintf(name, sizeof(name), "r3ring %s", commands[i].name);
		argv[0] = name;
		return commands[i].run(argc, argv);
	}
	return refuse_command(argv[0]);
}

static int run(int argc, char **argv)
{
	if (argc < 2) {
		print_usage(stderr);
		return TOOL_USAGE;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")) {
		print_usage(stdout);
		return TOOL_DONE;
	}
	if (!strcmp(argv[1], "--version")) {
		puts("r3ring " R3RING_VERSION);
		return TOOL_DONE;
	}
	return run_command(argc - 1, argv + 1);
}

int main(int argc, char **argv)
{
	if (output_open() < 0) {
		fputs("r3ring: no memory\n", stderr);
		return TOOL_FAILED;
	}
	return output_finish(run(argc, argv));
}
