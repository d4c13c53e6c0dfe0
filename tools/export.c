/* SPDX-License-Identifier: Apache-2.0 */
/*
 * r3ring export: the command line.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "archive/export/export.h"
#include "tools/arguments.h"
#include "tools/commands.h"
#include "tools/export.h"

static const char usage[] =
	"usage: r3ring export DIR --format FORMAT -o FILE [OPTION]...\n"
	"\n"
	"Writes the routes of the requests in the archive DIR, as a trainer takes them.\n"
	"\n"
	"  -o, --output FILE     replaced, once the new one is whole; - or a FIFO: written to\n"
	"  --format FORMAT       one of\n";

static const char options_usage[] =
	"\n"
	"which requests:\n"
	"  --request ID          only this one, all that have the id, or ID#2 the second of\n"
	"                        them; may be given several times\n"
	"  --since TIME          only those that ended at TIME or later: seconds since 1970 as\n"
	"  --until TIME          @1700000000, or 2026-11-30T12:00:00 (local; with Z: UTC); until:\n"
	"                        earlier than TIME\n"
	"  --instance NAME       only what this engine ran\n"
	"  --include WHAT        also unfinished, aborted or guessed (nobody said how many tokens\n"
	"                        were kept) ones, or what can be read of a damaged archive:\n"
	"                        damaged; may be given several times\n"
	"which rows:\n"
	"  --layers A:B          model layers A to B-1\n"
	"  --positions A:B       positions A to B-1 of each request\n"
	"  --rows minus-one|full none for the last token (default), or one for each token\n"
	"  --policy first|latest of several passes over a token the one that sampled (default),\n"
	"                        or the last\n"
	"  --all-layers          dense layers have a place too; --moe-layers: they have none\n"
	"  --model-layers N      layers of the model, where the last ones are dense\n"
	"  --mtp                 multi-token prediction layers too, behind the others\n"
	"  --join-turns          the last token's row from the session's next turn, which must\n"
	"                        begin with the tokens of this one; with --rows full\n"
	"how:\n"
	"  --dtype TYPE          u8, i8, u16 (default), i16, i32 or i64\n"
	"  --missing FILL        where a route was lost: error (default), -1, zeros or arange\n"
	"  --pad FILL            where there is none: dense layers, the last token's row: -1\n"
	"                        (default), zeros or arange\n"
	"  --max-memory MIB      for requests at work (default 1024); one that does not fit\n"
	"                        is an error\n"
	"  --ends N              channels that must tell of a request's end; prefill and decode\n"
	"                        apart: the sum of both\n"
	"  --progress            even where standard error is no terminal\n"
	"  --json                a summary on standard output\n"
	"  --help                this text\n"
	"\n"
	"exit codes: 0 done, 1 failed, or something is missing or damaged: then nothing is\n"
	"written; 2 usage\n";

static void print_usage(FILE *out)
{
	const char *name, *summary = "";

	fputs(usage, out);
	for (uint32_t i = 0; (name = export_format_name(i, &summary)); i++)
		fprintf(out, "    %-11s         %s\n", name, summary);
	fputs(options_usage, out);
}

/* ---- option values ------------------------------------------------------ */

static int refuse(const char *option, const char *value, const char *wanted)
{
	return arguments_refuse_value("r3ring export", option, value, wanted);
}

/* Digits only, up to @most; *text moves behind them. */
static bool take_number(const char **text, uint64_t most, uint64_t *value)
{
	char *end;

	if (**text < '0' || **text > '9')
		return false;
	errno = 0;
	*value = strtoull(*text, &end, 10);
	*text = end;
	return !errno && *value <= most;
}

static int parse_range(const char *option, const char *value, uint64_t most, uint64_t range[2])
{
	const char *text = value;

	if (take_number(&text, most, &range[0]) && *text++ == ':' &&
	    take_number(&text, most, &range[1]) && !*text && range[1])
		return 0;
	return refuse(option, value, "a range A:B, such as 0:16");
}

static int parse_count(const char *option, const char *value, uint64_t most, uint64_t *count)
{
	const char *text = value;
	char what[64];

	if (take_number(&text, most, count) && !*text && *count)
		return 0;
	snprintf(what, sizeof(what), "a number from 1 to %" PRIu64, most);
	return refuse(option, value, what);
}

/* One of the names that @name_of gives for [1, end). */
#define PARSE_NAME(option, value, end, name_of, wanted, result)                                    \
	do {                                                                                       \
		for (unsigned int i_ = 1; i_ < (unsigned int)(end); i_++)                          \
			if (!strcmp(name_of(i_), value)) {                                         \
				*(result) = i_;                                                    \
				return 0;                                                          \
			}                                                                          \
		return refuse(option, value, wanted);                                              \
	} while (0)

static int parse_dtype(const char *value, enum export_dtype *dtype)
{
	PARSE_NAME("--dtype", value, EXPORT_DTYPES, export_dtype_name,
		   "u8, i8, u16, i16, i32 or i64", dtype);
}

static int parse_fill(const char *option, const char *value, enum export_fill *fill)
{
	PARSE_NAME(option, value, EXPORT_FILLS, export_fill_name, "-1, zeros, arange or error",
		   fill);
}

static int parse_rows(const char *value, enum export_rows *rows)
{
	PARSE_NAME("--rows", value, EXPORT_ROWS, export_rows_name, "minus-one or full", rows);
}

static int parse_policy(const char *value, enum r3ring_row_policy *policy)
{
	bool latest = !strcmp(value, "latest");

	if (!latest && strcmp(value, "first") != 0)
		return refuse("--policy", value, "first or latest");
	*policy = latest ? R3RING_ROWS_LATEST : R3RING_ROWS_FIRST;
	return 0;
}

static int parse_include(const char *value, uint32_t *include)
{
	if (!strcmp(value, "unfinished"))
		*include |= EXPORT_INCLUDE_UNFINISHED;
	else if (!strcmp(value, "aborted"))
		*include |= EXPORT_INCLUDE_ABORTED;
	else if (!strcmp(value, "guessed"))
		*include |= EXPORT_INCLUDE_GUESSED;
	else if (!strcmp(value, "damaged"))
		*include |= EXPORT_INCLUDE_DAMAGED;
	else
		return refuse("--include", value, "unfinished, aborted, guessed or damaged");
	return 0;
}

/* ---- command line ------------------------------------------------------- */

static int take_layers(struct export_options *options)
{
	uint64_t range[2] = {0};
	int rc = parse_range("--layers", optarg, INT32_MAX, range);

	options->layer_first = (int32_t)range[0];
	options->layer_end = (int32_t)range[1];
	return rc;
}

static int take_positions(struct export_options *options)
{
	uint64_t range[2] = {0};
	int rc = parse_range("--positions", optarg, UINT32_MAX, range);

	options->position_first = (uint32_t)range[0];
	options->position_end = (uint32_t)range[1];
	return rc;
}

static int take_counts(int option, struct export_options *options)
{
	uint64_t count = 0;
	int rc;

	switch (option) {
	case 'N':
		rc = parse_count("--model-layers", optarg, R3RING_LAYERS_MAX, &count);
		options->model_layers = (uint32_t)count;
		options->layers = EXPORT_LAYERS_ALL;
		return rc;
	case 'M':
		rc = parse_count("--max-memory", optarg, UINT32_MAX, &count);
		options->max_bytes = count << 20;
		return rc;
	default:
		rc = parse_count("--ends", optarg, UINT16_MAX, &count);
		options->min_ends = (uint32_t)count;
		return rc;
	}
}

/* Options whose values are words. */
static int take_words(int option, struct export_options *options)
{
	switch (option) {
	case 'd':
		return parse_dtype(optarg, &options->dtype);
	case 'm':
		return parse_fill("--missing", optarg, &options->missing);
	case 'P':
		return parse_fill("--pad", optarg, &options->pad);
	case 'r':
		return parse_rows(optarg, &options->rows);
	case 'y':
		return parse_policy(optarg, &options->policy);
	default:
		return parse_include(optarg, &options->include);
	}
}

static void take_flag(int option, struct export_line *line)
{
	line->options.layers = option == 'a'   ? EXPORT_LAYERS_ALL
			       : option == 'e' ? EXPORT_LAYERS_MOE
					       : line->options.layers;
	line->options.mtp |= option == 't';
	line->options.join |= option == 'J';
	line->progress |= option == 'p';
	line->json |= option == 'j';
	line->help |= option == 'h';
}

static int take_option(int option, struct export_line *line)
{
	struct export_options *options = &line->options;

	switch (option) {
	case 'o':
		options->out = optarg;
		return 0;
	case 'f':
		options->format = optarg;
		return 0;
	case 'i':
		options->instance = optarg;
		return 0;
	case 'q':
		return arguments_append("r3ring export", &options->request, &options->requests,
					optarg);
	case 's':
		return arguments_time("r3ring export", "--since", optarg, &options->since_ns);
	case 'u':
		return arguments_until("r3ring export", optarg, &options->until_ns);
	case 'l':
		return take_layers(options);
	case 'x':
		return take_positions(options);
	case 'N':
	case 'M':
	case 'E':
		return take_counts(option, options);
	case 'd':
	case 'm':
	case 'P':
	case 'r':
	case 'y':
	case 'c':
		return take_words(option, options);
	case '?':
		return -EINVAL; /* getopt has said why */
	default:
		take_flag(option, line);
		return 0;
	}
}

static int take_arguments(int argc, char **argv, struct export_line *line)
{
	if (optind + 1 != argc) {
		fputs(optind == argc ? "r3ring export: which archive? DIR, as 'r3ring record' made "
				       "it\n"
				     : "r3ring export: one archive at a time\n",
		      stderr);
		return -EINVAL;
	}
	line->dir = argv[optind];
	if (line->json && line->options.out && export_to_stdout(line->options.out)) {
		fputs("r3ring export: --json has its summary on standard output, where -o sends "
		      "the routes: leave one of them out\n",
		      stderr);
		return -EINVAL;
	}
	if (line->options.format && line->options.out)
		return 0;
	fputs(line->options.format ? "r3ring export: where to? -o FILE\n"
				   : "r3ring export: which format? --format safetensors, or "
				     "another that --help lists\n",
	      stderr);
	return -EINVAL;
}

static int parse(int argc, char **argv, struct export_line *line)
{
	static const struct option options[] = {
		{"output", required_argument, NULL, 'o'},
		{"format", required_argument, NULL, 'f'},
		{"request", required_argument, NULL, 'q'},
		{"since", required_argument, NULL, 's'},
		{"until", required_argument, NULL, 'u'},
		{"instance", required_argument, NULL, 'i'},
		{"include", required_argument, NULL, 'c'},
		{"layers", required_argument, NULL, 'l'},
		{"positions", required_argument, NULL, 'x'},
		{"rows", required_argument, NULL, 'r'},
		{"policy", required_argument, NULL, 'y'},
		{"all-layers", no_argument, NULL, 'a'},
		{"moe-layers", no_argument, NULL, 'e'},
		{"model-layers", required_argument, NULL, 'N'},
		{"mtp", no_argument, NULL, 't'},
		{"join-turns", no_argument, NULL, 'J'},
		{"dtype", required_argument, NULL, 'd'},
		{"missing", required_argument, NULL, 'm'},
		{"pad", required_argument, NULL, 'P'},
		{"max-memory", required_argument, NULL, 'M'},
		{"ends", required_argument, NULL, 'E'},
		{"progress", no_argument, NULL, 'p'},
		{"json", no_argument, NULL, 'j'},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	int option;
	int rc = 0;

	while (!rc && (option = getopt_long(argc, argv, "o:h", options, NULL)) != -1)
		rc = take_option(option, line);
	return rc || line->help ? rc : take_arguments(argc, argv, line);
}

int cmd_export(int argc, char **argv)
{
	struct export_line line = {0};
	int code;

	if (parse(argc, argv, &line)) {
		code = arguments_refuse(argv[0], NULL);
	} else if (line.help) {
		print_usage(stdout);
		code = TOOL_DONE;
	} else {
		code = export_run_line(&line);
	}
	arguments_free(line.options.request);
	return code;
}
