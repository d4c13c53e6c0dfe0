/* SPDX-License-Identifier: Apache-2.0 */
/*
 * r3ring dump: the command line.
 */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "monitor/daemon_status.h"
#include "tools/arguments.h"
#include "tools/commands.h"
#include "tools/dump.h"
#include "tools/dump_source.h"
#include "tools/plain_text.h"

#define OUTPUT_BUFFER (1 << 20)

enum output_form { FORM_TEXT, FORM_JSON, FORM_COUNT };

struct command_line {
	struct dump_options dump;
	enum output_form form;
	bool help;
};

static const char usage[] =
	"usage: r3ring dump NAME/RANK|NAME [OPTION]...\n"
	"       r3ring dump --segment SEGMENT [OPTION]...\n"
	"\n"
	"Prints the records of a channel (NAME/RANK.draft: of its draft model), or of all ranks "
	"of\n"
	"the instance NAME in turns, and ends when all that is there was read.\n"
	"\n"
	"  --segment SEGMENT         reads a ring as it lies in shared memory, without a daemon:\n"
	"                            r3ring.UID.NAME.RANK.GENERATION in /dev/shm\n"
	"  --from oldest|latest|SEQ  where to begin: at the oldest record that is still there\n"
	"                            (default), behind the newest, or at sequence number SEQ\n"
	"  --follow                  wait for the channel to appear, then read on, into later\n"
	"                            generations too, until interrupted\n"
	"  --until-idle SECONDS      read on until no record came for so long; counts from the\n"
	"                            first record\n"
	"  --lossless                the channel waits for this reader, within the daemon's "
	"limits\n"
	"  --layer L                 of the LAYER records only those of model layer L; mtp:L for\n"
	"                            a multi-token prediction layer\n"
	"  --json                    one JSON object a line\n"
	"  --count                   only totals by type, and the losses; of one channel\n"
	"  --help                    this text\n"
	"\n"
	"exit codes: 0 done, 1 failed or damage found, 2 usage, 3 no daemon or no such\n"
	"channel\n";

static int refuse(const char *option, const char *value, const char *wanted)
{
	return arguments_refuse_value("r3ring dump", option, value, wanted);
}

/* ---- option values ---------------------------------------------------- */

/* Digits only: no sign, no space, nothing behind. */
static bool parse_u64(const char *text, uint64_t *value)
{
	char *end;

	if (text[0] < '0' || text[0] > '9')
		return false;
	errno = 0;
	*value = strtoull(text, &end, 10);
	return !errno && !*end;
}

static int parse_from(const char *text, struct dump_options *options)
{
	if (!strcmp(text, "oldest")) {
		options->from = R3RING_FROM_OLDEST;
		return 0;
	}
	if (!strcmp(text, "latest")) {
		options->from = R3RING_FROM_LATEST;
		return 0;
	}
	options->from = R3RING_FROM_SEQ;
	if (parse_u64(text, &options->seq) && options->seq)
		return 0;
	return refuse("--from", text, "'oldest', 'latest' or a sequence number from 1 on");
}

static int parse_until_idle(const char *text, struct dump_options *options)
{
	if (arguments_seconds(text, &options->until_idle_ns))
		return 0;
	return refuse("--until-idle", text, "a number of seconds above 0, such as 2 or 0.5");
}

static int parse_layer(const char *text, struct dump_layer *layer)
{
	bool mtp = !strncmp(text, "mtp:", 4);
	uint64_t number;

	if (!parse_u64(mtp ? text + 4 : text, &number) || number > INT32_MAX)
		return refuse("--layer", text, "a model layer number, such as 3 or mtp:1");
	layer->all = false;
	layer->mtp = mtp;
	layer->id = (int32_t)number;
	return 0;
}

static int choose_form(struct command_line *line, enum output_form form)
{
	if (line->form != FORM_TEXT && line->form != form) {
		fputs("r3ring dump: --json and --count exclude each other\n", stderr);
		return -EINVAL;
	}
	line->form = form;
	return 0;
}

/* ---- command line ----------------------------------------------------- */

static int take_option(int option, struct command_line *line)
{
	switch (option) {
	case 's':
		line->dump.channel = optarg;
		line->dump.segment = true;
		return 0;
	case 'f':
		return parse_from(optarg, &line->dump);
	case 'F':
		line->dump.follow = true;
		return 0;
	case 'u':
		return parse_until_idle(optarg, &line->dump);
	case 'L':
		line->dump.lossless = true;
		return 0;
	case 'l':
		return parse_layer(optarg, &line->dump.layer);
	case 'j':
		return choose_form(line, FORM_JSON);
	case 'c':
		return choose_form(line, FORM_COUNT);
	case 'h':
		line->help = true;
		return 0;
	default:
		return -EINVAL; /* getopt has said why */
	}
}

static int take_channel(int argc, char **argv, struct command_line *line)
{
	if (optind == argc) {
		fputs("r3ring dump: which channel? NAME/RANK, or NAME for all ranks; 'r3ring "
		      "status' lists them\n",
		      stderr);
		return -EINVAL;
	}
	if (optind + 1 < argc) {
		fprintf(stderr, "r3ring dump: one channel at a time: '%s' is too much\n",
			argv[optind + 1]);
		return -EINVAL;
	}
	line->dump.channel = argv[optind];
	if (line->form != FORM_COUNT || !dump_names_instance(line->dump.channel))
		return 0;
	fprintf(stderr, "r3ring dump: --count takes one channel: %s/RANK\n", line->dump.channel);
	return -EINVAL;
}

static int check_segment(int argc, char **argv, const struct command_line *line)
{
	if (line->dump.lossless) {
		fputs("r3ring dump: --segment asks nobody, so nobody waits for it: leave "
		      "--lossless, or name the channel\n",
		      stderr);
		return -EINVAL;
	}
	if (optind == argc)
		return 0;
	fprintf(stderr, "r3ring dump: a channel or a --segment, not both: '%s' is too much\n",
		argv[optind]);
	return -EINVAL;
}

static int parse(int argc, char **argv, struct command_line *line)
{
	static const struct option options[] = {
		{"segment", required_argument, NULL, 's'},
		{"from", required_argument, NULL, 'f'},
		{"follow", no_argument, NULL, 'F'},
		{"until-idle", required_argument, NULL, 'u'},
		{"lossless", no_argument, NULL, 'L'},
		{"layer", required_argument, NULL, 'l'},
		{"json", no_argument, NULL, 'j'},
		{"count", no_argument, NULL, 'c'},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	int option;
	int code = 0;

	while (!code && (option = getopt_long(argc, argv, "h", options, NULL)) != -1)
		code = take_option(option, line);
	if (code || line->help)
		return code;
	return line->dump.segment ? check_segment(argc, argv, line)
				  : take_channel(argc, argv, line);
}

/* ---- running ---------------------------------------------------------- */

static struct dump_form make_form(enum output_form form, struct dump_count *count)
{
	switch (form) {
	case FORM_JSON:
		return dump_json_form(stdout);
	case FORM_COUNT:
		return dump_count_form(count);
	default:
		return dump_text_form(stdout);
	}
}

static int exit_code(int code)
{
	if (daemon_is_missing(code))
		return TOOL_NO_DAEMON;
	switch (code) {
	case 0:
		return TOOL_DONE;
	case -EINVAL:
	case -ERANGE:
		return TOOL_USAGE;
	case -ENOENT:
		return TOOL_NO_DAEMON;
	default:
		return TOOL_FAILED;
	}
}

static int dump(const struct command_line *line)
{
	struct dump_count count = {.out = stdout, .channel = line->dump.channel};
	struct dump_form form = make_form(line->form, &count);
	struct r3ring_error err = {0};
	struct dump_damage damage = {0};
	int code;

	setvbuf(stdout, NULL, _IOFBF, OUTPUT_BUFFER);
	code = dump_run(&line->dump, &form, stdout, &damage, &err);
	if (code) {
		plain_text_error("r3ring dump", code, &err);
		return exit_code(code);
	}
	if (damage.records)
		fprintf(stderr, "r3ring dump: %llu records of %s are corrupt\n",
			(unsigned long long)damage.records, line->dump.channel);
	return damage.records || damage.tails ? TOOL_FAILED : TOOL_DONE;
}

int cmd_dump(int argc, char **argv)
{
	struct command_line line = {.dump.layer.all = true};

	if (parse(argc, argv, &line))
		return arguments_refuse(argv[0], NULL);
	if (line.help) {
		fputs(usage, stdout);
		return TOOL_DONE;
	}
	return dump(&line);
}
