/* SPDX-License-Identifier: Apache-2.0 */
/* r3ring record: the command line. */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "channel/size_text.h"
#include "channel/socket.h"
#include "monitor/daemon_status.h"
#include "tools/arguments.h"
#include "tools/commands.h"
#include "tools/plain_text.h"
#include "tools/record.h"

#define LEVEL 3
#define LEVEL_MAX 19
#define LAYER_MAX 1000000

struct command_line {
	struct record_options record;
	char instance[R3RING_INSTANCE_MAX + 1];
	bool json;
	bool help;
};

enum option_code {
	OPT_INSTANCE = 256,
	OPT_DRAFT,
	OPT_UNTIL_IDLE,
	OPT_LAYERS,
	OPT_LEVEL,
	OPT_SYNC,
	OPT_MAX_SIZE,
	OPT_ROTATE,
	OPT_SEGMENT_SIZE,
	OPT_NO_URING,
	OPT_JSON,
};

static const char usage[] =
	"usage: r3ring record --instance NAME -o DIR [OPTION]...\n"
	"       r3ring record NAME/RANK... -o DIR [OPTION]...\n"
	"\n"
	"Writes the records of all ranks of an instance, or of some channels of one, into the\n"
	"archive DIR, which is made where it is not there and gone on with where it is. Waits for\n"
	"a first channel, joins those that appear, follows restarts of engine and daemon; ends\n"
	"when interrupted, terminated or hung up.\n"
	"\n"
	"  -o, --output DIR      the archive\n"
	"  --instance NAME       the instance\n"
	"  --draft               draft models' channels too\n"
	"  --until-idle SECONDS  end when no record came for so long; a first channel is waited "
	"for\n"
	"                        as long, but at least 30 seconds\n"
	"  --layers A:B          keep layers A to B - 1 only, by the model's layer numbers\n"
	"  --level N             of zstd, 1 to 19 (default 3); 0: do not compress\n"
	"  --sync WHEN           how often it is made certain that what is written survives a\n"
	"                        power loss: never, block, or SECONDS (default 1)\n"
	"  --max-size SIZE       of the archive (such as 500G; at least 64K, with --rotate 128K);\n"
	"                        it ends there, unless\n"
	"  --rotate              the oldest segments go\n"
	"  --segment-size SIZE   of its files (default 256M; with --rotate an eighth of the whole\n"
	"                        if that is less), at least 64K\n"
	"  --no-uring            write with pwrite though there is io_uring\n"
	"  --json                the summary as JSON\n"
	"  --help                this text\n"
	"\n"
	"exit codes: 0 done, 1 failed (a full disk, or a removed archive, too), 2 usage, 3 no\n"
	"daemon or no such channel\n";

static int refuse(const char *option, const char *value, const char *wanted)
{
	return arguments_refuse_value("r3ring record", option, value, wanted);
}

/* ---- option values ------------------------------------------------------ */

static int parse_size(const char *option, const char *text, uint64_t *bytes)
{
	if (size_text_parse(text, bytes) == 0)
		return 0;
	return refuse(option, text, "a size, such as 64M or 500G");
}

/* Digits up to @end. */
static bool parse_number(const char *text, char **end, uint32_t most, uint32_t *number)
{
	unsigned long value;

	if (text[0] < '0' || text[0] > '9')
		return false;
	errno = 0;
	value = strtoul(text, end, 10);
	if (errno || value > most)
		return false;
	*number = (uint32_t)value;
	return true;
}

static int parse_layers(const char *text, struct archive_writer_options *archive)
{
	uint32_t first, behind;
	char *end;

	if (parse_number(text, &end, LAYER_MAX, &first) && *end == ':' &&
	    parse_number(end + 1, &end, LAYER_MAX, &behind) && !*end && first < behind) {
		archive->layer_first = first;
		archive->layer_end = behind;
		return 0;
	}
	return refuse("--layers", text, "a range A:B of model layer numbers, such as 3:61");
}

static int parse_level(const char *text, int *level)
{
	uint32_t number;
	char *end;

	if (!parse_number(text, &end, LEVEL_MAX, &number) || *end)
		return refuse("--level", text, "a level of zstd, 1 to 19, or 0");
	*level = (int)number;
	return 0;
}

static int parse_sync(const char *text, struct archive_writer_options *archive)
{
	uint64_t ns;

	if (!strcmp(text, "never")) {
		archive->sync = ARCHIVE_SYNC_NEVER;
		return 0;
	}
	if (!strcmp(text, "block")) {
		archive->sync = ARCHIVE_SYNC_BLOCK;
		return 0;
	}
	if (!arguments_seconds(text, &ns) || ns / 1000000u > UINT32_MAX || ns < 1000000u)
		return refuse("--sync", text, "'never', 'block' or a number of seconds");
	archive->sync = ARCHIVE_SYNC_PERIOD;
	archive->sync_ms = (uint32_t)(ns / 1000000u);
	return 0;
}

/* ---- command line ------------------------------------------------------- */

static const struct option long_options[] = {
	{"output", required_argument, NULL, 'o'},
	{"instance", required_argument, NULL, OPT_INSTANCE},
	{"draft", no_argument, NULL, OPT_DRAFT},
	{"until-idle", required_argument, NULL, OPT_UNTIL_IDLE},
	{"layers", required_argument, NULL, OPT_LAYERS},
	{"level", required_argument, NULL, OPT_LEVEL},
	{"sync", required_argument, NULL, OPT_SYNC},
	{"max-size", required_argument, NULL, OPT_MAX_SIZE},
	{"rotate", no_argument, NULL, OPT_ROTATE},
	{"segment-size", required_argument, NULL, OPT_SEGMENT_SIZE},
	{"no-uring", no_argument, NULL, OPT_NO_URING},
	{"json", no_argument, NULL, OPT_JSON},
	{"help", no_argument, NULL, 'h'},
	{0},
};

static int take_archive_option(int option, struct archive_writer_options *archive)
{
	switch (option) {
	case 'o':
		archive->dir = optarg;
		return 0;
	case OPT_LAYERS:
		return parse_layers(optarg, archive);
	case OPT_LEVEL:
		return parse_level(optarg, &archive->level);
	case OPT_SYNC:
		return parse_sync(optarg, archive);
	case OPT_MAX_SIZE:
		return parse_size("--max-size", optarg, &archive->max_bytes);
	case OPT_ROTATE:
		archive->rotate = true;
		return 0;
	case OPT_SEGMENT_SIZE:
		return parse_size("--segment-size", optarg, &archive->segment_bytes);
	case OPT_NO_URING:
		archive->no_uring = true;
		return 0;
	default:
		return -EINVAL; /* getopt has said why */
	}
}

static int take_option(int option, struct command_line *line)
{
	switch (option) {
	case OPT_INSTANCE:
		line->record.instance = optarg;
		return 0;
	case OPT_DRAFT:
		line->record.models = R3RING_ALL_CHANNELS;
		return 0;
	case OPT_UNTIL_IDLE:
		if (arguments_seconds(optarg, &line->record.until_idle_ns))
			return 0;
		return refuse("--until-idle", optarg,
			      "a number of seconds above 0, such as 2 or 0.5");
	case OPT_JSON:
		line->json = true;
		return 0;
	case 'h':
		line->help = true;
		return 0;
	default:
		return take_archive_option(option, &line->record.archive);
	}
}

static int complain(const char *problem)
{
	fprintf(stderr, "r3ring record: %s\n", problem);
	return -EINVAL;
}

/* Channels are of one instance: what of two belongs together no archive could say. */
static int take_channels(char **names, struct command_line *line)
{
	struct r3ring_channel_name name;
	struct r3ring_error err = {0};

	for (size_t i = 0; names[i]; i++) {
		if (channel_name_parse(&name, names[i], &err)) {
			fprintf(stderr, "r3ring record: %s\n", err.text);
			return -EINVAL;
		}
		if (i && strcmp(name.instance, line->instance) != 0)
			return complain("channels of one instance only: record others into "
					"archives of their own");
		snprintf(line->instance, sizeof(line->instance), "%s", name.instance);
	}
	line->record.only = (const char *const *)names;
	line->record.instance = line->instance;
	return 0;
}

static int check_together(char **names, struct command_line *line)
{
	const struct archive_writer_options *archive = &line->record.archive;
	struct r3ring_error err = {0};

	if (!archive->dir)
		return complain("where to? -o DIR");
	if (archive->rotate && !archive->max_bytes)
		return complain("--rotate needs --max-size");
	if (archive_writer_check(archive, &err) < 0)
		return complain(err.text);
	if (line->record.instance && names[0])
		return complain("--instance NAME or channels NAME/RANK, not both");
	if (names[0])
		return take_channels(names, line);
	if (!line->record.instance)
		return complain("what? --instance NAME, or channels NAME/RANK; 'r3ring status' "
				"lists them");
	return 0;
}

static int parse(int argc, char **argv, struct command_line *line)
{
	int option;
	int code = 0;

	while (!code && (option = getopt_long(argc, argv, "ho:", long_options, NULL)) != -1)
		code = take_option(option, line);
	if (code || line->help)
		return code;
	return check_together(argv + optind, line);
}

/* ---- running ------------------------------------------------------------ */

static int exit_code(int code, const struct record_report *report)
{
	if (!report->begun && (daemon_is_missing(code) || code == -ENOENT))
		return TOOL_NO_DAEMON;
	if (code == -EINVAL)
		return TOOL_USAGE;
	return code < 0 ? TOOL_FAILED : TOOL_DONE;
}

static bool keeps_no_layer(const struct record_report *report)
{
	if (!report->schemas || report->layers)
		return false;
	fputs("r3ring record: --layers names no layer of any channel: there are no routes of these "
	      "runs in the archive\n",
	      stderr);
	return true;
}

/* Its own limit is an end as asked for; what the ring itself had wrong is not. */
static int record(const struct command_line *line)
{
	struct record_report report;
	struct r3ring_error err = {0};
	int code = record_run(&line->record, &report, &err);
	int printed = TOOL_DONE;

	if (code < 0)
		plain_text_error("r3ring record", code, &err);
	if (code == -EDQUOT && report.full && report.channels)
		code = 0;
	/* Of what is not there, or no longer, there is nothing to sum up. */
	if (code < 0 && (!report.channels || code == -ESTALE))
		return exit_code(code, &report);
	if (line->json)
		printed = record_print_json(&line->record, &report);
	else
		record_print_text(stdout, &report);
	if (code < 0)
		return exit_code(code, &report);
	return report.corrupt || report.unreadable || keeps_no_layer(&report) ? TOOL_FAILED
									      : printed;
}

int cmd_record(int argc, char **argv)
{
	struct command_line line = {
		.record.archive = {.level = LEVEL, .sync = ARCHIVE_SYNC_PERIOD},
	};

	if (parse(argc, argv, &line))
		return arguments_refuse(argv[0], NULL);
	if (line.help) {
		fputs(usage, stdout);
		return TOOL_DONE;
	}
	return record(&line);
}
