/* SPDX-License-Identifier: Apache-2.0 */
/* r3ring report: the command line. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/arguments.h"
#include "tools/commands.h"
#include "tools/report.h"

#define TABLE_DEFAULT 200u
#define TABLE_MAX 100000u

static const char usage[] =
	"usage: r3ring report DIR [-o FILE] [--png FILE] [OPTION]...\n"
	"\n"
	"Says on one page what the archive DIR has: load of experts, balance of layers before and\n"
	"after a plan, load over time, coverage and losses, channels, requests. The page has\n"
	"everything in itself.\n"
	"\n"
	"  -o, --output FILE  the page, as HTML; -: to standard output\n"
	"  --png FILE         the heatmap of the load, as a picture\n"
	"  --title TEXT       of both\n"
	"  --gpus N           GPUs that share the experts, for the plan; both default to those of\n"
	"  --replicas N       the captured EPLB map. Replicas: physical experts of a layer\n"
	"  --instance NAME    only what this engine ran\n"
	"  --since TIME       only what was run, and what ended, at TIME or later: seconds since\n"
	"  --until TIME       1970 as @1700000000, or 2026-11-30T12:00:00 (local; with Z: UTC);\n"
	"                     until: earlier than TIME\n"
	"  --request ID       heatmap and balance: of this request; may be given several times\n"
	"  --table N          requests told one by one (200)\n"
	"  --max-memory MIB   for requests at work (default 1024)\n"
	"  --progress         even where standard error is no terminal\n"
	"  --help             this text\n"
	"\n"
	"exit codes: 0 done, 1 failed, or the archive is damaged, or requests did not fit into "
	"the\n"
	"memory: then the page is of what could be read, and of what did; 2 usage\n";

static int take_number(const char *option, uint64_t least, uint64_t most, uint64_t *number)
{
	return arguments_number("r3ring report", option, optarg, least, most, number);
}

static int take_numbers(int option, struct report_line *line)
{
	uint64_t number = 0;
	int r;

	switch (option) {
	case 'g':
		r = take_number("--gpus", 1, R3RING_EXPERTS_MAX, &number);
		line->place.gpus = (uint32_t)number;
		return r;
	case 'R':
		r = take_number("--replicas", 1, R3RING_EXPERTS_MAX, &number);
		line->place.physical = (uint32_t)number;
		return r;
	case 'n':
		r = take_number("--table", 0, TABLE_MAX, &number);
		line->options.table = (uint32_t)number;
		return r;
	default:
		r = take_number("--max-memory", 1, UINT32_MAX, &number);
		line->options.max_bytes = number << 20;
		return r;
	}
}

static int take_option(int option, struct report_line *line)
{
	switch (option) {
	case 'o':
		line->page = optarg;
		return 0;
	case 'P':
		line->png = optarg;
		return 0;
	case 't':
		line->title = optarg;
		return 0;
	case 'i':
		line->options.instance = optarg;
		return 0;
	case 'q':
		return arguments_append("r3ring report", &line->options.request,
					&line->options.requests, optarg);
	case 's':
		return arguments_time("r3ring report", "--since", optarg, &line->options.since_ns);
	case 'u':
		return arguments_until("r3ring report", optarg, &line->options.until_ns);
	case 'g':
	case 'R':
	case 'n':
	case 'm':
		return take_numbers(option, line);
	case 'p':
		line->progress = true;
		return 0;
	case 'h':
		line->help = true;
		return 0;
	default:
		return -EINVAL; /* getopt has said why */
	}
}

static int take_arguments(int argc, char **argv, struct report_line *line)
{
	const char *wrong = NULL;

	if (optind + 1 != argc)
		wrong = optind == argc ? "which archive? DIR, as 'r3ring record' made it"
				       : "one archive at a time";
	else if (!line->page && !line->png)
		wrong = "where to? -o FILE for the page, --png FILE for the heatmap";
	else if (line->page && line->png && !strcmp(line->page, line->png))
		wrong = "page and picture cannot be the same file";
	else if (!line->place.gpus != !line->place.physical)
		wrong = "a plan needs both --gpus and --replicas";
	else if (line->options.until_ns && line->options.until_ns <= line->options.since_ns)
		wrong = "--until is not later than --since";
	if (wrong)
		fprintf(stderr, "r3ring report: %s\n", wrong);
	else
		line->dir = argv[optind];
	return wrong ? -EINVAL : 0;
}

static int parse(int argc, char **argv, struct report_line *line)
{
	static const struct option options[] = {
		{"output", required_argument, NULL, 'o'},
		{"png", required_argument, NULL, 'P'},
		{"title", required_argument, NULL, 't'},
		{"gpus", required_argument, NULL, 'g'},
		{"replicas", required_argument, NULL, 'R'},
		{"instance", required_argument, NULL, 'i'},
		{"since", required_argument, NULL, 's'},
		{"until", required_argument, NULL, 'u'},
		{"request", required_argument, NULL, 'q'},
		{"table", required_argument, NULL, 'n'},
		{"max-memory", required_argument, NULL, 'm'},
		{"progress", no_argument, NULL, 'p'},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	int option, r = 0;

	while (!r && (option = getopt_long(argc, argv, "o:h", options, NULL)) != -1)
		r = take_option(option, line);
	return r || line->help ? r : take_arguments(argc, argv, line);
}

int cmd_report(int argc, char **argv)
{
	struct report_line line = {.options = {.table = TABLE_DEFAULT},
				   .place = {.size = sizeof(line.place)}};
	int code;

	if (parse(argc, argv, &line)) {
		code = arguments_refuse(argv[0], NULL);
	} else if (line.help) {
		fputs(usage, stdout);
		code = TOOL_DONE;
	} else {
		code = report_run_line(&line);
	}
	arguments_free(line.options.request);
	return code;
}
