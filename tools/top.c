/* SPDX-License-Identifier: Apache-2.0 */
/*
 * r3ring top: the daemon's channels and an engine's expert load, as they are now.
 */
#include <errno.h>
#include <getopt.h>
#include <locale.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "channel/socket.h"
#include "tools/arguments.h"
#include "tools/commands.h"
#include "tools/top.h"

#define NS_PER_S 1000000000u
#define INTERVAL_LEAST_NS 50000000u
#define SIDE_MOST 1000u /* rows or columns of --size */

static const char usage[] =
	"usage: r3ring top [--instance NAME] [OPTION]...\n"
	"\n"
	"Shows which layers are out of balance and whether anything is lost: channels with their\n"
	"rates, losses and readers, and the load of an engine's experts, layers x experts.\n"
	"Only reads; neither engines nor other readers notice.\n"
	"\n"
	"  --instance NAME     the engine whose load is shown (the first that runs)\n"
	"  --interval SECONDS  between two frames (1)\n"
	"  --window SECONDS    shows the load of so long (5)\n"
	"  --window-steps N    shows the load of so many steps instead (256, by key w)\n"
	"  --log               begin with logarithmic colours\n"
	"  --once              one frame as text, after an interval; needs no terminal\n"
	"  --size RxC          rows and columns of that frame (as needed, 80)\n"
	"  --jsonl             a JSON object a line instead, one each interval\n"
	"  --count N           end after N of them\n"
	"  --counts            with the counts of every expert\n"
	"  --help              this text\n"
	"\n"
	"Keys: q ends, ? tells of the others.\n"
	"\n"
	"exit codes: 0 done, 1 failed, 2 usage, 3 no daemon, or no such engine (--once)\n";

struct command_line {
	struct top_options top;
	bool once, lines;
};

/* ---- the command line ------------------------------------------------------ */

static int complain(const char *what, const char *text)
{
	fprintf(stderr, "r3ring top: %s%s\n", what, text);
	return arguments_refuse("r3ring top", NULL);
}

static bool read_number(const char *text, uint64_t least, uint64_t most, uint64_t *number)
{
	char *end;

	errno = 0;
	*number = strtoull(text, &end, 10);
	return text[0] >= '0' && text[0] <= '9' && !*end && !errno && *number >= least &&
	       *number <= most;
}

static bool read_size(const char *text, struct top_options *options)
{
	int end = 0;

	if (text[0] < '1' || text[0] > '9' ||
	    sscanf(text, "%4ux%4u%n", &options->rows, &options->columns, &end) != 2)
		return false;
	return !text[end] && options->rows <= SIDE_MOST && options->columns &&
	       options->columns <= SIDE_MOST;
}

static int take_instance(struct top_options *options, const char *name)
{
	struct r3ring_error err = {0};

	options->instance = name;
	return channel_instance_check(name, &err) ? complain(err.text, "") : TOOL_DONE;
}

static int take_option(struct command_line *line, int option, const char *text)
{
	struct top_options *options = &line->top;

	switch (option) {
	case 'i':
		return take_instance(options, text);
	case 'v':
		if (!arguments_seconds(text, &options->interval_ns) ||
		    options->interval_ns < INTERVAL_LEAST_NS ||
		    options->interval_ns > 3600ull * NS_PER_S)
			return complain("--interval is 0.05 to 3600 seconds, not ", text);
		return TOOL_DONE;
	case 'w':
		if (!arguments_seconds(text, &options->window_ns) ||
		    options->window_ns > 86400ull * NS_PER_S)
			return complain("--window is seconds above 0, at most a day, not ", text);
		options->window = TOP_TIME;
		return TOOL_DONE;
	case 's':
		if (!read_number(text, 1, 1u << 20, &options->window_steps))
			return complain("--window-steps is 1 to 1048576, not ", text);
		options->window = TOP_STEPS;
		return TOOL_DONE;
	case 'z':
		return read_size(text, options)
			       ? TOOL_DONE
			       : complain("--size is ROWSxCOLUMNS, at most 1000 each, not ", text);
	case 'n':
		if (!read_number(text, 1, UINT64_MAX, &options->count))
			return complain("--count is a number above 0, not ", text);
		return TOOL_DONE;
	default:
		return TOOL_USAGE;
	}
}

static int check(const struct command_line *line)
{
	if (line->once && line->lines)
		return complain("either --once or --jsonl", "");
	if (line->top.rows && !line->once)
		return complain("--size is for --once", "");
	if ((line->top.count || line->top.counts) && !line->lines)
		return complain("--count and --counts are for --jsonl", "");
	return TOOL_DONE;
}

/* Returns TOOL_DONE; TOOL_USAGE once it has complained; -1 when help was asked for. */
static int parse(int argc, char **argv, struct command_line *line)
{
	int once = 0, lines = 0, logarithmic = 0, counts = 0, option, code;
	const struct option known[] = {
		{"instance", required_argument, NULL, 'i'},
		{"interval", required_argument, NULL, 'v'},
		{"window", required_argument, NULL, 'w'},
		{"window-steps", required_argument, NULL, 's'},
		{"size", required_argument, NULL, 'z'},
		{"count", required_argument, NULL, 'n'},
		{"log", no_argument, &logarithmic, 1},
		{"once", no_argument, &once, 1},
		{"jsonl", no_argument, &lines, 1},
		{"counts", no_argument, &counts, 1},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};

	while ((option = getopt_long(argc, argv, "", known, NULL)) != -1) {
		if (option == 'h')
			return -1;
		if (option == '?')
			return arguments_refuse(argv[0], NULL);
		code = option ? take_option(line, option, optarg) : TOOL_DONE;
		if (code)
			return code;
	}
	if (optind < argc)
		return arguments_refuse(argv[0], argv[optind]);
	line->once = once;
	line->lines = lines;
	line->top.logarithmic = logarithmic;
	line->top.counts = counts;
	return check(line);
}

/* ---- running --------------------------------------------------------------- */

/* Before any thread is made, so that they all come to the one that waits for them; those of
 * a crash come to the thread that did it. */
static void block_signals(void)
{
	sigset_t set;

	sigfillset(&set);
	sigdelset(&set, SIGSEGV);
	sigdelset(&set, SIGBUS);
	sigdelset(&set, SIGFPE);
	sigdelset(&set, SIGILL);
	sigdelset(&set, SIGABRT);
	sigdelset(&set, SIGSYS);
	sigdelset(&set, SIGTRAP);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
}

static int run(const struct command_line *line)
{
	struct r3ring_error err = {0};
	struct top top;
	int code;

	if (!line->once && !line->lines)
		block_signals();
	if (top_open(&top, &line->top, &err)) {
		fprintf(stderr, "r3ring top: %s\n", err.text);
		return TOOL_FAILED;
	}
	if (line->once)
		code = top_once(&top);
	else
		code = line->lines ? top_lines(&top) : top_live(&top);
	top_close(&top);
	return code;
}

int cmd_top(int argc, char **argv)
{
	struct command_line line = {
		.top = {.interval_ns = NS_PER_S, .window_ns = 5ull * NS_PER_S, .window_steps = 256},
	};
	int code = parse(argc, argv, &line);

	if (code < 0) {
		fputs(usage, stdout);
		return TOOL_DONE;
	}
	if (code)
		return code;
	setlocale(LC_CTYPE, "");
	return run(&line);
}
