/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What expert-route reservation is worth, on recorded routing: how well each predictor
 * foretells a request, and what placing requests by it does to a simulated cluster.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/bench/worth/figures.h"
#include "tests/bench/worth/foretell.h"
#include "tests/bench/worth/simulate.h"

static const char usage[] =
	"usage: bench-worth [--seeds N] [--json FILE] HEADER.json|ARCHIVE\n"
	"\n"
	"Measures on a recording (as `r3ring produce --trace` takes it) or an archive.\n"
	"\n"
	"  --seeds N    splits and orders of arrival, 2 to 1000 (20)\n"
	"  --json FILE  all figures\n";

/* Reading weights is what small batches wait for; computing, large ones. */
static const struct cost costs[] = {{"weights", 4, 0.1}, {"visits", 0, 4}};
static const uint32_t cluster_sizes[] = {2, 4, 8};

struct job {
	const struct corpus *corpus;
	uint32_t seeds;
	json_t *json;
};

/* ---- maps ----------------------------------------------------------------- */

/* Without EPLB, or with one replica more for a quarter of the experts, placed by the load of
 * the requests that are fitted on. */
static int make_map(const struct knowledge *knowledge, bool eplb, struct r3ring_eplb_map **map)
{
	const struct trace *trace = &knowledge->corpus->trace;
	const struct r3ring_eplb_options options = {
		.size = sizeof(options),
		.physical = trace->experts + trace->experts / 4,
		.gpus = GPUS,
	};
	double *load;
	int r;

	if (!eplb)
		return r3ring_eplb_map_plain(map, trace->layer_count, trace->experts, GPUS, NULL);
	load = calloc(knowledge->corpus->cells, sizeof(*load));
	if (!load)
		return -ENOMEM;
	for (uint32_t i = 0; i < knowledge->corpus->cells; i++)
		load[i] = knowledge->global[i];
	r = r3ring_eplb_place(map, load, trace->layer_count, trace->experts, &options, NULL);
	free(load);
	return r;
}

/* ---- one setting, all policies -------------------------------------------- */

struct result {
	struct figures step_us, step_p99_us, imbalance, token_us;
	struct figures gain; /* of the mean step over the least loaded one's, in percent */
};

static int run_seed(const struct job *job, struct setting *setting, bool eplb,
		    struct result *results)
{
	bool *fitted = calloc(job->corpus->count, sizeof(*fitted));
	struct outcome outcomes[16];
	struct r3ring_eplb_map *map = NULL;
	struct knowledge knowledge;
	double least = 0;
	int r;

	if (!fitted)
		return -ENOMEM;
	corpus_split(job->corpus, setting->seed, fitted);
	r = knowledge_make(&knowledge, job->corpus, fitted);
	if (r) {
		free(fitted);
		return r;
	}
	r = make_map(&knowledge, eplb, &map);
	setting->knowledge = &knowledge;
	setting->map = map;
	for (uint32_t p = 0; !r && p < policy_count; p++) {
		r = simulate(setting, &policies[p], &outcomes[p]);
		if (strcmp(policies[p].name, "least loaded") == 0)
			least = outcomes[p].step_us;
	}
	for (uint32_t p = 0; !r && p < policy_count; p++) {
		figures_add(&results[p].step_us, outcomes[p].step_us);
		figures_add(&results[p].step_p99_us, outcomes[p].step_p99_us);
		figures_add(&results[p].imbalance, outcomes[p].imbalance);
		figures_add(&results[p].token_us, outcomes[p].token_us);
		figures_add(&results[p].gain, 100 * (1 - outcomes[p].step_us / least));
	}
	r3ring_eplb_map_free(map);
	knowledge_free(&knowledge);
	free(fitted);
	return r;
}

static void report(const struct job *job, const struct setting *setting, bool eplb,
		   const struct result *results)
{
	printf("\n%u workers of %u GPUs, cost of %s, EPLB %s\n"
	       "policy              step us    p99   max/mean   token us   step saved beside least "
	       "loaded\n",
	       setting->workers, GPUS, setting->cost->name, eplb ? "on" : "off");
	for (uint32_t p = 0; p < policy_count; p++) {
		const struct result *result = &results[p];

		printf("%-17s %9.1f %6.0f %10.3f %10.1f   %6.2f %% +- %.2f\n", policies[p].name,
		       figures_mean(&result->step_us), figures_mean(&result->step_p99_us),
		       figures_mean(&result->imbalance), figures_mean(&result->token_us),
		       figures_mean(&result->gain), figures_interval(&result->gain));
		json_array_append_new(
			job->json,
			json_pack("{s:i, s:s, s:b, s:s, s:f, s:f, s:f, s:f, s:f, s:f}", "workers",
				  (int)setting->workers, "cost", setting->cost->name, "eplb", eplb,
				  "policy", policies[p].name, "step_us",
				  figures_mean(&result->step_us), "step_p99_us",
				  figures_mean(&result->step_p99_us), "max_to_mean",
				  figures_mean(&result->imbalance), "token_us",
				  figures_mean(&result->token_us), "saved_percent",
				  figures_mean(&result->gain), "saved_interval",
				  figures_interval(&result->gain)));
	}
	fflush(stdout);
}

static int run_setting(const struct job *job, uint32_t workers, const struct cost *cost, bool eplb)
{
	struct result results[16] = {0};
	struct setting setting = {
		.corpus = job->corpus,
		.cost = cost,
		.workers = workers,
	};
	int r = 0;

	for (setting.seed = 1; !r && setting.seed <= job->seeds; setting.seed++)
		r = run_seed(job, &setting, eplb, results);
	if (!r)
		report(job, &setting, eplb, results);
	return r;
}

static int run_all(const struct job *job)
{
	int r = 0;

	for (size_t w = 0; w < sizeof(cluster_sizes) / sizeof(*cluster_sizes); w++) {
		for (size_t c = 0; c < sizeof(costs) / sizeof(*costs); c++) {
			for (int eplb = 0; !r && eplb < 2; eplb++)
				r = run_setting(job, cluster_sizes[w], &costs[c], eplb);
		}
	}
	return r;
}

/* ---- the command ---------------------------------------------------------- */

static int write_json(const char *path, json_t *foretold, json_t *placed)
{
	json_t *all = json_pack("{s:O, s:O}", "foretold", foretold, "placed", placed);
	int r = all && json_dump_file(all, path, JSON_INDENT(1)) == 0 ? 0 : -EIO;

	json_decref(all);
	return r;
}

static int measure(const char *header, uint32_t seeds, const char *json_path)
{
	struct corpus corpus;
	struct r3ring_error err = {0};
	json_t *foretold = json_array(), *placed = json_array();
	const struct job job = {&corpus, seeds, placed};
	int r = corpus_read(&corpus, header, &err);

	if (r) {
		fprintf(stderr, "bench-worth: %s\n", err.text);
		return 1;
	}
	printf("%s: %u requests of %u rows and more, %u layers, %u experts, %u a token; %u seeds\n",
	       corpus.trace.model, corpus.count, ROWS_MIN, corpus.trace.layer_count,
	       corpus.trace.experts, corpus.trace.top_k, seeds);
	r = foretell(&corpus, seeds, foretold);
	if (!r)
		r = run_all(&job);
	if (!r && json_path)
		r = write_json(json_path, foretold, placed);
	if (r)
		fprintf(stderr, "bench-worth: %s\n", strerror(-r));
	json_decref(foretold);
	json_decref(placed);
	corpus_free(&corpus);
	return r != 0;
}

int main(int argc, char **argv)
{
	static const struct option known[] = {{"seeds", required_argument, NULL, 's'},
					      {"json", required_argument, NULL, 'j'},
					      {"help", no_argument, NULL, 'h'},
					      {NULL, 0, NULL, 0}};
	const char *json_path = NULL;
	unsigned long seeds = 20;
	int option;

	while ((option = getopt_long(argc, argv, "", known, NULL)) != -1) {
		if (option == 's') {
			seeds = strtoul(optarg, NULL, 10);
		} else if (option == 'j') {
			json_path = optarg;
		} else {
			fputs(usage, option == 'h' ? stdout : stderr);
			return option == 'h' ? 0 : 2;
		}
	}
	if (optind + 1 != argc || seeds < 2 || seeds > 1000) {
		fputs(usage, stderr);
		return 2;
	}
	return measure(argv[optind], (uint32_t)seeds, json_path);
}
