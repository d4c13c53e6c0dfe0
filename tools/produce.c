/* SPDX-License-Identifier: Apache-2.0 */
/*
 * r3ring produce: the command line of the reference producer.
 */
#include <errno.h>
#include <getopt.h>
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
#include "tools/produce.h"

#define TRACE_RATE 200.0 /* a recording costs no computing: this is a fast engine's pace */
#define RATE_MAX 1e6

struct command_line {
	struct run_options run;
	const char *text_option; /* one that only goes with --text */
	bool json, help;
};

static const char usage[] =
	"usage: r3ring produce --instance NAME --model NAME --text FILE [OPTION]...\n"
	"       r3ring produce --instance NAME --trace HEADER.json [OPTION]...\n"
	"\n"
	"The reference producer: serves requests in a continuous batch and has their routing\n"
	"captured, either the real routing rules of a model, with seeded weights, over the words "
	"of\n"
	"a text, or a recording.\n"
	"\n"
	"  --instance NAME        the channel's name: 1 to 48 letters, digits, '.', '_', '-'\n"
	"  --rank N               the channel's rank, 0 to 4294967295 (0)\n"
	"  --batch ROWS           rows of a step at most (64)\n"
	"  --rate STEPS_PER_S     pace, at most 1000000 (a model: as fast as it computes; a "
	"recording:\n"
	"                         200)\n"
	"  --max-steps N          end after N steps; what still runs is aborted\n"
	"  --eplb-replicas N      physical experts of a layer beyond the logical ones (experts / "
	"8,\n"
	"                         as far as 65535 in all allow)\n"
	"  --device host|cuda     what captures, and where the buffer is; the forward runs on the\n"
	"                         CPU (auto: host)\n"
	"  --buffer-export HOW    on a GPU: ipc handle, fd, or auto by what the daemon shares "
	"(auto)\n"
	"  --order HOW            on a GPU, what the daemon's copies wait for: bell or event "
	"(bell)\n"
	"  --side-stream          on a GPU: capture beside the model's stream, off its critical "
	"path\n"
	"\n"
	"  --model NAME           deepseek-v4-flash, deepseek-v4-pro, kimi-k3, kimi-k2, "
	"deepseek-v3,\n"
	"                         qwen3-235b or gpt-oss-20b\n"
	"  --text FILE            text that the requests' tokens come from\n"
	"  --requests N           how many requests (16)\n"
	"  --prefill-chunk ROWS   rows of one request's prompt in a step at most (32)\n"
	"  --seed N               of weights, prompts and lengths (1)\n"
	"  --hidden N             hidden size, a multiple of 16 (64)\n"
	"\n"
	"  --trace HEADER.json    recorded routing: its requests, decoded in a continuous batch\n"
	"  --repeat N             run through the recording N times (1)\n"
	"\n"
	"  --json                 the summary at the end as a JSON object\n"
	"  --help                 this text\n"
	"\n"
	"exit codes: 0 done, 1 failed, 2 usage, 3 no daemon\n";

/* ---- option values ---------------------------------------------------- */

static int take_number(const char *option, uint64_t least, uint64_t most, uint64_t *value)
{
	return arguments_number("r3ring produce", option, optarg, least, most, value);
}

static int take_count(const char *option, uint32_t least, uint32_t *value)
{
	uint64_t number;
	int code = take_number(option, least, INT32_MAX, &number);

	if (!code)
		*value = (uint32_t)number;
	return code;
}

/* Every rank that a channel's name can have. */
static int take_rank(uint32_t *rank)
{
	uint64_t number;
	int code = take_number("--rank", 0, UINT32_MAX, &number);

	if (!code)
		*rank = (uint32_t)number;
	return code;
}

static int take_rate(double *rate)
{
	char *end;
	double number = strtod(optarg, &end);

	if (end == optarg || *end || !isfinite(number) || number <= 0 || number > RATE_MAX)
		return arguments_refuse_value(
			"r3ring produce", "--rate", optarg,
			"a number of steps per second above 0, at most 1000000");
	*rate = number;
	return 0;
}

/* ---- command line ----------------------------------------------------- */

enum {
	OPT_INSTANCE = 1,
	OPT_RANK,
	OPT_BATCH,
	OPT_RATE,
	OPT_MAX_STEPS,
	OPT_EPLB,
	OPT_DEVICE,
	OPT_EXPORT,
	OPT_ORDER,
	OPT_SIDE_STREAM,
	OPT_TRACE,
	OPT_REPEAT,
	OPT_JSON,
	OPT_TEXT_ONLY, /* those behind it go with --text only */
	OPT_MODEL,
	OPT_TEXT,
	OPT_REQUESTS,
	OPT_CHUNK,
	OPT_SEED,
	OPT_HIDDEN,
};

static const struct option long_options[] = {
	{"instance", required_argument, NULL, OPT_INSTANCE},
	{"rank", required_argument, NULL, OPT_RANK},
	{"batch", required_argument, NULL, OPT_BATCH},
	{"rate", required_argument, NULL, OPT_RATE},
	{"max-steps", required_argument, NULL, OPT_MAX_STEPS},
	{"eplb-replicas", required_argument, NULL, OPT_EPLB},
	{"device", required_argument, NULL, OPT_DEVICE},
	{"buffer-export", required_argument, NULL, OPT_EXPORT},
	{"order", required_argument, NULL, OPT_ORDER},
	{"side-stream", no_argument, NULL, OPT_SIDE_STREAM},
	{"trace", required_argument, NULL, OPT_TRACE},
	{"repeat", required_argument, NULL, OPT_REPEAT},
	{"json", no_argument, NULL, OPT_JSON},
	{"model", required_argument, NULL, OPT_MODEL},
	{"text", required_argument, NULL, OPT_TEXT},
	{"requests", required_argument, NULL, OPT_REQUESTS},
	{"prefill-chunk", required_argument, NULL, OPT_CHUNK},
	{"seed", required_argument, NULL, OPT_SEED},
	{"hidden", required_argument, NULL, OPT_HIDDEN},
	{"help", no_argument, NULL, 'h'},
	{0},
};

static int take_text_option(int option, struct run_options *run)
{
	switch (option) {
	case OPT_MODEL:
		run->model = optarg;
		return 0;
	case OPT_TEXT:
		run->text = optarg;
		return 0;
	case OPT_REQUESTS:
		return take_count("--requests", 1, &run->requests);
	case OPT_CHUNK:
		return take_count("--prefill-chunk", 1, &run->prefill_chunk);
	case OPT_SEED:
		return take_number("--seed", 0, UINT64_MAX, &run->seed);
	case OPT_HIDDEN:
		return take_count("--hidden", 1, &run->hidden);
	default:
		return -EINVAL; /* getopt has said why */
	}
}

static int take_option(int option, struct command_line *line)
{
	struct run_options *run = &line->run;

	switch (option) {
	case OPT_INSTANCE:
		run->instance = optarg;
		return 0;
	case OPT_RANK:
		return take_rank(&run->rank);
	case OPT_BATCH:
		return take_count("--batch", 1, &run->batch_rows);
	case OPT_RATE:
		return take_rate(&run->rate);
	case OPT_MAX_STEPS:
		return take_number("--max-steps", 1, UINT64_MAX, &run->max_steps);
	case OPT_EPLB:
		return take_count("--eplb-replicas", 0, &run->eplb_replicas);
	case OPT_DEVICE:
		run->device = optarg;
		return 0;
	case OPT_EXPORT:
		run->buffer_export = optarg;
		return 0;
	case OPT_ORDER:
		run->order = optarg;
		return 0;
	case OPT_SIDE_STREAM:
		run->side_stream = true;
		return 0;
	case OPT_TRACE:
		run->trace = optarg;
		return 0;
	case OPT_REPEAT:
		return take_count("--repeat", 1, &run->repeat);
	case OPT_JSON:
		line->json = true;
		return 0;
	case 'h':
		line->help = true;
		return 0;
	default:
		return take_text_option(option, run);
	}
}

static int complain(const char *problem)
{
	fprintf(stderr, "r3ring produce: %s\n", problem);
	return -EINVAL;
}

/* What is there must be enough, and go together. */
static int check_together(int argc, char **argv, struct command_line *line)
{
	struct run_options *run = &line->run;

	if (optind < argc) {
		fprintf(stderr, "r3ring produce: '%s' is too much: options only\n", argv[optind]);
		return -EINVAL;
	}
	if (!run->instance)
		return complain("which channel? --instance NAME");
	if (run->trace && line->text_option) {
		fprintf(stderr, "r3ring produce: --%s does not go with --trace\n",
			line->text_option);
		return -EINVAL;
	}
	if (!run->trace && run->repeat > 1)
		return complain("--repeat goes with --trace only");
	if (!run->trace && (!run->model || !run->text))
		return complain("nothing to run: give --model NAME and --text FILE, or --trace "
				"HEADER.json");
	if (run->trace && !(run->rate > 0))
		run->rate = TRACE_RATE;
	return 0;
}

static int parse(int argc, char **argv, struct command_line *line)
{
	int option;
	int index;
	int code = 0;

	while (!code && (option = getopt_long(argc, argv, "h", long_options, &index)) != -1) {
		if (option > OPT_TEXT_ONLY && option <= OPT_HIDDEN)
			line->text_option = long_options[index].name;
		code = take_option(option, line);
	}
	if (code || line->help)
		return code;
	return check_together(argc, argv, line);
}

/* ---- running ---------------------------------------------------------- */

static uint32_t stop;

static void ask_to_stop(int signal)
{
	(void)signal;
	r3ring_store_relaxed_u32(&stop, 1);
}

static void catch_signals(void)
{
	struct sigaction action = {.sa_handler = ask_to_stop};

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
}

static void log_line(void *ctx, enum r3ring_log_level level, const char *text)
{
	produce_clear_progress(ctx);
	if (level <= R3RING_LOG_WARN)
		fprintf(stderr, "r3ring produce: %s\n", text);
}

static int exit_code(int code)
{
	if (daemon_is_missing(code))
		return TOOL_NO_DAEMON;
	switch (code) {
	case 0:
		return TOOL_DONE;
	case -EINVAL:
		return TOOL_USAGE;
	default:
		return TOOL_FAILED;
	}
}

static int produce(struct command_line *line)
{
	struct produce_progress progress = {.terminal = stderr};
	struct r3ring_error err = {0};
	struct run_report report;
	int code;

	line->run.stop = &stop;
	line->run.log = log_line;
	line->run.log_ctx = &progress;
	if (isatty(STDERR_FILENO)) {
		line->run.progress = produce_show_progress;
		line->run.progress_ctx = &progress;
	}
	catch_signals();
	code = run_reference(&line->run, &report, &err);
	produce_clear_progress(&progress);
	if (code)
		plain_text_error("r3ring produce", code, &err);
	if (code && !report.steps)
		return exit_code(code);
	if (!line->json)
		produce_print_text(stdout, &line->run, &report);
	else if (produce_print_json(stdout, &line->run, &report))
		return TOOL_FAILED;
	return exit_code(code);
}

int cmd_produce(int argc, char **argv)
{
	struct command_line line = {
		.run =
			{
				.device = "auto",
				.repeat = 1,
				.requests = 16,
				.prefill_chunk = 32,
				.hidden = 64,
				.seed = 1,
				.batch_rows = 64,
				.eplb_replicas = RUN_EPLB_DEFAULT,
			},
	};

	if (parse(argc, argv, &line))
		return arguments_refuse(argv[0], NULL);
	if (line.help) {
		fputs(usage, stdout);
		return TOOL_DONE;
	}
	return produce(&line);
}
