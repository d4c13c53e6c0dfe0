/* SPDX-License-Identifier: Apache-2.0 */
/* r3ring replay: the command line. */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <r3ring/atomic.h>

#include "monitor/daemon_status.h"
#include "tools/arguments.h"
#include "tools/commands.h"
#include "tools/plain_text.h"
#include "tools/quantity.h"
#include "tools/replay.h"

#define RATE_MAX 1e6

static const char usage[] =
	"usage: r3ring replay DIR --instance NAME [OPTION]...\n"
	"\n"
	"Feeds the archive in DIR through the daemon, as an engine NAME: its readers get the same\n"
	"requests, steps and ids. What the archive does not have is announced as lost.\n"
	"\n"
	"  --instance NAME    of the new channels: 1 to 48 letters, digits, '.', '_', '-'\n"
	"  --source NAME      the instance that is replayed, where the archive has several (the\n"
	"                     first one)\n"
	"  --rate recorded    as the steps were apart (default); pauses of over 10 s are cut\n"
	"  --rate STEPS_PER_S of each channel, at most 1000000\n"
	"  --rate max         as fast as the daemon takes them\n"
	"  --request ID       only this request is announced; others' rows are there, and\n"
	"                     nobody's; may be given several times\n"
	"  --json             the summary at the end as a JSON object\n"
	"  --help             this text\n"
	"\n"
	"exit codes: 0 done, 1 failed, or the archive is damaged, or does not have what was asked\n"
	"for, or something was dropped; 2 usage, 3 no daemon\n";

struct command_line {
	struct replay_options replay;
	bool json, help;
};

/* ---- command line ------------------------------------------------------ */

static int take_rate(struct replay_options *replay)
{
	char *end;
	double number = strtod(optarg, &end);

	if (!strcmp(optarg, "recorded")) {
		replay->pace = REPLAY_RECORDED;
		return 0;
	}
	if (!strcmp(optarg, "max")) {
		replay->pace = REPLAY_MAX;
		return 0;
	}
	if (end == optarg || *end || !isfinite(number) || number <= 0 || number > RATE_MAX) {
		return arguments_refuse_value("r3ring replay", "--rate", optarg,
					      "'recorded', 'max' or a number of steps per second "
					      "above 0, at most 1000000");
	}
	replay->pace = REPLAY_RATE;
	replay->rate = number;
	return 0;
}

static int take_option(int option, struct command_line *line)
{
	switch (option) {
	case 'i':
		line->replay.instance = optarg;
		return 0;
	case 's':
		line->replay.source = optarg;
		return 0;
	case 'r':
		return take_rate(&line->replay);
	case 'q':
		return arguments_append("r3ring replay", &line->replay.requests,
					&line->replay.request_count, optarg);
	case 'j':
		line->json = true;
		return 0;
	case 'h':
		line->help = true;
		return 0;
	default:
		return -EINVAL; /* getopt has said why */
	}
}

static int check_together(int argc, char **argv, struct command_line *line)
{
	if (optind + 1 < argc) {
		fprintf(stderr, "r3ring replay: '%s' is too much: one archive at a time\n",
			argv[optind + 1]);
		return -EINVAL;
	}
	if (optind == argc || !line->replay.instance) {
		fputs("r3ring replay: which archive, and as what? DIR --instance NAME\n", stderr);
		return -EINVAL;
	}
	line->replay.dir = argv[optind];
	return 0;
}

static int parse(int argc, char **argv, struct command_line *line)
{
	static const struct option options[] = {
		{"instance", required_argument, NULL, 'i'},
		{"source", required_argument, NULL, 's'},
		{"rate", required_argument, NULL, 'r'},
		{"request", required_argument, NULL, 'q'},
		{"json", no_argument, NULL, 'j'},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	int option;
	int code = 0;

	while (!code && (option = getopt_long(argc, argv, "h", options, NULL)) != -1)
		code = take_option(option, line);
	return code || line->help ? code : check_together(argc, argv, line);
}

/* ---- running ----------------------------------------------------------- */

static uint32_t stop;

static void ask_to_stop(int signal)
{
	(void)signal;
	r3ring_store_relaxed_u32(&stop, 1);
}

static void catch_signals(void)
{
	struct sigaction action = {.sa_handler = ask_to_stop, .sa_flags = (int)SA_RESETHAND};

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
}

static void clear_line(void)
{
	if (isatty(STDERR_FILENO))
		fputs("\r\033[K", stderr);
}

static void show_progress(void *ctx, const struct replay_report *report, uint64_t passed,
			  uint64_t bytes)
{
	char done[QUANTITY_TEXT], all[QUANTITY_TEXT];

	(void)ctx;
	fprintf(stderr, "\r%s of %s: %" PRIu64 " steps, %" PRIu64 " requests\033[K",
		quantity_bytes(done, passed), quantity_bytes(all, bytes), report->steps,
		report->requests);
}

static void note(void *ctx, const char *text)
{
	(void)ctx;
	clear_line();
	fputs("r3ring replay: ", stderr);
	plain_text_print(stderr, text, strlen(text));
	fputc('\n', stderr);
}

static int exit_code(int code, const struct replay_report *report)
{
	if (daemon_is_missing(code))
		return TOOL_NO_DAEMON;
	if (code == -EINVAL)
		return TOOL_USAGE;
	if (code || report->damaged || report->dropped_steps || report->refused || report->absent)
		return TOOL_FAILED;
	return TOOL_DONE;
}

static int replay(struct command_line *line)
{
	const struct replay_hooks hooks = {
		.note = note,
		.progress = isatty(STDERR_FILENO) ? show_progress : NULL,
	};
	struct r3ring_error err = {0};
	struct replay_report report;
	int code;

	line->replay.stop = &stop;
	catch_signals();
	code = replay_run(&line->replay, &hooks, &report, &err);
	clear_line();
	if (code)
		plain_text_error("r3ring replay", code, &err);
	if (code && !report.steps)
		return exit_code(code, &report);
	if (!line->json)
		replay_print(stdout, &line->replay, &report);
	else if (replay_print_json(&line->replay, &report))
		return TOOL_FAILED;
	return exit_code(code, &report);
}

int cmd_replay(int argc, char **argv)
{
	struct command_line line = {0};
	int code = TOOL_DONE;

	if (parse(argc, argv, &line))
		code = arguments_refuse(argv[0], NULL);
	else if (line.help)
		fputs(usage, stdout);
	else
		code = replay(&line);
	arguments_free(line.replay.requests);
	return code;
}
