/* SPDX-License-Identifier: Apache-2.0 */
/* r3ring plan: where to place expert replicas, by the load that was captured. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "monitor/daemon_status.h"
#include "tools/arguments.h"
#include "tools/commands.h"
#include "tools/plain_text.h"
#include "tools/plan.h"

static const char usage[] =
	"usage: r3ring plan --instance NAME --gpus N --replicas N [OPTION]...\n"
	"       r3ring plan --archive DIR --gpus N --replicas N [OPTION]...\n"
	"\n"
	"Places the experts of each layer, some of them several times, so that the GPUs' loads "
	"are\n"
	"even, by the published EPLB algorithm and the load that was captured. Prints how even "
	"they\n"
	"are today and would be, and the map as JSON, but not to a terminal.\n"
	"\n"
	"  --instance NAME  the load of what this instance's rings still have\n"
	"  --archive DIR    the load of an archive\n"
	"  --gpus N         GPUs that share the experts\n"
	"  --replicas N     physical experts of a layer, over all GPUs; a multiple of N GPUs\n"
	"  --nodes N        nodes that the GPUs are on (1)\n"
	"  --groups N       groups of experts, each kept on one node if the nodes divide them (1)\n"
	"  --window STEPS   at most so many of the newest steps (all)\n"
	"  --watch SECONDS  of an instance: reads on for so long\n"
	"  --json           all of it as one JSON object\n"
	"  --help           this text\n"
	"\n"
	"exit codes: 0 done, 1 failed, no load, or a damaged archive, 2 usage, 3 no daemon or no\n"
	"such instance\n";

/* ---- command line ------------------------------------------------------- */

enum {
	OPT_INSTANCE = 1,
	OPT_ARCHIVE,
	OPT_GPUS,
	OPT_REPLICAS,
	OPT_NODES,
	OPT_GROUPS,
	OPT_WINDOW,
	OPT_WATCH,
	OPT_JSON,
	OPT_HELP,
};

static const struct option known[] = {
	{"instance", required_argument, NULL, OPT_INSTANCE},
	{"archive", required_argument, NULL, OPT_ARCHIVE},
	{"gpus", required_argument, NULL, OPT_GPUS},
	{"replicas", required_argument, NULL, OPT_REPLICAS},
	{"nodes", required_argument, NULL, OPT_NODES},
	{"groups", required_argument, NULL, OPT_GROUPS},
	{"window", required_argument, NULL, OPT_WINDOW},
	{"watch", required_argument, NULL, OPT_WATCH},
	{"json", no_argument, NULL, OPT_JSON},
	{"help", no_argument, NULL, OPT_HELP},
	{0},
};

static int take_number(const char *option, uint64_t most, uint64_t *value)
{
	return arguments_number("r3ring plan", option, optarg, 1, most, value);
}

static int take_count(const char *option, uint32_t *value)
{
	uint64_t number = 0;
	int code = take_number(option, R3RING_EXPERTS_MAX, &number);

	if (!code)
		*value = (uint32_t)number;
	return code;
}

static int take_option(int option, struct plan_options *options)
{
	switch (option) {
	case OPT_INSTANCE:
		options->instance = optarg;
		return 0;
	case OPT_ARCHIVE:
		options->archive = optarg;
		return 0;
	case OPT_GPUS:
		return take_count("--gpus", &options->place.gpus);
	case OPT_REPLICAS:
		return take_count("--replicas", &options->place.physical);
	case OPT_NODES:
		return take_count("--nodes", &options->place.nodes);
	case OPT_GROUPS:
		return take_count("--groups", &options->place.groups);
	case OPT_WINDOW:
		return take_number("--window", UINT32_MAX, &options->window_steps);
	case OPT_WATCH:
		return arguments_seconds(optarg, &options->watch_ns)
			       ? 0
			       : arguments_refuse_value("r3ring plan", "--watch", optarg,
							"a number of seconds above 0");
	case OPT_JSON:
		options->json = true;
		return 0;
	default:
		return -EINVAL;
	}
}

static int refuse_line(const struct plan_options *options)
{
	const char *missing = NULL;

	if (!options->instance == !options->archive)
		missing = "give either --instance or --archive";
	else if (!options->place.gpus)
		missing = "how many GPUs? Give --gpus";
	else if (!options->place.physical)
		missing = "how many physical experts? Give --replicas";
	else if (options->archive && options->watch_ns)
		missing = "--watch is for an instance: an archive is read to its end";
	if (missing)
		fprintf(stderr, "r3ring plan: %s\n", missing);
	return missing ? -EINVAL : 0;
}

/* Returns 0, 1 (help was asked for), or -EINVAL (it was told why). */
static int parse(int argc, char **argv, struct plan_options *options)
{
	int option;

	while ((option = getopt_long(argc, argv, "", known, NULL)) != -1) {
		if (option == OPT_HELP)
			return 1;
		if (take_option(option, options))
			return -EINVAL;
	}
	if (optind < argc) {
		fprintf(stderr, "r3ring plan: '%s' is too much\n", argv[optind]);
		return -EINVAL;
	}
	return refuse_line(options);
}

/* ---- the load -------------------------------------------------------------- */

/* What is read into, and from. */
struct source {
	struct r3ring_load *load;
	struct r3ring_load_snapshot *snapshot;
};

/* Steps alone are none: their routes may be lost, or left out of the archive. */
static bool has_load(const struct r3ring_load_info *info)
{
	for (uint32_t i = 0; i < info->layers; i++) {
		if (info->rows[i] > 0)
			return true;
	}
	return false;
}

static int refuse_load(const struct plan_options *options, struct r3ring_error *err)
{
	if (options->archive)
		return r3ring_error_set(err, -ENODATA,
					"%s has no step with routes to plan from: none was run, or "
					"they are lost, or --layers left them out",
					options->archive);
	return r3ring_error_set(err, -ENODATA,
				"no step with routes is there to plan from; let the engine run, or "
				"--watch for some seconds");
}

static int read_load(const struct plan_options *options, struct source *source, struct plan *plan,
		     struct r3ring_error *err)
{
	const struct r3ring_load_options all = {
		.size = sizeof(all),
		.window_steps = options->window_steps ? options->window_steps : UINT32_MAX,
	};
	int r = r3ring_load_create(&source->load, &all, err);

	if (r == 0)
		r = r3ring_load_snapshot_create(&source->snapshot);
	if (r == 0)
		r = options->instance
			    ? plan_read_instance(options, source->load, err)
			    : plan_read_archive(options, source->load, &plan->damaged, err);
	if (r < 0)
		return r;
	r3ring_load_flush(source->load);
	r = r3ring_load_read(source->load, R3RING_LOAD_MERGED, R3RING_LOAD_STEPS,
			     R3RING_LOAD_ANY_EPOCH, source->snapshot);
	plan->info = r3ring_load_snapshot_info(source->snapshot);
	if (r == -ENODATA || (r == 0 && !has_load(plan->info)))
		return refuse_load(options, err);
	return r;
}

/* ---- running ---------------------------------------------------------------- */

static int exit_code(const struct plan_options *options, int code)
{
	if (code == -EINVAL)
		return TOOL_USAGE;
	return options->instance && (code == -ENOENT || daemon_is_missing(code)) ? TOOL_NO_DAEMON
										 : TOOL_FAILED;
}

static int run(const struct plan_options *options, struct source *source, struct plan *plan)
{
	struct r3ring_error err = {0};
	int r = read_load(options, source, plan, &err);
	int code;

	if (r == 0)
		r = plan_make(source->load, &options->place, plan, &err);
	if (r < 0) {
		plain_text_error("r3ring plan", r, &err);
		return exit_code(options, r);
	}
	code = plan_print(options, plan);
	if (!plan->damaged)
		return code;
	fprintf(stderr,
		"r3ring plan: the archive is damaged in %llu places; 'r3ring verify %s' says "
		"where\n",
		(unsigned long long)plan->damaged, options->archive);
	return TOOL_FAILED;
}

int cmd_plan(int argc, char **argv)
{
	struct plan_options options = {.place = {.size = sizeof(options.place)}};
	struct source source = {0};
	struct plan plan = {0};
	int code = parse(argc, argv, &options);

	if (code == 1) {
		fputs(usage, stdout);
		return TOOL_DONE;
	}
	if (code < 0)
		return arguments_refuse(argv[0], NULL);
	code = run(&options, &source, &plan);
	plan_free(&plan);
	r3ring_load_snapshot_free(source.snapshot);
	r3ring_load_destroy(source.load);
	return code;
}
